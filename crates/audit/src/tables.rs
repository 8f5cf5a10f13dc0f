//! The files of an audit: issues and pages as JSON lines, and tables as CSV.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use huntsman_crawler::{Error, Result};
use huntsman_files::Output;
use huntsman_middleware::sinks::csv_row;
use serde::Serialize;
use serde_json::{Value, json};

use crate::audit::Audit;
use crate::code::PageClass;
use crate::issue::Issue;
use crate::page::width;
use crate::record::{EdgeKind, Kind, Record};
use crate::site::Site;

/// A line of `pages.jsonl`; the fields stand in this order.
#[derive(Serialize)]
pub(crate) struct PageLine<'a> {
    pub(crate) url: &'a str,
    pub(crate) status: Option<u16>,
    pub(crate) redirect: Option<&'a str>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) ttfb_ms: f64,
    pub(crate) depth: Option<u16>,
    pub(crate) rank: Option<f32>,
    pub(crate) inlinks: usize,
    pub(crate) unique_inlinks: usize,
    pub(crate) outlinks_internal: usize,
    pub(crate) outlinks_external: usize,
    pub(crate) indexable: bool,
    /// Why it is not indexable.
    pub(crate) reason: Option<&'static str>,
    pub(crate) canonical: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) title_length: usize,
    pub(crate) description: Option<&'a str>,
    pub(crate) description_length: usize,
    pub(crate) h1: Option<&'a str>,
    pub(crate) words: usize,
    pub(crate) lang: Option<&'a str>,
    pub(crate) hreflang: Value,
    pub(crate) in_sitemap: bool,
    pub(crate) last_modified: Option<&'a str>,
    pub(crate) text_key: Option<&'a str>,
    pub(crate) issues: usize,
}

impl<'a> PageLine<'a> {
    fn of(record: &'a Record, site: &Site, issues: usize) -> Self {
        let html = record.html.as_ref();
        let text = |field: Option<&'a String>| field.map(String::as_str);
        let [title, description] =
            [html.and_then(|html| html.title.as_ref()), html.and_then(|html| html.description.as_ref())];
        let links: Vec<&str> = site.links(&record.url).map(|(source, _)| source.url.as_str()).collect();
        let outlinks = record.edges.iter().filter(|edge| edge.kind == EdgeKind::Link);
        let (internal, external): (Vec<_>, Vec<_>) = outlinks.partition(|edge| site.is_own(&edge.to));
        let reason = reason(record, site);
        Self {
            url: &record.url,
            status: record.status,
            redirect: record.redirect.as_deref(),
            content_type: record.content_type.as_deref(),
            bytes: record.bytes,
            wire_bytes: record.wire_bytes,
            ttfb_ms: record.ttfb_ms,
            depth: site.depth(&record.url),
            rank: site.rank(&record.url),
            inlinks: links.len(),
            unique_inlinks: links.into_iter().collect::<BTreeSet<_>>().len(),
            outlinks_internal: internal.len(),
            outlinks_external: external.len(),
            indexable: reason.is_none(),
            reason,
            canonical: html.and_then(|html| html.canonical.as_deref()),
            title_length: title.map_or(0, |title| width(title)),
            title: text(title),
            description_length: description.map_or(0, |text| width(text)),
            description: text(description),
            h1: html.and_then(|html| html.h1.as_deref()),
            words: html.map_or(0, |html| html.words),
            lang: html.and_then(|html| html.lang.as_deref()),
            hreflang: html.map_or(Value::Null, |html| json!(html.alternates)),
            in_sitemap: site.is_listed(&record.url),
            last_modified: record.last_modified.as_deref(),
            text_key: html.map(|html| html.text_key.as_str()),
            issues,
        }
    }
}

impl PageLine<'_> {
    /// Whether it is HTML that could be judged.
    pub(crate) fn is_html(&self) -> bool {
        self.text_key.is_some()
    }
}

fn reason(record: &Record, site: &Site) -> Option<&'static str> {
    if site.is(record, PageClass::Indexable) {
        return None;
    }
    Some(match &record.html {
        _ if record.redirect.is_some() => "redirect",
        None if record.status.is_none_or(|status| !(200..300).contains(&status)) => "status",
        None => "no HTML",
        Some(html) if html.noindex => "noindex",
        Some(_) => "canonical",
    })
}

impl Audit {
    /// Writes `issues.jsonl`, `pages.jsonl` and the folder `csv` with a table of issues, pages and links and one of each code with issues. Files of
    /// these names are replaced.
    ///
    /// # Errors
    /// The directory cannot be written; the error names the file.
    pub fn write(&self, directory: &Path) -> Result<()> {
        self.write_lines(directory)?;
        self.write_tables(directory)
    }

    /// Writes `issues.jsonl` and `pages.jsonl`.
    pub(crate) fn write_lines(&self, directory: &Path) -> Result<()> {
        lines(&directory.join("issues.jsonl"), self.issues.iter().chain(&self.ignored))?;
        lines(&directory.join("pages.jsonl"), self.page_lines())
    }

    /// Writes the folder `csv`.
    pub(crate) fn write_tables(&self, directory: &Path) -> Result<()> {
        let tables = directory.join("csv");
        let made = huntsman_files::remove_any(&tables).and_then(|_| huntsman_files::create_dir(&tables));
        made.map_err(|error| Error::from(error).context(format!("writing {}", tables.display())))?;
        table(&tables.join("issues.csv"), self.issues.iter().map(row_of_issue))?;
        let mut by_code: BTreeMap<&str, Vec<&Issue>> = BTreeMap::new();
        self.issues.iter().for_each(|issue| by_code.entry(&issue.code).or_default().push(issue));
        for (code, issues) in by_code {
            table(&tables.join(format!("{code}.csv")), issues.into_iter().map(row_of_issue))?;
        }
        table(&tables.join("pages.csv"), self.page_lines().map(|page| json!(page)))?;
        self.write_lists(&tables)?;
        let links =
            self.site.records().flat_map(|record| record.edges.iter().map(move |edge| (record, edge)));
        table(&tables.join("inlinks.csv"), links.map(|(source, edge)| {
            json!({
                "to": edge.to, "from": source.url, "kind": edge.kind, "fragment": edge.fragment, "nofollow": edge.nofollow,
                "line": edge.place.line, "column": edge.place.column, "region": edge.place.region, "link": edge.place.link,
            })
        }))
    }

    /// The pages that answered, with the numbers of their issues.
    pub(crate) fn page_lines(&self) -> impl Iterator<Item = PageLine<'_>> {
        let mut per_page: BTreeMap<&str, usize> = BTreeMap::new();
        for issue in &self.issues {
            *per_page.entry(&issue.url).or_default() += 1;
        }
        let answers =
            self.site.records().filter(|record| record.kind == Kind::Page && record.status.is_some());
        answers.map(move |record| {
            let issues = per_page.get(record.url.as_str()).copied().unwrap_or(0);
            PageLine::of(record, &self.site, issues)
        })
    }

    /// Number of issues that the earlier audit does not have with which this one was compared; `None` without such an audit.
    pub fn new_issues(&self) -> Option<usize> {
        let is_compared = self.issues.iter().chain(&self.ignored).any(|issue| issue.new.is_some());
        is_compared.then(|| self.issues.iter().filter(|issue| issue.new == Some(true)).count())
    }

    /// The totals for `report.json`.
    pub fn totals(&self) -> Value {
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut severities: BTreeMap<&str, usize> = BTreeMap::new();
        for issue in &self.issues {
            *codes.entry(&issue.code).or_default() += 1;
            *severities.entry(issue.severity.name()).or_default() += 1;
        }
        let count = |class| self.site.pages(class).count();
        json!({
            "issues": self.issues.len(),
            "ignored": self.ignored.len(),
            "severities": severities,
            "codes": codes,
            "judged": self.codes.iter().map(|code| code.name).collect::<Vec<_>>(),
            "not_judged": self.not_judged,
            "limits": self.limits,
            "pages": {"html": count(PageClass::Html), "indexable": count(PageClass::Indexable), "content": count(PageClass::Content)},
            "is_complete": self.site.is_complete(),
            "score": self.score(),
            "new": self.new_issues(),
            "notes": self.notes,
            "gate": self.gate,
            "budget": self.budget,
            "compared": self.comparison,
            "trend": self.trend(),
        })
    }
}

fn row_of_issue(issue: &Issue) -> Value {
    let first = issue.at.first();
    json!({
        "id": issue.id, "code": issue.code, "family": issue.family, "severity": issue.severity, "url": issue.url,
        "target": issue.target, "group": issue.group, "value": issue.evidence.value, "limit": issue.evidence.limit,
        "sources": issue.sources, "template": issue.template,
        "page": first.and_then(|place| place.page.as_deref()), "line": first.map(|place| place.line), "column": first.map(|place| place.column),
        "link": first.and_then(|place| place.link.as_deref()), "region": first.and_then(|place| place.region.as_deref()),
        "excerpt": first.and_then(|place| place.excerpt.as_deref()),
    })
}

pub(crate) fn lines<T: Serialize>(path: &Path, values: impl Iterator<Item = T>) -> Result<()> {
    written(path, |file| {
        for value in values {
            serde_json::to_writer(&mut *file, &value)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Writes objects with the same fields as rows, with the names of the fields above them.
pub(crate) fn table(path: &Path, rows: impl Iterator<Item = Value>) -> Result<()> {
    let mut table = Table::create(path)?;
    for row in rows {
        table.row(&row)?;
    }
    table.finish()
}

/// A table that is written row by row. Its file is replaced when it is finished.
pub(crate) struct Table {
    path: PathBuf,
    output: Output,
    buffer: Vec<u8>,
    has_header: bool,
}

impl Table {
    /// Bytes that are written at once.
    const BUFFER: usize = 64 * 1_024;

    /// Begins a table.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let output = Output::new(path)
            .map_err(|error| Error::from(error).context(format!("writing {}", path.display())))?;
        Ok(Self { path: path.to_owned(), output, buffer: Vec::new(), has_header: false })
    }

    /// Begins a table that has these columns also without a row.
    pub(crate) fn with_columns(path: &Path, names: &[&str]) -> Result<Self> {
        let mut table = Self::create(path)?;
        let names: Vec<Value> = names.iter().map(|name| (*name).into()).collect();
        csv_row(&names, &mut table.buffer)?;
        table.has_header = true;
        Ok(table)
    }

    /// Adds an object as a row. The first one gives the names of the columns.
    pub(crate) fn row(&mut self, row: &Value) -> Result<()> {
        let Value::Object(row) = row else { return Ok(()) };
        if !std::mem::replace(&mut self.has_header, true) {
            let names: Vec<Value> = row.keys().map(|name| name.as_str().into()).collect();
            csv_row(&names, &mut self.buffer)?;
        }
        csv_row(row.values(), &mut self.buffer)?;
        if self.buffer.len() < Self::BUFFER {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let done = self.output.write_all(&self.buffer);
        self.buffer.clear();
        done.map_err(|error| Error::from(error).context(format!("writing {}", self.path.display())))
    }

    /// Puts the table in place.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        let path = self.path;
        self.output
            .finish()
            .map_err(|error| Error::from(error).context(format!("writing {}", path.display())))?;
        Ok(())
    }
}

/// Writes a text.
pub(crate) fn written_text(path: &Path, text: &str) -> Result<()> {
    written(path, |file| Ok(file.write_all(text.as_bytes())?))
}

/// Writes a value as JSON for people.
pub(crate) fn written_json(path: &Path, value: &impl Serialize) -> Result<()> {
    written(path, |file| {
        serde_json::to_writer_pretty(&mut *file, value)?;
        Ok(file.write_all(b"\n")?)
    })
}

pub(crate) fn written(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<&mut Output>) -> Result<()>,
) -> Result<()> {
    let context = |error: Error| error.context(format!("writing {}", path.display()));
    let mut output = Output::new(path).map_err(|error| context(error.into()))?;
    let mut buffered = io::BufWriter::new(&mut output);
    let done = write(&mut buffered).and_then(|()| Ok(buffered.flush()?));
    drop(buffered);
    done.and_then(|()| Ok(output.finish()?)).map_err(context)
}
