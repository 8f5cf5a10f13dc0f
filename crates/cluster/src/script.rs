//! The scripts, and how they are run.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use huntsman_redis::{Batch, Client, Error, ErrorKind, Reply, Settings};
use sha1::{Digest, Sha1};

use crate::settings::Durability;

/// A script, with its name in a server.
#[derive(Debug)]
pub(crate) struct Script {
    source: &'static str,
    sha: String,
}

impl Script {
    fn new(source: &'static str) -> Self {
        let mut sha = String::new();
        for byte in Sha1::digest(source.as_bytes()) {
            write!(sha, "{byte:02x}").expect("a string takes all");
        }
        Self { source, sha }
    }
}

macro_rules! scripts {
    ($($name:ident $file:literal)+) => {
        $(pub(crate) static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(concat!(include_str!("scripts/prelude.lua"), include_str!(concat!("scripts/", $file, ".lua"))))
        });)+
    };
}

scripts! {
    BEAT "beat" CLAIM "claim" COUNT "count" CREATE "create" DROP "drop" HOSTS "hosts" LEASE "lease" LEAVE "leave" NODE "node" NOTE "note"
    OUTBOX "outbox" PEEK "peek" PUSH "push" RELEASE "release" RESTORE "restore" SETTLE "settle" TRIM "trim" TURN "turn"
}

/// One call of a script, which may be sent twice.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    /// A call of a script on a key.
    pub(crate) fn new(script: &'static LazyLock<Script>, key: String) -> Self {
        Self { script, keys: vec![key], arguments: Vec::new() }
    }

    /// Adds a key.
    pub(crate) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl Into<Vec<u8>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a number as an argument.
    pub(crate) fn number(self, number: u64) -> Self {
        self.arg(number.to_string())
    }

    /// Adds the call to a batch, by the name of the script or with its source.
    fn add_to(&self, batch: &mut Batch, by_name: bool) {
        let count = self.keys.len().to_string();
        let (command, script) = match by_name {
            true => (&b"EVALSHA"[..], self.script.sha.as_bytes()),
            false => (&b"EVAL"[..], self.script.source.as_bytes()),
        };
        let mut parts: Vec<&[u8]> = vec![command, script, count.as_bytes()];
        parts.extend(self.keys.iter().map(String::as_bytes));
        parts.extend(self.arguments.iter().map(Vec::as_slice));
        batch.push_keyed(&parts, self.keys[0].as_bytes());
    }
}

/// The reply of a call: `None` if another node may own the partition.
pub(crate) type Answer = Option<Reply>;

/// Runs calls on the server.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) client: Client,
    address: String,
    /// How long a replica is waited for.
    patience: Duration,
    durability: Durability,
    /// Microseconds that all runners of a node have waited for replies.
    waited: Arc<AtomicU64>,
}

/// How long the server waits for a replica before it is asked again, in milliseconds.
const REPLICA: &[u8] = b"1000";

impl Runner {
    pub(crate) fn connect(settings: &Settings, durability: Durability) -> Result<Self, Error> {
        let client = Client::connect(Arc::new(settings.clone()))?;
        Ok(Self {
            client,
            address: settings.address(),
            patience: settings.retry_patience(),
            durability,
            waited: Arc::default(),
        })
    }

    /// Another runner on the same server, with connections of its own.
    pub(crate) fn sibling(&self) -> Self {
        Self {
            client: self.client.sibling(),
            address: self.address.clone(),
            waited: Arc::clone(&self.waited),
            ..*self
        }
    }

    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// The microseconds that all runners of a node have waited for replies, which grow with each answer of the server.
    pub(crate) fn waited(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.waited)
    }

    /// Seconds that all runners of a node have waited for replies of scripts.
    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.waited.load(Ordering::Relaxed)).as_secs_f64()
    }

    /// Runs calls, and returns their replies in order.
    pub(crate) fn run(&mut self, calls: &[Call]) -> Result<Vec<Answer>, Error> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut replies = self.send(calls.iter(), true)?;
        // A server that was started again, or took over, does not know the scripts.
        let unknown = |reply: &Reply| matches!(reply, Reply::Error(error) if error.starts_with("NOSCRIPT"));
        let again: Vec<usize> = (0..calls.len()).filter(|at| unknown(&replies[*at])).collect();
        if !again.is_empty() {
            let found = self.send(again.iter().map(|at| &calls[*at]), false)?;
            again.into_iter().zip(found).for_each(|(at, reply)| replies[at] = reply);
        }
        let answer = |reply| match reply {
            Reply::Error(error) if error.starts_with("FENCED") => Ok(None),
            Reply::Error(error) => Err(self.client.refused(&error)),
            reply => Ok(Some(reply)),
        };
        replies.into_iter().map(answer).collect()
    }

    /// Runs one call of a script that refuses nobody.
    pub(crate) fn call(&mut self, call: Call) -> Result<Reply, Error> {
        Ok(self.run(&[call])?.remove(0).unwrap_or(Reply::Nil))
    }

    fn send<'a>(
        &mut self,
        calls: impl Iterator<Item = &'a Call> + Clone,
        by_name: bool,
    ) -> Result<Vec<Reply>, Error> {
        let mut batch = Batch::new();
        calls.clone().for_each(|call| call.add_to(&mut batch, by_name));
        let count = batch.len();
        let mut waits = Batch::new();
        if self.durability == Durability::Replica {
            let mut keys: Vec<&str> = calls.map(|call| call.keys[0].as_str()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                waits.push_keyed(&[b"WAIT", b"1", REPLICA], key.as_bytes());
            }
            batch.append(&waits);
        }
        let begun = Instant::now();
        let mut replies = self.client.answers(&batch)?;
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(micros, Ordering::Relaxed);
        let mut waited: Vec<Reply> = replies.drain(count..).collect();
        // A replica that took over may be without a replica of its own for a while.
        let since = Instant::now();
        while waited.iter().any(|replicas| replicas.number() == Some(0)) {
            if since.elapsed() >= self.patience {
                let message = "no replica has the last changes of the queue, as the job asks for: see whether a replica runs \
                               (INFO replication), then run the same again";
                return Err(Error::new(ErrorKind::Unavailable, message).at(self.address.as_str()));
            }
            tracing::warn!("no replica has the last changes of the queue yet");
            waited = self.client.answers(&waits)?;
        }
        Ok(replies)
    }

    /// The error for a reply that no script gives.
    pub(crate) fn damaged(&self, what: &str) -> Error {
        damaged(what).at(self.address.as_str())
    }
}

/// The error for a reply that no script gives.
pub(crate) fn damaged(what: &str) -> Error {
    let message =
        format!("{what} in the server is not what this program writes: use another job or another database");
    Error::new(ErrorKind::Format, message)
}
