//! The quality gate: rules on the stats of a crawl, judged when it has ended.
//!
//! It stops nothing and changes no item: a rule that fails is told, in the log, in the report and by the exit code of a command.

mod figures;
mod names;
mod rule;

use std::path::PathBuf;

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{
    AtEnd, Component, Context, CrawlEnd, Error, FailedRule, Hooks, Result, Settings, log, settings,
};

use figures::{Earlier, Figures};
use rule::Rule;

settings! {
    /// Settings of [`QualityGate`].
    pub struct QualitySettings checked by check {
        /// Least number of items that a crawl has to give; 0 is no rule.
        min_items: u64 = 0;
        /// Largest share of requests that may fail, 0 to 1; if unset, there is no rule.
        max_error_rate: Option<f64> = None;
        /// Rules that a crawl has to satisfy, such as "coverage.price >= 0.95" or "item_scraped_count >= 0.8 * previous"; the guide's page about
        /// monitoring says what a rule may be.
        quality_rules: Vec<String> = Vec::new();
        /// File with the figures of the last good crawl of each spider, with which rules compare (the word previous). A crawl that satisfies
        /// all rules writes its own.
        quality_file: Option<String> = None;
    }
}

impl QualitySettings {
    /// All rules.
    fn rules(&self) -> Result<Vec<Rule>> {
        let mut rules = Vec::new();
        if self.min_items > 0 {
            rules.push(Rule::min_items(self.min_items));
        }
        if let Some(rate) = self.max_error_rate {
            if !(0.0..=1.0).contains(&rate) {
                return Err(Error::usage(format!(
                    "setting max_error_rate: {rate} is not a share from 0 to 1"
                )));
            }
            rules.push(Rule::max_error_rate(rate));
        }
        for (index, text) in self.quality_rules.iter().enumerate() {
            let rule = Rule::parse(text).map_err(|error| {
                let text = escape(text);
                Error::usage(format!("setting quality_rules, rule {}: \"{text}\": {error}", index + 1))
            })?;
            if rule.compares_with_previous() && self.quality_file.is_none() {
                return Err(Error::usage(format!(
                    "setting quality_rules, rule {}: \"{}\": previous is the last good crawl, whose figures are in a file; \
                     name one with the setting quality_file",
                    index + 1,
                    escape(text)
                )));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    /// Whether a rule is about the coverage of fields, so that it has to be counted.
    pub(crate) fn need_coverage(&self) -> bool {
        self.rules().is_ok_and(|rules| rules.iter().any(Rule::is_about_coverage))
    }
}

fn check(settings: &QualitySettings) -> Result<()> {
    settings.rules().map(drop)
}

/// Judges a crawl by rules on its stats when it has ended: `min_items`, `max_error_rate` and `quality_rules`.
///
/// A rule that fails is an error in the log and one of [`CrawlReport::failed_rules`](huntsman_crawler::CrawlReport::failed_rules); commands
/// end with exit code 10. A crawl that broke off or was stopped by a signal is not judged, because its numbers are not final.
///
/// With `quality_file` the stats of a crawl that finished and satisfies all rules are kept for the next one, so that a rule can compare with
/// them. The file has an entry for each spider and is replaced as a whole. As long as it has none for a spider, rules that compare are not judged.
#[derive(Debug)]
pub struct QualityGate {
    rules: Vec<Rule>,
    file: Option<PathBuf>,
    earlier: Earlier,
}

impl QualityGate {
    /// The gate, if there are rules or a file for figures.
    ///
    /// # Errors
    /// A rule is not valid, or the file of figures cannot be read.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: QualitySettings = settings.of()?;
        let rules = own.rules()?;
        let file = own.quality_file.map(PathBuf::from);
        if rules.is_empty() && file.is_none() {
            return Ok(None);
        }
        let earlier = match &file {
            Some(path) => Earlier::load(path)?,
            None => Earlier::default(),
        };
        Ok(Some(Self { rules, file, earlier }))
    }

    /// The rules that fail.
    fn failed(&self, spider: &str, figures: &Figures) -> Vec<FailedRule> {
        let earlier = self.earlier.of(spider);
        if earlier.is_none() && self.rules.iter().any(Rule::compares_with_previous) {
            log::info!("no earlier good crawl is known, so rules that compare with it are not judged");
        }
        self.rules.iter().filter_map(|rule| rule.judge(figures, earlier)).collect()
    }
}

impl Component for QualityGate {
    const NAME: &'static str = "quality_gate";
    type Settings = QualitySettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.at_end()
    }
}

impl AtEnd for QualityGate {
    async fn at_end(&self, end: &mut CrawlEnd, cx: &Context) {
        let Ok(report) = &mut end.result else { return };
        if matches!(report.finish_reason.as_str(), "shutdown" | "cancelled") {
            log::info!("the crawl was stopped before its end, so its quality rules are not judged");
            return;
        }
        let figures = Figures::of(report, cx.stats());
        report.failed_rules.extend(self.failed(&end.spider, &figures));
        if let Some(path) = self.file.clone().filter(|_| !report.has_failed()) {
            let (spider, at) = (end.spider.clone(), cx.now());
            let kept = tokio::task::spawn_blocking(move || figures.keep(&path, &spider, at)).await;
            if let Err(error) = kept.map_err(Error::from).flatten() {
                // The next crawl would compare with the crawl before this one.
                report
                    .failed_rules
                    .push(FailedRule { rule: "quality_file".to_owned(), why: error.to_string() });
            }
        }
        for rule in &report.failed_rules {
            log::error!("quality rule failed: {}", escape(&rule.to_string()));
        }
    }
}
