//! Crawls that several machines share: flags that `crawl` and `cluster` have in common, and the settings that they stand for.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use huntsman::Order;
use huntsman::cluster::{ClusterSettings, Durability, Error, ErrorKind, SharedFrontier};

use crate::exit::{Failure, Outcome};
use crate::render::{escape, say};

/// A node of a shared crawl.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Shared crawl")]
pub(crate) struct ClusterArgs {
    /// Keeps the queue in a Redis or Valkey server that several nodes share, and works on it as one of them: redis://HOST[:PORT][/DB], or
    /// rediss:// for TLS. The password may be given in HUNTSMAN_REDIS_PASSWORD. Start each node with the same flags otherwise.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, requires = "node", conflicts_with = "store")]
    pub(crate) frontier: Option<String>,

    /// Name of the shared crawl in the server, which is made if there is none [default: crawl].
    #[arg(long, value_name = "NAME", requires = "frontier")]
    pub(crate) job: Option<String>,

    /// Name of this node; no two nodes of a crawl have the same.
    #[arg(long, value_name = "NAME", requires = "frontier")]
    pub(crate) node: Option<String>,

    /// When a change of the queue counts as done, for a crawl that is made [default: fsync].
    #[arg(long, value_name = "LEVEL", requires = "frontier")]
    pub(crate) durability: Option<DurabilityArg>,
}

/// Values of `--durability`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityArg {
    /// The server has replied.
    Ack,
    /// The server has written its log to its disk (appendfsync always).
    Fsync,
    /// A replica of the server has it, too.
    Replica,
}

impl DurabilityArg {
    /// The level.
    pub(crate) fn level(self) -> Durability {
        match self {
            Self::Ack => Durability::Ack,
            Self::Fsync => Durability::Fsync,
            Self::Replica => Durability::Replica,
        }
    }
}

/// The settings of a job on a server.
pub(crate) fn settings(frontier: &str, job: Option<&str>) -> Outcome<ClusterSettings> {
    let settings: ClusterSettings =
        frontier.parse().map_err(|error: Error| Failure::usage(format!("--frontier: {error}")))?;
    let settings = match std::env::var("HUNTSMAN_REDIS_PASSWORD") {
        Ok(password) => settings.password(password),
        Err(_) => settings,
    };
    Ok(match job {
        Some(job) => settings.job(job),
        None => settings,
    })
}

/// The failure for an error of a shared frontier.
pub(crate) fn failure(error: &Error) -> Failure {
    let message = format!("--frontier: {error}");
    match error.kind() {
        ErrorKind::Input => Failure::usage(message),
        _ => Failure::crawl(message),
    }
}

/// The node that the flags name, which has not joined yet.
#[derive(Clone, Debug)]
pub(crate) struct ClusterNode {
    settings: ClusterSettings,
    name: String,
    job: String,
}

impl ClusterNode {
    /// The node of the flags; `None` if the crawl is not shared.
    pub(crate) fn of(args: &ClusterArgs) -> Outcome<Option<Self>> {
        let (Some(frontier), Some(name)) = (&args.frontier, &args.node) else { return Ok(None) };
        let settings = settings(frontier, args.job.as_deref())?.node(name);
        let settings = match args.durability {
            Some(level) => settings.durability(level.level()),
            None => settings,
        };
        let job = args.job.clone().unwrap_or_else(|| "crawl".to_owned());
        Ok(Some(Self { settings, name: name.clone(), job }))
    }

    /// Joins the crawl.
    pub(crate) fn join(self, order: Order) -> Outcome<SharedFrontier> {
        SharedFrontier::join(self.settings, order).map_err(|error| failure(&error))
    }

    /// The directory for the records of this start: the given one or one named after job and node, with a number behind it if there are
    /// records of an earlier start, which all count.
    pub(crate) fn directory(&self, given: Option<&Path>, fresh: bool) -> PathBuf {
        let first =
            given.map_or_else(|| PathBuf::from(format!("{}-{}", self.job, self.name)), Path::to_owned);
        if fresh || !holds_records(&first) {
            return first;
        }
        let numbered = |number: u32| {
            let mut path = first.clone().into_os_string();
            path.push(format!("-{number}"));
            PathBuf::from(path)
        };
        let path = (2..).map(numbered).find(|path| !holds_records(path)).unwrap_or_else(|| first.clone());
        say(&format!(
            "{} holds records of an earlier start of this node; those of this start go to {}",
            escape(&first.to_string_lossy()),
            escape(&path.to_string_lossy())
        ));
        path
    }
}

/// Whether a run has written into a directory.
fn holds_records(path: &Path) -> bool {
    path.join(crate::output::PAGES).exists() || path.join(crate::output::DROPS).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_of_a_node_has_a_directory_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        let given = root.path().join("out");
        let args = ClusterArgs {
            frontier: Some("redis://localhost".to_owned()),
            node: Some("n1".to_owned()),
            ..ClusterArgs::default()
        };
        let node = ClusterNode::of(&args).unwrap().unwrap();
        assert_eq!(node.directory(None, false), PathBuf::from("crawl-n1"));
        for expected in ["out", "out-2", "out-3"] {
            let path = node.directory(Some(&given), false);
            assert_eq!(path, root.path().join(expected));
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(crate::output::PAGES), "").unwrap();
        }
        assert_eq!(node.directory(Some(&given), true), given, "a fresh start deletes the records");
    }
}
