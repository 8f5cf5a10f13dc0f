//! An audit as its reports and files read it: issues, pages, answers and references, one after the other in their final order.
//!
//! Reports and exports look at a site only through this module, so how a site is kept can change without them. Methods that give no `Result` leave
//! an error in the site, which the next one that does gives.

use std::collections::BTreeMap;

use huntsman_crawler::Result;

use crate::audit::Audit;
use crate::code::PageClass;
use crate::issue::Issue;
use crate::record::{Edge, Kind, Record};
use crate::site::{Address, End, Fault, authority, front_of};
use crate::tables::PageLine;

/// Takes the references of an answer.
type EachSource<'a> = &'a mut dyn FnMut(&str, Kind, &[Edge]) -> Result<()>;

/// Where a redirect leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Landing {
    /// Number of redirects.
    pub(crate) hops: usize,
    /// The last URL that is known; `None` if the redirects go round in a circle.
    pub(crate) url: Option<String>,
    /// Its status, if it was requested and answered.
    pub(crate) status: Option<u16>,
    /// Whether it answered without a fault.
    pub(crate) is_well: bool,
}

impl Audit {
    /// The host that was audited.
    pub(crate) fn name(&self) -> String {
        let first = || self.site.addresses().find(|address| address.is_answered()).map(Address::url);
        self.start().or_else(first).map(|url| authority(&url).to_owned()).unwrap_or_default()
    }

    /// The first start URL.
    pub(crate) fn start(&self) -> Option<String> {
        self.site.addresses().find(|address| address.is_start()).map(Address::url)
    }

    /// The front page of the host where the crawl began.
    pub(crate) fn front(&self) -> Option<String> {
        self.start().map(|url| front_of(&url))
    }

    /// Number of pages of a class.
    pub(crate) fn count(&self, class: PageClass) -> usize {
        self.site.count(class)
    }

    /// Number of pages of the site that answered.
    pub(crate) fn number_of_pages(&self) -> usize {
        self.site.addresses().filter(|address| is_page(*address)).count()
    }

    /// Number of issues that settings accept.
    pub(crate) fn number_of_ignored(&self) -> usize {
        self.ignored.len()
    }

    /// Number of issues.
    pub(crate) fn number_of_issues(&self) -> usize {
        self.issues.len()
    }

    /// Reads the issues that count, the worst first. Those of one code stand together.
    pub(crate) fn each_issue(&self, each: &mut dyn FnMut(&Issue) -> Result<()>) -> Result<()> {
        self.issues.iter().try_for_each(|issue| each(&issue?))
    }

    /// Reads the first issues.
    pub(crate) fn first_issues(
        &self,
        number: usize,
        each: &mut dyn FnMut(&Issue) -> Result<()>,
    ) -> Result<()> {
        self.issues.iter().take(number).try_for_each(|issue| each(&issue?))
    }

    /// Reads the issues that settings accept.
    pub(crate) fn each_ignored(&self, each: &mut dyn FnMut(&Issue) -> Result<()>) -> Result<()> {
        self.ignored.iter().try_for_each(|issue| each(&issue?))
    }

    /// Whether a URL is one of the site.
    pub(crate) fn is_own(&self, url: &str) -> bool {
        self.site.is_own(url)
    }

    /// Number of URLs that were not requested, by the reason.
    pub(crate) fn refusals(&self) -> BTreeMap<String, usize> {
        let mut reasons = BTreeMap::new();
        for refused in self.site.refusals() {
            *reasons.entry(refused.reason).or_default() += 1;
        }
        reasons
    }

    /// Whether a page says that it is missing, or equals the page that a path answers with which no site has.
    pub(crate) fn is_soft_404(&self, record: &Record) -> bool {
        self.site.find(&record.url).is_some_and(Address::is_soft_404)
    }

    /// Reads the pages of the site that answered, in the order of their URLs.
    pub(crate) fn each_page(&self, each: &mut dyn FnMut(&PageLine<'_>) -> Result<()>) -> Result<()> {
        let mut links = self.site.link_reader();
        for page in self.site.records_of(is_page) {
            let address = page.address();
            let issues = self.counted.per_address[address.number() as usize] as usize;
            each(&PageLine::of(&page, links.of(address), issues))?;
        }
        self.site.check()
    }

    /// Reads the pages of a class, in the order of their URLs.
    pub(crate) fn each_of(
        &self,
        class: PageClass,
        each: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        self.site.pages(class).try_for_each(|page| each(&page))?;
        self.site.check()
    }

    /// Reads all answers with what is wrong with them: pages, files, links to other sites, sitemaps. They are in the order of their URLs.
    pub(crate) fn each_answer(
        &self,
        each: &mut dyn FnMut(&Record, Option<Fault>) -> Result<()>,
    ) -> Result<()> {
        self.site.records().try_for_each(|answer| each(&answer, answer.address().fault()))?;
        self.site.check()
    }

    /// Reads the references of all answers: the URL of the answer, what it is, and its references in the order of the source.
    pub(crate) fn each_source(&self, each: EachSource<'_>) -> Result<()> {
        self.site.each_source(&mut |source, edges| {
            each(&source.url(), source.kind().unwrap_or_default(), &edges.all()?)
        })?;
        self.site.check()
    }

    /// Where the redirects from a URL end.
    pub(crate) fn landing(&self, url: &str) -> Landing {
        let Some(address) = self.site.find(url) else { return Landing::default() };
        let found = address.resolve();
        let hops = found.hops.len();
        match found.end {
            End::At(end) => {
                Landing { hops, url: Some(end.url()), status: end.status(), is_well: end.fault().is_none() }
            }
            End::Loop => Landing { hops, ..Landing::default() },
            End::Unknown(last) => Landing { hops, url: Some(last.url()), ..Landing::default() },
        }
    }

    /// Reads the redirects of the site, and where each one ends.
    pub(crate) fn each_redirect(&self, each: &mut dyn FnMut(&Record, Landing) -> Result<()>) -> Result<()> {
        let is_redirect =
            |address: Address<'_>| address.kind() == Some(Kind::Page) && address.redirect().is_some();
        let mut redirects = self.site.records_of(is_redirect);
        redirects.try_for_each(|record| each(&record, self.landing(&record.url)))?;
        self.site.check()
    }
}

/// Whether a URL is a page of the site that answered.
fn is_page(address: Address<'_>) -> bool {
    address.kind() == Some(Kind::Page) && address.status().is_some()
}
