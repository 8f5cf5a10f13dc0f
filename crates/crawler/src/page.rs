//! A page: one response that is decoded once, scanned once, and shared by middlewares, detectors and the spider.
//!
//! Links, title, meta data and text come from one scan without a tree. The tree is built once, when a spider first
//! uses a selector.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use http::{Extensions, header};
use huntsman_html::{Link, LinkElement, Meta, MetaRefresh, PageKind, ResourceLink, Scan, ScanOptions, sniff};
use huntsman_page_data::LinkedData;
use huntsman_text::lang::{self, Detected};
use huntsman_text::words::{self, WordCounts, Words};
use huntsman_xpath::Scope;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use crate::error::Result;
use crate::request::Request;
use crate::response::Response;

mod budget;
mod element;
mod form;
mod item;
mod json;
mod link_extractor;
mod linked_data;
mod node;
mod outline;
mod selector;
mod tree;
mod xml_tree;
mod xpath;

pub use element::{Element, Selection};
pub use form::Form;
pub use item::{FoundValue, Item, ItemLoader, ItemValue, PagePart, Processor, private as item_private};
pub use json::{Json, JsonNode, JsonSelection};
pub use link_extractor::{FoundLink, IGNORED_EXTENSIONS, LinkExtractor};
pub use xpath::PageNode;

/// The page that a spider gets. It lives on one worker thread; expensive values are computed at first use and kept.
pub struct Page {
    request: Request,
    response: Response,
    options: ScanOptions,
    kind: OnceCell<PageKind>,
    document: OnceCell<Document>,
    scan: OnceCell<PooledScan>,
    text_scan: OnceCell<PooledScan>,
    base: OnceCell<Url>,
    tree: OnceCell<tree::Tree>,
    xml_nodes: OnceCell<Arc<xpath::Nodes>>,
    html_nodes: OnceCell<Arc<xpath::Nodes>>,
    json: OnceCell<Json>,
    linked: OnceCell<LinkedData>,
    words: OnceCell<Words>,
    word_count: OnceCell<usize>,
    lang: OnceCell<Detected>,
    label_read: Cell<bool>,
    links_followed: Cell<usize>,
    /// Values that components attached, for the spider and for other components.
    pub extensions: Extensions,
    /// Fields that components add to what a spider records of the page, by name, in the order in which they were added.
    /// `huntsman crawl` writes them into `pages.jsonl`, so their names must differ from those of its own fields.
    pub record_fields: Map<String, Value>,
    /// Requests that are queued as if the callback had given them, even if a middleware skips the page. Middlewares
    /// that know the links of an unchanged page use this.
    pub follow: Vec<Request>,
}

/// A function that is called for every request that a page leads to. A spider middleware puts it into the extensions of
/// the page. It also learns of links that are already queued or done, and before any middleware judges them.
#[derive(Clone)]
pub struct RequestListener(Arc<dyn Fn(&Request) + Send + Sync>);

impl RequestListener {
    /// A listener that calls this function, on the worker thread of the page.
    pub fn new(listener: impl Fn(&Request) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(crate) fn tell(&self, request: &Request) {
        (self.0)(request);
    }
}

impl std::fmt::Debug for RequestListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestListener").finish_non_exhaustive()
    }
}

/// The error for a binary body, which has no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinaryBody {
    /// The page.
    pub url: Url,
}

impl std::fmt::Display for BinaryBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the body of {} is binary and has no text", self.url)
    }
}

impl std::error::Error for BinaryBody {}

/// Parses a URL whose query is encoded in the given encoding; UTF-8 if the encoding is unknown.
pub(crate) fn parse_url(address: &str, base: Option<&Url>, encoding: &str) -> Result<Url, url::ParseError> {
    let encode: &dyn Fn(&str) -> Cow<'_, [u8]> =
        &|query| huntsman_html::encode_query(query, encoding).unwrap_or(Cow::Borrowed(query.as_bytes()));
    Url::options().base_url(base).encoding_override(Some(encode)).parse(address)
}

/// The decoded body.
struct Document {
    text: String,
    encoding: &'static str,
}

impl Page {
    /// A page made of a request and its response with a decoded body.
    pub fn new(request: Request, response: Response) -> Self {
        Self::with_options(request, response, ScanOptions::links_only())
    }

    /// A page whose first scan collects what `options` name, so that detectors that need text and blocks do not cause
    /// a second pass.
    pub fn with_options(request: Request, response: Response, options: ScanOptions) -> Self {
        Self {
            request,
            response,
            options,
            kind: OnceCell::new(),
            document: OnceCell::new(),
            scan: OnceCell::new(),
            text_scan: OnceCell::new(),
            base: OnceCell::new(),
            tree: OnceCell::new(),
            xml_nodes: OnceCell::new(),
            html_nodes: OnceCell::new(),
            json: OnceCell::new(),
            linked: OnceCell::new(),
            words: OnceCell::new(),
            word_count: OnceCell::new(),
            lang: OnceCell::new(),
            label_read: Cell::new(false),
            links_followed: Cell::new(0),
            extensions: Extensions::new(),
            record_fields: Map::new(),
            follow: Vec::new(),
        }
    }

    /// The URL that sent the response.
    pub fn url(&self) -> &Url {
        &self.response.url
    }

    /// Label of the callback.
    pub fn callback(&self) -> &str {
        self.label_read.set(true);
        &self.request.callback
    }

    /// The route of the page: the variant of the spider's enum of callbacks that its request was given
    /// ([`Output::go`](crate::Output::go), [`Request::to`], [`Start::to`](crate::Start::to)). `match` then finds the code, and the compiler checks
    /// that there is some for every variant.
    ///
    /// # Errors
    /// A [`RouteError`](crate::RouteError): the label is no variant of `T`, or the arguments do not fit. Given back from `parse`, it ends the page
    /// with the reason `unknown_callback` or `callback_arguments`.
    pub fn route<T: DeserializeOwned>(&self) -> Result<T> {
        self.label_read.set(true);
        self.request.route()
    }

    /// The request.
    pub fn request(&self) -> &Request {
        // The caller may read its label there.
        self.label_read.set(true);
        &self.request
    }

    /// The request, for callers that must not count as reading the label.
    pub(crate) fn requested(&self) -> &Request {
        &self.request
    }

    /// Starts over: from now on, reading the label is recorded.
    pub(crate) fn forget_label_reads(&self) {
        self.label_read.set(false);
    }

    /// Whether the label was read, or may have been.
    pub(crate) fn label_was_read(&self) -> bool {
        self.label_read.get()
    }

    /// Counts a link that is followed automatically, and returns the number of them so far.
    pub(crate) fn count_link(&self) -> usize {
        self.links_followed.set(self.links_followed.get() + 1);
        self.links_followed.get()
    }

    /// The response.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Returns request and response.
    pub fn into_parts(self) -> (Request, Response) {
        (self.request, self.response)
    }

    /// The kind of the page (HTML, XML, JSON, text or binary): by Content-Type, then Content-Disposition, then the
    /// URL, then the first bytes.
    pub fn kind(&self) -> PageKind {
        *self.kind.get_or_init(|| {
            let headers = &self.response.headers;
            let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
            sniff(
                text(header::CONTENT_TYPE).as_deref(),
                text(header::CONTENT_DISPOSITION).as_deref(),
                self.url().path(),
                &self.response.body,
            )
        })
    }

    /// The body as text, decoded according to header, byte order mark, declaration or detection; empty for binary
    /// bodies.
    pub fn body_text(&self) -> &str {
        &self.document().text
    }

    /// Like [`Page::text`], but a binary body is an error instead of an empty text.
    ///
    /// # Errors
    /// The body is binary.
    pub fn try_text(&self) -> Result<&str, BinaryBody> {
        match self.kind() {
            PageKind::Binary => Err(BinaryBody { url: self.url().clone() }),
            _ => Ok(self.text()),
        }
    }

    /// Name of the encoding of the body.
    pub fn encoding(&self) -> &'static str {
        self.document().encoding
    }

    fn document(&self) -> &Document {
        self.document.get_or_init(|| {
            if self.kind() == PageKind::Binary {
                return Document { text: String::new(), encoding: "binary" };
            }
            let content_type = self.response.headers.get(header::CONTENT_TYPE);
            let content_type = content_type.map(|value| String::from_utf8_lossy(value.as_bytes()));
            let charset = content_type.as_deref().and_then(huntsman_html::content_charset);
            let decoded = huntsman_html::decode_body(&self.response.body, charset, None);
            Document { encoding: decoded.encoding, text: decoded.text.into_owned() }
        })
    }

    /// The scan for links and head. It also has the text if the page was made with it.
    fn scan(&self) -> (&Scan, &str) {
        // A sitemap or a feed has neither links nor a head, and may be too large to be decoded as a whole.
        let is_page = !self.request.is_sitemap() && !self.request.is_feed();
        let text = if self.kind().is_markup() && is_page { self.body_text() } else { "" };
        (&self.scan.get_or_init(|| PooledScan::run(text, &self.options)).0, text)
    }

    /// The first title, with white space collapsed.
    pub fn title(&self) -> Option<&str> {
        let (scan, text) = self.scan();
        scan.title(text)
    }

    /// The language that the document declares: `lang` of the html element, else Content-Language.
    pub fn declared_lang(&self) -> Option<&str> {
        let (scan, text) = self.scan();
        scan.html_lang(text)
            .filter(|lang| !lang.is_empty())
            .or_else(|| self.response.header(header::CONTENT_LANGUAGE)?.split(',').next())
            .map(str::trim)
            .filter(|lang| !lang.is_empty())
    }

    /// The links of the page as written, with anchor text, rel and position; only markup has any.
    pub fn anchors(&self) -> impl ExactSizeIterator<Item = Link<'_>> + Clone {
        let (scan, text) = self.scan();
        scan.links(text)
    }

    /// Number of links beyond the limit of the scan.
    pub fn links_cut(&self) -> usize {
        self.scan().0.links_cut()
    }

    /// The links as absolute http and https URLs, in document order, repetitions included. Links that are not URLs
    /// are left out.
    pub fn links(&self) -> Vec<Url> {
        self.anchors().filter_map(|link| self.join(link.href)).collect()
    }

    /// Resolves an address against the base of the page; `None` unless the result is an http or https URL. The query
    /// is encoded in the encoding of the page, as browsers do.
    pub fn join(&self, address: &str) -> Option<Url> {
        let url = self.resolve(address).ok()?;
        matches!(url.scheme(), "http" | "https").then_some(url)
    }

    /// Resolves an address against the base of the page, for any scheme.
    pub(crate) fn resolve(&self, address: &str) -> Result<Url, url::ParseError> {
        if address.is_ascii() || self.is_utf8() {
            return self.base().join(address);
        }
        parse_url(address, Some(self.base()), self.encoding())
    }

    /// Whether non-ASCII queries of links of the page are encoded as UTF-8.
    pub(crate) fn is_utf8(&self) -> bool {
        // A feed may be too large to be decoded as a whole; its entries are read as UTF-8 in any case.
        self.request.is_feed() || self.encoding() == "UTF-8"
    }

    /// The URL that relative addresses are resolved against: the first `base` within the first 4 KiB, else the URL of
    /// the page.
    pub fn base(&self) -> &Url {
        const LIMIT: u32 = 4_096; // w3lib's get_base_url
        self.base.get_or_init(|| {
            let (scan, text) = self.scan();
            let href = scan.base_href(text).filter(|_| scan.base_offset().is_some_and(|at| at < LIMIT));
            href.and_then(|href| self.url().join(href).ok())
                .filter(|base| matches!(base.scheme(), "http" | "https"))
                .unwrap_or_else(|| self.url().clone())
        })
    }

    /// The `meta` elements.
    pub fn metas(&self) -> impl ExactSizeIterator<Item = Meta<'_>> + Clone {
        let (scan, text) = self.scan();
        scan.metas(text)
    }

    /// The `link` elements.
    pub fn link_elements(&self) -> impl ExactSizeIterator<Item = LinkElement<'_>> + Clone {
        let (scan, text) = self.scan();
        scan.link_elements(text)
    }

    /// The canonical URL that the page declares.
    pub fn canonical(&self) -> Option<Url> {
        let (scan, text) = self.scan();
        self.join(scan.canonical(text)?)
    }

    /// The redirect by `meta refresh`, if there is one.
    pub fn meta_refresh(&self) -> Option<MetaRefresh<'_>> {
        let (scan, text) = self.scan();
        scan.meta_refresh(text)
    }

    /// Images, scripts, frames, media and forms, if the page was made with the option to collect them.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = ResourceLink<'_>> + Clone {
        let (scan, text) = self.scan();
        scan.resources(text)
    }

    /// A scan that includes the text: the first one if it was made with text, else a second one.
    fn text_scan(&self) -> &Scan {
        if self.options.text {
            return self.scan().0;
        }
        let options = ScanOptions { links: false, ..ScanOptions::default() };
        &self.text_scan.get_or_init(|| PooledScan::run(self.body_text(), &options)).0
    }

    /// The text that a reader sees: one line per block, with white space collapsed. For JSON and plain text it is the
    /// body.
    pub fn text(&self) -> &str {
        match self.kind() {
            PageKind::Html | PageKind::Xml => self.text_scan().text(),
            PageKind::Json | PageKind::Text => self.body_text(),
            PageKind::Binary => "",
        }
    }

    /// The page's own text in pieces: without menus, headers, footers and asides, as recognised by its landmarks
    /// ([`Scan::content`]). For a body without markup it is the whole text.
    pub fn content(&self) -> impl Iterator<Item = &str> + Clone {
        let scan = self.kind().is_markup().then(|| self.text_scan());
        let plain = if scan.is_none() { self.text() } else { "" };
        let plain = Some(plain).filter(|text| !text.is_empty());
        scan.into_iter().flat_map(Scan::content).chain(plain)
    }

    /// The words of the text, normalised and hashed once for all readers.
    pub fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(self.text()))
    }

    /// The number of words of the text. Costs nothing if they were read before.
    pub fn word_count(&self) -> usize {
        *self.word_count.get_or_init(|| match self.words.get() {
            Some(words) => words.len(),
            None => words::count(self.text()),
        })
    }

    /// Adds the words of the [`content`](Self::content) to these counts, whose memory can be used for many pages. The words of the rest of the
    /// text are counted on the way, so that [`word_count`](Self::word_count) costs nothing afterwards.
    pub fn count_content(&self, counts: &mut WordCounts) {
        let before = counts.total();
        let mut rest = 0;
        match self.kind().is_markup() {
            // A region begins and ends a block, so that no word is in two pieces.
            true => self.text_scan().pieces().for_each(|(piece, is_content)| match is_content {
                true => counts.add_text(piece),
                false => rest += words::count(piece),
            }),
            false => counts.add_text(self.text()),
        }
        self.word_count.get_or_init(|| counts.total() - before + rest);
    }

    /// The language: the declared one, else a guess from the text.
    pub fn lang(&self) -> &Detected {
        self.lang.get_or_init(|| lang::detect(self.text(), self.declared_lang()))
    }

    /// The result of [`lang`](Self::lang) if a component has asked for it before. It costs nothing, and tells whether
    /// the language is known without reading the text for it.
    pub fn known_lang(&self) -> Option<&Detected> {
        self.lang.get()
    }

    /// The scan and the document it belongs to, for detectors that read blocks.
    pub fn scanned(&self) -> (&Scan, &str) {
        self.scan()
    }

    /// The elements that match a CSS selector, which may use `:contains('text')`. The tree is built at the first call; selectors
    /// are compiled once per thread.
    ///
    /// # Errors
    /// The selector is not valid, or needs more than 50 million steps on this page: nodes that are looked at, and 16 bytes of texts and attributes
    /// that are compared.
    pub fn select(&self, css: &str) -> Result<Vec<Element<'_>>> {
        Ok(element::select(self, self.tree().outermost(), css)?.collect())
    }

    /// Values by a CSS selector with Scrapy's `::text` and `::attr(name)`: `page.css("h1::text")?.get()`. An element without
    /// either is given as HTML.
    ///
    /// `p::text` is the text right in a paragraph; `p ::text`, with a space, all text inside. What the selectors of a list
    /// (`h1::text, img::attr(alt)`) find is in document order, each once.
    ///
    /// # Errors
    /// The selector is not valid, or needs more than 50 million steps on this page; or the values take more than 64 MiB.
    pub fn css(&self, css: &str) -> Result<Selection> {
        element::values(self.tree(), self.tree().outermost(), css)
    }

    /// Requests for the links of the elements that a CSS selector matches, or of the values that it gives: `page.follow_all("a.next")`,
    /// `page.follow_all("option::attr(value)")`. What is no URL of a page (`mailto:`, `javascript:`, an element without `href` and `src`) is
    /// passed over. The spider asks for these links, so the guards against traps let them pass.
    ///
    /// # Errors
    /// As for [`select`](Self::select).
    pub fn follow_all(&self, css: &str) -> Result<Vec<Request>> {
        let found = selector::Selector::of(css)?.find(self.tree(), self.tree().outermost())?.into_iter();
        let addresses = found.filter_map(|found| match found {
            selector::Found::Element(element, place) => Element::at(self, element, place).address(),
            selector::Found::Value(value) => Some(Cow::Borrowed(value)),
        });
        Ok(addresses.filter_map(|address| self.join(address.trim())).map(Request::get).collect())
    }

    /// Values by an XPath 1.0 expression: `page.xpath("//h1/text()")?.get()`. Texts and attributes are given as they are, elements as markup, and
    /// a number, a string or a boolean as one value. `re:test`, `re:replace`, `has-class` and the sets of EXSLT are there, as in parsel; see
    /// [`huntsman_xpath`].
    ///
    /// In HTML names are in lower case and have no namespaces. The tree is that of browsers: each `tr` is in a `tbody`. XML is read as XML:
    /// names have namespaces, whose prefixes [`xpath_with`](Self::xpath_with) takes.
    ///
    /// # Errors
    /// The expression is not valid, or needs more steps than are allowed (50 million nodes that are visited); the values take more than 64 MiB;
    /// or the body is XML without any element.
    pub fn xpath(&self, path: &str) -> Result<Selection> {
        self.root()?.xpath(path)
    }

    /// Like [`xpath`](Self::xpath), with prefixes, variables and limits of the caller.
    ///
    /// # Errors
    /// As for `xpath`; or a prefix or variable is not in the scope.
    pub fn xpath_with(&self, path: &str, scope: &Scope) -> Result<Selection> {
        self.root()?.xpath_with(path, scope)
    }

    /// The nodes that an XPath 1.0 expression selects; see [`xpath`](Self::xpath).
    ///
    /// # Errors
    /// As for `xpath`; or the expression gives something else than nodes.
    pub fn nodes(&self, path: &str) -> Result<Vec<PageNode<'_>>> {
        self.root()?.nodes(path)
    }

    /// The outermost element, `html` or that of the XML, from which XPath selects: `page.xpath("body/h1")` is `page.xpath("/html/body/h1")`, as
    /// in parsel.
    ///
    /// # Errors
    /// The body is XML without any element.
    pub fn root(&self) -> Result<PageNode<'_>> {
        Ok(PageNode::root(self, &self.xpath_nodes()?.document))
    }

    fn xpath_nodes(&self) -> Result<&Arc<xpath::Nodes>> {
        if self.kind() != PageKind::Xml {
            return self.css_nodes();
        }
        self.kept_nodes(&self.xml_nodes, || xpath::Nodes::of_xml(self.body_text()))
    }

    /// The nodes of the tree on which CSS selects.
    fn css_nodes(&self) -> Result<&Arc<xpath::Nodes>> {
        let tree = self.tree();
        match tree.xml() {
            Some(nodes) => Ok(nodes),
            None => self.kept_nodes(&self.html_nodes, || xpath::Nodes::of_html(&tree.html)),
        }
    }

    fn kept_nodes<'a>(
        &self,
        kept: &'a OnceCell<Arc<xpath::Nodes>>,
        make: impl FnOnce() -> Result<xpath::Nodes>,
    ) -> Result<&'a Arc<xpath::Nodes>> {
        if let Some(known) = kept.get() {
            return Ok(known);
        }
        let nodes = make().map_err(|error| error.context(self.url().to_string()))?;
        Ok(kept.get_or_init(|| Arc::new(nodes)))
    }

    /// Whether the tree was cut because the document nests too deep, or has too many nodes, or too many attributes in a tag.
    pub fn is_tree_truncated(&self) -> bool {
        self.tree().truncated
    }

    fn tree(&self) -> &tree::Tree {
        self.tree.get_or_init(|| {
            let xml = (self.kind() == PageKind::Xml).then(|| self.xpath_nodes().ok()).flatten();
            // A body that only says to be XML is read as browsers read tags.
            xml.map_or_else(|| tree::Tree::parse(self.body_text()), tree::Tree::of_xml)
        })
    }
}

impl std::fmt::Debug for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Page").field("url", &self.url().as_str()).finish_non_exhaustive()
    }
}

/// Bytes of scan buffers that a worker thread keeps for its next page.
const KEPT: usize = 1 << 20;

thread_local! {
    static POOL: RefCell<Vec<Scan>> = const { RefCell::new(Vec::new()) };
}

/// A scan whose buffers go back to the thread's pool.
struct PooledScan(Scan);

impl PooledScan {
    fn run(text: &str, options: &ScanOptions) -> Self {
        let mut scan = POOL.with_borrow_mut(Vec::pop).unwrap_or_default();
        scan.run(text, options);
        Self(scan)
    }
}

impl Drop for PooledScan {
    fn drop(&mut self) {
        let mut scan = std::mem::take(&mut self.0);
        scan.shrink_to(KEPT);
        // The thread may be ending; a page makes at most two scans.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < 2 {
                pool.push(scan);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(html: &str) -> Page {
        let url = Url::parse("http://site.example/dir/page").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, html.to_owned()))
    }

    #[test]
    fn links_resolve_against_the_base() {
        let page = page(
            "<base href=/other/><a href=x>1</a><a href='mailto:a@b'>2</a><a href='http://h/?a=1&amp;b'>3</a>",
        );
        let links: Vec<String> = page.links().iter().map(ToString::to_string).collect();
        assert_eq!(links, ["http://site.example/other/x", "http://h/?a=1&b"]);
    }

    #[test]
    fn a_base_behind_the_first_4_kib_does_not_count() {
        let html = format!("<!--{}--><base href=/other/><a href=x>1</a>", "x".repeat(5_000));
        assert_eq!(page(&html).links()[0].as_str(), "http://site.example/dir/x");
    }

    #[test]
    fn a_sitemap_is_not_scanned_as_a_page() {
        let url = Url::parse("http://site.example/sitemap.xml").unwrap();
        let response = Response::html(
            url.clone(),
            "<title>T</title><meta name=robots content=nofollow><a href=/x>x</a>",
        );
        let page = Page::new(Request::get(url).with_meta(crate::meta::SITEMAP_DEPTH, 0), response);
        assert_eq!((page.title(), page.metas().len(), page.anchors().len()), (None, 0, 0));
        assert!(page.document.get().is_none(), "nor decoded");
    }

    #[test]
    fn text_and_title_come_without_a_tree() {
        let page = page("<title> A  b </title><p>One<br>two<p>th<b>re</b>e<script>x</script>");
        assert_eq!(page.title(), Some("A b"));
        assert_eq!(page.text(), "One\ntwo\nthree");
        assert!(page.tree.get().is_none());
    }

    #[test]
    fn words_are_counted_once_however_the_text_is_divided() {
        for html in [
            "<header>Top <b>menu</b></header><nav>a</nav>b<main>One two<p>three</main>tail<footer>The foot's end</footer>",
            "<nav>x</nav>y z<aside>w</aside>",
            "no landmarks at all",
            "",
        ] {
            let (whole, divided) = (page(html), page(html));
            let content: usize = divided.content().map(words::count).sum();
            let mut counts = WordCounts::default();
            divided.count_content(&mut counts);
            assert_eq!(counts.total(), content, "{html}");
            assert_eq!(divided.word_count(), whole.words().len(), "{html}");
            assert_eq!(whole.word_count(), whole.words().len(), "{html}");
        }
    }

    #[test]
    fn css_reads_text_and_attributes() {
        let page = page("<ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul>");
        assert_eq!(page.css("li a::text").unwrap().get_all(), ["One", "Two"]);
        assert_eq!(page.css("li a::attr(href)").unwrap().get().as_deref(), Some("/1"));
        let links = page.select("li a").unwrap();
        assert_eq!(links[1].href().unwrap().as_str(), "http://site.example/2");
        assert!(page.select("li[").is_err());
    }

    #[test]
    fn links_that_are_no_pages_are_passed_over_when_all_are_followed() {
        let page =
            page("<a href=/1>1</a><a href=mailto:x@y>m</a><a>none</a><img src=i.png><option value=/o>");
        let all = |css: &str| {
            page.follow_all(css).unwrap().into_iter().map(|r| r.url.path().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(all("a"), ["/1"]);
        assert_eq!(all("img, option::attr(value)"), ["/dir/i.png", "/o"]);
        assert!(page.follow_all("a[").is_err());
    }

    #[test]
    fn xpath_reads_texts_attributes_elements_and_values() {
        let page = page(
            "<ul id=l><li><a href=/1>One <b>1</b></a><li class='k on'><a href=/2>Two</a></ul><p>7 mills<br>",
        );
        let all = |path: &str| page.xpath(path).unwrap().get_all().to_vec();
        assert_eq!(all("//li/a/text()"), ["One ", "Two"]);
        assert_eq!(all("//li[has-class('on')]/a/@href"), ["/2"]);
        assert_eq!(all("//b"), ["<b>1</b>"]);
        assert_eq!(all("count(//li)"), ["2"]);
        assert_eq!(page.xpath("//p").unwrap().re_first("[0-9]+").unwrap().as_deref(), Some("7"));
        let scope = Scope::new().variable("id", "l");
        assert_eq!(page.xpath_with("name(//*[@id = $id])", &scope).unwrap().get().as_deref(), Some("ul"));
        let links = page.nodes("//li/a").unwrap();
        assert_eq!((links[0].text(), links[1].href().unwrap().path()), ("One 1", "/2"));
        assert_eq!(links[1].xpath("../@class").unwrap().get().as_deref(), Some("k on"));
        assert!(page.nodes("count(//a)").unwrap_err().to_string().contains("gives \"2\" and no nodes"));
        assert!(page.xpath("//a[").unwrap_err().to_string().contains("character 5"));
    }

    #[test]
    fn what_is_in_a_noscript_are_elements() {
        let page = page(
            "<head><noscript><link href=/s.css></noscript></head><p><noscript><img src=/late.png><a href=/x>x</a></noscript>",
        );
        assert_eq!(page.css("noscript img::attr(src)").unwrap().get_all(), ["/late.png"]);
        assert_eq!(page.xpath("//noscript/*/@href").unwrap().get_all(), ["/s.css", "/x"]);
        assert_eq!(page.links().len(), 1, "the scan without a tree reads it so, too");
    }

    #[test]
    fn a_link_of_svg_is_no_href() {
        let page = page("<svg><a id=s xlink:href=/s>s</a><a xlink:href=/x href=/h>h</a></svg>");
        assert_eq!(page.css("a::attr(href)").unwrap().get_all(), ["/h"]);
        assert_eq!(page.css("a[href]::text").unwrap().get_all(), ["h"]);
    }

    #[test]
    fn what_is_in_a_template_are_elements() {
        let page = page("<div>a<template id=t>b<p class=x>c</p></template>d<i>e</i></div>");
        assert_eq!(page.css("div::text").unwrap().get_all(), ["a", "d"]);
        assert_eq!(page.css("div ::text").unwrap().get_all(), ["a", "b", "c", "d", "e"]);
        assert_eq!(page.css("div > template > p.x::text").unwrap().get_all(), ["c"]);
        assert_eq!(page.css("template:has(p):not(:empty)::attr(id)").unwrap().get_all(), ["t"]);
        assert_eq!(page.xpath("//div/template/p/text()").unwrap().get_all(), ["c"]);
        let template = &page.select("template").unwrap()[0];
        assert_eq!(template.html(), page.xpath("//template").unwrap().get().unwrap());
    }

    #[test]
    fn relative_paths_begin_at_the_outermost_element() {
        let page = page("<!--c--><title>t</title><p id=p>x");
        assert_eq!(page.xpath("head/title/text()").unwrap().get_all(), ["t"]);
        assert_eq!(page.xpath("name()").unwrap().get().as_deref(), Some("html"));
        assert_eq!(page.xpath("/comment() | body/p/@id").unwrap().get_all(), ["<!--c-->", "p"]);
    }

    #[test]
    fn xpath_goes_on_from_what_css_selected() {
        let page = page(
            "<svg><a xlink:href=/s></a></svg><table><tr><td>1<td>2</table><template><i>t</i></template><div>x</div>",
        );
        let cells = page.select("td").unwrap();
        assert_eq!(cells[1].xpath("string(preceding-sibling::td)").unwrap().get().as_deref(), Some("1"));
        assert_eq!(cells[0].nodes("ancestor::table//td").unwrap().len(), 2);
        assert_eq!(page.select("div").unwrap()[0].xpath("text()").unwrap().get_all(), ["x"]);
        assert_eq!(page.xpath("//svg/a/@xlink:href").unwrap().get_all(), ["/s"]);
    }

    #[test]
    fn xml_is_read_as_xml() {
        let url = Url::parse("http://site.example/feed").unwrap();
        let xml = "<?xml version='1.0'?><rss xmlns:g='urn:g'><item><link>/1</link><g:p>5</g:p><t><![CDATA[a<b]]></t></item></rss>";
        let mut response = Response::html(url.clone(), xml);
        response
            .headers
            .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/rss+xml"));
        let page = Page::new(Request::get(url), response);
        assert_eq!(page.kind(), PageKind::Xml);
        let item = page.nodes("//item").unwrap()[0];
        assert_eq!(item.nodes("link").unwrap()[0].href().unwrap().as_str(), "http://site.example/1");
        assert_eq!(item.nodes("link/text()").unwrap()[0].href().unwrap().as_str(), "http://site.example/1");
        assert_eq!(item.xpath("t/text()").unwrap().get().as_deref(), Some("a<b"));
        let scope = Scope::new().prefix("g", "urn:g");
        assert_eq!(item.xpath_with("g:p", &scope).unwrap().get_all(), ["<g:p>5</g:p>"]);
    }

    const FEED: &str = r#"<?xml version="1.0"?><rss xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:m="urn:m"><channel><link>http://h.example/</link><item><title>T</title><m:title>other</m:title><link>http://h.example/1</link><pubDate>Mon</pubDate><guid isPermaLink="false" m:kind="k">7</guid><description><![CDATA[<b>bold</b> text]]></description><dc:creator>me</dc:creator><image><url>u</url></image><br/>tail</item></channel></rss>"#;

    fn xml(body: &str) -> Page {
        let url = Url::parse("http://h.example/feed").unwrap();
        let mut response = Response::html(url.clone(), body.to_owned());
        let kind = header::HeaderValue::from_static("application/rss+xml");
        response.headers.insert(header::CONTENT_TYPE, kind);
        Page::new(Request::get(url), response)
    }

    #[test]
    fn css_selects_in_xml_as_parsel_does() {
        let page = xml(FEED);
        // The results of parsel 1.10 with `type="xml"`, and with the prefix dc registered.
        for (css, expected) in [
            ("item > title::text", &["T"][..]),
            ("title::text", &["T"]),
            ("item > link::text", &["http://h.example/1"]),
            ("item > pubDate::text", &["Mon"]),
            ("item > pubdate::text", &[]),
            ("item > description::text", &["<b>bold</b> text"]),
            (r"item > dc\:creator::text", &["me"]),
            ("dc|creator::text", &["me"]),
            ("item > image > url::text", &["u"]),
            ("guid[isPermaLink=false]::text", &["7"]),
            ("guid[ispermalink=false]::text", &[]),
            ("guid::attr(isPermaLink)", &["false"]),
            ("item::text", &["tail"]),
            ("creator", &[]),
        ] {
            assert_eq!(page.css(css).unwrap().get_all(), expected, "{css}");
        }
        assert_eq!(page.css("guid::attr(m|kind)").unwrap().get_all(), ["k"]);
    }

    #[test]
    fn elements_of_xml_are_those_of_xpath() {
        let page = xml(FEED);
        let item = page.select("item").unwrap()[0];
        assert_eq!(item.xpath("dc:creator/text()").is_err(), page.xpath("//dc:creator").is_err());
        assert_eq!(item.xpath("*[name() = 'dc:creator']/text()").unwrap().get_all(), ["me"]);
        assert_eq!(page.nodes("//item").unwrap()[0].text(), item.text());
        for css in ["br", "image", "guid"] {
            assert_eq!(page.css(css).unwrap().get_all(), page.xpath(&format!("//{css}")).unwrap().get_all());
        }
        let link = page.select("item > link").unwrap()[0];
        assert_eq!(link.href().unwrap().as_str(), "http://h.example/1");
        let followed = page.follow_all("link").unwrap();
        let followed: Vec<&str> = followed.iter().map(|request| request.url.as_str()).collect();
        assert_eq!(followed, ["http://h.example/", "http://h.example/1"]);
    }

    #[test]
    fn entries_of_atom_are_selected_without_its_namespace() {
        let page = xml(
            "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>A</title><link href='/a'/></entry></feed>",
        );
        assert_eq!(page.css("entry > title::text").unwrap().get_all(), ["A"]);
        assert_eq!(page.select("entry link").unwrap()[0].href().unwrap().as_str(), "http://h.example/a");
    }

    #[test]
    fn a_tree_of_xml_is_cut_at_its_limit() {
        let page = xml(&format!("<a>{}<last/></a>", "<b/>".repeat(500_000)));
        assert!(page.select("last").unwrap().is_empty());
        assert!(page.is_tree_truncated());
        assert_eq!(page.nodes("//last").unwrap().len(), 1, "XPath has a limit of its own");
    }

    #[test]
    fn what_only_says_to_be_xml_is_read_as_html() {
        let page = xml("plain text, and no element");
        assert_eq!(page.css("body::text").unwrap().get_all(), ["plain text, and no element"]);
        assert!(page.xpath("//body").is_err());
    }

    #[test]
    fn xpath_on_a_page_of_many_nodes_ends() {
        let page = page(&"<p>".repeat(30_000));
        let error = page.xpath("//p[count(preceding::p) = count(following::p)]").unwrap_err().to_string();
        assert!(error.contains("more than the 50000000 steps"), "{error}");
    }

    #[test]
    fn nested_elements_as_values_do_not_fill_the_memory() {
        let page = page(&format!("{}{}", "<div>".repeat(400), "word ".repeat(200_000)));
        for error in [page.css("div").unwrap_err(), page.xpath("//div").unwrap_err()] {
            assert!(error.to_string().contains("more than 64 MiB"), "{error}");
        }
        assert_eq!(page.select("div").unwrap().len(), 400);
        assert_eq!(page.nodes("//div").unwrap().len(), 400);
    }

    #[test]
    fn a_binary_body_has_no_text_and_no_links() {
        let url = Url::parse("http://h/a.gif").unwrap();
        let mut response = Response::html(url.clone(), "GIF89a<a href=/x>x</a>");
        response.headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("image/gif"));
        let page = Page::new(Request::get(url), response);
        assert_eq!((page.kind(), page.text(), page.links().len()), (PageKind::Binary, "", 0));
        let error: BinaryBody = page.try_text().unwrap_err();
        assert_eq!(&error.url, page.url());
        assert_eq!(self::page("<p>x").try_text(), Ok("x"));
    }

    #[test]
    fn queries_of_links_are_in_the_encoding_of_the_page() {
        let url = Url::parse("http://h/").unwrap();
        let resolved = |charset: &str, body: &[u8]| {
            let mut response = Response::html(url.clone(), body.to_vec());
            let value = header::HeaderValue::from_str(&format!("text/html; charset={charset}")).unwrap();
            response.headers.insert(header::CONTENT_TYPE, value);
            let page = Page::new(Request::get(url.clone()), response);
            page.links().into_iter().map(String::from).collect::<Vec<_>>()
        };
        // The path is UTF-8 whatever the page is.
        assert_eq!(
            resolved("windows-1252", b"<a href='/\xe9?q=\xe9#\xe9'>x</a>"),
            ["http://h/%C3%A9?q=%E9#%C3%A9"]
        );
        assert_eq!(resolved("utf-8", "<a href='/?q=\u{e9}'>x</a>".as_bytes()), ["http://h/?q=%C3%A9"]);
        assert_eq!(
            resolved(
                "utf-16le",
                &"<a href='/?q=\u{e9}'>x</a>".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()
            ),
            ["http://h/?q=%C3%A9"]
        );
        assert_eq!(resolved("shift_jis", b"<a href='/?q=\x93\xfa'>x</a>"), ["http://h/?q=%93%FA"]);
        assert_eq!(
            resolved("iso-8859-2", "<a href='/?q=&euro;a'>x</a>".as_bytes()),
            ["http://h/?q=%26%238364%3Ba"]
        );
    }

    #[test]
    fn a_tag_of_many_attributes_is_cut_wherever_it_stands() {
        let attributes: String = (0..100_000).map(|number| format!(" a{number}")).collect();
        for tag in [format!("<p{attributes}>"), format!("<p{attributes}"), format!("</p{attributes}>")] {
            let cut = page(&format!("<i>x</i>{tag}<b>y"));
            assert!(cut.is_tree_truncated());
            assert_eq!(cut.css("body ::text").unwrap().get_all(), ["x"]);
        }
        let usual = page(&"<p a b c d e f g h>".repeat(10_000));
        assert!(!usual.is_tree_truncated());
    }

    #[test]
    fn a_few_kilobytes_that_would_become_millions_of_nodes_are_cut() {
        // Every paragraph opens all of them anew (HTML, 13.2.4.3): 400 times 5,000 elements of 50 KB.
        let open: String = (0..400).map(|n| format!("<b id={n}>")).collect();
        let page = page(&format!("<a href=/before>x</a>{open}{}", "<p>word".repeat(5_000)));
        assert_eq!(page.select("a").unwrap().len(), 1);
        assert!(page.is_tree_truncated());
        assert!(page.select("*").unwrap().len() <= 500_000);
    }

    #[test]
    fn two_hundred_thousand_nested_elements_are_cut_and_do_not_overflow_the_stack() {
        let html = format!("<a href=/x>x</a>{}", "<div>".repeat(200_000));
        let page = page(&html);
        assert_eq!(page.select("a").unwrap().len(), 1);
        assert!(page.is_tree_truncated());
        assert_eq!(page.links().len(), 1);
    }
}
