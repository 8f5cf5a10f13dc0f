//! Reads the entries of an XML feed: a small tree for each, one after another.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use encoding_rs::Encoding;
use huntsman_xpath::{Document, Kind, Node, Scope};

use super::xml_scan::{Declared, Found, Scan, Wanted};
use super::{FeedLimits, FeedReport, encoding_named, tell_end, text_of};
use crate::error::Result;
use crate::page::{Page, PageNode};
use crate::text_source::{TextSource, WINDOW};

/// The entries of an XML feed: an iterator over the elements with a name, each with a tree of its own.
///
/// The document may be packed with gzip, which is recognised by the first bytes. What is not well-formed is read as far as it goes: after
/// damage, reading continues at the next tag. Entities that the document declares are neither read nor expanded; they stay in the text as
/// they are written. What is damaged, or beyond a limit, is told by [`report`](Self::report) and
/// [`check`](Self::check).
///
/// An entry within an entry belongs to the outer one.
///
/// ```
/// # use huntsman_crawler::{Page, Request, Response, XmlNodes};
/// # let request = Request::parse("https://shop.example/feed.xml")?;
/// # let feed = "<rss xmlns:g='urn:g'><channel><item><title>Mill</title><g:price>12</g:price></item><item><title>Dam</title></item></channel></rss>";
/// # let page = Page::new(request.clone(), Response::html(request.url, feed));
/// let mut nodes = XmlNodes::new(&page, "item");
/// let item = nodes.next().expect("there is one");
/// // Prefixes that the feed declares above its entries are known.
/// assert_eq!(item.node().xpath("g:price/text()")?.get_or("-"), "12");
/// assert_eq!(nodes.count(), 1);
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[doc(alias = "iternodes")]
#[doc(alias = "xmliter")]
pub struct XmlNodes<'a> {
    page: &'a Page,
    tag: String,
    namespaces: Vec<(String, String)>,
    pub(super) encoding: Option<&'static Encoding>,
    limits: FeedLimits,
    /// `None` until reading begins, and after its end.
    reading: Option<Reading<'a>>,
    is_ended: bool,
    /// Entries of the last piece, whose size limits their number.
    found: VecDeque<XmlNode<'a>>,
    report: FeedReport,
}

struct Reading<'a> {
    source: TextSource<'a>,
    window: String,
    /// Where the text begins that was not read yet.
    at: usize,
    /// How much text is read at once; more than usual if markup does not end in it.
    size: usize,
    scan: Scan,
    scope: KnownScope,
}

/// The prefixes that entries know, made again when the declarations above them change.
struct KnownScope {
    given: Vec<(String, String)>,
    declared: Vec<Declared>,
    scope: Arc<Scope>,
}

impl<'a> XmlNodes<'a> {
    /// The elements of the page with this name, as it is written: `item`, `g:item`. If the prefix is given with
    /// [`namespace`](Self::namespace), the elements of that namespace, however they are written.
    pub fn new(page: &'a Page, tag: &str) -> Self {
        Self {
            page,
            tag: tag.to_owned(),
            namespaces: Vec::new(),
            encoding: None,
            limits: FeedLimits::default(),
            reading: None,
            is_ended: false,
            found: VecDeque::new(),
            report: FeedReport::default(),
        }
    }

    /// Binds a prefix to the URI of a namespace, for the name of the entries and for XPath in them. Prefixes that the feed declares above its
    /// entries are known without this; a default namespace needs one.
    #[must_use]
    pub fn namespace(mut self, prefix: &str, uri: &str) -> Self {
        self.namespaces.push((prefix.to_owned(), uri.to_owned()));
        self
    }

    /// Sets the encoding, in place of that of the header and of the XML declaration.
    ///
    /// # Errors
    /// There is no such encoding.
    pub fn encoding(mut self, label: &str) -> Result<Self> {
        self.encoding = Some(encoding_named(label)?);
        Ok(self)
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: FeedLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The summary so far; complete when the iterator has ended.
    pub fn report(&self) -> &FeedReport {
        &self.report
    }

    /// The problems so far as an error, for the end of a callback: all entries were given before.
    ///
    /// # Errors
    /// The feed is damaged, or a limit left something out. The message names URL and line.
    pub fn check(&self) -> Result<()> {
        self.report.check(self.page)
    }

    fn begin(&self) -> Reading<'a> {
        let bound = |prefix: &str| self.namespaces.iter().rfind(|(known, _)| known == prefix);
        let wanted = match self.tag.split_once(':').and_then(|(prefix, local)| Some((bound(prefix)?, local)))
        {
            Some(((_, uri), local)) => Wanted::Within { uri: uri.clone(), local: local.to_owned() },
            None => Wanted::Written(self.tag.clone()),
        };
        Reading {
            source: text_of(self.page, self.limits, self.encoding, None),
            window: String::new(),
            at: 0,
            size: WINDOW,
            scan: Scan::new(wanted, self.limits.max_entry),
            scope: KnownScope::new(&self.namespaces),
        }
    }

    /// Reads the next piece.
    fn advance(&mut self) {
        let mut reading = self.reading.take().unwrap_or_else(|| self.begin());
        let (page, found, report) = (self.page, &mut self.found, &mut self.report);
        let Reading { source, window, at, size, scan, scope } = &mut reading;
        if *at > window.len() / 2 {
            window.drain(..*at);
            *at = 0;
        }
        source.fill(window, *at + *size);
        let text = &window[*at..];
        // Text behind damage that was looked at in vain is not looked at as a whole again.
        let text = &text[..text.floor_char_boundary(scan.most.max(WINDOW))];
        let is_last = source.is_ended() && *at + text.len() == window.len();
        let mut keep = |scan: &Scan, entry: Found, report: &mut FeedReport| match XmlNode::read(
            page,
            &entry,
            scope.of(scan.declared()),
        ) {
            Ok(node) => found.push_back(node),
            Err(error) => report.problem(entry.line, || format!("an entry that begins here: {error}")),
        };
        let used = scan.read(text, is_last, &mut keep, report);
        let is_stuck = used == 0 && !is_last;
        *at += used;
        *size = if is_stuck { (*size * 2).min(scan.most.max(WINDOW)) } else { WINDOW };
        if scan.is_done || (is_last && *at == window.len()) {
            scan.finish(report);
            if !scan.has_element() {
                report.problem(scan.line(), || "this is not XML: there is no element".to_owned());
            }
            tell_end(source, page, scan.line(), self.limits, report);
            self.is_ended = true;
        } else {
            self.reading = Some(reading);
        }
    }
}

impl<'a> Iterator for XmlNodes<'a> {
    type Item = XmlNode<'a>;

    fn next(&mut self) -> Option<XmlNode<'a>> {
        loop {
            if let Some(node) = self.found.pop_front() {
                self.report.entries += 1;
                return Some(node);
            }
            if self.is_ended {
                return None;
            }
            self.advance();
        }
    }
}

impl fmt::Debug for XmlNodes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XmlNodes")
            .field("tag", &self.tag)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl KnownScope {
    fn new(given: &[(String, String)]) -> Self {
        let mut known = Self { given: given.to_vec(), declared: Vec::new(), scope: Arc::default() };
        known.make();
        known
    }

    fn of(&mut self, declared: &[Declared]) -> Arc<Scope> {
        if self.declared != declared {
            self.declared = declared.to_vec();
            self.make();
        }
        Arc::clone(&self.scope)
    }

    fn make(&mut self) {
        let mut scope = Scope::new();
        for Declared { prefix, uri, .. } in
            self.declared.iter().filter(|declared| !declared.prefix.is_empty())
        {
            scope = scope.prefix(prefix, uri);
        }
        for (prefix, uri) in &self.given {
            scope = scope.prefix(prefix, uri);
        }
        self.scope = Arc::new(scope);
    }
}

/// An entry of an XML feed: an element with a tree of its own.
pub struct XmlNode<'a> {
    page: &'a Page,
    document: Document,
    element: Node,
    scope: Arc<Scope>,
    line: u64,
}

impl<'a> XmlNode<'a> {
    fn read(page: &'a Page, entry: &Found, scope: Arc<Scope>) -> Result<Self, huntsman_xpath::Error> {
        let document = Document::read_xml(&entry.markup)?;
        let element = document.children(document.root()).find(|node| document.kind(*node) == Kind::Element);
        let element = element.expect("a document that was read has an element");
        Ok(Self { page, document, element, scope, line: entry.line })
    }

    /// The element, from which XPath selects: `node.xpath("title/text()")`. The address of a link is resolved against the URL of the feed.
    pub fn node(&self) -> PageNode<'_> {
        PageNode::of_feed(self.page, &self.document, self.element, &self.scope)
    }

    /// The line where the entry begins.
    pub fn line(&self) -> u64 {
        self.line
    }
}

impl fmt::Debug for XmlNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XmlNode").field("line", &self.line).finish_non_exhaustive()
    }
}
