//! The daemon: the one owner of queue and history, which starts processes and notes how they end.
//!
//! Every change is on disk before it is answered, and before what it says is done: a start before the process is started, a cancellation
//! before the signal is sent. So whenever the daemon is killed, the next one knows all that may have been done. Jobs outlive a daemon that
//! is killed: their logs are files and not pipes, and the next daemon finds them again. A crawl is worth more than the daemon's comfort of
//! having started it.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::signals::StopMode;
use huntsman_files::Lock;
use huntsman_serve::local::{LocalPage, LocalServer};
use jiff::{SignedDuration, Timestamp};
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use crate::api::{Api, routes};
use crate::config::{Config, Line, Missed, Overlap};
use crate::error::{Error, Refusal};
use crate::ledger::{Cancel, CancelStep, Fate, Job, Ledger, LineState, State};
use crate::order::Order;
use crate::page;
use crate::process::{Ending, ProcessId, with_argument};
use crate::projects::Projects;
use crate::result::{Found, Places, is_id};

#[cfg(test)]
mod tests;

/// The file with address and token of a daemon, in its directory.
pub const CONTACT: &str = "daemon.json";
/// Longest time between two looks at the clock, which may be set, or stand still while the machine sleeps.
const LOOK: Duration = Duration::from_secs(20);
/// A run that is later than this was missed.
const GRACE: SignedDuration = SignedDuration::from_secs(120);
/// A line that was last due so far in the future was noted by a clock that was wrong.
const CLOCK_WAS_WRONG: SignedDuration = SignedDuration::from_hours(2);
/// Most runs of a line that are counted as missed.
const MAX_MISSED: u64 = 10_000;
/// Time from one step of a stop to the next, after `stop_time`.
const LAST_STEP: Duration = Duration::from_secs(2);

/// The present time.
type Clock = Box<dyn Fn() -> Timestamp + Send + Sync>;

/// A daemon that has its directory and its port, and does not run jobs yet.
#[derive(Debug)]
pub struct Daemon {
    config: Arc<Config>,
    projects: Arc<Projects>,
    places: Places,
    ledger: Ledger,
    /// Held until the end: a second daemon is refused.
    lock: Lock,
    server: LocalServer,
}

/// What the API asks the owner for.
#[derive(Debug)]
pub(crate) enum Ask {
    Schedule(Order, oneshot::Sender<Result<String, Refusal>>),
    Cancel(String, oneshot::Sender<Result<CancelStep, Refusal>>),
    See(oneshot::Sender<Seen>),
}

/// All that the owner knows.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) ledger: Ledger,
    pub(crate) now: Timestamp,
    pub(crate) is_stopping: bool,
}

impl Daemon {
    /// Takes a directory, which is made if it is missing, checks the configuration against its programs, and binds the port.
    ///
    /// # Errors
    /// Another daemon uses the directory, a file of it cannot be read or written, a line of cron names what there is not, or the port is
    /// taken.
    pub async fn open(folder: &Path, config: Config) -> Result<Self, Error> {
        let failed = |doing| move |source| Error::File { doing, path: folder.to_owned(), source };
        config.limits.check().map_err(Error::Unusable)?;
        huntsman_files::create_dir_all(folder).map_err(failed("making"))?;
        // Jobs have working directories of their own, so the paths that they get are absolute.
        let places = Places::new(std::path::absolute(folder).map_err(failed("finding"))?);
        let lock = huntsman_files::open_append(places.lock()).map_err(failed("locking"))?;
        let lock = Lock::exclusive(lock).map_err(|refused| match refused.is_held() {
            true => Error::InUse(folder.to_owned()),
            false => failed("locking")(refused.into()),
        })?;
        let ledger = Ledger::read(&places.ledger())?;
        huntsman_files::create_dir_all(places.jobs()).map_err(failed("making"))?;
        let projects = Projects::new(&config);
        for line in &config.lines {
            let checked = projects.check(&line.order).await;
            checked.map_err(|why| Error::Unusable(format!("schedule {:?}: {why}", line.name)))?;
        }
        let mut server =
            LocalServer::bind(config.port).await.map_err(|error| Error::Port(config.port, error))?;
        let contact = places.folder().join(CONTACT);
        server.publish(&contact).map_err(failed("writing the token into"))?;
        Ok(Self { config: Arc::new(config), projects: Arc::new(projects), places, ledger, lock, server })
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Runs jobs until `stop` says to stop. Then running jobs are asked to end, and are killed after the limit `stop_time`, or at once; they
    /// wait in the queue for the next daemon.
    pub async fn run(self, stop: watch::Receiver<Option<StopMode>>) {
        let Self { config, projects, places, ledger, lock: _lock, server } = self;
        let (asks, asked) = mpsc::channel(64);
        let api = Api {
            asks,
            projects: Arc::clone(&projects),
            config: Arc::clone(&config),
            places: places.clone(),
        };
        let owner = Owner {
            config,
            projects,
            places,
            ledger,
            clock: Box::new(Timestamp::now),
            processes: JoinSet::new(),
            is_unsaved: false,
            stopping: None,
        };
        let page = LocalPage { title: "Jobs", content: page::content(), script: page::SCRIPT };
        let (served, ends) = watch::channel(false);
        let serving = tokio::spawn(server.serve(routes(api), page, ends));
        owner.run(asked, stop).await;
        let _ = served.send(true);
        // The last answers are small; a client that is slower than that gets none.
        let _ = tokio::time::timeout(LAST_STEP, serving).await;
    }
}

/// The owner of the jobs.
struct Owner {
    config: Arc<Config>,
    projects: Arc<Projects>,
    places: Places,
    ledger: Ledger,
    clock: Clock,
    /// A task waits for each process.
    processes: JoinSet<(String, Ending)>,
    /// Whether the ledger on disk is older than this one, because the disk failed.
    is_unsaved: bool,
    stopping: Option<Stopping>,
}

/// How far the end of the running jobs is.
struct Stopping {
    next_step: Instant,
    steps: u32,
}

impl Owner {
    async fn run(mut self, mut asked: mpsc::Receiver<Ask>, mut stop: watch::Receiver<Option<StopMode>>) {
        self.recover().await;
        loop {
            if self.stopping.is_none() {
                self.fire_lines().await;
                self.start_jobs().await;
            } else if self.processes.is_empty() {
                break;
            }
            let next_step = self.stopping.as_ref().map(|stopping| stopping.next_step);
            let pause = self.pause();
            tokio::select! {
                biased;
                Ok(()) = stop.changed() => {
                    let mode = *stop.borrow_and_update();
                    self.stop(mode);
                }
                () = sleep_until(next_step.unwrap_or_else(Instant::now)), if next_step.is_some() => self.stop_step(),
                Some(ended) = self.processes.join_next() => {
                    if let Ok((id, ending)) = ended {
                        self.ended(&id, ending).await;
                    }
                }
                Some(ask) = asked.recv() => self.answer(ask).await,
                () = sleep(pause) => {}
            }
            if self.is_unsaved {
                self.note().await;
            }
        }
        self.note().await;
        info!(
            waiting = self.ledger.count(State::Pending),
            "the daemon has ended; jobs that wait go on with the next one"
        );
    }

    /// The present time; people read it, so it has no finer part than milliseconds.
    fn now(&self) -> Timestamp {
        let now = (self.clock)();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Time until something may be due.
    fn pause(&self) -> Duration {
        let now = self.now();
        let due = self.config.lines.iter().filter_map(|line| self.next_due(line)).min();
        let left = due.map(|due| Duration::try_from(due.duration_since(now)).unwrap_or(Duration::ZERO));
        // Never quite zero: a clock that stands still must not make the loop spin.
        left.map_or(LOOK, |left| left.clamp(Duration::from_millis(5), LOOK))
    }

    fn next_due(&self, line: &Line) -> Option<Timestamp> {
        line.cron.next(self.ledger.lines.get(&line.name)?.last, &self.config.zone)
    }

    /// Writes the ledger.
    async fn save(&mut self) -> io::Result<()> {
        let (ledger, path) = (self.ledger.clone(), self.places.ledger());
        let written = spawn_blocking(move || ledger.write(&path)).await.map_err(io::Error::other).flatten();
        self.is_unsaved = written.is_err();
        written
    }

    /// Writes what has happened already. If it cannot be written, it is tried again later.
    async fn note(&mut self) {
        let was_unsaved = self.is_unsaved;
        if let Err(error) = self.save().await
            && !was_unsaved
        {
            warn!(file = %self.places.ledger().display(), %error, "the queue cannot be written; it is tried again");
        }
    }

    /// Finds out what became of the jobs of the last daemon, and begins to count for lines of cron that are new.
    async fn recover(&mut self) {
        let running: Vec<Job> = self.ledger.running().cloned().collect();
        for job in running {
            let crawl = self.places.crawl(&job.id);
            let process = match job.process {
                Some(process) => Some(process).filter(ProcessId::is_alive),
                None => with_argument(&crawl),
            };
            let Some(process) = process else {
                self.ended(&job.id, Ending::Unseen).await;
                continue;
            };
            info!(job = job.id, pid = process.pid, "the job still runs");
            // The daemon may have been killed between noting a cancellation and sending it.
            let sent = match job.cancel {
                Cancel::No => Ok(()),
                Cancel::Gently => process.ask(),
                Cancel::AtOnce => process.kill(),
            };
            tell_signal(&job.id, sent);
            self.ledger.has_process(&job.id, Some(process.clone()));
            self.processes.spawn(async move {
                process.ended().await;
                (job.id, Ending::Unseen)
            });
        }
        self.clear_folder().await;
        let now = self.now();
        let lines = &self.config.lines;
        self.ledger.lines.retain(|name, _| lines.iter().any(|line| line.name == *name));
        for line in lines {
            let fresh = LineState { last: now, left_out: 0 };
            let state = self.ledger.lines.entry(line.name.clone()).or_insert_with(|| fresh.clone());
            if state.last > now + CLOCK_WAS_WRONG {
                warn!(schedule = line.name, last = %state.last, "the last run is in the future; the clock was set back, and the line begins anew");
                *state = fresh;
            }
        }
        self.note().await;
    }

    /// Deletes directories that belong to no job: the daemon was killed before it deleted them.
    async fn clear_folder(&self) {
        let Ok(entries) = std::fs::read_dir(self.places.jobs()) else { return };
        let is_of_a_job = |id: &str| self.ledger.job(id).is_some_and(|job| job.has_files);
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        self.delete(names.filter(|name| is_id(name) && !is_of_a_job(name)).collect()).await;
    }

    async fn delete(&self, ids: Vec<String>) {
        for id in ids {
            let folder = self.places.job(&id);
            let deleted = spawn_blocking(move || huntsman_files::remove_any(folder)).await;
            match deleted.map_err(io::Error::other).flatten() {
                Ok(_) => info!(job = id, "its directory is deleted: newer ones are kept"),
                Err(error) => warn!(job = id, %error, "its directory cannot be deleted"),
            }
        }
    }

    async fn fire_lines(&mut self) {
        let config = Arc::clone(&self.config);
        let mut has_fired = false;
        for line in &config.lines {
            has_fired |= self.fire(line);
        }
        if has_fired {
            self.note().await;
        }
    }

    /// Orders a job if the line is due, and returns whether it was.
    fn fire(&mut self, line: &Line) -> bool {
        let now = self.now();
        let mut due = self.next_due(line).filter(|due| *due <= now);
        let Some(mut last) = due else { return false };
        let mut runs = 0;
        while let Some(at) = due.filter(|due| *due <= now && runs < MAX_MISSED) {
            (last, runs) = (at, runs + 1);
            due = line.cron.next(at, &self.config.zone);
        }
        if runs == MAX_MISSED {
            last = now;
        }
        let is_late = now.duration_since(last) > GRACE;
        let missed = if is_late { runs } else { runs - 1 };
        if missed > 0 {
            let makes_up = if line.missed == Missed::Run || !is_late {
                "one is made up for"
            } else {
                "they are left out"
            };
            warn!(
                schedule = line.name,
                missed, "runs were missed, because the daemon did not run; {makes_up}"
            );
        }
        let mut left_out = missed;
        if !is_late || line.missed == Missed::Run {
            left_out -= u64::from(is_late);
            let of_line = |state| {
                move |job: &&Job| job.schedule.as_deref() == Some(line.name.as_str()) && job.state == state
            };
            let waits = self.ledger.jobs.iter().any(|job| of_line(State::Pending)(&job));
            let runs = self.ledger.running().any(|job| of_line(State::Running)(&job));
            if waits || (runs && line.overlap == Overlap::Skip) {
                warn!(schedule = line.name, "the run is left out: the last one has not ended");
                left_out += 1;
            } else {
                let limits = &self.config.limits;
                match self.ledger.add(line.order.clone(), Some(line.name.clone()), now, limits) {
                    Some(id) => info!(schedule = line.name, job = id, "the line is due"),
                    None => {
                        warn!(schedule = line.name, "the run is left out: {} jobs wait", limits.max_pending);
                        left_out += 1;
                    }
                }
            }
        }
        if let Some(state) = self.ledger.lines.get_mut(&line.name) {
            state.last = last;
            state.left_out += left_out;
        }
        true
    }

    /// Starts as many jobs as may run.
    async fn start_jobs(&mut self) {
        loop {
            let places = self.places.clone();
            // A process that the daemon has lost sight of may still be in the directory.
            let is_held = |job: &Job| {
                job.has_files
                    && matches!(
                        huntsman_output::held(&places.crawl(&job.id)),
                        Err(huntsman_output::Error::InUse { .. })
                    )
            };
            let Some(job) = self.ledger.next_job(&self.config.limits, is_held).cloned() else { return };
            let (now, before) = (self.now(), self.ledger.clone());
            self.ledger.begin(&job.id, now);
            if let Err(error) = self.save().await {
                warn!(job = job.id, %error, "the job does not start, because the queue cannot be written");
                self.ledger = before;
                return;
            }
            match self.start(&job) {
                Ok(mut child) => {
                    let process = child.id().map(ProcessId::of);
                    info!(
                        job = job.id,
                        project = job.order.project,
                        spider = job.order.spider,
                        pid = child.id(),
                        "started"
                    );
                    self.ledger.has_process(&job.id, process);
                    self.processes.spawn(async move {
                        let ending = match child.wait().await {
                            Ok(status) => Ending::from(status),
                            Err(_) => Ending::Unseen,
                        };
                        (job.id, ending)
                    });
                    self.note().await;
                }
                Err(why) => self.ended(&job.id, Ending::NotStarted(why)).await,
            }
        }
    }

    fn start(&self, job: &Job) -> Result<Child, String> {
        let path = self.places.log(&job.id);
        let log = huntsman_files::create_dir_all(self.places.job(&job.id))
            .and_then(|()| huntsman_files::open_append(&path))
            .and_then(|log| Ok((log.try_clone()?, log)));
        let (out, log) = log.map_err(|error| format!("{}: {error}", path.display()))?;
        let mut command = self.projects.command(&job.order, &job.id, &self.places)?;
        command.stdout(Stdio::from(out)).stderr(Stdio::from(log));
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        command.spawn().map_err(|error| format!("{program} could not be started: {error}"))
    }

    /// Notes the end of a process.
    async fn ended(&mut self, id: &str, ending: Ending) {
        let crawl = self.places.crawl(id);
        let found = spawn_blocking(move || Found::of(&crawl)).await.unwrap_or_default();
        let rules = (self.config.limits.resume, self.stopping.is_some());
        let now = self.now();
        let fate = self.ledger.end(id, &ending, &found, rules, now);
        match (fate, self.ledger.job(id)) {
            (Fate::WaitsAgain, Some(job)) => {
                warn!(
                    job = id,
                    deaths = job.deaths,
                    "its process has ended before the crawl; it goes on later"
                );
            }
            (_, job) => {
                let reason = job.and_then(|job| job.outcome.as_ref()).map_or("", |outcome| &outcome.reason);
                info!(job = id, reason, pages = found.pages, items = found.items, "ended");
            }
        }
        let deleted = self.ledger.trim(&self.config.limits);
        self.note().await;
        self.delete(deleted).await;
    }

    async fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Schedule(order, reply) => drop(reply.send(self.schedule(order).await)),
            Ask::Cancel(id, reply) => drop(reply.send(self.cancel(&id).await)),
            Ask::See(reply) => {
                let seen = Seen {
                    ledger: self.ledger.clone(),
                    now: self.now(),
                    is_stopping: self.stopping.is_some(),
                };
                drop(reply.send(seen));
            }
        }
    }

    async fn schedule(&mut self, order: Order) -> Result<String, Refusal> {
        if self.stopping.is_some() {
            return Err(Refusal::NotNow("the daemon is stopping; ask the next one".to_owned()));
        }
        let (now, before, limits) = (self.now(), self.ledger.clone(), &self.config.limits);
        let Some(id) = self.ledger.add(order, None, now, limits) else {
            return Err(Refusal::NotNow(format!(
                "{} jobs wait, which is the limit max_pending; ask again later",
                limits.max_pending
            )));
        };
        self.save_or_undo(before).await.map(|()| id)
    }

    async fn cancel(&mut self, id: &str) -> Result<CancelStep, Refusal> {
        let (now, before) = (self.now(), self.ledger.clone());
        let step = self.ledger.cancel(id, now);
        let step =
            step.ok_or_else(|| Refusal::Unknown(format!("there is no job {id:?}; listjobs.json lists all")))?;
        self.save_or_undo(before).await?;
        let process = self.ledger.job(id).and_then(|job| job.process.as_ref());
        let sent = match (step, process) {
            (CancelStep::Ask, Some(process)) => process.ask(),
            (CancelStep::Kill, Some(process)) => process.kill(),
            _ => Ok(()),
        };
        sent.map_err(|error| Refusal::Failed(format!("job {id}: sending the signal: {error}")))?;
        Ok(step)
    }

    async fn save_or_undo(&mut self, before: Ledger) -> Result<(), Refusal> {
        let saved = self.save().await;
        saved.map_err(|error| {
            self.ledger = before;
            Refusal::Failed(format!("nothing was done: writing {}: {error}", self.places.ledger().display()))
        })
    }

    fn stop(&mut self, mode: Option<StopMode>) {
        let Some(mode) = mode else { return };
        if self.stopping.is_none() {
            self.signal_all(ProcessId::ask);
            let next_step = Instant::now() + self.config.limits.stop_time();
            self.stopping = Some(Stopping { next_step, steps: 0 });
        }
        if mode == StopMode::Immediate {
            self.stop_step();
        }
    }

    /// Asks the running jobs once more, after which a crawl ends at once, and kills them after that.
    fn stop_step(&mut self) {
        let steps = self.stopping.as_ref().map_or(0, |stopping| stopping.steps);
        self.signal_all(if steps == 0 { ProcessId::ask } else { ProcessId::kill });
        self.stopping = Some(Stopping { next_step: Instant::now() + LAST_STEP, steps: steps + 1 });
    }

    fn signal_all(&self, send: impl Fn(&ProcessId) -> io::Result<()>) {
        for job in self.ledger.running() {
            if let Some(process) = &job.process {
                tell_signal(&job.id, send(process));
            }
        }
    }
}

fn tell_signal(job: &str, sent: io::Result<()>) {
    if let Err(error) = sent {
        warn!(job, %error, "the signal could not be sent");
    }
}
