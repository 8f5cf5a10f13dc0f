//! The API of a running crawl.

use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::routing::{get, post};
use huntsman_crawler::{Addition, HostKey, Politeness, Request as PageRequest, parse_web_url};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::monitor::Monitor;
use crate::local::{ApiError, Json, body_of, query_value};
use crate::server::ActiveRequest;

/// Entries of a list, if the request does not say how many.
const LIMIT: usize = 100;
/// Longest delay between requests of a host that can be set, in seconds: a day.
const MAX_DELAY: f64 = 86_400.0;
/// Most requests at once of a host that can be set.
const MAX_CONCURRENCY: usize = 10_000;

type Answer = Result<Json, ApiError>;

pub(super) fn routes(monitor: Monitor) -> Router {
    Router::new()
        .route("/status", get(status))
        .route("/stats", get(stats))
        .route("/hosts", get(hosts))
        .route("/queue", get(queue))
        .route("/errors", get(errors))
        .route("/overview", get(overview))
        .route("/pause", post(pause))
        .route("/resume", post(resume))
        .route("/stop", post(stop))
        .route("/add", post(add))
        .route("/remove", post(remove))
        .route("/delay", post(delay))
        .with_state(monitor)
}

fn json_of(value: impl serde::Serialize) -> Answer {
    serde_json::to_value(value).map(Json).map_err(|error| ApiError::bad(error.to_string()))
}

fn limit(uri: &Uri) -> Result<usize, ApiError> {
    let Some(text) = query_value(uri, "limit") else { return Ok(LIMIT) };
    text.parse().map_err(|_| ApiError::bad("limit: use a whole number"))
}

async fn status(State(monitor): State<Monitor>) -> Answer {
    json_of(monitor.handle().status().await)
}

async fn stats(State(monitor): State<Monitor>) -> Json {
    Json(Value::Object(monitor.handle().stats().snapshot().into_iter().collect()))
}

async fn hosts(State(monitor): State<Monitor>, uri: Uri) -> Answer {
    json_of(monitor.handle().host_list(limit(&uri)?).await)
}

async fn queue(State(monitor): State<Monitor>, uri: Uri) -> Answer {
    let host = query_value(&uri, "host").map(|host| slot(&host));
    json_of(monitor.handle().peek(host.as_ref(), limit(&uri)?).await)
}

async fn errors(State(monitor): State<Monitor>) -> Answer {
    json_of(monitor.errors())
}

async fn overview(State(monitor): State<Monitor>, uri: Uri) -> Answer {
    Ok(Json(monitor.overview(limit(&uri)?).await))
}

/// The body of a request that has nothing to say.
#[derive(Deserialize)]
struct Nothing {}

async fn pause(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let Nothing {} = body_of(&visit, request).await?;
    monitor.handle().pause();
    json_of(monitor.handle().status().await)
}

async fn resume(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let Nothing {} = body_of(&visit, request).await?;
    monitor.handle().resume();
    json_of(monitor.handle().status().await)
}

async fn stop(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let Nothing {} = body_of(&visit, request).await?;
    // The reason is that of a signal: both are a stop by hand, after which the same command goes on.
    monitor.handle().stop("shutdown");
    json_of(monitor.handle().status().await)
}

#[derive(Deserialize)]
struct NewUrl {
    url: String,
}

async fn add(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let NewUrl { url } = body_of(&visit, request).await?;
    let url = parse_web_url(&url).map_err(|error| ApiError::bad(error.to_string()))?;
    Ok(Json(match monitor.handle().add(PageRequest::get(url)).await {
        Addition::Queued => json!({ "outcome": "queued" }),
        Addition::Duplicate => json!({ "outcome": "duplicate" }),
        Addition::Refused(reason) => {
            json!({ "outcome": "refused", "reason": reason.reason, "detail": reason.detail })
        }
        Addition::Ended => json!({ "outcome": "refused", "reason": "ended" }),
    }))
}

#[derive(Deserialize)]
struct OneHost {
    host: String,
}

async fn remove(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let OneHost { host } = body_of(&visit, request).await?;
    let host = known(&monitor, &host).await?;
    let queued = monitor.handle().remove_host(&host).await;
    Ok(Json(json!({ "host": host.as_str(), "queued": queued })))
}

#[derive(Deserialize)]
struct NewPoliteness {
    host: String,
    seconds: Option<f64>,
    concurrency: Option<usize>,
}

async fn delay(State(monitor): State<Monitor>, visit: ActiveRequest, request: Request) -> Answer {
    let NewPoliteness { host, seconds, concurrency } = body_of(&visit, request).await?;
    if seconds.is_none() && concurrency.is_none() {
        return Err(ApiError::bad("give seconds, concurrency, or both"));
    }
    if seconds.is_some_and(|seconds| !(0.0..=MAX_DELAY).contains(&seconds)) {
        return Err(ApiError::bad(format!("seconds: use a number from 0 to {MAX_DELAY}")));
    }
    if concurrency.is_some_and(|concurrency| !(1..=MAX_CONCURRENCY).contains(&concurrency)) {
        return Err(ApiError::bad(format!("concurrency: use a number from 1 to {MAX_CONCURRENCY}")));
    }
    let host = known(&monitor, &host).await?;
    let cx = monitor.handle().context();
    if let Some(seconds) = seconds {
        cx.set_politeness(&host, Politeness::Delay(Duration::from_secs_f64(seconds))).await;
    }
    if let Some(concurrency) = concurrency {
        cx.set_politeness(&host, Politeness::Concurrency(concurrency)).await;
    }
    json_of(monitor.handle().host_status(&host).await)
}

/// The slot that a name stands for: names of hosts have the form that URLs have, lower case and punycode.
fn slot(name: &str) -> HostKey {
    let in_url =
        Url::parse(&format!("http://{name}/")).ok().filter(|url| url.path() == "/" && url.port().is_none());
    let host = in_url.as_ref().and_then(Url::host_str).unwrap_or(name);
    HostKey::new(host.trim_end_matches('.'))
}

/// The slot of a name, if the crawl knows it: an order for a name that was mistyped would have no effect.
async fn known(monitor: &Monitor, name: &str) -> Result<HostKey, ApiError> {
    let host = slot(name);
    match monitor.handle().host_status(&host).await {
        Some(_) => Ok(host),
        None => Err(ApiError::bad(format!("the crawl has no host {name:?}; /hosts lists those that it has"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_read_as_urls_have_them() {
        for (name, expected) in [
            ("Example.ORG", "example.org"),
            ("example.org.", "example.org"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("::1", "::1"),
            ("[::1]", "[::1]"),
            ("my slot", "my slot"),
            ("a/b", "a/b"),
        ] {
            assert_eq!(slot(name).as_str(), expected, "{name}");
        }
    }
}
