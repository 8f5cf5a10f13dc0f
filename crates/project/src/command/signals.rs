//! Signals of a command: as for any crawl, but with a message to the user, and the process ends even if something
//! hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use huntsman_crawler::Handle;
use huntsman_crawler::signals::{Signals, StopMode};

use super::exit::Exit;
use super::progress::Screen;

/// Time from the second signal to the end of the process: within a second, whatever hangs.
const AT_ONCE: Duration = Duration::from_millis(800);

/// Whether a signal stopped the crawl.
#[derive(Clone, Debug, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Whether it did so far.
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Handles signals until the future is dropped.
pub async fn watch(
    signals: Signals,
    handle: Handle,
    interrupted: Interrupted,
    screen: Screen,
    drain_seconds: f64,
) {
    let told = |stopping| match stopping {
        StopMode::Graceful => {
            // Another crawl of the process may have said so.
            if !interrupted.0.swap(true, Ordering::Relaxed) {
                screen.line(&format!(
                    "stopping: requests in flight may end within {drain_seconds:.0} s; once more to stop at once\n"
                ));
            }
        }
        StopMode::Immediate => screen.line("stopping at once\n"),
    };
    signals.stop_on_signals(&handle, told).await;
    tokio::time::sleep(AT_ONCE).await;
    screen.clear();
    std::process::exit(Exit::Interrupted as i32);
}
