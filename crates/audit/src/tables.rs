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
use crate::custom::Custom;
use crate::issue::Issue;
use crate::issues::OfCode;
use crate::logs::Joined;
use crate::page::width;
use crate::record::HtmlRecord;
use crate::site::{Address, Answer, End, LinkText, LinksTo, Nearest};

/// A line of `pages.jsonl`; the fields stand in this order.
#[derive(Serialize)]
pub(crate) struct PageLine<'a> {
    pub(crate) url: &'a str,
    pub(crate) status: Option<u16>,
    pub(crate) redirect: Option<&'a str>,
    /// The URLs to which redirects lead from it, in order; the last one is the final URL, unless they lead in a circle.
    pub(crate) redirects: Vec<String>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) ttfb_ms: f64,
    pub(crate) total_ms: f64,
    pub(crate) protocol: &'a str,
    /// Whole days for which the certificate of the host is still valid; `None` without https.
    pub(crate) certificate_days_left: Option<i64>,
    pub(crate) depth: Option<u16>,
    pub(crate) rank: Option<f32>,
    pub(crate) inlinks: usize,
    pub(crate) unique_inlinks: usize,
    /// The texts of these links, at most five.
    pub(crate) link_texts: Vec<LinkText>,
    pub(crate) outlinks_internal: usize,
    pub(crate) outlinks_external: usize,
    pub(crate) indexable: bool,
    /// Why it is not indexable.
    pub(crate) reason: Option<&'static str>,
    /// What `meta` elements and the header X-Robots-Tag tell robots, as written.
    pub(crate) robots: Option<&'a str>,
    pub(crate) x_robots_tag: Option<&'a str>,
    /// The line of robots.txt that decided about it.
    pub(crate) robots_line: Option<&'a str>,
    pub(crate) canonical: Option<&'a str>,
    pub(crate) title: Option<&'a str>,
    pub(crate) title_length: usize,
    pub(crate) description: Option<&'a str>,
    pub(crate) description_length: usize,
    pub(crate) h1: Option<&'a str>,
    /// Numbers of headings of the levels 1 to 6.
    pub(crate) headings: Option<[usize; 6]>,
    pub(crate) words: usize,
    pub(crate) lang: Option<&'a str>,
    pub(crate) hreflang: Value,
    pub(crate) in_sitemap: bool,
    pub(crate) last_modified: Option<&'a str>,
    /// The types of the items that the page describes for programs, each once.
    pub(crate) structured_types: Vec<&'a str>,
    pub(crate) text_key: Option<&'a str>,
    pub(crate) simhash: Option<&'a str>,
    /// The page with the most similar text, and the share of bits that their fingerprints have in common.
    pub(crate) near_duplicate: Option<String>,
    pub(crate) similarity: Option<f64>,
    /// The headers that say how the page is kept, protected and found.
    pub(crate) headers: BTreeMap<&'a str, &'a str>,
    pub(crate) issues: usize,
    /// The kind of a document that is no HTML, and why it could not be read.
    pub(crate) document: Option<&'static str>,
    pub(crate) document_error: Option<&'a str>,
    /// Requests in server logs: of anybody, and of robots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_requests: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_robot_requests: Option<u32>,
    /// What fields and searches of the user found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) custom: Option<&'a Custom>,
}

impl<'a> PageLine<'a> {
    pub(crate) fn of(page: &'a Answer<'_>, links: LinksTo, issues: usize) -> Self {
        let html = page.html.as_ref();
        let text = |field: Option<&'a String>| field.map(String::as_str);
        let document = page.document.as_deref();
        let title =
            html.map_or(document.and_then(|document| document.title.as_ref()), |html| html.title.as_ref());
        let description = html.and_then(|html| html.description.as_ref());
        let reason = reason(page);
        let nearest = page.address().nearest();
        Self {
            url: &page.url,
            status: page.status,
            redirect: page.redirect.as_deref(),
            redirects: page.redirect.as_ref().map_or_else(Vec::new, |_| redirects(page.address())),
            content_type: page.content_type.as_deref(),
            bytes: page.bytes,
            wire_bytes: page.wire_bytes,
            ttfb_ms: page.ttfb_ms,
            total_ms: page.total_ms,
            protocol: &page.protocol,
            certificate_days_left: page.certificate().map(|tls| tls.days_left),
            depth: page.address().depth(),
            rank: page.address().rank(),
            inlinks: links.links,
            unique_inlinks: links.pages,
            link_texts: links.texts,
            outlinks_internal: page.links_within() as usize,
            outlinks_external: page.links_elsewhere() as usize,
            indexable: reason.is_none(),
            reason,
            robots: html.map(|html| html.robots.as_str()).filter(|robots| !robots.is_empty()),
            x_robots_tag: header(page, "x-robots-tag"),
            robots_line: page.robots_line.as_deref(),
            canonical: html.and_then(|html| html.canonical.as_deref()),
            title_length: title.map_or(0, |title| width(title)),
            title: text(title),
            description_length: description.map_or(0, |text| width(text)),
            description: text(description),
            h1: html.and_then(|html| html.h1.as_deref()),
            headings: html.map(|html| html.headings),
            words: html.map_or(document.map_or(0, |document| document.words), |html| html.words),
            lang: html.and_then(|html| html.lang.as_deref()),
            hreflang: html.map_or(Value::Null, |html| json!(html.alternates)),
            in_sitemap: page.address().is_listed(),
            last_modified: page.last_modified.as_deref(),
            structured_types: html.map_or_else(Vec::new, types),
            text_key: html.map(|html| html.text_key.as_str()),
            simhash: html.and_then(|html| html.likeness.as_ref()).map(|likeness| likeness.hash.as_str()),
            near_duplicate: nearest.map(|nearest| nearest.address.url()),
            similarity: nearest.map(Nearest::similarity),
            headers: page.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            issues,
            document: document.map(|document| document.kind.name()),
            document_error: document.and_then(|document| document.unread.as_deref()),
            log_requests: page.address().log_hits().map(|[hits, _]| hits),
            log_robot_requests: page.address().log_hits().map(|[_, robots]| robots),
            custom: page.custom.as_deref(),
        }
    }
}

impl PageLine<'_> {
    /// Whether it is HTML that could be judged.
    pub(crate) fn is_html(&self) -> bool {
        self.text_key.is_some()
    }
}

/// The URLs to which redirects lead from a URL, in order.
fn redirects(address: Address<'_>) -> Vec<String> {
    let found = address.resolve();
    let end = match found.end {
        End::At(end) | End::Unknown(end) => Some(end),
        End::Loop => None,
    };
    // The first hop is the URL itself.
    found.hops.into_iter().skip(1).chain(end).map(Address::url).collect()
}

fn header<'a>(page: &'a Answer<'_>, wanted: &str) -> Option<&'a str> {
    page.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// The types of the items of a page, each once.
fn types(html: &HtmlRecord) -> Vec<&str> {
    let types = html.structured.iter().flat_map(|item| &item.types).map(String::as_str);
    types.collect::<BTreeSet<_>>().into_iter().collect()
}

fn reason(page: &Answer<'_>) -> Option<&'static str> {
    if page.address().is(PageClass::Indexable) {
        return None;
    }
    Some(match &page.html {
        _ if page.redirect.is_some() => "redirect",
        None if page.status.is_none_or(|status| !(200..300).contains(&status)) => "status",
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
        written(&directory.join("issues.jsonl"), |file| {
            self.issues.iter().chain(self.ignored.iter()).try_for_each(|issue| line(file, &issue?))
        })?;
        written(&directory.join("pages.jsonl"), |file| self.each_page(&mut |page| line(file, page)))
    }

    /// Writes the folder `csv`.
    pub(crate) fn write_tables(&self, directory: &Path) -> Result<()> {
        let tables = directory.join("csv");
        let made = huntsman_files::remove_any(&tables).and_then(|_| huntsman_files::create_dir(&tables));
        made.map_err(|error| Error::from(error).context(format!("writing {}", tables.display())))?;
        self.write_issue_tables(&tables)?;
        let mut pages = Table::create(&tables.join("pages.csv"))?;
        self.each_page(&mut |page| pages.row(&self.row_of_page(page)))?;
        pages.finish()?;
        self.write_lists(&tables)?;
        self.write_links(&tables)
    }

    fn write_issue_tables(&self, tables: &Path) -> Result<()> {
        let mut all = Table::create(&tables.join("issues.csv"))?;
        // Few codes have issues of several severities, which do not stand together: their tables are open until the second part.
        let mut open: Vec<(&OfCode, Table)> = Vec::new();
        let runs = self.issues.codes();
        let mut issues = self.issues.iter();
        for (number, of) in runs.iter().enumerate() {
            let mut table = match open.iter().position(|(before, _)| before.code == of.code) {
                Some(known) => open.swap_remove(known).1,
                None => Table::create(&tables.join(format!("{}.csv", of.code)))?,
            };
            for issue in issues.by_ref().take(of.number) {
                let row = row_of_issue(&issue?);
                all.row(&row)?;
                table.row(&row)?;
            }
            match runs[number + 1..].iter().any(|later| later.code == of.code) {
                true => open.push((of, table)),
                false => table.finish()?,
            }
        }
        all.finish()
    }

    /// The totals for `report.json`.
    pub fn totals(&self) -> Value {
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        let mut severities: BTreeMap<&str, usize> = BTreeMap::new();
        for of in self.issues.codes() {
            *codes.entry(of.code.as_str()).or_default() += of.number;
            *severities.entry(of.severity.name()).or_default() += of.number;
        }
        let count = |class| self.site.count(class);
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
            "segment_bytes": self.site.segment_bytes(),
            "score": self.score(),
            "new": self.new_issues(),
            "notes": self.notes,
            "gate": self.gate,
            "budget": self.budget,
            "compared": self.comparison,
            "logs": self.site.logs().map(Joined::totals),
            "trend": self.trend(),
        })
    }
}

fn line(file: &mut impl Write, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *file, value)?;
    Ok(file.write_all(b"\n")?)
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
