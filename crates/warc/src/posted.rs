//! Requests with a body as parts of the keys of their responses, by the guideline of the IIPC as `cdxj-indexer` follows it.
//!
//! Players make the same text of the request that they get, so the words of that program count, and not what would be nicer: JSON is written as
//! Python shows its values, `True` and `None` among them. Bodies of AMF, the format of Flash, are keyed as binary ones.

mod json;
mod multipart;

use data_encoding::BASE64;

use crate::message::HttpHead;
use crate::payload::Payload;

/// Greatest length of the body of a request that is part of a key, in characters.
const MAX_QUERY: usize = 4096;
/// Bytes of a body that are taken if its head does not tell how many it has.
const UNTOLD: usize = 8192;
/// The name of a body that is neither a form nor JSON.
const BINARY: &str = "__wb_post_data=";

/// A request with a body.
pub(crate) struct Posted {
    pub(crate) method: String,
    /// The body as a query; none if its head tells no length that can be one.
    pub(crate) query: Option<String>,
    /// The URL from which the key is made.
    pub(crate) url: String,
}

impl Posted {
    /// The request for a URL, if its method is POST or PUT.
    pub(crate) fn of(http: &HttpHead, body: &[u8], url: &str) -> Option<Self> {
        let method = http.method()?.to_owned();
        let upper = method.to_ascii_uppercase();
        if !matches!(upper.as_str(), "POST" | "PUT") {
            return None;
        }
        let query = if method == upper { query_of(http, body) } else { Some(String::new()) };
        let sign = if url.contains('?') { '&' } else { '?' };
        let mut keyed = format!("{url}{sign}__wb_method={method}");
        if let Some(query) = query.as_ref().filter(|query| !query.is_empty()) {
            keyed.push('&');
            keyed.push_str(query);
        }
        Some(Self { method: upper, query, url: keyed })
    }
}

fn query_of(http: &HttpHead, body: &[u8]) -> Option<String> {
    let length = match http.get("content-length") {
        Some(length) => length.trim().parse::<i64>().ok()?,
        None => UNTOLD as i64,
    };
    let length = usize::try_from(length).unwrap_or(0);
    let payload = Payload::of_message(http.clone(), body.to_vec());
    // What the request says of its length is of the body with its codings, and is held against it without them.
    let body = payload.decoded(length as u64).unwrap_or(payload.body().into());
    let body = &body[..body.len().min(length)];
    let query = text_of(http.get("content-type").unwrap_or_default(), body);
    Some(query.chars().take(MAX_QUERY).collect())
}

fn text_of(content_type: &str, body: &[u8]) -> String {
    let is = |prefix: &str| content_type.starts_with(prefix);
    let text = if is("application/x-www-form-urlencoded") {
        std::str::from_utf8(body).ok().map(decoded_form)
    } else if is("multipart/") {
        multipart::query(content_type, body)
    } else if is("application/json") {
        Some(json::query(body).unwrap_or_default())
    } else if is("text/plain") {
        json::query(body)
    } else {
        None
    };
    text.unwrap_or_else(|| format!("{BINARY}{}", BASE64.encode(body)))
}

fn decoded_form(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
        match (bytes[at], hex(at + 1), hex(at + 2)) {
            (b'+', ..) => out.push(b' '),
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).expect("two digits"));
                at += 2;
            }
            (byte, ..) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Adds `name=value` to a query, with all but the plainest characters escaped.
fn push_pair(query: &mut String, name: &str, value: &[u8]) {
    if !query.is_empty() {
        query.push('&');
    }
    push_escaped(query, name.as_bytes());
    query.push('=');
    push_escaped(query, value);
}

fn push_escaped(query: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b' ' => query.push('+'),
            b'_' | b'.' | b'-' | b'~' => query.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => query.push(char::from(*byte)),
            byte => query.push_str(&format!("%{byte:02X}")),
        }
    }
}
