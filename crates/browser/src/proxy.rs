//! The proxy of the browser, which refuses everything: what is not intercepted fails here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::Error;

const ANSWER: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// Time in which a request must come. Others wait meanwhile, and only the browser asks here.
const PATIENCE: Duration = Duration::from_millis(200);

/// A proxy that refuses everything, and counts it.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    refused: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn open() -> Result<Self, Error> {
        let doing = || Error::io("opening the proxy of the browser");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(doing())?;
        let address = listener.local_addr().map_err(doing())?;
        let refused = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(serve(listener, Arc::clone(&refused)));
        Ok(Self { address, refused, task })
    }

    /// Connections that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, refused: Arc<AtomicU64>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                refused.fetch_add(1, Ordering::Relaxed);
                refuse(stream).await;
            }
            // The limit of open files, which passes.
            Err(_) => tokio::time::sleep(PATIENCE).await,
        }
    }
}

async fn refuse(mut stream: TcpStream) {
    let mut begin = [0; 1024];
    if let Ok(Ok(length)) = tokio::time::timeout(PATIENCE, stream.read(&mut begin)).await {
        let line = String::from_utf8_lossy(&begin[..length]);
        tracing::debug!(
            request = line.lines().next().unwrap_or_default(),
            "the browser went past interception, and was refused"
        );
    }
    // Whoever is gone needs no answer.
    let _ = stream.write_all(ANSWER).await;
}
