//! A spider that reads CSV feeds.

use std::fmt;

use serde::de::DeserializeOwned;

use super::csv_rows::CsvOptions;
use super::requests::{Entries, FeedRequests};
use super::{CsvRows, FeedLimits};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::page::Page;
use crate::request::Request;
use crate::spider::Spider;
use crate::start::Start;

/// A spider that reads the rows of CSV feeds, like Scrapy's `CSVFeedSpider`. `Row` is a type that serde can read: a struct with the names of
/// the columns, or a map such as `BTreeMap<String, String>`.
///
/// Feeds are read as [`CsvRows`] does. A row that does not fit, or for which the function fails, is left out; when the feed was read, the
/// first one is the error of its page, with the number of the others. Stats as in [`XmlFeed`](crate::XmlFeed).
///
/// ```
/// # use huntsman_crawler::{CrawlerBuilder, CsvFeed, Output, Page, Result};
/// # use huntsman_testkit::ScriptedDownloader;
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<()> {
/// # let web = ScriptedDownloader::pages([("http://shop.test/prices.csv", "name;price\nMill;12.5\nDam;3\n")]);
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Price {
///     name: String,
///     price: f64,
/// }
///
/// let prices = CsvFeed::new(["http://shop.test/prices.csv"], |row: Price, _: &Page, out: &mut Output<Price>| {
///     if row.price > 10.0 {
///         out.item(row);
///     }
///     Ok(())
/// });
/// let report = CrawlerBuilder::new(prices.delimiter(b';')).downloader(web.clone()).run().await?;
/// assert_eq!(report.stat("item_scraped_count"), 1);
///
/// // If the rows are the items, no function is needed.
/// let prices = CsvFeed::<Price>::items(["http://shop.test/prices.csv"]).delimiter(b';');
/// assert_eq!(CrawlerBuilder::new(prices).downloader(web).run().await?.stat("item_scraped_count"), 2);
/// # Ok(()) }
/// ```
#[doc(alias = "CSVFeedSpider")]
pub struct CsvFeed<Row, T = Row> {
    requests: FeedRequests<T>,
    options: CsvOptions,
    on_row: OnRow<Row, T>,
}

type OnRow<Row, T> = Box<dyn Fn(Row, &Page, &mut Output<T>) -> Result<()> + Send + Sync>;

impl<Row: DeserializeOwned + Send + 'static> CsvFeed<Row> {
    /// A spider whose items are the rows of the feeds with these URLs.
    pub fn items<I>(urls: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self::new(urls, |row, _, out| {
            out.item(row);
            Ok(())
        })
    }
}

impl<Row: DeserializeOwned + 'static, T: Send + 'static> CsvFeed<Row, T> {
    /// A spider for the feeds with these URLs, with a function that gets every row.
    #[doc(alias = "parse_row")]
    pub fn new<I>(
        urls: I,
        on_row: impl Fn(Row, &Page, &mut Output<T>) -> Result<()> + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        Self { requests: FeedRequests::new(urls), options: CsvOptions::default(), on_row: Box::new(on_row) }
    }

    /// Sets the character between cells; a comma by default.
    #[must_use]
    pub fn delimiter(mut self, delimiter: u8) -> Self {
        self.options.delimiter = delimiter;
        self
    }

    /// Sets the character around cells that contain delimiters or ends of lines; `"` by default.
    #[doc(alias = "quotechar")]
    #[must_use]
    pub fn quote(mut self, quote: u8) -> Self {
        self.options.quote = quote;
        self
    }

    /// Names the columns, for feeds whose first row is one like the others.
    #[must_use]
    pub fn headers<I>(mut self, names: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.options.name_columns(names);
        self
    }

    /// Sets the encoding of the feeds, in place of that of the header.
    ///
    /// # Errors
    /// There is no such encoding.
    pub fn encoding(mut self, label: &str) -> Result<Self> {
        self.options.decode_as(label)?;
        Ok(self)
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: FeedLimits) -> Self {
        self.requests.limits = limits;
        self
    }

    /// Sets the spider for pages that rows lead to: it gets all pages that are no feeds, and its start requests follow the feeds.
    #[must_use]
    pub fn pages(mut self, spider: impl Spider<Item = T>) -> Self {
        self.requests.set_pages(spider);
        self
    }
}

impl<Row: DeserializeOwned + 'static, T: Send + 'static> Spider for CsvFeed<Row, T> {
    type Item = T;

    fn name(&self) -> &str {
        self.requests.name("csv_feed")
    }

    fn start(&self) -> Start {
        self.requests.start()
    }

    fn parse(&self, page: &Page, out: &mut Output<T>) -> Result<()> {
        if !FeedRequests::<T>::is_feed(page) {
            return self.requests.parse_page(page, out);
        }
        let mut rows = CsvRows::<Row>::with(page, self.options.clone()).limits(self.requests.limits);
        let mut entries = Entries::default();
        while let Some(row) = rows.next() {
            entries.count((self.on_row)(row, page, out), || format!("row {}", rows.report().entries));
        }
        entries.end(page, rows.report().entries, rows.check(), out)
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

impl<Row, T> fmt::Debug for CsvFeed<Row, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvFeed")
            .field("requests", &self.requests)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
