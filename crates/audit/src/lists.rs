//! Lists of an audit as tables: redirects, duplicates, translations, images, links to other sites, headers of pages.

use std::collections::HashMap;
use std::path::Path;

use huntsman_crawler::Result;
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::answer_record::TOLD_HEADERS;
use crate::audit::Audit;
use crate::reading::Landing;
use crate::record::{EdgeKind, Kind, Record};
use crate::tables::Table;

/// The columns of a table of redirects.
pub(crate) const OF_REDIRECTS: [&str; 6] = ["from", "status", "to", "hops", "end", "end_status"];

/// How often, and where first, a URL is referred to.
#[derive(Debug, Default)]
struct Referred {
    number: usize,
    first: String,
}

impl Audit {
    /// Writes the lists into the folder of tables.
    pub(crate) fn write_lists(&self, folder: &Path) -> Result<()> {
        self.write_redirect_list(folder)?;
        self.write_duplicates(folder)?;
        self.write_custom(folder)?;
        self.write_logs(folder)?;
        self.write_structured(folder)?;
        self.write_answers(folder)
    }

    fn write_redirect_list(&self, folder: &Path) -> Result<()> {
        let mut table = Table::with_columns(&folder.join("redirects.csv"), &OF_REDIRECTS)?;
        self.each_redirect(&mut |record, landing| table.row(&redirect_row(record, &landing)))?;
        table.finish()
    }

    /// The issues that are about what several pages share.
    fn write_duplicates(&self, folder: &Path) -> Result<()> {
        let mut table = Table::with_columns(
            &folder.join("duplicates.csv"),
            &["code", "group", "url", "target", "value"],
        )?;
        self.each_issue(&mut |issue| {
            if !issue.code.ends_with("-duplicate") {
                return Ok(());
            }
            table.row(&json!({
                "code": issue.code, "group": issue.group, "url": issue.url, "target": issue.target,
                "value": issue.evidence.value,
            }))
        })?;
        table.finish()
    }

    /// What is known of answers, in one reading of them: translations, headers of pages, and images and links to other sites with how often
    /// each is referred to and where first.
    fn write_answers(&self, folder: &Path) -> Result<()> {
        let referred = self.referred()?;
        let table = |name: &str, columns: &[&str]| Table::with_columns(&folder.join(name), columns);
        let mut translations = table("hreflang.csv", &["url", "lang", "target"])?;
        let mut headers = Table::create(&folder.join("headers.csv"))?;
        let mut images = table(
            "images.csv",
            &["url", "status", "error", "content_type", "wire_bytes", "max_age", "references", "first_page"],
        )?;
        let mut external =
            table("external.csv", &["url", "status", "error", "redirect", "references", "first_page"])?;
        self.each_answer(&mut |record, _| {
            for (url, alternate) in record.translations() {
                translations.row(&json!({"url": url, "lang": alternate.lang, "target": alternate.url}))?;
            }
            if record.kind == Kind::Page && record.status.is_some() {
                headers.row(&row_of_headers(record))?;
            }
            if let Some(of) = referred.get(&key(&record.url, EdgeKind::Image)) {
                images.row(&json!({
                    "url": record.url, "status": record.status, "error": record.error, "content_type": record.content_type,
                    "wire_bytes": record.wire_bytes, "max_age": record.max_age, "references": of.number, "first_page": of.first,
                }))?;
            }
            if record.kind == Kind::External {
                let of = referred.get(&key(&record.url, EdgeKind::Link));
                external.row(&json!({
                    "url": record.url, "status": record.status, "error": record.error, "redirect": record.redirect,
                    "references": of.map_or(0, |of| of.number), "first_page": of.map(|of| &of.first),
                }))?;
            }
            Ok(())
        })?;
        [translations, headers, images, external].into_iter().try_for_each(Table::finish)
    }

    /// How often images and URLs of other sites are referred to.
    fn referred(&self) -> Result<HashMap<u64, Referred>> {
        let mut referred: HashMap<u64, Referred> = HashMap::new();
        self.each_source(&mut |url, _, edges| {
            for edge in edges.iter().filter(|edge| matches!(edge.kind, EdgeKind::Image | EdgeKind::Link)) {
                if edge.kind == EdgeKind::Image || !self.is_own(&edge.to) {
                    let of = referred.entry(key(&edge.to, edge.kind)).or_default();
                    if of.number == 0 {
                        url.clone_into(&mut of.first);
                    }
                    of.number += 1;
                }
            }
            Ok(())
        })?;
        Ok(referred)
    }
}

fn row_of_headers(record: &Record) -> Value {
    let mut row = Map::from_iter([("url".to_owned(), Value::from(record.url.as_str()))]);
    for name in TOLD_HEADERS {
        let value = record.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
        row.insert(name.to_owned(), value.into());
    }
    Value::Object(row)
}

/// A redirect and where it ends.
pub(crate) fn redirect_row(record: &Record, landing: &Landing) -> Value {
    json!({
        "from": record.url, "status": record.status, "to": record.redirect, "hops": landing.hops, "end": landing.url,
        "end_status": landing.status,
    })
}

fn key(url: &str, kind: EdgeKind) -> u64 {
    xxh3_64(url.as_bytes()) ^ u64::from(kind == EdgeKind::Image)
}
