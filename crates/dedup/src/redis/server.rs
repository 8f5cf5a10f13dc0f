//! The server as the layouts see it: connections for as many threads as ask.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::client::{Batch, Client};
use super::resp::Reply;
use super::settings::RedisSettings;
use huntsman_detect::near::{IndexError, IndexErrorKind};

/// A Redis server, or a cluster of them.
#[derive(Debug)]
pub(super) struct Server {
    settings: Arc<RedisSettings>,
    /// Clients that nobody uses at the moment. Those that are in use are as many as there are threads that call.
    idle: Mutex<Vec<Client>>,
    /// Never connected itself once it is here: it knows how to.
    pattern: Mutex<Client>,
    is_cluster: bool,
}

/// Clients beyond these are closed when their call is over.
const MOST_IDLE: usize = 8;

/// A client that goes back when it is no longer used.
#[derive(Debug)]
pub(super) struct Lent<'a> {
    server: &'a Server,
    client: Option<Client>,
}

impl Server {
    pub(super) fn connect(settings: RedisSettings) -> Result<Self, IndexError> {
        let settings = Arc::new(settings);
        let client = Client::connect(settings.clone())?;
        let (pattern, is_cluster) = (Mutex::new(client.sibling()), client.is_cluster());
        Ok(Self { settings, idle: Mutex::new(vec![client]), pattern, is_cluster })
    }

    pub(super) fn settings(&self) -> &RedisSettings {
        &self.settings
    }

    /// Whether commands of one batch may be carried out in another order than they were sent, as they go to several nodes.
    pub(super) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    pub(super) fn client(&self) -> Lent<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client =
            idle.unwrap_or_else(|| self.pattern.lock().unwrap_or_else(PoisonError::into_inner).sibling());
        Lent { server: self, client: Some(client) }
    }

    /// An error about a key that holds what was never written.
    pub(super) fn damaged(&self, key: &[u8], what: &str) -> IndexError {
        let key = String::from_utf8_lossy(key);
        let message = format!(
            "{key} holds {what}, which this program does not write; what is under this key is no index"
        );
        IndexError::new(IndexErrorKind::Damaged, message).at(self.settings.address())
    }

    /// Waits until what was written is on the server's disk, if the server has a command for it and a log to write to. With a cluster,
    /// and otherwise, it is a matter of the servers' settings.
    pub(super) fn sync(&self) -> Result<(), IndexError> {
        if self.is_cluster {
            return Ok(());
        }
        let mut batch = Batch::new();
        // It waits for what its own connection wrote, and so for all that was written before. Nothing stays of this.
        batch.push(&[b"SET", b"sh:flush", b""]);
        batch.push(&[b"DEL", b"sh:flush"]);
        let timeout = (self.settings.timeout.as_millis() / 2).to_string();
        batch.push(&[b"WAITAOF", b"1", b"0", timeout.as_bytes()]);
        let replies = self.client().answers(&batch)?;
        if let Some(Reply::List(counts)) = replies.last()
            && counts.first() == Some(&Reply::Number(0))
        {
            let message =
                "the server did not write its log to its disk in time; see its disk, then flush again";
            return Err(IndexError::new(IndexErrorKind::Io, message).at(self.settings.address()));
        }
        Ok(())
    }

    /// The memory that the server uses for everything that is in it; of a cluster the sum. Nothing if this user may not ask.
    pub(super) fn used_memory(&self) -> Result<Option<u64>, IndexError> {
        let mut sum = None;
        for (_, reply) in self.client().each_node(&[b"INFO", b"memory"])? {
            let Reply::Bytes(text) = reply else { return Ok(None) };
            let text = String::from_utf8_lossy(&text);
            let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
            sum = match used.and_then(|used| used.trim().parse::<u64>().ok()) {
                Some(used) => Some(sum.unwrap_or(0) + used),
                None => return Ok(None),
            };
        }
        Ok(sum)
    }
}

impl Deref for Lent<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("it is given back at the end only")
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("it is given back at the end only")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // A panic may have left answers unread.
        if std::thread::panicking() {
            return;
        }
        let mut idle = self.server.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.extend(self.client.take());
        }
    }
}
