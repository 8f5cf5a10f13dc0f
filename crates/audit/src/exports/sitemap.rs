//! `sitemap.xml` of the pages that search engines may index (sitemaps.org 0.9).

use std::fmt::Write;
use std::path::Path;

use huntsman_crawler::Result;

use crate::audit::Audit;
use crate::code::PageClass;
use crate::record::{Kind, Record};
use crate::tables::written_text;
use crate::xml::escape;

/// The most URLs and bytes of one sitemap, by the protocol.
const MAX_URLS: usize = 50_000;
const MAX_BYTES: usize = 50_000_000;
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const END: &str = "</urlset>\n";

impl Audit {
    /// Writes `sitemap.xml`. Above the limits of the protocol it is an index, and the parts are `sitemap-1.xml` and so on.
    pub(super) fn write_sitemap(&self, directory: &Path) -> Result<()> {
        let mut urls: Vec<&Record> = self.indexed().collect();
        urls.sort_by(|a, b| a.url.cmp(&b.url));
        let mut parts: Vec<String> = Vec::new();
        let mut count = MAX_URLS;
        for record in &urls {
            let entry = entry(record);
            let is_full = parts.last().is_none_or(|part| part.len() + entry.len() + END.len() > MAX_BYTES);
            if count >= MAX_URLS || is_full {
                parts.push(format!(
                    "{HEAD}<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">\n"
                ));
                count = 0;
            }
            count += 1;
            if let Some(part) = parts.last_mut() {
                part.push_str(&entry);
            }
        }
        parts.iter_mut().for_each(|part| part.push_str(END));
        match parts.as_slice() {
            [] => Ok(()),
            [only] => written_text(&directory.join("sitemap.xml"), only),
            parts => {
                let front = urls.first().map(|record| crate::site::front_of(&record.url)).unwrap_or_default();
                let mut index =
                    format!("{HEAD}<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
                for (number, part) in parts.iter().enumerate() {
                    let name = format!("sitemap-{}.xml", number + 1);
                    written_text(&directory.join(&name), part)?;
                    let _ = writeln!(
                        index,
                        "  <sitemap><loc>{}</loc></sitemap>",
                        escape(&format!("{front}{name}"))
                    );
                }
                index.push_str("</sitemapindex>\n");
                written_text(&directory.join("sitemap.xml"), &index)
            }
        }
    }

    /// The pages of the site that search engines may index: on the host of the first one, because a sitemap may name only URLs of its own host.
    fn indexed(&self) -> impl Iterator<Item = &Record> {
        let host = self
            .site
            .records()
            .find(|record| record.is_start)
            .map(|record| crate::site::front_of(&record.url));
        self.site.pages(PageClass::Indexable).filter(move |record| {
            let is_of_host = host.as_ref().is_none_or(|host| record.url.starts_with(host.as_str()));
            record.kind == Kind::Page
                && record.status == Some(200)
                && is_of_host
                && !self.site.is_soft_404(record)
        })
    }
}

fn entry(record: &Record) -> String {
    let mut text = format!("  <url><loc>{}</loc>", escape(&record.url));
    let modified = record.last_modified.as_deref().and_then(date);
    if let Some(date) = modified {
        let _ = write!(text, "<lastmod>{date}</lastmod>");
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
    fn only_dates_of_headers_are_dates() {
        assert_eq!(date("Tue, 15 Nov 1994 12:45:26 GMT").as_deref(), Some("1994-11-15"));
        for wrong in
            ["", "1994-11-15", "Tue, 15 Nob 1994", "Thu, 01 Jan 1970 00:00:00 GMT", "Tue, 45 Nov 1994"]
        {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
