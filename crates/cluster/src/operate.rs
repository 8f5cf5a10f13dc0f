//! What an operator sees of a job, and does to it.

use huntsman_crawler::{HostKey, Order};
use huntsman_redis::{Error, ErrorKind, Reply};

use crate::convert::Items;
use crate::job::Job;
use crate::keys::{Keys, partition_of};
use crate::nodes::listed;
use crate::script::{COUNT, Call, DROP, Runner};
use crate::settings::{ClusterSettings, Durability};

/// Looks at a job and steers it, without taking part in it.
#[derive(Debug)]
pub struct Operator {
    settings: ClusterSettings,
    runner: Runner,
    job: Job,
}

/// What all nodes of a job are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To crawl.
    Run,
    /// To start no more requests, and to wait.
    Pause,
    /// To end; the queue stays.
    Stop,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStatus {
    /// Requests in the queue.
    pub queued: u64,
    /// Requests that a node works on.
    pub leased: u64,
    /// Requests on their way to another partition.
    pub outbox: u64,
    /// Requests that were done or replaced.
    pub settled: u64,
    /// What the nodes are asked to do.
    pub wish: Wish,
    /// Nodes that are heard of, by name.
    pub nodes: Vec<NodeStatus>,
    /// All partitions, by number.
    pub partitions: Vec<PartitionStatus>,
}

/// A node of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Number of its partitions.
    pub partitions: u64,
    /// Whether it works, or waits for the others.
    pub is_busy: bool,
}

/// A partition of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The node that owns it, if one does.
    pub node: Option<String>,
    /// Requests in its queue.
    pub queued: u64,
    /// Requests that its node works on.
    pub leased: u64,
    /// Requests on their way to another partition.
    pub outbox: u64,
}

const CONTROL: &[u8] = b"control";

impl Operator {
    /// Connects to a job that exists.
    ///
    /// # Errors
    /// The server cannot be reached, or has no such job.
    pub fn connect(settings: ClusterSettings) -> Result<Self, Error> {
        settings.check()?;
        let mut runner = Runner::connect(&settings.server, Durability::Ack)?;
        let job = Job::look(&Keys::new(&settings.job), &mut runner)?.ok_or_else(|| {
            let message =
                format!("there is no job {:?}: name one that a crawl was started with", settings.job);
            Error::new(ErrorKind::Input, message).at(settings.address())
        })?;
        Ok(Self { settings, runner, job })
    }

    /// Makes a job with the partitions, the number of URLs and the durability of the settings, or checks that an existing one is so.
    ///
    /// # Errors
    /// The server cannot be reached or would lose the queue, or the job was made otherwise.
    pub fn make(settings: ClusterSettings, order: Order) -> Result<Self, Error> {
        let mut runner = Runner::connect(&settings.server, Durability::Ack)?;
        let job = Job::enter(&settings, order, &mut runner)?;
        Ok(Self { settings, runner, job })
    }

    /// The name of the job.
    pub fn job(&self) -> &str {
        &self.settings.job
    }

    /// Looks at all partitions and nodes.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn status(&mut self) -> Result<JobStatus, Error> {
        let wish = match Job::look(&self.job.keys, &mut self.runner)?.map(|job| job.control).as_deref() {
            Some("pause") => Wish::Pause,
            Some("stop") => Wish::Stop,
            _ => Wish::Run,
        };
        let nodes = self.nodes()?;
        let mut status =
            JobStatus { queued: 0, leased: 0, outbox: 0, settled: 0, wish, nodes, partitions: Vec::new() };
        let calls: Vec<Call> = (0..self.job.partitions)
            .map(|partition| Call::new(&COUNT, self.job.keys.own(partition)))
            .collect();
        for reply in self.runner.run(&calls)? {
            let mut items = Items::of(reply.unwrap_or(Reply::Nil), "the state of a partition")?;
            items.count()?;
            let (queued, leased, outbox) = (items.count()?, items.count()?, items.count()?);
            status.settled += items.count()?;
            let node = Some(items.text()?).filter(|node| !node.is_empty());
            (status.queued, status.leased) = (status.queued + queued, status.leased + leased);
            status.outbox += outbox;
            status.partitions.push(PartitionStatus { node, queued, leased, outbox });
        }
        Ok(status)
    }

    fn nodes(&mut self) -> Result<Vec<NodeStatus>, Error> {
        let damaged = || crate::script::damaged("the list of nodes");
        let key = self.job.keys.nodes();
        let values =
            self.runner.client.call(&[b"HGETALL", key.as_bytes()])?.into_values().ok_or_else(damaged)?;
        let text = |value: Option<Vec<u8>>| String::from_utf8(value?).ok();
        let pairs: Vec<String> = values.into_iter().map(text).collect::<Option<_>>().ok_or_else(damaged)?;
        // The clock of this machine decides; a node is shown some time longer or shorter if it differs from the server's.
        let now = huntsman_crawler::Timestamp::wall().0;
        let mut nodes: Vec<NodeStatus> = listed(&pairs, now)
            .into_iter()
            .filter(|node| node.is_alive)
            .map(|node| NodeStatus { name: node.name, partitions: node.partitions, is_busy: node.is_busy })
            .collect();
        nodes.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(nodes)
    }

    /// Asks all nodes to do something; they read the wish within a second or two.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn ask(&mut self, wish: Wish) -> Result<(), Error> {
        let word: &[u8] = match wish {
            Wish::Run => b"run",
            Wish::Pause => b"pause",
            Wish::Stop => b"stop",
        };
        let key = self.job.keys.meta();
        self.runner.client.call(&[b"HSET", key.as_bytes(), CONTROL, word]).map(drop)
    }

    /// Drops the queue of a host; returns how many requests it had. They stay known, and new requests of the host are queued as before.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn drop_host(&mut self, host: &str) -> Result<u64, Error> {
        let host = HostKey::new(host);
        let own = self.job.keys.own(partition_of(&host, self.job.partitions));
        let mut sum = 0;
        loop {
            let reply = self.runner.call(Call::new(&DROP, own.clone()).arg(host.as_str()))?;
            let mut items = Items::of(reply, "the queue of a host")?;
            sum += items.count()?;
            if items.count()? == 0 {
                return Ok(sum);
            }
        }
    }
}
