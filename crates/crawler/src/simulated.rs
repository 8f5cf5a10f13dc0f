//! Crawls that are a function of their inputs, for simulation.
//!
//! With a paused clock and a seed, two things still make one run of a crawl differ from the next: work on threads beside the
//! runtime, which ends at any moment, and the time on the wall, by which a job remembers what is to come. While a [`Simulated`]
//! lives, crawls on its thread have neither.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock::Timestamp;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

struct World {
    began: Instant,
    wall: Timestamp,
    delays: Box<dyn FnMut() -> Delays>,
}

/// How long a piece of work takes that would block a thread, in the time of the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Until it is done, all at once.
    pub before: Duration,
    /// From then until its result is told.
    pub after: Duration,
}

/// While this lives, what crawls on this thread would do on threads beside the runtime (callbacks, start requests, commits) they
/// do on the runtime, and the time on the wall goes by the runtime's clock. With a current-thread runtime whose clock is paused, and
/// the setting `seed`, the same crawl is the same to the last event.
///
/// A callback may wait only for what is there at once. Made within the runtime; one at a time on a thread.
pub struct Simulated {
    /// The world is that of this thread.
    not_send: PhantomData<*const ()>,
}

impl Simulated {
    /// Begins at a time on the wall. `delays` is asked for each piece of work.
    pub fn begin(wall: Timestamp, delays: impl FnMut() -> Delays + 'static) -> Self {
        let world = World { began: Instant::now(), wall, delays: Box::new(delays) };
        WORLD.set(Some(world));
        Self { not_send: PhantomData }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        WORLD.set(None);
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulated")
    }
}

/// The simulated time on the wall.
pub(crate) fn wall() -> Option<Timestamp> {
    WORLD.with_borrow(|world| world.as_ref().map(|world| world.wall + world.began.elapsed()))
}

/// Whether there is no thread beside the runtime.
pub(crate) fn is_simulated() -> bool {
    WORLD.with_borrow(Option::is_some)
}

/// Does work that would hold up a runtime: on a thread of its own.
pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let delays = WORLD.with_borrow_mut(|world| world.as_mut().map(|world| (world.delays)()));
    match delays {
        None => tokio::task::spawn_blocking(work),
        Some(Delays { before, after }) => tokio::spawn(async move {
            pass(before).await;
            let result = work();
            pass(after).await;
            result
        }),
    }
}

async fn pass(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
