//! Offsite: drops links, redirects and pushed requests that are outside the scope of the crawl.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Hooks, OnFollow, OnRequest, Page, Persist, Request,
    Result, Settings, SpiderMiddleware, log, meta,
};

use crate::chain;
use crate::scope::OffsiteSettings;
use crate::scope::OutOfScope;
use crate::scope::{LogOnce, RejectReason, ScopeRules};

/// Drops requests that are outside the crawl by `scope`, `allow_hosts`, `include` and `exclude`: reasons `offsite`,
/// `excluded`, `not_included`.
///
/// As a spider middleware it judges links and records the seeds, which are in the crawl whatever the patterns say. As a
/// downloader middleware it judges requests that did not come from a page: redirect targets (by
/// `redirect_out_of_scope`) and pushed requests. Sitemaps are judged by [`ScopeRules::check_sitemap`]. A request with
/// meta `allow_offsite` passes.
#[derive(Clone, Debug)]
pub struct Offsite(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: ScopeRules,
    redirects: OutOfScope,
    log_once: LogOnce,
    /// Number of seeds that were saved in the job.
    saved: AtomicUsize,
}

impl Offsite {
    /// Creates the component from the settings; `None` if the settings restrict nothing.
    ///
    /// # Errors
    /// A pattern or a host of the settings is not valid.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: OffsiteSettings = settings.of()?;
        let rules = ScopeRules::from_settings(settings)?;
        if rules.is_open() {
            return Ok(None);
        }
        Ok(Some(Self(Arc::new(Inner {
            rules,
            redirects: own.redirect_out_of_scope,
            log_once: LogOnce::default(),
            saved: AtomicUsize::new(0),
        }))))
    }

    /// The rules, so that a program can judge other URLs by them.
    pub fn rules(&self) -> &ScopeRules {
        &self.0.rules
    }

    fn check(&self, request: &Request, cx: &Context) -> OnFollow {
        if request.meta_flag(meta::ALLOW_OFFSITE) {
            return OnFollow::Keep;
        }
        match self.reject_reason(request) {
            None => OnFollow::Keep,
            Some(reject_reason) => OnFollow::Drop(self.refuse(request, reject_reason, cx)),
        }
    }

    fn reject_reason(&self, request: &Request) -> Option<RejectReason> {
        match request.is_sitemap() {
            true => self.0.rules.check_sitemap(&request.url),
            false => self.0.rules.check(&request.url),
        }
    }

    fn refuse(&self, request: &Request, reject_reason: RejectReason, cx: &Context) -> DropReason {
        cx.stats().inc("offsite/filtered");
        let host = crate::origin::host(&request.url);
        if reject_reason == RejectReason::Scope && self.0.log_once.first(host) {
            cx.stats().inc("offsite/domains");
            log::debug!(%host, url = %request.url, "filtered a link that leaves the crawl; later ones to this host are not logged");
        }
        DropReason::skipped(reject_reason.reason())
    }
}

/// Saves the seeds in the job, because requests queued in an earlier run are judged before the start requests are made
/// again.
impl Persist for Offsite {
    fn name(&self) -> String {
        "scope".to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        if let Some(state) = state {
            self.rules().restore(serde_json::from_slice(state)?);
        }
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        let rules = self.rules();
        let count = rules.seed_count();
        if self.0.saved.swap(count, Ordering::Relaxed) == count {
            return Ok(None);
        }
        Ok(Some(serde_json::to_vec(&rules.seeds())?))
    }
}

impl Component for Offsite {
    const NAME: &'static str = "offsite";
    type Settings = OffsiteSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // In the spider chain links pass from high orders to low ones, and most refused links are refused here.
        hooks.downloader(50).spider(950).persist()
    }
}

impl SpiderMiddleware for Offsite {
    fn process_start(&self, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        if request.meta_flag(meta::IS_START_REQUEST) {
            self.0.rules.add_seed(&request.url);
            return Ok(OnFollow::Keep);
        }
        Ok(self.check(request, cx))
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.check(request, cx))
    }
}

impl DownloaderMiddleware for Offsite {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        let redirected = chain::hops(request) > 0;
        if request.meta_flag(meta::IS_START_REQUEST) && !redirected {
            self.0.rules.add_seed(&request.url);
            return Ok(OnRequest::Continue);
        }
        if request.meta_flag(meta::ALLOW_OFFSITE) {
            return Ok(OnRequest::Continue);
        }
        let Some(reject_reason) = self.reject_reason(request) else { return Ok(OnRequest::Continue) };
        if !redirected {
            return Ok(OnRequest::Drop(self.refuse(request, reject_reason, cx)));
        }
        let to = format!("redirect to {}", request.url);
        Ok(match self.0.redirects {
            OutOfScope::Follow => OnRequest::Continue,
            OutOfScope::Drop => OnRequest::Drop(self.refuse(request, reject_reason, cx).detail(to)),
            OutOfScope::Record => {
                let mut record = DropReason::skipped("redirect_out_of_scope").detail(to);
                record.status = chain::last_status(request).and_then(|code| StatusCode::from_u16(code).ok());
                OnRequest::Drop(record)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Scope;
    use huntsman_crawler::Response;
    use serde_json::json;
    use url::Url;

    fn offsite(change: impl FnOnce(&mut Settings)) -> (Offsite, Context) {
        let mut settings = Settings::default();
        settings.change(|own: &mut OffsiteSettings| own.scope = Scope::Host);
        change(&mut settings);
        (Offsite::from_settings(&settings).unwrap().unwrap(), Context::detached(settings))
    }

    fn request(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    fn follow(offsite: &Offsite, mut link: Request, cx: &Context) -> Option<String> {
        let url = Url::parse("http://seed.example/").unwrap();
        let page = Page::new(Request::get(url.clone()), Response::html(url, ""));
        match offsite.process_follow(&page, &mut link, cx).unwrap() {
            OnFollow::Keep => None,
            OnFollow::Drop(reason) => Some(reason.reason.into_owned()),
        }
    }

    async fn download(offsite: &Offsite, mut request: Request, cx: &Context) -> Option<DropReason> {
        match DownloaderMiddleware::process_request(offsite, &mut request, cx).await.unwrap() {
            OnRequest::Drop(reason) => Some(reason),
            _ => None,
        }
    }

    #[tokio::test]
    async fn links_and_pushed_requests_stay_with_the_seeds() {
        let (offsite, cx) = offsite(|settings| {
            settings.change(|own: &mut OffsiteSettings| own.exclude = vec!["*/logout*".to_owned()])
        });
        let mut seed = request("http://seed.example/logout").with_meta(meta::IS_START_REQUEST, true);
        offsite.process_start(&mut seed, &cx).unwrap();
        assert_eq!(
            download(&offsite, seed, &cx).await,
            None,
            "a seed is in the crawl whatever the patterns say"
        );
        assert_eq!(follow(&offsite, request("http://seed.example/a"), &cx), None);
        assert_eq!(follow(&offsite, request("http://seed.example/logout"), &cx).as_deref(), Some("excluded"));
        for _ in 0..2 {
            assert_eq!(follow(&offsite, request("http://other.example/"), &cx).as_deref(), Some("offsite"));
        }
        assert_eq!(
            follow(&offsite, request("http://other.example/").with_meta(meta::ALLOW_OFFSITE, true), &cx),
            None
        );
        let mut pushed = request("http://third.example/");
        assert!(
            matches!(offsite.process_start(&mut pushed, &cx).unwrap(), OnFollow::Drop(_)),
            "only seeds are learnt"
        );
        let pushed = download(&offsite, request("http://third.example/"), &cx).await.unwrap();
        assert_eq!(pushed.reason, "offsite");
        assert_eq!((cx.stats().get("offsite/domains"), cx.stats().get("offsite/filtered")), (2, 5));
    }

    #[tokio::test]
    async fn a_redirect_out_of_scope_is_dropped_recorded_or_followed() {
        for (policy, expected) in [
            (OutOfScope::Drop, Some("offsite")),
            (OutOfScope::Record, Some("redirect_out_of_scope")),
            (OutOfScope::Follow, None),
        ] {
            let (offsite, cx) = offsite(|settings| {
                settings.change(|own: &mut OffsiteSettings| own.redirect_out_of_scope = policy)
            });
            let mut seed = request("http://seed.example/").with_meta(meta::IS_START_REQUEST, true);
            offsite.process_start(&mut seed, &cx).unwrap();
            // The target inherits the seed's mark, which must not let it through.
            let mut target = seed
                .meta("redirect_urls", json!(["http://seed.example/"]))
                .meta("redirect_reasons", json!([302]));
            target.url = Url::parse("http://other.example/").unwrap();
            let reason = download(&offsite, target, &cx).await;
            assert_eq!(reason.as_ref().map(|reason| reason.reason.as_ref()), expected);
            if policy == OutOfScope::Record {
                let reason = reason.unwrap();
                assert_eq!(reason.status, Some(StatusCode::FOUND));
                assert_eq!(reason.detail.as_deref(), Some("redirect to http://other.example/"));
            }
        }
    }

    #[tokio::test]
    async fn a_queued_start_request_teaches_the_scope_after_a_restart() {
        let (first, cx) = offsite(|_| {});
        let mut seed = request("http://seed.example/").with_meta(meta::IS_START_REQUEST, true);
        first.process_start(&mut seed, &cx).unwrap();
        let stored = Request::from_json(seed.to_json()).unwrap();
        let (second, cx) = offsite(|_| {});
        assert_eq!(download(&second, stored, &cx).await, None);
        assert_eq!(follow(&second, request("http://seed.example/a"), &cx), None);
    }

    #[test]
    fn an_open_crawl_needs_no_offsite() {
        assert!(Offsite::from_settings(&Settings::default()).unwrap().is_none());
    }
}
