//! AvoidDup: skips downloads of content that is already known, predicted from the URLs of the site.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{HeaderValue, LOCATION};
use http::{Method, StatusCode};
use huntsman_crawler::{
    Change, Component, Context, DownloaderMiddleware, DropReason, Element, Error, Event, FetchError, Hooks,
    HostKey, Observer, OnException, OnFollow, OnPage, OnRequest, Page, PageKind, PageNeeds, Persist, Request,
    Result, SavedJob, Settings, SlotBy, SpiderMiddleware, Timestamp, meta, registrable_domain, settings,
};
use huntsman_detect::avoid::{
    Attempt, Decision, Explanation, IdleParameter, LinkPlaces, Options, Overrides, PageText, Picture,
    Predictor, Relation, Rule, Totals,
};
use huntsman_detect::maybedont::{self, Gate, GateSettings};
use huntsman_html::ScanOptions;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{added, chain};

mod open_pages;
mod shared;

use open_pages::{OpenPage, OpenPages};
use shared::SharedModels;

settings! {
    /// Settings of [`AvoidDup`].
    pub struct AvoidDupSettings {
        /// Learns which parts of URLs do not change the content, and skips downloads that would bring nothing new.
        avoid_dup_content_enabled: bool = false;
        /// The model that learns: default (our own) or reference (exactly MaybeDont's rules).
        avoid_dup_content_mode: AvoidDupMode = AvoidDupMode::Default;
        /// Which requests are judged and learnt from: all, or marked (only those with meta `avoid_dup_content`).
        avoid_dup_content_scope: AvoidDupScope = AvoidDupScope::All;
        /// Number of pages of a site that are learnt before anything is skipped.
        avoid_dup_content_initial_queue_limit: usize = 300;
        /// A download is skipped if its content is known with more than this probability.
        avoid_dup_content_threshold: f64 = 0.98;
        /// Share of the skipped requests that are downloaded nevertheless, as evidence and to estimate how much is
        /// lost.
        avoid_dup_content_exploration: f64 = 0.05;
        /// Lower bound of avoid_dup_content_exploration, which falls with the age of a rule: after 20 explorations that
        /// found nothing new it is halved. If unset, it does not fall.
        avoid_dup_content_exploration_min: Option<f64> = None;
        /// Parameters (`sid`, `utm_*`), path segments (`/2`) and `host` that never matter: a URL that differs from a
        /// known one only in these is skipped.
        avoid_dup_content_pinned: Vec<String> = Vec::new();
        /// Parameters, path segments and `host`, written in the same way, that always matter: nothing is skipped
        /// because of them.
        avoid_dup_content_forbidden: Vec<String> = Vec::new();
        /// Fetches up to three pages of a site again if its pages differ in few places, to learn whether their text changes from visit to visit. Such
        /// places are no content.
        avoid_dup_content_revisits: bool = true;
        /// The most bytes of what was learnt about a host that go with it to the next node of a shared crawl. Beyond it, the next node knows
        /// what was learnt first.
        avoid_dup_content_hand_over_bytes: usize = 1 << 20;
    }
}

/// The model by which duplicate content is avoided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AvoidDupMode {
    /// The model of `huntsman_detect::avoid`.
    #[default]
    Default,
    /// The model of MaybeDont 0.1.1, without any change.
    Reference,
}

/// The requests for which duplicate content is avoided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AvoidDupScope {
    /// All requests.
    #[default]
    All,
    /// Requests with meta `avoid_dup_content`.
    Marked,
}

/// Learns which parts of URLs do not change the content of a page, and skips requests that would bring nothing new,
/// with reason `duplicate_content` and the rule in words.
///
/// There is one model ([`huntsman_detect::avoid`]) per registrable domain; nothing is skipped before it has learnt
/// `avoid_dup_content_initial_queue_limit` pages. It decides when a request is about to be sent. A request whose
/// content may be known is put behind the other requests of its host, in breadth-first order, and judged again. A request that a page being
/// downloaded may settle waits for that page. A request to be skipped waits until its host has nothing else left, neither
/// in the queue nor in callbacks and pipelines, and is fetched after all if the rule was contradicted meanwhile. A share of the skips (`avoid_dup_content_exploration`)
/// is fetched at once, which gives evidence and an unbiased estimate of what is lost.
///
/// It judges GET requests without a body, except start requests, robots.txt, sitemaps, downloads within callbacks, and
/// requests with meta `dont_avoid_dup_content`. With the scope `marked` it judges only requests with meta
/// `avoid_dup_content`. It learns from responses with status 2xx that are markup or text. Stats are under `avoid_dup/`.
/// The model is saved in the job.
///
/// In a crawl that several nodes share there is one model per slot instead (per registrable domain only with `slot_by = registrable_domain`),
/// because the hosts of a domain may be on different nodes. What it has learnt goes with its host to the next node.
///
/// With the mode `reference` the model and the rules are those of MaybeDont 0.1.1 ([`huntsman_detect::maybedont`]):
/// each request is decided once, without waiting; the text of a page is that of all text nodes of the body; and the
/// model is not saved in the job.
#[derive(Clone)]
pub struct AvoidDup(Arc<Inner>);

struct Inner {
    model: Mutex<Model>,
    /// What else than the pages decides the answers of the model; saved in the job.
    options: ModelOptions,
    marked: bool,
    /// What is a site if the queue is shared.
    slot_by: SlotBy,
    /// The most bytes of a host's journal that go to another process.
    hand_over_bytes: usize,
    revisits: bool,
    is_shared: AtomicBool,
    open: OpenPages,
    /// Number of the next batch of the journal in the job.
    batches: Mutex<u64>,
}

/// The settings that decide the answers of the model, in the job: they explain it without the settings of its crawl.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct ModelOptions {
    warmup: u32,
    threshold: f64,
    exploration: f64,
    exploration_min: Option<f64>,
    seed: u64,
    pinned: Vec<String>,
    forbidden: Vec<String>,
}

impl ModelOptions {
    fn predictor(&self) -> Predictor {
        let &Self { warmup, threshold, exploration, exploration_min, seed, .. } = self;
        let options = Options { warmup, threshold, exploration, exploration_min, seed, ..Options::default() };
        let overrides = Overrides { pinned: self.pinned.clone(), forbidden: self.forbidden.clone() };
        Predictor::new(options).with_overrides(overrides)
    }

    fn of_settings(own: &AvoidDupSettings, seed: u64) -> Self {
        Self {
            warmup: u32::try_from(own.avoid_dup_content_initial_queue_limit).unwrap_or(u32::MAX),
            threshold: own.avoid_dup_content_threshold,
            exploration: own.avoid_dup_content_exploration,
            exploration_min: own.avoid_dup_content_exploration_min,
            seed,
            pinned: own.avoid_dup_content_pinned.clone(),
            forbidden: own.avoid_dup_content_forbidden.clone(),
        }
    }
}

/// The part of the saved state that is not the totals.
#[derive(Debug, Deserialize)]
struct SavedOptions {
    options: Option<ModelOptions>,
}

enum Model {
    Default(Box<Predictor>),
    /// The queue is shared.
    Shared(Box<SharedModels>),
    Reference(Box<Gate>),
}

impl Model {
    /// The predictor of a site; `None` in reference mode.
    fn of(&mut self, site: &str) -> Option<&mut Predictor> {
        match self {
            Self::Default(predictor) => Some(predictor),
            Self::Shared(models) => Some(models.of(site)),
            Self::Reference(_) => None,
        }
    }

    /// All predictors.
    fn all(&self) -> Vec<&Predictor> {
        match self {
            Self::Default(predictor) => vec![predictor],
            Self::Shared(models) => models.all().collect(),
            Self::Reference(_) => Vec::new(),
        }
    }
}

/// The number of a page and the places of its links; in the extensions of the page.
#[derive(Clone, Debug)]
struct LearntPage {
    site: Arc<str>,
    page: u32,
    links: Arc<LinkPlaces>,
    /// Whether the callback asked for a URL of the site to which no link of the page leads as it is written. Then nothing is said about the links that were not
    /// followed, because they may be followed under other URLs.
    has_other_urls: Arc<AtomicBool>,
    /// Is dropped with the extensions of the page.
    _open: Arc<OpenPage>,
}

/// A request that waits for another one to finish waits this long the first time; the next constants are the number of
/// waits after which the time grows by the same amount, and the number of waits until it is decided with what is known: 17.5 s in all.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const WAITS_PER_GROWTH: u32 = 20;
const MAX_WAITS: u64 = 100;
/// After so many waits more, the time of a wait doubles, six times at most (to 19 s): thousands of requests may wait for a slow pipeline.
const WAITS_PER_DOUBLING: u64 = 16;
const MAX_DOUBLINGS: u64 = 6;
/// After this time in which no page of a site was learnt, no request to it ended, and no page left the pipelines, they are not waited for any longer. It is
/// the time limit of a download by default.
const MAX_STALL: Duration = Duration::from_secs(180);
/// Priority of delayed requests whose content is least likely known; lower than any that a spider would ask for. Each hundredth of probability has a range of
/// priorities below it, in which the request that a breadth-first crawl would send first comes first.
const PRIORITY_DELAYED: i32 = -1_000_000;
const PRIORITIES_OF_PROBABILITY: i32 = 1 << 23;
/// The lower bits of a rank, which has 30, for which there is no room in such a range.
const RANK_SHIFT: u32 = 7;
/// Priority of skipped requests; lower than that of any delayed one.
const PRIORITY_SKIPPED: i32 = -(1 << 30);
/// Priority of the first skipped request when skipped requests are asked for again; each next one has one less.
const PRIORITY_RANKED: i32 = PRIORITY_SKIPPED - 1;

impl Inner {
    fn with(model: Model, options: ModelOptions) -> Self {
        Self {
            model: Mutex::new(model),
            options,
            marked: false,
            slot_by: SlotBy::Host,
            hand_over_bytes: 0,
            revisits: true,
            is_shared: AtomicBool::new(false),
            open: OpenPages::default(),
            batches: Mutex::new(0),
        }
    }
}

impl AvoidDup {
    /// Creates the component from the settings; `None` unless `avoid_dup_content_enabled` is set.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: AvoidDupSettings = settings.of()?;
        if !own.avoid_dup_content_enabled {
            return Ok(None);
        }
        let seed = settings.seed.unwrap_or_default();
        let options = ModelOptions::of_settings(&own, seed);
        let model = match own.avoid_dup_content_mode {
            AvoidDupMode::Default => Model::Default(Box::new(options.predictor())),
            AvoidDupMode::Reference => {
                let gate = GateSettings {
                    warm_up: own.avoid_dup_content_initial_queue_limit,
                    threshold: options.threshold,
                    exploration: options.exploration,
                    seed,
                    ..GateSettings::default()
                };
                Model::Reference(Box::new(Gate::new(gate)?))
            }
        };
        let inner = Inner {
            marked: own.avoid_dup_content_scope == AvoidDupScope::Marked,
            slot_by: settings.slot_by,
            hand_over_bytes: own.avoid_dup_content_hand_over_bytes,
            revisits: own.avoid_dup_content_revisits,
            ..Inner::with(model, options)
        };
        Ok(Some(Self(Arc::new(inner))))
    }

    /// The model of a crawl that is not running, from its job: for [`explain_url`](Self::explain_url). `None` if AvoidDup was off, or its mode
    /// was `reference`. The rules by which requests were skipped are not in a job.
    ///
    /// # Errors
    /// The job is damaged.
    pub fn of_job(job: &SavedJob) -> Result<Option<Self>> {
        let Some(state) = job.part(Self::NAME)? else { return Ok(None) };
        let saved: SavedOptions = serde_json::from_slice(&state)?;
        // The jobs of earlier versions do not say; most crawls have the default settings.
        let options =
            saved.options.unwrap_or_else(|| ModelOptions::of_settings(&AvoidDupSettings::default(), 0));
        let model = Model::Default(Box::new(options.predictor()));
        let learnt = Self(Arc::new(Inner::with(model, options)));
        job.load(&learnt)?;
        Ok(Some(learnt))
    }

    /// Counts of the pages learnt and of the requests skipped and explored; `None` in reference mode.
    pub fn totals(&self) -> Option<Totals> {
        self.model().all().into_iter().map(Predictor::totals).reduce(Totals::with)
    }

    /// The rules by which requests were skipped, the most used first; empty in reference mode.
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.model().all().into_iter().flat_map(Predictor::rules).collect();
        rules.sort_by(|a, b| b.skipped.cmp(&a.skipped).then_with(|| a.rule.cmp(&b.rule)));
        rules
    }

    /// Parameters that never mattered on their site; empty in reference mode.
    pub fn idle_parameters(&self) -> Vec<IdleParameter> {
        self.model().all().into_iter().flat_map(Predictor::idle_parameters).collect()
    }

    /// Explains in words what the model believes about a URL.
    pub fn explain(&self, url: &Url) -> Option<String> {
        let site = self.site_of(url);
        Some(self.model().of(&site)?.explain(&site, url)?.to_string())
    }

    /// What the model knows about a URL: its parts, all that ties it to pages that were fetched, and what would be decided. `None` in
    /// reference mode.
    pub fn explain_url(&self, url: &Url) -> Option<Explanation> {
        let site = self.site_of(url);
        Some(self.model().of(&site)?.explain_url(&site, url))
    }

    /// How a rule stands now, for its example; see [`Predictor::explain_rule`].
    pub fn explain_rule(&self, rule: &Rule) -> Option<Relation> {
        self.model().of(&rule.site)?.explain_rule(rule)
    }

    /// Rules that tied requests to known pages and were not believed, those of most requests first; empty in reference mode.
    pub fn rules_not_believed(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> =
            self.model().all().into_iter().flat_map(Predictor::rules_not_believed).collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.fetched));
        rules
    }

    /// The templates of the URLs of all sites, at most `most`, with what was fetched and skipped of each; `None` in reference mode.
    pub fn picture(&self, most: usize) -> Option<Picture> {
        self.model().all().into_iter().map(|predictor| predictor.picture(most)).reduce(|a, b| a.with(b, most))
    }

    /// The site within which pages are compared: the registrable domain, or the host if there is none; if the queue is shared, the slot, all
    /// of whose requests are on one node.
    fn site_of(&self, url: &Url) -> String {
        match self.0.is_shared.load(Ordering::Acquire) {
            false => domain_of(url).to_ascii_lowercase(),
            true => HostKey::of(url, self.0.slot_by).as_str().to_owned(),
        }
    }

    fn is_of_site(&self, url: &Url, site: &str) -> bool {
        match self.0.is_shared.load(Ordering::Acquire) {
            false => domain_of(url).eq_ignore_ascii_case(site),
            true => HostKey::of(url, self.0.slot_by).as_str() == site,
        }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.0.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn applies_to(&self, request: &Request) -> bool {
        let is_own = request.meta_flag(meta::IS_START_REQUEST)
            || request.meta_flag(meta::DONT_AVOID_DUP_CONTENT)
            || request.meta_flag(meta::IS_ROBOTS_TXT)
            || request.is_sitemap()
            || request.is_nested();
        !is_own
            && request.method == Method::GET
            && request.body.is_empty()
            && (!self.0.marked || request.meta_flag(meta::AVOID_DUP_CONTENT))
    }

    /// Fetches a page again if the model asks for it, and lets it compare the visits.
    async fn revisit(&self, site: &str, cx: &Context) {
        if !self.0.revisits {
            return;
        }
        let again = self.model().of(site).and_then(|predictor| predictor.next_again(site));
        let Some(url) = again else { return };
        let request = Request::get(url.clone());
        let Ok(response) = cx.download(request.clone()).await else { return };
        if response.url != url || !response.status.is_success() {
            return;
        }
        let options = ScanOptions { blocks: true, ..ScanOptions::default() };
        let text = text_of(&Page::with_options(request, response, options));
        cx.stats().inc("avoid_dup/fetched_again");
        if let Some(predictor) = self.model().of(site) {
            predictor.fetched_again(site, &url, &text);
        }
    }

    /// Judges a request as MaybeDont does: once, without waiting.
    fn decide_as_reference(gate: &mut Gate, request: &Request, cx: &Context) -> OnRequest {
        match gate.decide(request.url.as_str()) {
            maybedont::Decision::Fetch { explored, .. } => {
                if explored {
                    cx.stats().inc("avoid_dup/explored");
                }
                OnRequest::Continue
            }
            maybedont::Decision::Skip { reason, probability, .. } => {
                cx.stats().inc("avoid_dup/skipped");
                let detail = format!("{reason} (probability {probability:.3})");
                OnRequest::Drop(DropReason::skipped("duplicate_content").detail(detail))
            }
        }
    }

    fn decide(&self, predictor: &mut Predictor, site: &str, request: &Request, cx: &Context) -> OnRequest {
        let is_last = request.meta_flag(meta::AVOID_DUP_SKIPPED);
        let held = request.meta_value(meta::AVOID_DUP_HELD).unwrap_or(0);
        let is_busy = is_last && (predictor.has_requests_in_flight(site) || self.0.open.has(site));
        if is_busy && held < MAX_WAITS {
            // The pages being downloaded or processed may lead to more requests, or contradict the rule.
            return hold(request, held, cx);
        }
        if is_last && is_unranked(request.priority) {
            // What a breadth-first crawl would fetch first comes first: it leads to most. That is known when nothing else is left.
            let mut ranked = requeued(request);
            ranked.priority = priority_of_ranked(predictor.rank(site, &request.url));
            ranked.remove_meta(meta::AVOID_DUP_HELD);
            return OnRequest::Reschedule(Box::new(ranked));
        }
        let (version, now) = ((predictor.version(site) << 32) | self.0.open.ended(site), cx.now());
        let waits_since = request
            .meta_value(meta::AVOID_DUP_WAITS_SINCE)
            .filter(|_| request.meta_value(meta::AVOID_DUP_VERSION) == Some(version));
        let is_stalled = waits_since.is_some_and(|since| now.since(Timestamp(since)) > MAX_STALL);
        if is_busy && is_stalled {
            cx.stats().inc("avoid_dup/not_waited_for");
        }
        let attempt = match (is_last, is_busy && !is_stalled) {
            (false, _) => Attempt::Regular,
            (true, true) => Attempt::Waiting,
            (true, false) => Attempt::Last,
        };
        match predictor.decide(site, &request.url, attempt) {
            Decision::Drop(reason) => {
                cx.stats().inc("avoid_dup/skipped");
                return OnRequest::Drop(DropReason::skipped("duplicate_content").detail(reason.to_string()));
            }
            Decision::Skip(_) => {
                let mut last = requeued(request);
                last.priority = PRIORITY_SKIPPED;
                last.remove_meta(meta::AVOID_DUP_HELD);
                last.set_meta(meta::AVOID_DUP_SKIPPED, true);
                return OnRequest::Reschedule(Box::new(last));
            }
            Decision::Delay { probability } => {
                let level = (probability * 100.0) as u32;
                let before = request.meta_value(meta::AVOID_DUP_DELAYED);
                if before.is_none_or(|before| u64::from(level) > before + 2) {
                    cx.stats().inc("avoid_dup/delayed");
                    let mut later = requeued(request);
                    // The requests that are least likely to be copies come first.
                    later.priority = priority_of_delayed(level, predictor.rank(site, &request.url));
                    later.set_meta(meta::AVOID_DUP_DELAYED, u64::from(level));
                    return OnRequest::Reschedule(Box::new(later));
                }
            }
            Decision::Hold if attempt == Attempt::Waiting => {
                let mut request = request.clone();
                request.set_meta(meta::AVOID_DUP_VERSION, version);
                request.set_meta(meta::AVOID_DUP_WAITS_SINCE, waits_since.unwrap_or(now.0));
                return hold(&request, held, cx);
            }
            Decision::Hold if held < MAX_WAITS => return hold(request, held, cx),
            Decision::Explore(_) => cx.stats().inc("avoid_dup/explored"),
            Decision::Hold | Decision::Fetch if is_last => cx.stats().inc("avoid_dup/reopened"),
            Decision::Hold | Decision::Fetch => {}
        }
        predictor.request_started(site, &request.url);
        OnRequest::Continue
    }

    /// Learns the target of a redirect within a site.
    fn learn_redirect(&self, from: &Url, location: &HeaderValue) {
        let to = location.to_str().ok().and_then(|location| from.join(location).ok());
        let site = self.site_of(from);
        if let Some(to) = to.filter(|to| self.is_of_site(to, &site))
            && let Some(predictor) = self.model().of(&site)
        {
            predictor.redirect(&site, from, &to);
        }
    }

    /// Notes that a request ended without a page to learn from.
    fn request_finished(&self, url: &Url) {
        let site = self.site_of(url);
        let mut model = self.model();
        // Most requests to hosts of other nodes are downloads of callbacks, from which nothing is learnt.
        if matches!(&*model, Model::Shared(models) if !models.knows(&site)) {
            return;
        }
        if let Some(predictor) = model.of(&site)
            && predictor.has_requests_in_flight(&site)
        {
            predictor.request_finished(&site, url);
        }
    }
}

/// The priority of a delayed request, whose content is known with so many hundredths of probability, and which has this [rank](Predictor::rank).
fn priority_of_delayed(hundredths: u32, rank: u32) -> i32 {
    let (hundredths, place) = (hundredths.min(100).cast_signed(), (rank >> RANK_SHIFT).cast_signed());
    PRIORITY_DELAYED - hundredths * PRIORITIES_OF_PROBABILITY - place.min(PRIORITIES_OF_PROBABILITY - 1)
}

/// Whether a skipped request with this priority still waits for its rank: jobs of earlier versions have such requests with higher priorities, ranked or not.
fn is_unranked(priority: i32) -> bool {
    priority >= PRIORITY_SKIPPED
}

/// The priority of a skipped request of this [rank](Predictor::rank) that is asked for the last time.
fn priority_of_ranked(rank: u32) -> i32 {
    PRIORITY_RANKED.saturating_sub_unsigned(rank)
}

fn requeued(request: &Request) -> Request {
    let mut again = request.clone();
    added::strip(&mut again);
    chain::set_unfiltered(&mut again, AvoidDup::NAME);
    again
}

fn hold(request: &Request, held: u64, cx: &Context) -> OnRequest {
    cx.stats().inc("avoid_dup/held");
    let mut again = requeued(request);
    let times = held.min(MAX_WAITS) as u32;
    let doublings = (held.saturating_sub(MAX_WAITS) / WAITS_PER_DOUBLING).min(MAX_DOUBLINGS) as u32;
    again.not_before =
        Some(cx.now() + FIRST_WAIT * (WAITS_PER_GROWTH + times) / WAITS_PER_GROWTH * (1 << doublings));
    again.set_meta(meta::AVOID_DUP_HELD, held + 1);
    OnRequest::Reschedule(Box::new(again))
}

fn domain_of(url: &Url) -> &str {
    registrable_domain(url).or(url.host_str()).unwrap_or_default()
}

impl std::fmt::Debug for AvoidDup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AvoidDup").field("marked", &self.0.marked).finish_non_exhaustive()
    }
}

impl Component for AvoidDup {
    const NAME: &'static str = "avoid_dup";
    type Settings = AvoidDupSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // In the spider chain, pages reach this middleware before any other, and requests after all others.
        hooks.downloader(200).spider(20).observer().persist().hand_over()
    }

    fn page_needs(&self) -> PageNeeds {
        PageNeeds { blocks: true, ..PageNeeds::default() }
    }
}

impl DownloaderMiddleware for AvoidDup {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        // The target of a redirect is the response to a request that was already judged.
        if !self.applies_to(request) || request.has_meta(meta::REDIRECT_URLS) {
            return Ok(OnRequest::Continue);
        }
        if let Model::Reference(gate) = &mut *self.model() {
            return Ok(Self::decide_as_reference(gate, request, cx));
        }
        let site = self.site_of(&request.url);
        self.revisit(&site, cx).await;
        Ok(match self.model().of(&site) {
            Some(predictor) => self.decide(predictor, &site, request, cx),
            None => OnRequest::Continue,
        })
    }

    async fn process_exception(&self, request: &Request, _: &FetchError, _: &Context) -> Result<OnException> {
        self.request_finished(&request.url);
        Ok(OnException::Pass)
    }
}

impl SpiderMiddleware for AvoidDup {
    fn process_start(&self, request: &mut Request, _: &Context) -> Result<OnFollow> {
        if let Model::Default(predictor) = &mut *self.model() {
            predictor.discover(&self.site_of(&request.url), &request.url, None);
        }
        Ok(OnFollow::Keep)
    }

    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        let is_text = matches!(page.kind(), PageKind::Html | PageKind::Xml | PageKind::Text | PageKind::Json);
        let is_learnt = page.response().status.is_success()
            && is_text
            && !page.request().is_sitemap()
            && (!self.0.marked || page.request().meta_flag(meta::AVOID_DUP_CONTENT));
        if !is_learnt {
            self.request_finished(&page.request().url);
            return Ok(OnPage::Parse);
        }
        if let Model::Reference(gate) = &mut *self.model() {
            gate.learn(page.url().as_str(), &text_of_body(page)?);
            cx.stats().inc("avoid_dup/learnt");
            return Ok(OnPage::Parse);
        }
        let text = text_of(page);
        let site: Arc<str> = self.site_of(page.url()).into();
        let is_here = |url: &Url| url.host_str() == page.url().host_str() || self.is_of_site(url, &site);
        let base = Some(page.base()).filter(|base| is_here(base));
        let links = LinkPlaces::of(page.anchors(), base, |address| page.join(address).filter(is_here));
        let open = self.0.open.open(Arc::clone(&site));
        let number = {
            let asked = self.site_of(&page.request().url);
            let mut model = self.model();
            let Some(predictor) = model.of(&asked) else { return Ok(OnPage::Parse) };
            predictor.request_finished(&asked, &page.request().url);
            let Some(predictor) = model.of(&site) else { return Ok(OnPage::Parse) };
            let number = predictor.learn(&site, page.url(), text);
            if let Some(named) = page.canonical().filter(is_here) {
                predictor.claim(&site, number, page.url(), &named);
            }
            predictor.link_all(&site, number, &links);
            if let Model::Shared(models) = &mut *model
                && models.store(&site)
            {
                cx.stats().inc("avoid_dup/not_handed_over");
            }
            number
        };
        cx.stats().inc("avoid_dup/learnt");
        page.extensions.insert(LearntPage {
            site,
            page: number,
            links: Arc::new(links),
            has_other_urls: Arc::default(),
            _open: Arc::new(open),
        });
        Ok(OnPage::Parse)
    }

    fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
        let learnt = page.extensions.get::<LearntPage>();
        match learnt.filter(|learnt| self.is_of_site(&request.url, &learnt.site)) {
            Some(LearntPage { site, page, links, has_other_urls, .. }) => {
                if let Some(predictor) = self.model().of(site) {
                    let mut links = links.contexts(&request.url, *page);
                    let first = links.next();
                    if first.is_none() {
                        has_other_urls.store(true, Ordering::Relaxed);
                    }
                    predictor.discover(site, &request.url, first);
                    links.for_each(|link| predictor.link(site, &request.url, link));
                }
            }
            None => {
                // In a shared crawl, the model of another site may be that of another node.
                if let Model::Default(predictor) = &mut *self.model() {
                    predictor.discover(&self.site_of(&request.url), &request.url, None);
                }
            }
        }
        Ok(OnFollow::Keep)
    }
}

impl Observer for AvoidDup {
    fn event(&self, event: &Event<'_>) {
        match event {
            // After a redirect or an error, the next request is a different one.
            Event::ResponseDownloaded { request, response } if response.status != StatusCode::OK => {
                if response.status.is_redirection()
                    && let Some(to) = response.headers.get(LOCATION)
                    && self.applies_to(request)
                {
                    self.learn_redirect(&request.url, to);
                }
                self.request_finished(&request.url);
            }
            // The callback has ended, so the links that it did not follow are known.
            Event::PageDelivered { found, .. } => {
                if let Some(LearntPage { site, page, links, has_other_urls, .. }) = found.get()
                    && !has_other_urls.load(Ordering::Relaxed)
                    && let Some(predictor) = self.model().of(site)
                {
                    predictor.refuse_others(site, *page, links);
                }
            }
            Event::RequestLeftDownloader { request, error: Some(_) } => self.request_finished(&request.url),
            // The request was dropped by a middleware between this one and the network.
            Event::RequestDropped(dropped) if dropped.component != Self::NAME => {
                if let Ok(url) = Url::parse(&dropped.url) {
                    self.request_finished(&url);
                }
            }
            _ => {}
        }
    }
}

/// The text of a page as the model reads it.
fn text_of(page: &Page) -> PageText {
    match page.kind() {
        PageKind::Html | PageKind::Xml => PageText::of_scan(page.url(), page.scanned().0),
        _ => PageText::of_page(page.url(), [(0, page.text())]),
    }
}

/// The text of all text nodes of the body, scripts and styles included, without separators: what MaybeDont compares.
fn text_of_body(page: &Page) -> Result<String> {
    if !page.kind().is_markup() {
        return Ok(page.text().to_owned());
    }
    let bodies = page.select("body")?;
    Ok(bodies.iter().map(Element::text).collect::<Vec<_>>().join("\n"))
}

/// Saves the model in the job: its observations, batch by batch.
impl Persist for AvoidDup {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        if let Model::Default(predictor) = &mut *self.model() {
            predictor.keep_journal();
            if let Some(state) = state {
                predictor.set_totals(serde_json::from_slice(state)?);
            }
        }
        Ok(())
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Ok(number) = key.try_into() {
            let next = u64::from_be_bytes(number).checked_add(1);
            let next = next
                .ok_or_else(|| Error::msg("the journal of AvoidDup is damaged: its numbers are used up"))?;
            let mut batches = self.0.batches.lock().unwrap_or_else(PoisonError::into_inner);
            *batches = (*batches).max(next);
        }
        if let Model::Default(predictor) = &mut *self.model() {
            predictor.restore(value)?;
        }
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        let Some(totals) = self.totals() else { return Ok(None) };
        let mut state = serde_json::to_value(totals)?;
        state["options"] = serde_json::to_value(&self.0.options)?;
        Ok(Some(serde_json::to_vec(&state)?))
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        let batch = match &mut *self.model() {
            Model::Default(predictor) => predictor.take_journal(),
            Model::Reference(_) | Model::Shared(_) => None,
        };
        let Some(batch) = batch else { return Ok(Vec::new()) };
        let mut batches = self.0.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let key = batches.to_be_bytes().to_vec();
        *batches += 1;
        Ok(vec![(key, Some(batch))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delayed_requests_come_by_probability_and_then_breadth_first_and_before_all_skipped_ones() {
        const LAST: u32 = (1 << 30) - 1;
        let in_order = [
            PRIORITY_DELAYED,
            priority_of_delayed(0, 1 << RANK_SHIFT),
            priority_of_delayed(51, 0),
            priority_of_delayed(51, 1 << 24),
            priority_of_delayed(51, LAST),
            priority_of_delayed(52, 0),
            priority_of_delayed(100, 0),
            priority_of_delayed(100, LAST),
            PRIORITY_SKIPPED,
            priority_of_ranked(0),
            priority_of_ranked(1),
            priority_of_ranked(LAST),
        ];
        assert!(in_order.is_sorted_by(|one, next| one > next), "{in_order:?}");
        assert_eq!(
            priority_of_ranked(LAST - 1) - 1,
            priority_of_ranked(LAST),
            "no two ranks share a priority"
        );
    }

    #[test]
    fn skipped_requests_of_a_job_of_the_version_before_are_ranked_anew() {
        // Its priorities were -2,000,000, and one less for each rank.
        let old = [-2_000_000, -2_000_001, -2_000_001 - (3 << 24)];
        assert!(old.into_iter().chain([PRIORITY_SKIPPED]).all(is_unranked));
        assert!(![0, 1, 1 << 29].into_iter().map(priority_of_ranked).any(is_unranked));
    }
}
