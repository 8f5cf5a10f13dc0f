//! Adding the pages of a crawl to an index.

use huntsman_crawler::{
    Component, Context, CrawlerBuilder, Error, Hooks, OnPage, Page, Persist, Plugin, Result, Spider,
    SpiderMiddleware, log,
};
use huntsman_detect::lang::Lang;

use super::{IndexedPage, TextIndex, TextIndexError};
use crate::reading::Reading;

/// A plugin that adds the text of every page of a crawl to a [`TextIndex`], under the URL after redirects.
///
/// A page is in the index at the latest when the job of the crawl marks it as done, so a crawl that is killed and
/// resumed loses none; a page that is fetched again replaces itself. Errors, responses without text and sitemaps are
/// ignored. A page with `noindex` is added all the same, because the index is not public. If the index fails, as on a
/// full disk, the crawl ends with the next commit of its job; a crawl without a job reports it at its end, by
/// [`TextIndex::close`].
///
/// It reads the text as a check does, which takes about as long as the rest of the work on a page. Stats are
/// `index/pages` and `index/failed`.
#[derive(Clone, Debug)]
pub struct IndexPages {
    index: TextIndex,
}

impl IndexPages {
    /// Adds pages to an index, which the caller must close after the crawl.
    pub fn new(index: TextIndex) -> Self {
        Self { index }
    }

    fn add(&self, page: &Page, cx: &Context) -> Result<bool, TextIndexError> {
        let Ok(reading) = Reading::of_page(page, cx, None) else { return Ok(false) };
        let mut url = page.url().clone();
        url.set_fragment(None);
        let lang = page.declared_lang().and_then(Lang::parse).map(|lang| lang.code().to_owned());
        self.index.add(&IndexedPage {
            url: url.into(),
            title: page.title().map(str::to_owned),
            lang,
            fetched_at: Some(cx.now()),
            text: reading.text,
        })?;
        Ok(true)
    }
}

impl Component for IndexPages {
    const NAME: &'static str = "index_pages";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // After the components that drop pages.
        hooks.spider(58).persist()
    }
}

impl SpiderMiddleware for IndexPages {
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        if !page.response().status.is_success() || page.request().is_sitemap() || !page.kind().is_textual() {
            return Ok(OnPage::Parse);
        }
        match self.add(page, cx) {
            Ok(true) => cx.stats().inc("index/pages"),
            Ok(false) => {}
            Err(error) => {
                cx.stats().inc("index/failed");
                log::error!(url = %page.url(), "not indexed: {error}");
            }
        }
        Ok(OnPage::Parse)
    }
}

/// Saves nothing in the job: it only makes pages durable before each commit.
impl Persist for IndexPages {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.index.sync(false).map(|()| None).map_err(|error| Error::usage(error.to_string()))
    }

    fn sync(&self) -> Result<()> {
        self.index.sync(true).map_err(|error| Error::usage(error.to_string()))
    }
}

impl Plugin for IndexPages {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        builder.component(move |_| Ok(Some(self)))
    }
}
