//! The model of one site: what its URLs have in common, and which of their slots change the content.

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use super::changing::Changing;
use super::chrome::{BlockNumbers, Chrome, Outline, Sample};
use super::content::{ContentId, Contents, Found, PackedContent, Texts};
use super::kinds::{Kind, Kinds};
use super::overrides::PriorKnowledge;
use super::page::PageText;
use super::rows::{Row, RowKeys, Rows, TEST, UNTESTED};
use super::shape::{Mix, Name, RawSlot, Shape, shape};
use super::target::Target;
use super::tie::Tie;
use aspects::Aspect;
use forms::Forms;
use indexes::{CONTENTS_OF_KEY, NAMED_BY, NamedUrl, PageIndexes, Signature};
use leads::Leads;
use relations::{Canonical, Hypothesis, parameter_row, parameter_rows, pool_of};

mod aspects;
mod forms;
mod indexes;
mod leads;
mod page_sample;
mod relations;
mod runs;
mod view;

pub(crate) use relations::Scope;
pub(crate) use view::{Part, PartKind, Relationship, template};

/// The most pages that are kept for relearning what the content of a page is.
pub(crate) const LOG: usize = 2_000;
/// The most bytes of their texts.
const LOG_BYTES: usize = 16 << 20;
/// The most discovered URLs that are kept for counting again.
const DISCOVERED: usize = 4 * LOG;
/// The size of the log at the first rebuild, and the growth after which the next one comes.
const FIRST_REBUILD: usize = 16;
const MIN_GROWTH: usize = 40;
const GROWTH: f64 = 0.25;
/// The most links to a URL that are remembered.
pub(crate) const LINKS: usize = 6;
/// The most skips of a row that are remembered until it is confirmed.
const SKIPS_OF_ROW: usize = 10_000;
/// An enumeration with at least this many values may be an identity (commits, chapters).
const IDENTITY_VALUES: u8 = 8;
/// A request waits for a page in flight that has its content with more than this probability: then more than one wait in three saves a
/// request. With less, a list of which few pages are the same would be fetched one page at a time.
const WORTH_WAITING: f64 = 0.35;
/// If more of the contents that are remembered of a key differ, what tells them apart matters.
const SEVERAL_CONTENTS: usize = CONTENTS_OF_KEY / 2;
/// A link that a skipped page is thought to have is a reason to fetch it if new content is behind it with this probability at least: the worth of its
/// form, times the share of pages that have such a link, times the share of links that are followed, times the probability that what it leads to is not known. It
/// bounds what is fetched for links that are nearly always missing or copies.
const LEAST_EXPECTED: f64 = 0.03;
/// The most requests in flight that test the same row: the others wait, because these may make it pass.
const MAX_TESTS: usize = 2;
/// The same for rows that drop the same slots in one template: each of them is a sister of the others, and what is learnt of a few says how many tests the others
/// need.
const MAX_TESTS_OF_TEMPLATE: usize = 4;
/// Requests whose content may be known are put off only while at least this share of the pages that were learnt were such ones. Where most requests are known
/// from the start, what does not matter would be learnt too late otherwise, and so would a change of the site.
const SHARE_OF_TESTS: f64 = 0.25;
/// A content that came unexpectedly this often within a number of pages is a wall: a log-in page, an error, a ban.
const WALL: u32 = 10;
const WALL_WINDOW: u32 = 20;

/// A link that led to a URL: its page and its position there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkContext {
    /// The number of the page.
    pub page: u32,
    /// The hash of the tag path of the link.
    pub position: u64,
}

/// The relation of a URL to pages that were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kinship {
    /// A page that differs in the values of some slots was fetched.
    Changed,
    /// A page without some of the slots was fetched.
    Removed,
    /// A page with more slots was fetched.
    Added,
    /// A page with another template and the same values was fetched.
    Moved,
    /// A page was fetched that is the same except for parameters that were learnt not to matter.
    Canonical,
    /// Pages with a lower and with a higher value of a slot were fetched, and both have one content.
    Between,
    /// A page with another value of a parameter was fetched, and both values show the same in another way of showing them.
    Equivalent,
    /// The page that links to it was fetched.
    Link,
    /// A page that was fetched names it as its own address.
    Named,
    /// It differs from a fetched page only in slots that do not matter by the user's ruling.
    Pinned,
}

/// The prediction for a URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prediction {
    /// The probability that its content is known.
    pub(crate) probability: f64,
    pub(crate) kinship: Option<Kinship>,
    /// The slots that the hypothesis considers irrelevant.
    pub(crate) dropped: SmallVec<[Name; 4]>,
    pub(crate) scope: Scope,
    /// The row that decides.
    pub(crate) row: Row,
    pub(crate) key: u64,
    /// The key of the row of the template and the dropped slots.
    pub(crate) template: u64,
    /// The number of a page that may have the same content.
    pub(crate) page: Option<u32>,
    /// Whether a page in flight that differs in pinned slots only decides it.
    pub(crate) hold: bool,
}

#[derive(Clone, Debug)]
struct LoggedPage {
    raw: Vec<RawSlot>,
    shape: Shape,
    text: PageText,
    outline: Outline,
    links: SmallVec<[LinkContext; LINKS]>,
    number: u32,
    /// Its content; `None` if the page has no words.
    found: Option<Found>,
    /// The URLs that the page names as its own address.
    names: Vec<Vec<RawSlot>>,
    /// URLs that were later found to lead to a page of the log.
    aliases: Vec<Alias>,
}

/// A URL that led to a page.
#[derive(Clone, Debug)]
struct Alias {
    raw: Vec<RawSlot>,
    page: Vec<RawSlot>,
    links: SmallVec<[LinkContext; LINKS]>,
}

/// A content that came when another one was expected.
#[derive(Clone, Copy, Debug, Default)]
struct UnexpectedContent {
    /// The group of the whole text; see [`Contents`].
    content: u32,
    count: u32,
    last: u32,
}

/// The row that a request tests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TestedRow {
    /// The key of the row; 0 if there is none.
    pub(crate) key: u64,
    /// The key of the row of the template and the dropped slots.
    pub(crate) template: u64,
    /// Whether the content of the request is more likely known than not.
    pub(crate) is_test: bool,
}

/// A request in flight.
#[derive(Clone, Debug)]
struct InFlight {
    target: Target,
    row: TestedRow,
    /// The URL without the parameters that do not matter, as the model saw it when requests in flight were last looked through.
    canonical: Canonical,
    aspects: SmallVec<[Aspect; 2]>,
}

/// The model of a site; see the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    min_evidence: f64,
    has_pins: bool,
    version: u64,
    kinds: Kinds,
    chrome: Chrome,
    changing: Changing,
    contents: Contents,
    rows: Rows,
    stores: PageIndexes,
    leads: Leads,
    forms: Forms,
    log: Vec<LoggedPage>,
    block_numbers: BlockNumbers,
    /// Bytes of the texts in the log, and of the discovered URLs.
    log_bytes: usize,
    /// Whether relearning has ended; then there is no log.
    is_frozen: bool,
    discovered: Vec<Vec<RawSlot>>,
    /// By the number of a page, its content if it has words.
    content_of: Vec<PackedContent>,
    /// The number of pages whose content was more likely known than not when they were learnt.
    tests: u32,
    /// By the number of a page, the hash of its signature.
    signature_of: Vec<u32>,
    /// By the number of a page that represents a content, its URL.
    url_of: HashMap<u32, Box<str>>,
    /// By the hash of the URL.
    in_flight: HashMap<u64, InFlight>,
    /// The version of the model at which they were last looked through.
    in_flight_version: u64,
    /// The URLs that were skipped by a row since it was last confirmed.
    skipped: HashMap<u64, Vec<u64>>,
    /// The URLs that were skipped by a row which the next page contradicted.
    reopened: HashSet<u64>,
    unexpected: UnexpectedContent,
    /// Groups of whole texts.
    walls: HashSet<u32>,
    next_rebuild: usize,
    /// By the URL without pinned slots, the first page and the hash of its URL; empty if nothing is pinned.
    without_pinned: HashMap<u64, (u32, u64)>,
}

impl Site {
    /// An empty model. `has_pins` says whether any slot is pinned.
    pub(crate) fn new(min_evidence: f64, has_pins: bool) -> Self {
        let contents = Contents::for_relearning();
        Self { min_evidence, has_pins, contents, next_rebuild: FIRST_REBUILD, ..Self::default() }
    }

    /// Records a URL that was found for the first time, on this page if any.
    pub(crate) fn discover(&mut self, raw: Vec<RawSlot>, page: Option<u32>) {
        let target = |raw: &[RawSlot]| Target::of(raw, &self.kinds);
        self.forms.find(&raw, page, |page| self.leads.rank_of_page(page), target);
        if !self.is_frozen && self.discovered.len() < DISCOVERED {
            self.kinds.find_separators(&raw);
            self.kinds.add_path(&raw);
            let shape = Target::of(&raw, &self.kinds).shape;
            self.kinds.count(&shape);
            self.kinds.rank(&shape);
            self.log_bytes += raw.iter().map(RawSlot::bytes).sum::<usize>();
            self.discovered.push(raw);
        }
    }

    /// The number of pages that were learnt.
    pub(crate) fn pages(&self) -> u32 {
        self.content_of.len() as u32
    }

    /// The URL as the model sees it now.
    pub(crate) fn target(&self, raw: &[RawSlot]) -> Target {
        Target::of(raw, &self.kinds)
    }

    /// A number that changes whenever a page is learnt or a request ends, which is when predictions may change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The prediction for a URL to which these links led. `may_skip` says whether it may be skipped now, for which fewer tests are enough.
    pub(crate) fn predict(
        &self,
        raw: &[RawSlot],
        target: &Target,
        links: &[LinkContext],
        may_skip: bool,
    ) -> Prediction {
        let mut best = Prediction::default();
        if let Some((page, same)) = self.without_pinned.get(&target.key())
            && *same != whole_key(raw)
        {
            let dropped = raw
                .iter()
                .filter(|slot| slot.prior == PriorKnowledge::Pinned)
                .map(|slot| slot.name)
                .collect();
            let (kinship, page) = (Some(Kinship::Pinned), Some(*page));
            return Prediction { probability: 1.0, kinship, dropped, page, ..best };
        }
        if self.has_pins && self.in_flight.values().any(|other| other.target.key() == target.key()) {
            return Prediction { hold: true, ..best };
        }
        for hypothesis in self.hypotheses(target, links) {
            let (probability, row) = self.believe(&hypothesis, may_skip);
            if probability > best.probability {
                best = Prediction {
                    probability,
                    kinship: Some(hypothesis.kinship),
                    dropped: hypothesis.dropped,
                    scope: hypothesis.scope,
                    row,
                    key: hypothesis.rows.own,
                    template: hypothesis.rows.template,
                    page: hypothesis.contents.first().map(|content| self.contents.page(*content)),
                    hold: false,
                };
            }
        }
        best
    }

    /// The probability that a hypothesis holds, with the row that says so.
    fn believe(&self, hypothesis: &Hypothesis, may_skip: bool) -> (f64, Row) {
        let (probability, row) = match may_skip {
            true => self.rows.believe_to_skip(&hypothesis.rows, self.min_evidence),
            false => self.rows.believe(&hypothesis.rows, self.min_evidence),
        };
        let matters = hypothesis.kinship == Kinship::Changed && self.are_many(&hypothesis.contents);
        (if matters { probability.min(UNTESTED) } else { probability }, row)
    }

    /// Whether many of these contents differ in more than words of their own URLs. What tells them apart matters then, even if the pages that tested it
    /// last were all alike: lists from a date on.
    fn are_many(&self, contents: &[ContentId]) -> bool {
        if contents.len() <= SEVERAL_CONTENTS {
            return false;
        }
        let without_own = contents.iter().map(|content| match self.contents.groups(*content) {
            (whole, None) => (whole, false),
            (_, Some(group)) => (group, true),
        });
        without_own.collect::<HashSet<_>>().len() > SEVERAL_CONTENTS
    }

    /// Whether a page in flight may tell more about a URL than those that were learnt, which give it this probability.
    pub(crate) fn may_be_settled(&mut self, target: &Target, probability: f64) -> bool {
        if self.in_flight.is_empty() {
            return false;
        }
        if self.in_flight_version != self.version {
            let mut in_flight = std::mem::take(&mut self.in_flight);
            in_flight.values_mut().for_each(|other| other.canonical = self.canonical(&other.target));
            (self.in_flight, self.in_flight_version) = (in_flight, self.version);
        }
        let (own, canonical) = (target.key(), self.canonical(target).key);
        let tells_more = |rows: &RowKeys| {
            let (believed, row) = self.rows.believe(rows, self.min_evidence);
            row.total() >= 1.0 && believed > WORTH_WAITING && believed > probability
        };
        // Most of them differ in the same few sets of slots.
        let mut known: SmallVec<[(u16, bool); 8]> = SmallVec::new();
        let mut by_slots = |other: &Target| {
            if target.shape.template != other.shape.template {
                let Some(rows) = target.rows_if_fetched(other) else { return false };
                return tells_more(self.rows.by_values(&rows).as_ref().unwrap_or(&rows));
            }
            let Some(set) = target.changed_from(other) else { return false };
            if let Some((_, tells_more)) = known.iter().find(|(other, _)| *other == set) {
                return *tells_more;
            }
            let tells_more = tells_more(&target.changed_rows(set));
            known.push((set, tells_more));
            tells_more
        };
        let aspects = Aspect::all_of(target);
        let by_aspects = |other: &InFlight| {
            let pairs =
                aspects.iter().flat_map(|aspect| other.aspects.iter().map(move |other| (aspect, other)));
            let mut beside = pairs.filter(|(aspect, other)| aspect.is_beside(other));
            beside.any(|(aspect, other)| tells_more(&aspect.rows(other)))
        };
        self.in_flight.values().any(|other| {
            let by_canonical = (other.canonical.key == canonical).then_some(&other.canonical.rows);
            (by_canonical.is_some_and(tells_more) || by_slots(&other.target) || by_aspects(other))
                && other.target.key() != own
        })
    }

    /// All relations of the URL to pages that were learnt.
    pub(crate) fn ties(&self, raw: &[RawSlot], links: &[LinkContext]) -> Vec<Tie> {
        let target = Target::of(raw, &self.kinds);
        let hypotheses = self.hypotheses(&target, links).into_iter();
        let tie = |hypothesis: Hypothesis| {
            let (probability, evidence) = self.believe(&hypothesis, true);
            Tie {
                kinship: hypothesis.kinship,
                dropped: hypothesis.dropped,
                names: Vec::new(),
                probability,
                passes: false,
                evidence,
                pages: hypothesis.contents.iter().map(|content| self.contents.page(*content)).collect(),
            }
        };
        hypotheses.map(tie).collect()
    }

    /// The content of the page with this number.
    pub(crate) fn content(&self, page: u32) -> Option<ContentId> {
        self.content_of.get(page as usize).and_then(|content| content.get())
    }

    /// Whether two pages show the same by any of their texts.
    pub(crate) fn shows_the_same(&self, one: u32, other: u32) -> bool {
        let contents = (self.content(one), self.content(other));
        matches!(contents, (Some(one), Some(other)) if self.contents.is_equal_but_own(one, other))
    }

    /// Whether so many requests in flight test the same row, or rows of the same template and dropped slots, that another one waits for them.
    pub(crate) fn has_tests_in_flight(&self, row: TestedRow) -> bool {
        let (mut of_row, mut of_template) = (0, 0);
        for other in self.in_flight.values().map(|other| other.row) {
            of_row += usize::from(other.key == row.key);
            of_template += usize::from(other.is_test && other.template == row.template);
        }
        of_row >= MAX_TESTS || of_template >= MAX_TESTS_OF_TEMPLATE
    }

    /// Whether so many of the pages that were learnt were tests that further ones can be put off; see [`SHARE_OF_TESTS`].
    pub(crate) fn has_enough_tests(&self) -> bool {
        f64::from(self.tests) >= SHARE_OF_TESTS * f64::from(self.pages())
    }

    /// Records that a URL was skipped for now by the row with this key, because its content was thought to be known with this probability at least.
    pub(crate) fn skip(&mut self, raw: &[RawSlot], row: u64, probability: f64) {
        let key = whole_key(raw);
        self.forms.skip(key, probability);
        let skipped = self.skipped.entry(row).or_default();
        if skipped.len() < SKIPS_OF_ROW {
            skipped.push(key);
        }
    }

    /// Records that a page links to a URL with this hash, which is remembered from now on.
    pub(crate) fn find(&mut self, url: u64, page: u32) {
        self.leads.find(url, page);
    }

    /// Records that a page links to a URL with this hash, if it is remembered; returns whether that changes anything.
    pub(crate) fn link(&mut self, url: u64, page: u32) -> bool {
        self.leads.link(url, page)
    }

    /// Whether the URL with this hash may have been found on a page: that is not known any more once there is no room for more of them.
    pub(crate) fn may_be_found(&self, url: u64) -> bool {
        self.leads.may_be_found(url)
    }

    /// Brings the pages into the order of a breadth-first crawl, for [`test_forms`](Self::test_forms), if there are many more than when that was done
    /// last; returns whether it did.
    pub(crate) fn order_pages(&mut self) -> bool {
        self.leads.order_pages()
    }

    /// Records that a page links to a URL that the crawl does not fetch; returns whether that was not known.
    pub(crate) fn refuse(&mut self, raw: &[RawSlot], page: u32) -> bool {
        let is_first = self.forms.refuse(raw, page, |raw| Target::of(raw, &self.kinds));
        if is_first {
            self.leads.refuse(page);
        }
        is_first
    }

    /// Keeps the URL of a page for [`url_of`](Self::url_of).
    pub(crate) fn keep_url(&mut self, page: u32, url: &str) {
        self.url_of.insert(page, url.into());
    }

    /// The URL of the page with this number, if it was [kept](Self::keep_url).
    pub(crate) fn url_of(&self, page: u32) -> Option<&str> {
        self.url_of.get(&page).map(|url| &**url)
    }

    /// Records that the page with this number is that of the URL with this hash.
    pub(crate) fn is_page_of(&mut self, page: u32, url: u64) {
        self.leads.learn(url, page);
    }

    /// The rank of the URL with this hash in a breadth-first crawl, by the links that are known.
    pub(crate) fn rank(&self, url: u64) -> u64 {
        self.leads.rank(url)
    }

    /// Records that the URL with this hash has the content that was new on this page, or is skipped because it would have it; returns whether that changes
    /// anything.
    pub(crate) fn has_content_of(&mut self, url: u64, first: u32) -> bool {
        self.leads.has_content_of(url, first)
    }

    /// The first page with the content of a page.
    pub(crate) fn first_page_like(&self, page: u32) -> Option<u32> {
        self.content(page).map(|content| self.contents.page(content))
    }

    /// Records that the page of the URL with this hash had new content.
    pub(crate) fn has_new_content(&mut self, url: u64) {
        self.leads.has_new_content(url);
    }

    /// The share of the copies by this row that alone led to new content: by the row itself, or with what is known of pages of the kind of a URL,
    /// whichever is more.
    pub(crate) fn share_of_leads(&self, row: u64, target: &Target) -> f64 {
        self.leads.share(row).max(self.leads.share_of_kind(row, target.kind_row()))
    }

    /// See [`Leads::is_nearest`].
    pub(crate) fn is_nearest(&self, url: u64, row: u64) -> bool {
        self.leads.is_nearest(url, row)
    }

    /// Whether a page that was skipped is thought to have links that no other page has, to URLs that would not be skipped. It is then to be
    /// fetched, which tests the forms of these links.
    pub(crate) fn test_forms(&mut self, url: u64, raw: &[RawSlot], threshold: f64) -> bool {
        let rank = self.leads.rank(url);
        let mut expected = self.forms.expected(raw, rank);
        let followed = self.leads.share_followed(rank);
        // The pages to which the start page links are asked for any link that they may have: without them, pages behind them seem to be farther away than they are.
        let is_near_start = leads::depth(rank) <= 1;
        // Squared, because links that many pages lack are missing more often on skipped pages than the share says: those of fewer than all, but at least half of
        // the pages were there in a tenth of the cases on seven applications.
        expected.retain(|link| {
            let share = if is_near_start { 1.0 } else { self.forms.share_with(link).powi(2) };
            let worth = f64::from(link.worth) * followed * share;
            if worth < LEAST_EXPECTED {
                return false;
            }
            let target = self.target(&link.raw);
            let is_new = 1.0 - self.expectation(&self.hypotheses(&target, &[]));
            worth * is_new >= LEAST_EXPECTED
                && self.predict(&link.raw, &target, &[], true).probability <= threshold
        });
        self.forms.test(&expected, rank);
        !expected.is_empty()
    }

    /// Records that a URL redirected to a page that was learnt just now, and whether that had new content.
    pub(crate) fn came(&mut self, raw: &[RawSlot], is_new: bool) {
        self.forms.came(whole_key(raw), is_new, 0.0);
    }

    /// The probability with which the content of a URL with these relations is thought to be known, however few tests they have.
    fn expectation(&self, hypotheses: &[Hypothesis]) -> f64 {
        let expected =
            hypotheses.iter().map(|hypothesis| self.rows.expect(&hypothesis.rows, self.min_evidence));
        expected.fold(0.0, f64::max)
    }

    /// Whether a URL was skipped by a row that the next page to test it contradicted.
    pub(crate) fn is_reopened(&self, raw: &[RawSlot]) -> bool {
        !self.reopened.is_empty() && self.reopened.contains(&whole_key(raw))
    }

    pub(crate) fn has_requests_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Records that a request for the URL with this hash is in flight, which tests this row, if any.
    pub(crate) fn request_started(&mut self, url: u64, target: Target, row: TestedRow) {
        let canonical = self.canonical(&target);
        let aspects = Aspect::all_of(&target);
        self.in_flight.insert(url, InFlight { target, row, canonical, aspects });
    }

    /// Records that a request for the URL with this hash is no longer in flight.
    pub(crate) fn request_finished(&mut self, url: u64) {
        if self.in_flight.remove(&url).is_some() {
            self.version += 1;
        }
    }

    /// The texts of a page in the form that is kept once the log is full; `None` before that.
    pub(crate) fn texts(&mut self, text: &PageText) -> Option<Option<Texts>> {
        self.is_frozen.then(|| self.contents.texts(&self.chrome.content(text)))
    }

    /// Learns from a page that was fetched; returns its number, and whether its content is new.
    pub(crate) fn learn(&mut self, raw: Vec<RawSlot>, text: PageText, links: &[LinkContext]) -> (u32, bool) {
        let texts = self.contents.texts(&self.chrome.content(&text));
        let target = self.target(&raw);
        let (number, found) = self.learn_target(&raw, &target, texts, links);
        let links = links.iter().copied().take(LINKS).collect();
        self.log_bytes += text.bytes();
        let outline = self.block_numbers.outline(&text);
        let shape = target.shape;
        let (names, aliases) = (Vec::new(), Vec::new());
        self.log.push(LoggedPage { raw, shape, text, outline, links, number, found, names, aliases });
        if self.log.len() >= self.next_rebuild {
            self.rebuild();
            let growth = (self.log.len() as f64 * GROWTH) as usize;
            self.next_rebuild = self.log.len() + growth.max(MIN_GROWTH);
        }
        if self.log.len() >= LOG || self.log_bytes >= LOG_BYTES {
            self.freeze();
        }
        (number, found.is_some_and(|found| found.is_new))
    }

    /// The number of a page that is to be fetched again, because nearly equal pages differ in few places; each once. Then [`fetched_again`](Self::fetched_again)
    /// is called with its text.
    pub(crate) fn next_again(&mut self) -> Option<u32> {
        if self.is_frozen { None } else { self.changing.next() }
    }

    /// Learns from a page that was fetched again which of its places change. Nothing is learnt once relearning has ended.
    pub(crate) fn fetched_again(&mut self, raw: &[RawSlot], text: &PageText) {
        let key = whole_key(raw);
        let Some(first) = self.log.iter().find(|page| whole_key(&page.raw) == key) else { return };
        if self.changing.compare(&first.text, text) {
            let places = self.changing.positions.len();
            tracing::info!(
                places,
                "the text of some places of pages changes from visit to visit: it is not compared"
            );
            self.version += 1;
            self.rebuild();
        }
    }

    /// Records that a page which was learnt just now names this URL as its own.
    pub(crate) fn claim(&mut self, page: u32, page_raw: &[RawSlot], named: Vec<RawSlot>) {
        self.version += 1;
        self.store_claim(page, page_raw, &named);
        if let Some(last) = self.log.last_mut().filter(|last| last.number == page) {
            self.log_bytes += named.iter().map(RawSlot::bytes).sum::<usize>();
            last.names.push(named);
        }
    }

    fn store_claim(&mut self, page: u32, page_raw: &[RawSlot], named: &[RawSlot]) {
        let Some(content) = self.content(page) else { return };
        let (target, named) = (Target::of(page_raw, &self.kinds), Target::of(named, &self.kinds));
        if self.is_wall(content) || target.key() == named.key() {
            return;
        }
        let by = self.stores.named.entry(named.key()).or_default();
        if by.len() < NAMED_BY {
            by.push(NamedUrl { signature: Signature::of(&target), content });
        }
    }

    /// See [`Rows::idle_evidence`].
    pub(crate) fn idle_evidence(&self, name: Name) -> Option<Row> {
        self.rows.idle_evidence(parameter_row(name).0)
    }

    /// Whether a page with this URL was learnt and can be compared.
    pub(crate) fn knows(&self, raw: &[RawSlot]) -> bool {
        self.stores.exact(Target::of(raw, &self.kinds).key()).is_some()
    }

    /// Records that a URL led to a page that was learnt, and so has the content of that page.
    pub(crate) fn alias(&mut self, raw: Vec<RawSlot>, page: Vec<RawSlot>, links: &[LinkContext]) {
        self.version += 1;
        self.observe_alias(&raw, &page, links, true);
        if let Some(last) = self.log.last_mut() {
            self.log_bytes += raw.iter().chain(&page).map(RawSlot::bytes).sum::<usize>();
            last.aliases.push(Alias { raw, page, links: links.iter().copied().take(LINKS).collect() });
        }
    }

    fn observe_alias(&mut self, raw: &[RawSlot], page: &[RawSlot], links: &[LinkContext], is_live: bool) {
        let page = Target::of(page, &self.kinds).key();
        if let Some(content) = self.stores.exact(page) {
            let target = Target::of(raw, &self.kinds);
            let hypotheses = self.hypotheses(&target, links);
            self.observe(&target, hypotheses, Found { content, is_new: false, apart: 0 }, None, is_live);
        }
    }

    /// Bytes that [`freeze`](Self::freeze) would free.
    pub(crate) fn log_bytes(&self) -> usize {
        self.log_bytes + self.contents.sketch_bytes()
    }

    /// Ends relearning and frees the memory for it.
    pub(crate) fn freeze(&mut self) {
        self.version += 1;
        if !self.is_frozen && self.log.len() > FIRST_REBUILD {
            self.rebuild();
        }
        self.is_frozen = true;
        self.log = Vec::new();
        self.block_numbers = BlockNumbers::default();
        self.log_bytes = 0;
        self.discovered = Vec::new();
        self.kinds.forget_paths();
        self.contents.forget_sketches();
    }

    /// Whether relearning has ended.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Learns from a page of which only the texts are known.
    pub(crate) fn learn_texts(
        &mut self,
        raw: &[RawSlot],
        texts: Option<Texts>,
        links: &[LinkContext],
    ) -> (u32, bool) {
        let target = self.target(raw);
        let (number, found) = self.learn_target(raw, &target, texts, links);
        (number, found.is_some_and(|found| found.is_new))
    }

    fn learn_target(
        &mut self,
        raw: &[RawSlot],
        target: &Target,
        texts: Option<Texts>,
        links: &[LinkContext],
    ) -> (u32, Option<Found>) {
        self.version += 1;
        let number = self.pages();
        let found = texts.map(|texts| self.contents.add(texts, number));
        self.content_of.push(found.map(|found| found.content).into());
        self.signature_of.push(target.signature as u32);
        if self.has_pins {
            self.without_pinned.entry(target.key()).or_insert((number, whole_key(raw)));
        }
        let is_new = found.is_some_and(|found| found.is_new);
        let key = whole_key(raw);
        let mut expected = 0.0;
        if let Some(found) = found {
            let hypotheses = self.hypotheses(target, links);
            // Counted here and not when the request is sent, because a restart learns the same pages.
            let is_test = hypotheses.iter().any(|hypothesis| self.believe(hypothesis, false).0 > TEST);
            self.tests += u32::from(is_test);
            if self.forms.has_lead(key) {
                expected = self.expectation(&hypotheses);
            }
            if !found.is_new {
                self.look_for_walls(&hypotheses, found);
            }
            self.observe(target, hypotheses, found, Some(number), true);
        }
        self.forms.came(key, is_new, expected);
        self.forms.learn(number, raw, target, found.is_some() && !is_new);
        (number, found)
    }

    /// Detects walls: a content that comes again and again where rows with evidence say that each page has its own. Then the responses were
    /// not the pages.
    fn look_for_walls(&mut self, hypotheses: &[Hypothesis], found: Found) {
        let number = self.pages();
        let mut of_urls = hypotheses.iter().filter(|hypothesis| hypothesis.kinship != Kinship::Link);
        let is_expected = of_urls.any(|hypothesis| {
            let (probability, row) = self.rows.believe(&hypothesis.rows, self.min_evidence);
            probability > 0.2 || row.total() < self.min_evidence
        });
        if is_expected {
            return;
        }
        let content = self.contents.group(found.content);
        if self.unexpected.content != content || number > self.unexpected.last + WALL_WINDOW {
            self.unexpected = UnexpectedContent { content, count: 0, last: number };
        }
        self.unexpected.count += 1;
        self.unexpected.last = number;
        if self.unexpected.count == WALL && self.walls.insert(content) {
            tracing::warn!(
                pages = WALL,
                "pages that were different before have one text now: it is not learnt from"
            );
        }
    }

    /// Learns from the relations of a page to earlier ones whether they hold, and stores the page. `page` is its number if it was fetched.
    fn observe(
        &mut self,
        target: &Target,
        hypotheses: Vec<Hypothesis>,
        found: Found,
        page: Option<u32>,
        is_live: bool,
    ) {
        let content = found.content;
        if self.is_wall(content) {
            return;
        }
        let is_copy = hypotheses.iter().any(|hypothesis| hypothesis.holds(content, &self.contents));
        if let Some(page) = page.filter(|_| is_copy) {
            self.leads.is_copy(page, target.kind_row());
        }
        for hypothesis in hypotheses {
            let is_dup = hypothesis.holds(content, &self.contents);
            self.rows.observe(&hypothesis.rows, is_dup);
            if let Some(graded) = hypothesis.graded {
                graded.implied(is_dup).for_each(|row| self.rows.observe_one(row, is_dup));
            }
            if is_dup {
                self.rows.extend_range(hypothesis.row, hypothesis.size, found.apart);
                if let Some(page) = page {
                    self.leads.is_copy(page, hypothesis.rows.own);
                }
            }
            if let Some(slot) = hypothesis.parameter {
                let (parameter, value) = parameter_rows(&slot);
                if hypothesis.kinship == Kinship::Removed {
                    self.rows.observe_pool(pool_of(slot.name), target.shape.template, is_dup);
                }
                self.rows.observe_one(parameter, is_dup);
                if hypothesis.kinship != Kinship::Changed {
                    self.rows.observe_one(value, is_dup);
                }
            }
            if is_live
                && let Some(skipped) = self.skipped.remove(&hypothesis.rows.own)
                && !is_dup
            {
                self.reopened.extend(skipped);
            }
        }
        let canonical = self.canonical(target).key;
        let strict = self.strict_canonical(target).key;
        self.stores.store(target, canonical, strict, content);
        self.stores.aspects.store(target, content, &self.contents);
    }

    fn is_wall(&self, content: ContentId) -> bool {
        !self.walls.is_empty() && self.walls.contains(&self.contents.group(content))
    }

    /// Relearns from the log: the kinds of slots, chrome, and then the contents and rows for which these are others than before. Where they are the same, so
    /// would be what is relearnt.
    fn rebuild(&mut self) {
        let is_new_layout = self.kinds.decide_layout();
        if is_new_layout {
            for raw in &self.discovered {
                let shape = Target::of(raw, &self.kinds).shape;
                self.kinds.count(&shape);
                self.kinds.rank(&shape);
            }
            for page in &mut self.log {
                page.shape = shape(&page.raw, &self.kinds.layout);
            }
        }
        let are_new_kinds = self.kinds.decide() || is_new_layout;
        let target = |page: &LoggedPage| Target::of_shape(page.shape.clone(), &self.kinds);
        let targets: Vec<Target> = self.log.iter().map(target).collect();
        let is_identity = |kind: Kind| match kind {
            Kind::Const => false,
            Kind::Enum(values) => values >= IDENTITY_VALUES,
            Kind::Free => true,
        };
        let samples: Vec<Sample<'_>> = self
            .log
            .iter()
            .zip(&targets)
            .map(|(page, target)| {
                let values = target.slots().filter(|(_, kind)| is_identity(*kind));
                let values = values.map(|(slot, _)| (slot.name.0, slot.value)).collect();
                let LoggedPage { text, outline, .. } = page;
                Sample { text, outline, signature: target.signature, values }
            })
            .collect();
        let (mut chrome, is_common, near) = Chrome::learn(&samples, &self.block_numbers);
        let number =
            |index: usize| Some(self.log[index].number).filter(|page| self.url_of.contains_key(page));
        self.changing.suspect(&near, number);
        chrome.changing.clone_from(&self.changing.positions);
        let is_new_chrome = chrome != self.chrome;
        self.chrome = chrome;
        if is_new_chrome {
            self.relearn_contents(&is_common);
        }
        // Pages behind a wall are learnt from after all, if that text comes no more.
        if is_new_chrome || are_new_kinds || !self.walls.is_empty() {
            self.relearn_rows(&targets);
        }
    }

    fn relearn_contents(&mut self, is_common: &[bool]) {
        self.contents.begin_relearning();
        for page in &mut self.log {
            let content = self.chrome.content_of_outline(&page.text, &page.outline, is_common);
            let texts = self.contents.texts(&content);
            page.found = texts.map(|texts| self.contents.add(texts, page.number));
            self.content_of[page.number as usize] = page.found.map(|found| found.content).into();
        }
        self.contents.end_relearning();
    }

    fn relearn_rows(&mut self, targets: &[Target]) {
        self.rows.clear();
        self.leads.forget_rows();
        self.stores.clear();
        self.walls.clear();
        self.unexpected = UnexpectedContent::default();
        let log = std::mem::take(&mut self.log);
        for (page, target) in log.iter().zip(targets) {
            self.signature_of[page.number as usize] = target.signature as u32;
        }
        for (page, target) in log.iter().zip(targets) {
            if let Some(found) = page.found {
                let hypotheses = self.hypotheses(target, &page.links);
                self.observe(target, hypotheses, found, Some(page.number), false);
            }
            for named in &page.names {
                self.store_claim(page.number, &page.raw, named);
            }
            for alias in &page.aliases {
                self.observe_alias(&alias.raw, &alias.page, &alias.links, false);
            }
        }
        self.log = log;
        self.forms.relearn(|raw| Target::of(raw, &self.kinds));
    }
}

/// The key of the URL with its pinned slots.
fn whole_key(raw: &[RawSlot]) -> u64 {
    whole_key_of(raw.iter().map(|slot| (slot.name, xxh3_64(slot.value.as_bytes()))))
}

/// The same from the names and the hashes of the values of its slots.
fn whole_key_of(slots: impl Iterator<Item = (Name, u64)>) -> u64 {
    slots.fold(Mix::new(90), |hash, (name, value)| hash.with(u64::from(name.0)).with(value)).0
}
