//! The chain of a redirected request, kept in its meta: `redirect_urls`, `redirect_reasons`, `redirect_times`.

use huntsman_crawler::{Request, meta};
use serde_json::Value;

/// The URLs that led to this request.
pub(crate) fn urls(request: &Request) -> impl Iterator<Item = &str> {
    list(request).into_iter().flatten().filter_map(Value::as_str)
}

/// How many redirects led to this request.
pub(crate) fn hops(request: &Request) -> usize {
    list(request).map_or(0, Vec::len)
}

fn list(request: &Request) -> Option<&Vec<Value>> {
    if request.meta.is_empty() { None } else { request.meta.get(meta::REDIRECT_URLS.name())?.as_array() }
}

/// The status code of the last redirect, or `None` if it was not a redirect by status code.
pub(crate) fn last_status(request: &Request) -> Option<u16> {
    request.meta.get(meta::REDIRECT_REASONS.name())?.as_array()?.last()?.as_u64()?.try_into().ok()
}

/// Makes a request that enters the queue for the second time skip the duplicate filter, and records which component did
/// so. A `dont_filter` that the spider set is left as it is.
pub(crate) fn set_unfiltered(request: &mut Request, by: &'static str) {
    if !request.unfiltered {
        request.unfiltered = true;
        request.set_meta(meta::UNFILTERED_BY, by.to_owned());
    }
}

/// Undoes [`set_unfiltered`].
pub(crate) fn clear_unfiltered(request: &mut Request) {
    if request.remove_meta(meta::UNFILTERED_BY) {
        request.unfiltered = false;
    }
}

/// Marks a response that changed the cookies of the crawl; in its extensions. With new cookies the same URL may answer
/// differently, so [`Redirect`](crate::Redirect) fetches a page again that redirects to itself. The component that
/// keeps the cookies sets it: the built-in one, or one of the program.
#[derive(Clone, Copy, Debug)]
pub struct CookiesChanged;
