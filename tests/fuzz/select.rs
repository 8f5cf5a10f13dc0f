//! Selectors, forms and links on any page.

use std::collections::HashSet;

use huntsman::{Form, LinkExtractor, Page, Request, Response, XPathLimits, XPathScope};
use url::Url;

use super::split;

/// Larger pages cost too much time for a fuzzer.
const MOST: usize = 20_000;

fn page(html: &[u8]) -> Option<Page> {
    let url = Url::parse("http://h.example/dir/page?q=1").expect("a URL");
    (html.len() < MOST).then(|| Page::new(Request::get(url.clone()), Response::html(url, html.to_vec())))
}

/// A CSS selector in the first line, then a page: the selector is refused with its text, or gives values; what an element gives within itself, the page
/// gives as well. Pairs of a selector and an expression give the same.
pub(crate) fn css(data: &[u8]) {
    let (selector, html) = split(data);
    let selector = String::from_utf8_lossy(selector);
    let Some(page) = page(html) else { return };
    match page.select(&selector) {
        Ok(elements) => {
            let values = page.css(&selector).expect("a selector of elements gives values");
            assert_eq!(values.get_all().len(), elements.len());
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.starts_with("CSS selector \""), "{error}");
        }
    }
    for (css, xpath) in PAIRS {
        let (by_css, by_xpath) = (page.css(css), page.xpath(xpath));
        let (Ok(by_css), Ok(by_xpath)) = (by_css, by_xpath) else { continue };
        assert_eq!(by_css.get_all(), by_xpath.get_all(), "{css} and {xpath}");
    }
    for element in page.select("p, div").expect("a selector").into_iter().take(50) {
        let inside = element.css("a ::text").expect("a selector");
        assert_eq!(inside, element.xpath(".//a//text()").expect("an expression"));
    }
}

/// A selector and an expression that mean the same.
const PAIRS: &[(&str, &str)] = &[
    ("p ::text", "//p//text()"),
    ("p::text, b::text", "//p/text() | //b/text()"),
    ("[id]::attr(id)", "//@id"),
    ("a[href^='/']::attr(href)", "//a[starts-with(@href, '/')]/@href"),
    ("li:first-child ::text", "//li[not(preceding-sibling::*)]//text()"),
    ("td:nth-child(2)::text", "//td[count(preceding-sibling::*) = 1]/text()"),
    ("b:nth-last-of-type(2)::text", "//b[count(following-sibling::b) = 1]/text()"),
    ("div:has(> p)::text", "//div[p]/text()"),
    ("p:contains('a')::text", "//p[contains(., 'a')]/text()"),
    ("h2 ~ p::text", "//p[preceding-sibling::h2]/text()"),
    ("h2 + p::text", "//p[preceding-sibling::*[1][self::h2]]/text()"),
    ("div:not(:empty) > a::text", "//div[*|text()]/a/text()"),
    ("[class~=x]::attr(class)", "//*[has-class('x')]/@class"),
    (":root > * > *::attr(class)", "/*/*/*/@class"),
];

/// An XPath expression in the first line, then a page, which is read as HTML and, if it is XML, as XML.
pub(crate) fn xpath(data: &[u8]) {
    let (path, body) = split(data);
    let path = String::from_utf8_lossy(path);
    let Some(page) = page(body) else { return };
    let scope = XPathScope::new().variable("v", "x").limits(XPathLimits { steps: 2_000_000 });
    if let Err(error) = page.xpath_with(&path, &scope) {
        assert!(!error.to_string().is_empty());
    }
    let url = Url::parse("http://h.example/feed").expect("a URL");
    let mut response = Response::html(url.clone(), body.to_vec());
    let xml = http::HeaderValue::from_static("application/xml");
    response.headers.insert(http::header::CONTENT_TYPE, xml);
    let page = Page::new(Request::get(url), response);
    let _ = page.xpath_with(&path, &scope).map(|found| found.get_all().len());
    if let Ok(all) = page.nodes("//node()") {
        assert!(all.iter().all(|node| node.name().is_empty() || !node.markup().is_empty()));
    }
}

/// A page: every form can be filled in and sent, to a page, with the fields that it says.
pub(crate) fn forms(data: &[u8]) {
    let Some(page) = page(data) else { return };
    for css in ["form", "form ~ form", "input", "button"] {
        let Ok(form) = Form::of(&page, css) else { continue };
        let fields: Vec<_> = form.fields().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        if let Ok(request) = form.request() {
            assert!(matches!(request.url.scheme(), "http" | "https"), "{}", request.url);
            if request.body.is_empty() {
                let sent = request.url.query_pairs().count();
                assert!(sent >= fields.len(), "{sent} of {} fields", fields.len());
            }
        }
        for (name, _) in &fields {
            if let Ok(changed) = form.clone().set(name, "a\r\nb") {
                assert!(changed.fields().any(|(of, value)| of == name && value == "a\r\nb"));
                let _ = changed.without_button().request().is_ok();
            }
            let _ = form.clone().set_all(name, &["1", "2", "3"]).map(|form| form.request().is_ok());
            let _ = form.clone().file(name, "a\"b.txt", "text/plain", "x").map(|form| form.request().is_ok());
        }
        assert!(form.set("a field that no form has \u{1}", "x").is_err());
    }
}

/// A page: links are URLs of pages, come once, and are the same in the whole page as a region.
pub(crate) fn links(data: &[u8]) {
    let Some(page) = page(data) else { return };
    let of = |rules: LinkExtractor| rules.links(&page).expect("the rules are valid");
    let all = of(LinkExtractor::new().tags(&["*"]).attrs(&["href", "src"]).deny_extensions(&[]));
    let mut seen = HashSet::new();
    for link in &all {
        assert!(matches!(link.url.scheme(), "http" | "https"), "{}", link.url);
        assert!(seen.insert(link.url.as_str()), "{} comes twice", link.url);
    }
    let urls = |rules: LinkExtractor| -> Vec<Url> { of(rules).into_iter().map(|link| link.url).collect() };
    let region = LinkExtractor::new().restrict_css(":root").keep_duplicates();
    assert_eq!(urls(region), urls(LinkExtractor::new().restrict_xpath("/*").keep_duplicates()));
    let inner = of(LinkExtractor::new().restrict_css("div, p").tags(&["*"]).deny_extensions(&[]));
    assert!(inner.iter().all(|link| seen.contains(link.url.as_str())));
    for request in page.follow_all("a, ::attr(src)").expect("a selector") {
        assert!(matches!(request.url.scheme(), "http" | "https"));
    }
}
