//! The nodes of a job, as the server lists them.

use huntsman_redis::{Error, ErrorKind};
use serde_json::{Value, json};

use crate::convert::Items;
use crate::job::Job;
use crate::script::{Call, LEAVE, NODE, Runner};
use crate::settings::ClusterSettings;

/// A node that is heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// Whether it may still queue start requests, or has work of its own.
    pub(crate) is_busy: bool,
    pub(crate) partitions: u64,
    /// How long it was not heard of, in seconds.
    pub(crate) is_alive: bool,
}

/// What a node learns when it renews its entry.
#[derive(Debug)]
pub(crate) struct Roll {
    /// The time of the server.
    pub(crate) now: u64,
    /// What the operator wants.
    pub(crate) control: String,
    /// The nodes that are heard of, this one included.
    pub(crate) nodes: Vec<Node>,
}

/// What a node tells of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) is_busy: bool,
    pub(crate) partitions: usize,
}

/// Enters this node, or renews its entry.
///
/// # Errors
/// Another process has the name.
pub(crate) fn enter(
    settings: &ClusterSettings,
    job: &Job,
    token: &str,
    told: Told,
    runner: &mut Runner,
) -> Result<Roll, Error> {
    let told = json!({"busy": told.is_busy, "partitions": told.partitions}).to_string();
    let call = Call::new(&NODE, job.keys.nodes()).key(job.keys.meta()).arg(settings.node.as_str()).arg(token);
    let call = call.number(micros(settings.lease)).arg(told);
    let mut items = Items::of(runner.call(call)?, "the list of nodes")?;
    let taken = items.count()?;
    let now = items.count()?;
    if taken > 0 {
        let message = format!(
            "the node name {:?} is in use in the job {:?}: give each node a name of its own. If its process has died, the name is free \
             in {:.0} s",
            settings.node,
            settings.job,
            (taken as f64 / 1e6).ceil()
        );
        return Err(Error::new(ErrorKind::Input, message).at(settings.address()));
    }
    let control = items.text()?;
    let nodes = listed(&items.texts()?, now);
    Ok(Roll { now, control, nodes: nodes.into_iter().filter(|node| node.is_alive).collect() })
}

/// Takes this node off the list.
pub(crate) fn leave(
    settings: &ClusterSettings,
    job: &Job,
    token: &str,
    runner: &mut Runner,
) -> Result<(), Error> {
    let call = Call::new(&LEAVE, job.keys.nodes()).arg(settings.node.as_str()).arg(token);
    runner.call(call).map(drop)
}

/// The nodes in pairs of name and entry. An entry that cannot be read counts as a node that is gone.
pub(crate) fn listed(pairs: &[String], now: u64) -> Vec<Node> {
    let node = |pair: &[String]| {
        let entry: Value = serde_json::from_str(&pair[1]).unwrap_or_default();
        let until = entry["until"].as_str().and_then(|until| until.parse::<u64>().ok()).unwrap_or(0);
        let told: Value =
            entry["told"].as_str().and_then(|told| serde_json::from_str(told).ok()).unwrap_or_default();
        Node {
            name: pair[0].clone(),
            is_busy: told["busy"].as_bool().unwrap_or(false),
            partitions: told["partitions"].as_u64().unwrap_or(0),
            is_alive: until > now,
        }
    };
    pairs.chunks_exact(2).map(node).collect()
}

/// A duration in microseconds.
pub(crate) fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
