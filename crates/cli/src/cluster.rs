//! Crawls that several machines share: flags that `crawl` and `cluster` have in common, and the settings that they stand for.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use huntsman::cluster::{ClusterSettings, Durability, Error, ErrorKind, SharedFrontier};
use huntsman::{CrawlerBuilder, Order, Spider};

use crate::exit::{Failure, Outcome};
use crate::render::{escape, say};

/// A node of a shared crawl.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Shared crawl")]
pub(crate) struct ClusterArgs {
    /// Keeps the queue in a server that several nodes share, and works on it as one of them. In a Redis or Valkey server:
    /// redis://HOST[:PORT][/DB], or rediss:// for TLS, with --node; the password may be given in HUNTSMAN_REDIS_PASSWORD. In a URLFrontier
    /// server, with crawlers of other kinds: urlfrontier://HOST[:PORT]. Start each node with the same flags otherwise.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "store")]
    pub(crate) frontier: Option<String>,

    /// Name of the shared crawl in the server, which is made if there is none [default: crawl].
    #[arg(long, value_name = "NAME", requires = "frontier")]
    pub(crate) job: Option<String>,

    /// Name of this node; no two nodes of a crawl have the same. A URLFrontier server asks for none.
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
    server: Server,
    /// Names the directory for the records.
    title: String,
}

/// The server of a node, and what it is there.
#[derive(Clone, Debug)]
enum Server {
    Redis(ClusterSettings),
    #[cfg(feature = "urlfrontier")]
    UrlFrontier(huntsman::url_frontier::UrlFrontierSettings),
}

impl ClusterNode {
    /// The node of the flags; `None` if the crawl is not shared.
    pub(crate) fn of(args: &ClusterArgs) -> Outcome<Option<Self>> {
        let Some(frontier) = &args.frontier else { return Ok(None) };
        let job = args.job.as_deref().unwrap_or("crawl");
        if frontier.starts_with("urlfrontier:") {
            let server = url_frontier(args, frontier, job)?;
            let title = args.node.as_ref().map_or_else(|| job.to_owned(), |name| format!("{job}-{name}"));
            return Ok(Some(Self { server, title }));
        }
        let settings = settings(frontier, args.job.as_deref())?;
        let Some(name) = &args.node else {
            return Err(Failure::usage(
                "--frontier: a node of a crawl in a Redis server needs a name: --node NAME",
            ));
        };
        let settings = settings.node(name);
        let settings = match args.durability {
            Some(level) => settings.durability(level.level()),
            None => settings,
        };
        Ok(Some(Self { server: Server::Redis(settings), title: format!("{job}-{name}") }))
    }

    /// Joins the crawl.
    pub(crate) fn join(self, order: Order) -> Outcome<Joined> {
        match self.server {
            Server::Redis(settings) => {
                SharedFrontier::join(settings, order).map(Joined::Redis).map_err(|error| failure(&error))
            }
            #[cfg(feature = "urlfrontier")]
            Server::UrlFrontier(settings) => huntsman::url_frontier::UrlFrontier::join(settings, order)
                .map(Joined::UrlFrontier)
                .map_err(|error| url_frontier_failure(&error)),
        }
    }

    /// The directory for the records of this start: the given one or one named after job and node, with a number behind it if there are
    /// records of an earlier start, which all count.
    pub(crate) fn directory(&self, given: Option<&Path>, fresh: bool) -> PathBuf {
        let first = given.map_or_else(|| PathBuf::from(&self.title), Path::to_owned);
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

/// The server of a `urlfrontier://` address.
#[cfg(feature = "urlfrontier")]
fn url_frontier(args: &ClusterArgs, address: &str, job: &str) -> Outcome<Server> {
    if args.durability.is_some() {
        let message =
            "--durability: a URLFrontier server says itself when a change of the queue counts as done";
        return Err(Failure::usage(message));
    }
    let settings: huntsman::url_frontier::UrlFrontierSettings =
        address.parse().map_err(|error| url_frontier_failure(&error))?;
    Ok(Server::UrlFrontier(settings.job(job)))
}

#[cfg(not(feature = "urlfrontier"))]
fn url_frontier(_: &ClusterArgs, _: &str, _: &str) -> Outcome<Server> {
    Err(Failure::usage(
        "--frontier: this huntsman was built without the client of URLFrontier servers; build it with --features urlfrontier",
    ))
}

#[cfg(feature = "urlfrontier")]
fn url_frontier_failure(error: &huntsman::url_frontier::Error) -> Failure {
    let message = format!("--frontier: {error}");
    match error.kind() {
        huntsman::url_frontier::ErrorKind::Input => Failure::usage(message),
        _ => Failure::crawl(message),
    }
}

/// The queue of a node that has joined.
#[derive(Debug)]
pub(crate) enum Joined {
    /// In a Redis server.
    Redis(SharedFrontier),
    /// In a URLFrontier server.
    #[cfg(feature = "urlfrontier")]
    UrlFrontier(huntsman::url_frontier::UrlFrontier),
}

impl Joined {
    /// Makes it the queue of a crawl.
    pub(crate) fn attach<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        match self {
            Self::Redis(frontier) => builder.frontier(frontier),
            #[cfg(feature = "urlfrontier")]
            Self::UrlFrontier(frontier) => builder.frontier(frontier),
        }
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

    #[test]
    fn a_node_in_a_redis_server_needs_a_name() {
        let frontier = Some("redis://localhost".to_owned());
        let args = ClusterArgs { frontier, ..ClusterArgs::default() };
        assert!(ClusterNode::of(&args).unwrap_err().message.contains("--node NAME"));
    }

    #[test]
    fn a_node_in_a_url_frontier_server_needs_none_or_the_build_says_what_it_lacks() {
        let frontier = Some("urlfrontier://localhost".to_owned());
        let args = ClusterArgs { frontier, job: Some("books".to_owned()), ..ClusterArgs::default() };
        let node = ClusterNode::of(&args);
        if cfg!(feature = "urlfrontier") {
            assert_eq!(node.unwrap().unwrap().directory(None, true), PathBuf::from("books"));
            let args = ClusterArgs { durability: Some(DurabilityArg::Ack), ..args };
            assert!(ClusterNode::of(&args).unwrap_err().message.contains("--durability"));
        } else {
            assert!(node.unwrap_err().message.contains("--features urlfrontier"));
        }
    }
}
