//! The requests of a rendered page as a HAR document (HTTP Archive 1.2), which the tools of browsers show.

use std::time::Duration;

use http::StatusCode;
use huntsman_browser::SubRequest;
use huntsman_crawler::Timestamp;
use serde_json::{Value, json};
use url::Url;

use super::rendered::Rendered;
use super::subrequest::kind_name;

impl Rendered {
    /// The requests of the page as a HAR document. It has no headers and no bodies: archives of the crawl have them.
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

fn entry(request: &SubRequest, page: Timestamp) -> Value {
    let took = milliseconds(request.took);
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
            "headers": [],
            "queryString": query,
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": status,
            "statusText": reason.unwrap_or_default(),
            "httpVersion": "HTTP/1.1",
            "cookies": [],
            "headers": [],
            "content": { "size": request.bytes, "mimeType": "" },
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": request.bytes,
        },
        "cache": {},
        "timings": { "send": 0, "wait": took, "receive": 0 },
    });
    if let Some(kind) = request.kind {
        entry["_resourceType"] = kind_name(kind).into();
    }
    if let Some(why) = refused {
        entry["response"]["_error"] = why.as_str().into();
    }
    entry
}

fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
