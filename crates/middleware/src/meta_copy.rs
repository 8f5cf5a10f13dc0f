//! MetaCopyDetection: detects callbacks that copy the whole meta of a request, including counters that belong to
//! middlewares.

use std::sync::atomic::{AtomicBool, Ordering};

use huntsman_crawler::{
    Component, Context, Hooks, OnFollow, Page, Request, Result, Settings, SpiderMiddleware, log,
};

/// Warns once per crawl about a link whose meta has keys that middlewares write: with the `redirect_times` or
/// `retry_times` of another request, it would be given up too early.
#[derive(Debug, Default)]
pub struct MetaCopyDetection {
    warned: AtomicBool,
}

/// Keys that middlewares write (as Scrapy's list).
const INTERNAL: [&str; 6] = [
    "retry_times",
    "redirect_times",
    "redirect_ttl",
    "redirect_urls",
    "redirect_reasons",
    "download_latency",
];

impl MetaCopyDetection {
    /// Creates the component from the settings; never `None`.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(_: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self::default()))
    }
}

impl Component for MetaCopyDetection {
    const NAME: &'static str = "meta_copy_detection";
    type Settings = ();

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(1_000)
    }
}

impl SpiderMiddleware for MetaCopyDetection {
    fn process_follow(&self, page: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        if request.meta.is_empty() || self.warned.load(Ordering::Relaxed) {
            return Ok(OnFollow::Keep);
        }
        // A retry that the callback asked for keeps its counts.
        let copied =
            INTERNAL.iter().find(|key| request.meta.contains_key(**key)).filter(|_| request.retries == 0);
        if let Some(key) = copied
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            cx.stats().inc("meta_copies");
            log::warn!(
                page = %page.url(), link = %request.url,
                "a link carries the meta key {key}: copy the keys that you need, not the whole meta (logged once)"
            );
        }
        Ok(OnFollow::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::Response;
    use url::Url;

    #[test]
    fn a_copied_meta_is_logged_once() {
        let settings = Settings::default();
        let detection = MetaCopyDetection::from_settings(&settings).unwrap().unwrap();
        let cx = Context::detached(settings);
        let url = Url::parse("http://h/").unwrap();
        let page = Page::new(Request::get(url.clone()), Response::html(url, ""));
        let follow = |mut request: Request| {
            detection.process_follow(&page, &mut request, &cx).unwrap();
            cx.stats().get("meta_copies")
        };
        let link = || Request::parse("http://h/a").unwrap();
        assert_eq!(follow(link().meta("mine", 1)), 0);
        assert_eq!(follow(crate::retry_request(&link(), "test", &cx).unwrap()), 0);
        assert_eq!(follow(link().with_meta(huntsman_crawler::meta::REDIRECT_TIMES, 3)), 1);
        assert_eq!(follow(link().with_meta(huntsman_crawler::meta::RETRY_TIMES, 3)), 1);
    }
}
