//! A check of links, and its result.

use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{
    CrawlReport, CrawlerBuilder, Downloader, Event, HttpDownloader, Layer, Layers, Profile, Result, Settings,
    Timestamp,
};
use huntsman_middleware::Defaults;
use serde::Serialize;
use serde_json::Value;
use url::Url;

use super::answer::{LinkOutcome, LinkState};
use super::cache::Cache;
use super::local::Files;
use super::options::LinkOptions;
use super::reference::{Reference, Target, is_mail_address};
use super::source::{Sources, UnreadSource};
use super::spider::{Found, LinkSpider};
use crate::page::without_fragment;
use crate::refusals::{Refusals, is_refusal};
use crate::site::Refused;

/// Redirects that are followed.
const MAX_HOPS: usize = 10;

/// A link with its result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CheckedLink {
    /// The link, and where it stands.
    #[serde(flatten)]
    pub reference: Reference,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: LinkOutcome,
}

/// The result of a check.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct LinkReport {
    /// All links, by source and place.
    pub links: Vec<CheckedLink>,
    /// Sources that could not be read.
    pub unread: Vec<UnreadSource>,
    /// The report of the crawl that asked for the URLs.
    #[serde(skip)]
    pub crawl: CrawlReport,
}

impl LinkReport {
    /// The links of a state.
    pub fn of(&self, state: LinkState) -> impl Iterator<Item = &CheckedLink> {
        self.links.iter().filter(move |link| link.outcome.state == state)
    }

    /// Whether no link is broken, and every source was read.
    pub fn is_good(&self) -> bool {
        self.unread.is_empty() && self.of(LinkState::Broken).next().is_none()
    }
}

/// A check of links that is being set up. Each URL is asked for once, as politely as by an audit: by HEAD, then by GET, and five seconds later
/// once more before it counts as broken.
///
/// ```
/// # use huntsman_testkit::{Reply, ScriptedDownloader};
/// use huntsman_audit::LinkState;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> huntsman_crawler::Result<()> {
/// # let web = ScriptedDownloader::pages([("https://site.example/", "<a href=/gone>Prices</a> <a href=#end>end</a><p id=end>")]);
/// let report = huntsman_audit::links(["https://site.example/"])?.downloader(web).run().await?;
/// let broken: Vec<&str> = report.of(LinkState::Broken).map(|link| link.reference.href.as_str()).collect();
/// assert_eq!(broken, ["/gone"]);
/// # Ok(()) }
/// ```
pub struct LinkCheck {
    sources: Sources,
    layers: Layers,
    options: Box<dyn FnOnce(LinkOptions) -> LinkOptions + Send>,
    downloader: Option<Install>,
}

type LinkCrawl = CrawlerBuilder<LinkSpider>;
type Install = Box<dyn FnOnce(LinkCrawl) -> LinkCrawl + Send>;

impl std::fmt::Debug for LinkCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkCheck").field("sources", &self.sources).finish_non_exhaustive()
    }
}

impl LinkCheck {
    pub(crate) fn new<S: AsRef<str>>(sources: &[S]) -> Result<Self> {
        let mut layers = Layers::default();
        layers.set_profile(Profile::Audit);
        for (name, value) in crate::settings() {
            layers.set(Layer::Command, name, value);
        }
        Ok(Self {
            sources: Sources::of(sources)?,
            layers,
            options: Box::new(|options| options),
            downloader: None,
        })
    }

    /// The URLs of pages among the sources.
    pub fn pages(&self) -> &[Url] {
        &self.sources.pages
    }

    /// Takes the settings from these layers, as a command has them. They should have those of [`settings`](crate::settings).
    pub fn layers(mut self, layers: Layers) -> Self {
        self.layers = layers;
        self
    }

    /// Sets a setting, as [`CrawlerBuilder::set`] does.
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.layers.set(Layer::Spider, name, value);
        self
    }

    /// Changes what settings do not name: `.options(|options| options.root_dir(Some("site".into())))`.
    pub fn options(mut self, change: impl FnOnce(LinkOptions) -> LinkOptions + Send + 'static) -> Self {
        self.options = Box::new(change);
        self
    }

    /// Fetches by another downloader than the HTTP client.
    pub fn downloader(mut self, downloader: impl Downloader) -> Self {
        self.downloader = Some(Box::new(move |builder| builder.downloader(downloader)));
        self
    }

    /// Reads the sources, asks for what they link to, and judges every link.
    ///
    /// # Errors
    /// A setting is wrong, the cache cannot be read or written, or the crawl broke off.
    pub async fn run(self) -> Result<LinkReport> {
        let settings = self.layers.resolve(&Defaults::settings_table())?;
        let options = Arc::new((self.options)(LinkOptions::from_settings(&settings)?));
        let now = Timestamp::wall();
        let cache = match &options.cache {
            Some(file) => Cache::read(file, options.max_age, now)?,
            None => Cache::default(),
        };
        let (mut references, unread) = self.sources.references(&options)?;
        let found = Arc::new(Mutex::new(Found::default()));
        let spider = LinkSpider::new(
            &references,
            &self.sources.pages,
            Arc::clone(&options),
            cache.clone(),
            Arc::clone(&found),
        );
        let drops = Arc::clone(&found);
        let builder = CrawlerBuilder::new(spider)
            .plugin(Defaults)
            .component(|settings: &Settings| Refusals::of_settings(settings).map(Some))
            .layers(self.layers);
        let builder = builder.observer(move |event: &Event<'_>| {
            if let Event::RequestDropped(drop) = event {
                // A status by which sites refuse robots, and that the client does not take as an answer.
                let is_refusal = drop.reason == "bad_response" && drop.status.is_some_and(is_refusal);
                let reason = if is_refusal { "refused".to_owned() } else { drop.reason.to_string() };
                let refused = Refused { reason, detail: drop.detail.clone() };
                let url =
                    Url::parse(&drop.url).map_or_else(|_| drop.url.clone(), |url| without_fragment(&url));
                let mut found = drops.lock().unwrap_or_else(PoisonError::into_inner);
                // That a host rests says less than how it failed before.
                match found.refused.get(&url) {
                    Some(known) if is_fault_of_host(&known.reason) && !is_fault_of_host(&refused.reason) => {}
                    _ => {
                        found.refused.insert(url, refused);
                    }
                }
            }
        });
        let builder = match self.downloader {
            Some(install) => install(builder),
            None => builder.downloader_with(HttpDownloader::new),
        };
        let crawl = builder.build()?.run().await?;
        let mut found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        references.append(&mut found.references);
        let judge = Judge { options, cache, found, files: Files::default(), sources: &self.sources };
        judge.report(references, unread, crawl, now)
    }
}

/// Judges references by what was found.
struct Judge<'a> {
    options: Arc<LinkOptions>,
    cache: Cache,
    found: Found,
    files: Files,
    sources: &'a Sources,
}

impl Judge<'_> {
    fn report(
        mut self,
        mut references: Vec<Reference>,
        mut unread: Vec<UnreadSource>,
        crawl: CrawlReport,
        now: Timestamp,
    ) -> Result<LinkReport> {
        references.sort();
        references.dedup();
        unread.extend(self.unread_pages());
        let links = references
            .into_iter()
            .map(|reference| CheckedLink { outcome: self.outcome(&reference.target), reference })
            .collect();
        if let Some(file) = &self.options.cache {
            let good = self.found.answers.values().filter(|answer| {
                Url::parse(&answer.url).is_ok_and(|url| self.options.accepts(&url, answer.status))
            });
            let mut cache = self.cache;
            good.for_each(|answer| cache.insert(answer.clone(), now));
            cache.write(file)?;
        }
        Ok(LinkReport { links, unread, crawl })
    }

    /// The pages among the sources that gave nothing to read.
    fn unread_pages(&self) -> Vec<UnreadSource> {
        let why = |url: &Url| match self.found.answers.get(&without_fragment(url)) {
            Some(answer) if (200..300).contains(&answer.status) => None,
            Some(answer) => Some(format!("the server answers {}", answer.status)),
            None => Some(self.refusal(url).reason.unwrap_or_else(|| "there was no answer".to_owned())),
        };
        self.sources
            .pages
            .iter()
            .filter_map(|url| Some(UnreadSource { source: url.to_string(), reason: why(url)? }))
            .collect()
    }

    fn outcome(&mut self, target: &Target) -> LinkOutcome {
        match target {
            Target::Web(url) if self.options.is_excluded(url) => {
                LinkOutcome::because(LinkState::Skipped, "excluded")
            }
            Target::Web(url) => self.web(url),
            Target::File(path, fragment) => {
                let fragment = fragment.as_deref().filter(|_| self.options.fragments);
                self.files.look_up(path, fragment)
            }
            Target::Mail(_) if !self.options.mail => LinkOutcome::of(LinkState::Skipped),
            Target::Mail(address) if is_mail_address(address) => LinkOutcome::of(LinkState::Good),
            Target::Mail(address) => {
                LinkOutcome::because(LinkState::Broken, format!("\"{address}\" is no e-mail address"))
            }
            Target::Unusable(reason) => LinkOutcome::because(LinkState::Broken, reason.clone()),
            Target::Other => LinkOutcome::of(LinkState::Skipped),
        }
    }

    /// The result of a URL, at the end of its redirects.
    fn web(&self, url: &Url) -> LinkOutcome {
        let mut current = url.clone();
        let mut is_permanent = false;
        for hop in 0..=MAX_HOPS {
            let name = without_fragment(&current);
            let answer = self.found.answers.get(&name).or_else(|| self.cache.get(&name));
            let target = answer.and_then(|answer| Url::parse(answer.redirect.as_ref()?).ok());
            if let (Some(answer), Some(mut target)) = (answer, target) {
                is_permanent |= hop == 0 && matches!(answer.status, 301 | 308);
                // A fragment stays as long as the target has none of its own.
                target.set_fragment(target.fragment().or(current.fragment()).map(str::to_owned).as_deref());
                current = target;
                continue;
            }
            let mut outcome = match answer {
                Some(answer) => answer.outcome(&current, &self.options),
                None => self.refusal(&current),
            };
            outcome.to = (hop > 0).then(|| without_fragment(&current));
            if is_permanent && outcome.state == LinkState::Good {
                outcome.state = LinkState::Redirected;
            }
            return outcome;
        }
        LinkOutcome::because(LinkState::Broken, "its redirects do not end")
    }

    /// The result of a URL without an answer.
    fn refusal(&self, url: &Url) -> LinkOutcome {
        let refused = |url: &str| self.found.refused.get(url);
        let Some(Refused { reason, detail }) = refused(&without_fragment(url)) else {
            return LinkOutcome::because(LinkState::Unverified, "the check ended before it was asked for");
        };
        let says = || detail.clone().unwrap_or_else(|| reason.replace('_', " "));
        match reason.as_str() {
            reason if is_fault_of_host(reason) || reason == "bad_response" => {
                LinkOutcome::because(LinkState::Broken, says())
            }
            "robots_unreachable" => {
                // A host that cannot be reached at all is the fault of its links.
                let robots = url.join("/robots.txt").ok();
                let robots = robots.filter(|robots| !self.found.answers.contains_key(robots.as_str()));
                let robots = robots.and_then(|robots| refused(robots.as_str()));
                match robots.filter(|robots| is_fault_of_host(&robots.reason)) {
                    Some(Refused { reason, detail }) => LinkOutcome::because(
                        LinkState::Broken,
                        detail.clone().unwrap_or_else(|| reason.clone()),
                    ),
                    None => LinkOutcome::because(
                        LinkState::Unverified,
                        "the robots.txt of the host cannot be had",
                    ),
                }
            }
            "robots" => {
                LinkOutcome::because(LinkState::Unverified, format!("robots.txt forbids it: {}", says()))
            }
            // There was an answer, but its content is not wanted.
            "content_type" | "too_large" => LinkOutcome::of(LinkState::Good),
            _ => LinkOutcome::because(LinkState::Unverified, says()),
        }
    }
}

/// Whether there was no connection for this reason.
fn is_fault_of_host(reason: &str) -> bool {
    matches!(reason, "dns" | "connect" | "tls" | "connection_reset")
}
