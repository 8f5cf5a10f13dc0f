//! Brave Search: the web search endpoint of its API (api-dashboard.search.brave.com, "Web Search").

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use huntsman_crawler::{Request, Response};
use url::Url;

use super::{Refusal, field_of_each, json_of, unexpected};

pub(super) const NAME: &str = "Brave Search";
pub(super) const BASE: &str = "https://api.search.brave.com/res/v1/web/search";

/// `None` if the key is not a valid header value.
pub(super) fn request(base: &Url, key: &str, phrase: &str, results: usize) -> Option<Request> {
    let mut url = base.clone();
    url.query_pairs_mut()
        .append_pair("q", phrase)
        .append_pair("count", &results.to_string())
        .append_pair("result_filter", "web")
        // Words must be found as they are spelled.
        .append_pair("spellcheck", "0");
    let mut request = Request::get(url);
    let mut key = HeaderValue::from_str(key).ok()?;
    key.set_sensitive(true);
    request.headers.insert("x-subscription-token", key);
    Some(request)
}

pub(super) fn read(answer: &Response, variable: &str) -> Result<Vec<String>, Refusal> {
    match answer.status {
        StatusCode::OK => {}
        StatusCode::TOO_MANY_REQUESTS => {
            return Err(Refusal::Quota("Brave Search: the quota of this key is used up".to_owned()));
        }
        // A wrong key gets 422 as well.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::UNPROCESSABLE_ENTITY => {
            let status = answer.status.as_u16();
            return Err(Refusal::Failed(format!(
                "Brave Search refuses the question ({status}): look whether the key in {variable} is valid for web search"
            )));
        }
        status => return Err(unexpected(NAME, status)),
    }
    let json = json_of(answer).ok_or_else(|| unexpected(NAME, answer.status))?;
    match json.get("web") {
        Some(web) => field_of_each(web.get("results"), "url").ok_or_else(|| unexpected(NAME, answer.status)),
        // Without results the response has no `web`.
        None if json.get("type").and_then(|kind| kind.as_str()) == Some("search") => Ok(Vec::new()),
        None => Err(unexpected(NAME, answer.status)),
    }
}

/// Reads `X-RateLimit-Remaining: 0, 1482` and `X-RateLimit-Reset: 1, 1419704`: a number for each window of the plan, in
/// seconds. Returns the longest reset of the windows that are used up.
pub(super) fn backoff(headers: &HeaderMap) -> Option<Duration> {
    let list = |name: &str| {
        let text = headers.get(name)?.to_str().ok()?;
        Some(text.split(',').map(|number| number.trim().parse::<u64>().ok()).collect::<Vec<_>>())
    };
    let (remaining, reset) = (list("x-ratelimit-remaining")?, list("x-ratelimit-reset")?);
    let used_up = remaining.into_iter().zip(reset).filter(|(remaining, _)| *remaining == Some(0));
    used_up.filter_map(|(_, reset)| reset).max().map(Duration::from_secs)
}
