//! One life of a crawl: from the start of its process to its end, in whatever way it ends.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use huntsman_crawler::{CrawlReport, Crawler, CrawlerBuilder, Delays, Handle, Job, Result, Simulated};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};

use super::disk::Mounted;
use super::environment::Environment;
use super::judge::Judge;
use super::plan::{Incident, Plan, When};
use super::seeded_random::SeededRandom;
use super::sinks::{ITEMS, ItemSink, Lines, RECORDS, Waiting, Watcher};
use super::spider::{FaultyMiddleware, Visitor};
use crate::script::{Reply, ScriptedDownloader};

/// Longer than any life can take: all waits that the settings allow, one after another.
const LIFETIME: Duration = Duration::from_secs(7 * 86_400);
/// How long a crawl is watched after its end.
const AFTERWARDS: Duration = Duration::from_secs(20);

/// How a life ended.
#[derive(Debug)]
pub(super) enum LifeEnd {
    /// The process crashed.
    Crashed,
    /// The crawl ended with a report.
    Finished(Box<CrawlReport>),
    /// The crawl ended with an error.
    Failed(String),
}

impl LifeEnd {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Crashed => "crashed",
            Self::Finished(report) => &report.finish_reason,
            Self::Failed(error) => error,
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_final(&self, has_job: bool) -> bool {
        match self {
            Self::Finished(report) => {
                let reason = report.finish_reason.as_str();
                !has_job || reason == "finished" || reason.starts_with("closespider_")
            }
            Self::Crashed | Self::Failed(_) => !has_job,
        }
    }
}

pub(super) struct Life<'a> {
    number: u32,
    plan: &'a Plan,
    environment: &'a Environment,
    incidents: Vec<(When, Incident)>,
}

/// An event that is due at a time.
#[derive(Clone, Copy, Debug)]
enum Due {
    Incident(Incident),
    Resume,
    /// The crawl was asked to end, and did not end in time.
    TooLate,
}

impl<'a> Life<'a> {
    pub(super) fn new(
        number: u32,
        plan: &'a Plan,
        environment: &'a Environment,
        incidents: Vec<(When, Incident)>,
    ) -> Self {
        Self { number, plan, environment, incidents }
    }

    /// Runs one life.
    pub(super) fn live(
        &self,
        stack: &impl Fn(CrawlerBuilder<Visitor>) -> CrawlerBuilder<Visitor>,
    ) -> LifeEnd {
        self.environment.note(|| format!("life {} begins: {:?}", self.number, self.incidents));
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without a driver of files");
        let log = self.incidents.iter().find_map(|(_, incident)| match incident {
            Incident::LogPanics(line) => Some(BrokenLog { line: *line, lines: AtomicU64::new(0) }),
            _ => None,
        });
        let end = {
            let _log = log.map(tracing::subscriber::set_default);
            runtime.block_on(self.run(stack))
        };
        // Tasks that are still running end with the runtime.
        drop(runtime);
        if self.incidents.iter().any(|(_, incident)| *incident == Incident::PowerCut)
            && matches!(end, LifeEnd::Crashed)
        {
            self.environment.disk.cut();
        }
        end
    }

    async fn run(&self, stack: &impl Fn(CrawlerBuilder<Visitor>) -> CrawlerBuilder<Visitor>) -> LifeEnd {
        let (tell, told) = mpsc::unbounded_channel();
        self.environment.begin(self.number, &self.incidents, tell);
        let slowness = self.plan.slowness;
        let mut dice = SeededRandom::of(self.environment.seed, &format!("delays {}", self.number));
        let delays = move || Delays { before: dice.millis(slowness), after: dice.millis(slowness) };
        let _simulated = Simulated::begin(self.environment.wall(), delays);
        let web = self.web();
        let end = match catch_unwind(AssertUnwindSafe(|| self.crawler(stack, &web))) {
            Ok(Ok(crawler)) => self.follow(crawler, told).await,
            Ok(Err(error)) => LifeEnd::Failed(error.to_string()),
            Err(_) => LifeEnd::Failed("the crawl panicked before it began".to_owned()),
        };
        Judge::pace(self.plan, self.environment, self.number, &web.requests());
        if !matches!(end, LifeEnd::Crashed) {
            self.assert_quiet(&web).await;
        }
        self.environment.die();
        end
    }

    fn web(&self) -> ScriptedDownloader {
        let (environment, plan) = (self.environment.clone(), self.plan.clone());
        let web = ScriptedDownloader::new().otherwise(move |request, _| {
            match environment.fetched(request) {
                Some(nth) => {
                    Judge::fetch(&plan, &environment, request);
                    environment.web.answer(&request.url, nth, environment.now())
                }
                // The response will not be read by anyone.
                None => Reply::never(),
            }
        });
        self.environment.web.addresses().fold(web, |web, (host, address)| web.resolve(host, address))
    }

    fn crawler(
        &self,
        stack: &impl Fn(CrawlerBuilder<Visitor>) -> CrawlerBuilder<Visitor>,
        web: &ScriptedDownloader,
    ) -> Result<Crawler> {
        let fault = self.incidents.iter().find_map(|(_, incident)| match incident {
            Incident::Disk(fault) => Some(*fault),
            _ => None,
        });
        let disk: Mounted = self.environment.disk.mount(self.number, fault);
        let syncs = self.plan.word("job_sync") == "full";
        let [items, records] = [ITEMS, RECORDS].map(|name| Lines::new(name, disk.clone(), syncs));
        let dice = SeededRandom::of(self.environment.seed, &format!("sink {}", self.number));
        let builder = stack(CrawlerBuilder::new(Visitor::new(Arc::clone(&self.environment.web))))
            .downloader(web.clone())
            .middleware(FaultyMiddleware(Arc::clone(&self.environment.web)))
            .persist(items.clone())
            .persist(records.clone())
            .concurrent_pipeline(Waiting { slowness: self.plan.slowness })
            .pipeline(ItemSink::new(items, dice, self.plan.slowness))
            .observer(Watcher { lines: records, environment: self.environment.clone() });
        let settings = &self.plan.settings;
        let builder =
            settings.iter().fold(builder, |builder, (name, value)| builder.set(name, value.clone()));
        if self.plan.has_job { builder.job(Job::on(Arc::new(disk))?).build() } else { builder.build() }
    }

    /// Runs the crawl and applies the planned mishaps to it.
    async fn follow(&self, crawler: Crawler, mut told: mpsc::UnboundedReceiver<Incident>) -> LifeEnd {
        let handle = crawler.handle();
        let began = Instant::now();
        let mut due: Vec<(Instant, Due)> = self
            .incidents
            .iter()
            .filter_map(|(when, incident)| match when {
                When::At(time) => Some((began + *time, Due::Incident(*incident))),
                When::Step(_) => None,
            })
            .collect();
        let mut running = tokio::spawn(crawler.run());
        let mut limit = std::pin::pin!(sleep(LIFETIME));
        loop {
            due.sort_by_key(|(at, _)| *at);
            let next = due.first().copied();
            let wait = async {
                match next {
                    Some((at, what)) => {
                        sleep_until(at).await;
                        what
                    }
                    None => std::future::pending().await,
                }
            };
            let what = tokio::select! {
                biased;
                Some(incident) = told.recv() => Due::Incident(incident),
                result = &mut running => return match result {
                    Ok(Ok(report)) => LifeEnd::Finished(Box::new(report)),
                    Ok(Err(error)) => LifeEnd::Failed(error.to_string()),
                    Err(cause) => LifeEnd::Failed(format!("the crawl itself panicked: {cause}")),
                },
                what = wait => {
                    due.remove(0);
                    what
                }
                () = &mut limit => {
                    self.environment.breaks("the crawl does not end");
                    return LifeEnd::Crashed;
                }
            };
            match what {
                Due::Resume => handle.resume(),
                Due::TooLate => {
                    self.environment.breaks("the crawl was asked to end and did not");
                    return LifeEnd::Crashed;
                }
                Due::Incident(incident) if incident.is_death() => return LifeEnd::Crashed,
                Due::Incident(incident) => self.inject(incident, &handle, &mut due),
            }
        }
    }

    fn inject(&self, incident: Incident, handle: &Handle, due: &mut Vec<(Instant, Due)>) {
        self.environment.step(|| format!("{incident:?}"));
        // Writes in progress take their time, and so does a download that a pipeline is waiting for.
        let slack = Duration::from_secs(120) + Duration::from_millis(self.plan.slowness) * 200;
        let now = Instant::now();
        match incident {
            Incident::Pause(time) => {
                handle.pause();
                due.push((now + time, Due::Resume));
            }
            Incident::Stop(patience) => {
                handle.stop("stopped");
                let drain = Duration::from_secs_f64(self.plan.number("drain_timeout"));
                due.push((now + drain + slack, Due::TooLate));
                due.extend(patience.map(|patience| (now + patience, Due::Incident(Incident::Abort))));
            }
            Incident::Abort => {
                handle.abort();
                due.push((now + slack, Due::TooLate));
            }
            // These mishaps are not applied from outside.
            Incident::Kill | Incident::PowerCut | Incident::Disk(_) | Incident::LogPanics(_) => {}
        }
    }

    /// After its end, a crawl must not do anything more.
    async fn assert_quiet(&self, web: &ScriptedDownloader) {
        let (fetches, writes) = (web.requests().len(), self.environment.disk.writes());
        sleep(AFTERWARDS).await;
        if web.requests().len() > fetches {
            self.environment.breaks("the crawl fetches after its end");
        }
        if self.environment.disk.writes() > writes {
            self.environment.breaks("the crawl writes after its end");
        }
    }

    /// Whether an error is to be expected.
    pub(super) fn may_fail(&self) -> bool {
        self.incidents
            .iter()
            .any(|(_, incident)| matches!(incident, Incident::Disk(_) | Incident::LogPanics(_)))
    }
}

/// A log subscriber that panics at one line, or at every line from one on.
struct BrokenLog {
    line: u64,
    lines: AtomicU64,
}

impl tracing::Subscriber for BrokenLog {
    fn enabled(&self, of: &tracing::Metadata<'_>) -> bool {
        *of.level()
            <= [tracing::Level::ERROR, tracing::Level::INFO, tracing::Level::TRACE][self.line as usize % 3]
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        let line = self.lines.fetch_add(1, Ordering::Relaxed) + 1;
        if line == self.line || (line > self.line && self.line.is_multiple_of(2)) {
            resume_unwind(Box::new("the log cannot be written"));
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
