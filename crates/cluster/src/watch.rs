//! One thread that gives up requests in flight when the lease of their partition is about to end, whether the server can be reached or not.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Instant;

use crate::frontier::Shared;

/// How often the leases are looked at in the time of one.
const LOOKS: u32 = 60;

/// Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    _ends: Sender<()>,
}

impl Watch {
    pub(crate) fn start(shared: Arc<Shared>) -> io::Result<Self> {
        let (ends, ended) = mpsc::channel::<()>();
        let pause = shared.settings.lease / LOOKS;
        thread::Builder::new().name("frontier-watch".to_owned()).spawn(move || {
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                shared.tell_lag();
                let now = Instant::now();
                for partition in shared.partitions.owned() {
                    let part = shared.partitions.get(partition);
                    let ends = |owned: &mut crate::partition::Owned| {
                        (now >= owned.flights_until).then(|| owned.epoch.clone())
                    };
                    if let Some(epoch) = part.with(ends).flatten() {
                        shared.lost(partition, &epoch);
                    }
                }
            }
        })?;
        Ok(Self { _ends: ends })
    }
}
