//! `render = auto` in crawls that are killed and go on: what they decide is what a crawl decides that runs through.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use huntsman_crawler::{CrawlReport, Delays, Job, Request, Simulated, Timestamp};
use huntsman_store::{MemoryStore, Store};
use huntsman_testkit::ScriptedDownloader;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use super::auto::site;
use super::stand_in::StandIn;
use super::{Pages, builder_of};

/// Pages of each kind of the site.
const PER_KIND: usize = 60;
const FROM: Timestamp = Timestamp(1_700_000_000_000_000);

/// One crawl over all its lives.
struct Lives {
    web: ScriptedDownloader,
    store: Arc<MemoryStore>,
    pages: Pages,
    /// Requests at once.
    places: usize,
    took: Duration,
}

impl Lives {
    fn new(places: usize) -> Self {
        let web = site(PER_KIND).latency(Duration::from_millis(30));
        Self { web, store: Arc::default(), pages: Pages::default(), places, took: Duration::ZERO }
    }

    /// Crawls to the end or for so long; then the process dies, and what it had not committed is lost. The report of a crawl that came to its end.
    fn live(&mut self, until: Duration) -> Option<CrawlReport> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            // Callbacks and commits take time, so that a commit may come after a page taught and before it is settled.
            let step = Duration::from_millis(10);
            let _simulated = Simulated::begin(FROM, move || Delays { before: step, after: step });
            let set = [
                ("render", json!("auto")),
                ("render_pages", json!(4)),
                ("max_links_per_page", json!(100_000)),
                ("concurrent_requests_per_domain", json!(self.places)),
                ("job_commit_interval", json!(0.05)),
            ];
            let start = vec![Request::parse("http://h/").unwrap()];
            let builder = builder_of(&self.web, start, &set, &self.pages, &Arc::new(StandIn::default()));
            let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&self.store);
            let began = Instant::now();
            let end = timeout(until, builder.job(Job::on(store).unwrap()).run()).await;
            self.took += began.elapsed();
            end.ok().map(Result::unwrap)
        })
    }

    /// What was decided of each page in the end: a page that was not settled when the process died was decided on anew.
    fn decisions(&self) -> BTreeMap<String, bool> {
        let pages = self.pages.lock().unwrap();
        pages.iter().map(|(url, page)| (url.clone(), page.is_rendered)).collect()
    }
}

/// A crawl that runs through.
fn whole(places: usize) -> (Lives, Value) {
    let mut lives = Lives::new(places);
    let report = lives.live(Duration::MAX).expect("nothing ends it");
    (lives, report.sections["render"].clone())
}

/// The same crawl, which dies some times on its way.
fn killed(places: usize, whole: &Lives, random: &mut StdRng) -> (Lives, Value) {
    let mut lives = Lives::new(places);
    for _ in 0..random.random_range(1..6) {
        if let Some(report) = lives.live(whole.took.mul_f64(random.random_range(0.0..0.5))) {
            return (lives, report.sections["render"].clone());
        }
    }
    let report = lives.live(Duration::MAX).expect("nothing ends it");
    (lives, report.sections["render"].clone())
}

fn random() -> StdRng {
    let seed =
        std::env::var("HUNTSMAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed} (HUNTSMAN_SEED)");
    StdRng::seed_from_u64(seed)
}

#[test]
fn pages_that_come_one_by_one_are_decided_on_as_without_kills() {
    let mut random = random();
    let (whole, told) = whole(1);
    for _ in 0..12 {
        let (lives, again) = killed(1, &whole, &mut random);
        assert_eq!(lives.decisions(), whole.decisions());
        assert_eq!(again, told);
    }
}

/// Pages of each shape that were rendered, and that were not, by the report and by the pages themselves.
fn told_and_counted(lives: &Lives, told: &Value) -> [BTreeMap<String, (u64, u64)>; 2] {
    let mut counted: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (url, is_rendered) in lives.decisions() {
        let path = url.trim_start_matches("http://h").rsplit_once('/').unwrap().0;
        let shape = if path.is_empty() { "/".to_owned() } else { format!("{path}/{{n}}") };
        let of = counted.entry(shape).or_default();
        *(if is_rendered { &mut of.0 } else { &mut of.1 }) += 1;
    }
    let mut by_report: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for shape in told["by_shape"].as_array().unwrap() {
        let of = by_report.entry(shape["shape"].as_str().unwrap().to_owned()).or_default();
        of.0 += shape["compared"].as_u64().unwrap();
        of.1 += shape["static"].as_u64().unwrap();
    }
    [by_report, counted]
}

/// What is believed of each shape.
fn beliefs(told: &Value) -> BTreeMap<(String, String), bool> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shapes = told["by_shape"].as_array().unwrap().iter();
    shapes.map(|of| ((text(&of["shape"]), text(&of["looks"])), of["renders"].as_bool().unwrap())).collect()
}

#[test]
fn pages_that_come_at_once_teach_once_each_and_the_same_in_all() {
    let mut random = random();
    let (whole, told) = whole(8);
    for _ in 0..12 {
        let (lives, again) = killed(8, &whole, &mut random);
        let [by_report, counted] = told_and_counted(&lives, &again);
        assert_eq!(by_report, counted, "each page taught once, and none that was not delivered");
        assert_eq!(beliefs(&again), beliefs(&told));
        // What needs the browser gets it in both; of the rest, as many are compared before anything is known.
        let needs = |url: &&String| {
            url.contains("/app/") || url.contains("/mixed/") && url.ends_with(['1', '3', '5', '7', '9'])
        };
        let decisions = lives.decisions();
        assert!(decisions.iter().filter(|(url, _)| needs(url)).all(|(_, is_rendered)| *is_rendered));
        let idle = decisions.iter().filter(|(url, is_rendered)| !needs(url) && **is_rendered).count();
        assert!((7..=7 + PER_KIND / 10).contains(&idle), "{idle} pages were rendered in vain");
    }
}
