//! The chain of a redirected request, kept in its meta: `redirect_urls`, `redirect_reasons`, `redirect_times`.

use huntsman_crawler::Request;
use serde_json::Value;

/// Addresses that led here, the first one first; the present one is not among them.
pub(crate) const URLS: &str = "redirect_urls";
/// Why each of them led on: a status, or `meta refresh`.
pub(crate) const REASONS: &str = "redirect_reasons";
/// How many there are.
pub(crate) const TIMES: &str = "redirect_times";
/// From which place of the chain on an address that comes again means a loop: before it, cookies or the method were others.
pub(crate) const SINCE: &str = "redirect_since";
/// How many more redirects this request may take, if that is less than the settings allow.
pub(crate) const TTL: &str = "redirect_ttl";
/// Which middleware set `unfiltered`, when it was not the spider: the target of a redirect is filtered again.
pub(crate) const UNFILTERED_BY: &str = "unfiltered_by";
/// Why a request waits in the queue: the engine drops it for this reason when nothing else is left to do.
pub(crate) const PARKED: &str = "parked_reason";

/// The addresses that led to this request.
pub(crate) fn urls(request: &Request) -> impl Iterator<Item = &str> {
    let list = if request.meta.is_empty() { None } else { request.meta.get(URLS).and_then(Value::as_array) };
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// How many redirects led to this request.
pub(crate) fn hops(request: &Request) -> usize {
    if request.meta.is_empty() {
        0
    } else {
        request.meta.get(URLS).and_then(Value::as_array).map_or(0, Vec::len)
    }
}

/// The status of the last redirect, if it was one by status.
pub(crate) fn last_status(request: &Request) -> Option<u16> {
    request.meta.get(REASONS)?.as_array()?.last()?.as_u64()?.try_into().ok()
}

/// Skips the duplicate filter for a request that is in the queue for the second time, and says who did so. What the spider
/// asked for is left as it is.
pub(crate) fn set_unfiltered(request: &mut Request, by: &'static str) {
    if !request.unfiltered {
        request.unfiltered = true;
        request.meta.insert(UNFILTERED_BY.to_owned(), by.into());
    }
}

/// Takes that back.
pub(crate) fn clear_unfiltered(request: &mut Request) {
    if request.meta.remove(UNFILTERED_BY).is_some() {
        request.unfiltered = false;
    }
}
