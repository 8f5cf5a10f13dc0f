//! Feeds: RSS, Atom and JSON Feed.

use huntsman_crawler::Page;
use huntsman_text::words;

use super::{Found, Link, MAX_LINKS};
use crate::place::Sought;

/// The name of the outermost element, without its prefix.
pub(super) fn root(page: &Page) -> Option<String> {
    page.xpath("local-name(/*)").ok()?.get()
}

/// Whether JSON is a feed.
pub(super) fn is_json_feed(page: &Page) -> bool {
    let version = page.json_body().ok().and_then(|json| json.value()["version"].as_str());
    version.is_some_and(|version| version.starts_with("https://jsonfeed.org/version/"))
}

/// Reads a feed: its title, the words of its entries, and where they lead.
pub(super) fn read(page: &Page) -> Found {
    if let Ok(json) = page.json_body() {
        return of_json(json.value(), page.body_text());
    }
    let child = |name: &str| format!("*[local-name()='{name}']");
    let (title, link) = (child("title"), child("link"));
    let texts = |path: &str| -> Vec<String> {
        page.xpath(path).map_or_else(|_| Vec::new(), |found| found.get_all().to_vec())
    };
    let entries = ["item", "entry"].map(child);
    let mut found = Found {
        title: texts(&format!("/*/{title}/text() | /*/{}/{title}/text()", child("channel")))
            .into_iter()
            .next(),
        ..Found::default()
    };
    let mut places = Sought::of(page.body_text());
    for entry in entries {
        let says = ["title", "description", "summary", "content"]
            .map(|name| format!("//{entry}/{}//text()", child(name)))
            .join(" | ");
        found.words += texts(&says).iter().map(|text| words::count(text)).sum::<usize>();
        // RSS has the address as text; Atom as an attribute, and those with another relation lead elsewhere.
        let hrefs = texts(&format!(
            "//{entry}/{link}/text() | //{entry}/{link}[not(@rel) or @rel='alternate']/@href"
        ));
        for href in hrefs.into_iter().filter(|href| !href.trim().is_empty()).take(MAX_LINKS) {
            let at = places.next(href.trim());
            found.links.push(Link { href, name: String::new(), at });
        }
    }
    found
}

fn of_json(feed: &serde_json::Value, text: &str) -> Found {
    let mut found = Found { title: feed["title"].as_str().map(str::to_owned), ..Found::default() };
    let mut places = Sought::of(text);
    for item in feed["items"].as_array().into_iter().flatten().take(MAX_LINKS) {
        let name = item["title"].as_str().unwrap_or_default();
        let says = [
            name,
            item["content_text"].as_str().unwrap_or_default(),
            item["summary"].as_str().unwrap_or_default(),
        ];
        found.words += says.into_iter().map(words::count).sum::<usize>();
        if let Some(href) = item["url"].as_str() {
            let at = places.next(href);
            found.links.push(Link { href: href.to_owned(), name: name.to_owned(), at });
        }
    }
    found
}
