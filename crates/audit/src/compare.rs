//! Two audits compared: which issues are new, which are fixed, and how the pages changed.
//!
//! Files are read line by line; of each issue and URL only numbers are kept. An issue counts as fixed only if the later audit looked at its
//! pages and judged its code with the same limits.

mod page;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

use huntsman_crawler::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use self::page::Listed;

use crate::code::Code;
use crate::earlier::{Earlier, KnownIssues, PastIssue, PastPage};
use crate::gate::{FailOn, GateFailure};
use crate::rule::RuleSet;
use crate::site::authority;
use crate::tables::{Table, written_json, written_text};

/// Codes that say that a URL could not be looked at.
const NOT_LOOKED_AT: [&str; 5] =
    ["external-unverified", "link-forbidden", "rate-limited", "robots-unreachable", "timeout"];
/// Numbers of pages are told as changed from this share on.
const MIN_CHANGE: f64 = 0.5;

/// How an issue stands in the later of two audits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// Only the later audit has it.
    New,
    /// The later audit looked at its pages, judged its code with the same limits, and does not have it.
    Fixed,
    /// Both have it.
    Unchanged,
    /// Its pages are gone: they answer 404, 410 or a redirect.
    Gone,
    /// The later audit did not look at its pages.
    NotReached,
    /// The later audit did not judge its code, or with other limits.
    NotJudged,
}

impl Standing {
    const ALL: [Self; 6] =
        [Self::New, Self::Fixed, Self::Unchanged, Self::Gone, Self::NotReached, Self::NotJudged];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Fixed => "fixed",
            Self::Unchanged => "unchanged",
            Self::Gone => "gone",
            Self::NotReached => "not_reached",
            Self::NotJudged => "not_judged",
        }
    }
}

/// What the later audit saw of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It answered 2xx.
    Page,
    /// It is not there any more.
    Gone,
    /// The answer does not tell.
    Unclear,
}

/// The result of a comparison, which is also the content of `compare.json`.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Number of issues by their [standing](Standing).
    pub issues: BTreeMap<&'static str, u64>,
    /// The same for each code.
    pub codes: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Pages of both audits, those that only one has, and those that changed.
    pub pages: PageCounts,
    /// Number of pages for each field that changed.
    pub fields: BTreeMap<&'static str, u64>,
    /// Milliseconds to the first byte that 95 % of the pages did not need: before and after.
    pub ttfb_p95_ms: (f64, f64),
    /// The conditions under which it fails that are met.
    pub gate: Vec<GateFailure>,
}

/// Numbers of pages in a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageCounts {
    /// In both audits.
    pub both: u64,
    /// Only in the later one.
    pub added: u64,
    /// Only in the earlier one.
    pub removed: u64,
    /// Only in the earlier one, and the later one ended early.
    pub not_reached: u64,
    /// In both, with a field that changed.
    pub changed: u64,
}

impl Comparison {
    /// Number of issues of a [standing](Standing).
    pub(crate) fn number(&self, standing: &str) -> u64 {
        self.issues.get(standing).copied().unwrap_or(0)
    }
}

/// Takes a row of a table.
type Told<'a> = &'a mut dyn FnMut(&Value) -> Result<()>;

/// A comparison that is being set up.
#[derive(Debug)]
pub struct Compare {
    before: Earlier,
    after: Earlier,
    codes: Vec<Code>,
    map: UrlMap,
    fail_on: Vec<FailOn>,
}

impl Compare {
    /// Compares the audits in two directories, the earlier one first. `map` has prefixes of URLs of both audits with what stands for them, such
    /// as `https://staging.example=https://example.org`; `fail_on` has conditions as those of an audit.
    ///
    /// # Errors
    /// A directory has no audit, or a condition or a mapping is wrong.
    pub fn new(before: &Path, after: &Path, map: &[String], fail_on: &[String]) -> Result<Self> {
        let rules = RuleSet::new(Vec::new());
        Ok(Self {
            before: Earlier::open(before)?,
            after: Earlier::open(after)?,
            codes: rules.codes().copied().collect(),
            map: UrlMap::parse(map)?,
            fail_on: fail_on.iter().map(|text| FailOn::parse(text, &rules)).collect::<Result<_>>()?,
        })
    }

    /// Compares, and writes `compare.html`, `compare.json`, `issues.csv` and `pages.csv` into a directory. Files of these names are replaced.
    ///
    /// # Errors
    /// A file of an audit cannot be read, or the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<Comparison> {
        huntsman_files::create_dir_all(directory)
            .map_err(|error| Error::from(error).context(format!("writing {}", directory.display())))?;
        let mut pages = Table::create(&directory.join("pages.csv"))?;
        let mut issues = Table::create(&directory.join("issues.csv"))?;
        let listed = RefCell::new(Listed::default());
        let comparison = self.compare(
            &mut |row| {
                listed.borrow_mut().issue(row);
                issues.row(row)
            },
            &mut |row| {
                listed.borrow_mut().page(row);
                pages.row(row)
            },
        )?;
        pages.finish()?;
        issues.finish()?;
        let directories = [self.before.path(), self.after.path()];
        let html = page::page(&comparison, &listed.into_inner(), &self.codes, directories);
        written_text(&directory.join("compare.html"), &html)?;
        written_json(&directory.join("compare.json"), &comparison)?;
        Ok(comparison)
    }

    /// Compares two audits of which only the numbers are wanted. `codes` are those of the later one.
    pub(crate) fn numbers(before: Earlier, after: Earlier, codes: &[Code]) -> Result<Comparison> {
        let (map, fail_on) = (UrlMap(Vec::new()), Vec::new());
        let compare = Self { before, after, codes: codes.to_vec(), map, fail_on };
        compare.compare(&mut |_| Ok(()), &mut |_| Ok(()))
    }

    /// Compares, and gives a row for each issue and for each change of a page.
    fn compare(&self, issue: Told<'_>, page: Told<'_>) -> Result<Comparison> {
        let issues = Standing::ALL.iter().map(|standing| (standing.name(), 0)).collect();
        let mut comparison = Comparison { issues, ..Comparison::default() };
        let pages = Pages::of(&self.before, &self.after, &self.map)?;
        self.pages(&pages, page, &mut comparison)?;
        self.issues(&pages, issue, &mut comparison)?;
        Ok(comparison)
    }

    fn issues(&self, pages: &Pages, told: Told<'_>, comparison: &mut Comparison) -> Result<()> {
        let mut later = KnownIssues::default();
        let mut unclear = HashSet::new();
        self.after.each_issue(&mut |issue| {
            let issue = self.map.issue(issue);
            if NOT_LOOKED_AT.contains(&issue.code.as_str()) {
                unclear.insert(number_of(&issue.url));
            }
            later.add(&issue);
            Ok(())
        })?;
        let mut counted = |standing: Standing, issue: &PastIssue| -> Result<()> {
            *comparison.issues.entry(standing.name()).or_default() += 1;
            *comparison.codes.entry(issue.code.clone()).or_default().entry(standing.name()).or_default() += 1;
            told(&json!({
                "standing": standing, "code": issue.code, "family": issue.family, "severity": issue.severity, "url": issue.url,
                "target": issue.target, "group": issue.group, "sources": issue.sources, "ignored": issue.ignored,
            }))
        };
        let mut known = KnownIssues::default();
        self.before.each_issue(&mut |issue| {
            let issue = self.map.issue(issue);
            let standing = self.standing(&issue, &later, pages, &unclear);
            known.add(&issue);
            // Those of both are told with what the later one says.
            if standing == Standing::Unchanged { Ok(()) } else { counted(standing, &issue) }
        })?;
        let mut failed = vec![0; self.fail_on.len()];
        self.after.each_issue(&mut |issue| {
            let issue = self.map.issue(issue);
            let is_new = !known.has_past(&issue);
            for (condition, failed) in self.fail_on.iter().zip(&mut failed) {
                let counts = condition.counts(issue.severity.name(), &issue.family, &issue.code, is_new);
                *failed += usize::from(counts && issue.ignored.is_none());
            }
            counted(if is_new { Standing::New } else { Standing::Unchanged }, &issue)
        })?;
        comparison.gate = self
            .fail_on
            .iter()
            .zip(failed)
            .filter_map(|(condition, number)| condition.failure(number, BTreeSet::new()))
            .collect();
        Ok(())
    }

    /// How an issue of the earlier audit stands in the later one.
    fn standing(
        &self,
        issue: &PastIssue,
        later: &KnownIssues,
        pages: &Pages,
        unclear: &HashSet<u64>,
    ) -> Standing {
        let is_there =
            later.has_past(issue) || (issue.is_of_host() && later.is_on_host(&issue.code, &issue.url));
        if is_there {
            return Standing::Unchanged;
        }
        let code = self.codes.iter().find(|code| code.name == issue.code);
        let limits = code.into_iter().flat_map(|code| code.limits());
        if !self.after.judged_as(&self.before, &issue.code, limits) {
            return Standing::NotJudged;
        }
        if unclear.contains(&number_of(&issue.url)) {
            return Standing::NotReached;
        }
        let sources: Vec<&str> = issue.at.iter().filter_map(|place| place.page.as_deref()).collect();
        let own = number_of(&issue.url);
        if !sources.is_empty()
            && pages.before.contains(&own)
            && !self.after.is_complete()
            && pages.look(own).is_none()
        {
            // The link may still be there: where it leads was not looked at.
            return Standing::NotReached;
        }
        let looked_at: Vec<Option<Look>> = match sources.is_empty() {
            true => vec![pages.look(own)],
            false => sources.iter().map(|url| pages.look(number_of(url))).collect(),
        };
        if looked_at.iter().any(|look| matches!(look, None | Some(Look::Unclear))) {
            return Standing::NotReached;
        }
        if looked_at.iter().all(|look| *look == Some(Look::Gone)) {
            return Standing::Gone;
        }
        // A twin or a target that was a page has to be looked at as well.
        let target = issue.target.as_deref().map(number_of).filter(|target| pages.before.contains(target));
        match target.map(|target| pages.look(target)) {
            Some(None | Some(Look::Unclear)) => Standing::NotReached,
            _ => Standing::Fixed,
        }
    }

    fn pages(&self, pages: &Pages, told: Told<'_>, comparison: &mut Comparison) -> Result<()> {
        let mut file = BufReader::new(opened(&self.after.pages())?);
        let mut row = |url: &str, change: &str, field: &str, before: Value, after: Value| {
            told(&json!({"url": url, "change": change, "field": field, "before": before, "after": after}))
        };
        let mut times = (Vec::new(), Vec::new());
        let mut line = Vec::new();
        crate::earlier::each_line(&self.before.pages(), &mut |page: PastPage| {
            let before = self.map.page(page);
            times.0.push(before.ttfb_ms as f32);
            let Some((offset, _)) = pages.after.get(&number_of(&before.url)) else {
                let (change, number) = match self.after.is_complete() {
                    true => ("removed", &mut comparison.pages.removed),
                    false => ("not_reached", &mut comparison.pages.not_reached),
                };
                *number += 1;
                return row(&before.url, change, "", before.status.into(), Value::Null);
            };
            let at = file.stream_position()?;
            file.seek_relative(offset.wrapping_sub(at) as i64)?;
            line.clear();
            file.read_until(b'\n', &mut line)?;
            let after: PastPage = self.map.page(serde_json::from_slice(&line)?);
            comparison.pages.both += 1;
            let changes = changes(&before, &after);
            comparison.pages.changed += u64::from(!changes.is_empty());
            for (field, old, new) in changes {
                *comparison.fields.entry(field).or_default() += 1;
                row(&after.url, "changed", field, old, new)?;
            }
            Ok(())
        })?;
        crate::earlier::each_line(&self.after.pages(), &mut |page: PastPage| {
            let page = self.map.page(page);
            times.1.push(page.ttfb_ms as f32);
            if pages.before.contains(&number_of(&page.url)) {
                return Ok(());
            }
            comparison.pages.added += 1;
            row(&page.url, "added", "", Value::Null, page.status.into())
        })?;
        comparison.ttfb_p95_ms = (p95(times.0), p95(times.1));
        Ok(())
    }
}

/// The URLs of both audits, as numbers.
struct Pages {
    before: HashSet<u64>,
    /// Where the line of a page begins, and what it says.
    after: HashMap<u64, (u64, Look)>,
}

impl Pages {
    fn of(before: &Earlier, after: &Earlier, map: &UrlMap) -> Result<Self> {
        let mut pages = Self { before: HashSet::new(), after: HashMap::new() };
        crate::earlier::each_line(&before.pages(), &mut |page: PastPage| {
            pages.before.insert(number_of(&map.url(page.url)));
            Ok(())
        })?;
        let mut file = BufReader::new(opened(&after.pages())?);
        let (mut line, mut offset) = (Vec::new(), 0);
        loop {
            line.clear();
            let read = file.read_until(b'\n', &mut line)? as u64;
            if read == 0 {
                return Ok(pages);
            }
            let page = map.page(serde_json::from_slice(&line)?);
            pages.after.insert(number_of(&page.url), (offset, look_of(&page)));
            offset += read;
        }
    }

    fn look(&self, url: u64) -> Option<Look> {
        self.after.get(&url).map(|(_, look)| *look)
    }
}

fn look_of(page: &PastPage) -> Look {
    match page.status {
        Some(200..=299) => Look::Page,
        Some(404 | 410) => Look::Gone,
        Some(300..=399) if page.redirect.is_some() => Look::Gone,
        _ => Look::Unclear,
    }
}

/// The fields of a page that changed, with both values.
fn changes(before: &PastPage, after: &PastPage) -> Vec<(&'static str, Value, Value)> {
    let fields = |page: &PastPage| {
        [
            ("status", json!(page.status)),
            ("redirect", json!(page.redirect)),
            ("title", json!(page.title)),
            ("description", json!(page.description)),
            ("h1", json!(page.h1)),
            ("canonical", json!(page.canonical)),
            ("indexable", json!(page.indexable)),
            ("content", json!(page.text_key)),
            ("depth", json!(page.depth)),
        ]
    };
    let mut changes: Vec<_> = fields(before)
        .into_iter()
        .zip(fields(after))
        .filter(|((_, old), (_, new))| old != new)
        .map(|((name, old), (_, new))| (name, old, new))
        .collect();
    for (name, old, new) in [("inlinks", before.inlinks, after.inlinks), ("bytes", before.bytes, after.bytes)]
    {
        if old.abs_diff(new) as f64 > MIN_CHANGE * old as f64 {
            changes.push((name, old.into(), new.into()));
        }
    }
    changes
}

/// The value that 95 % of the values do not pass; 0 without values.
fn p95(mut values: Vec<f32>) -> f64 {
    values.sort_unstable_by(f32::total_cmp);
    let at = (values.len() * 95).div_ceil(100).saturating_sub(1);
    values.get(at).map_or(0.0, |value| (f64::from(*value) * 10.0).round() / 10.0)
}

fn number_of(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

fn opened(path: &Path) -> Result<File> {
    File::open(path).map_err(|error| Error::from(error).context(format!("reading {}", path.display())))
}

/// Prefixes of URLs with what stands for them.
#[derive(Debug)]
struct UrlMap(Vec<(String, String)>);

impl UrlMap {
    fn parse(pairs: &[String]) -> Result<Self> {
        let pair = |text: &String| {
            let parts = text.split_once("=http").map(|(from, to)| (from.to_owned(), format!("http{to}")));
            parts.filter(|(from, _)| from.starts_with("http")).ok_or_else(|| {
                let shown = text.escape_debug();
                Error::usage(format!("--map {shown}: use FROM=TO with two beginnings of URLs, such as https://staging.example=https://example.org"))
            })
        };
        pairs.iter().map(pair).collect::<Result<_>>().map(Self)
    }

    fn url(&self, url: String) -> String {
        let mapped =
            self.0.iter().find_map(|(from, to)| Some(format!("{to}{}", url.strip_prefix(from.as_str())?)));
        mapped.unwrap_or(url)
    }

    fn issue(&self, mut issue: PastIssue) -> PastIssue {
        if self.0.is_empty() {
            return issue;
        }
        if issue.is_of_host() {
            let url = self.url(issue.url.clone());
            issue.group = Some(authority(&url).to_owned());
        }
        issue.url = self.url(issue.url);
        issue.target = issue.target.map(|url| self.url(url));
        for place in &mut issue.at {
            place.page = place.page.take().map(|url| self.url(url));
        }
        issue
    }

    fn page(&self, mut page: PastPage) -> PastPage {
        page.url = self.url(page.url);
        page.redirect = page.redirect.map(|url| self.url(url));
        page.canonical = page.canonical.map(|url| self.url(url));
        page
    }
}
