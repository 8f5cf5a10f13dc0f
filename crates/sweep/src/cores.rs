//! Work that takes processor time.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use huntsman_crawler::Result;
use tokio::sync::Semaphore;

/// One permit for each core of the machine.
static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, NonZero::get)));

/// Runs a closure on a blocking thread; at most one closure per core of the machine runs in this process, others wait. A
/// closure that has begun continues to its end if the future is dropped.
///
/// # Errors
/// The work panicked.
pub(crate) async fn on_core<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let core = CORES.acquire().await.expect("it is never closed");
    let work = move || {
        let _core = core;
        work()
    };
    Ok(tokio::task::spawn_blocking(work).await?)
}
