//! Signals: the first one stops the crawl gently, the second one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use huntsman::Handle;
use tokio::sync::mpsc;

use crate::exit::Exit;
use crate::progress::Screen;

/// After the second signal the process ends within a second, whatever hangs.
const AT_ONCE: Duration = Duration::from_millis(800);

/// Whether a signal stopped the crawl.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Acts on signals until it is dropped.
pub(crate) async fn watch(
    mut signals: mpsc::Receiver<()>,
    handle: Handle,
    interrupted: Interrupted,
    screen: Screen,
    drain_seconds: f64,
) {
    if signals.recv().await.is_none() {
        // Nobody can signal us here: the crawl ends by itself.
        return std::future::pending().await;
    }
    interrupted.0.store(true, Ordering::Relaxed);
    screen.line(&format!(
        "stopping: requests in flight may end within {drain_seconds:.0} s; once more to stop at once\n"
    ));
    handle.stop("shutdown");
    if signals.recv().await.is_some() {
        screen.line("stopping at once\n");
        handle.abort();
        tokio::time::sleep(AT_ONCE).await;
        std::process::exit(Exit::Interrupted as i32);
    }
}

/// From now on SIGINT and SIGTERM come here. Not SIGHUP: a handler for it would take `nohup` its effect.
#[cfg(unix)]
pub(crate) fn listen() -> mpsc::Receiver<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = mpsc::channel(4);
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let Ok(mut stream) = signal(kind) else { continue };
        let sender = sender.clone();
        tokio::spawn(async move { while stream.recv().await.is_some() && sender.send(()).await.is_ok() {} });
    }
    receiver
}

/// From now on Ctrl-C comes here.
#[cfg(not(unix))]
pub(crate) fn listen() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(
        async move { while tokio::signal::ctrl_c().await.is_ok() && sender.send(()).await.is_ok() {} },
    );
    receiver
}
