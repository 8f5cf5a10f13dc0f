//! An audit: how it is set up, run and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{
    CrawlReport, CrawlerBuilder, Downloader, Error, Event, HttpDownloader, Layer, Profile, Result, Settings,
    Sitemaps, Start, Timestamp,
};
use huntsman_middleware::{AuditSettings, Defaults, RobotsSitemaps};
use serde_json::Value;

use crate::budget::{Budget, BudgetFailure};
use crate::causes::{Cause, Causes};
use crate::choices::{Choices, Wanted};
use crate::code::{Code, PageClass};
use crate::compare::Comparison;
use crate::custom::CustomReader;
use crate::documents::{BINARY_TYPES, PdfReader, ReadPdf};
use crate::earlier::{Earlier, KnownIssues};
use crate::facts;
use crate::found::Found;
use crate::gate::{FailOn, GateFailure};
use crate::history::Past;
use crate::issue::{self, Issue};
use crate::issues::{Issues, IssuesWriter};
use crate::logs::{Joined, Logs};
use crate::look::Look;
use crate::refusals::Refusals;
use crate::rendering;
use crate::rule::{Rule, RuleSet};
use crate::score::{Score, Scorer};
use crate::segment::{Kept, Refusal};
use crate::site::{Refused, Site};
use crate::spider::{AuditSpider, Judge, Reach, of_sitemap};
use huntsman_disk::{Scratch, Spool};

/// The settings in which an audit differs from a crawl, besides those of the profile `audit`.
pub fn settings() -> Vec<(&'static str, Value)> {
    vec![
        ("scope", "host".into()),
        // Every status is an answer to judge.
        ("httperror_allow_all", true.into()),
        // A host without a robots.txt that can be read is a finding, and nothing waits for it.
        ("robots_retry_delays", Value::Array(Vec::new())),
        ("download_types", BINARY_TYPES.to_vec().into()),
    ]
}

/// What is judged, and by which rules.
#[derive(Clone)]
pub struct AuditOptions {
    pub(crate) reach: Reach,
    sitemaps: bool,
    rules: RuleSet,
    only: Vec<String>,
    ignored: Vec<String>,
    fail_on: Vec<String>,
    budget: Vec<String>,
    baseline: Option<Earlier>,
    logs: Option<Logs>,
    pdf: Option<PdfReader>,
}

impl std::fmt::Debug for AuditOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditOptions").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self::with_rules(Vec::new())
    }
}

impl AuditOptions {
    /// The built-in rules, and these.
    pub fn with_rules(own: Vec<Box<dyn Rule>>) -> Self {
        Self {
            reach: Reach { follow: true, external: true, resources: true, pdf: false },
            sitemaps: true,
            rules: RuleSet::new(own),
            only: Vec::new(),
            ignored: Vec::new(),
            fail_on: Vec::new(),
            budget: Vec::new(),
            baseline: None,
            logs: None,
            pdf: None,
        }
    }

    /// Judges only the start URLs, without following links.
    pub fn list_only(mut self, list_only: bool) -> Self {
        self.reach.follow = !list_only;
        self.sitemaps &= !list_only;
        self
    }

    /// Leaves out links to other sites.
    pub fn no_external(mut self, leave_out: bool) -> Self {
        self.reach.external = !leave_out;
        self
    }

    /// Leaves out images, scripts and styles.
    pub fn no_resources(mut self, leave_out: bool) -> Self {
        self.reach.resources = !leave_out;
        self
    }

    /// Does not read sitemaps.
    pub fn no_sitemaps(mut self, leave_out: bool) -> Self {
        self.sitemaps &= !leave_out;
        self
    }

    /// Judges only these families and codes; one that begins with a hyphen is left out.
    pub fn only(mut self, names: Vec<String>) -> Self {
        self.only = names;
        self
    }

    /// Leaves out these codes and families.
    pub fn ignore(mut self, names: Vec<String>) -> Self {
        self.ignored = names;
        self
    }

    /// Fails on these conditions, besides those of the setting `audit_fail_on`: a severity, a family or a code; with `new:` before it only issues
    /// count that the baseline does not have, and with `>N` behind it N of them are allowed.
    pub fn fail_on(mut self, conditions: Vec<String>) -> Self {
        self.fail_on = conditions;
        self
    }

    /// Fails unless these conditions hold, besides those of the setting `audit_budget`: `KEY OP NUMBER`, such as `status_4xx <= 10` ([`Budget`]).
    pub fn budget(mut self, conditions: Vec<String>) -> Self {
        self.budget = conditions;
        self
    }

    /// Marks the issues that this earlier audit does not have as new.
    pub fn baseline(mut self, earlier: Option<Earlier>) -> Self {
        self.baseline = earlier;
        self
    }

    /// Tells what these server logs say of the site. Pages that robots got, and that no page links to, are requested, too.
    pub fn logs(mut self, logs: Option<Logs>) -> Self {
        self.logs = logs;
        self
    }

    /// Reads PDF files by this reader; without one they are answers without text and links.
    pub fn pdf_reader(mut self, reader: Option<Arc<dyn ReadPdf>>) -> Self {
        self.reach.pdf = reader.is_some();
        self.pdf = reader;
        self
    }

    /// Whether there is an earlier audit to compare with.
    pub fn has_baseline(&self) -> bool {
        self.baseline.is_some()
    }

    /// The codes that are judged.
    pub fn codes(&self) -> impl Iterator<Item = &Code> {
        self.rules.codes()
    }

    /// Checks the names in these options and in the settings.
    ///
    /// # Errors
    /// A name is unknown; the error names it.
    pub fn check(&self, settings: &Settings) -> Result<()> {
        self.judgement(settings).map(drop)
    }

    fn judgement(&self, settings: &Settings) -> Result<Judgement> {
        let limits: AuditSettings = settings.of()?;
        let conditions = limits.audit_fail_on.iter().chain(&self.fail_on);
        let fail_on: Vec<FailOn> =
            conditions.map(|condition| FailOn::parse(condition, &self.rules)).collect::<Result<_>>()?;
        let of_settings = limits.audit_budget.iter().map(|(key, value)| Budget::of_setting(key, value));
        let budget: Vec<Budget> = of_settings
            .chain(self.budget.iter().map(|condition| Budget::parse(condition)))
            .collect::<Result<_>>()?;
        if self.baseline.is_none() && fail_on.iter().any(FailOn::is_about_new) {
            return Err(Error::usage(
                "--fail-on new:... needs an earlier audit to compare with: name it by --baseline DIR",
            ));
        }
        if self.baseline.as_ref().is_none_or(|earlier| earlier.score().is_none())
            && budget.iter().any(Budget::is_about_earlier)
        {
            return Err(Error::usage(
                "--budget score_drop needs an earlier audit with a score: name it by --baseline DIR",
            ));
        }
        CustomReader::of(&limits)?;
        Ok(Judgement {
            choices: Choices::new(&limits, &self.rules, Timestamp::wall())?,
            wanted: Wanted::parse(&self.only, &self.ignored, &self.rules)?,
            fail_on,
            budget,
            look: Look::of(&limits)?,
            limits,
        })
    }

    /// The crawl of an audit. Its items are the records that [`judge`](Self::judge) needs; pipelines keep them. It still lacks a downloader, and
    /// the settings of [`settings`].
    pub fn crawl(&self, start: Start) -> CrawlerBuilder<Sitemaps<AuditSpider>> {
        let spider = AuditSpider::new(start, self.reach, self.logs.clone());
        let reach = self.reach;
        let spider =
            Sitemaps::new(spider).on_sitemap(move |page, report, out| of_sitemap(page, report, reach, out));
        let discovery = self.sitemaps.then(|| RobotsSitemaps::of(&spider));
        let (rules, pdf) = (self.rules.clone(), self.pdf.clone());
        let builder = CrawlerBuilder::new(spider)
            .plugin(Defaults)
            .component(move |settings: &Settings| {
                Judge::from_settings(settings, rules).map(|judge| Some(judge.with_pdf(pdf)))
            })
            .component(|settings: &Settings| Refusals::of_settings(settings).map(Some));
        match discovery {
            Some(discovery) => builder.plugin(discovery),
            None => builder,
        }
    }

    /// Judges what a crawl found. `is_complete` says whether it ended by itself; what is not there is judged only then.
    ///
    /// # Errors
    /// A name in the options or settings is unknown, what was found cannot be read, or the disk is full.
    pub fn judge(&self, found: Found, settings: &Settings, is_complete: bool) -> Result<Audit> {
        let Judgement { limits, mut choices, wanted, fail_on, budget, look } = self.judgement(settings)?;
        let mut not_judged = self.lacking(&found, settings, is_complete);
        let known = self.baseline.as_ref().map(KnownIssues::of).transpose()?;
        let mut site = crate::site::build(found, limits, is_complete)?;
        self.logs.iter().try_for_each(|logs| site.join(logs))?;
        if site.tls_hosts().next().is_none() {
            not_judged.extend(facts::OF_TLS.iter().map(|code| (*code).to_owned()));
        }
        if !settings.http2 {
            not_judged.insert("http1-only".to_owned());
        }
        let is_judged = |code: &&Code| {
            wanted.has(code) && choices.severity(code).is_some() && !not_judged.contains(code.name)
        };
        let codes: Vec<Code> = self.rules.codes().filter(is_judged).copied().collect();
        // What shows of a code without all of its facts is told, unless they are needed to tell anything.
        let is_told = |code: &&Code| {
            wanted.has(code) && !(facts::misleads(code.name) && not_judged.contains(code.name))
        };
        let told = self.rules.codes().filter(is_told);
        let severities =
            told.filter_map(|code| Some((code.name.to_owned(), choices.severity(code)?))).collect();
        let findings = issue::findings(&site, &self.rules, severities)?;
        let pages = site.count(PageClass::Html);
        let mut scorer = Scorer::new(&site, &codes);
        let mut causes = Causes::default();
        let mut per_address = vec![0_u32; site.addresses().len()];
        let (mut failed, mut new) = (vec![(0, BTreeSet::new()); fail_on.len()], 0);
        let (mut issues, mut ignored) =
            (IssuesWriter::new(site.scratch())?, IssuesWriter::new(site.scratch())?);
        for finding in findings {
            let finding = finding?;
            let Some(code) = self.rules.code(&finding.code) else { continue };
            let Some(severity) = choices.severity(code) else { continue };
            let severity = severity.of(&finding);
            let mut issue = issue::issue(finding, code, severity, pages);
            issue.ignored = choices.reason(&issue);
            issue.new = known.as_ref().map(|known| !known.has_issue(&issue));
            if issue.ignored.is_some() {
                ignored.add(&issue)?;
                continue;
            }
            scorer.add(&issue, code);
            causes.add(&issue, Some(code));
            if let Some(address) = site.find(&issue.url) {
                per_address[address.number() as usize] += 1;
            }
            new += usize::from(issue.new == Some(true));
            for (condition, (number, codes)) in fail_on.iter().zip(&mut failed) {
                if condition.counts_issue(&issue) {
                    *number += 1;
                    if !codes.contains(&issue.code) {
                        codes.insert(issue.code.clone());
                    }
                }
            }
            issues.add(&issue)?;
        }
        let score = scorer.finish();
        let causes = causes.finish(&score);
        let limits = codes.iter().flat_map(Code::limits);
        let limits =
            limits.filter_map(|name| Some((name, settings.get(&format!("audit_{name}"))?))).collect();
        let failed = fail_on.iter().zip(failed);
        let mut audit = Audit {
            issues: issues.finish()?,
            ignored: ignored.finish()?,
            gate: failed
                .filter_map(|(condition, (number, codes))| condition.failure(number, codes))
                .collect(),
            budget: Vec::new(),
            not_judged,
            limits,
            notes: site
                .logs()
                .map_or_else(Vec::new, Joined::notes)
                .into_iter()
                .chain(choices.notes())
                .chain(site.notes(&codes))
                .collect(),
            codes,
            site,
            crawl: None,
            counted: Counted { score, new: known.map(|_| new), per_address },
            causes,
            judged_at: Timestamp::wall(),
            ended_by: None,
            earlier: self.baseline.as_ref().map_or_else(Vec::new, |earlier| earlier.trend().to_vec()),
            baseline: self.baseline.clone(),
            comparison: None,
            look,
        };
        let earlier = self.baseline.as_ref().and_then(Earlier::score);
        let mut budget = budget;
        if !(fail_on.is_empty() && budget.is_empty()) {
            // A gate that has looked at nothing must not open.
            budget.push(Budget::any_page());
        }
        audit.budget = budget.iter().filter_map(|condition| condition.judge(&audit, earlier)).collect();
        audit.site.check()?;
        Ok(audit)
    }

    /// The codes whose facts were not looked at.
    fn lacking(&self, found: &Found, settings: &Settings, is_complete: bool) -> BTreeSet<String> {
        let renders = rendering::is_on(settings);
        let lacks = [
            (!self.reach.external, facts::OF_EXTERNAL),
            (!self.reach.resources, facts::OF_RESOURCES),
            (!self.sitemaps, facts::OF_SITEMAPS),
            (!self.sitemaps && self.logs.is_none(), facts::OF_LISTS),
            (!is_complete, facts::OF_ABSENCE),
            (!self.reach.follow, facts::OF_FOLLOWING),
            (!renders, facts::OF_RENDERING),
            (renders, facts::OF_SOURCE),
        ];
        let codes = lacks.into_iter().filter(|(lacks, _)| *lacks).flat_map(|(_, codes)| codes);
        let codes = codes.map(|code| (*code).to_owned());
        found.not_judged.iter().cloned().chain(codes).collect()
    }

    /// Reads pages from a file of JSON lines instead of crawling: `url`, and if they are known `status`, `headers`, `html` and `elapsed_ms`; or
    /// from a WARC or WACZ file, of which the last capture of each URL is a page. Codes that need what such a file lacks are not judged.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no page; the error names it.
    pub fn read_pages(&self, path: &Path, settings: &Settings) -> Result<Found> {
        crate::given::read(path, settings, &self.rules)
    }
}

struct Judgement {
    limits: AuditSettings,
    choices: Choices,
    wanted: Wanted,
    fail_on: Vec<FailOn>,
    budget: Vec<Budget>,
    look: Look,
}

/// The result of an audit.
#[derive(Debug)]
#[non_exhaustive]
pub struct Audit {
    /// The issues, the worst first.
    pub issues: Issues,
    /// The issues that settings accept.
    pub ignored: Issues,
    /// The conditions under which it fails that are met.
    pub gate: Vec<GateFailure>,
    /// The budgets that are exceeded.
    pub budget: Vec<BudgetFailure>,
    /// The codes that were judged.
    pub codes: Vec<Code>,
    /// The codes that were not, because what they need was not looked at.
    pub not_judged: BTreeSet<String>,
    /// The limits of the codes, by the names of their settings without `audit_`.
    pub(crate) limits: BTreeMap<&'static str, Value>,
    /// What is to be said of the settings: rules for accepted issues that are over or match nothing.
    pub notes: Vec<String>,
    /// The site.
    pub site: Site,
    /// The report of the crawl, if this audit ran it.
    pub crawl: Option<CrawlReport>,
    /// What ended the crawl, if it did not end by itself; it stands in the report.
    pub ended_by: Option<String>,
    /// What changed since the audit that this one is compared with, once its files are written.
    pub comparison: Option<Comparison>,
    pub(crate) counted: Counted,
    /// The issues by their codes, the worst first.
    pub(crate) causes: Vec<Cause>,
    pub(crate) judged_at: Timestamp,
    /// The numbers of earlier audits, the oldest first.
    pub(crate) earlier: Vec<Past>,
    pub(crate) baseline: Option<Earlier>,
    pub(crate) look: Look,
}

/// What was counted while the issues were made.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) score: Score,
    /// Issues that the earlier audit does not have with which this one was compared; `None` without one.
    pub(crate) new: Option<usize>,
    /// Issues about each URL, by its number.
    pub(crate) per_address: Vec<u32>,
}

impl Audit {
    /// Whether a condition under which it fails is met, or a budget exceeded.
    pub fn has_failed(&self) -> bool {
        !self.gate.is_empty() || !self.budget.is_empty()
    }

    /// On what it fails, in a line each.
    pub(crate) fn failures(&self) -> impl Iterator<Item = String> {
        let budget = self.budget.iter().map(ToString::to_string);
        self.gate.iter().map(ToString::to_string).chain(budget)
    }

    /// The issues of a code.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn of(&self, code: &str) -> Result<Vec<Issue>> {
        self.issues.of(code).collect()
    }

    /// The score of the site. Accepted issues do not count.
    pub fn score(&self) -> Score {
        self.counted.score.clone()
    }

    /// Number of issues that the earlier audit does not have with which this one was compared; `None` without such an audit.
    pub fn new_issues(&self) -> Option<usize> {
        self.counted.new
    }
}

/// Gives a crawl its downloader.
type Install = Box<dyn FnOnce(AuditCrawl) -> AuditCrawl + Send>;
type AuditCrawl = CrawlerBuilder<Sitemaps<AuditSpider>>;

/// An audit that is being set up; [`audit`](crate::audit) makes one.
pub struct AuditBuilder {
    urls: Vec<String>,
    own: Vec<Box<dyn Rule>>,
    settings: Vec<(String, Value)>,
    options: Box<dyn FnOnce(AuditOptions) -> AuditOptions + Send>,
    downloader: Option<Install>,
}

impl std::fmt::Debug for AuditBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditBuilder").field("urls", &self.urls).finish_non_exhaustive()
    }
}

impl AuditBuilder {
    pub(crate) fn new(urls: Vec<String>) -> Self {
        Self {
            urls,
            own: Vec::new(),
            settings: Vec::new(),
            options: Box::new(|options| options),
            downloader: None,
        }
    }

    /// Adds a rule of one's own.
    pub fn rule(mut self, rule: impl Rule) -> Self {
        self.own.push(Box::new(rule));
        self
    }

    /// Sets a setting, as [`CrawlerBuilder::set`] does.
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.settings.push((name.to_owned(), value.into()));
        self
    }

    /// Changes what is judged: `.options(|options| options.no_external(true))`.
    pub fn options(mut self, change: impl FnOnce(AuditOptions) -> AuditOptions + Send + 'static) -> Self {
        self.options = Box::new(change);
        self
    }

    /// Fetches by another downloader than the HTTP client.
    pub fn downloader(mut self, downloader: impl Downloader) -> Self {
        self.downloader = Some(Box::new(move |builder| builder.downloader(downloader)));
        self
    }

    /// Crawls and judges. What does not fit into memory is in a directory for temporary files, which is removed with the [`Audit`].
    ///
    /// # Errors
    /// A setting or a name of a code is wrong, the crawl broke off, or the disk is full.
    pub async fn run(self) -> Result<Audit> {
        let options = (self.options)(AuditOptions::with_rules(self.own));
        let scratch = Scratch::temporary();
        let kept = Kept::new(Spool::new(&scratch))?;
        let (drops, lost) = (kept.clone(), Arc::new(Mutex::new(None)));
        let failure = Arc::clone(&lost);
        let mut builder = options
            .crawl(Start::urls(self.urls))
            .profile(Profile::Audit)
            .pipeline(kept.clone())
            .observer(move |event: &Event<'_>| {
                if let Event::RequestDropped(drop) = event {
                    let refused = Refused { reason: drop.reason.to_string(), detail: drop.detail.clone() };
                    if let Err(error) = drops.refusal(&Refusal { url: drop.url.clone(), refused }) {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        for (name, value) in settings() {
            builder = builder.set_in(Layer::Command, name, value);
        }
        for (name, value) in self.settings {
            builder = builder.set(&name, value);
        }
        let builder = match self.downloader {
            Some(install) => install(builder),
            None => builder.downloader_with(HttpDownloader::new),
        };
        let crawler = builder.build()?;
        let settings = crawler.handle().context().settings().clone();
        options.check(&settings)?;
        let report = crawler.run().await?;
        if let Some(error) = lost.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        let found = Found::kept(&kept, &scratch)?;
        let mut audit = options.judge(found, &settings, report.finish_reason == "finished")?;
        audit.crawl = Some(report);
        Ok(audit)
    }
}
