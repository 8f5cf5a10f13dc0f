//! The predictor: models of many sites, the links between their pages, and the rules by which URLs were skipped.

use std::borrow::Cow;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::estimate::Explorations;
use super::journal::{Event, Journal};
use super::links::LinkPlaces;
use super::overrides::Overrides;
use super::page::PageText;
use super::rows::{Row, TEST, UNTESTED};
use super::shape::{HOST, Mix, Name, RawSlot, SLASH, raw_slots};
use super::site::{Kinship, LINKS, LinkContext, Prediction, Scope, Site, TestedRow};
use super::target::Target;
use super::tie::Tie;
use super::totals::Totals;

mod decision;
mod explain;
mod options;
mod picture;
mod rule;

pub use decision::{Attempt, Decision, Reason};
use explain::first_part;
pub use options::Options;
use picture::Tallies;
pub use picture::{Picture, TemplateCounts, TemplatePicture};
pub use rule::Rule;

/// The most links that are remembered until the pages to which they lead are learnt.
const MAX_LINKS: usize = 1_000_000;
/// The most names of parameters that are remembered for explanations.
const MAX_NAMES: usize = 10_000;
/// The most pages of all sites that are remembered: about 1.1 GB. Later ones are judged but not learnt.
const MAX_PAGES: u64 = 1_000_000;
/// The most rules that are remembered.
const MAX_RULES: usize = 10_000;
/// The most redirects that are remembered until their target is learnt.
const MAX_REDIRECTS: usize = 100_000;
/// The lower bits of ranks that matter less than the order of the queue.
const RANK_SHIFT: u32 = 34;
/// The most requests on hold that are remembered.
const MAX_HELD: usize = 100_000;
/// The most links of a page that are noted as not followed: enough for the share of them on the page.
const REFUSED_OF_PAGE: usize = 256;
/// The most URLs in [`told_refused`](Predictor::told_refused); then it begins anew.
const MAX_TOLD_REFUSED: usize = 65_536;
/// The most redirects to one page that are remembered.
const REDIRECTS_OF_PAGE: usize = 8;
/// After this many explorations of a rule without new content, the explored share has halved, if it may fall.
const HALF_LIFE: f64 = 20.0;

/// A parameter that does not change the content of a site's pages.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleParameter {
    /// The site: a host, or the name that the caller uses for it.
    pub site: String,
    /// The name of the parameter.
    pub parameter: String,
    /// The pages that tested it.
    pub evidence: Row,
}

/// An explored URL: the row by which it would have been skipped, and the share with which it was drawn.
#[derive(Clone, Copy, Debug)]
struct Exploration {
    key: (u64, u64),
    share: f64,
}

/// A URL that was to be fetched.
#[derive(Clone, Debug)]
struct Tested {
    /// The hash of the URL.
    url: u64,
    /// The row that it tests.
    row: TestedRow,
    /// As the model of this version sees it.
    target: Target,
    version: u64,
}

/// Learns which parts of URLs do not change the content, and predicts which URLs would bring nothing new.
///
/// The caller defines a site: a host, or a registrable domain; nothing is shared between sites. The result depends only on the order of
/// calls: the same calls give the same answers, and so does a [`restore`](Self::restore)d predictor.
///
/// Memory: 1.0 to 1.2 KB per page, and 4 to 6 KB more for the first 2,000 pages of a site, within
/// [`learning_bytes`](Options::learning_bytes). For pages of 250 to 700 words a [`PageText`] takes some 20 to 40 us, `learn` takes 20 to 40
/// us, and 0.1 ms with all rebuilds; `decide` takes some 10 us.
///
/// ```
/// use huntsman_detect::avoid::{Attempt, Decision, Options, PageText, Predictor};
/// use url::Url;
///
/// let mut predictor = Predictor::new(Options { warmup: 0, ..Options::default() });
/// for n in 0..60 {
///     let words = format!("what article {n} says, in more than a few words, {n} {n} and then {n} again and so on");
///     for session in 0..2 {
///         let url = Url::parse(&format!("https://h.example/article?id={n}&sid={n}{session}")).unwrap();
///         predictor.discover("h.example", &url, None);
///         predictor.learn("h.example", &url, PageText::of([(1, words.as_str())]));
///     }
/// }
/// let url = Url::parse("https://h.example/article?id=7&sid=new").unwrap();
/// let Decision::Skip(reason) = predictor.decide("h.example", &url, Attempt::Regular) else { panic!("it is known") };
/// assert!(reason.to_string().starts_with("\"sid\" does not matter"), "{reason}");
/// ```
#[derive(Debug, Default)]
pub struct Predictor {
    options: Options,
    overrides: Overrides,
    sites: HashMap<String, Site>,
    /// Links by the hash of the URL to which they lead.
    links: HashMap<u64, SmallVec<[LinkContext; LINKS]>>,
    names: HashMap<Name, Box<str>>,
    /// By the slot of the first part of a split value, the parameter.
    heads: HashMap<Name, Name>,
    rules: HashMap<(u64, u64), Rule>,
    tallies: Tallies,
    /// Explored URLs in flight.
    exploring: HashMap<u64, Exploration>,
    /// By the hash of a URL that is not yet learnt, the URLs that redirected to it.
    redirects: HashMap<u64, Vec<Url>>,
    /// The hashes of URLs that the model of their site was told not to be followed. Many pages have the same such links, and this is faster than to take
    /// their URLs apart again.
    told_refused: HashSet<u64>,
    /// The last URL that was to be fetched.
    tested: Option<Tested>,
    /// By the hashes of URLs on hold, and whether they were skipped before, the versions of their sites at which they were decided.
    held: HashMap<(u64, bool), u64>,
    totals: Totals,
    /// The number of pages that were learnt.
    pages: u64,
    /// Bytes of the texts that are kept for relearning.
    log_bytes: usize,
    pub(crate) journal: Journal,
}

impl Predictor {
    /// A predictor without any knowledge.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Sets the user's overrides about slots. Must be called before anything is learnt.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Records a URL that was found and may be fetched, with the link on a learnt page that led to it, if any.
    pub fn discover(&mut self, site: &str, url: &Url, link: Option<LinkContext>) {
        self.discover_hashed(site, url, hash_of(url), link);
    }

    fn discover_hashed(&mut self, site: &str, url: &Url, hash: u64, link: Option<LinkContext>) {
        if self.links.contains_key(&hash) {
            if let Some(link) = link {
                self.link_found(site, url.as_str(), hash, link);
            }
            return;
        }
        if self.links.len() >= MAX_LINKS {
            return;
        }
        self.links.insert(hash, link.into_iter().collect());
        self.journal.add(|| Event::Discover { site: site.into(), url: url.as_str().into(), link });
        if let Some(link) = link {
            self.site(site).find(hash, link.page);
        }
        let raw = self.slots_of(url);
        let model = self.site(site);
        let before = model.log_bytes();
        model.discover(raw, link.map(|link| link.page));
        let grown = model.log_bytes() - before;
        self.log_bytes += grown;
        if self.log_bytes > self.options.learning_bytes {
            self.freeze_largest();
        }
    }

    /// Records a link to a URL that was found and is not learnt, if it was: then the place of the link is new, or that of too many. Else it may be a way to
    /// a URL that was learnt.
    fn link_found(&mut self, site: &str, url: &str, hash: u64, link: LinkContext) {
        let Some(links) =
            self.links.get_mut(&hash).filter(|links| links.len() < LINKS && !links.contains(&link))
        else {
            return self.link_known(site, url, hash, link);
        };
        links.push(link);
        if !self.held.is_empty() {
            self.held.remove(&(hash, false));
            self.held.remove(&(hash, true));
        }
        self.journal.add(|| Event::Discover { site: site.into(), url: url.into(), link: Some(link) });
        self.site(site).find(hash, link.page);
    }

    /// Records another link to a URL that was found before: its position may be evidence, and a URL to which several pages link is not lost with one
    /// of them. Does nothing if the URL was never found.
    pub fn link(&mut self, site: &str, url: &Url, link: LinkContext) {
        self.link_found(site, url.as_str(), hash_of(url), link);
    }

    /// Records all links of the page with this number, which was learnt, as [`link`](Self::link) does.
    pub fn link_all(&mut self, site: &str, page: u32, links: &LinkPlaces) {
        for (url, hash, places) in links.linked() {
            for position in places {
                self.link_found(site, url, hash, LinkContext { page, position: *position });
            }
        }
    }

    /// Records that the crawl follows those links of a page whose URLs were [discovered](Self::discover), and no others. `page` is the number of the page, and
    /// `links` has all its links. Skipped pages are not fetched for links that are not followed. But if no link of such pages was followed so far, one page is
    /// fetched for each form of their links to the same host, because a crawl with a limit of depth or pages follows those near its start.
    ///
    /// Call it once all links of the page that are followed were discovered. It takes a lookup for each link, and some us for each new URL that is not followed;
    /// the first 256 of these on a page are noted, and 262,144 of a site.
    pub fn refuse_others(&mut self, site: &str, page: u32, links: &LinkPlaces) {
        let Some(model) = self.sites.get(site) else { return };
        let is_news = |hash: u64| {
            !self.links.contains_key(&hash) && !self.told_refused.contains(&hash) && !model.may_be_found(hash)
        };
        let others = links.linked().filter(|(_, hash, _)| is_news(*hash)).take(REFUSED_OF_PAGE);
        let others: Vec<(u64, &str)> = others.map(|(url, hash, _)| (hash, url)).collect();
        for (hash, url) in others {
            if self.told_refused.len() >= MAX_TOLD_REFUSED {
                self.told_refused.clear();
            }
            self.told_refused.insert(hash);
            if let Ok(url) = Url::parse(url) {
                self.refuse(site, &url, page);
            }
        }
    }

    /// The URL of a page of a site that is to be fetched again, because pages differ in so few places that their text may change from visit to visit; each
    /// once, and one or three of a site, or up to six if some fail. The text is then given to [`fetched_again`](Self::fetched_again).
    pub fn next_again(&mut self, site: &str) -> Option<Url> {
        let model = self.sites.get_mut(site)?;
        let page = model.next_again()?;
        model.url_of(page).and_then(|url| Url::parse(url).ok())
    }

    /// Compares a page that was fetched again, whose URL was the same at the first visit, with what it was then. Places of pages of the site whose text changes
    /// are no content from then on.
    pub fn fetched_again(&mut self, site: &str, url: &Url, text: &PageText) {
        self.journal.add(|| Event::FetchedAgain {
            site: site.into(),
            url: url.as_str().into(),
            text: Cow::Borrowed(text),
        });
        let raw = raw_slots(url, &self.overrides);
        let model = self.site(site);
        let before = model.log_bytes();
        model.fetched_again(&raw, text);
        let after = model.log_bytes();
        self.log_bytes = (self.log_bytes + after).saturating_sub(before);
    }

    fn refuse(&mut self, site: &str, url: &Url, page: u32) {
        let raw = raw_slots(url, &self.overrides);
        if self.site(site).refuse(&raw, page) {
            self.journal.add(|| Event::Refuse { site: site.into(), url: url.as_str().into(), page });
        }
    }

    /// Records a link to a URL that was learnt, or of which the places of links are known.
    fn link_known(&mut self, site: &str, url: &str, hash: u64, link: LinkContext) {
        if self.sites.get_mut(site).is_some_and(|model| model.link(hash, link.page)) {
            let page = link.page;
            self.journal.add(|| Event::Link { site: site.into(), url: url.into(), page });
        }
    }

    /// The rank that a URL would have in a breadth-first crawl, by the links that are known: 0 for a start URL, below 2^30. It is a number of links from the
    /// start, and then the places of the links on the way.
    ///
    /// Delayed requests of one probability, and skipped ones, are best asked for again in this order. Where a crawl ends at some distance, what a skipped page links to is fetched only if the
    /// page is near enough.
    pub fn rank(&self, site: &str, url: &Url) -> u32 {
        self.sites.get(site).map_or(0, |model| (model.rank(hash_of(url)) >> RANK_SHIFT) as u32)
    }

    /// A number that changes whenever a page of the site is learnt or a request to it ends.
    pub fn version(&self, site: &str) -> u64 {
        self.sites.get(site).map_or(0, Site::version)
    }

    /// Whether a request to the site is in flight.
    pub fn has_requests_in_flight(&self, site: &str) -> bool {
        self.sites.get(site).is_some_and(Site::has_requests_in_flight)
    }

    /// Decides what to do with a request.
    ///
    /// A caller that fetches it must report that with [`request_started`](Self::request_started).
    pub fn decide(&mut self, site: &str, url: &Url, attempt: Attempt) -> Decision {
        let is_last = attempt != Attempt::Regular;
        let Some(model) = self.sites.get(site) else { return Decision::Fetch };
        let is_warm = self.is_warm(model);
        let hash = hash_of(url);
        let version = model.version();
        if self.held.get(&(hash, is_last)) == Some(&version) {
            return Decision::Hold;
        }
        self.held.remove(&(hash, is_last));
        let raw = raw_slots(url, &self.overrides);
        let links = self.links.get(&hash).map(SmallVec::as_slice).unwrap_or_default();
        if is_last && model.is_reopened(&raw) {
            return Decision::Fetch;
        }
        let target = model.target(&raw);
        let prediction = model.predict(&raw, &target, links, is_warm);
        let Options { threshold, min_evidence, seed, .. } = self.options;
        let is_pinned = prediction.kinship == Some(Kinship::Pinned);
        if prediction.probability > threshold && (is_warm || is_pinned) {
            let reason = self.reason(site, url, &prediction);
            let key = (xxh3_64(site.as_bytes()), prediction.key);
            let is_given_back = is_last && !is_pinned && {
                let led = model.share_of_leads(prediction.key, &target) > 1.0 - threshold;
                led || self.test_forms(site, url, &raw) || self.site(site).is_nearest(hash, prediction.key)
            };
            if is_given_back {
                self.totals.explored += 1;
                self.count_explored(key, &prediction, site, url, &reason);
                return Decision::Explore(reason);
            }
            if attempt == Attempt::Waiting && !is_pinned {
                return Decision::Hold;
            }
            if is_last || is_pinned {
                self.count(site, url, key, &prediction, &reason);
                return Decision::Drop(reason);
            }
            let share = self.share_explored(key);
            if is_explored(url, seed, share) {
                self.exploring.insert(hash, Exploration { key, share });
                self.totals.explored += 1;
                self.count_explored(key, &prediction, site, url, &reason);
                return Decision::Explore(reason);
            }
            self.journal.add(|| Event::Skip {
                site: site.into(),
                url: url.as_str().into(),
                row: prediction.key,
            });
            self.site(site).skip(&raw, prediction.key, threshold);
            if let Some(page) = prediction.page
                && self.site(site).has_content_of(hash, page)
            {
                self.journal.add(|| Event::Same { site: site.into(), url: url.as_str().into(), page });
            }
            return Decision::Skip(reason);
        }
        // A row that still needs evidence is tested first: once it has enough, the others need not be fetched at all.
        let may_wait = !is_last && prediction.probability > TEST;
        let tested_row = TestedRow { key: prediction.key, template: prediction.template, is_test: may_wait };
        let model = self.site(site);
        let is_held = prediction.hold
            || (may_wait && model.has_tests_in_flight(tested_row))
            || model.may_be_settled(&target, prediction.probability);
        let has_enough_tests = model.has_enough_tests();
        let distance = (!is_held && is_warm && !is_last).then(|| model.distance(&target)).flatten();
        if is_held {
            if self.held.len() >= MAX_HELD {
                self.held.clear();
            }
            self.held.insert((hash, is_last), version);
            return Decision::Hold;
        }
        // A page that may be a copy waits for those that cannot be one: then its test says more, and more often none is needed.
        let is_tested = prediction.probability > UNTESTED && prediction.row.total() >= min_evidence;
        let delay = match may_wait && (is_tested || has_enough_tests) {
            true => Some(prediction.probability),
            false => distance.map(nearness),
        };
        self.tested = Some(Tested { url: hash, row: tested_row, version, target });
        delay.map_or(Decision::Fetch, |probability| Decision::Delay { probability })
    }

    /// Whether so many pages of a site were learnt that its URLs may be skipped.
    fn is_warm(&self, model: &Site) -> bool {
        model.pages() >= self.options.warmup
    }

    /// Whether a skipped page is fetched all the same, because it may have links that no other page has; see [`Site::test_forms`].
    fn test_forms(&mut self, site: &str, url: &Url, raw: &[RawSlot]) -> bool {
        let threshold = self.options.threshold;
        if self.site(site).order_pages() {
            // The order is that of this moment, so a restart makes it at the same one.
            self.journal.add(|| Event::Order { site: site.into() });
        }
        let is_worth = self.site(site).test_forms(hash_of(url), raw, threshold);
        if is_worth {
            self.journal.add(|| Event::GiveBack { site: site.into(), url: url.as_str().into() });
        }
        is_worth
    }

    /// The current prediction for a URL, if there is one.
    pub fn explain(&self, site: &str, url: &Url) -> Option<Reason> {
        let links = self.links.get(&hash_of(url)).map(SmallVec::as_slice).unwrap_or_default();
        let (model, raw) = (self.sites.get(site)?, raw_slots(url, &self.overrides));
        let prediction = model.predict(&raw, &model.target(&raw), links, self.is_warm(model));
        prediction.kinship?;
        Some(self.reason(site, url, &prediction))
    }

    /// All relations of a URL to pages that were learnt.
    pub(crate) fn ties(&self, site: &str, url: &Url) -> Vec<Tie> {
        let links = self.links.get(&hash_of(url)).map(SmallVec::as_slice).unwrap_or_default();
        let Some(model) = self.sites.get(site) else { return Vec::new() };
        let mut ties = model.ties(&raw_slots(url, &self.overrides), links);
        for tie in &mut ties {
            tie.passes = tie.probability > self.options.threshold;
            tie.names = tie.dropped.iter().map(|name| self.name(*name)).collect();
        }
        ties
    }

    /// Whether a page has a content that can be compared.
    pub(crate) fn has_content(&self, site: &str, page: u32) -> bool {
        self.sites.get(site).is_some_and(|model| model.content(page).is_some())
    }

    /// Whether the model takes two pages for the same.
    pub(crate) fn shows_the_same(&self, site: &str, one: u32, other: u32) -> bool {
        self.sites.get(site).is_some_and(|model| model.shows_the_same(one, other))
    }

    /// Records that a request is in flight.
    pub fn request_started(&mut self, site: &str, url: &Url) {
        let hash = hash_of(url);
        let tested = self.tested.take().filter(|tested| tested.url == hash);
        let row = tested.as_ref().map(|tested| tested.row).unwrap_or_default();
        self.count_not_believed(site, url, row.key);
        let raw = || raw_slots(url, &self.overrides);
        let Some(model) = self.sites.get_mut(site) else {
            let raw = raw();
            let model = self.site(site);
            return model.request_started(hash, model.target(&raw), row);
        };
        let target = tested.filter(|tested| tested.version == model.version()).map(|tested| tested.target);
        let target = target.unwrap_or_else(|| model.target(&raw()));
        model.request_started(hash, target, row);
    }

    /// Records that a request is no longer in flight, whatever its result.
    pub fn request_finished(&mut self, site: &str, url: &Url) {
        if let Some(model) = self.sites.get_mut(site) {
            model.request_finished(hash_of(url));
        }
    }

    /// Learns from a page that was fetched, and returns its number on its site, for [`LinkContext`]. Beyond a million pages nothing more is
    /// learnt, and the number belongs to no page.
    pub fn learn(&mut self, site: &str, url: &Url, text: PageText) -> u32 {
        let hash = hash_of(url);
        let links = self.links.remove(&hash).unwrap_or_default();
        if self.pages >= MAX_PAGES {
            self.exploring.remove(&hash);
            return u32::MAX;
        }
        let raw = self.slots_of(url);
        let model = self
            .sites
            .entry_ref(site)
            .or_insert_with(|| Site::new(self.options.min_evidence, !self.overrides.pinned.is_empty()));
        let (number, is_new) = match model.texts(&text) {
            Some(texts) => {
                self.journal.add(|| Event::LearnTexts {
                    site: site.into(),
                    url: url.as_str().into(),
                    texts: texts.clone(),
                });
                model.learn_texts(&raw, texts, &links)
            }
            None => {
                self.journal.add(|| Event::Learn {
                    site: site.into(),
                    url: url.as_str().into(),
                    text: Cow::Borrowed(&text),
                });
                let before = model.log_bytes();
                let learnt = model.learn(raw, text, &links);
                self.log_bytes = (self.log_bytes + model.log_bytes()).saturating_sub(before);
                learnt
            }
        };
        if self.log_bytes > self.options.learning_bytes {
            self.freeze_largest();
        }
        self.learnt(site, url, number, is_new);
        number
    }

    /// Frees memory. The sites with the most text for relearning are frozen first, because they know most by now.
    /// Keeps at most this many bytes for relearning from now on; see [`Options::learning_bytes`].
    pub fn limit_learning(&mut self, bytes: usize) {
        self.options.learning_bytes = bytes;
        if self.log_bytes > bytes {
            self.freeze_largest();
        }
    }

    fn freeze_largest(&mut self) {
        let left = self.options.learning_bytes / 4 * 3;
        let mut sites: Vec<(&String, &mut Site)> =
            self.sites.iter_mut().filter(|(_, site)| site.log_bytes() > 0).collect();
        // Sorted by name as well, because a restart must freeze the same sites.
        sites.sort_by(|(a, one), (b, other)| other.log_bytes().cmp(&one.log_bytes()).then_with(|| a.cmp(b)));
        for (_, site) in sites {
            if self.log_bytes <= left {
                return;
            }
            self.log_bytes = self.log_bytes.saturating_sub(site.log_bytes());
            site.freeze();
        }
    }

    fn learnt(&mut self, site: &str, url: &Url, number: u32, is_new: bool) {
        self.pages += 1;
        self.totals.learnt += 1;
        // A rebuild groups pages by content again; then other pages may represent the contents.
        if is_new || number < super::site::LOG as u32 || !self.overrides.pinned.is_empty() {
            self.site(site).keep_url(number, url.as_str());
        } else {
            self.keep_example(number, url, site);
        }
        self.record_exploration(url, is_new);
        self.site(site).is_page_of(number, hash_of(url));
        if is_new {
            self.site(site).has_new_content(hash_of(url));
        } else if let Some(first) = self.site(site).first_page_like(number) {
            self.site(site).has_content_of(hash_of(url), first);
        }
        let mut learnt = vec![url.clone()];
        while let Some(to) = learnt.pop() {
            for from in self.redirects.remove(&hash_of(&to)).unwrap_or_default() {
                self.record_exploration(&from, is_new);
                if is_new {
                    self.site(site).has_new_content(hash_of(&from));
                }
                let raw = raw_slots(&from, &self.overrides);
                self.site(site).came(&raw, is_new);
                self.alias(site, &from, &to);
                learnt.push(from);
            }
        }
    }

    fn record_exploration(&mut self, url: &Url, is_new: bool) {
        if let Some(Exploration { key, share }) = self.exploring.remove(&hash_of(url)) {
            self.totals.add_explored(share, is_new);
            if let Some(rule) = self.rules.get_mut(&key) {
                rule.explorations.add(share, is_new);
                rule.lost += u64::from(is_new);
            }
        }
    }

    /// The share of the skips by a rule that are fetched nevertheless.
    fn share_explored(&self, key: (u64, u64)) -> f64 {
        let Options { exploration, exploration_min, .. } = self.options;
        let Some(least) = exploration_min else { return exploration };
        let clean = self.rules.get(&key).filter(|rule| rule.lost == 0).map_or(0, |rule| rule.explored);
        (exploration * HALF_LIFE / (HALF_LIFE + clean as f64)).max(least.min(exploration))
    }

    /// Records that a URL redirects to another one of its site. Both have the same content, whether the target was learnt before or will
    /// be.
    pub fn redirect(&mut self, site: &str, from: &Url, to: &Url) {
        let (of_from, of_to) = (hash_of(from), hash_of(to));
        if of_from == of_to {
            return;
        }
        self.journal.add(|| Event::Redirect {
            site: site.into(),
            from: from.as_str().into(),
            to: to.as_str().into(),
        });
        let is_known = self.sites.get(site).is_some_and(|model| model.knows(&raw_slots(to, &self.overrides)));
        if is_known {
            self.record_exploration(from, false);
            self.alias(site, from, to);
        } else if self.redirects.len() < MAX_REDIRECTS || self.redirects.contains_key(&of_to) {
            let led = self.redirects.entry(of_to).or_default();
            if led.len() < REDIRECTS_OF_PAGE && led.iter().all(|url| hash_of(url) != of_from) {
                led.push(from.clone());
            }
        }
    }

    fn alias(&mut self, site: &str, from: &Url, to: &Url) {
        let links = self.links.remove(&hash_of(from)).unwrap_or_default();
        let raw = self.slots_of(from);
        let page = raw_slots(to, &self.overrides);
        let model = self.site(site);
        let before = model.log_bytes();
        model.alias(raw, page, &links);
        let grown = model.log_bytes().saturating_sub(before);
        self.log_bytes += grown;
    }

    /// Records that the page with this number, which was learnt just now, names a URL of its site as its own address (`rel=canonical`).
    /// This is only a claim: the URL is skipped once such claims of pages of this kind were found to be true.
    pub fn claim(&mut self, site: &str, page: u32, url: &Url, named: &Url) {
        if hash_of(url) == hash_of(named) {
            return;
        }
        self.journal.add(|| Event::Claim {
            site: site.into(),
            page,
            url: url.as_str().into(),
            named: named.as_str().into(),
        });
        let raw = raw_slots(url, &self.overrides);
        let named = raw_slots(named, &self.overrides);
        let model = self.site(site);
        let before = model.log_bytes();
        model.claim(page, &raw, named);
        let grown = model.log_bytes().saturating_sub(before);
        self.log_bytes += grown;
    }

    /// The parameters against which no page gave evidence, with their evidence: at least 20 observations for them, and none against. They
    /// may be stripped from the canonical form of the URLs of their site.
    pub fn idle_parameters(&self) -> Vec<IdleParameter> {
        let mut idle = Vec::new();
        for (site, model) in &self.sites {
            for (name, label) in &self.names {
                if let Some(evidence) = model.idle_evidence(*name) {
                    idle.push(IdleParameter { site: site.clone(), parameter: label.to_string(), evidence });
                }
            }
        }
        idle.sort_by(|a, b| (&a.site, &a.parameter).cmp(&(&b.site, &b.parameter)));
        idle
    }

    /// The rules by which requests were skipped, the most used first.
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.rules.values().filter(|rule| rule.is_used()).cloned().collect();
        rules.sort_by(|a, b| b.skipped.cmp(&a.skipped).then_with(|| a.rule.cmp(&b.rule)));
        rules
    }

    /// Sets the totals from which counting continues.
    pub fn set_totals(&mut self, totals: Totals) {
        self.totals = totals;
    }

    /// The totals of the crawl.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Bytes of texts and URLs that are kept for relearning. They are bounded for any sites.
    pub fn relearning_bytes(&self) -> usize {
        self.log_bytes
    }

    /// Replays an event of a journal.
    pub(crate) fn apply(&mut self, event: Event<'_>) {
        match event {
            Event::Discover { site, url, link } => {
                if let Ok(url) = Url::parse(&url) {
                    self.discover(&site, &url, link);
                }
            }
            Event::Link { site, url, page } => {
                if let Ok(url) = Url::parse(&url) {
                    self.site(&site).link(hash_of(&url), page);
                }
            }
            Event::Same { site, url, page } => {
                if let Ok(url) = Url::parse(&url) {
                    self.site(&site).has_content_of(hash_of(&url), page);
                }
            }
            Event::Learn { site, url, text } => {
                if let Ok(url) = Url::parse(&url) {
                    self.learn(&site, &url, text.into_owned());
                }
            }
            Event::LearnTexts { site, url, texts } => {
                if let Ok(url) = Url::parse(&url) {
                    let links = self.links.remove(&hash_of(&url)).unwrap_or_default();
                    let raw = raw_slots(&url, &self.overrides);
                    let model = self.site(&site);
                    // Relearning had ended then; what this version counts as its memory may be less.
                    let freed = if model.is_frozen() { 0 } else { model.log_bytes() };
                    if !model.is_frozen() {
                        model.freeze();
                    }
                    let (number, is_new) = model.learn_texts(&raw, texts, &links);
                    self.log_bytes = self.log_bytes.saturating_sub(freed);
                    self.learnt(&site, &url, number, is_new);
                }
            }
            Event::FetchedAgain { site, url, text } => {
                if let Ok(url) = Url::parse(&url) {
                    self.fetched_again(&site, &url, &text);
                }
            }
            Event::Refuse { site, url, page } => {
                if let Ok(url) = Url::parse(&url) {
                    self.refuse(&site, &url, page);
                }
            }
            Event::Order { site } => {
                self.site(&site).order_pages();
            }
            Event::GiveBack { site, url } => {
                if let Ok(url) = Url::parse(&url) {
                    let raw = raw_slots(&url, &self.overrides);
                    self.test_forms(&site, &url, &raw);
                }
            }
            Event::Skip { site, url, row } => {
                if let Ok(url) = Url::parse(&url) {
                    let raw = raw_slots(&url, &self.overrides);
                    let threshold = self.options.threshold;
                    self.site(&site).skip(&raw, row, threshold);
                }
            }
            Event::Redirect { site, from, to } => {
                if let (Ok(from), Ok(to)) = (Url::parse(&from), Url::parse(&to)) {
                    self.redirect(&site, &from, &to);
                }
            }
            Event::Claim { site, page, url, named } => {
                if let (Ok(url), Ok(named)) = (Url::parse(&url), Url::parse(&named)) {
                    self.claim(&site, page, &url, &named);
                }
            }
        }
    }

    fn site(&mut self, site: &str) -> &mut Site {
        self.sites
            .entry_ref(site)
            .or_insert_with(|| Site::new(self.options.min_evidence, !self.overrides.pinned.is_empty()))
    }

    /// The slots of a URL; their names are remembered for explanations.
    fn slots_of(&mut self, url: &Url) -> Vec<RawSlot> {
        let raw = raw_slots(url, &self.overrides);
        for slot in raw.iter().filter(|slot| slot.name.is_parameter()) {
            if self.names.len() < MAX_NAMES && !self.names.contains_key(&slot.name) {
                self.names.insert(slot.name, slot.label.as_str().into());
                self.heads.insert(Name::head(&slot.label), slot.name);
            }
        }
        raw
    }

    fn name(&self, name: Name) -> String {
        match self.names.get(&name) {
            Some(label) => label.to_string(),
            None if name == HOST => "host".to_owned(),
            None if name.is_segment() => match name.segments_above() {
                Some(above) => format!("/{above}/..."),
                None if name == SLASH => "slash at the end".to_owned(),
                None => format!("/{}", name.0),
            },
            None => match self.heads.get(&name).and_then(|whole| self.names.get(whole)) {
                Some(label) => first_part(label),
                None => format!("parameter {:x}", name.0),
            },
        }
    }

    fn reason(&self, site: &str, url: &Url, prediction: &Prediction) -> Reason {
        let kinship = prediction.kinship.unwrap_or(Kinship::Changed);
        let names: Vec<String> = prediction.dropped.iter().map(|name| self.name(*name)).collect();
        let rule = in_words(kinship, prediction.scope, &names, url);
        let equals = prediction.page.and_then(|page| self.sites.get(site)?.url_of(page));
        Reason {
            probability: prediction.probability,
            kinship,
            rule,
            evidence: prediction.row,
            equals: equals.map(str::to_owned),
        }
    }

    fn rule(
        &mut self,
        site: &str,
        url: &Url,
        key: (u64, u64),
        prediction: &Prediction,
        reason: &Reason,
    ) -> Option<&mut Rule> {
        if self.rules.len() >= MAX_RULES && !self.rules.contains_key(&key) {
            return None;
        }
        let dropped = prediction.dropped.iter().map(|name| self.name(*name)).collect();
        let new = Rule {
            site: site.to_owned(),
            rule: reason.rule.clone(),
            kinship: reason.kinship,
            dropped,
            evidence: prediction.row,
            skipped: 0,
            explored: 0,
            lost: 0,
            fetched: 0,
            example: url.to_string(),
            key: prediction.key,
            explorations: Explorations::default(),
        };
        let rule = self.rules.entry(key).or_insert_with(|| new.clone());
        rule.evidence = prediction.row;
        if !rule.is_used() {
            // So far it was only tried; the example of a rule is a URL that was skipped by it.
            *rule = Rule { fetched: rule.fetched, ..new };
        }
        Some(rule)
    }

    fn count(&mut self, site: &str, url: &Url, key: (u64, u64), prediction: &Prediction, reason: &Reason) {
        self.totals.skipped += 1;
        self.tally(site, url, false);
        if let Some(rule) = self.rule(site, url, key, prediction, reason) {
            rule.skipped += 1;
        }
    }

    fn count_explored(
        &mut self,
        key: (u64, u64),
        prediction: &Prediction,
        site: &str,
        url: &Url,
        reason: &Reason,
    ) {
        self.tally(site, url, true);
        if let Some(rule) = self.rule(site, url, key, prediction, reason) {
            rule.explored += 1;
        }
    }
}

/// The rule of a relation that ignores the slots with these names, as text.
fn in_words(kinship: Kinship, scope: Scope, names: &[String], url: &Url) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.escape_debug())).collect();
    let names = quoted.join(", ");
    let path = url.path().escape_debug();
    match kinship {
        Kinship::Changed if quoted.len() == 1 => format!("{names} does not matter"),
        Kinship::Changed => format!("{names} do not matter together"),
        Kinship::Removed if scope == Scope::Values => {
            format!("{names} may be left out with these values")
        }
        Kinship::Removed if scope == Scope::Size => {
            format!("{names} may be left out of pages of this size")
        }
        Kinship::Removed => format!("{names} may be left out"),
        Kinship::Added if quoted.is_empty() => "a longer address shows the same".to_owned(),
        Kinship::Added => format!("{names} may be added"),
        Kinship::Moved => format!("{path} shows what another address with the same values shows"),
        Kinship::Canonical if quoted.is_empty() => {
            "the same with repeated parameters in another order".to_owned()
        }
        Kinship::Canonical => format!("the same without {names}, which does not matter on any page"),
        Kinship::Equivalent => {
            format!("two values of {names} that show the same elsewhere do so at {path}, too")
        }
        Kinship::Between => format!("the pages before and after it by {names} show the same"),
        Kinship::Named => format!("a page names it as its own address ({path})"),
        Kinship::Pinned => format!("{names} does not matter, as was said"),
        Kinship::Link => format!("a link at this place of its page leads to the page itself ({path})"),
    }
}

/// How much later a URL is asked for again, as a probability: the nearer it is to a known one, the more. Three hundredths for each halving of
/// the distance.
fn nearness(distance: u64) -> f64 {
    (0.97 - 0.03 * f64::from(distance.max(1).ilog2())).max(0.51)
}

/// The hash of a URL without its fragment.
pub(crate) fn hash_of(url: &Url) -> u64 {
    let text = url.as_str();
    hash_of_text(text.split_once('#').map_or(text, |(url, _)| url))
}

/// The same for the text of a URL that has none.
pub(crate) fn hash_of_text(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

/// Decides by a hash of the URL and the seed only, so that results do not depend on the order of requests. The port is left out, so that a
/// test server is crawled in the same way each time.
fn is_explored(url: &Url, seed: u64, share: f64) -> bool {
    let parts = [url.host_str().unwrap_or_default(), url.path(), url.query().unwrap_or_default()];
    let hash = parts.iter().fold(Mix::new(6), |hash, part| hash.with(xxh3_64(part.as_bytes())));
    let coin = hash.with(seed).0 >> 11;
    (coin as f64) < share * (1u64 << 53) as f64
}
