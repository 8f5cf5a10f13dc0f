//! Results in a form that another program can make of its own results.

use flate2::Crc;
use huntsman::{Page, PageNode, Result};
use serde::Serialize;

use super::Query;

/// Values that an answer shows.
const SHOWN: usize = 5;
/// Characters of a value that are shown.
const LENGTH: usize = 100;

/// What a query gives.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Error { error: String },
    Values { count: usize, checksum: u32, values: Vec<String> },
}

impl Answer {
    pub(super) fn of(values: Result<Vec<String>>, full: bool) -> Self {
        let mut values = match values {
            Ok(values) => values,
            Err(error) => return Self::Error { error: error.to_string() },
        };
        let (count, checksum) = (values.len(), checksum(values.iter().map(String::as_str)));
        if !full {
            values.truncate(SHOWN);
            values.iter_mut().for_each(|value| *value = value.chars().take(LENGTH).collect());
        }
        Self::Values { count, checksum, values }
    }
}

/// The checksum of values: each ends with a zero byte.
fn checksum<'a>(values: impl Iterator<Item = &'a str>) -> u32 {
    let mut crc = Crc::new();
    for value in values {
        crc.update(value.as_bytes());
        crc.update(&[0]);
    }
    crc.sum()
}

/// Texts and attributes as they are; an element by its name, some attributes, and the length and checksum of its text.
pub(super) fn values(page: &Page, query: &Query) -> Result<Vec<String>> {
    match query {
        Query::Css(css) if css.contains("::") => {
            Ok(page.css(css)?.get_all().iter().map(|value| clean(value)).collect())
        }
        Query::Css(css) => {
            let found = page.select(css)?;
            Ok(found
                .iter()
                .map(|found| signature(found.name(), |name| found.attr(name), &found.text()))
                .collect())
        }
        Query::XPath(path) => match page.nodes(path) {
            Ok(nodes) => nodes.into_iter().map(value).collect(),
            // It is a number, a string or a boolean, or an error that `xpath` has as well.
            Err(_) => Ok(page.xpath(path)?.get_all().iter().map(|value| clean(value)).collect()),
        },
    }
}

fn value(node: PageNode<'_>) -> Result<String> {
    if is(node, "self::*")? {
        return Ok(signature(&node.name(), |name| node.attr(name), node.text()));
    }
    let markup = node.markup();
    Ok(if is(node, "self::comment()")? { clean(&comment(&markup)) } else { clean(&markup) })
}

/// Whether a step from a node leads somewhere.
pub(super) fn is(node: PageNode<'_>, step: &str) -> Result<bool> {
    Ok(!node.nodes(step)?.is_empty())
}

fn signature<'a>(name: &str, attr: impl Fn(&str) -> Option<&'a str>, text: &str) -> String {
    // White space that XML does not have was replaced only now.
    let text = clean(text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{fffd}');
    let attrs = ["id", "class", "href"].map(|name| attr(name).map(clean).unwrap_or_default());
    format!("<{name} {}> {} {}", attrs.join(" "), text.chars().count(), checksum([text].into_iter()))
}

/// The text of a comment in which XML has no fault: two hyphens must not follow each other there.
pub(super) fn comment(markup: &str) -> String {
    let inside = markup.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).unwrap_or(markup);
    format!("<!--{}-->", inside.replace('-', "="))
}

/// A text with a replacement for each character that XML does not have.
pub(super) fn clean(text: &str) -> String {
    let is_xml = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if is_xml(c) { c } else { '\u{fffd}' }).collect()
}
