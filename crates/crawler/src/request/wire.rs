//! The stored form of a request: versioned JSON that does not depend on a programming language.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value, json};
use url::Url;

use super::{DEFAULT_CALLBACK, FoundBy, RareFields, Request};
use crate::clock::Timestamp;
use crate::error::{Error, Result};

/// Version of the form written by this code.
const VERSION: u64 = 1;

const KNOWN: [&str; 21] = [
    "v",
    "url",
    "method",
    "headers",
    "body",
    "callback",
    "errback",
    "cb_kwargs",
    "priority",
    "depth",
    "retries",
    "unfiltered",
    "nofollow",
    "found_by",
    "not_before",
    "referer",
    "meta",
    "flags",
    "cookies",
    "encoding",
    "body_encoding",
];

impl Request {
    /// The request as a JSON object: `{"v": 1, "url": ..}`; fields with their default value are omitted.
    ///
    /// Headers are a list of `[name, value]`; values that are not UTF-8, and bodies, are written as Latin-1 strings.
    /// `extensions` are not included.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("v".into(), VERSION.into());
        out.insert("url".into(), self.url.as_str().into());
        if self.method != Method::GET {
            out.insert("method".into(), self.method.as_str().into());
        }
        if !self.headers.is_empty() {
            let pair =
                |(name, value): (&HeaderName, &HeaderValue)| json!([name.as_str(), latin1(value.as_bytes())]);
            out.insert("headers".into(), self.headers.iter().map(pair).collect());
        }
        if !self.body.is_empty() {
            out.insert("body".into(), latin1(&self.body).into());
        }
        if &*self.callback != DEFAULT_CALLBACK {
            out.insert("callback".into(), (&*self.callback).into());
        }
        if self.priority != 0 {
            out.insert("priority".into(), self.priority.into());
        }
        if self.depth != 0 {
            out.insert("depth".into(), self.depth.into());
        }
        if self.retries != 0 {
            out.insert("retries".into(), self.retries.into());
        }
        if self.unfiltered {
            out.insert("unfiltered".into(), true.into());
        }
        if self.nofollow {
            out.insert("nofollow".into(), true.into());
        }
        if let Some(name) = self.found_by.stored() {
            out.insert("found_by".into(), name.into());
        }
        if let Some(at) = self.not_before {
            out.insert("not_before".into(), at.0.into());
        }
        if let Some(referer) = &self.referer {
            out.insert("referer".into(), (&**referer).into());
        }
        if !self.meta.is_empty() {
            out.insert("meta".into(), self.meta.clone().into());
        }
        if let Some(rare) = &self.rare {
            if let Some(errback) = &rare.errback {
                out.insert("errback".into(), (&**errback).into());
            }
            if !rare.cb_kwargs.is_empty() {
                out.insert("cb_kwargs".into(), rare.cb_kwargs.clone().into());
            }
            if !rare.flags.is_empty() {
                out.insert("flags".into(), rare.flags.clone().into());
            }
            if !rare.cookies.is_empty() {
                out.insert("cookies".into(), json!(rare.cookies));
            }
            if let Some(encoding) = &rare.encoding {
                out.insert("encoding".into(), encoding.as_str().into());
            }
            for (key, value) in &rare.unknown {
                out.insert(key.clone(), value.clone());
            }
        }
        out.into()
    }

    /// Appends the text of [`Request::to_json`].
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        serde_json::to_writer(out, &self.to_json()).expect("a tree of JSON can be written into memory");
    }

    /// Reads the output of [`Request::to_json`]; unknown fields are kept and written again.
    ///
    /// # Errors
    /// The value is not an object, has no valid URL, or a field has the wrong type; the error names the field.
    pub fn from_json(value: Value) -> Result<Self> {
        let Value::Object(mut map) = value else {
            return Err(Error::stored_request("the request", "not an object"));
        };
        let url = map.get("url").and_then(Value::as_str).ok_or_else(|| invalid_field("url"))?;
        let mut request = Self::get(Url::parse(url).map_err(|cause| Error::invalid_url(url, &cause))?);
        if let Some(method) = take_str(&mut map, "method")? {
            request.method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid_field("method"))?;
        }
        if let Some(value) = map.remove("headers") {
            request.headers = headers(&value).ok_or_else(|| invalid_field("headers"))?;
        }
        if let Some(body) = take_str(&mut map, "body")? {
            request.body = bytes_of_latin1(&body).ok_or_else(|| invalid_field("body"))?.into();
        }
        if let Some(label) = take_str(&mut map, "callback")? {
            request.callback = label.into();
        }
        request.priority = number(&mut map, "priority", 0)?;
        request.depth = number(&mut map, "depth", 0)?;
        request.retries = number(&mut map, "retries", 0)?;
        request.unfiltered = match map.remove("unfiltered") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| invalid_field("unfiltered"))?,
        };
        request.nofollow = match map.remove("nofollow") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| invalid_field("nofollow"))?,
        };
        request.found_by = match take_str(&mut map, "found_by")? {
            None => FoundBy::Spider,
            Some(name) => FoundBy::from_stored(&name).ok_or_else(|| invalid_field("found_by"))?,
        };
        request.not_before = match map.remove("not_before") {
            None => None,
            Some(value) => Some(Timestamp(value.as_u64().ok_or_else(|| invalid_field("not_before"))?)),
        };
        request.referer = take_str(&mut map, "referer")?.map(Arc::from);
        if let Some(meta) = take_map(&mut map, "meta")? {
            request.meta = meta;
        }
        let mut rare = RareFields {
            errback: take_str(&mut map, "errback")?.map(Arc::from),
            cb_kwargs: take_map(&mut map, "cb_kwargs")?.unwrap_or_default(),
            encoding: take_str(&mut map, "encoding")?,
            ..RareFields::default()
        };
        if let Some(value) = map.remove("flags") {
            rare.flags = serde_json::from_value(value).map_err(|_| invalid_field("flags"))?;
        }
        if let Some(value) = map.remove("cookies") {
            rare.cookies = serde_json::from_value(value).map_err(|_| invalid_field("cookies"))?;
        }
        rare.unknown = map.into_iter().filter(|(key, _)| !KNOWN.contains(&key.as_str())).collect();
        if rare != RareFields::default() {
            request.rare = Some(Box::new(rare));
        }
        Ok(request)
    }
}

impl FoundBy {
    /// The name in the stored form; `None` for the default, which is omitted.
    fn stored(self) -> Option<&'static str> {
        match self {
            Self::Spider => None,
            Self::Link => Some("link"),
            Self::Sitemap => Some("sitemap"),
        }
    }

    fn from_stored(name: &str) -> Option<Self> {
        [Self::Link, Self::Sitemap].into_iter().find(|found_by| found_by.stored() == Some(name))
    }
}

fn invalid_field(field: &str) -> Error {
    Error::stored_request(field, "missing or of the wrong type")
}

fn take_str(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(invalid_field(key)),
    }
}

fn take_map(map: &mut Map<String, Value>, key: &str) -> Result<Option<Map<String, Value>>> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(inner)) => Ok(Some(inner)),
        Some(_) => Err(invalid_field(key)),
    }
}

fn number<T: TryFrom<i64>>(map: &mut Map<String, Value>, key: &str, default: T) -> Result<T> {
    match map.remove(key) {
        None => Ok(default),
        Some(value) => value.as_i64().and_then(|n| T::try_from(n).ok()).ok_or_else(|| invalid_field(key)),
    }
}

fn headers(value: &Value) -> Option<HeaderMap> {
    let mut out = HeaderMap::new();
    for pair in value.as_array()? {
        let name = HeaderName::from_bytes(pair.get(0)?.as_str()?.as_bytes()).ok()?;
        let value = HeaderValue::from_bytes(&bytes_of_latin1(pair.get(1)?.as_str()?)?).ok()?;
        out.append(name, value);
    }
    Some(out)
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}

fn bytes_of_latin1(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

/// Two requests are equal if their stored forms are equal; `extensions` are ignored.
impl PartialEq for Request {
    fn eq(&self, other: &Self) -> bool {
        self.to_json() == other.to_json()
    }
}

impl From<&Request> for Bytes {
    fn from(request: &Request) -> Self {
        request.to_json().to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_is_equality() {
        let request = Request::parse("https://a.example/x?y=1#frag")
            .unwrap()
            .method(Method::POST)
            .body(vec![0u8, 200, 255])
            .header("X-A", "1")
            .unwrap()
            .header("X-A", "2")
            .unwrap()
            .callback("detail")
            .errback("oops")
            .cb_kwarg("page", 3)
            .cookie("a", "b")
            .flag("seen twice")
            .encoding("windows-1251")
            .priority(-3)
            .meta("proxy", "http://p:1")
            .unfiltered();
        for found_by in [FoundBy::Spider, FoundBy::Link, FoundBy::Sitemap] {
            let request = Request { found_by, ..request.clone() };
            assert_eq!(Request::from_json(request.to_json()).unwrap().found_by, found_by);
        }
        let back = Request::from_json(request.to_json()).unwrap();
        assert_eq!(back, request);
        assert_eq!(back.headers.get_all("x-a").iter().count(), 2);
        assert_eq!(back.body, request.body);
    }

    #[test]
    fn fields_of_a_newer_version_are_kept() {
        let stored = json!({"v": 2, "url": "http://a/", "render": {"wait": "load"}});
        let request = Request::from_json(stored).unwrap();
        assert_eq!(request.to_json()["render"]["wait"], "load");
    }

    #[test]
    fn a_wrong_field_is_named() {
        let error = Request::from_json(json!({"v": 1, "url": "http://a/", "depth": "x"})).unwrap_err();
        assert!(error.to_string().contains("depth"), "{error}");
    }

    #[test]
    fn a_copy_is_independent() {
        let one = Request::parse("http://a/").unwrap().meta("k", 1);
        let mut two = one.clone();
        two.meta.insert("k".into(), 2.into());
        assert_eq!(one.meta["k"], 1);
    }
}
