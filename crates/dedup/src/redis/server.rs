//! The server as the layouts use it: a pool of clients for the calling threads.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::client::{Batch, Client, Reply};
use super::settings::RedisSettings;
use huntsman_detect::near::{IndexError, IndexErrorKind};

/// A Redis server, or a cluster of them.
#[derive(Debug)]
pub(super) struct Server {
    settings: Arc<RedisSettings>,
    /// Clients that are not in use. Each calling thread uses one.
    idle: Mutex<Vec<Client>>,
    /// A client from which others are made. Once it is stored here, it never connects itself.
    pattern: Mutex<Client>,
    is_cluster: bool,
}

/// The most idle clients; further ones are closed after their call.
const MAX_IDLE: usize = 8;

/// A client that is returned to the pool when it is dropped.
#[derive(Debug)]
pub(super) struct BorrowedClient<'a> {
    server: &'a Server,
    client: Option<Client>,
}

impl Server {
    pub(super) fn connect(settings: RedisSettings) -> Result<Self, IndexError> {
        let settings = Arc::new(settings);
        let client = Client::connect(settings.server.clone())?;
        let (pattern, is_cluster) = (Mutex::new(client.sibling()), client.is_cluster());
        Ok(Self { settings, idle: Mutex::new(vec![client]), pattern, is_cluster })
    }

    pub(super) fn settings(&self) -> &RedisSettings {
        &self.settings
    }

    /// Whether the commands of a batch may be carried out in another order than they were sent, because they go to several nodes.
    pub(super) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    pub(super) fn client(&self) -> BorrowedClient<'_> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let client =
            idle.unwrap_or_else(|| self.pattern.lock().unwrap_or_else(PoisonError::into_inner).sibling());
        BorrowedClient { server: self, client: Some(client) }
    }

    /// The error for a key whose content this program never writes.
    pub(super) fn damaged(&self, key: &[u8], what: &str) -> IndexError {
        let key = String::from_utf8_lossy(key);
        let message =
            format!("{key} holds {what}, which this program does not write; this key does not hold an index");
        IndexError::new(IndexErrorKind::Damaged, message).at(self.settings.address())
    }

    /// Waits until all writes are on the server's disk, if the server has the command for it and writes a log. For a cluster, and for other
    /// servers, durability depends on their settings.
    pub(super) fn sync(&self) -> Result<(), IndexError> {
        if self.is_cluster {
            return Ok(());
        }
        let mut batch = Batch::new();
        // The command waits for writes of its own connection, and so for all earlier writes. The key of this write is not kept.
        batch.push(&[b"SET", b"sh:flush", b""]);
        batch.push(&[b"DEL", b"sh:flush"]);
        let timeout = (self.settings.server.reply_timeout().as_millis() / 2).to_string();
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

    /// The memory that the server uses for all of its data; for a cluster, the sum. `None` if the user may not ask.
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

impl Deref for BorrowedClient<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("it is given back at the end only")
    }
}

impl DerefMut for BorrowedClient<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        self.client.as_mut().expect("it is given back at the end only")
    }
}

impl Drop for BorrowedClient<'_> {
    fn drop(&mut self) {
        // After a panic, replies may be unread, so the client is not returned.
        if std::thread::panicking() {
            return;
        }
        let mut idle = self.server.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.extend(self.client.take());
        }
    }
}
