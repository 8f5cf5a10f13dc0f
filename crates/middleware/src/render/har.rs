//! The requests of a rendered page as a HAR document (HTTP Archive 1.2), which the tools of browsers show.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use huntsman_browser::SubRequest;
use huntsman_crawler::{Error, Result, Timestamp};
use serde_json::{Value, json};
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use super::rendered::Rendered;
use super::subrequest::kind_name;

/// Bytes of a body that is written.
const MAX_BODY: usize = 5_000_000;

impl Rendered {
    /// The requests of the page as a HAR document, with headers and bodies. Of a body that is too large only its size is told.
    pub fn har(&self, page: &Url) -> Value {
        let entries: Vec<Value> = self.requests.iter().map(|request| entry(request, self.at)).collect();
        json!({ "log": {
            "version": "1.2",
            "creator": { "name": "huntsman", "version": env!("CARGO_PKG_VERSION") },
            "pages": [{
                "startedDateTime": self.at.to_rfc3339(),
                "id": "page",
                "title": page.as_str(),
                "pageTimings": { "onContentLoad": null, "onLoad": milliseconds(self.took) },
            }],
            "entries": entries,
        } })
    }
}

/// The name of the file of a page.
pub(super) fn file_name(page: &Url) -> String {
    format!("{:032x}.har", xxh3_128(page.as_str().as_bytes()))
}

/// Writes the requests of a page into a folder, in place of what was there of the same page.
///
/// # Errors
/// The file cannot be written; the error names it.
pub(super) async fn keep(folder: &str, page: &Url, rendered: Rendered) -> Result<()> {
    let (path, page) = (Path::new(folder).join(file_name(page)), page.clone());
    let write = move || {
        let content = rendered.har(&page).to_string();
        huntsman_files::create_dir_all(path.parent().unwrap_or(Path::new(".")))
            .and_then(|()| huntsman_files::write(&path, content))
            .map_err(|error| Error::from(error).context(format!("writing {}", path.display())))
    };
    tokio::task::spawn_blocking(write).await?
}

fn entry(request: &SubRequest, page: Timestamp) -> Value {
    let took = milliseconds(request.took);
    let exchange = &request.exchange;
    let (status, refused) = match &request.answer {
        Ok(status) => (*status, None),
        Err(why) => (0, Some(why)),
    };
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let query: Vec<Value> = match Url::parse(&request.url) {
        Ok(url) => url.query_pairs().map(|(name, value)| json!({ "name": name, "value": value })).collect(),
        Err(_) => Vec::new(),
    };
    let mut entry = json!({
        "pageref": "page",
        "startedDateTime": (page + request.started).to_rfc3339(),
        "time": took,
        "request": {
            "method": request.method,
            "url": request.url,
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": headers(&exchange.sent_headers),
            "queryString": query,
            "headersSize": -1,
            "bodySize": exchange.sent_body.len(),
        },
        "response": {
            "status": status,
            "statusText": reason.unwrap_or_default(),
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": headers(&exchange.headers),
            "content": content(&exchange.body, header(&exchange.headers, "content-type")),
            "redirectURL": header(&exchange.headers, "location"),
            "headersSize": -1,
            "bodySize": request.bytes,
        },
        "cache": {},
        "timings": { "send": 0, "wait": took, "receive": 0 },
    });
    if !exchange.sent_body.is_empty() {
        let sent = &exchange.sent_body[..exchange.sent_body.len().min(MAX_BODY)];
        entry["request"]["postData"] = json!({
            "mimeType": header(&exchange.sent_headers, "content-type"),
            "params": [],
            "text": String::from_utf8_lossy(sent),
        });
    }
    if let Some(kind) = request.kind {
        entry["_resourceType"] = kind_name(kind).into();
    }
    if let Some(why) = refused {
        entry["response"]["_error"] = why.as_str().into();
    }
    entry
}

fn headers(headers: &[(String, String)]) -> Value {
    headers.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> &'a str {
    let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    found.map_or("", |(_, value)| value)
}

/// A body: as text if it is UTF-8, as base64 if not.
fn content(body: &[u8], media_type: &str) -> Value {
    let mut content = json!({ "size": body.len(), "mimeType": media_type });
    match std::str::from_utf8(body) {
        _ if body.len() > MAX_BODY => content["comment"] = "left out, because it is too large".into(),
        Ok(text) => content["text"] = text.into(),
        Err(_) => {
            content["text"] = STANDARD.encode(body).into();
            content["encoding"] = "base64".into();
        }
    }
    content
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
