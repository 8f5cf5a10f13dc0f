//! Google: the Custom Search JSON API (developers.google.com/custom-search/v1/reference/rest/v1/cse/list).

use http::StatusCode;
use huntsman_crawler::{Request, Response};
use serde_json::Value;
use url::Url;

use super::{Refusal, field_of_each, json_of, unexpected};

pub(super) const NAME: &str = "Google";
pub(super) const BASE: &str = "https://www.googleapis.com/customsearch/v1";

/// Reasons in an error of the API that mean that the quota is used up, of the day or of the moment.
const QUOTA: [&str; 4] =
    ["dailyLimitExceeded", "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"];

pub(super) fn request(base: &Url, key: &str, engine: &str, phrase: &str, results: usize) -> Request {
    let mut url = base.clone();
    url.query_pairs_mut()
        .append_pair("key", key)
        .append_pair("cx", engine)
        .append_pair("q", phrase)
        .append_pair("num", &results.to_string())
        // Results similar to others are copies, and wanted.
        .append_pair("filter", "0");
    Request::get(url)
}

pub(super) fn read(answer: &Response, key: &str, engine: &str) -> Result<Vec<String>, Refusal> {
    let json = json_of(answer);
    if answer.status == StatusCode::TOO_MANY_REQUESTS || json.as_ref().is_some_and(is_about_quota) {
        let why = "Google: the quota of this key is used up; it has 100 questions a day free of charge";
        return Err(Refusal::Quota(why.to_owned()));
    }
    match answer.status {
        StatusCode::OK => {}
        StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            let status = answer.status.as_u16();
            return Err(Refusal::Failed(format!(
                "Google refuses the question ({status}): look whether the key in {key} is valid for the Custom Search API, and the \
                 engine in {engine}"
            )));
        }
        status => return Err(unexpected(NAME, status)),
    }
    let json = json.filter(Value::is_object).ok_or_else(|| unexpected(NAME, answer.status))?;
    match json.get("items") {
        Some(items) => field_of_each(Some(items), "link").ok_or_else(|| unexpected(NAME, answer.status)),
        // Without results the response has no `items`.
        None if json.get("kind").and_then(Value::as_str) == Some("customsearch#search") => Ok(Vec::new()),
        None => Err(unexpected(NAME, answer.status)),
    }
}

/// `{"error": {"status": "RESOURCE_EXHAUSTED", "errors": [{"reason": ..}]}}`
fn is_about_quota(json: &Value) -> bool {
    let Some(error) = json.get("error") else { return false };
    let reasons = error.get("errors").and_then(Value::as_array).into_iter().flatten();
    let mut reasons = reasons.filter_map(|one| one.get("reason")?.as_str());
    error.get("status").and_then(Value::as_str) == Some("RESOURCE_EXHAUSTED")
        || reasons.any(|reason| QUOTA.contains(&reason))
}
