//! Headers and metas that middlewares add to a request. They are set anew each time the request is sent, and never
//! stored.
//!
//! A retry or a redirect starts from the request as the spider made it. Credentials from the settings therefore do not
//! reach the frontier's files, and a redirect cannot carry them to another site.

use http::{HeaderName, HeaderValue};
use huntsman_crawler::meta::{self, MetaKey, MetaValue};
use huntsman_crawler::{CREDENTIALS, Request};

/// The headers and metas that middlewares added to this request, kept in its extensions.
#[derive(Clone, Debug, Default)]
struct Added {
    headers: Vec<HeaderName>,
    meta: Vec<&'static str>,
}

/// Sets a header on behalf of a middleware.
pub(crate) fn set(request: &mut Request, name: HeaderName, value: HeaderValue) {
    let added = request.extensions.get_or_insert_default::<Added>();
    if !added.headers.contains(&name) {
        added.headers.push(name.clone());
    }
    request.headers.insert(name, value);
}

/// Sets a header on behalf of a middleware unless the request already has it; returns whether it was set.
pub(crate) fn set_if_absent(request: &mut Request, name: HeaderName, value: HeaderValue) -> bool {
    let absent = !request.headers.contains_key(&name);
    if absent {
        set(request, name, value);
    }
    absent
}

/// Whether this header was set by a middleware and not by the spider.
pub(crate) fn is_ours(request: &Request, name: &HeaderName) -> bool {
    request.extensions.get::<Added>().is_some_and(|added| added.headers.contains(name))
}

/// Sets a meta on behalf of a middleware.
pub(crate) fn set_meta<T: MetaValue>(request: &mut Request, key: MetaKey<T>, value: T) {
    let added = request.extensions.get_or_insert_default::<Added>();
    if !added.meta.contains(&key.name()) {
        added.meta.push(key.name());
    }
    request.set_meta(key, value);
}

/// Removes what middlewares added from a request that goes back to the queue.
pub(crate) fn strip(request: &mut Request) {
    if let Some(Added { headers, meta }) = request.extensions.remove::<Added>() {
        for name in headers {
            request.headers.remove(name);
        }
        for key in meta {
            request.meta.remove(key);
        }
    }
}

/// The headers of a request that carry credentials: those that do by definition, those whose values are marked
/// sensitive, and those named in the request's meta `secret_headers`.
pub(crate) fn credentials(request: &Request) -> Vec<HeaderName> {
    let listed = request.meta.get(meta::SECRET_HEADERS.name()).and_then(serde_json::Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(serde_json::Value::as_str);
    let listed: Vec<HeaderName> = listed.filter_map(|name| name.parse().ok()).collect();
    let is_secret = |name: &HeaderName| {
        CREDENTIALS.contains(name)
            || listed.contains(name)
            || request.headers.get_all(name).iter().any(HeaderValue::is_sensitive)
    };
    request.headers.keys().filter(|name| is_secret(name)).cloned().collect()
}

/// Removes everything that must never be sent to another origin.
pub(crate) fn drop_credentials(request: &mut Request) {
    for name in credentials(request) {
        request.headers.remove(name);
    }
}
