//! The queue and the history: what is known of each job, and what may happen to it next. There is no input or output here but that of the
//! file, so all decisions can be judged without processes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::Limits;
use crate::error::Error;
use crate::order::Order;
use crate::process::{Ending, ProcessId};
use crate::result::Found;

/// Version of the file that this program writes and reads.
const FORMAT: u32 = 1;

/// A job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) order: Order,
    /// The line of cron that ordered it.
    pub(crate) schedule: Option<String>,
    pub(crate) state: State,
    pub(crate) created: Timestamp,
    /// When its process was first started.
    pub(crate) started: Option<Timestamp>,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) cancel: Cancel,
    /// How often its process died, after which the job went on.
    pub(crate) deaths: u32,
    /// Its process. A running job without one was being started.
    pub(crate) process: Option<ProcessId>,
    pub(crate) outcome: Option<Outcome>,
    /// Whether its directory is kept.
    pub(crate) has_files: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Pending,
    Running,
    Finished,
}

/// Whether a job was cancelled, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cancel {
    No,
    Gently,
    AtOnce,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Unknown if the process was ended by a signal, or ended while the daemon did not run.
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) reason: String,
    pub(crate) pages: Option<u64>,
    pub(crate) items: Option<u64>,
}

/// What the daemon remembers of a line of cron.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LineState {
    /// When the line was last due, or first seen.
    pub(crate) last: Timestamp,
    /// Runs that were left out because the daemon did not run, or a job of the line was still there.
    pub(crate) left_out: u64,
}

/// All jobs, in the order in which they were created.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ledger {
    format: u32,
    /// The number of the next job.
    next: u64,
    pub(crate) jobs: Vec<Job>,
    pub(crate) lines: BTreeMap<String, LineState>,
    /// Finished jobs that left the list.
    pub(crate) forgotten: u64,
}

/// What cancelling a job means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelStep {
    /// It had not been running, and has left the queue.
    LeftQueue,
    /// Its process is asked to end.
    Ask,
    /// Its process is killed.
    Kill,
    /// It had ended.
    HadEnded,
}

/// What became of a job whose process has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Finished,
    /// It goes on later, with the same command.
    WaitsAgain,
}

impl Default for Ledger {
    fn default() -> Self {
        Self { format: FORMAT, next: 1, jobs: Vec::new(), lines: BTreeMap::new(), forgotten: 0 }
    }
}

impl Ledger {
    /// Reads the file; without one, there are no jobs.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => return Err(Error::File { doing: "reading", path: path.to_owned(), source }),
        };
        let damaged = |why| Error::Damaged { path: path.to_owned(), why };
        let ledger: Self = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if ledger.format != FORMAT {
            return Err(damaged(format!("its format is {}, and this version knows {FORMAT}", ledger.format)));
        }
        Ok(ledger)
    }

    /// Writes the file: it has its old content or the new one.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        huntsman_files::write(path, serde_json::to_vec(self)?)
    }

    pub(crate) fn job(&self, id: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.id == id)
    }

    fn job_mut(&mut self, id: &str) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id == id)
    }

    pub(crate) fn count(&self, state: State) -> usize {
        self.jobs.iter().filter(|job| job.state == state).count()
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.state == State::Running)
    }

    /// Adds a job to the queue and returns its id; `None` if too many wait.
    pub(crate) fn add(
        &mut self,
        order: Order,
        schedule: Option<String>,
        now: Timestamp,
        limits: &Limits,
    ) -> Option<String> {
        if self.count(State::Pending) >= limits.max_pending {
            return None;
        }
        // The number alone makes it unique; the time is for people.
        let id = format!("{}-{}", now.strftime("%Y%m%dT%H%M%S"), self.next);
        self.next += 1;
        self.jobs.push(Job {
            id: id.clone(),
            order,
            schedule,
            state: State::Pending,
            created: now,
            started: None,
            ended: None,
            cancel: Cancel::No,
            deaths: 0,
            process: None,
            outcome: None,
            has_files: false,
        });
        Some(id)
    }

    /// The job that should start next, if one may: the one with the highest priority, and of these the oldest. Jobs for which `is_held` is
    /// true do not start.
    pub(crate) fn next_job(&self, limits: &Limits, is_held: impl Fn(&Job) -> bool) -> Option<&Job> {
        if self.running().count() >= limits.max_proc {
            return None;
        }
        let has_room = |job: &&Job| {
            let same = |other: &&Job| {
                (&other.order.project, &other.order.spider) == (&job.order.project, &job.order.spider)
            };
            self.running().filter(same).count() < limits.per_spider
        };
        let waiting = self.jobs.iter().filter(|job| job.state == State::Pending);
        // Of equal ones, `min_by_key` takes the first.
        waiting
            .filter(|job| has_room(job) && !is_held(job))
            .min_by_key(|job| std::cmp::Reverse(job.order.priority))
    }

    /// Notes that the process of a job is about to be started.
    pub(crate) fn begin(&mut self, id: &str, now: Timestamp) {
        if let Some(job) = self.job_mut(id) {
            job.state = State::Running;
            job.started.get_or_insert(now);
            job.has_files = true;
        }
    }

    pub(crate) fn has_process(&mut self, id: &str, process: Option<ProcessId>) {
        if let Some(job) = self.job_mut(id) {
            job.process = process;
        }
    }

    /// Cancels a job; `None` if there is none with this id.
    pub(crate) fn cancel(&mut self, id: &str, now: Timestamp) -> Option<CancelStep> {
        let job = self.job_mut(id)?;
        Some(match (job.state, job.cancel) {
            (State::Finished, _) => CancelStep::HadEnded,
            (State::Pending, _) => {
                job.cancel = Cancel::Gently;
                job.finish(None, None, "cancelled".to_owned(), &Found::default(), now);
                CancelStep::LeftQueue
            }
            (State::Running, Cancel::No) => {
                job.cancel = Cancel::Gently;
                CancelStep::Ask
            }
            (State::Running, _) => {
                job.cancel = Cancel::AtOnce;
                CancelStep::Kill
            }
        })
    }

    /// Notes that the process of a job has ended, and decides whether the job has ended with it. `is_stopping` says that the daemon itself
    /// has ended the process, so that the job goes on when the daemon is there again.
    pub(crate) fn end(
        &mut self,
        id: &str,
        ending: &Ending,
        found: &Found,
        (resume, is_stopping): (u32, bool),
        now: Timestamp,
    ) -> Fate {
        let Some(job) = self.job_mut(id) else { return Fate::Finished };
        let is_cancelled = job.cancel != Cancel::No;
        let (died, stopped) = match ending {
            Ending::Exited { code, signal } => (signal.is_some(), *code == Some(STOPPED)),
            Ending::Unseen => (!found.has_ended(), found.was_stopped()),
            Ending::NotStarted(_) => (false, false),
        };
        let ended_by_daemon = is_stopping || *ending == Ending::Unseen;
        let goes_on = (stopped && ended_by_daemon) || (died && (is_stopping || job.deaths < resume));
        if goes_on && !is_cancelled {
            job.deaths += u32::from(died && !is_stopping);
            job.state = State::Pending;
            job.process = None;
            return Fate::WaitsAgain;
        }
        let (code, signal) = match ending {
            Ending::Exited { code, signal } => (*code, *signal),
            Ending::Unseen | Ending::NotStarted(_) => (None, None),
        };
        let reason = match (ending, signal, &found.reason, code) {
            _ if is_cancelled && (died || stopped) => "cancelled".to_owned(),
            (Ending::NotStarted(why), ..) => why.clone(),
            (_, Some(signal), ..) => format!("killed by signal {signal}"),
            _ if died => "the process died".to_owned(),
            (_, _, Some(reason), _) => reason.clone(),
            (_, _, None, Some(code)) => format!("exit code {code}; the log says more"),
            (_, _, None, None) => "unknown".to_owned(),
        };
        job.finish(code, signal, reason, found, now);
        Fate::Finished
    }

    /// Shortens the history. Returns the jobs whose directories are to be deleted.
    pub(crate) fn trim(&mut self, limits: &Limits) -> Vec<String> {
        let mut finished: Vec<usize> = self
            .jobs
            .iter()
            .enumerate()
            .filter(|(_, job)| job.state == State::Finished)
            .map(|(at, _)| at)
            .collect();
        finished.sort_by_key(|at| std::cmp::Reverse(self.jobs[*at].ended));
        let with_files = finished.iter().filter(|at| self.jobs[**at].has_files);
        let mut cleared: BTreeSet<usize> = with_files.skip(limits.keep).copied().collect();
        let forgotten: BTreeSet<usize> = finished.iter().skip(limits.history).copied().collect();
        cleared.extend(forgotten.iter().filter(|at| self.jobs[**at].has_files));
        let ids = cleared.iter().map(|at| self.jobs[*at].id.clone()).collect();
        for at in cleared {
            self.jobs[at].has_files = false;
        }
        self.forgotten += forgotten.len() as u64;
        let mut at = 0;
        self.jobs.retain(|_| {
            at += 1;
            !forgotten.contains(&(at - 1))
        });
        ids
    }
}

/// The exit code of a crawl that was stopped by hand.
const STOPPED: i32 = 130;

impl Job {
    fn finish(
        &mut self,
        exit_code: Option<i32>,
        signal: Option<i32>,
        reason: String,
        found: &Found,
        now: Timestamp,
    ) {
        self.state = State::Finished;
        self.process = None;
        self.ended = Some(now);
        self.outcome = Some(Outcome { exit_code, signal, reason, pages: found.pages, items: found.items });
    }

    /// Whether it ended as it should.
    pub(crate) fn is_good(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|outcome| match outcome.exit_code {
            Some(code) => code == 0,
            None => outcome.reason == "finished",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-23T22:00:00Z".parse().unwrap()
    }

    fn order(spider: &str, priority: i32) -> Order {
        serde_json::from_value(serde_json::json!({ "project": "p", "spider": spider, "priority": priority }))
            .unwrap()
    }

    fn limits(max_proc: usize, per_spider: usize) -> Limits {
        Limits { max_proc, per_spider, max_pending: 5, history: 3, keep: 2, resume: 1, ..Limits::default() }
    }

    fn started(ledger: &mut Ledger, limits: &Limits) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(id) = ledger.next_job(limits, |_| false).map(|job| job.id.clone()) {
            ledger.begin(&id, now());
            ids.push(id);
        }
        ids
    }

    fn add(ledger: &mut Ledger, spider: &str, priority: i32) -> Option<String> {
        ledger.add(order(spider, priority), None, now(), &limits(1, 1))
    }

    fn exited(code: i32) -> Ending {
        Ending::Exited { code: Some(code), signal: None }
    }

    const KILLED: Ending = Ending::Exited { code: None, signal: Some(9) };

    #[test]
    fn jobs_start_by_priority_then_age_within_both_limits() {
        let mut ledger = Ledger::default();
        let jobs: Vec<String> = [("a", 0), ("a", 1), ("b", 0), ("c", -1), ("d", 0)]
            .map(|(spider, priority)| add(&mut ledger, spider, priority).unwrap())
            .to_vec();
        assert_eq!(add(&mut ledger, "e", 9), None, "five wait");
        assert_eq!(started(&mut ledger, &limits(3, 1)), [&jobs[1], &jobs[2], &jobs[4]].map(String::clone));
        ledger.end(&jobs[2], &exited(0), &Found::default(), (1, false), now());
        assert_eq!(started(&mut ledger, &limits(3, 1)), [jobs[3].clone()], "a second job of a waits");
        assert_eq!(started(&mut ledger, &limits(4, 2)), [jobs[0].clone()]);
    }

    #[test]
    fn a_job_whose_process_dies_goes_on_so_often_and_then_has_failed() {
        let mut ledger = Ledger::default();
        let id = add(&mut ledger, "a", 0).unwrap();
        for fate in [Fate::WaitsAgain, Fate::Finished] {
            assert_eq!(started(&mut ledger, &limits(1, 1)), std::slice::from_ref(&id));
            assert_eq!(ledger.end(&id, &KILLED, &Found::default(), (1, false), now()), fate);
        }
        assert_eq!(ledger.job(&id).unwrap().outcome.as_ref().unwrap().reason, "killed by signal 9");
        assert!(!ledger.job(&id).unwrap().is_good());
    }

    #[test]
    fn a_stop_of_the_daemon_ends_no_job() {
        let mut ledger = Ledger::default();
        for ending in [exited(STOPPED), KILLED] {
            let id = add(&mut ledger, "a", 0).unwrap();
            ledger.begin(&id, now());
            assert_eq!(ledger.end(&id, &ending, &Found::default(), (0, true), now()), Fate::WaitsAgain);
            assert_eq!(
                (ledger.job(&id).unwrap().state, ledger.job(&id).unwrap().deaths),
                (State::Pending, 0)
            );
            assert_eq!(ledger.cancel(&id, now()), Some(CancelStep::LeftQueue));
        }
        // A stop by hand, which the daemon did not ask for, is the end.
        let id = add(&mut ledger, "a", 0).unwrap();
        ledger.begin(&id, now());
        let found = Found { reason: Some("shutdown".to_owned()), ..Found::default() };
        assert_eq!(ledger.end(&id, &exited(STOPPED), &found, (9, false), now()), Fate::Finished);
        assert_eq!(ledger.job(&id).unwrap().outcome.as_ref().unwrap().reason, "shutdown");
    }

    #[test]
    fn a_cancelled_job_is_asked_then_killed_and_never_goes_on() {
        let mut ledger = Ledger::default();
        let id = add(&mut ledger, "a", 0).unwrap();
        ledger.begin(&id, now());
        for step in [CancelStep::Ask, CancelStep::Kill, CancelStep::Kill] {
            assert_eq!(ledger.cancel(&id, now()), Some(step));
        }
        assert_eq!(ledger.end(&id, &KILLED, &Found::default(), (9, true), now()), Fate::Finished);
        assert_eq!(ledger.job(&id).unwrap().outcome.as_ref().unwrap().reason, "cancelled");
        assert_eq!(ledger.cancel(&id, now()), Some(CancelStep::HadEnded));
        assert_eq!(ledger.cancel("20261123T220000-9", now()), None);
    }

    #[test]
    fn the_history_and_the_directories_are_bounded_and_what_is_forgotten_is_counted() {
        let mut ledger = Ledger::default();
        let mut cleared = Vec::new();
        let mut ids = Vec::new();
        for second in 0..5 {
            let id = add(&mut ledger, "a", 0).unwrap();
            ledger.begin(&id, now());
            let later = now() + jiff::SignedDuration::from_secs(second);
            ledger.end(&id, &exited(0), &Found::default(), (0, false), later);
            cleared.extend(ledger.trim(&limits(1, 1)));
            ids.push(id);
        }
        add(&mut ledger, "a", 0).unwrap();
        assert_eq!(cleared, ids[..3], "the newest two keep their directories");
        assert_eq!(ledger.forgotten, 2);
        let left: Vec<(&str, bool)> =
            ledger.jobs.iter().map(|job| (job.id.as_str(), job.has_files)).collect();
        assert_eq!(left[..3], [(&*ids[2], false), (&*ids[3], true), (&*ids[4], true)]);
        assert_eq!(left.len(), 4, "a job that waits is never forgotten");
    }

    #[test]
    fn the_file_of_a_newer_version_or_a_damaged_one_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.json");
        assert!(Ledger::read(&path).unwrap().jobs.is_empty());
        let mut ledger = Ledger::default();
        add(&mut ledger, "a", 3).unwrap();
        ledger.write(&path).unwrap();
        assert_eq!(Ledger::read(&path).unwrap().jobs[0].order, order("a", 3));
        ledger.format = 2;
        ledger.write(&path).unwrap();
        assert!(Ledger::read(&path).unwrap_err().to_string().contains("its format is 2"));
        std::fs::write(&path, "{\"format\":1,").unwrap();
        assert!(Ledger::read(&path).unwrap_err().to_string().contains("move the file away"));
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"format\":1,");
    }
}
