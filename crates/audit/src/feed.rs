//! Whether a file is a feed that programs can read.

use huntsman_crawler::{Page, Sitemap, SitemapKind, SitemapLimits, xml_fault};
use serde::Deserialize;

/// The media types by which pages name their feeds.
pub(crate) const TYPES: [&str; 3] = ["application/rss+xml", "application/atom+xml", "application/feed+json"];

/// Why programs cannot read an answer as a feed (RSS 0.9 to 2.0, Atom, JSON Feed 1); `None` if they can.
pub(crate) fn fault(page: &Page) -> Option<String> {
    let body = &page.response().body;
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        return json_fault(body);
    }
    let mut feed = Sitemap::new(body, page.url(), SitemapLimits::default());
    feed.by_ref().for_each(drop);
    if !matches!(feed.report().kind, Some(SitemapKind::Rss | SitemapKind::Atom)) {
        return Some("it is no feed".to_owned());
    }
    xml_fault(body, 0)
}

fn json_fault(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Feed {
        version: String,
        #[serde(rename = "items")]
        _items: Vec<serde::de::IgnoredAny>,
    }
    match serde_json::from_slice::<Feed>(body) {
        Ok(feed) if feed.version.starts_with("https://jsonfeed.org/version/") => None,
        Ok(_) => Some("its version is none of JSON Feed".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::{Request, Response};
    use url::Url;

    fn of(text: &str) -> Option<String> {
        let url = Url::parse("https://a.example/feed").unwrap();
        let mut response = Response::new(url.clone(), http::StatusCode::OK, text.to_owned());
        response.headers.insert("content-type", "application/xml".parse().unwrap());
        fault(&Page::new(Request::get(url), response))
    }

    #[test]
    fn feeds_of_all_kinds_are_none_of_the_faulty_ones() {
        for text in [
            "<rss version=\"2.0\"><channel><title>A</title><item><link>/a</link></item></channel></rss>",
            "<?xml version=\"1.0\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>B &amp; C &#160;</title></feed>",
            "<rdf:RDF xmlns:rdf=\"r\"><item><link>https://a.example/1</link></item></rdf:RDF>",
            "<rss><channel><description><![CDATA[<p>a & b]]></description></channel></rss>",
            "{\"version\": \"https://jsonfeed.org/version/1.1\", \"title\": \"A\", \"items\": []}",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_programs_cannot_read_is_told_with_its_line() {
        for (text, why) in [
            ("<html><body>Not here", "no feed"),
            ("", "no feed"),
            (
                "<rss><channel>\n<title>A&nbsp;B</title></channel></rss>",
                "line 2: an entity that XML does not have: &nbsp;",
            ),
            ("<rss><channel>\n\n<title>A & B</title></channel></rss>", "line 3"),
            ("<rss><channel><title>A</channel></rss>", "line 1"),
            ("<rss><channel><item a=1></item></channel></rss>", "attribute"),
            ("<rss><channel><item>", "within an element"),
            ("{\"items\": []}", "version"),
            ("{\"version\": \"https://jsonfeed.org/version/1\", \"items\": [],}", "trailing comma"),
        ] {
            let said = of(text).unwrap_or_default();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
