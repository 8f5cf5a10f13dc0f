//! Copyvio: measures how much of one article occurs on each page of a crawl.

use std::fmt;
use std::sync::Arc;

use huntsman_crawler::{Context, CrawlerBuilder, OnPage, Page, Plugin, Result, Spider, SpiderMiddleware};
use huntsman_detect::copyvio::{Article, Band, Chain, Confidence, Degree, Evidence, Text, Verdict};
use serde::Serialize;

use super::pdf::PdfText;
use super::reading::Reading;

/// Compares every page of a crawl with one article, to find whether the article is copied from the page.
///
/// The result is in the extensions of the page as [`Copied`]. Pages that cannot be read (another type, too large, no
/// text) have none. Stats: `copyvio/pages`, `copyvio/suspected` and `copyvio/possible` by confidence,
/// `copyvio/verdict/suspected` and `copyvio/verdict/possible` by the verdict of the evidence.
///
/// A page of 20 kB takes about 0.2 ms: a scan of its text, a look-up for each of its words, and evidence only where
/// both share words.
///
/// ```
/// use huntsman_crawler::{Output, Page, spider_fn};
/// use huntsman_detect::copyvio::Text;
/// use huntsman_sweep::{Copied, Copyvio};
///
/// let spider = spider_fn(["https://example.org/"], |page: &Page, out: &mut Output<String>| {
///     if let Some(copied) = page.extensions.get::<Copied>() {
///         out.item(format!("{} {:.2}", page.url(), copied.confidence.value()));
///     }
///     out.follow_links(page);
///     Ok(())
/// });
/// let article = Text::new("The old mill stands on the bank of the river.");
/// let crawler = huntsman_crawler::CrawlerBuilder::new(spider).plugin(Copyvio::of(&article));
/// # let _ = crawler;
/// ```
#[derive(Clone)]
pub struct Copyvio(Arc<Inner>);

struct Inner {
    article: Article<'static>,
    chain: Chain,
    pdf: Option<Arc<dyn PdfText>>,
}

/// The comparison of a page with the article; in its extensions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Copied {
    /// The confidence that the article copies the page, as in the reference.
    pub confidence: Confidence,
    /// The shared passages, and the verdict from them.
    pub evidence: Evidence,
}

impl Copyvio {
    /// The name in stats.
    pub const NAME: &'static str = "copyvio";
    /// Position in the spider chain: after HttpError, so that error pages are not compared.
    pub const ORDER: i32 = 56;

    /// Compares pages with this article.
    pub fn of(article: &Text) -> Self {
        Self::with_pdf(article, None)
    }

    /// Compares pages and PDF files with this article; a crawl fetches files only where `download_binary` is set.
    pub fn with_pdf(article: &Text, pdf: Option<Arc<dyn PdfText>>) -> Self {
        let chain = Chain::of(article.exact(), Degree::default());
        Self(Arc::new(Inner { article: Article::new(article.document().into_owned()), chain, pdf }))
    }

    fn compare(&self, page: &Page, cx: &Context) -> Option<Copied> {
        let reading = Reading::of_page(page, cx, self.0.pdf.as_deref()).ok()?;
        let windows = reading.text.windows(Degree::default());
        let shared = self.0.chain.delta(&windows).size;
        Some(Copied {
            confidence: Confidence::of(self.0.chain.size(), shared),
            evidence: self.0.article.compare(&reading.text.document()),
        })
    }
}

impl Plugin for Copyvio {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        builder.spider_middleware(self)
    }
}

impl SpiderMiddleware for Copyvio {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        if !page.response().status.is_success() || page.request().is_sitemap() {
            return Ok(OnPage::Parse);
        }
        let Some(copied) = self.compare(page, cx) else { return Ok(OnPage::Parse) };
        cx.stats().inc("copyvio/pages");
        if copied.confidence.band() != Band::None {
            cx.stats().inc(&format!("copyvio/{}", copied.confidence.band()));
        }
        if copied.evidence.verdict != Verdict::None {
            cx.stats().inc(&format!("copyvio/verdict/{}", copied.evidence.verdict));
        }
        page.extensions.insert(copied);
        Ok(OnPage::Parse)
    }
}

impl fmt::Debug for Copyvio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copyvio").field("article", &self.0.article.document()).finish_non_exhaustive()
    }
}
