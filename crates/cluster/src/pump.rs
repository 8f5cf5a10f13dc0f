//! One thread that sends the calls of all tasks, as many at once as there are.

use std::sync::mpsc;
use std::thread;

use huntsman_redis::{Error, ErrorKind};
use tokio::sync::oneshot;

use crate::script::{Answer, Call, Runner};

/// Sends calls for tasks, which wait for their replies.
#[derive(Debug)]
pub(crate) struct Pump {
    // The tasks that wait bound it: each of them has one job in it.
    jobs: mpsc::Sender<Job>,
}

struct Job {
    calls: Vec<Call>,
    reply: oneshot::Sender<Result<Vec<Answer>, Error>>,
}

/// The most calls that are sent at once.
const MERGED: usize = 512;

impl Pump {
    /// Starts the thread, which ends when the pump is dropped.
    pub(crate) fn start(mut runner: Runner) -> std::io::Result<Self> {
        let (jobs, received) = mpsc::channel::<Job>();
        thread::Builder::new().name("frontier-calls".to_owned()).spawn(move || {
            while let Ok(first) = received.recv() {
                let mut merged = vec![first];
                let mut count = merged[0].calls.len();
                while count < MERGED
                    && let Ok(job) = received.try_recv()
                {
                    count += job.calls.len();
                    merged.push(job);
                }
                run(&mut runner, merged);
            }
        })?;
        Ok(Self { jobs })
    }

    /// Runs calls and returns their replies in order.
    pub(crate) async fn run(&self, calls: Vec<Call>) -> Result<Vec<Answer>, Error> {
        let (reply, replied) = oneshot::channel();
        let ended = || Error::new(ErrorKind::Io, "the thread that talks to the server has ended");
        self.jobs.send(Job { calls, reply }).map_err(|_| ended())?;
        replied.await.map_err(|_| ended())?
    }

    /// Runs one call.
    pub(crate) async fn call(&self, call: Call) -> Result<Answer, Error> {
        Ok(self.run(vec![call]).await?.remove(0))
    }
}

fn run(runner: &mut Runner, jobs: Vec<Job>) {
    let calls: Vec<Call> = jobs.iter().flat_map(|job| job.calls.iter().cloned()).collect();
    let mut replies = match runner.run(&calls) {
        Ok(replies) => replies.into_iter(),
        Err(error) => {
            // A task that no longer waits needs no reply.
            jobs.into_iter().for_each(|job| drop(job.reply.send(Err(error.clone()))));
            return;
        }
    };
    for job in jobs {
        let own = replies.by_ref().take(job.calls.len()).collect();
        drop(job.reply.send(Ok(own)));
    }
}
