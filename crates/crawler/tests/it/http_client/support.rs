//! A scripted TCP server on loopback for the tests of the HTTP client: it sends raw bytes and records request heads.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use huntsman_crawler::{Downloader, FetchError, HttpDownloader, Request, Response, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An operation that takes longer than this is stuck.
const STUCK: Duration = Duration::from_secs(20);

/// A server whose connections are handled by a closure. Stops when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts a server; `handle` is called with every connection and its number, from 0.
    pub(crate) async fn start<F, Fut>(handle: F) -> Self
    where
        F: Fn(Peer, usize) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let connections = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (counter, log) = (Arc::clone(&connections), Arc::clone(&heads));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                let peer = Peer { stream, seen: Vec::new(), log: Arc::clone(&log) };
                tokio::spawn(tokio::time::timeout(STUCK, handle(peer, number)));
            }
        });
        Self { address, connections, heads, task }
    }

    /// A server that answers every request on every connection with the same bytes and keeps the connection open.
    pub(crate) async fn always(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        Self::start(move |mut peer, _| {
            let answer = Arc::clone(&answer);
            async move {
                while peer.head().await.is_some() {
                    peer.put(&answer).await;
                }
            }
        })
        .await
    }

    /// A server that answers the first request of every connection and then closes it.
    pub(crate) async fn once(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        Self::start(move |mut peer, _| {
            let answer = Arc::clone(&answer);
            async move {
                peer.head().await;
                peer.put(&answer).await;
                peer.close().await;
            }
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection, from the server's side.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    seen: Vec<u8>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    /// The next request head; `None` if the client is gone.
    pub(crate) async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.seen.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.seen[..end + 2]).into_owned();
                self.seen.drain(..end + 4);
                self.log.lock().expect("no panic").push(head.clone());
                return Some(head);
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.seen.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// Reads exactly `count` bytes after the head.
    pub(crate) async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.seen.len() < count {
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(n) => self.seen.extend_from_slice(&chunk[..n]),
            }
        }
        let count = count.min(self.seen.len());
        self.seen.drain(..count).collect()
    }

    /// Sends bytes. Returns whether the client is still connected.
    pub(crate) async fn put(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Sends until the client is gone or the limit is reached. Returns the number of bytes that were accepted.
    pub(crate) async fn flood(&mut self, piece: &[u8], most: usize) -> usize {
        let mut sent = 0;
        while sent < most && self.put(piece).await {
            sent += piece.len();
        }
        sent
    }

    /// Closes the connection properly.
    pub(crate) async fn close(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        let _ = self.stream.set_zero_linger();
    }

    /// Waits for the client to disconnect. Returns whether it did.
    pub(crate) async fn gone(&mut self) -> bool {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return true,
                Ok(_) => {}
            }
        }
    }
}

/// Settings for loopback, modified by `change`.
pub(crate) fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    settings.allow_private_addresses = true;
    change(&mut settings);
    settings
}

pub(crate) fn downloader(change: impl FnOnce(&mut Settings)) -> HttpDownloader {
    HttpDownloader::new(&settings(change)).expect("valid settings")
}

pub(crate) async fn get(downloader: &HttpDownloader, url: &str) -> Result<Response, FetchError> {
    fetch(downloader, Request::parse(url).expect("a URL")).await
}

pub(crate) async fn fetch(downloader: &HttpDownloader, request: Request) -> Result<Response, FetchError> {
    tokio::time::timeout(STUCK, downloader.fetch(&request)).await.expect("the fetch hangs")
}

/// A response with a Content-Length.
pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// An HTML page.
pub(crate) fn page(body: &[u8]) -> Vec<u8> {
    answer("200 OK", "Content-Type: text/html\r\n", body)
}

/// The body compressed with gzip.
pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).expect("to memory");
    encoder.finish().expect("to memory")
}
