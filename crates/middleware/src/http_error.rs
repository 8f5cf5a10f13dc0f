//! HttpError: keeps responses without a success status from the callback.

use huntsman_crawler::{
    Component, Context, DropReason, Hooks, OnPage, Page, Result, Settings, SpiderMiddleware, meta, settings,
};

use crate::status;

settings! {
    /// Settings of [`HttpError`].
    pub struct HttpErrorSettings {
        /// Status codes besides 2xx whose responses reach the callback.
        httperror_allowed_codes: Vec<u16> = Vec::new();
        /// Responses of every status reach the callback.
        httperror_allow_all: bool = false;
    }
}

/// Fails pages whose status is not 2xx with reason `http_status`: the spider's `failed` is called, not `parse`.
///
/// The request's meta `handle_httpstatus_list` or `handle_httpstatus_all`, and the settings `httperror_allowed_codes`
/// and `httperror_allow_all`, let other statuses through.
#[derive(Debug)]
pub struct HttpError {
    allowed: Vec<u16>,
}

impl HttpError {
    /// Creates the component from the settings; `None` if `httperror_allow_all` is set.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: HttpErrorSettings = settings.of()?;
        let allowed = own.httperror_allowed_codes.clone();
        Ok((!own.httperror_allow_all).then_some(Self { allowed }))
    }
}

impl Component for HttpError {
    const NAME: &'static str = "http_error";
    type Settings = HttpErrorSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(50)
    }
}

impl SpiderMiddleware for HttpError {
    fn process_page(&self, page: &mut Page, cx: &Context) -> Result<OnPage> {
        let status = page.response().status;
        // Incremental hands this 304 to the callback on purpose.
        if status.is_success() || page.response().has_flag("not_modified") {
            return Ok(OnPage::Parse);
        }
        // As in Scrapy, the list of the request replaces the one of the settings.
        let allowed = if page.request().has_meta(meta::HANDLE_HTTPSTATUS_LIST) {
            status::is_handled(page.request(), status)
        } else {
            self.allowed.contains(&status.as_u16()) || status::is_handled(page.request(), status)
        };
        if allowed {
            return Ok(OnPage::Parse);
        }
        cx.stats().inc("httperror/response_ignored_count");
        cx.stats().inc(&format!("httperror/response_ignored_status_count/{}", status.as_u16()));
        Ok(OnPage::Skip(DropReason::failed("http_status").status(status)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use huntsman_crawler::{DropState, Request, Response};
    use serde_json::json;

    fn decide(settings: &Settings, request: Request, status: u16) -> (OnPage, Context) {
        let cx = Context::detached(settings.clone());
        let response = Response::new(request.url.clone(), StatusCode::from_u16(status).unwrap(), "");
        let middleware = HttpError::from_settings(settings).unwrap().unwrap();
        (middleware.process_page(&mut Page::new(request, response), &cx).unwrap(), cx)
    }

    fn request() -> Request {
        Request::parse("http://h/").unwrap()
    }

    #[test]
    fn only_2xx_reaches_the_callback() {
        for status in [200, 204, 299] {
            assert!(matches!(decide(&Settings::default(), request(), status).0, OnPage::Parse), "{status}");
        }
        for status in [301, 304, 404, 500, 599] {
            let (decision, cx) = decide(&Settings::default(), request(), status);
            let OnPage::Skip(reason) = decision else { panic!("{status} was parsed") };
            assert_eq!((reason.reason.as_ref(), reason.state), ("http_status", DropState::Failed));
            assert_eq!(reason.status.unwrap().as_u16(), status);
            assert_eq!(cx.stats().get("httperror/response_ignored_count"), 1);
            assert_eq!(cx.stats().get(&format!("httperror/response_ignored_status_count/{status}")), 1);
        }
    }

    #[test]
    fn the_request_and_the_settings_can_ask_for_a_status() {
        let mut settings = Settings::default();
        settings.change(|own: &mut HttpErrorSettings| own.httperror_allowed_codes = vec![404]);
        assert!(matches!(decide(&settings, request(), 404).0, OnPage::Parse));
        let listed = || request().meta("handle_httpstatus_list", json!([500]));
        assert!(matches!(decide(&settings, listed(), 500).0, OnPage::Parse));
        assert!(matches!(decide(&settings, listed(), 404).0, OnPage::Skip(_)));
        let all = request().with_meta(meta::HANDLE_HTTPSTATUS_ALL, true);
        assert!(matches!(decide(&Settings::default(), all, 503).0, OnPage::Parse));
        settings.change(|own: &mut HttpErrorSettings| own.httperror_allow_all = true);
        assert!(HttpError::from_settings(&settings).unwrap().is_none());
    }
}
