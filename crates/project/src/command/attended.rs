//! A crawl that a command runs: signals stop it, a line shows its progress, its numbers are served, and its end is a report and an exit
//! code.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use huntsman_crawler::logging::LogCount;
use huntsman_crawler::signals::Signals;
use huntsman_crawler::{
    CrawlReport, Crawler, CrawlerBuilder, Event, Handle, HostKey, Observer, Result, Spider, seconds,
};
use huntsman_middleware::sinks::DropLog;
use huntsman_middleware::{AvoidDup, Recording};
use huntsman_output::{CANONICAL, LearntRules, OutputDir, RULES, Report, State};
use huntsman_serve::control::{Monitor, RecentErrors, serve_crawl};
use huntsman_serve::{CrawlNumbers, MetricsServer};
use url::Url;

use super::control::{ControlServer, REFRESH};
use super::exit::{Exit, Failure, Outcome};
use super::progress::{Progress, Rate, Screen};
use super::render::{escape, warn};
use super::signals::{self, Interrupted};

/// What a command has beside its crawl: the terminal, the log, and a server of metrics.
#[derive(Debug)]
pub struct Attendance {
    /// Where messages and progress are shown.
    pub screen: Screen,
    /// The counts of the log, for the report.
    pub log: LogCount,
    /// Serves the numbers of the crawl while it runs.
    pub metrics: Option<MetricsServer>,
    control: Option<ControlServer>,
    errors: RecentErrors,
    hosts: ActiveHosts,
    interrupted: Interrupted,
}

/// A crawl that is ready to run, with the directory that it writes.
#[derive(Debug)]
pub struct Ready {
    /// The crawl.
    pub crawler: Crawler,
    /// Its record of drops, which is finished after the crawl.
    pub drops: Option<DropLog>,
    /// Its output directory, if it has one.
    pub directory: Option<OutputDir>,
}

impl Ready {
    /// Begins the directory of a crawl that was built. If it could not be built, the directory is removed again.
    ///
    /// # Errors
    /// The error of `built`, or the directory cannot be written.
    pub fn begin(
        built: Outcome<(Crawler, Option<DropLog>)>,
        mut directory: Option<OutputDir>,
    ) -> Outcome<Self> {
        let begun = built.and_then(|built| {
            directory.as_mut().map_or(Ok(()), OutputDir::begin)?;
            Ok(built)
        });
        match begun {
            Ok((crawler, drops)) => Ok(Self { crawler, drops, directory }),
            Err(failure) => {
                if let Some(directory) = directory {
                    directory.discard();
                }
                Err(failure)
            }
        }
    }
}

impl Attendance {
    /// What a command has that shows its messages on this screen.
    pub fn new(screen: Screen, log: LogCount, metrics: Option<MetricsServer>) -> Self {
        Self {
            screen,
            log,
            metrics,
            control: None,
            errors: RecentErrors::default(),
            hosts: ActiveHosts::default(),
            interrupted: Interrupted::default(),
        }
    }

    /// Shares with other crawls of the process whether a signal stopped them, so that it is said once.
    pub fn with_interrupted(mut self, interrupted: Interrupted) -> Self {
        self.interrupted = interrupted;
        self
    }

    /// Serves the control of the crawl while it runs, if there is one ([`control::bind`](super::control::bind)).
    pub fn with_control(mut self, control: Option<ControlServer>) -> Self {
        self.control = control;
        self
    }

    /// Adds to a crawl the counts of the log, and what the progress line and the control need. It has to be called before the crawl is built.
    pub fn observe<S: Spider>(&self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        let builder = builder.log_count(self.log.clone());
        let builder = match self.control.is_some() || self.screen.has_dashboard() {
            true => builder.observer(self.errors.clone()),
            false => builder,
        };
        match self.screen.has_progress() {
            true => builder.observer(self.hosts.clone()),
            false => builder,
        }
    }

    /// Runs a crawl to its end. `close` is called right after it, whether it failed or not, and told whether a signal stopped it. A crawl
    /// that broke off is no error here: its report says so. The directory is not finished ([`Ended::finish`]), so that further files can be
    /// written before.
    pub async fn run(mut self, ready: Ready, close: impl AsyncFnOnce(bool) -> Result<()>) -> Ended {
        let Ready { crawler, drops, directory } = ready;
        let handle = crawler.handle();
        let learnt = crawler.component::<AvoidDup>();
        let recording = crawler.component::<Recording>();
        let interrupted = self.interrupted.clone();
        // All these tasks end when the set is dropped.
        let mut tasks = self.tasks(&handle, &interrupted);
        if let Some(control) = self.control.take() {
            let monitor = Monitor::new(handle.clone(), self.errors.clone());
            match control.publish(directory.as_ref().map(OutputDir::path)) {
                Ok(server) => drop(tasks.spawn(serve_crawl(server, monitor))),
                Err(message) => self.screen.line(&format!("{message}\n")),
            }
        }
        let started = Instant::now();
        let result = crawler.run().await;
        // A missing record of a drop is as bad as a missing page.
        let recorded = drops.map_or(Ok(()), |drops| drops.finish());
        let recorded = recorded.and_then(|()| recording.map_or(Ok(()), |recording| recording.finish()));
        // A stop through the control is a stop by hand as well: the same command goes on with the crawl.
        let is_stopped = result.as_ref().is_ok_and(|report| report.finish_reason == "shutdown");
        let interrupted = interrupted.get() || is_stopped;
        let closed = close(interrupted).await;
        let result = result.and_then(|report| recorded.and(closed).map(|()| report));
        tasks.shutdown().await;
        self.screen.clear();

        let report = self.report(result, &handle, started, directory.is_none());
        let mut ended = Ended { report, interrupted, directory };
        if let Some(learnt) = learnt.as_deref().and_then(LearntRules::of) {
            ended.keep_rules(learnt);
        }
        ended
    }

    fn tasks(&mut self, handle: &Handle, interrupted: &Interrupted) -> tokio::task::JoinSet<()> {
        let settings = handle.context().settings();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(signals::watch(
            Signals::listen(),
            handle.clone(),
            interrupted.clone(),
            self.screen.clone(),
            settings.drain_timeout,
        ));
        if settings.closespider_timeout > 0.0 {
            tasks.spawn(end_in_time(handle.clone(), seconds(settings.closespider_timeout)));
        }
        if let Some(metrics) = self.metrics.take() {
            tasks.spawn(serve_numbers(metrics, handle.clone(), self.log.clone()));
        }
        if self.screen.has_dashboard() {
            let monitor = Monitor::new(handle.clone(), self.errors.clone());
            tasks.spawn(show_dashboard(monitor, self.screen.clone()));
        }
        if self.screen.has_progress() {
            tasks.spawn(show_progress(handle.clone(), self.hosts.clone(), self.screen.clone()));
        }
        tasks
    }

    fn report(
        &self,
        result: Result<CrawlReport>,
        handle: &Handle,
        started: Instant,
        to_stdout: bool,
    ) -> Report {
        let error = match result {
            Ok(report) => return Report::of(report, &self.log),
            Err(error) => error,
        };
        let closed = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| to_stdout && error.kind() == std::io::ErrorKind::BrokenPipe);
        let message = if closed { "stdout was closed by its reader".to_owned() } else { error.to_string() };
        let (elapsed, seed) = (started.elapsed().as_secs_f64(), handle.context().seed());
        let report = Report::of_failure(message, elapsed, seed, handle.stats().snapshot(), &self.log);
        Report { losses: handle.context().losses(), ..report }
    }
}

/// The result of a crawl. Its directory is still locked, and not marked as finished before [`Ended::finish`]: if the process is killed
/// before, the same command goes on with the crawl.
#[derive(Debug)]
pub struct Ended {
    /// How the crawl ended.
    pub report: Report,
    /// Whether it was stopped by hand: by a signal, or through the control.
    pub interrupted: bool,
    /// The output directory.
    pub directory: Option<OutputDir>,
}

/// What happened to a start URL without a page. One whose callback failed was fetched.
fn seed_failure(url: &str, reason: &str) -> String {
    let url = if url.is_empty() { "a start URL" } else { url };
    match reason.strip_prefix("callback_error: ") {
        Some(error) => format!("the callback of {url} failed: {error}"),
        None => format!("{url} could not be fetched: {reason}"),
    }
}

impl Ended {
    /// The exit code; a message on stderr explains any code other than 0. `advice` is what to do about a start URL that was not fetched for
    /// a reason, such as [`reachable::advice`](super::reachable::advice).
    pub fn exit(&self, fail_on_limit: bool, advice: impl Fn(&str, &Url) -> String) -> Exit {
        let failed = &self.report.failed_seeds;
        if let Some(error) = &self.report.error {
            warn(&format!("the crawl broke off: {error}"));
        }
        for seed in failed.iter().take(5) {
            let advice = Url::parse(&seed.url).map_or(String::new(), |url| advice(&seed.reason, &url));
            warn(&format!("{}{advice}", seed_failure(&seed.url, &seed.reason)));
        }
        if failed.len() > 5 {
            warn(&format!("{} more start URLs failed; see report.json", failed.len() - 5));
        }
        let missing =
            self.report.stats.get("replay/missing").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if missing > 0 {
            warn(&format!("{missing} requests were not in the recording that was replayed"));
        }
        if self.interrupted {
            Exit::Interrupted
        } else if self.report.error.is_some()
            || missing > 0
            || !failed.is_empty()
            || self.report.failure.is_some()
            || self.report.finish_reason == "start_error"
        {
            Exit::Crawl
        } else if !self.report.failed_rules.is_empty() {
            Exit::Quality
        } else if fail_on_limit && self.report.is_limited() {
            Exit::Limit
        } else {
            Exit::Done
        }
    }

    /// Writes the report into the directory and marks the run as ended.
    ///
    /// # Errors
    /// The report cannot be written; the next command continues the crawl.
    pub fn finish(&mut self) -> Outcome<()> {
        let state = self.state();
        let text = self.report.to_json()?;
        let Some(directory) = &mut self.directory else { return Ok(()) };
        let written = directory.finish(state, &self.report.finish_reason, self.report.pages, &text);
        match (written, &self.report.error) {
            (Ok(()), _) => Ok(()),
            // On a full disk the report cannot be written either; the first error is the one to report.
            (Err(_), Some(_)) => Ok(()),
            (Err(error), None) => {
                let path = escape(&directory.path().to_string_lossy()).into_owned();
                Err(Failure::crawl(format!("writing the report into {path}: {error}")))
            }
        }
    }

    /// Adds what AvoidDup learnt to the report and to the directory.
    fn keep_rules(&mut self, learnt: LearntRules) {
        self.report.avoid_dup = Some(learnt.report);
        let canonical = learnt.canonical.map(String::into_bytes);
        let files = [(RULES, Some(learnt.rules)), (CANONICAL, canonical)];
        for (name, text) in files.into_iter().filter_map(|(name, text)| Some((name, text?))) {
            if let Some(directory) = &self.directory
                && let Err(error) = directory.write(name, &text)
            {
                warn(&format!("{name} could not be written: {error}"));
            }
        }
    }

    fn state(&self) -> State {
        if self.interrupted || self.report.error.is_some() {
            State::Interrupted
        } else if self.report.pages == 0 && !self.report.failed_seeds.is_empty() {
            State::Failed
        } else {
            State::Finished
        }
    }
}

/// Serves the numbers of a crawl, with those of the log.
async fn serve_numbers(metrics: MetricsServer, handle: Handle, log: LogCount) {
    let numbers = move || {
        let (handle, log) = (handle.clone(), log.clone());
        async move {
            let mut stats = handle.stats().snapshot();
            stats.extend(log.stats().map(|(key, number)| (key, number.into())));
            CrawlNumbers { stats, hosts: handle.hosts().await }
        }
    };
    metrics.serve_numbers(numbers).await;
}

/// The time limit stops the crawl by itself. This ends requests that are still in flight after that; a silent server
/// could delay them for as long as a stop by hand allows.
async fn end_in_time(handle: Handle, limit: Duration) {
    const GRACE: Duration = Duration::from_secs(1);
    tokio::time::sleep(limit + GRACE).await;
    handle.abort();
    std::future::pending::<()>().await;
}

async fn show_dashboard(monitor: Monitor, screen: Screen) {
    let draw = async {
        loop {
            screen.draw(&monitor.overview(MOST_SHOWN).await);
            tokio::time::sleep(REFRESH).await;
        }
    };
    tokio::select! {
        () = monitor.sample() => {}
        () = draw => {}
    }
}

async fn show_progress(handle: Handle, hosts: ActiveHosts, screen: Screen) {
    let started = tokio::time::Instant::now();
    let mut rate = Rate::default();
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        ticks.tick().await;
        let stats = handle.stats();
        let number = |key: &str| u64::try_from(stats.get(key)).unwrap_or(0);
        let pages = number("pages/delivered");
        screen.update(&Progress {
            pages,
            rate: rate.sample(started.elapsed(), pages),
            queued: number("scheduler/enqueued").saturating_sub(number("scheduler/dequeued")),
            hosts: hosts.count(),
            failed: number("drops/failed"),
            bytes: number("engine/wire_bytes"),
        });
    }
}

/// The hosts that got a request in the last seconds.
#[derive(Clone, Debug, Default)]
struct ActiveHosts(Arc<Mutex<HashMap<HostKey, Instant>>>);

/// Most hosts, requests and errors that a dashboard shows.
const MOST_SHOWN: usize = 40;

/// How long a host counts as active after a request.
const ACTIVE: Duration = Duration::from_secs(5);

impl ActiveHosts {
    fn count(&self) -> u64 {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, last| last.elapsed() < ACTIVE);
        hosts.len() as u64
    }
}

impl Observer for ActiveHosts {
    fn event(&self, event: &Event<'_>) {
        if let Event::RequestReachedDownloader { request } = event {
            let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            hosts.insert(request.host(), Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_page_whose_callback_failed_is_not_told_as_unreachable() {
        let url = "http://a.test/";
        assert_eq!(
            seed_failure(url, "callback_error: no price"),
            "the callback of http://a.test/ failed: no price"
        );
        assert_eq!(
            seed_failure("", "dns: no such name"),
            "a start URL could not be fetched: dns: no such name"
        );
    }
}
