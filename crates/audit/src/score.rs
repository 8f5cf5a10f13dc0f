//! The score of an audit: 0 to 10 points for each family of codes, with what was deducted for what.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use crate::audit::Audit;
use crate::code::{Code, PageClass, Severity};
use crate::issue::Issue;
use crate::record::{Kind, Record};

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
    /// The mean of the families; `None` if no code was judged.
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

/// The points that a code takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Deduction {
    /// The name of the code.
    pub code: &'static str,
    /// How bad its worst issue is.
    pub severity: Severity,
    /// Number of pages with the issue; `None` if it is about the site.
    pub pages: Option<usize>,
    /// Number of pages that the code judges.
    pub of: usize,
    /// Points, with two decimals.
    pub points: f64,
}

impl Audit {
    /// The score of the site. Accepted issues do not count.
    pub fn score(&self) -> Score {
        let mut by_code: BTreeMap<&str, Vec<&Issue>> = BTreeMap::new();
        self.issues.iter().for_each(|issue| by_code.entry(&issue.code).or_default().push(issue));
        let classes = [PageClass::Any, PageClass::Html, PageClass::Indexable, PageClass::Content];
        let size = |class| self.site.pages(class).filter(|record| is_answered(record)).count();
        let sizes: BTreeMap<PageClass, usize> = classes.map(|class| (class, size(class))).into();
        let mut deductions: BTreeMap<&'static str, Vec<Deduction>> = BTreeMap::new();
        for code in &self.codes {
            let family = deductions.entry(code.family).or_default();
            if let Some(issues) = by_code.get(code.name) {
                family.extend(self.deduction(code, issues, sizes[&code.judges]));
            }
        }
        let families: BTreeMap<&'static str, FamilyScore> = deductions
            .into_iter()
            .map(|(family, deductions)| (family, FamilyScore::of(deductions)))
            .collect();
        let sum: f64 = families.values().map(|family| family.score).sum();
        let overall = (!families.is_empty()).then(|| rounded(sum / families.len() as f64));
        Score { overall, families }
    }

    fn deduction(&self, code: &Code, issues: &[&Issue], of: usize) -> Option<Deduction> {
        let severity = issues.iter().map(|issue| issue.severity).min()?;
        let pages = self.affected(code.judges, issues).map(|pages| pages.min(of));
        let share = pages.map_or(1.0, |pages| pages as f64 / of.max(1) as f64);
        let points = match severity {
            Severity::Error => 1.0 + 4.0 * share,
            Severity::Warning => 0.2 + 1.3 * share,
            Severity::Notice => return None,
        };
        Some(Deduction { code: code.name, severity, pages, of, points: rounded(points) })
    }

    /// The number of pages of a class that issues are about: their own, or else those of their places. Places beyond those that an issue keeps
    /// count as a page each. `None` if the issues are about no page.
    fn affected(&self, class: PageClass, issues: &[&Issue]) -> Option<usize> {
        let is_judged = |url: &str| {
            self.site.get(url).is_some_and(|record| is_answered(record) && self.site.is(record, class))
        };
        let mut pages: HashSet<&str> = HashSet::new();
        let mut not_kept = 0;
        for issue in issues {
            if is_judged(&issue.url) {
                pages.insert(&issue.url);
                continue;
            }
            pages.extend(
                issue.at.iter().filter_map(|place| place.page.as_deref()).filter(|url| is_judged(url)),
            );
            not_kept = not_kept.max(issue.sources.saturating_sub(issue.at.len()));
        }
        (!pages.is_empty()).then_some(pages.len() + not_kept)
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

/// Whether a record is a page of the site that answered, and not a sitemap, a resource or a link to another site.
fn is_answered(record: &Record) -> bool {
    record.kind == Kind::Page && record.status.is_some()
}

/// Two decimals, so that what is listed adds up.
fn rounded(points: f64) -> f64 {
    (points * 100.0).round() / 100.0
}
