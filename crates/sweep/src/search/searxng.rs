//! SearXNG: `GET {base}/search?q=..&format=json` (docs.searxng.org, "Search API").

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderValue, StatusCode, header};
use huntsman_crawler::{Request, Response};
use serde_json::Value;
use url::Url;

use super::{Refusal, field_of_each, json_of, unexpected};

pub(super) const NAME: &str = "SearXNG";

pub(super) fn request(base: &Url, phrase: &str) -> Request {
    let mut url = base.clone();
    // An instance may be below a path; the URL of its search page is accepted too.
    let path = url.path().trim_end_matches('/').trim_end_matches("/search").to_owned();
    url.set_path(&format!("{path}/search"));
    url.set_fragment(None);
    url.query_pairs_mut().clear().append_pair("q", phrase).append_pair("format", "json");
    let mut request = Request::get(url);
    if let Some(basic) = basic(base) {
        request.headers.insert(header::AUTHORIZATION, basic);
    }
    request
}

/// User and password of the address: the downloader does not send them.
fn basic(base: &Url) -> Option<HeaderValue> {
    let password = base.password();
    if base.username().is_empty() && password.is_none() {
        return None;
    }
    let decoded = |part: &str| percent_decoded(part);
    let pair = format!("{}:{}", decoded(base.username()), decoded(password.unwrap_or_default()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn percent_decoded(part: &str) -> String {
    // The only parser of percent signs at hand reads forms, where + is a space.
    let form = format!("={}", part.replace('+', "%2B"));
    url::form_urlencoded::parse(form.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

pub(super) fn read(answer: &Response) -> Result<Vec<String>, Refusal> {
    const NO_JSON: &str = "SearXNG does not answer in JSON: add json to search.formats in the settings.yml of the instance, or \
                           name another one";
    match answer.status {
        StatusCode::OK => {}
        // An instance answers 403 if the format is not enabled in its settings.
        StatusCode::FORBIDDEN => return Err(Refusal::Failed(NO_JSON.to_owned())),
        StatusCode::TOO_MANY_REQUESTS => {
            return Err(Refusal::Quota(
                "SearXNG was asked too often, or its limiter takes this program for a robot".to_owned(),
            ));
        }
        status => return Err(unexpected(NAME, status)),
    }
    let Some(json) = json_of(answer) else { return Err(Refusal::Failed(NO_JSON.to_owned())) };
    let urls = field_of_each(json.get("results"), "url").ok_or_else(|| unexpected(NAME, answer.status))?;
    match unresponsive(&json) {
        // This is not an empty result: no engine behind the instance responded.
        Some(engines) if urls.is_empty() => Err(Refusal::Failed(format!(
            "SearXNG found nothing, and of its engines these did not answer: {engines}"
        ))),
        _ => Ok(urls),
    }
}

/// Reads `unresponsive_engines`: pairs of an engine and its error.
fn unresponsive(json: &Value) -> Option<String> {
    const MOST: usize = 5;
    let name = |engine: &Value| {
        let name = engine.get(0).unwrap_or(engine).as_str()?;
        Some(
            name.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | '-'))
                .take(30)
                .collect::<String>(),
        )
    };
    let names: Vec<String> =
        json.get("unresponsive_engines")?.as_array()?.iter().filter_map(name).take(MOST).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
