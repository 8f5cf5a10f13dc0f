//! A spider that is declared in a file of TOML: start, scope, rules for links, and the fields of its items.
//!
//! The file is checked as a whole before a crawl begins: unknown keys, settings, selectors, paths and expressions are errors with file,
//! line and advice. What a page lacks is found at run time: an item without a required field is an error of that item only.
//!
//! It stands in this crate because its settings are those of all built-in components. It has no code of its own for what spiders can do:
//! where declarations do not suffice, write a [`Spider`].

mod extraction;
mod field;
mod file;
mod item;
mod rule;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use huntsman_crawler::terminal::escape;
use huntsman_crawler::{
    DEFAULT_CALLBACK, Error, Output, Page, Profile, Request, Result, Sitemaps, Spider, Start, StartUrls, log,
};
use serde_json::{Map, Value};
use url::Url;

pub use extraction::{Extracted, Extraction};
use file::Source;
use item::ItemRule;
use rule::Rule;

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// An item of a declared spider: its fields in the order of the file.
///
/// If the file declares several kinds of items, the first field is `item`, the name of the kind.
pub type DeclaredItem = Map<String, Value>;

/// A spider that a file of TOML declares; the guide has a page about its keys.
///
/// ```
/// use huntsman_middleware::DeclaredSpider;
///
/// let spider = DeclaredSpider::from_toml(
///     r#"
///     name = "quotes"
///     start = ["https://quotes.toscrape.com/"]
///
///     [[rules]]
///     restrict_css = "li.next"
///
///     [items.quote]
///     each = "div.quote"
///
///     [items.quote.fields]
///     text = "span.text::text"
///     author = { css = "small.author::text", required = true }
///     tags = { css = "a.tag::text", type = "list" }
///     "#,
///     "quotes.toml",
/// )?;
/// assert_eq!(spider.first_url().as_str(), "https://quotes.toscrape.com/");
///
/// let error = DeclaredSpider::from_toml("strat = 'https://example.org/'", "my.toml").unwrap_err();
/// assert_eq!(error.to_string(), "my.toml, line 1: unknown key \"strat\"; did you mean \"start\"?");
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Debug)]
pub struct DeclaredSpider {
    spider: Sitemaps<Declaration>,
}

/// What a file declares.
#[derive(Debug)]
struct Declaration {
    name: String,
    profile: Option<Profile>,
    first: Url,
    start: Vec<String>,
    start_file: Option<PathBuf>,
    sitemaps: Vec<String>,
    allowed_domains: Vec<String>,
    settings: Vec<(&'static str, Value)>,
    rules: Vec<Rule>,
    items: Vec<ItemRule>,
}

impl DeclaredSpider {
    /// Reads a file and checks all of it. A `start_file` in it is relative to the folder of the file.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong: the message names file and line, and what to do.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (text, shown) = text_of(path, "the spider file")?;
        Self::read(&text, &shown, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a declaration; `name` stands for the file in messages. A `start_file` in it is relative to the working directory.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn from_toml(text: &str, name: &str) -> Result<Self> {
        Self::read(text, name, Path::new(""))
    }

    fn read(text: &str, name: &str, folder: &Path) -> Result<Self> {
        let declaration = Source::new(text, name).read(folder)?;
        let sitemaps = declaration.sitemaps.clone();
        Ok(Self { spider: Sitemaps::new(declaration).sitemap_urls(sitemaps) })
    }

    fn declared(&self) -> &Declaration {
        self.spider.inner()
    }

    /// The profile of settings that the file names.
    pub fn profile(&self) -> Option<Profile> {
        self.declared().profile
    }

    /// The first start URL, or the first sitemap if there is none.
    pub fn first_url(&self) -> &Url {
        &self.declared().first
    }

    /// The items of a page. One that lacks a required field, or has a value of the wrong type, is an error of its own.
    pub fn items(&self, page: &Page) -> Vec<Result<DeclaredItem>> {
        self.declared().items_of(page)
    }

    /// Requests for the links of a page that the rules take. A link that several rules would take is given to the first of them. A page
    /// that is not HTML, and one whose rule says `follow = false`, has none.
    ///
    /// # Errors
    /// No rule has the callback of the page any more: a job may hold requests of an earlier version of the file. Or the page has no tree in
    /// which a rule could look.
    pub fn links(&self, page: &Page) -> Result<Vec<Request>> {
        self.declared().links(page)
    }

    /// The start URLs, without sitemaps. They are read from the `start_file` anew with each call.
    ///
    /// # Errors
    /// The `start_file` cannot be read any more.
    pub fn start_urls(&self) -> Result<StartUrls> {
        self.declared().start_urls()
    }

    /// The sitemaps to start from, for a program that reads them by a [`Sitemaps`] of its own.
    pub fn sitemap_urls(&self) -> &[String] {
        &self.declared().sitemaps
    }
}

impl Spider for DeclaredSpider {
    type Item = DeclaredItem;

    fn name(&self) -> &str {
        self.spider.name()
    }

    fn start(&self) -> Start {
        self.spider.start()
    }

    fn parse(&self, page: &Page, out: &mut Output<DeclaredItem>) -> Result<()> {
        self.spider.parse(page, out)
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<DeclaredItem>) -> Result<()> {
        self.spider.failed(request, error, out)
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.spider.allowed_domains()
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.spider.settings()
    }
}

impl Declaration {
    fn items_of(&self, page: &Page) -> Vec<Result<DeclaredItem>> {
        let mut items = Vec::new();
        for kind in self.items.iter().filter(|kind| kind.applies_to(page)) {
            items.extend(kind.read(page));
        }
        items
    }

    fn links(&self, page: &Page) -> Result<Vec<Request>> {
        let label = page.callback();
        if label != DEFAULT_CALLBACK && !self.rules.iter().any(|rule| rule.label() == label) {
            return Err(Error::msg(format!(
                "the spider file has no rule with the callback \"{}\" any more: name one so, or crawl anew",
                label.escape_debug()
            )));
        }
        rule::links(&self.rules, page)
    }

    fn start_urls(&self) -> Result<StartUrls> {
        match self.start.is_empty() && self.start_file.is_none() {
            true => Ok(StartUrls::none(self.first.clone())),
            false => StartUrls::of(&self.start, self.start_file.as_deref()),
        }
    }
}

impl Spider for Declaration {
    type Item = DeclaredItem;

    fn name(&self) -> &str {
        &self.name
    }

    fn start(&self) -> Start {
        match self.start_urls() {
            Ok(urls) => urls.into_start(),
            Err(error) => Start::new(std::iter::once(Err(error))),
        }
    }

    fn parse(&self, page: &Page, out: &mut Output<DeclaredItem>) -> Result<()> {
        self.links(page)?.into_iter().for_each(|request| out.request(request));
        for item in self.items_of(page) {
            match item {
                Ok(item) => out.item(item),
                Err(error) => {
                    out.context().stats().inc("item_error_count");
                    log::error!(url = %page.url(), "{error}");
                }
            }
        }
        Ok(())
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.allowed_domains.clone()
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        self.settings.clone()
    }
}

/// The text of a file, and its name for messages.
fn text_of(path: &Path, what: &str) -> Result<(String, String)> {
    let shown = escape(&path.to_string_lossy()).into_owned();
    let reading = |error| Error::usage(format!("reading {what} {shown}: {error}"));
    let size = fs::metadata(path).map_err(reading)?.len();
    if size > MAX_FILE {
        return Err(Error::usage(format!("{what} {shown} has {size} bytes; at most {MAX_FILE} are read")));
    }
    let text = fs::read_to_string(path).map_err(reading)?;
    Ok((text, shown))
}
