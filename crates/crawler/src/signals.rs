//! Signals: the first one stops a crawl gently, the second one at once.
//!
//! A library takes no signals unless it is asked to ([`CrawlerBuilder::with_signals`](crate::CrawlerBuilder::with_signals)).

use tokio::sync::mpsc;

use crate::engine::Handle;

/// What a signal makes a crawl do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopping {
    /// Nothing more is begun; requests in flight may end within `drain_timeout`.
    Gently,
    /// What is in flight is dropped and goes back to the queue.
    AtOnce,
}

/// SIGINT and SIGTERM, or Ctrl-C where there are none. Not SIGHUP: a handler for it would take `nohup` its effect.
#[derive(Debug)]
pub struct Signals(mpsc::Receiver<()>);

impl Signals {
    /// From now on they come here and do not end the process, until it ends by itself. To be called within a runtime.
    #[cfg(unix)]
    pub fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let (sender, receiver) = mpsc::channel(4);
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let Ok(mut stream) = signal(kind) else { continue };
            let sender = sender.clone();
            tokio::spawn(
                async move { while stream.recv().await.is_some() && sender.send(()).await.is_ok() {} },
            );
        }
        Self(receiver)
    }

    /// From now on they come here and do not end the process, until it ends by itself. To be called within a runtime.
    #[cfg(not(unix))]
    pub fn listen() -> Self {
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {}
        });
        Self(receiver)
    }

    /// Waits for one; for ever if nobody can signal this process.
    pub async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops a crawl at the first one, with the finish reason `shutdown`, and aborts it at the second; `told` hears of each
    /// before. Ends then.
    pub async fn steer(mut self, handle: &Handle, told: impl Fn(Stopping)) {
        self.next().await;
        told(Stopping::Gently);
        handle.stop("shutdown");
        self.next().await;
        told(Stopping::AtOnce);
        handle.abort();
    }
}
