//! The score of an audit: 0 to 10 points for each family of codes, with what was deducted for what.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::code::{Code, PageClass, Severity};
use crate::issue::Issue;
use crate::record::Kind;
use crate::site::{Address, Site};

/// Points of a family without issues.
const FULL: f64 = 10.0;

/// How well a site does: points from 0 to 10. The same pages have the same score in every audit.
///
/// A family begins with 10 points. Each of its codes with issues takes some: an error 1 + 4s and a warning 0.2 + 1.3s, where s is the share of the
/// affected pages among those that the code judges, and 1 if it is about the site; a notice takes none. No family falls below 0. The score of the
/// site is the mean of the families that were judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Score {
    /// The mean of the families; `None` if no code was judged, or no page was judged.
    pub overall: Option<f64>,
    /// The families that were judged, by name.
    pub families: BTreeMap<&'static str, FamilyScore>,
}

/// The points of one family.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FamilyScore {
    /// 10 less the deductions, and 0 if they are more.
    pub score: f64,
    /// What was deducted, the most first.
    pub deductions: Vec<Deduction>,
}

/// The points that a code takes. A code whose issues are in part errors and in part warnings takes them once for each.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Deduction {
    /// The name of the code.
    pub code: &'static str,
    /// How bad the issues are.
    pub severity: Severity,
    /// Number of pages with the issue; `None` if it is about the site.
    pub pages: Option<usize>,
    /// Number of pages that the code judges.
    pub of: usize,
    /// Points, with two decimals.
    pub points: f64,
}

/// Sums up what issues take from the score. They come in their order, so those of a code with the same severity stand together.
#[derive(Debug)]
pub(crate) struct Scorer<'a> {
    site: &'a Site,
    /// Number of pages of each class that answered.
    sizes: BTreeMap<PageClass, usize>,
    families: BTreeMap<&'static str, Vec<Deduction>>,
    code: Option<OfCode>,
    /// A bit for each URL: whether an issue of the code is about it.
    pages: Vec<u64>,
}

/// The issues of one code so far.
#[derive(Debug)]
struct OfCode {
    code: Code,
    severity: Severity,
    pages: usize,
    /// Most places of an issue that were not kept, and may be a page each.
    not_kept: usize,
}

impl<'a> Scorer<'a> {
    /// A score of these codes, which were judged.
    pub(crate) fn new<'c>(site: &'a Site, codes: impl IntoIterator<Item = &'c Code>) -> Self {
        let classes = [PageClass::Any, PageClass::Html, PageClass::Indexable, PageClass::Content];
        let mut sizes: BTreeMap<PageClass, usize> = classes.map(|class| (class, 0)).into();
        for address in site.addresses().filter(|address| is_answered(*address)) {
            for (class, size) in &mut sizes {
                *size += usize::from(address.is(*class));
            }
        }
        let families = codes.into_iter().map(|code| (code.family, Vec::new())).collect();
        Self { site, sizes, families, code: None, pages: Vec::new() }
    }

    /// Counts an issue of a code.
    pub(crate) fn add(&mut self, issue: &Issue, code: &Code) {
        if issue.severity == Severity::Notice {
            return;
        }
        if self.code.as_ref().is_none_or(|of| of.code.name != code.name || of.severity != issue.severity) {
            self.end_code();
            self.pages.clear();
            self.pages.resize(self.site.addresses().len().div_ceil(64), 0);
            self.code = Some(OfCode { code: *code, severity: issue.severity, pages: 0, not_kept: 0 });
        }
        let places = issue.at.iter().filter_map(|place| place.page.as_deref());
        // The page itself, or else those of its places.
        if !self.count(&issue.url, code) {
            places.for_each(|url| {
                self.count(url, code);
            });
            let not_kept = issue.sources.saturating_sub(issue.at.len());
            self.code.iter_mut().for_each(|of| of.not_kept = of.not_kept.max(not_kept));
        }
    }

    /// Counts a page once, if the code judges it. Returns whether it does.
    fn count(&mut self, url: &str, code: &Code) -> bool {
        let page = self.site.find(url).and_then(Address::requested);
        let Some(page) = page.filter(|page| is_answered(*page) && page.is(code.judges)) else { return false };
        let (word, bit) = (page.number() as usize / 64, 1 << (page.number() % 64));
        if self.pages[word] & bit == 0 {
            self.pages[word] |= bit;
            self.code.iter_mut().for_each(|of| of.pages += 1);
        }
        true
    }

    fn end_code(&mut self) {
        let Some(OfCode { code, severity, pages, not_kept }) = self.code.take() else { return };
        let of = self.sizes[&code.judges];
        let pages = (pages > 0).then(|| (pages + not_kept).min(of));
        let share = pages.map_or(1.0, |pages| pages as f64 / of.max(1) as f64);
        let points = match severity {
            Severity::Error => 1.0 + 4.0 * share,
            Severity::Warning => 0.2 + 1.3 * share,
            Severity::Notice => return,
        };
        let deduction = Deduction { code: code.name, severity, pages, of, points: rounded(points) };
        self.families.entry(code.family).or_default().push(deduction);
    }

    /// The score, after all issues.
    pub(crate) fn finish(mut self) -> Score {
        self.end_code();
        let has_pages = self.sizes[&PageClass::Html] > 0;
        let families: BTreeMap<&'static str, FamilyScore> = self
            .families
            .into_iter()
            .map(|(family, deductions)| (family, FamilyScore::of(deductions)))
            .collect();
        let sum: f64 = families.values().map(|family| family.score).sum();
        let overall = (has_pages && !families.is_empty()).then(|| rounded(sum / families.len() as f64));
        Score { overall, families }
    }
}

impl FamilyScore {
    fn of(mut deductions: Vec<Deduction>) -> Self {
        deductions.sort_by(|a, b| b.points.total_cmp(&a.points).then(a.code.cmp(b.code)));
        let taken: f64 = deductions.iter().map(|deduction| deduction.points).sum();
        Self { score: rounded((FULL - taken).max(0.0)), deductions }
    }
}

impl Score {
    /// The families, the worst first.
    pub(crate) fn worst_first(&self) -> Vec<(&'static str, f64)> {
        let worst: BTreeSet<(u64, &'static str)> = self
            .families
            .iter()
            // Points with two decimals are whole numbers of hundredths.
            .map(|(name, family)| ((family.score * 100.0).round() as u64, *name))
            .collect();
        worst.into_iter().map(|(hundredths, name)| (name, hundredths as f64 / 100.0)).collect()
    }
}

/// Whether a URL is a page of the site that answered, and not a sitemap, a resource or a link to another site.
fn is_answered(address: Address<'_>) -> bool {
    address.kind() == Some(Kind::Page) && address.status().is_some()
}

/// Two decimals, so that what is listed adds up.
fn rounded(points: f64) -> f64 {
    (points * 100.0).round() / 100.0
}
