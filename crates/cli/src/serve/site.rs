//! Routes: from a request to what is answered.

use std::future::Future;

use http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Method, Uri};
use serde_json::Value;
use std::sync::Arc;

use super::api::{self, Call, Format};
use super::checker::{Checker, Done};
use super::gate::Gate;
use super::metrics::Telemetry;
use super::order::{CompareOrder, SearchOrder};
use super::pages;
use super::params::Params;
use super::refusal::Refusal;
use super::wiki::Wikis;
use crate::metrics::stats_text;

/// Nothing but the own style sheet and forms that lead here.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What is answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(HeaderName, &'static str)>,
    pub(crate) body: Vec<u8>,
}

/// The paths that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Index,
    Style,
    Compare,
    Check,
    Api,
    Metrics,
    Health,
    Unknown,
}

/// A request whose head was read.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

/// All that requests share; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) gate: Gate,
    pub(crate) checker: Checker,
    pub(crate) wikis: Arc<Wikis>,
    pub(crate) telemetry: Arc<Telemetry>,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/" => Self::Index,
            "/style.css" => Self::Style,
            "/compare" => Self::Compare,
            "/check" => Self::Check,
            "/api" | "/api.json" => Self::Api,
            "/metrics" => Self::Metrics,
            "/healthz" => Self::Health,
            _ => Self::Unknown,
        }
    }

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Style => "style",
            Self::Compare => "compare",
            Self::Check => "check",
            Self::Api => "api",
            Self::Metrics => "metrics",
            Self::Health => "health",
            Self::Unknown => "unknown",
        }
    }

    fn methods(self) -> &'static str {
        match self {
            Self::Compare | Self::Check => "POST",
            Self::Api => "GET, HEAD, POST, OPTIONS",
            _ => "GET, HEAD",
        }
    }
}

impl Answer {
    fn new(status: u16, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![(CONTENT_TYPE, content_type)], body: body.into() }
    }

    /// A line for people.
    pub(crate) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body)
    }

    fn page(status: u16, body: String) -> Self {
        Self::new(status, "text/html; charset=utf-8", body).with(CONTENT_SECURITY_POLICY, POLICY)
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// What goes with every answer.
    pub(crate) fn closed(self) -> Self {
        // With `no-referrer` browsers would say `Origin: null` where a form leads to its own site.
        self.with(HeaderName::from_static("referrer-policy"), "same-origin")
            .with(HeaderName::from_static("x-content-type-options"), "nosniff")
            .with(CACHE_CONTROL, "no-store")
    }
}

impl Service {
    /// What is answered without reading a body, or nothing if it must be read.
    pub(crate) fn before_body(&self, asked: &Asked) -> Option<Answer> {
        let route = Route::of(asked.uri.path());
        if !self.gate.is_meant(&asked.uri, &asked.headers) {
            return Some(Answer::text(421, "this server answers to localhost and its own address only\n"));
        }
        if route == Route::Unknown {
            return Some(Answer::text(404, "there is /, /api.json, /metrics and /healthz\n"));
        }
        if !route.methods().split(", ").any(|method| method == asked.method.as_str()) {
            return Some(Answer::text(405, "not with this method\n").with(ALLOW, route.methods()));
        }
        if route == Route::Api && asked.method == Method::OPTIONS {
            return Some(
                allow_others(Answer::text(204, ""))
                    .with(ACCESS_CONTROL_ALLOW_METHODS, "GET, POST")
                    .with(ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
            );
        }
        let is_form = matches!(route, Route::Compare | Route::Check);
        if is_form && Gate::is_cross_origin(&asked.headers) {
            return Some(Answer::text(403, "forms of other sites do not lead here\n"));
        }
        if route == Route::Metrics && !self.gate.admits_header(&asked.headers) {
            return Some(unauthorized(Answer::text(401, "metrics are told to who has the token\n")));
        }
        None
    }

    /// Answers. A panic costs this request only.
    pub(crate) async fn answer(&self, asked: Asked, body: Vec<u8>) -> Answer {
        let service = self.clone();
        let route = Route::of(asked.uri.path());
        let answering = async move { service.answer_route(route, &asked, &body).await };
        match guarded(answering).await {
            Ok(answer) => answer,
            Err(refusal) if route == Route::Api => api_answer(Format::Json, &Err(refusal)),
            Err(refusal) => Answer::text(500, format!("{refusal}\n")),
        }
    }

    async fn answer_route(&self, route: Route, asked: &Asked, body: &[u8]) -> Answer {
        match route {
            Route::Index => Answer::page(200, pages::index(self.gate.has_token())),
            Route::Style => Answer::new(200, "text/css; charset=utf-8", pages::style()),
            Route::Health => Answer::text(200, "ok\n"),
            Route::Metrics => {
                let stats = self.checker.workspace().handle().stats().snapshot();
                let text = self.telemetry.text(self.checker.load()) + &stats_text(&stats);
                Answer::new(200, "text/plain; version=0.0.4; charset=utf-8", text)
            }
            Route::Api => self.api(asked, body).await,
            Route::Compare | Route::Check => self.form(route == Route::Check, asked, body).await,
            Route::Unknown => Answer::text(404, ""),
        }
    }

    async fn api(&self, asked: &Asked, body: &[u8]) -> Answer {
        let params = match params(asked, body) {
            Ok(params) => params,
            Err(refusal) => return api_answer(Format::Json, &Err(refusal)),
        };
        let (format, result) = match Format::read(&params) {
            Ok(format) => (format, self.api_result(asked, &params).await),
            Err(refusal) => (Format::Json, Err(refusal)),
        };
        api_answer(format, &result)
    }

    async fn api_result(&self, asked: &Asked, params: &Params) -> Result<Value, Refusal> {
        let call = Call::read(params)?;
        if call != Call::Sites {
            // Whatever the operator lets this server reach, any page that is open in a browser of this machine could read otherwise.
            if !self.gate.has_token() && Gate::is_cross_origin(&asked.headers) {
                return Err(Refusal::new(
                    "cross_origin",
                    "pages of other sites may use this server only with a token (--token), in the header Authorization: Bearer",
                ));
            }
            self.admit(asked, params)?;
        }
        call.answer(params, &self.checker, &self.wikis).await
    }

    fn admit(&self, asked: &Asked, params: &Params) -> Result<(), Refusal> {
        let in_body = params.get("token").filter(|_| asked.method == Method::POST);
        if self.gate.admits_header(&asked.headers) || self.gate.admits(in_body) {
            return Ok(());
        }
        Err(Refusal::new(
            "not_logged_in",
            "the token of this server is needed: Authorization: Bearer TOKEN, or the field 'token' of a form",
        ))
    }

    async fn form(&self, is_check: bool, asked: &Asked, body: &[u8]) -> Answer {
        let params = match params(asked, body) {
            Ok(params) => params,
            Err(refusal) => return self.refused(&refusal, &Params::default(), is_check),
        };
        let done = self.form_result(is_check, asked, &params).await;
        match done {
            Ok(done) => {
                let page = tokio::task::spawn_blocking(move || pages::result(&done, is_check)).await;
                match page {
                    Ok(page) => Answer::page(200, page),
                    Err(ended) => self.refused(&Refusal::of_task(ended), &params, is_check),
                }
            }
            Err(refusal) => self.refused(&refusal, &params, is_check),
        }
    }

    async fn form_result(&self, is_check: bool, asked: &Asked, params: &Params) -> Result<Done, Refusal> {
        self.admit(asked, params)?;
        let params = params.of_form(is_check);
        if is_check {
            self.checker.search(SearchOrder::read(&params, &self.wikis)?, true).await
        } else {
            self.checker.compare(CompareOrder::read(&params, &self.wikis)?).await
        }
    }

    fn refused(&self, refusal: &Refusal, params: &Params, is_check: bool) -> Answer {
        let status = match refusal.status() {
            200 => 422,
            status => status,
        };
        let answer = Answer::page(status, pages::refused(refusal, params, is_check, self.gate.has_token()));
        if status == 401 { unauthorized(answer) } else { answer }
    }
}

fn params(asked: &Asked, body: &[u8]) -> Result<Params, Refusal> {
    let content_type = asked.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    Params::read(asked.uri.query().unwrap_or(""), content_type, body)
}

fn api_answer(format: Format, result: &Result<Value, Refusal>) -> Answer {
    let (status, value) = match result {
        Ok(value) => (200, value.clone()),
        Err(refusal) => (refusal.status(), api::error(refusal)),
    };
    let answer = match format {
        Format::Json => Answer::new(status, "application/json; charset=utf-8", value.to_string()),
        Format::Page => Answer::page(status, pages::json(&format!("{value:#}"))),
    };
    let answer = allow_others(answer);
    match status {
        401 => unauthorized(answer),
        503 => answer.with(RETRY_AFTER, "30"),
        _ => answer,
    }
}

fn allow_others(answer: Answer) -> Answer {
    answer.with(ACCESS_CONTROL_ALLOW_ORIGIN, "*")
}

fn unauthorized(answer: Answer) -> Answer {
    answer.with(WWW_AUTHENTICATE, "Bearer")
}

/// Does work on a task of its own, which ends when nobody waits for it any more.
///
/// # Errors
/// It panicked.
async fn guarded<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Result<T, Refusal> {
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(work);
    match tasks.join_next().await {
        Some(Ok(done)) => Ok(done),
        Some(Err(ended)) => Err(Refusal::of_task(ended)),
        None => Err(Refusal::unhandled("there was no answer")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_costs_one_request() {
        let refusal = guarded(async { panic!("a bug") }).await.unwrap_err();
        assert_eq!(refusal.code, "unhandled_exception");
        assert_eq!(refusal.info, "its task panicked", "what a panic says is not for clients");
        let answer = api_answer(Format::Json, &Err(refusal));
        assert_eq!(answer.status, 200);
        assert_eq!(guarded(async { 7 }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_for_which_nobody_waits_any_more_ends() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let work = guarded(async move {
            let _sender = sender;
            std::future::pending::<()>().await;
        });
        let mut work = Box::pin(work);
        tokio::select! {
            _ = &mut work => panic!("it never ends"),
            () = tokio::task::yield_now() => {}
        }
        drop(work);
        assert!(receiver.await.is_err());
    }
}
