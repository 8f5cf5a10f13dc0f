//! Extracts links of a page by rules, like Scrapy's `LinkExtractor`.

use std::collections::HashSet;
use std::sync::Arc;

use huntsman_text::urlparts;
use regex::Regex;
use url::Url;

use super::Page;
use super::selector::Selector;
use super::xpath::check;
use crate::error::{Error, Result};
use crate::request::Request;

/// File extensions that are not pages: archives, images, audio, video, fonts, office documents, programs, and
/// resources that pages load.
///
/// This is the list of Scrapy's `IGNORED_EXTENSIONS` (2.19), by kind.
pub const IGNORED_EXTENSIONS: &[&str] = &[
    "7z", "7zip", "apk", "bz2", "cdr", "dmg", "gz", "ico", "iso", "rar", "tar", "xz", "zip", // archives
    "ai", "bmp", "drw", "dxf", "eps", "gif", "jpeg", "jpg", "mng", "pct", "png", "ps", "psp", "pst", "svg",
    "tif", "tiff", "webp", // images
    "aac", "aiff", "au", "m4a", "mid", "mp3", "ogg", "ra", "wav", "wma", // audio
    "3gp", "asf", "asx", "avi", "flv", "m4v", "mov", "mp4", "mpg", "qt", "rm", "swf", "webm",
    "wmv", // video
    "doc", "docm", "docx", "dot", "dotx", "odp", "ods", "odt", "pdf", "potm", "potx", "pps", "ppsx", "ppt",
    "pptm", "pptx", "xls", "xlsm", "xlsx", "xltm", "xltx", // office
    "bin", "css", "exe", "jar", "js", "msi", "rss", "woff", "woff2", "ttf", // the rest
];

/// The most bytes of the texts of a page's links.
const MAX_TEXTS: usize = 64 << 20;

/// A link that an extractor found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLink {
    /// Absolute URL; its fragment is kept.
    pub url: Url,
    /// Anchor text of the link.
    pub text: String,
    /// Whether `rel` has `nofollow`.
    pub nofollow: bool,
    /// Name of the element.
    pub tag: String,
    /// Name of the attribute.
    pub attr: String,
    /// Position among the links that were examined.
    pub index: usize,
}

impl FoundLink {
    /// A request that follows the link. It counts as followed automatically ([`FoundBy::Link`](crate::FoundBy)), so
    /// the guards against traps judge it.
    pub fn request(&self) -> Request {
        Request::of_link(self.url.clone(), self.nofollow)
    }
}

/// Selects links of a page. A rule that is not set lets all links pass; deny rules have precedence.
///
/// Regions are given as CSS selectors or XPath expressions; a link must be in one of them.
///
/// Without regions, and with the default tags and attributes, it uses the scan and builds no tree.
///
/// ```
/// use huntsman_crawler::{LinkExtractor, Page, Request, Response};
/// use url::Url;
///
/// let url = Url::parse("http://shop.example/").unwrap();
/// let html = "<a href=/item/1>One</a> <a href=/cart>Cart</a> <a href=/item/1.jpg>Picture</a>";
/// let page = Page::new(Request::get(url.clone()), Response::html(url, html));
/// let items = LinkExtractor::new().allow("/item/")?.links(&page)?;
/// assert_eq!(items.len(), 1);
/// assert_eq!(items[0].text, "One");
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Clone)]
pub struct LinkExtractor {
    allow: Vec<Regex>,
    deny: Vec<Regex>,
    allow_domains: Vec<String>,
    deny_domains: Vec<String>,
    restrict_css: Vec<String>,
    restrict_xpath: Vec<String>,
    restrict_text: Vec<Regex>,
    tags: Vec<String>,
    attrs: Vec<String>,
    deny_tags: Vec<String>,
    deny_attrs: Vec<String>,
    process_value: Option<Arc<ProcessValue>>,
    deny_extensions: Vec<String>,
    is_unique: bool,
    canonicalize: bool,
}

/// Changes the value of an attribute, or drops the link.
type ProcessValue = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Default for LinkExtractor {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            allow_domains: Vec::new(),
            deny_domains: Vec::new(),
            restrict_css: Vec::new(),
            restrict_xpath: Vec::new(),
            restrict_text: Vec::new(),
            tags: vec!["a".to_owned(), "area".to_owned()],
            attrs: vec!["href".to_owned()],
            deny_tags: Vec::new(),
            deny_attrs: Vec::new(),
            process_value: None,
            deny_extensions: IGNORED_EXTENSIONS.iter().map(|&extension| extension.to_owned()).collect(),
            is_unique: true,
            canonicalize: false,
        }
    }
}

impl LinkExtractor {
    /// An extractor of all links of `a` and `area`, without repetitions and without links to [`IGNORED_EXTENSIONS`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A link must match one of these regular expressions, searched in the absolute URL.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn allow(mut self, expression: &str) -> Result<Self> {
        self.allow.push(regex(expression)?);
        Ok(self)
    }

    /// Leaves out a link that matches this regular expression. Has precedence over `allow`.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn deny(mut self, expression: &str) -> Result<Self> {
        self.deny.push(regex(expression)?);
        Ok(self)
    }

    /// A link must lead to this domain or a subdomain.
    pub fn allow_domain(mut self, domain: &str) -> Self {
        self.allow_domains.push(domain.to_ascii_lowercase());
        self
    }

    /// Leaves out links to this domain or a subdomain.
    pub fn deny_domain(mut self, domain: &str) -> Self {
        self.deny_domains.push(domain.to_ascii_lowercase());
        self
    }

    /// Restricts the links to elements inside those that match this selector. Builds the tree of the page.
    pub fn restrict_css(mut self, selector: &str) -> Self {
        self.restrict_css.push(selector.to_owned());
        self
    }

    /// Restricts the links to elements inside those that this XPath expression selects. Builds the tree of the page.
    pub fn restrict_xpath(mut self, path: &str) -> Self {
        self.restrict_xpath.push(path.to_owned());
        self
    }

    /// Restricts the links to those whose text matches.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn restrict_text(mut self, expression: &str) -> Result<Self> {
        self.restrict_text.push(regex(expression)?);
        Ok(self)
    }

    /// Examines these elements instead of `a` and `area`; `*` means every element. Builds the tree of the page.
    pub fn tags(mut self, tags: &[&str]) -> Self {
        self.tags = tags.iter().map(|tag| tag.to_ascii_lowercase()).collect();
        self
    }

    /// Examines these attributes instead of `href`. Builds the tree of the page.
    pub fn attrs(mut self, attrs: &[&str]) -> Self {
        self.attrs = attrs.iter().map(|attr| attr.to_ascii_lowercase()).collect();
        self
    }

    /// Ignores these elements. Has precedence over `tags`.
    pub fn deny_tags(mut self, tags: &[&str]) -> Self {
        self.deny_tags = tags.iter().map(|tag| tag.to_ascii_lowercase()).collect();
        self
    }

    /// Ignores these attributes. Has precedence over `attrs`.
    pub fn deny_attrs(mut self, attrs: &[&str]) -> Self {
        self.deny_attrs = attrs.iter().map(|attr| attr.to_ascii_lowercase()).collect();
        self
    }

    /// Changes the value of each attribute before it is resolved; `None` leaves the link out. For URLs that are
    /// embedded in other text, such as `javascript:goTo('/page')`.
    pub fn process_value(mut self, process: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        self.process_value = Some(Arc::new(process));
        self
    }

    /// Leaves out URLs whose path ends with one of these extensions, instead of [`IGNORED_EXTENSIONS`]; an empty list lets all
    /// pass.
    pub fn deny_extensions(mut self, extensions: &[&str]) -> Self {
        self.deny_extensions =
            extensions.iter().map(|e| e.trim_start_matches('.').to_ascii_lowercase()).collect();
        self
    }

    /// Returns repeated links as often as they occur on the page.
    pub fn keep_duplicates(mut self) -> Self {
        self.is_unique = false;
        self
    }

    /// Compares links in their canonical form when looking for repetitions.
    pub fn canonicalize(mut self) -> Self {
        self.canonicalize = true;
        self
    }

    /// The links of the page that pass the rules, in document order.
    ///
    /// # Errors
    /// A selector is not valid CSS, or an expression is not valid XPath or selects no elements but values; or the page was made to cost more than
    /// selectors may.
    pub fn links(&self, page: &Page) -> Result<Vec<FoundLink>> {
        let mut seen = HashSet::new();
        let mut links = self.candidates(page)?;
        links.retain(|link| self.passes(link) && (!self.is_unique || seen.insert(self.identity(&link.url))));
        Ok(links)
    }

    /// The key by which repetitions are recognised: the whole URL with its fragment, or its canonical form.
    fn identity(&self, url: &Url) -> String {
        if self.canonicalize { urlparts::canonical(url) } else { url.as_str().to_owned() }
    }

    fn candidates(&self, page: &Page) -> Result<Vec<FoundLink>> {
        let has_regions = !self.restrict_css.is_empty() || !self.restrict_xpath.is_empty();
        let is_plain = !has_regions && self.attrs == ["href"] && self.deny_attrs.is_empty();
        if is_plain && self.tags.iter().all(|tag| tag == "a" || tag == "area") {
            let anchors = page.anchors().filter(|link| self.looks_at(link.tag.name()));
            let found = anchors.enumerate().filter_map(|(index, link)| {
                Some(FoundLink {
                    url: self.resolve(page, link.href)?,
                    text: link.text.to_owned(),
                    nofollow: link.nofollow(),
                    tag: link.tag.name().to_owned(),
                    attr: link.attribute.to_owned(),
                    index,
                })
            });
            return Ok(found.collect());
        }
        for region in &self.restrict_css {
            // Within `:is` the error would report a different position.
            Selector::of_elements(region)?;
        }
        let tags = self.tags.join(", ");
        let wanted: Vec<String> = match has_regions {
            false => self.tags.clone(),
            // A region that is itself a link counts, like links inside it. Regions that contain each other give their links once.
            true => self
                .restrict_css
                .iter()
                .map(|region| format!(":is({region}):is({tags}), :is({region}) :is({tags})"))
                .collect(),
        };
        let mut found = Found::default();
        let by_css =
            if tags.is_empty() || wanted.is_empty() { Vec::new() } else { page.select(&wanted.join(", "))? };
        for element in by_css {
            self.look_at(page, element.name(), |attr| element.attr(attr), || element.text(), &mut found)?;
        }
        for path in &self.restrict_xpath {
            // In brackets the error would report a different position.
            check(path)?;
            for node in page.nodes(&format!("({path})/descendant-or-self::*"))? {
                let text = || node.text().to_owned();
                self.look_at(page, &node.name(), |attr| node.attr(attr), text, &mut found)?;
            }
        }
        Ok(found.links)
    }

    /// Adds the links of an element, one for each attribute that is examined.
    fn look_at<'a>(
        &self,
        page: &Page,
        tag: &str,
        attr_of: impl Fn(&str) -> Option<&'a str>,
        text: impl Fn() -> String,
        found: &mut Found,
    ) -> Result<()> {
        if !self.looks_at(tag) {
            return Ok(());
        }
        for attr in self.attrs.iter().filter(|attr| !self.deny_attrs.contains(attr)) {
            let Some(url) = attr_of(attr).and_then(|value| self.resolve(page, value.trim())) else {
                continue;
            };
            let rel = attr_of("rel").unwrap_or_default();
            found.push(FoundLink {
                url,
                text: text(),
                nofollow: rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("nofollow")),
                tag: tag.to_owned(),
                attr: attr.clone(),
                index: found.links.len(),
            })?;
        }
        Ok(())
    }

    fn looks_at(&self, tag: &str) -> bool {
        self.tags.iter().any(|wanted| wanted == tag || wanted == "*")
            && !self.deny_tags.iter().any(|t| t == tag)
    }

    fn resolve(&self, page: &Page, value: &str) -> Option<Url> {
        match &self.process_value {
            Some(process) => page.join(process(value)?.trim()),
            None => page.join(value),
        }
    }

    fn passes(&self, link: &FoundLink) -> bool {
        let url = link.url.as_str();
        let matches = |rules: &[Regex], text: &str| rules.iter().any(|rule| rule.is_match(text));
        let host = link.url.host_str().unwrap_or_default();
        let within = |domains: &[String]| domains.iter().any(|domain| is_within(host, domain));
        let extension = link.url.path().rsplit('/').next().and_then(|name| Some(name.rsplit_once('.')?.1));
        let is_denied =
            extension.is_some_and(|e| self.deny_extensions.iter().any(|d| d.eq_ignore_ascii_case(e)));
        !is_denied
            && !matches(&self.deny, url)
            && !within(&self.deny_domains)
            && (self.allow.is_empty() || matches(&self.allow, url))
            && (self.allow_domains.is_empty() || within(&self.allow_domains))
            && (self.restrict_text.is_empty() || matches(&self.restrict_text, &link.text))
    }
}

/// The links that were examined.
#[derive(Default)]
struct Found {
    links: Vec<FoundLink>,
    /// Bytes of their texts.
    bytes: usize,
}

impl Found {
    fn push(&mut self, link: FoundLink) -> Result<()> {
        self.bytes += link.text.len();
        if self.bytes > MAX_TEXTS {
            let most = MAX_TEXTS >> 20;
            return Err(Error::msg(format!(
                "the texts of links take more than {most} MiB, as elements with links contain each other: name fewer tags"
            )));
        }
        self.links.push(link);
        Ok(())
    }
}

impl std::fmt::Debug for LinkExtractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LinkExtractor")
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("restrict_css", &self.restrict_css)
            .field("restrict_xpath", &self.restrict_xpath)
            .field("tags", &self.tags)
            .field("attrs", &self.attrs)
            .finish_non_exhaustive()
    }
}

/// Whether a host is the domain or a subdomain of it.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn regex(expression: &str) -> Result<Regex> {
    Regex::new(expression).map_err(|cause| Error::usage(format!("link rule \"{expression}\": {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Response;

    fn page(html: &str) -> Page {
        let url = Url::parse("http://a.example/dir/").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, html.to_owned()))
    }

    fn paths(extractor: &LinkExtractor, html: &str) -> Vec<String> {
        let links = extractor.links(&page(html)).unwrap();
        links.iter().map(|link| link.url.as_str().replace("http://a.example", "")).collect()
    }

    const HTML: &str = "<nav><a href=/item/1>One</a></nav><main><a href=/item/2 rel='NoFollow x'>Two</a>\
        <a href=/item/2>Two again</a><a href=/other>Other</a><a href=/a.PDF>Doc</a><img src=/pic.png>\
        <a href='mailto:x@y'>mail</a><a href=http://sub.b.example/x>b</a><a href=http://notb.example/x>c</a></main>";

    #[test]
    fn links_come_once_without_files_and_foreign_schemes() {
        let all = ["/item/1", "/item/2", "/other", "http://sub.b.example/x", "http://notb.example/x"];
        assert_eq!(paths(&LinkExtractor::new(), HTML), all);
        assert_eq!(paths(&LinkExtractor::new().keep_duplicates(), HTML).len(), 6);
    }

    #[test]
    fn deny_wins_over_allow() {
        let rules = LinkExtractor::new().allow("/item/").unwrap().deny("/2$").unwrap();
        assert_eq!(paths(&rules, HTML), ["/item/1"]);
        assert!(LinkExtractor::new().allow("(").is_err());
    }

    #[test]
    fn domains_reach_down_to_their_subdomains() {
        assert_eq!(paths(&LinkExtractor::new().allow_domain("b.example"), HTML), ["http://sub.b.example/x"]);
        assert!(
            !paths(&LinkExtractor::new().deny_domain("b.example"), HTML)
                .iter()
                .any(|url| url.contains("sub.b"))
        );
    }

    #[test]
    fn regions_texts_tags_and_attributes_choose() {
        assert_eq!(paths(&LinkExtractor::new().restrict_css("nav"), HTML), ["/item/1"]);
        assert_eq!(paths(&LinkExtractor::new().restrict_css("main > a[rel]"), HTML), ["/item/2"]);
        assert_eq!(paths(&LinkExtractor::new().restrict_text("^Oth").unwrap(), HTML), ["/other"]);
        let pictures = LinkExtractor::new().tags(&["img"]).attrs(&["src"]).deny_extensions(&[]);
        assert_eq!(paths(&pictures, HTML), ["/pic.png"]);
        assert!(LinkExtractor::new().restrict_css("nav[").links(&page(HTML)).is_err());
        assert_eq!(
            paths(&LinkExtractor::new().restrict_xpath("//nav | //main/a[@rel]"), HTML),
            ["/item/1", "/item/2"]
        );
        assert_eq!(
            paths(&LinkExtractor::new().restrict_css("main > a[rel]").restrict_xpath("//nav"), HTML).len(),
            2
        );
        assert!(LinkExtractor::new().restrict_xpath("//nav[").links(&page(HTML)).is_err());
    }

    #[test]
    fn regions_in_regions_give_their_links_once() {
        let html = format!("{}{}", "<div>".repeat(400), "<a href=/x>x</a>".repeat(2_000));
        for rules in [LinkExtractor::new().restrict_css("div"), LinkExtractor::new().restrict_xpath("//div")]
        {
            assert_eq!(rules.keep_duplicates().links(&page(&html)).unwrap().len(), 2_000);
        }
    }

    #[test]
    fn texts_of_links_in_links_do_not_fill_the_memory() {
        let html = format!("{}{}", "<div href=/x>".repeat(400), "word ".repeat(100_000));
        let error = LinkExtractor::new().tags(&["*"]).links(&page(&html)).unwrap_err().to_string();
        assert!(error.contains("more than 64 MiB"), "{error}");
    }

    #[test]
    fn denied_tags_and_attributes_are_not_looked_at() {
        let html = "<a href=/a>a</a><map><area href=/area></map><img src=/s longdesc=/l><link href=/style>";
        assert_eq!(paths(&LinkExtractor::new().deny_tags(&["AREA"]), html), ["/a"]);
        let all = LinkExtractor::new().tags(&["*"]).attrs(&["href", "src", "longdesc"]);
        assert_eq!(paths(&all, html), ["/a", "/area", "/s", "/l", "/style"]);
        let some = all.clone().deny_tags(&["link"]).deny_attrs(&["longdesc"]);
        assert_eq!(paths(&some, html), ["/a", "/area", "/s"]);
        assert_eq!(paths(&LinkExtractor::new().deny_attrs(&["href"]), html), [""; 0]);
    }

    #[test]
    fn values_are_processed_before_they_are_resolved() {
        let html = "<a href=\"javascript:go('../one')\">1</a><a href=/two>2</a><a href='#'>3</a>";
        let unwrapped = |value: &str| {
            let value = value.strip_prefix("javascript:go('")?.strip_suffix("')")?;
            Some(value.to_owned())
        };
        for rules in [LinkExtractor::new(), LinkExtractor::new().restrict_css("body")] {
            assert_eq!(paths(&rules.process_value(unwrapped), html), ["/one"]);
        }
    }

    #[test]
    fn a_link_knows_its_text_and_its_nofollow() {
        let links = LinkExtractor::new().links(&page(HTML)).unwrap();
        assert_eq!(
            (links[1].text.as_str(), links[1].nofollow, links[1].request().nofollow),
            ("Two", true, true)
        );
        assert!(!links[0].nofollow);
    }

    #[test]
    fn canonical_form_tells_repetitions_if_asked() {
        let html = "<a href='/x?b=1&a=2'>1</a><a href='/x?a=2&b=1'>2</a>";
        assert_eq!(paths(&LinkExtractor::new(), html).len(), 2);
        assert_eq!(paths(&LinkExtractor::new().canonicalize(), html), ["/x?b=1&a=2"]);
    }
}
