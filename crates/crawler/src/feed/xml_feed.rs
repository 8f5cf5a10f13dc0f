//! A spider that reads XML feeds.

use std::fmt;

use encoding_rs::Encoding;

use super::requests::{Entries, FeedRequests};
use super::{FeedLimits, XmlNodes, encoding_named};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::page::{Item, Page, PageNode};
use crate::request::Request;
use crate::spider::Spider;
use crate::start::Start;

/// A spider that calls a function for every entry of XML feeds, like Scrapy's `XMLFeedSpider`.
///
/// Feeds are read as [`XmlNodes`] does, piece by piece, packed or not. An error of the function costs its entry only; when the feed was
/// read, the first one is the error of its page, with the number of the others. A feed that is damaged, or beyond a
/// limit, is read as far as it goes, and is an error then, too, which names the URL and the line. Stats: `feed/files`, `feed/entries`,
/// `feed/damaged`, `feed/entries_failed`, `feed/failed`.
///
/// The types of the closure's arguments must be written out.
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, Output, Page, PageNode, Result, XmlFeed};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<()> {
/// # let web = ScriptedDownloader::pages([
/// #     ("http://shop.test/feed.xml", "<rss><item id='1'><title>Mill</title></item><item id='2'><title>Dam</title></item></rss>"),
/// # ]);
/// let titles = XmlFeed::new(["http://shop.test/feed.xml"], "item", |item: PageNode<'_>, _: &Page, out: &mut Output<String>| {
///     out.item(item.xpath("title/text()")?.get_or("-"));
///     Ok(())
/// });
/// let report = CrawlerBuilder::new(titles).downloader(web).run().await?;
/// assert_eq!(report.stat("item_scraped_count"), 2);
/// # Ok(()) }
/// ```
#[doc(alias = "XMLFeedSpider")]
pub struct XmlFeed<T> {
    requests: FeedRequests<T>,
    tag: String,
    namespaces: Vec<(String, String)>,
    encoding: Option<&'static Encoding>,
    on_node: OnNode<T>,
}

type OnNode<T> = Box<dyn Fn(PageNode<'_>, &Page, &mut Output<T>) -> Result<()> + Send + Sync>;

impl<T: Item + Send + 'static> XmlFeed<T> {
    /// A spider whose items are the entries of the feeds with these URLs: `XmlFeed::<Offer>::items(urls, "item")`. `tag` is the name of the
    /// entries, and may have a prefix that the item declares.
    pub fn items<I>(urls: I, tag: &str) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let item = |node: PageNode<'_>, _: &Page, out: &mut Output<T>| {
            out.item(node.item()?);
            Ok(())
        };
        let prefixes = T::prefixes().iter();
        prefixes.fold(Self::new(urls, tag, item), |feed, (prefix, uri)| feed.namespace(prefix, uri))
    }
}

impl<T: Send + 'static> XmlFeed<T> {
    /// A spider for the feeds with these URLs. `tag` is the name of the entries ([`XmlNodes::new`]), Scrapy's `itertag`.
    #[doc(alias = "itertag")]
    #[doc(alias = "parse_node")]
    pub fn new<I>(
        urls: I,
        tag: &str,
        on_node: impl Fn(PageNode<'_>, &Page, &mut Output<T>) -> Result<()> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self {
            requests: FeedRequests::new(urls),
            tag: tag.to_owned(),
            namespaces: Vec::new(),
            encoding: None,
            on_node: Box::new(on_node),
        }
    }

    /// Binds a prefix to the URI of a namespace; see [`XmlNodes::namespace`].
    #[must_use]
    pub fn namespace(mut self, prefix: &str, uri: &str) -> Self {
        self.namespaces.push((prefix.to_owned(), uri.to_owned()));
        self
    }

    /// Sets the encoding of the feeds, in place of that of the header and of the XML declaration.
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
        self.requests.limits = limits;
        self
    }

    /// Sets the spider for pages that entries lead to: it gets all pages that are no feeds, and its start requests follow the feeds.
    #[must_use]
    pub fn pages(mut self, spider: impl Spider<Item = T>) -> Self {
        self.requests.set_pages(spider);
        self
    }
}

impl<T: Send + 'static> Spider for XmlFeed<T> {
    type Item = T;

    fn name(&self) -> &str {
        self.requests.name("xml_feed")
    }

    fn start(&self) -> Start {
        self.requests.start()
    }

    fn parse(&self, page: &Page, out: &mut Output<T>) -> Result<()> {
        if !FeedRequests::<T>::is_feed(page) {
            return self.requests.parse_page(page, out);
        }
        let mut nodes = XmlNodes::new(page, &self.tag).limits(self.requests.limits);
        for (prefix, uri) in &self.namespaces {
            nodes = nodes.namespace(prefix, uri);
        }
        nodes.encoding = self.encoding;
        let mut entries = Entries::default();
        while let Some(node) = nodes.next() {
            let place = || format!("entry {}, line {}", nodes.report().entries, node.line());
            entries.count((self.on_node)(node.node(), page, out), place);
        }
        entries.end(page, nodes.report().entries, nodes.check(), out)
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<T>) -> Result<()> {
        self.requests.failed(request, error, out)
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.requests.allowed_domains()
    }

    fn settings(&self) -> Vec<(&'static str, serde_json::Value)> {
        self.requests.settings()
    }
}

impl<T> fmt::Debug for XmlFeed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XmlFeed")
            .field("requests", &self.requests)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
