//! MetaRefresh: follows pages that redirect by `meta http-equiv=refresh`.

use http::{Method, header};
use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, Hooks, OnResponse, Request, Response, Result, Settings, meta,
    settings,
};
use huntsman_html::{PageKind, Scan, ScanOptions, content_charset, decode_body, sniff};
use url::Url;

use crate::redirect::RedirectSettings;
use crate::redirect::{Follower, Step};

settings! {
    /// Settings of [`MetaRefresh`].
    pub struct MetaRefreshSettings {
        /// Follows redirects by meta refresh elements of pages.
        metarefresh_enabled: bool = true;
        /// A meta refresh of this many seconds or more is not followed.
        metarefresh_maxdelay: f64 = 100.0;
    }
}

/// Follows a meta refresh as a redirect by GET; it counts as one hop of the redirect chain.
///
/// It follows one only in HTML with a 2xx status, within the first 4,096 characters, not inside `noscript`, to an http
/// or https URL, and with a delay of less than `metarefresh_maxdelay` seconds. A page that refreshes itself is
/// delivered. Meta `dont_redirect` and `dont_metarefresh` switch it off for one request.
#[derive(Debug)]
pub struct MetaRefresh {
    follower: Follower,
    max_delay: f64,
}

/// Number of bytes of a page that are scanned: the limit of 4,096 characters in the widest encoding.
const MAX_SCANNED: usize = 4 * 4_096;

impl MetaRefresh {
    /// Creates the component from the settings; `None` if `metarefresh_enabled` or `redirect_enabled` is off.
    ///
    /// # Errors
    /// `referrer_policy` is not a valid policy.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: MetaRefreshSettings = settings.of()?;
        let redirect: RedirectSettings = settings.of()?;
        if !own.metarefresh_enabled || !redirect.redirect_enabled {
            return Ok(None);
        }
        let follower = Follower::from_settings(settings)?;
        Ok(Some(Self { follower, max_delay: own.metarefresh_maxdelay }))
    }

    fn target(&self, response: &Response) -> Option<Url> {
        let head = &response.body[..response.body.len().min(MAX_SCANNED)];
        if is_ascii_like(head) && !may_refresh(head) {
            return None;
        }
        let text = |name| response.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let content_type = text(header::CONTENT_TYPE);
        let disposition = text(header::CONTENT_DISPOSITION);
        if sniff(content_type.as_deref(), disposition.as_deref(), response.url.path(), head) != PageKind::Html
        {
            return None;
        }
        let charset = content_type.as_deref().and_then(content_charset);
        let document = decode_body(head, charset, None).text;
        let options = ScanOptions { links: false, ..ScanOptions::links_only() };
        let scan = Scan::of(&document, &options);
        let refresh = scan.meta_refresh(&document)?;
        if refresh.delay >= self.max_delay || refresh.url.is_empty() {
            return None;
        }
        let base = scan.base_href(&document).and_then(|href| response.url.join(href).ok());
        let target = base.as_ref().unwrap_or(&response.url).join(refresh.url).ok()?;
        matches!(target.scheme(), "http" | "https").then_some(target)
    }
}

/// Whether the words of a meta refresh may be in these bytes, a cheap test before parsing, since hardly any page has
/// one; `q` is the rarest letter of those words.
fn may_refresh(head: &[u8]) -> bool {
    let is_equiv = |at: usize| {
        at >= 6 && head.get(at - 6..at + 4).is_some_and(|word| word.eq_ignore_ascii_case(b"http-equiv"))
    };
    memchr::memchr2_iter(b'q', b'Q', head).any(is_equiv)
        && head.windows(b"refresh".len()).any(|word| word.eq_ignore_ascii_case(b"refresh"))
}

/// Whether markup in this body appears as ASCII bytes; it does not in UTF-16.
fn is_ascii_like(head: &[u8]) -> bool {
    !head.starts_with(&[0xfe, 0xff])
        && !head.starts_with(&[0xff, 0xfe])
        && !head.iter().take(64).any(|byte| *byte == 0)
}

impl Component for MetaRefresh {
    const NAME: &'static str = "meta_refresh";
    type Settings = MetaRefreshSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.downloader(580)
    }
}

impl DownloaderMiddleware for MetaRefresh {
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        if !response.status.is_success()
            || request.method == Method::HEAD
            || request.meta_flag(meta::DONT_REDIRECT)
            || request.meta_flag(meta::DONT_METAREFRESH)
        {
            return Ok(OnResponse::Continue);
        }
        let Some(target) = self.target(response) else { return Ok(OnResponse::Continue) };
        let itself = request.url[..url::Position::AfterQuery] == target[..url::Position::AfterQuery];
        let step = Step { target, method: Method::GET, reason: "meta refresh".into(), response };
        Ok(match self.follower.next(request, step, cx) {
            Ok(next) => OnResponse::Reschedule(next),
            // News pages reload themselves: with the same cookies the same page would be returned.
            Err(reason) if itself && reason.reason == "redirect_loop" => OnResponse::Continue,
            Err(reason) => OnResponse::Drop(reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::CookiesChanged;
    use http::StatusCode;

    async fn respond(request: &Request, mut response: Response) -> OnResponse {
        let settings = Settings::default();
        let refresh = MetaRefresh::from_settings(&settings).unwrap().unwrap();
        refresh.process_response(request, &mut response, &Context::detached(settings)).await.unwrap()
    }

    async fn leads_to(html: impl Into<bytes::Bytes>) -> Option<String> {
        let request = Request::parse("http://h/dir/page").unwrap();
        match respond(&request, Response::html(request.url.clone(), html)).await {
            OnResponse::Reschedule(next) => Some(next.url.into()),
            OnResponse::Continue => None,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn only_a_near_and_quick_refresh_is_followed() {
        let meta = |content: &str| format!("<html><head><META http-equiv=\"Refresh\" content=\"{content}\">");
        for (html, to) in [
            (meta("3; url=next?a=1&amp;b=2"), Some("http://h/dir/next?a=1&b=2")),
            (meta("99.9;url='//g/x'"), Some("http://g/x")),
            (meta("100;url=next"), None),
            (meta("5"), None),
            (meta("0;url=mailto:a@b"), None),
            (meta("0;url=http://[x"), None),
            (format!("<noscript>{}</noscript>", meta("0;url=next")), None),
            (format!("<base href=/other/>{}", meta("0;url=next")), Some("http://h/other/next")),
            (format!("<!--{}-->{}", "x".repeat(4_096), meta("0;url=next")), None),
            ("<p>refresh".to_owned(), None),
            (meta("0;url=page#top"), None),
        ] {
            assert_eq!(leads_to(html.clone()).await.as_deref(), to, "{html}");
        }
    }

    #[tokio::test]
    async fn a_page_in_utf_16_is_read_too() {
        let html = "\u{feff}<meta http-equiv=refresh content='0;url=/x'>";
        let bytes: Vec<u8> = html.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let request = Request::parse("http://h/").unwrap();
        let mut response = Response::html(request.url.clone(), bytes);
        response.headers.insert("content-type", "text/html".parse().unwrap());
        assert!(matches!(respond(&request, response).await, OnResponse::Reschedule(_)));
    }

    #[tokio::test]
    async fn a_refresh_is_a_hop_by_get() {
        let post = Request::form(Url::parse("http://h/").unwrap(), [("k", "v")]);
        let html = "<meta http-equiv=refresh content='0;url=/x'>";
        let OnResponse::Reschedule(next) = respond(&post, Response::html(post.url.clone(), html)).await
        else {
            panic!("not followed")
        };
        assert_eq!((&next.method, next.body.len(), next.priority), (&Method::GET, 0, 2));
        assert_eq!(next.meta["redirect_reasons"], serde_json::json!(["meta refresh"]));
    }

    #[tokio::test]
    async fn a_page_that_reloads_itself_is_delivered_unless_it_set_a_cookie() {
        let request = Request::parse("http://h/").unwrap();
        let mut response = Response::html(request.url.clone(), "<meta http-equiv=refresh content='0;url=/'>");
        assert!(matches!(respond(&request, response.clone()).await, OnResponse::Continue));
        response.extensions.insert(CookiesChanged);
        assert!(matches!(respond(&request, response).await, OnResponse::Reschedule(_)));
    }

    #[tokio::test]
    async fn pages_that_send_to_each_other_are_a_loop() {
        let to = |request: &Request, path: &str| {
            Response::html(request.url.clone(), format!("<meta http-equiv=refresh content='0;url={path}'>"))
        };
        let first = Request::parse("http://h/a").unwrap();
        let OnResponse::Reschedule(second) = respond(&first, to(&first, "/b")).await else {
            panic!("not followed")
        };
        let OnResponse::Drop(reason) = respond(&second, to(&second, "/a")).await else { panic!("no loop") };
        assert_eq!(reason.reason, "redirect_loop");
        assert!(matches!(respond(&second, to(&second, "/b")).await, OnResponse::Continue));
    }

    #[tokio::test]
    async fn other_kinds_and_statuses_are_left_alone() {
        let request = Request::parse("http://h/").unwrap();
        let html = "<meta http-equiv=refresh content='0;url=/x'>";
        let mut plain = Response::html(request.url.clone(), html);
        plain.headers.insert("content-type", "text/plain".parse().unwrap());
        assert!(matches!(respond(&request, plain).await, OnResponse::Continue));
        let mut missing = Response::html(request.url.clone(), html);
        missing.status = StatusCode::NOT_FOUND;
        assert!(matches!(respond(&request, missing).await, OnResponse::Continue));
        let asked = Request::parse("http://h/").unwrap().with_meta(meta::DONT_REDIRECT, true);
        assert!(matches!(
            respond(&asked, Response::html(asked.url.clone(), html)).await,
            OnResponse::Continue
        ));
    }
}
