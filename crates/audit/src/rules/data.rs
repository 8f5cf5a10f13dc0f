//! Data for machines: what a page tells of itself to programs that show it elsewhere.

use serde::de::IgnoredAny;

use crate::code::Code;
use crate::code::PageClass::{Content, Indexable};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::page::{AuditedPage, without_fragment};
use crate::rule::Rule;

const fn code(name: &'static str) -> Code {
    Code::new("data", name)
}

const CODES: &[Code] = &[
    code("jsonld-invalid")
        .headline("JSON-LD that is not valid JSON")
        .severity(Error)
        .text(
            "A script with the type application/ld+json has content that is no JSON.",
            "Search engines ignore all of it.",
            "Correct it at the place that the issue names.",
        )
        .source("JSON-LD 1.1, RFC 8259")
        .example("{\"name\": \"Moths\",}", "{\"name\": \"Moths\"}"),
    code("og-missing")
        .headline("Pages without data for previews")
        .severity(Notice)
        .judges(Content)
        .text(
            "A page has no `og:title` or no `og:image`.",
            "Where the page is shared, its preview is guessed or has no image.",
            "Add both.",
        )
        .source("Open Graph protocol")
        .example("<title>Moths</title> alone", "<meta property=og:title content=Moths>"),
    code("og-url-mismatch")
        .headline("Pages whose data for previews name another URL")
        .severity(Notice)
        .judges(Indexable)
        .text(
            "The `og:url` of a page is neither its URL nor its canonical URL.",
            "Shares of the page count for another one.",
            "Name the canonical URL.",
        )
        .source("Open Graph protocol")
        .example(
            "<meta property=og:url content=\"https://example.org/\"> on /moths",
            "content=\"https://example.org/moths\"",
        ),
];

pub(super) struct Data;

impl Rule for Data {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        json_ld(page, findings);
        let missing: Vec<&str> = ["og:title", "og:image"]
            .into_iter()
            .filter(|name| !graph(page, name).any(|(content, _)| !content.trim().is_empty()))
            .collect();
        if !missing.is_empty() {
            findings.add(Finding::of("og-missing").value(missing));
        }
        let own = without_fragment(page.url());
        for (content, offset) in graph(page, "og:url") {
            let Some(url) = page.resolved(content.trim()) else { continue };
            let is_canonical = page.canonicals().iter().any(|canonical| canonical.url.as_ref() == Some(&url));
            if url != own && !is_canonical && !content.trim().is_empty() {
                findings.add(
                    Finding::of("og-url-mismatch").target(&url).limit(own.as_str()).at(page.place(offset)),
                );
            }
        }
    }
}

fn json_ld(page: &AuditedPage<'_>, findings: &mut Findings) {
    let text = page.page().scanned().1;
    for span in &page.facts().semantics.json_ld {
        if let Err(error) = read_json(span.of(text)) {
            findings.add(Finding::of("jsonld-invalid").value(error.to_string()).at(page.place(span.start)));
        }
    }
}

/// Reads JSON-LD. Nothing at all is no fault.
fn read_json(text: &str) -> Result<(), serde_json::Error> {
    let text = json_ld_text(text);
    if text.is_empty() { Ok(()) } else { serde_json::from_str::<IgnoredAny>(text).map(|_| ()) }
}

/// JSON-LD without the comments and CDATA sections that old templates put around scripts.
pub(crate) fn json_ld_text(text: &str) -> &str {
    let mut text = text.trim();
    for (start, end) in
        [("<!--", "-->"), ("//<![CDATA[", "//]]>"), ("/*<![CDATA[*/", "/*]]>*/"), ("<![CDATA[", "]]>")]
    {
        text = text.strip_prefix(start).unwrap_or(text).trim();
        text = text.strip_suffix(end).unwrap_or(text).trim();
    }
    text
}

/// The contents of the `meta` elements with a property of Open Graph, with their offsets. Many pages write `name` for `property`, which
/// programs accept. `og:image` and `og:image:url` are the same.
fn graph<'a>(page: &'a AuditedPage<'_>, property: &'a str) -> impl Iterator<Item = (&'a str, u32)> {
    let is_same = move |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        name == property
            || (property == "og:image" && matches!(&*name, "og:image:url" | "og:image:secure_url"))
    };
    let metas =
        page.metas().filter(move |meta| [meta.property, meta.name].into_iter().flatten().any(is_same));
    metas.filter_map(|meta| Some((meta.content?, meta.offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_read_as_strictly_as_the_standard_says() {
        for text in [
            "{}",
            " [{\"a\": 1}]\n",
            "<!-- {} -->",
            "//<![CDATA[\n{}\n//]]>",
            "  ",
            "{\"a\": \"\\u00e9</b>\"}",
        ] {
            assert!(read_json(text).is_ok(), "{text}");
        }
        for text in
            ["{\"a\": 1,}", "{'a': 1}", "{\"a\": 1} {}", "{", "{\"a\": \"line\nbreak\"}", "{\"a\": 1};"]
        {
            assert!(read_json(text).is_err(), "{text}");
        }
    }
}
