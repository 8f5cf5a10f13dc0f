//! An earlier audit, as its directory holds it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::BufRead;
use std::path::{Path, PathBuf};

use huntsman_crawler::{Error, Result};
use huntsman_output::{ISSUES, PAGES, REPORT};
use serde::Deserialize;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::code::Severity;
use crate::history::Past;
use crate::issue::{Issue, issue_id};
use crate::site::{authority, front_of};

/// An earlier audit in its directory: what it judged, and its issues and pages, which are read line by line.
#[derive(Clone, Debug)]
pub struct Earlier {
    path: PathBuf,
    totals: Totals,
}

/// What `report.json` says of an audit.
#[derive(Clone, Debug, Deserialize)]
struct Totals {
    judged: BTreeSet<String>,
    #[serde(default)]
    not_judged: BTreeSet<String>,
    #[serde(default)]
    limits: BTreeMap<String, Value>,
    is_complete: bool,
    #[serde(default)]
    score: PastScore,
    #[serde(default)]
    segment_bytes: Option<u64>,
    #[serde(default)]
    trend: Vec<Past>,
}

/// The score of an earlier audit.
#[derive(Clone, Debug, Default, Deserialize)]
struct PastScore {
    #[serde(default)]
    overall: Option<f64>,
}

/// An issue of an earlier audit.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PastIssue {
    pub(crate) code: String,
    pub(crate) family: String,
    pub(crate) severity: Severity,
    pub(crate) url: String,
    pub(crate) target: Option<String>,
    pub(crate) group: Option<String>,
    #[serde(default)]
    pub(crate) at: Vec<PastPlace>,
    #[serde(default)]
    pub(crate) sources: usize,
    #[serde(default)]
    pub(crate) ignored: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PastPlace {
    #[serde(default)]
    pub(crate) page: Option<String>,
}

impl PastIssue {
    /// The number of the issue.
    pub(crate) fn id(&self) -> u64 {
        issue_id(&self.code, &self.url, self.target.as_deref(), self.group.as_deref())
    }

    /// Whether it is about all pages of a host.
    pub(crate) fn is_of_host(&self) -> bool {
        is_of_host(&self.url, self.group.as_deref())
    }
}

/// A page of an earlier audit.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PastPage {
    pub(crate) url: String,
    pub(crate) status: Option<u16>,
    pub(crate) redirect: Option<String>,
    pub(crate) bytes: u64,
    pub(crate) ttfb_ms: f64,
    pub(crate) depth: Option<u16>,
    pub(crate) inlinks: u64,
    pub(crate) indexable: bool,
    pub(crate) canonical: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) h1: Option<String>,
    pub(crate) text_key: Option<String>,
}

impl Earlier {
    /// Opens the directory of an audit that has ended.
    ///
    /// # Errors
    /// It has no audit, or a file cannot be read; the error names the directory.
    pub fn open(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Report {
            audit: Option<Totals>,
        }
        let missing = |what: &str| {
            let shown = path.display();
            Error::usage(format!(
                "{shown} holds no audit that has ended ({what}); `huntsman audit URL --out DIR` makes one"
            ))
        };
        let report =
            std::fs::read(path.join(REPORT)).map_err(|error| missing(&format!("{REPORT}: {error}")))?;
        let report: Report =
            serde_json::from_slice(&report).map_err(|error| missing(&format!("{REPORT}: {error}")))?;
        let totals = report.audit.ok_or_else(|| missing(&format!("{REPORT} has no totals of an audit")))?;
        if let Some(name) = [ISSUES, PAGES].into_iter().find(|name| !path.join(name).is_file()) {
            return Err(missing(&format!("{name} is missing")));
        }
        Ok(Self { path: path.to_owned(), totals })
    }

    /// The audit that was just written into a directory, whose report is not there yet.
    pub(crate) fn just_written(path: &Path, totals: &Value) -> Result<Self> {
        Ok(Self { path: path.to_owned(), totals: serde_json::from_value(totals.clone())? })
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The score of the site.
    pub(crate) fn score(&self) -> Option<f64> {
        self.totals.score.overall
    }

    /// The numbers of audits before it and its own.
    pub(crate) fn trend(&self) -> &[Past] {
        &self.totals.trend
    }

    /// Whether its crawl ended by itself.
    pub(crate) fn is_complete(&self) -> bool {
        self.totals.is_complete
    }

    /// Number of bytes of what its crawl found.
    pub(crate) fn segment_bytes(&self) -> Option<u64> {
        self.totals.segment_bytes
    }

    /// The codes that could not be judged, because the facts for them were not looked at.
    pub(crate) fn not_judged(&self) -> &BTreeSet<String> {
        &self.totals.not_judged
    }

    /// Whether it judged a code with the same limits as another audit. `limits` are the names of the settings of the code.
    pub(crate) fn judged_as<'a>(
        &self,
        other: &Self,
        code: &str,
        limits: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        let limit = |audit: &Self, name: &str| audit.totals.limits.get(name).cloned();
        self.totals.judged.contains(code)
            && limits.into_iter().all(|name| limit(self, name) == limit(other, name))
    }

    /// The file of its pages.
    pub(crate) fn pages(&self) -> PathBuf {
        self.path.join(PAGES)
    }

    /// Reads its issues, one after the other.
    pub(crate) fn each_issue(&self, each: &mut dyn FnMut(PastIssue) -> Result<()>) -> Result<()> {
        each_line(&self.path.join(ISSUES), each)
    }
}

/// The issues of an audit that others are compared with, as numbers: sixteen bytes an issue.
#[derive(Debug, Default)]
pub(crate) struct KnownIssues {
    ids: HashSet<u64>,
    /// By code and host: whether one issue is about all its pages, and the number of issues of single ones.
    hosts: HashMap<u64, (bool, usize)>,
}

impl KnownIssues {
    pub(crate) fn of(earlier: &Earlier) -> Result<Self> {
        let mut known = Self::default();
        earlier.each_issue(&mut |issue| {
            known.add(&issue);
            Ok(())
        })?;
        Ok(known)
    }

    pub(crate) fn add(&mut self, issue: &PastIssue) {
        self.ids.insert(issue.id());
        let (is_wide, pages) = self.hosts.entry(of_host(&issue.code, &issue.url)).or_default();
        if issue.is_of_host() {
            *is_wide = true;
        } else {
            *pages += 1;
        }
    }

    /// Whether an issue is among them. A fault of all pages of a host is told once for the host, so one that single pages have is known if all
    /// had it before, and one that all have is known if as many had it.
    pub(crate) fn has(
        &self,
        code: &str,
        url: &str,
        target: Option<&str>,
        group: Option<&str>,
        sources: usize,
    ) -> bool {
        if self.ids.contains(&issue_id(code, url, target, group)) {
            return true;
        }
        let (is_wide, pages) = self.hosts.get(&of_host(code, url)).copied().unwrap_or_default();
        if is_of_host(url, group) { pages >= sources } else { is_wide }
    }

    /// Whether an issue of this audit is among them.
    pub(crate) fn has_issue(&self, issue: &Issue) -> bool {
        self.has(&issue.code, &issue.url, issue.target.as_deref(), issue.group.as_deref(), issue.sources)
    }

    /// Whether one of another audit is among them.
    pub(crate) fn has_past(&self, issue: &PastIssue) -> bool {
        self.has(&issue.code, &issue.url, issue.target.as_deref(), issue.group.as_deref(), issue.sources)
    }

    /// Whether any issue of a code is about a host.
    pub(crate) fn is_on_host(&self, code: &str, url: &str) -> bool {
        self.hosts.contains_key(&of_host(code, url))
    }
}

fn of_host(code: &str, url: &str) -> u64 {
    xxh3_64(format!("{code}\0{}", front_of(url)).as_bytes())
}

fn is_of_host(url: &str, group: Option<&str>) -> bool {
    group == Some(authority(url))
}

/// Reads a file of JSON lines, one value after the other.
pub(crate) fn each_line<T: for<'de> Deserialize<'de>>(
    path: &Path,
    each: &mut dyn FnMut(T) -> Result<()>,
) -> Result<()> {
    let context = || format!("reading {}", path.display());
    let file = std::fs::File::open(path).map_err(|error| Error::from(error).context(context()))?;
    for (number, line) in std::io::BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| Error::from(error).context(context()))?;
        let value = serde_json::from_str(&line)
            .map_err(|error| Error::from(error).context(format!("{}, line {}", context(), number + 1)))?;
        each(value)?;
    }
    Ok(())
}
