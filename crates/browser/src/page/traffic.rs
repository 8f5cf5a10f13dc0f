//! The requests of a page: each is paused, answered by the network, and handed back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use serde_json::{Value, json};

use super::state::{Document, State};
use super::{Page, lock};
use crate::connection::Failure;
use crate::{Answer, Asked, Exchange, Kind, Refused, SubRequest};

/// Why a request failed that is never asked, such as that of an image.
const UNASKED: &str = "unasked";
/// Why a request failed after the page had as many as it may have.
const TOO_MANY: &str = "page_requests";
/// Why an answer was not handed on after the page had as many bytes as it may have.
const TOO_LARGE: &str = "page_bytes";
/// Why a page did not go to another address.
const LEAVES: &str = "leaves";
/// Headers of an answer that speak of how its body was sent.
const OF_TRANSFER: [&str; 4] = ["content-encoding", "content-length", "transfer-encoding", "connection"];

/// What becomes of a request.
enum Decision {
    /// It is asked; its place among the requests of the page.
    Ask(usize),
    Fail,
    /// It needs no network.
    Pass,
}

impl Page {
    /// Decides what becomes of a request, and begins it.
    pub(super) fn paused(self: &Arc<Self>, session: &str, params: &Value) {
        let id = params["requestId"].as_str().unwrap_or_default().to_owned();
        let request = Request::new(params, &self.target);
        let (decision, document) = self.change(|state| {
            let document = request.document(state);
            (decide(state, &request, self.begun), document)
        });
        match decision {
            Decision::Pass => self.send(session, "Fetch.continueRequest", json!({"requestId": id})),
            Decision::Fail => self.fail(session, &id, request.is_document()),
            Decision::Ask(index) => {
                let page = Arc::clone(self);
                let session = session.to_owned();
                let task = async move { page.answer(session, id, index, request, document).await };
                let mut requests = lock(&self.requests);
                // Those that are done, so that they take no room.
                while requests.try_join_next().is_some() {}
                requests.spawn(task);
            }
        }
    }

    fn send(&self, session: &str, method: &str, params: Value) {
        let _unread = self.connection.call(session, method, params);
    }

    fn fail(&self, session: &str, id: &str, is_document: bool) {
        // A document that is aborted leaves what was there; any other reason would show the browser's own page.
        let reason = if is_document { "Aborted" } else { "BlockedByClient" };
        self.send(session, "Fetch.failRequest", json!({"requestId": id, "errorReason": reason}));
    }

    async fn answer(&self, session: String, id: String, index: usize, request: Request, document: String) {
        let begun = Instant::now();
        let (is_main, is_document) = (request.is_main, request.is_document());
        let cookies = self.changed_cookies().await;
        let asked = request.asked(document, cookies);
        let answer = self.network.answer(asked).await;
        let bytes = answer.as_ref().map_or(0, |answer| answer.body.len() as u64);
        let answer = self.change(|state| state.admit(answer, bytes, self.bytes, is_main));
        let mut received = (Vec::new(), Bytes::new());
        let result = match answer {
            Ok(answer) => {
                let status = answer.status;
                received = (answer.headers.clone(), answer.body.clone());
                self.fulfil(&session, &id, answer, is_document).await.map(|()| status)
            }
            Err(refused) => {
                self.fail(&session, &id, is_document);
                Err(refused.reason)
            }
        };
        self.change(|state| {
            state.requests[index].took = begun.elapsed();
            state.requests[index].bytes = if result.is_ok() { bytes } else { 0 };
            let exchange = &mut state.requests[index].exchange;
            (exchange.headers, exchange.body) = received;
            if is_main {
                state.answered(&result);
            }
            state.requests[index].answer = result;
            state.in_flight -= 1;
            state.idle_since = Instant::now();
        });
    }

    /// Hands an answer back.
    async fn fulfil(&self, session: &str, id: &str, answer: Answer, is_document: bool) -> Result<(), String> {
        let is_kept = |name: &str| !OF_TRANSFER.iter().any(|other| name.eq_ignore_ascii_case(other));
        let headers = answer.headers.iter().filter(|(name, _)| is_kept(name));
        let headers: Vec<Value> = headers
            .map(|(name, value)| json!({"name": name, "value": value.replace(['\r', '\n', '\0'], " ")}))
            .collect();
        // For an error without a body the browser would show a page of its own.
        const EMPTY: &[u8] = b"<html></html>";
        let is_empty = is_document && answer.status >= 400 && answer.body.is_empty();
        let body: &[u8] = if is_empty { EMPTY } else { &answer.body };
        let mut params = json!({
            "requestId": id,
            "responseCode": answer.status,
            "responseHeaders": headers,
            "body": BASE64.encode(body),
        });
        if !has_phrase(answer.status) {
            params["responsePhrase"] = "Unknown".into();
        }
        match self.connection.call(session, "Fetch.fulfillRequest", params).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(reason)) => {
                // What asked may be gone; otherwise it would wait for ever.
                self.fail(session, id, is_document);
                Err(reason)
            }
            Err(Failure::Ended) => Err("the browser ended".to_owned()),
        }
    }
}

/// Whether the browser knows words for a status; without any it refuses the answer.
fn has_phrase(status: u16) -> bool {
    matches!(status, 100..=103 | 200..=206 | 300..=308 | 400..=417 | 500..=505)
}

fn decide(state: &mut State, request: &Request, begun: Instant) -> Decision {
    let scheme = request.url.split(':').next().unwrap_or_default();
    if matches!(scheme, "data" | "blob") {
        return Decision::Pass;
    }
    let leaves = request.is_main && !state.is_opening && !state.may_leave;
    let refused = if !matches!(scheme, "http" | "https") || request.kind.is_none() {
        Some(UNASKED)
    } else if leaves {
        if request.method == "GET" && state.url.split('#').next() != Some(request.url.as_str()) {
            state.note_popup(request.full_url.clone());
        }
        Some(LEAVES)
    } else if state.left == 0 {
        state.is_cut = true;
        Some(TOO_MANY)
    } else {
        None
    };
    let mut record = SubRequest {
        url: request.url.clone(),
        method: request.method.clone(),
        kind: request.kind,
        answer: Err(refused.unwrap_or("unfinished").to_owned()),
        bytes: 0,
        started: begun.elapsed(),
        took: Duration::ZERO,
        exchange: Exchange::default(),
    };
    if refused.is_some() {
        if refused == Some(UNASKED) {
            record.kind = None;
        }
        if state.unasked_left == 0 {
            state.is_flood = true;
        } else {
            state.unasked_left -= 1;
            state.requests.push(record);
        }
        return Decision::Fail;
    }
    record.exchange.sent_headers.clone_from(&request.headers);
    record.exchange.sent_body = request.body.clone().unwrap_or_default();
    state.left -= 1;
    state.in_flight += 1;
    if request.is_main {
        state.is_loaded = false;
    }
    state.requests.push(record);
    Decision::Ask(state.requests.len() - 1)
}

impl State {
    /// Takes an answer of the network into account before it is handed on.
    fn admit(
        &mut self,
        answer: Result<Answer, Refused>,
        bytes: u64,
        most: u64,
        is_main: bool,
    ) -> Result<Answer, Refused> {
        let answer = answer?;
        if self.bytes + bytes > most {
            self.is_cut = true;
            return Err(Refused { reason: TOO_LARGE.to_owned() });
        }
        self.bytes += bytes;
        for (name, value) in &answer.headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                let pair = value.split(';').next().unwrap_or_default();
                let (name, value) = pair.split_once('=').unwrap_or(("", pair));
                self.given_cookies.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        if is_main {
            let has_place = answer.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("location"));
            let goes_on = has_place && matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            if !goes_on {
                let (headers, body) = (answer.headers.clone(), answer.body.clone());
                self.document = Some(Document { status: answer.status, headers, body });
                self.is_opening = false;
            }
        }
        Ok(answer)
    }

    fn answered(&mut self, result: &Result<u16, String>) {
        if let Err(reason) = result {
            self.refused.get_or_insert_with(|| reason.clone());
            self.is_opening = false;
        }
    }
}

/// A request as the browser tells it.
struct Request {
    /// Without a fragment.
    url: String,
    full_url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<Bytes>,
    kind: Option<Kind>,
    frame: String,
    is_main: bool,
}

impl Request {
    fn new(params: &Value, main_frame: &str) -> Self {
        let request = &params["request"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let url = text(&request["url"]);
        let full_url = format!("{url}{}", request["urlFragment"].as_str().unwrap_or_default());
        let given = request["headers"].as_object().into_iter().flatten();
        let headers: Vec<(String, String)> = given.map(|(name, value)| (name.clone(), text(value))).collect();
        let header = |wanted: &str| {
            headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map_or("", |(_, value)| value.as_str())
        };
        let kind = kind(params["resourceType"].as_str().unwrap_or_default(), header);
        let frame = text(&params["frameId"]);
        let is_main = kind == Some(Kind::Document) && frame == main_frame;
        let body = body(request);
        let headers = headers.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("cookie")).collect();
        Self { url, full_url, method: text(&request["method"]), headers, body, kind, frame, is_main }
    }

    fn is_document(&self) -> bool {
        self.kind == Some(Kind::Document)
    }

    /// Address of the document that asks.
    fn document(&self, state: &State) -> String {
        let frames = &state.frames;
        let asking = if self.is_main {
            Some(self.url.as_str())
        } else if self.is_document() {
            frames.url_around(&self.frame)
        } else {
            frames.url(&self.frame).filter(|url| url.starts_with("http"))
        };
        let url = asking.unwrap_or(&state.url);
        url.split('#').next().unwrap_or_default().to_owned()
    }

    fn asked(self, document: String, cookies: Vec<(String, String)>) -> Asked {
        let kind = self.kind.unwrap_or(Kind::Fetch);
        let Self { url, method, headers, body, is_main, .. } = self;
        Asked { url, method, headers, body, kind, is_main, document, cookies }
    }
}

/// What a request is for; `None` if it is not asked. The browser calls requests by `fetch` and those by
/// `XMLHttpRequest` the same, and says `Fetch` of prefetched pages.
fn kind<'a>(name: &str, header: impl Fn(&str) -> &'a str) -> Option<Kind> {
    let is_ahead = !header("sec-purpose").is_empty() || !header("purpose").is_empty();
    match name {
        _ if is_ahead => None,
        "Document" => Some(Kind::Document),
        "Script" => Some(Kind::Script),
        "Stylesheet" => Some(Kind::Stylesheet),
        "XHR" if header("accept") == "text/event-stream" => Some(Kind::Fetch),
        "XHR" => Some(Kind::Xhr),
        "Fetch" | "EventSource" | "Preflight" => Some(Kind::Fetch),
        // Scripts of workers; icons accept images.
        "Other" if header("accept") == "*/*" => Some(Kind::Script),
        _ => None,
    }
}

fn body(request: &Value) -> Option<Bytes> {
    if request["hasPostData"] != true {
        return None;
    }
    let entries = request["postDataEntries"].as_array();
    let mut body = Vec::new();
    for bytes in entries.into_iter().flatten().filter_map(|entry| entry["bytes"].as_str()) {
        body.extend(BASE64.decode(bytes).unwrap_or_default());
    }
    if entries.is_none() {
        body.extend(request["postData"].as_str().unwrap_or_default().as_bytes());
    }
    Some(body.into())
}
