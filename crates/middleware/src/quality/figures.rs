//! The figures of a crawl that rules judge, and those of earlier crawls in a file.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{CrawlReport, Error, Result, Stats, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names;

/// The stat with the number of items whose fields were counted.
pub(crate) const COVERED_ITEMS: &str = "item_coverage_count";
/// The stat with the number of items that a spider file gave and that were written, beside the records of its pages.
const WRITTEN_ITEMS: &str = "items/written";
/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// The numbers of a crawl: its stats, and those that are made of several stats.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) numbers: BTreeMap<String, f64>,
    pub(super) finish_reason: String,
}

impl Figures {
    /// The figures of a crawl that has ended.
    pub(super) fn of(report: &CrawlReport, stats: &Stats) -> Self {
        let number = |(name, value): (&String, &Value)| Some((name.clone(), value.as_f64()?));
        let mut numbers: BTreeMap<String, f64> = report.stats.iter().filter_map(number).collect();
        let count = |name: &str| report.stat(name).max(0) as f64;
        // The records of pages pass the pipelines of a spider file's crawl, and its items are counted when they are written. A counter
        // that is still 0 is not in the report.
        let items = if stats.has(WRITTEN_ITEMS) { WRITTEN_ITEMS } else { "item_scraped_count" };
        numbers.insert(names::ITEMS.to_owned(), count(items));
        let (failed, pages) = (count("drops/failed"), count("pages/delivered"));
        numbers.insert(names::ERROR_RATE.to_owned(), failed / (failed + pages).max(1.0));
        if stats.has(COVERED_ITEMS) {
            numbers.insert(COVERED_ITEMS.to_owned(), count(COVERED_ITEMS));
        }
        Self { numbers, finish_reason: report.finish_reason.clone() }
    }

    /// A number by name; a counter that never counted is 0.
    pub(super) fn get(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }

    /// The number of items whose fields were counted; `None` if they were not.
    pub(super) fn covered_items(&self) -> Option<f64> {
        self.numbers.get(COVERED_ITEMS).copied()
    }

    /// Replaces the entry of a spider in a file. The entries of others are kept, those that were written meanwhile, too.
    pub(super) fn keep(self, path: &Path, spider: &str, at: Timestamp) -> Result<()> {
        let mut file = Earlier::load(path)?;
        file.spiders.insert(spider.to_owned(), Kept { finished_at: at.to_rfc3339(), stats: self.numbers });
        let mut text = serde_json::to_vec_pretty(&file)?;
        text.push(b'\n');
        huntsman_files::write(path, text).map_err(|error| {
            Error::from(error).context(format!("writing {}", escape(&path.to_string_lossy())))
        })
    }
}

/// The figures of earlier crawls by spider, as they are in the file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Earlier {
    spiders: BTreeMap<String, Kept>,
}

/// The figures of the last good crawl of a spider.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) finished_at: String,
    pub(super) stats: BTreeMap<String, f64>,
}

impl Kept {
    pub(super) fn get(&self, name: &str) -> f64 {
        self.stats.get(name).copied().unwrap_or(0.0)
    }
}

impl Earlier {
    /// Reads a file; one that is missing is as good as an empty one.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let shown = escape(&path.to_string_lossy()).into_owned();
        let fault = |what: String| Error::usage(format!("{shown} (setting quality_file): {what}"));
        let size = match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => return Err(fault("it is no file".to_owned())),
            Ok(found) => found.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(fault(error.to_string())),
        };
        if size > MAX_FILE {
            return Err(fault(format!("it has {size} bytes; at most {MAX_FILE} are read")));
        }
        let text = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        serde_json::from_slice(&text).map_err(|error| {
            fault(format!("it has no figures of earlier crawls: {error}; remove it to begin anew"))
        })
    }

    pub(super) fn of(&self, spider: &str) -> Option<&Kept> {
        self.spiders.get(spider)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spider_has_an_entry_of_its_own_and_damage_is_told_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures.json");
        let figures = |items: f64| Figures {
            numbers: BTreeMap::from([("items".to_owned(), items)]),
            finish_reason: "finished".to_owned(),
        };
        figures(1.0).keep(&path, "books", Timestamp(0)).unwrap();
        figures(2.0).keep(&path, "quotes", Timestamp(0)).unwrap();
        figures(3.0).keep(&path, "books", Timestamp(0)).unwrap();
        let earlier = Earlier::load(&path).unwrap();
        let items = |spider: &str| earlier.of(spider).map(|kept| kept.get("items"));
        assert_eq!((items("books"), items("quotes"), items("films")), (Some(3.0), Some(2.0), None));

        std::fs::write(&path, "{\"spiders\": {\"books\":").unwrap();
        let error = Earlier::load(&path).unwrap_err();
        assert!(error.is_usage());
        let told = error.to_string();
        assert!(told.contains("figures.json (setting quality_file)") && told.contains("remove it"), "{told}");
        // A damaged file is not overwritten.
        assert!(figures(4.0).keep(&path, "books", Timestamp(0)).is_err());
        assert!(Earlier::load(folder.path()).unwrap_err().to_string().contains("no file"));
    }
}
