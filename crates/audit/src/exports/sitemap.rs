//! `sitemap.xml`: the pages of the site that search engines may index, as the protocol of sitemaps asks for (sitemaps.org, version 0.9).

use std::fmt::Write;
use std::path::{Path, PathBuf};

use huntsman_crawler::{Result, Timestamp};

use crate::audit::Audit;
use crate::code::PageClass;
use crate::record::Record;
use crate::site::front_of;
use crate::tables::written_text;
use crate::xml::escape;

/// The most URLs and bytes of one sitemap, by the protocol. Some readers take the limit of 50 MB for 50,000,000 bytes.
const MAX_URLS: usize = 50_000;
const MAX_BYTES: usize = 50_000_000;
/// Sites with fewer pages may all have been changed today.
const MIN_PAGES_TODAY: usize = 10;
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const START: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">\n";
const END: &str = "</urlset>\n";

impl Audit {
    /// Writes `sitemap.xml`, unless no page may be indexed. Above the limits of the protocol it is an index, and the parts are `sitemap-1.xml` and
    /// so on.
    pub(super) fn write_sitemap(&self, directory: &Path) -> Result<()> {
        let dates = self.credible_dates()?;
        let mut parts = Parts::new(directory, MAX_URLS);
        self.each_indexed(&mut |record| parts.add(&record.url, &entry(record, &dates)))?;
        parts.finish()
    }

    /// Reads the pages that search engines may index: on the host of the start URL, because a sitemap may name only URLs of its own host.
    fn each_indexed(&self, each: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        let front = self.front();
        self.each_of(PageClass::Indexable, &mut |record| {
            let is_of_host = front.as_ref().is_none_or(|front| record.url.starts_with(front.as_str()));
            let is_listed = record.status == Some(200) && is_of_host && !self.is_soft_404(record);
            if is_listed { each(record) } else { Ok(()) }
        })
    }

    /// Which dates of pages are told: none of the future, and not that of today if most pages say so, because then the server makes pages up anew
    /// for each request.
    fn credible_dates(&self) -> Result<Dates> {
        let today = Timestamp::wall().to_rfc3339().chars().take(10).collect::<String>();
        let (mut pages, mut of_today) = (0, 0);
        self.each_indexed(&mut |record| {
            pages += 1;
            of_today += usize::from(day(record).is_some_and(|day| day == today));
            Ok(())
        })?;
        let is_made_up = pages >= MIN_PAGES_TODAY && of_today * 2 > pages;
        Ok(Dates { today, is_made_up })
    }
}

/// Which dates are credible.
struct Dates {
    today: String,
    /// Whether the date of today is that of the request.
    is_made_up: bool,
}

impl Dates {
    fn is_credible(&self, day: &str) -> bool {
        day < self.today.as_str() || (day == self.today && !self.is_made_up)
    }
}

/// Sitemaps that are written one after the other. Only the one under way is in memory.
struct Parts<'a> {
    directory: &'a Path,
    max_urls: usize,
    text: String,
    urls: usize,
    written: usize,
    front: String,
}

impl<'a> Parts<'a> {
    fn new(directory: &'a Path, max_urls: usize) -> Self {
        Self { directory, max_urls, text: String::new(), urls: 0, written: 0, front: String::new() }
    }

    fn add(&mut self, url: &str, entry: &str) -> Result<()> {
        let is_full = self.urls >= self.max_urls || self.text.len() + entry.len() + END.len() > MAX_BYTES;
        if is_full && self.urls > 0 {
            self.end_part()?;
        }
        if self.text.is_empty() {
            self.text = format!("{HEAD}{START}");
            self.front = front_of(url);
        }
        self.text.push_str(entry);
        self.urls += 1;
        Ok(())
    }

    fn end_part(&mut self) -> Result<()> {
        self.text.push_str(END);
        self.written += 1;
        written_text(&self.part(self.written), &self.text)?;
        self.text.clear();
        self.urls = 0;
        Ok(())
    }

    fn part(&self, number: usize) -> PathBuf {
        self.directory.join(format!("sitemap-{number}.xml"))
    }

    fn finish(mut self) -> Result<()> {
        let path = self.directory.join("sitemap.xml");
        if self.written == 0 {
            self.text.push_str(END);
            match self.urls {
                0 => drop(huntsman_files::remove_any(&path)?),
                _ => written_text(&path, &self.text)?,
            }
        } else {
            self.end_part()?;
            let mut index =
                format!("{HEAD}<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
            for number in 1..=self.written {
                let url = escape(&format!("{}sitemap-{number}.xml", self.front));
                let _ = writeln!(index, "  <sitemap><loc>{url}</loc></sitemap>");
            }
            index.push_str("</sitemapindex>\n");
            written_text(&path, &index)?;
        }
        // Parts of an earlier audit.
        let mut number = self.written + 1;
        while huntsman_files::remove_any(self.part(number))? {
            number += 1;
        }
        Ok(())
    }
}

fn entry(record: &Record, dates: &Dates) -> String {
    let mut text = format!("  <url><loc>{}</loc>", escape(&record.url));
    if let Some(day) = day(record).filter(|day| dates.is_credible(day)) {
        let _ = write!(text, "<lastmod>{day}</lastmod>");
    }
    for alternate in record.html.iter().flat_map(|html| &html.alternates) {
        let _ = write!(
            text,
            "<xhtml:link rel=\"alternate\" hreflang=\"{}\" href=\"{}\"/>",
            escape(&alternate.lang),
            escape(&alternate.url)
        );
    }
    text.push_str("</url>\n");
    text
}

/// The day on which a page was changed, as its header says.
fn day(record: &Record) -> Option<String> {
    record.last_modified.as_deref().and_then(date)
}

/// The day of a `Last-Modified` header: `Tue, 15 Nov 1994 12:45:26 GMT`.
fn date(header: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = header.split_whitespace().skip(1);
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, year): (u8, u16) = (day.parse().ok()?, year.parse().ok()?);
    ((1..=31).contains(&day) && (1_990..=9_999).contains(&year))
        .then(|| format!("{year}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sitemap_is_split_at_the_limit_and_parts_of_an_earlier_one_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |urls: usize| {
            let mut parts = Parts::new(dir.path(), 2);
            for number in 0..urls {
                let url = format!("https://a.example/{number}");
                parts.add(&url, &format!("<url><loc>{url}</loc></url>\n")).unwrap();
            }
            parts.finish().unwrap();
            let mut names: Vec<String> = std::fs::read_dir(dir.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(write(5), ["sitemap-1.xml", "sitemap-2.xml", "sitemap-3.xml", "sitemap.xml"]);
        let index = read("sitemap.xml");
        assert!(index.contains("<loc>https://a.example/sitemap-3.xml</loc>"), "{index}");
        assert_eq!(read("sitemap-3.xml").matches("<loc>").count(), 1);
        assert_eq!(write(4), ["sitemap-1.xml", "sitemap-2.xml", "sitemap.xml"]);
        assert_eq!(write(2), ["sitemap.xml"]);
        assert_eq!(read("sitemap.xml").matches("<loc>").count(), 2);
        assert!(write(0).is_empty());
    }

    #[test]
    fn dates_of_the_future_and_of_pages_that_are_made_up_are_left_out() {
        let of = |is_made_up| Dates { today: "2026-11-25".to_owned(), is_made_up };
        assert!(of(true).is_credible("2026-11-24") && of(false).is_credible("2026-11-25"));
        assert!(!of(true).is_credible("2026-11-25") && !of(false).is_credible("2026-11-26"));
    }

    #[test]
    fn only_dates_of_headers_are_dates() {
        assert_eq!(date("Tue, 15 Nov 1994 12:45:26 GMT").as_deref(), Some("1994-11-15"));
        for wrong in
            ["", "1994-11-15", "Tue, 15 Nob 1994", "Thu, 01 Jan 1970 00:00:00 GMT", "Tue, 45 Nov 1994"]
        {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
