//! The result of a crawl, for machines (`report.json`) and for people (the summary on the terminal).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use huntsman_crawler::logging::LogCount;
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{CrawlReport, FailedRule, HostReport, Loss, human_bytes};
use serde::Serialize;
use serde_json::Value;

use crate::avoid_dup::AvoidDupReport;
use crate::process::{cpu_seconds, peak_rss};
use crate::render::{Style, Table, count, counted, duration};

/// The content of `report.json`; the fields stand in this order in the file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Why the crawl ended; `error` if it broke off.
    pub finish_reason: String,
    /// Seconds from the start to the end.
    pub elapsed_s: f64,
    /// User plus system seconds of the whole process.
    pub cpu_s: Option<f64>,
    /// Largest resident size of the whole process.
    pub peak_rss_bytes: Option<u64>,
    /// Number of pages that were delivered.
    pub pages: u64,
    /// Number of requests that were sent.
    pub requests: u64,
    /// Bytes of response bodies as transferred.
    pub wire_bytes: u64,
    /// The stats that are numbers.
    pub stats: BTreeMap<String, Value>,
    /// The busiest hosts.
    pub hosts: Vec<HostReport>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Version of this crate.
    pub version: &'static str,
    /// Start URLs that could not be fetched, with the reason.
    pub failed_seeds: Vec<FailedSeed>,
    /// Losses, each kind with its first reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// Rules of quality that the crawl does not satisfy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_rules: Vec<FailedRule>,
    /// Set if the coverage of the items' fields was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageReport>,
    /// How the crawl ended, for people.
    #[serde(skip)]
    pub outcome: String,
    /// Why the crawl delivered nothing, if so.
    #[serde(skip)]
    pub failure: Option<String>,
    /// Number of items, if they are told beside the pages.
    #[serde(skip)]
    pub items: Option<u64>,
    /// Set with `--avoid-dup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avoid_dup: Option<AvoidDupReport>,
    /// Set with `--near-dup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_dup: Option<NearDupReport>,
    /// The totals of an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Value>,
    /// Set with `--copyvio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copyvio: Option<CopyvioReport>,
    /// What components tell of the crawl besides stats, by their names.
    #[serde(flatten)]
    pub sections: BTreeMap<String, Value>,
    /// The error that ended the crawl, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Near-duplicates: pages that nearly equal earlier ones.
#[derive(Clone, Debug, Serialize)]
pub struct NearDupReport {
    /// Pages that were fingerprinted.
    pub indexed: u64,
    /// Fingerprinted pages that nearly equal an earlier one.
    pub flagged: u64,
    /// Fingerprinted pages that have too few words to be flagged.
    pub short: u64,
    /// The same by language.
    pub languages: BTreeMap<String, NearDupLanguage>,
}

/// The same numbers for the pages of one language.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NearDupLanguage {
    /// Pages that were fingerprinted.
    pub indexed: u64,
    /// Fingerprinted pages that nearly equal an earlier one.
    pub flagged: u64,
    /// Flagged pages divided by indexed pages, 0 to 1.
    pub rate: f64,
}

impl NearDupReport {
    fn of(stats: &BTreeMap<String, Value>) -> Option<Self> {
        let stat = |key: &str| stats.get(key).and_then(Value::as_u64);
        let indexed = stat("near_dup/indexed")?;
        let [flagged, short] = ["near_dup/flagged", "near_dup/short"].map(|key| stat(key).unwrap_or(0));
        let of_language = |(key, value): (&String, &Value)| {
            let language = key.strip_prefix("near_dup/indexed/")?;
            let indexed = value.as_u64()?;
            let flagged = stat(&format!("near_dup/flagged/{language}")).unwrap_or(0);
            let rate = flagged as f64 / indexed.max(1) as f64;
            Some((language.to_owned(), NearDupLanguage { indexed, flagged, rate }))
        };
        Some(Self { indexed, flagged, short, languages: stats.iter().filter_map(of_language).collect() })
    }
}

/// Pages that were compared with the article of `--copyvio`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CopyvioReport {
    /// Pages whose text was read.
    pub pages: u64,
    /// Pages that the article seems to be copied from, by the verdict.
    pub suspected: u64,
    /// Pages that the article is possibly copied from.
    pub possible: u64,
}

impl CopyvioReport {
    fn of(stats: &BTreeMap<String, Value>) -> Option<Self> {
        let stat = |key: &str| stats.get(key).and_then(Value::as_u64);
        let pages = stat("copyvio/pages")?;
        let verdict = |name: &str| stat(&format!("copyvio/verdict/{name}")).unwrap_or(0);
        Some(Self { pages, suspected: verdict("suspected"), possible: verdict("possible") })
    }
}

/// In how many items each field is not empty.
#[derive(Clone, Debug, Serialize)]
pub struct CoverageReport {
    /// Items that were looked at.
    pub items: u64,
    /// Items with fields that were not counted, because there are too many of them.
    pub cut: u64,
    /// The fields, those that are missing most often first.
    pub fields: Vec<FieldCoverage>,
}

/// In how many items a field is not empty.
#[derive(Clone, Debug, Serialize)]
pub struct FieldCoverage {
    /// Path of the field: `seller.name`.
    pub field: String,
    /// Items in which it is not empty.
    pub filled: u64,
    /// Their share of the items, 0 to 1.
    pub share: f64,
}

impl CoverageReport {
    fn of(stats: &BTreeMap<String, Value>) -> Option<Self> {
        let stat = |key: &str| stats.get(key).and_then(Value::as_u64);
        let items = stat("item_coverage_count")?;
        let of_field = |(key, value): (&String, &Value)| {
            let field = key.strip_prefix("item_field_count/")?.to_owned();
            let filled = value.as_u64()?;
            Some(FieldCoverage { field, filled, share: filled as f64 / items.max(1) as f64 })
        };
        let mut fields: Vec<FieldCoverage> = stats.iter().filter_map(of_field).collect();
        fields.sort_by_key(|field| field.filled);
        Some(Self { items, cut: stat("item_coverage_cut_count").unwrap_or(0), fields })
    }

    /// The fields that are missing most often, for one line.
    fn summary(&self) -> String {
        const SHOWN: usize = 5;
        let share = |field: &FieldCoverage| format!("{} {:.1} %", escape(&field.field), 100.0 * field.share);
        let mut missing = self.fields.iter().filter(|field| field.filled < self.items);
        let shown: Vec<String> = missing.by_ref().take(SHOWN).map(share).collect();
        let more = if missing.next().is_some() { ", ..." } else { "" };
        let cut = match self.cut {
            0 => String::new(),
            cut => format!("; {} with fields that are not counted", counted(cut, "item")),
        };
        match shown.is_empty() {
            true => format!("in all of {}{cut}", counted(self.items, "item")),
            false => format!("of {}: {}{more}{cut}", counted(self.items, "item"), shown.join(", ")),
        }
    }
}

/// A start URL that could not be fetched.
#[derive(Clone, Debug, Serialize)]
pub struct FailedSeed {
    /// The URL; empty if it is not known.
    pub url: String,
    /// Why it could not be fetched.
    pub reason: String,
}

impl Report {
    /// The report of a crawl that ended, with the counts of its log. Processor time and memory are those of the process now.
    pub fn of(report: CrawlReport, log: &LogCount) -> Self {
        let (outcome, failure) = (report.outcome(), report.failure());
        let failed_seeds =
            report.failed_seeds.into_iter().map(|(url, reason)| FailedSeed { url, reason }).collect();
        let near_dup = NearDupReport::of(&report.stats);
        let copyvio = CopyvioReport::of(&report.stats);
        let coverage = CoverageReport::of(&report.stats);
        Self {
            finish_reason: report.finish_reason,
            elapsed_s: rounded(report.elapsed_s),
            cpu_s: cpu_seconds(),
            peak_rss_bytes: peak_rss(),
            pages: report.pages,
            requests: report.requests,
            wire_bytes: report.wire_bytes,
            stats: numbers(report.stats, log),
            hosts: report.hosts,
            seed: report.seed,
            version: env!("CARGO_PKG_VERSION"),
            failed_seeds,
            losses: report.losses,
            failed_rules: report.failed_rules,
            coverage,
            outcome,
            failure,
            items: None,
            avoid_dup: None,
            near_dup,
            copyvio,
            audit: None,
            sections: report.sections,
            error: None,
        }
    }

    /// The report of a crawl that broke off, built from its stats.
    pub fn of_failure(
        error: String,
        elapsed_s: f64,
        seed: u64,
        stats: BTreeMap<String, Value>,
        log: &LogCount,
    ) -> Self {
        let number = |key: &str| stats.get(key).and_then(Value::as_u64).unwrap_or(0);
        let near_dup = NearDupReport::of(&stats);
        let copyvio = CopyvioReport::of(&stats);
        let coverage = CoverageReport::of(&stats);
        Self {
            finish_reason: "error".to_owned(),
            elapsed_s: rounded(elapsed_s),
            cpu_s: cpu_seconds(),
            peak_rss_bytes: peak_rss(),
            pages: number("pages/delivered"),
            requests: number("engine/requests_sent"),
            wire_bytes: number("engine/wire_bytes"),
            stats: numbers(stats, log),
            hosts: Vec::new(),
            seed,
            version: env!("CARGO_PKG_VERSION"),
            failed_seeds: Vec::new(),
            losses: Vec::new(),
            failed_rules: Vec::new(),
            coverage,
            outcome: "error".to_owned(),
            failure: None,
            items: None,
            avoid_dup: None,
            near_dup,
            copyvio,
            audit: None,
            sections: BTreeMap::new(),
            error: Some(error),
        }
    }

    /// The content of `report.json`.
    ///
    /// # Errors
    /// A report of ours cannot cause any.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Pages a second.
    pub fn rate(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.pages as f64 / self.elapsed_s } else { 0.0 }
    }

    /// Whether the crawl ended because of a limit that the user asked for.
    pub fn is_limited(&self) -> bool {
        self.finish_reason.starts_with("closespider_") || self.finish_reason == "memusage_exceeded"
    }

    fn stat(&self, key: &str) -> u64 {
        self.stats.get(key).and_then(Value::as_u64).unwrap_or(0)
    }

    /// Total and parts of the drops in one state, the largest part first.
    fn drops(&self, state: &str) -> (u64, String) {
        let prefix = format!("drops/{state}/");
        let mut parts: Vec<(u64, &str)> = self
            .stats
            .iter()
            .filter_map(|(key, value)| Some((value.as_u64()?, key.strip_prefix(&prefix)?)))
            .collect();
        parts.sort_by_key(|(number, reason)| (std::cmp::Reverse(*number), *reason));
        let shown: Vec<String> =
            parts.iter().take(6).map(|(number, reason)| format!("{reason} {}", count(*number))).collect();
        let more = if parts.len() > 6 { ", ..." } else { "" };
        (self.stat(&format!("drops/{state}")), shown.join(", ") + more)
    }

    /// The summary: a few lines for people.
    pub fn summary(&self, style: Style) -> String {
        let outcome = escape(&self.outcome);
        let reason = match self.finish_reason.as_str() {
            "error" | "start_error" => style.red(&outcome),
            _ if self.failure.is_some() || !self.failed_rules.is_empty() => style.red(&outcome),
            _ if self.outcome == "finished" => style.green(&outcome),
            _ => style.yellow(&outcome),
        };
        let mut out = format!("{reason} after {}\n", duration(self.elapsed_s));
        let mut table = Table::right(&[1]);
        table.row(["pages", &count(self.pages), &format!("{:.1} a second", self.rate())]);
        table.row(["requests", &count(self.requests), &human_bytes(self.wire_bytes)]);
        let written = Some(self.stat("items/written")).filter(|written| *written > 0);
        if let Some(items) = self.items.or(written) {
            table.row(["items", &count(items), ""]);
        }
        if let Some(coverage) = &self.coverage {
            table.row(["fields", &count(coverage.fields.len() as u64), &coverage.summary()]);
        }
        for state in ["failed", "skipped"] {
            let (total, parts) = self.drops(state);
            if total > 0 {
                table.row([state, &count(total), &parts]);
            }
        }
        if let Some(avoided) = &self.avoid_dup {
            let all = self.pages + avoided.skipped;
            let share = 100.0 * avoided.skipped as f64 / all.max(1) as f64;
            let loss = match avoided.estimated_loss_most {
                Some(most) => format!(
                    "{} explored, {} new: at most {:.1} % of the skips",
                    count(avoided.explored),
                    count(avoided.explored_new),
                    100.0 * most
                ),
                None => "nothing explored yet".to_owned(),
            };
            table.row([
                "saved",
                &count(avoided.skipped),
                &format!("{share:.1} % by {} rules; lost: {loss}", count(avoided.rules as u64)),
            ]);
        }
        if let Some(near) = &self.near_dup {
            let short = match near.short {
                0 => String::new(),
                short => format!("; {} too short to tell", count(short)),
            };
            let of = format!("of {} pages nearly equal an earlier one{short}", count(near.indexed));
            table.row(["near-duplicates", &count(near.flagged), &of]);
        }
        if let Some(copied) = &self.copyvio {
            let possible = match copied.possible {
                0 => String::new(),
                possible => format!("; {} possible", count(possible)),
            };
            let of =
                format!("of {} pages suspected as sources of the article{possible}", count(copied.pages));
            table.row(["suspected copies", &count(copied.suspected), &of]);
        }
        for (what, key) in [("retries", "retry/count"), ("callback errors", "spider_exceptions/count")] {
            if self.stat(key) > 0 {
                table.row([what, &count(self.stat(key)), ""]);
            }
        }
        if self.hosts.len() > 1 {
            let names: Vec<String> = self
                .hosts
                .iter()
                .take(3)
                .map(|host| format!("{} {}", host.host, count(host.requests)))
                .collect();
            let more = if self.hosts.len() > 3 { ", ..." } else { "" };
            table.row(["hosts", &count(self.hosts.len() as u64), &(names.join(", ") + more)]);
        }
        if let (Some(cpu), Some(rss)) = (self.cpu_s, self.peak_rss_bytes) {
            table.row([
                "used",
                &format!("{cpu:.2} s"),
                &format!("processor time, {} memory", human_bytes(rss)),
            ]);
        }
        let _ = write!(out, "{}", table.lines("  "));
        for rule in &self.failed_rules {
            let _ = writeln!(out, "  {}", style.red(&escape(&format!("quality rule failed: {rule}"))));
        }
        for loss in &self.losses {
            let _ = writeln!(out, "  {}", escape(&loss.to_string()));
        }
        out
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1_000.0).round() / 1_000.0
}

/// The stats that are numbers, together with the counts of the log.
fn numbers(stats: BTreeMap<String, Value>, log: &LogCount) -> BTreeMap<String, Value> {
    let mut numbers: BTreeMap<String, Value> =
        stats.into_iter().filter(|(_, value)| value.is_number()).collect();
    numbers.extend(log.stats().map(|(key, number)| (key, number.into())));
    numbers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Report {
        let stats = BTreeMap::from([
            ("drops/failed".to_owned(), json!(3)),
            ("drops/failed/http_status".to_owned(), json!(2)),
            ("drops/failed/dns".to_owned(), json!(1)),
            ("engine/requests_sent".to_owned(), json!(1300)),
            ("pages/delivered".to_owned(), json!(1234)),
            ("finish_reason".to_owned(), json!("text")),
        ]);
        Report::of_failure("disk full".into(), 12.34567, 7, stats, &LogCount::default())
    }

    #[test]
    fn the_report_has_the_fields_in_their_order_and_numbers_as_stats() {
        let value: Value = serde_json::from_slice(&report().to_json().unwrap()).unwrap();
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = [
            "finish_reason",
            "elapsed_s",
            "cpu_s",
            "peak_rss_bytes",
            "pages",
            "requests",
            "wire_bytes",
            "stats",
            "hosts",
            "seed",
            "version",
        ];
        assert_eq!(keys[..expected.len()], expected);
        assert_eq!(
            (&value["elapsed_s"], &value["pages"], &value["error"]),
            (&json!(12.346), &json!(1234), &json!("disk full"))
        );
        assert!(value["stats"].as_object().unwrap().values().all(Value::is_number));
    }

    #[test]
    fn the_summary_names_reasons_by_their_number() {
        let summary = report().summary(Style::none());
        assert!(summary.starts_with("error after 12.3 s\n"), "{summary}");
        assert!(summary.contains("1 234") && summary.contains("http_status 2, dns 1"), "{summary}");
    }
}
