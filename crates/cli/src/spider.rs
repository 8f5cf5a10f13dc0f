//! The spider of `crawl`: it makes one record per page and follows every link.

use std::sync::{Arc, Mutex, PoisonError};

use huntsman::detect::lang::Lang;
use huntsman::sweep::{Copied, Subject, article_of};
use huntsman::{
    Context, DeclaredItem, DeclaredSpider, Output, Page, Result, SitemapReport, Spider, Start, Work, log,
};
use serde::Serialize;
use serde_json::{Map, Value};

/// A line of `pages.jsonl`; the fields stand in this order in the line.
#[derive(Debug, Serialize)]
pub(crate) struct PageRecord {
    /// The URL as it entered the queue, before redirects.
    pub(crate) url: String,
    pub(crate) final_url: String,
    pub(crate) status: u16,
    /// Number of links followed from a start URL.
    pub(crate) depth: u16,
    pub(crate) referer: Option<Arc<str>>,
    /// Media type without parameters.
    pub(crate) content_type: Option<String>,
    /// Size of the decoded body.
    pub(crate) bytes: usize,
    pub(crate) wire_bytes: u64,
    pub(crate) title: Option<String>,
    /// ISO 639 code: the declared language; without one, the detected language if text was asked for, or if a component
    /// has detected it.
    pub(crate) lang: Option<String>,
    /// Number of words in the text; `None` unless text was asked for.
    pub(crate) words: Option<usize>,
    /// Number of links to http and https addresses, repetitions included.
    pub(crate) links: usize,
    /// When the response had arrived, in RFC 3339.
    pub(crate) fetched_at: String,
    /// Time from sending the request to the last byte.
    pub(crate) elapsed_ms: f64,
    pub(crate) ok: bool,
    /// Whether a limit cut off a part of the page.
    pub(crate) truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// Fields that components added, such as `simhash` and `near_duplicates` with `--near-dup`.
    #[serde(flatten)]
    pub(crate) added: Map<String, Value>,
    /// How likely it is that the article of `--copyvio` is copied from this page; `None` if the page's text is not
    /// read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copyvio: Option<CopyvioRecord>,
    /// The name of the request in a crawl that several nodes share.
    #[serde(flatten)]
    pub(crate) work: Option<Work>,
    /// The article that a sweep checks.
    #[serde(skip)]
    pub(crate) article: Option<Arc<Subject>>,
    /// Items that a spider file declares; they go into a file of their own.
    #[serde(skip)]
    pub(crate) items: Vec<DeclaredItem>,
}

/// The comparison of a page with the article of `--copyvio`.
#[derive(Debug, Serialize)]
pub(crate) struct CopyvioRecord {
    confidence: f64,
    band: String,
    score: f64,
    verdict: String,
}

impl CopyvioRecord {
    fn of(copied: &Copied) -> Self {
        Self {
            confidence: copied.confidence.value(),
            band: copied.confidence.band().to_string(),
            score: copied.evidence.score.value(),
            verdict: copied.evidence.verdict.to_string(),
        }
    }
}

impl PageRecord {
    /// The record of a page with this number of links. Text, words and detected language about double the CPU time of
    /// a page, so they are computed only if they were asked for.
    pub(crate) fn of(page: &Page, cx: &Context, links: usize, with_text: bool) -> Self {
        let detected = if with_text { Some(page.lang()) } else { page.known_lang() };
        let lang = match detected {
            Some(detected) => Some(detected.lang).filter(|lang| *lang != Lang::UNKNOWN),
            None => page.declared_lang().and_then(Lang::parse),
        };
        Self {
            title: page.title().map(str::to_owned),
            lang: lang.map(|lang| lang.code().to_owned()),
            words: with_text.then(|| page.word_count()),
            links,
            truncated: is_cut(page) || page.scanned().0.is_truncated(),
            text: with_text.then(|| page.text().to_owned()),
            added: page.record_fields.clone(),
            copyvio: page.extensions.get::<Copied>().map(CopyvioRecord::of),
            ..Self::of_answer(page, cx)
        }
    }

    /// The record of a sitemap, whose links are its entries. It is not parsed as a page, because it may have 50 MiB.
    pub(crate) fn of_sitemap(page: &Page, report: &SitemapReport, cx: &Context) -> Self {
        Self {
            links: report.entries,
            truncated: is_cut(page) || report.is_cut || report.entries_cut > 0,
            ..Self::of_answer(page, cx)
        }
    }

    /// The fields that are known without reading the content.
    fn of_answer(page: &Page, cx: &Context) -> Self {
        let (request, response) = (page.request(), page.response());
        Self {
            url: request.requested_url().to_owned(),
            final_url: page.url().to_string(),
            status: response.status.as_u16(),
            depth: request.depth,
            referer: request.referer.clone(),
            content_type: response.content_type(),
            bytes: response.body.len(),
            wire_bytes: response.wire_bytes,
            title: None,
            lang: None,
            words: None,
            links: 0,
            fetched_at: cx.now().to_rfc3339(),
            elapsed_ms: (response.timings.total.as_secs_f64() * 10_000.0).round() / 10.0,
            ok: response.status.is_success(),
            truncated: false,
            text: None,
            added: Map::new(),
            copyvio: None,
            work: request.extensions.get().copied(),
            article: None,
            items: Vec::new(),
        }
    }
}

fn is_cut(page: &Page) -> bool {
    page.response().flags.iter().any(|flag| matches!(*flag, "truncated" | "partial" | "dataloss"))
}

/// Crawls from the start requests.
pub(crate) struct SiteSpider {
    /// Taken at the start, because a source such as stdin can be read only once.
    start: Mutex<Option<Start>>,
    text: bool,
    follow: bool,
    /// Minimum number of words of an article; if unset, no pages are articles.
    articles: Option<usize>,
    /// The spider of a file, which says what links and items are.
    declared: Option<DeclaredSpider>,
}

impl SiteSpider {
    /// With `text`, records carry text and words; without `follow`, only the start requests are fetched.
    pub(crate) fn new(start: Start, text: bool, follow: bool) -> Self {
        Self { start: Mutex::new(Some(start)), text, follow, articles: None, declared: None }
    }

    /// Treats pages with at least this number of words as articles.
    pub(crate) fn articles(mut self, min_words: Option<usize>) -> Self {
        self.articles = min_words;
        self
    }

    /// Follows the links and gives the items that a file declares.
    pub(crate) fn declared(mut self, spider: DeclaredSpider) -> Self {
        self.declared = Some(spider);
        self
    }

    /// Follows the links of a page, and returns the number of links to http and https addresses.
    fn follow(&self, page: &Page, out: &mut Output<PageRecord>) -> Result<usize> {
        let all = || page.anchors().filter(|link| page.join(link.href).is_some()).count();
        match &self.declared {
            _ if !self.follow => Ok(all()),
            None => Ok(out.follow_links(page)),
            Some(declared) => {
                declared.links(page)?.into_iter().for_each(|request| out.request(request));
                Ok(all())
            }
        }
    }

    /// The items of a page. One that cannot be made is counted and logged.
    fn items(&self, page: &Page, cx: &Context) -> Vec<DeclaredItem> {
        let Some(declared) = &self.declared else { return Vec::new() };
        let made = declared.items(page).into_iter().filter_map(|item| match item {
            Ok(item) => Some(item),
            Err(error) => {
                cx.stats().inc("item_error_count");
                log::error!(url = %page.url(), "{error}");
                None
            }
        });
        let items: Vec<DeclaredItem> = made.collect();
        if !items.is_empty() {
            cx.stats().add("declared/items", i64::try_from(items.len()).unwrap_or(i64::MAX));
        }
        items
    }

    fn article(&self, page: &Page, cx: &Context) -> Option<Arc<Subject>> {
        article_of(page, cx, self.articles?)
    }
}

impl Spider for SiteSpider {
    type Item = PageRecord;

    fn name(&self) -> &str {
        "site"
    }

    fn start(&self) -> Start {
        self.start.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(Start::none)
    }

    fn parse(&self, page: &Page, out: &mut Output<PageRecord>) -> Result<()> {
        let links = self.follow(page, out)?;
        let mut record = PageRecord::of(page, out.context(), links, self.text);
        record.article = self.article(page, out.context());
        record.items = self.items(page, out.context());
        out.item(record);
        Ok(())
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.declared.as_ref().map(Spider::allowed_domains).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman::{Request, Response, Settings};
    use serde_json::json;

    #[test]
    fn fields_of_components_stand_between_the_text_and_the_comparison() {
        let request = Request::parse("http://a.test/").unwrap();
        let response = Response::new(request.url.clone(), 200.try_into().unwrap(), "<p>eins zwei");
        let mut page = Page::new(request, response);
        page.record_fields.insert("simhash".to_owned(), json!("0f"));
        page.record_fields
            .insert("near_duplicates".to_owned(), json!([{"url": "http://b.test/", "distance": 2}]));
        let cx = Context::detached(Settings::default());
        let record = PageRecord {
            fetched_at: "2026-11-22T22:00:00.000Z".to_owned(),
            copyvio: Some(CopyvioRecord {
                confidence: 0.5,
                band: "possible".to_owned(),
                score: 0.25,
                verdict: "unlikely".to_owned(),
            }),
            ..PageRecord::of(&page, &cx, 0, true)
        };
        let line = concat!(
            r#"{"url":"http://a.test/","final_url":"http://a.test/","status":200,"depth":0,"referer":null,"#,
            r#""content_type":null,"bytes":12,"wire_bytes":12,"title":null,"lang":"de","words":2,"links":0,"#,
            r#""fetched_at":"2026-11-22T22:00:00.000Z","elapsed_ms":0.0,"ok":true,"truncated":false,"#,
            r#""text":"eins zwei","simhash":"0f","near_duplicates":[{"url":"http://b.test/","distance":2}],"#,
            r#""copyvio":{"confidence":0.5,"band":"possible","score":0.25,"verdict":"unlikely"}}"#
        );
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
        let plain = PageRecord { added: Map::new(), text: None, copyvio: None, ..record };
        let short = line.split(r#","text""#).next().unwrap();
        assert_eq!(serde_json::to_string(&plain).unwrap(), format!("{short}}}"));
    }

    #[test]
    fn a_detected_language_is_recorded_if_it_is_known() {
        let text = "Der Hund läuft über die Straße und bellt, weil er die Katze gesehen hat.";
        let request = Request::parse("http://a.test/").unwrap();
        let response = Response::new(request.url.clone(), 200.try_into().unwrap(), format!("<p>{text}"));
        let page = Page::new(request, response);
        let cx = Context::detached(Settings::default());
        assert_eq!(PageRecord::of(&page, &cx, 0, false).lang, None, "no language without the text");
        let detected = page.lang().lang.code();
        assert_eq!(PageRecord::of(&page, &cx, 0, false).lang.as_deref(), Some(detected));
    }
}
