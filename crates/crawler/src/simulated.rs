//! Deterministic crawls, for simulation.
//!
//! With a paused clock and a seed, two things still make one run of a crawl differ from the next: work on threads
//! outside the runtime, which ends at an arbitrary moment, and the wall-clock time, which a job uses to store future
//! times. While a [`Simulated`] exists, crawls on its thread use neither.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock::Timestamp;

thread_local! {
    static SIMULATION: RefCell<Option<Simulation>> = const { RefCell::new(None) };
}

struct Simulation {
    began: Instant,
    wall: Timestamp,
    delays: Box<dyn FnMut() -> Delays>,
}

/// How long a piece of blocking work takes, in the time of the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Time until the work is done; it is done all at once.
    pub before: Duration,
    /// Time from the moment at which the work is done until its result is available.
    pub after: Duration,
}

/// While this value exists, crawls on this thread run on the runtime itself what they would otherwise run on other
/// threads (callbacks, start requests, commits), and the wall-clock time follows the runtime's clock. With a
/// current-thread runtime whose clock is paused, and the setting `seed`, two runs of the same crawl are equal to the
/// last event.
///
/// A callback may wait only for futures that are ready at once. Create the value within the runtime; there can be
/// only one per thread.
pub struct Simulated {
    /// Makes the type `!Send`: the simulation belongs to this thread.
    not_send: PhantomData<*const ()>,
}

impl Simulated {
    /// Begins the simulation at the given wall-clock time. `delays` is called for each piece of work.
    pub fn begin(wall: Timestamp, delays: impl FnMut() -> Delays + 'static) -> Self {
        let simulation = Simulation { began: Instant::now(), wall, delays: Box::new(delays) };
        SIMULATION.set(Some(simulation));
        Self { not_send: PhantomData }
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        SIMULATION.set(None);
    }
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Simulated")
    }
}

/// The simulated wall-clock time, if this thread is simulated.
pub(crate) fn wall() -> Option<Timestamp> {
    SIMULATION.with_borrow(|simulation| {
        simulation.as_ref().map(|simulation| simulation.wall + simulation.began.elapsed())
    })
}

/// Whether this thread is simulated, so that no other threads may be used.
pub(crate) fn is_simulated() -> bool {
    SIMULATION.with_borrow(Option::is_some)
}

/// Runs blocking work on a separate thread.
pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let delays =
        SIMULATION.with_borrow_mut(|simulation| simulation.as_mut().map(|simulation| (simulation.delays)()));
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
