//! A server for one user of this machine: it listens on loopback, and requests need a token that only this user can read.
//!
//! Address and a random token are in a file with mode 0600 ([`LocalServer::publish`]), where [`LocalClient`] finds them. Every request of
//! the API needs the token. A page in a browser cannot read that file, so it is opened by a link with a code that is good for one use
//! within five minutes; the page exchanges the code for a token of its own, which it keeps until its tab is closed.
//!
//! The code is in the fragment of the link, which browsers send to no server. A cookie would be simpler, but cookies do not know
//! ports: the browser would send it to every other server on this machine, and pages of these could use it.
//!
//! Requests for other host names get 421, requests that a browser sends for pages of other sites get 403, and without a token there is
//! 401. There is no way to let other machines in; a tunnel of ssh does so without a password in the clear.

mod client;
mod page;
mod sessions;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::access::Access;
use crate::server::{ActiveRequest, HostNames, Limits, serve};

pub use client::{ClientError, LocalClient};
pub use page::LocalPage;

use sessions::Sessions;

/// Most bytes of the body of a request.
pub const MAX_BODY: usize = 64 << 10;

/// A server that is bound and not yet serving.
#[derive(Debug)]
pub struct LocalServer {
    listener: TcpListener,
    guard: Guard,
    published: Option<Published>,
}

/// The content of the file with address and token.
#[derive(Debug, Serialize, Deserialize)]
struct Contact {
    address: SocketAddr,
    token: String,
    pid: u32,
}

/// The file with address and token. It is removed when the server ends, unless it is another one's by then.
#[derive(Debug)]
struct Published {
    path: PathBuf,
    content: Vec<u8>,
}

impl Drop for Published {
    fn drop(&mut self) {
        if std::fs::read(&self.path).is_ok_and(|found| found == self.content) {
            // A file that stays is harmless: its token opens nothing any more.
            let _ = huntsman_files::remove_file(&self.path);
        }
    }
}

/// Whether a request may be answered.
#[derive(Clone, Debug)]
struct Guard {
    access: Access,
    address: SocketAddr,
    token: String,
    sessions: Sessions,
}

impl LocalServer {
    /// Binds a port of 127.0.0.1; 0 lets the system choose one.
    ///
    /// # Errors
    /// The port is taken, or is reserved.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let token = sessions::random_token();
        let access = Access::new(address, Some(token.clone())).map_err(io::Error::other)?;
        let guard = Guard { access, address, token, sessions: Sessions::default() };
        Ok(Self { listener, guard, published: None })
    }

    /// The bound address, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.guard.address
    }

    /// Writes address and token into a file that only its owner can read. It is removed when the server ends.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&mut self, path: &Path) -> io::Result<()> {
        let contact =
            Contact { address: self.address(), token: self.guard.token.clone(), pid: std::process::id() };
        let content = serde_json::to_vec(&contact)?;
        huntsman_files::write(path, &content)?;
        // A file that was there before keeps its mode otherwise.
        huntsman_files::make_private(path)?;
        self.published = Some(Published { path: path.to_owned(), content });
        Ok(())
    }

    /// Serves an API below `/api` and a page at `/`, until the value of `stop` is true or the future is dropped. The paths of the routes
    /// are those after `/api`. `/api/link` gives a link that opens the page.
    pub async fn serve(self, api: Router, page: LocalPage, stop: watch::Receiver<bool>) {
        // The file lasts as long as this future.
        let Self { listener, guard, published: _published } = self;
        serve(listener, guard.protect(api, page), Limits::default(), stop).await;
    }
}

impl Guard {
    /// The routes with all layers. The last layer is the outermost one.
    fn protect(self, api: Router, page: LocalPage) -> Router {
        let api = api
            .route("/link", post(link).with_state(self.clone()))
            .fallback(async || ApiError::new(StatusCode::NOT_FOUND, "there is no such thing in the API"))
            .method_not_allowed_fallback(async || {
                ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "not with this method")
            })
            .layer(from_fn_with_state(self.clone(), admit));
        let session = post(session).with_state(self.clone()).layer(from_fn(refuse_other_sites));
        let routes = page.routes().route("/session", session).nest("/api", api);
        let routes = routes.fallback(async || (StatusCode::NOT_FOUND, "there is / and /api\n"));
        HostNames::of(self.address).guard(routes).layer(from_fn(add_common_headers))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let bearer = Access::bearer(headers);
        self.access.admits(bearer) || bearer.is_some_and(|token| self.sessions.admits(token))
    }
}

async fn admit(State(guard): State<Guard>, visit: ActiveRequest, request: Request, next: Next) -> Response {
    if Access::is_cross_origin(request.headers()) {
        return other_site();
    }
    if !guard.admits(request.headers()) {
        let error =
            ApiError::new(StatusCode::UNAUTHORIZED, "the token is needed: Authorization: Bearer TOKEN");
        return ([(WWW_AUTHENTICATE, "Bearer")], error).into_response();
    }
    match visit.let_in() {
        Ok(()) => next.run(request).await,
        Err(busy) => busy.into_response(),
    }
}

async fn refuse_other_sites(request: Request, next: Next) -> Response {
    if Access::is_cross_origin(request.headers()) { other_site() } else { next.run(request).await }
}

fn other_site() -> Response {
    ApiError::new(StatusCode::FORBIDDEN, "pages of other sites may not use this server").into_response()
}

async fn add_common_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        ("content-security-policy", page::POLICY),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A link that opens the page once.
async fn link(State(guard): State<Guard>) -> Json {
    Json(json!({ "url": format!("http://{}/#{}", guard.address, guard.sessions.new_code()) }))
}

/// What the page sends to get a token of its own.
#[derive(Deserialize)]
struct Code {
    code: String,
}

async fn session(
    State(guard): State<Guard>,
    visit: ActiveRequest,
    request: Request,
) -> Result<Json, ApiError> {
    let Code { code } = body_of(&visit, request).await?;
    let token = guard.sessions.exchange(&code).ok_or_else(|| {
        ApiError::new(StatusCode::UNAUTHORIZED, "this link was used before, or is older than five minutes")
    })?;
    Ok(Json(json!({ "token": token })))
}

/// A response of JSON.
#[derive(Clone, Debug)]
pub struct Json(pub Value);

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json; charset=utf-8")], format!("{}\n", self.0)).into_response()
    }
}

/// Why a request of the API is not carried out. The body is `{"error": message}`.
#[derive(Clone, Debug)]
pub struct ApiError {
    status: StatusCode,
    message: String,
}

impl ApiError {
    /// An error with a status and a sentence for people.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// The request is wrong: 400.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.message }))).into_response()
    }
}

/// Reads the body of a request: an object of JSON with at most [`MAX_BODY`] bytes.
///
/// # Errors
/// The body has another type, is too large or too slow, or does not have the fields that are wanted.
pub async fn body_of<T: DeserializeOwned>(
    visit: &ActiveRequest,
    request: Request<Body>,
) -> Result<T, ApiError> {
    let (head, body) = request.into_parts();
    let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Browsers ask before they send this type for a page of another site, and such questions get no permission here.
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    let bytes = visit.read(body, MAX_BODY).await.map_err(|rejection| {
        ApiError::new(rejection.into_response().status(), format!("the body was not read: {rejection:?}"))
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::bad(format!("the body is not understood: {error}")))
}

/// The value of a parameter of a query; of a name that is given twice, the first value.
pub fn query_value(uri: &Uri, name: &str) -> Option<String> {
    let pairs = url::form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.into_owned().find(|(key, _)| key == name).map(|(_, value)| value)
}
