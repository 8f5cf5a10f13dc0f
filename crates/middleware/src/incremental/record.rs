//! The record of a page from earlier crawls, and its format on disk.

use std::io::Read;

use http::{HeaderName, HeaderValue, header};
use huntsman_crawler::{Error, FoundBy, Request, Response, Result, Timestamp};
use huntsman_detect::simhash::SimHash;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One page, as of the last fetch that gave information.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_modified: Option<String>,
    /// xxh3-64 of the decoded body.
    pub(crate) hash: u64,
    /// Fingerprint of the words of the page with that body, by the default features; `None` for a page without words,
    /// and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "digits")]
    pub(crate) simhash: Option<SimHash>,
    /// Status of the last response that was no 304.
    pub(crate) status: u16,
    /// Time of the last response, 304 included; microseconds since the epoch.
    pub(crate) fetched: Timestamp,
    /// Time of the first response with this content.
    pub(crate) changed: Timestamp,
    /// The requests that the callback returned: a URL for a link that was followed automatically, else the stored form
    /// of a request.
    pub(crate) links: Vec<Value>,
}

/// The format that is written; the first byte of a value. Compressed JSON follows it.
const FORMAT: u8 = 1;
/// zstd's own default; lists of links become about a tenth.
const LEVEL: i32 = 3;
/// Maximum size of the JSON of a record; `max_links_per_page` long URLs take less.
const MAX_JSON_BYTES: u64 = 64 << 20;

impl Record {
    /// Creates a record from the headers of a response.
    pub(crate) fn of(response: &Response, hash: u64, now: Timestamp) -> Self {
        let text = |name: HeaderName| response.header(name).map(str::to_owned);
        Self {
            etag: text(header::ETAG),
            last_modified: text(header::LAST_MODIFIED),
            hash,
            simhash: None,
            status: response.status.as_u16(),
            fetched: now,
            changed: now,
            links: Vec::new(),
        }
    }

    /// The request headers that ask the server whether the page changed.
    pub(crate) fn validators(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        [(header::IF_NONE_MATCH, &self.etag), (header::IF_MODIFIED_SINCE, &self.last_modified)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, HeaderValue::from_str(value.as_deref()?).ok()?)))
    }

    /// The requests that the page leads to; those that can no longer be read are left out.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let read = |link: &Value| match link {
            Value::String(url) => Request::parse(url).ok().map(|mut link| {
                link.found_by = FoundBy::Link;
                link
            }),
            stored => Request::from_json(stored.clone()).ok(),
        };
        self.links.iter().filter_map(read).collect()
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = vec![FORMAT];
        out.append(&mut zstd::bulk::compress(&serde_json::to_vec(self)?, LEVEL)?);
        Ok(out)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Some((&FORMAT, packed)) = bytes.split_first() else {
            return Err(Error::msg("the record of a page has another format"));
        };
        let mut json = Vec::new();
        zstd::stream::read::Decoder::with_buffer(packed)?.take(MAX_JSON_BYTES).read_to_end(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }
}

/// A fingerprint in its text form: JSON has no numbers of 128 bits.
mod digits {
    use super::SimHash;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(hash: &Option<SimHash>, to: S) -> Result<S::Ok, S::Error> {
        match hash {
            Some(hash) => to.collect_str(hash),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SimHash>, D::Error> {
        let digits = Option::<String>::deserialize(from)?;
        digits.map(|digits| digits.parse().map_err(D::Error::custom)).transpose()
    }
}

/// The stored form of a link, without the fields that the engine sets again from its page.
pub(crate) fn link(request: &Request) -> Value {
    let mut plain = request.clone();
    plain.depth = 0;
    plain.referer = None;
    let stored = plain.to_json();
    // Version, address and that it is a link are all there is.
    match stored.as_object() {
        Some(fields) if fields.len() == 3 && request.found_by == FoundBy::Link => request.url.as_str().into(),
        _ => stored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let url = url::Url::parse("http://h/").unwrap();
        let mut response = Response::new(url, StatusCode::OK, "x");
        response.headers.insert("etag", "\"1\"".parse().unwrap());
        let mut record = Record::of(&response, 7, Timestamp(5));
        let mut followed = Request::parse("http://h/a").unwrap();
        (followed.depth, followed.referer) = (3, Some("http://h/".into()));
        followed.found_by = FoundBy::Link;
        let special = Request::parse("http://h/b").unwrap().callback("item").meta("k", 1);
        let named = Request::parse("http://h/c").unwrap();
        record.links = vec![link(&followed), link(&special), link(&named)];
        record.simhash = Some(SimHash(0x1f << 120 | 3));
        assert_eq!(record.links[0], "http://h/a");
        let back = Record::from_bytes(&record.to_bytes().unwrap()).unwrap();
        assert_eq!(back, record);
        let requests = back.requests();
        assert_eq!((requests[0].depth, requests[0].url.as_str()), (0, "http://h/a"));
        assert_eq!((&*requests[1].callback, &requests[1].meta["k"]), ("item", &1.into()));
        let found_by: Vec<FoundBy> = requests.iter().map(|request| request.found_by).collect();
        assert_eq!(found_by, [FoundBy::Link, FoundBy::Spider, FoundBy::Spider]);
        assert_eq!(back.validators().count(), 1);
    }

    #[test]
    fn a_record_of_before_fingerprints_is_read() {
        // Written by the program as it was then.
        let record = Record::from_bytes(include_bytes!("../../tests/fixtures/page-1.record")).unwrap();
        let expected = Record {
            etag: Some("\"a1\"".into()),
            last_modified: Some("Wed, 21 Oct 2015 07:28:00 GMT".into()),
            hash: 0x0123_4567_89ab_cdef,
            simhash: None,
            status: 200,
            fetched: Timestamp(1_700_000_000_000_000),
            changed: Timestamp(1_600_000_000_000_000),
            links: vec!["http://h/a".into(), link(&Request::parse("http://h/b").unwrap().callback("item"))],
        };
        assert_eq!(record, expected);
        assert_eq!(record.requests().len(), 2);
    }

    #[test]
    fn a_fingerprint_that_is_none_is_an_error() {
        let json = r#"{"hash":1,"simhash":"12","status":200,"fetched":1,"changed":1,"links":[]}"#;
        let error = serde_json::from_str::<Record>(json).unwrap_err();
        assert!(error.to_string().contains("32 hexadecimal digits"), "{error}");
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let whole = Record::default().to_bytes().unwrap();
        for end in 0..whole.len() {
            assert!(Record::from_bytes(&whole[..end]).is_err(), "{end} of {} bytes", whole.len());
        }
    }
}
