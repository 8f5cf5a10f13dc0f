//! Referer: which part of a page's address its links tell.

use http::{HeaderValue, header};
use huntsman_crawler::referrer::{ReferrerPolicy, referrer};
use huntsman_crawler::{
    Context, Error, OnFollow, Page, Request, Response, Result, Settings, SpiderMiddleware,
};

/// Sets the `Referer` header of links by the referrer policy: that of the request's meta `referrer_policy`, else that of
/// the page's `Referrer-Policy` header, else that of the setting. User info and fragment are never told.
///
/// A header that the spider set is left as it is. Records show the whole address of the page in any case.
#[derive(Debug)]
pub struct Referer {
    policy: ReferrerPolicy,
}

impl Referer {
    /// The name in settings and records.
    pub const NAME: &'static str = "referer";
    /// The place in the chain.
    pub const ORDER: i32 = 700;

    /// Always configured; policy `no-referrer` sends none.
    ///
    /// # Errors
    /// `referrer_policy` is no policy.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        Ok(Some(Self { policy: policy_setting(settings)? }))
    }
}

/// The policy of the settings.
pub(crate) fn policy_setting(settings: &Settings) -> Result<ReferrerPolicy> {
    settings
        .referrer_policy
        .parse()
        .map_err(|cause| Error::usage(format!("setting referrer_policy: {cause}")))
}

/// The policy for a request that a response leads to.
pub(crate) fn policy_of(request: &Request, response: &Response, setting: ReferrerPolicy) -> ReferrerPolicy {
    let own = request.meta_str("referrer_policy").and_then(|name| name.parse().ok());
    own.or_else(|| {
        let headers = response.headers.get_all("referrer-policy").iter();
        headers.rev().find_map(|value| ReferrerPolicy::from_header(value.to_str().ok()?))
    })
    .unwrap_or(setting)
}

impl SpiderMiddleware for Referer {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    fn process_follow(&self, page: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
        if !request.headers.contains_key(header::REFERER) {
            let policy = policy_of(request, page.response(), self.policy);
            let value = referrer(policy, page.url(), &request.url);
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
                request.headers.insert(header::REFERER, value);
            }
        }
        Ok(OnFollow::Keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use url::Url;

    fn told(page_policy: Option<&str>, request: Request) -> Option<String> {
        let settings = Settings::default();
        let url = Url::parse("https://u:p@a.example/x?q#f").unwrap();
        let mut response = Response::html(url.clone(), "");
        if let Some(policy) = page_policy {
            response.headers.insert("referrer-policy", policy.parse().unwrap());
        }
        let page = Page::new(Request::get(url), response);
        let mut request = request;
        let referer = Referer::from_settings(&settings).unwrap().unwrap();
        referer.process_follow(&page, &mut request, &Context::detached(settings)).unwrap();
        request.headers.get("referer").map(|value| value.to_str().unwrap().to_owned())
    }

    fn link(url: &str) -> Request {
        Request::parse(url).unwrap()
    }

    #[test]
    fn meta_wins_over_the_page_and_the_page_over_the_setting() {
        assert_eq!(told(None, link("https://a.example/y")).as_deref(), Some("https://a.example/x?q"));
        assert_eq!(told(None, link("https://b.example/")).as_deref(), Some("https://a.example/"));
        assert_eq!(told(None, link("http://a.example/")), None);
        let page = Some("unsafe-url, no-referrer");
        assert_eq!(told(page, link("https://a.example/y")), None);
        let own = link("http://b.example/").meta("referrer_policy", "unsafe-url");
        assert_eq!(told(page, own).as_deref(), Some("https://a.example/x?q"));
    }

    #[test]
    fn a_header_set_by_hand_is_kept() {
        let own = link("https://b.example/").header("Referer", "https://c.example/z").unwrap();
        assert_eq!(told(None, own).as_deref(), Some("https://c.example/z"));
    }

    #[test]
    fn an_unknown_policy_is_an_error_of_the_settings() {
        let mut settings = Settings::default();
        settings.referrer_policy = "sometimes".to_owned();
        let error = Referer::from_settings(&settings).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains("sometimes"), "{error}");
    }
}
