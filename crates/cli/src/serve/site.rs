//! Routes: from a request to what is answered.

use std::future::Future;

use http::Method;
use http::header::{ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use std::sync::Arc;

use super::api::{self, Call, Format, Told};
use super::checker::{Checker, Done};
use super::gate::Gate;
use super::metrics::{Connection, Telemetry};
use super::order::{CompareOrder, MOST_TEXT, SearchOrder};
use super::pages;
use super::params::Params;
use super::refusal::Refusal;
use super::wiki::Wikis;
use crate::metrics::stats_text;
use crate::server::{Answer, Asked, Names, Site, Visit};

/// Nothing but the own style sheet and forms that lead here.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Two texts in the form in which a byte takes three.
const MOST_BODY: usize = 2 * 3 * MOST_TEXT + (1 << 20);

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

    /// Whether what it does costs more than the answer.
    fn does_orders(self) -> bool {
        matches!(self, Self::Api | Self::Compare | Self::Check)
    }

    fn methods(self) -> &'static str {
        match self {
            Self::Compare | Self::Check => "POST",
            Self::Api => "GET, HEAD, POST, OPTIONS",
            _ => "GET, HEAD",
        }
    }
}

/// A page under the policy.
fn page(status: u16, body: String) -> Answer {
    Answer::new(status, "text/html; charset=utf-8", body).with(CONTENT_SECURITY_POLICY, POLICY)
}

/// With what goes with every answer.
fn closed(answer: Answer) -> Answer {
    // With `no-referrer` browsers would say `Origin: null` where a form leads to its own site.
    answer
        .with(HeaderName::from_static("referrer-policy"), "same-origin")
        .with(HeaderName::from_static("x-content-type-options"), "nosniff")
        .with(CACHE_CONTROL, "no-store")
}

impl Site for Service {
    type Connection = Connection;

    fn connection(&self) -> Connection {
        self.telemetry.connection()
    }

    async fn answer(&self, asked: Asked, visit: &mut Visit) -> Answer {
        let route = Route::of(asked.path());
        let answer = match self.admitted(route, &asked, visit).await {
            Ok(body) => self.answer_guarded(route, asked, body).await,
            Err(answer) => answer,
        };
        self.telemetry.answered(route.name(), answer.status);
        closed(answer)
    }
}

impl Service {
    /// The body of a request that may be answered. Its head decides whether any of it is read, and the request has its place from then on,
    /// if it has the token; one without, which may only be a form, has it as soon as its token is there.
    ///
    /// # Errors
    /// What is answered without reading the body, or since it cannot be had.
    async fn admitted(&self, route: Route, asked: &Asked, visit: &mut Visit) -> Result<Vec<u8>, Answer> {
        if let Some(answer) = self.before_body(route, asked, visit.has_body()) {
            return Err(answer);
        }
        let is_known = self.gate.has_token() && self.gate.admits_header(&asked.headers);
        if is_known {
            visit.let_in()?;
        }
        if !route.does_orders() {
            return Ok(Vec::new());
        }
        let body = visit.body(MOST_BODY).await?;
        if !is_known && (!self.gate.has_token() || self.is_form_with_token(asked, &body)) {
            visit.let_in()?;
        }
        Ok(body)
    }

    fn is_form_with_token(&self, asked: &Asked, body: &[u8]) -> bool {
        let params = params(asked, body);
        params.is_ok_and(|params| self.gate.admits(params.get("token")))
    }

    /// What is answered without reading a body, or nothing if it must be read.
    fn before_body(&self, route: Route, asked: &Asked, has_body: bool) -> Option<Answer> {
        if !self.gate.is_meant(&asked.uri, &asked.headers) {
            return Some(Answer::text(421, Names::OTHERS));
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
        if matches!(route, Route::Compare | Route::Check) && Gate::is_cross_origin(&asked.headers) {
            return Some(Answer::text(403, "forms of other sites do not lead here\n"));
        }
        if self.gate.admits_header(&asked.headers) {
            return None;
        }
        match route {
            Route::Metrics => {
                Some(unauthorized(Answer::text(401, "metrics are told to who has the token\n")))
            }
            Route::Api if has_body && !Params::is_form(content_type(asked)) => {
                Some(api_answer(Format::Json, Err(not_logged_in())))
            }
            Route::Compare | Route::Check if !Params::is_form(content_type(asked)) => {
                Some(self.refused(&not_logged_in(), &Params::default(), route == Route::Check))
            }
            _ => None,
        }
    }

    /// Answers. A panic costs this request only.
    async fn answer_guarded(&self, route: Route, asked: Asked, body: Vec<u8>) -> Answer {
        let service = self.clone();
        let answering = async move { service.answer_route(route, asked, body).await };
        match guarded(answering).await {
            Ok(answer) => answer,
            Err(refusal) if route == Route::Api => api_answer(Format::Json, Err(refusal)),
            Err(refusal) => Answer::text(500, format!("{refusal}\n")),
        }
    }

    async fn answer_route(&self, route: Route, asked: Asked, body: Vec<u8>) -> Answer {
        match route {
            Route::Index => page(200, pages::index(self.gate.has_token())),
            Route::Style => Answer::new(200, "text/css; charset=utf-8", pages::style()),
            Route::Health => Answer::text(200, "ok\n"),
            Route::Metrics => {
                let stats = self.checker.workspace().handle().stats().snapshot();
                let text = self.telemetry.text(self.checker.load()) + &stats_text(&stats);
                Answer::metrics(text)
            }
            Route::Api => self.api(asked, body).await,
            Route::Compare | Route::Check => self.form(route == Route::Check, asked, body).await,
            Route::Unknown => Answer::text(404, ""),
        }
    }

    async fn api(&self, asked: Asked, body: Vec<u8>) -> Answer {
        let params = params(&asked, &body);
        drop(body);
        let params = match params {
            Ok(params) => params,
            Err(refusal) => return api_answer(Format::Json, Err(refusal)),
        };
        let (format, result) = match Format::read(&params) {
            Ok(format) => (format, self.api_result(&asked, params).await),
            Err(refusal) => (Format::Json, Err(refusal)),
        };
        let told = tokio::task::spawn_blocking(move || api_answer(format, result)).await;
        told.unwrap_or_else(|ended| api_answer(Format::Json, Err(Refusal::of_task(ended))))
    }

    async fn api_result(&self, asked: &Asked, params: Params) -> Result<Told, Refusal> {
        let call = Call::read(&params)?;
        if call != Call::Sites {
            // Whatever the operator lets this server reach, any page that is open in a browser of this machine could read otherwise.
            if !self.gate.has_token() && Gate::is_cross_origin(&asked.headers) {
                return Err(Refusal::new(
                    "cross_origin",
                    "pages of other sites may use this server only with a token (--token), in the header Authorization: Bearer",
                ));
            }
            self.admit(asked, &params)?;
        }
        call.answer(params, &self.checker, &self.wikis).await
    }

    fn admit(&self, asked: &Asked, params: &Params) -> Result<(), Refusal> {
        let in_body = params.get("token").filter(|_| asked.method == Method::POST);
        if self.gate.admits_header(&asked.headers) || self.gate.admits(in_body) {
            return Ok(());
        }
        Err(not_logged_in())
    }

    async fn form(&self, is_check: bool, asked: Asked, body: Vec<u8>) -> Answer {
        let params = params(&asked, &body);
        drop(body);
        let params = match params {
            Ok(params) => params,
            Err(refusal) => return self.refused(&refusal, &Params::default(), is_check),
        };
        let done = self.form_result(is_check, &asked, &params).await;
        match done {
            Ok(done) => {
                let result = tokio::task::spawn_blocking(move || pages::result(&done, is_check)).await;
                match result {
                    Ok(result) => page(200, result),
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
        let answer = page(status, pages::refused(refusal, params, is_check, self.gate.has_token()));
        with_hint(status, answer)
    }
}

fn content_type(asked: &Asked) -> Option<&str> {
    asked.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
}

fn params(asked: &Asked, body: &[u8]) -> Result<Params, Refusal> {
    Params::read(asked.uri.query().unwrap_or(""), content_type(asked), body)
}

fn not_logged_in() -> Refusal {
    Refusal::new(
        "not_logged_in",
        "the token of this server is needed: Authorization: Bearer TOKEN, or the field 'token' of a form",
    )
}

fn api_answer(format: Format, result: Result<Told, Refusal>) -> Answer {
    let (status, told) = match result {
        Ok(told) => (200, told),
        Err(refusal) => (refusal.status(), Told::from(api::error(&refusal))),
    };
    let value = &told.value;
    let answer = match format {
        Format::Json => Answer::new(status, "application/json; charset=utf-8", value.to_string()),
        Format::Page => page(status, pages::json(&format!("{value:#}"))),
    };
    with_hint(status, allow_others(answer))
}

/// Says what to do about a refusal.
fn with_hint(status: u16, answer: Answer) -> Answer {
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
        let answer = api_answer(Format::Json, Err(refusal));
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
