//! The routes of the server: they turn requests into responses.

use std::future::Future;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use huntsman_sweep::service::{Checker, OrderResult, Refusal, Wikis};
use maud::Markup;

use super::api::{self, ApiResponse, Call, Format};
use super::metrics::{Action, Telemetry};
use super::params::Params;
use super::question::{Question, QuestionError};
use super::{order, pages};
use crate::access::Access;
use crate::metrics::stats_families;
use crate::server::ActiveRequest;

/// The content security policy: pages may use only the server's own style sheet and forms that post to this server.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A server of copyvio checks, without its connections: the state that all requests share, and the routes. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) access: Access,
    pub(crate) checker: Checker,
    pub(crate) wikis: Arc<Wikis>,
    pub(crate) telemetry: Arc<Telemetry>,
}

/// The kind of a form on the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Compare,
    Check,
}

fn form_of(form: Form) -> MethodRouter<Service> {
    post(answer_form).route_layer(from_fn(refuse_other_sites)).route_layer(Extension(form))
}

/// The name of a route in the metrics.
fn name_of(path: Option<&MatchedPath>) -> &'static str {
    match path.map(MatchedPath::as_str) {
        Some("/") => "index",
        Some("/style.css") => "style",
        Some("/compare") => "compare",
        Some("/check") => "check",
        Some("/api" | "/api.json") => "api",
        Some("/metrics") => "metrics",
        Some("/healthz") => "health",
        _ => "unknown",
    }
}

async fn count(
    State(service): State<Service>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    service.telemetry.answered(name_of(path.as_ref()), response.status().as_u16());
    response
}

/// Adds the headers that every response has.
async fn add_common_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        // With `no-referrer`, browsers would send `Origin: null` for a form of the same site.
        (HeaderName::from_static("referrer-policy"), "same-origin"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// If the token is in the headers, the connection keeps its place from the beginning of the request.
async fn admit_by_token(
    State(service): State<Service>,
    visit: ActiveRequest,
    request: Request,
    next: Next,
) -> Response {
    if service.access.has_token()
        && service.access.admits_header(request.headers())
        && let Err(busy) = visit.let_in()
    {
        return busy.into_response();
    }
    next.run(request).await
}

/// Handles the request on a task of its own, so that a panic fails this request only.
async fn survive_panics(path: Option<MatchedPath>, request: Request, next: Next) -> Response {
    match run_as_task(next.run(request)).await {
        Ok(response) => response,
        Err(refusal) if name_of(path.as_ref()) == "api" => api_response(Format::Json, Err(refusal)),
        Err(refusal) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{refusal}\n")).into_response(),
    }
}

async fn refuse_other_sites(request: Request, next: Next) -> Response {
    if Access::is_cross_origin(request.headers()) {
        return (StatusCode::FORBIDDEN, "forms of other sites do not lead here\n").into_response();
    }
    next.run(request).await
}

async fn index(State(service): State<Service>) -> Response {
    page(StatusCode::OK, pages::index(service.access.has_token()))
}

async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8")], pages::style())
}

async fn metrics(State(service): State<Service>, visit: ActiveRequest, headers: HeaderMap) -> Response {
    if !service.access.admits_header(&headers) {
        let text = "metrics are told to callers that have the token\n";
        return with_hint((StatusCode::UNAUTHORIZED, text).into_response());
    }
    let mut families = service.telemetry.families(service.checker.load(), visit.connections());
    families.extend(stats_families(&service.checker.workspace().handle().stats().snapshot()));
    ([(CONTENT_TYPE, huntsman_metrics::CONTENT_TYPE)], families.text()).into_response()
}

/// Tells browsers that pages of other sites may call the API.
async fn preflight() -> impl IntoResponse {
    let allowed = [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
    ];
    (StatusCode::NO_CONTENT, allowed)
}

async fn api(State(service): State<Service>, question: Question) -> Response {
    let (format, result) = match Format::read(&question.params) {
        Ok(format) => (format, service.call(question).await),
        Err(refusal) => (Format::Json, Err(refusal)),
    };
    let response = tokio::task::spawn_blocking(move || api_response(format, result)).await;
    response.unwrap_or_else(|ended| api_response(Format::Json, Err(Refusal::of_task(ended))))
}

async fn answer_form(
    State(service): State<Service>,
    Extension(form): Extension<Form>,
    question: Result<Question, QuestionError>,
) -> Response {
    let question = match question {
        Ok(question) => question,
        Err(QuestionError::Refused(refusal)) => return service.refused(form, &refusal, &Params::default()),
        Err(rejected) => return rejected.into_response(),
    };
    let shown = match service.submit(form, &question).await {
        Ok(result) => {
            let markup = move || pages::result(&result, form == Form::Check);
            tokio::task::spawn_blocking(markup).await.map_err(Refusal::of_task)
        }
        Err(refusal) => Err(refusal),
    };
    match shown {
        Ok(result) => page(StatusCode::OK, result),
        Err(refusal) => service.refused(form, &refusal, &question.params),
    }
}

/// The response of the API; forms answer with a page instead.
impl IntoResponse for QuestionError {
    fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => api_response(Format::Json, Err(refusal)),
            Self::Rejected(rejection) => rejection.into_response(),
        }
    }
}

impl Service {
    /// A service for the requests that `access` allows. `checker` carries out the orders, and `wikis` are the wikis
    /// whose pages a request may name as its article.
    pub fn new(access: Access, checker: Checker, wikis: Wikis) -> Self {
        Self { access, checker, wikis: Arc::new(wikis), telemetry: Arc::default() }
    }

    /// The routes of the service, which [`serve`](crate::serve) puts on connections: `/` and the forms `/compare` and
    /// `/check`, the API at `/api` and `/api.json`, `/metrics` and `/healthz`.
    pub fn routes(self) -> Router {
        // The last layer is the outermost one: a request is first counted, then the name of its host is checked, then
        // its token.
        let names = self.access.names();
        let api = get(api).post(api).options(preflight);
        let routes = Router::new()
            .route("/", get(index))
            .route("/style.css", get(style))
            .route("/compare", form_of(Form::Compare))
            .route("/check", form_of(Form::Check))
            .route("/api", api.clone())
            .route("/api.json", api)
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .fallback(async || (StatusCode::NOT_FOUND, "there is /, /api.json, /metrics and /healthz\n"))
            .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, "not with this method\n"))
            .layer(from_fn(survive_panics))
            .layer(from_fn_with_state(self.clone(), admit_by_token))
            .with_state(self.clone());
        names.guard(routes).layer(from_fn(add_common_headers)).layer(from_fn_with_state(self, count))
    }

    async fn call(&self, question: Question) -> Result<ApiResponse, Refusal> {
        let call = Call::read(&question.params)?;
        if call != Call::Sites {
            // Otherwise any page that is open in a browser on this machine could read everything that the operator
            // lets this server reach.
            if !self.access.has_token() && question.is_cross_origin {
                return Err(Refusal::new(
                    "cross_origin",
                    "pages of other sites may use this server only with a token in the header Authorization: Bearer",
                ));
            }
            if !question.has_token {
                return Err(not_logged_in());
            }
        }
        call.answer(question.params, self).await
    }

    async fn submit(&self, form: Form, question: &Question) -> Result<OrderResult, Refusal> {
        if !question.has_token {
            return Err(not_logged_in());
        }
        let params = question.params.of_form(form == Form::Check);
        match form {
            Form::Check => {
                let order = order::search(&params, &self.wikis)?;
                self.telemetry.observe(Action::Search, self.checker.search(order, true)).await
            }
            Form::Compare => {
                let order = order::compare(&params, &self.wikis)?;
                self.telemetry.observe(Action::Compare, self.checker.compare(order)).await
            }
        }
    }

    fn refused(&self, form: Form, refusal: &Refusal, params: &Params) -> Response {
        let status = match status(refusal) {
            StatusCode::OK => StatusCode::UNPROCESSABLE_ENTITY,
            status => status,
        };
        let markup = pages::refused(refusal, params, form == Form::Check, self.access.has_token());
        with_hint(page(status, markup))
    }
}

/// The client did not send the token.
pub(super) fn not_logged_in() -> Refusal {
    Refusal::new(
        "not_logged_in",
        "the token of this server is needed: Authorization: Bearer TOKEN, or the field 'token' of a form",
    )
}

/// The HTTP status of a refusal. As in the reference it is 200 for all errors in the question; if the client must retry
/// later or is not let in, the status says so as well, for proxies in between.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal.code {
        "busy" => StatusCode::SERVICE_UNAVAILABLE,
        "not_logged_in" => StatusCode::UNAUTHORIZED,
        "cross_origin" => StatusCode::FORBIDDEN,
        _ => StatusCode::OK,
    }
}

/// A page with the content security policy.
fn page(status: StatusCode, markup: Markup) -> Response {
    (status, [(CONTENT_SECURITY_POLICY, POLICY)], Html(markup.into_string())).into_response()
}

fn api_response(format: Format, result: Result<ApiResponse, Refusal>) -> Response {
    let (status, body) = match result {
        Ok(body) => (StatusCode::OK, body),
        Err(refusal) => (status(&refusal), ApiResponse::from(api::error(&refusal))),
    };
    let value = &body.value;
    let response = match format {
        Format::Json => {
            (status, [(CONTENT_TYPE, "application/json; charset=utf-8")], value.to_string()).into_response()
        }
        Format::Page => page(status, pages::json(&format!("{value:#}"))),
    };
    with_hint(([(ACCESS_CONTROL_ALLOW_ORIGIN, "*")], response).into_response())
}

/// Adds advice for the client to a refusal.
fn with_hint(mut response: Response) -> Response {
    let hint = match response.status() {
        StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, "Bearer")),
        StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, "30")),
        _ => None,
    };
    response.headers_mut().extend(hint.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// Runs work on a task of its own, which is aborted if the caller stops waiting.
///
/// # Errors
/// The work panicked.
async fn run_as_task<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refusal> {
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
        let refusal = run_as_task(async { panic!("a bug") }).await.unwrap_err();
        assert_eq!(refusal.code, "unhandled_exception");
        assert_eq!(refusal.info, "its task panicked", "what a panic says is not for clients");
        assert_eq!(api_response(Format::Json, Err(refusal)).status(), StatusCode::OK);
        assert_eq!(run_as_task(async { 7 }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn work_ends_when_its_caller_stops_waiting() {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let work = run_as_task(async move {
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
