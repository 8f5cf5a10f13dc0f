//! Referer: decides how much of a page's URL is sent with the requests for its links.

use http::{HeaderValue, header};
use huntsman_crawler::meta::{self, MetaKey};
use huntsman_crawler::referrer::{ReferrerPolicy, referrer};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Error, Hooks, OnFollow, OnRequest, Page, Request, Response,
    Result, Settings, SpiderMiddleware, settings,
};
use url::Url;

use crate::added;

settings! {
    /// Settings of [`Referer`].
    pub struct RefererSettings {
        /// Referrer policy: one of the eight standard names, or scrapy-default.
        referrer_policy: String = "strict-origin-when-cross-origin".to_owned();
    }
}

/// Sets the `Referer` header of links by the referrer policy: that of the request's meta `referrer_policy`, else that
/// of the page's `Referrer-Policy` header, else that of the setting. User info and fragment are never sent.
///
/// A header that the spider set is left as it is. Records show the whole URL of the page in any case.
///
/// As a downloader middleware it makes the header when a request is about to be sent, because most links of a page are
/// already known and never sent. As a spider middleware it stores the page's policy, if it differs from the setting, in
/// the meta `page_referrer_policy`.
#[derive(Debug)]
pub struct Referer {
    policy: ReferrerPolicy,
}

impl Referer {
    /// Creates the component from the settings; never `None`: with the policy `no-referrer` no header is sent.
    ///
    /// # Errors
    /// `referrer_policy` is not a valid policy.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self { policy: policy_setting(settings)? }))
    }
}

/// The policy of the settings.
pub(crate) fn policy_setting(settings: &Settings) -> Result<ReferrerPolicy> {
    settings
        .of_or_default::<RefererSettings>()
        .referrer_policy
        .parse()
        .map_err(|cause| Error::usage(format!("setting referrer_policy: {cause}")))
}

/// The policy that a response states: the last known token of its last header that has one.
fn stated(response: &Response) -> Option<ReferrerPolicy> {
    let headers = response.headers.get_all("referrer-policy").iter();
    headers.rev().find_map(|value| ReferrerPolicy::from_header(value.to_str().ok()?))
}

fn meta_policy(request: &Request, key: MetaKey<String>) -> Option<ReferrerPolicy> {
    request.meta_text(key).and_then(|name| name.parse().ok())
}

/// The policy for a request that follows a redirecting response.
pub(crate) fn policy_after(
    request: &Request,
    response: &Response,
    setting: ReferrerPolicy,
) -> ReferrerPolicy {
    meta_policy(request, meta::REFERRER_POLICY)
        .or_else(|| stated(response))
        .or_else(|| meta_policy(request, meta::PAGE_REFERRER_POLICY))
        .unwrap_or(setting)
}

impl Component for Referer {
    const NAME: &'static str = "referer";
    type Settings = RefererSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(405).spider(700)
    }
}

impl SpiderMiddleware for Referer {
    fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
        if let Some(policy) = stated(page.response()).filter(|policy| *policy != self.policy) {
            request.set_meta(meta::PAGE_REFERRER_POLICY, policy.name().to_owned());
        }
        Ok(OnFollow::Keep)
    }
}

impl DownloaderMiddleware for Referer {
    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if request.headers.contains_key(header::REFERER) {
            if !added::is_ours(request, &header::REFERER) {
                return Ok(OnRequest::Continue);
            }
            // The header may have been made for another target.
            request.headers.remove(header::REFERER);
        }
        let Some(from) = request.referer.as_deref().and_then(|from| Url::parse(from).ok()) else {
            return Ok(OnRequest::Continue);
        };
        let own = meta_policy(request, meta::REFERRER_POLICY)
            .or_else(|| meta_policy(request, meta::PAGE_REFERRER_POLICY));
        let value = referrer(own.unwrap_or(self.policy), &from, &request.url);
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            added::set(request, header::REFERER, value);
        }
        Ok(OnRequest::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://u:p@a.example/x?q#f";

    /// A link as it is queued: found on `PAGE`, with the referrer that the engine sets.
    fn followed(page_policy: Option<&str>, mut link: Request) -> Request {
        let url = Url::parse(PAGE).unwrap();
        let mut response = Response::html(url.clone(), "");
        if let Some(policy) = page_policy {
            response.headers.insert("referrer-policy", policy.parse().unwrap());
        }
        let page = Page::new(Request::get(url), response);
        link.referer = Some(PAGE.into());
        let settings = Settings::default();
        let referer = Referer::from_settings(&settings).unwrap().unwrap();
        referer.process_follow(&page, &mut link, &Context::detached(settings)).unwrap();
        link
    }

    async fn send(request: &mut Request) -> Option<String> {
        let settings = Settings::default();
        let referer = Referer::from_settings(&settings).unwrap().unwrap();
        referer.process_request(request, &Context::detached(settings)).await.unwrap();
        request.headers.get("referer").map(|value| value.to_str().unwrap().to_owned())
    }

    async fn told(page_policy: Option<&str>, link: Request) -> Option<String> {
        send(&mut followed(page_policy, link)).await
    }

    fn link(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    #[tokio::test]
    async fn meta_wins_over_the_page_and_the_page_over_the_setting() {
        assert_eq!(told(None, link("https://a.example/y")).await.as_deref(), Some("https://a.example/x?q"));
        assert_eq!(told(None, link("https://b.example/")).await.as_deref(), Some("https://a.example/"));
        assert_eq!(told(None, link("http://a.example/")).await, None);
        let page = Some("unsafe-url, no-referrer");
        assert_eq!(told(page, link("https://a.example/y")).await, None);
        let own = link("http://b.example/").meta("referrer_policy", "unsafe-url");
        assert_eq!(told(page, own).await.as_deref(), Some("https://a.example/x?q"));
        let unknown = link("https://a.example/y").meta("referrer_policy", "sometimes");
        assert_eq!(told(page, unknown).await, None, "a name that is none does not count");
    }

    #[test]
    fn a_link_carries_nothing_until_it_is_sent() {
        for policy in [None, Some("strict-origin-when-cross-origin"), Some("nonsense")] {
            let link = followed(policy, link("https://b.example/"));
            assert!(link.headers.is_empty() && link.meta.is_empty(), "{policy:?}: {link:?}");
        }
        let link = followed(Some("origin"), link("https://b.example/"));
        assert_eq!((link.headers.len(), link.meta.len()), (0, 1));
    }

    #[tokio::test]
    async fn a_request_that_no_page_led_to_tells_nothing() {
        assert_eq!(send(&mut link("https://b.example/")).await, None);
        let mut odd = link("https://b.example/");
        odd.referer = Some("no address".into());
        assert_eq!(send(&mut odd).await, None);
    }

    #[tokio::test]
    async fn a_header_set_by_hand_is_kept() {
        let own = link("https://b.example/").header("Referer", "https://c.example/z").unwrap();
        assert_eq!(told(None, own).await.as_deref(), Some("https://c.example/z"));
    }

    #[tokio::test]
    async fn a_header_of_ours_is_made_anew_for_another_target() {
        let mut request = followed(None, link("https://a.example/y"));
        assert_eq!(send(&mut request).await.as_deref(), Some("https://a.example/x?q"));
        request.url = Url::parse("https://b.example/").unwrap();
        assert_eq!(send(&mut request).await.as_deref(), Some("https://a.example/"));
        request.url = Url::parse("http://b.example/").unwrap();
        assert_eq!(send(&mut request).await, None);
        request.url = Url::parse("https://a.example/y").unwrap();
        assert_eq!(send(&mut request).await.as_deref(), Some("https://a.example/x?q"));
        added::strip(&mut request);
        assert!(request.headers.is_empty(), "it is not stored");
    }

    #[test]
    fn an_unknown_policy_is_an_error_of_the_settings() {
        let mut settings = Settings::default();
        settings.change(|own: &mut RefererSettings| own.referrer_policy = "sometimes".to_owned());
        let error = Referer::from_settings(&settings).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("sometimes"), "{error}");
    }
}
