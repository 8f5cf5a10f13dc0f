//! A cache entry, and its format on disk.

use std::io::Read;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use huntsman_crawler::{CREDENTIALS, Request, Response, Timestamp};
use url::Url;

/// A response as it was received, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) stored: Timestamp,
    pub(crate) url: Url,
    /// `None` if the entry has the first format, which lacks it.
    pub(crate) method: Option<Method>,
    /// The request headers by which the response varies.
    pub(crate) vary_values: VaryValues,
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// With its content codings.
    pub(crate) body: Bytes,
}

/// Names and values of request headers; `None` where the value is a secret, or the header was absent.
pub(crate) type VaryValues = Vec<(String, Option<String>)>;

/// A cache entry whose body has not been decompressed.
#[derive(Clone, Debug)]
pub(crate) struct UnreadEntry<'a> {
    /// Without its body.
    pub(crate) head: Entry,
    pub(crate) body_length: usize,
    is_packed: bool,
    rest: &'a [u8],
}

/// The stored bytes are corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged(&'static str);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the stored answer is damaged: {}", self.0)
    }
}

impl std::error::Error for Damaged {}

/// The format that is written; the first byte of a value. The first format had neither method nor varying headers, and
/// can be read.
const FORMAT: u8 = 2;
/// Smaller bodies are not compressed: they would save no page on disk.
const MIN_COMPRESSED: usize = 256;
/// The default level of zstd: compresses HTML to about a fifth at some 300 MB/s.
const LEVEL: i32 = 3;
/// Initial capacity for a body: the stored length is not trusted.
const INITIAL_CAPACITY: usize = 64 << 10;

impl Entry {
    pub(crate) fn of(request: &Request, response: &Response, now: Timestamp) -> Self {
        Self {
            stored: now,
            url: response.url.clone(),
            method: Some(request.method.clone()),
            vary_values: VaryValues::new(),
            status: response.status,
            version: response.version,
            headers: response.headers.clone(),
            body: response.body.clone(),
        }
    }

    /// The response, with the flag `cached`.
    pub(crate) fn response(&self) -> Response {
        let mut response = Response::new(self.url.clone(), self.status, self.body.clone());
        response.version = self.version;
        response.headers = self.headers.clone();
        response.add_flag("cached");
        response
    }

    /// Records the request headers by which the response varies. Credentials are not stored in the cache.
    pub(crate) fn set_vary_values(&mut self, names: &[String], asked: &HeaderMap) {
        let is_secret = |name: &str| {
            CREDENTIALS.iter().any(|secret| name.eq_ignore_ascii_case(secret.as_str()))
                || asked.get_all(name).iter().any(HeaderValue::is_sensitive)
        };
        let value = |name: &String| {
            if is_secret(name) {
                return None;
            }
            let values: Vec<_> =
                asked.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        self.vary_values = names.iter().map(|name| (name.clone(), value(name))).collect();
    }

    /// Serializes the entry: format, time in microseconds, status, version; URL, method, varying headers, headers and
    /// body with their lengths; the body is compressed if that makes it smaller. Numbers are little-endian. Checksums
    /// are added by the store.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let coded = self.headers.contains_key(http::header::CONTENT_ENCODING);
        let packed = (!coded && self.body.len() >= MIN_COMPRESSED)
            .then(|| zstd::bulk::compress(&self.body, LEVEL).ok())
            .flatten()
            .filter(|packed| packed.len() < self.body.len());
        let body = packed.as_deref().unwrap_or(&self.body);
        let mut out = Vec::with_capacity(body.len() + 1_024);
        out.push(FORMAT);
        out.extend_from_slice(&self.stored.0.to_le_bytes());
        out.extend_from_slice(&self.status.as_u16().to_le_bytes());
        out.push(version_number(self.version));
        put(&mut out, self.url.as_str().as_bytes());
        put(&mut out, self.method.as_ref().map_or("", Method::as_str).as_bytes());
        put_length(&mut out, self.vary_values.len());
        for (name, value) in &self.vary_values {
            put(&mut out, name.as_bytes());
            out.push(u8::from(value.is_some()));
            put(&mut out, value.as_deref().unwrap_or_default().as_bytes());
        }
        put_length(&mut out, self.headers.len());
        for (name, value) in &self.headers {
            put(&mut out, name.as_str().as_bytes());
            put(&mut out, value.as_bytes());
        }
        out.push(u8::from(packed.is_some()));
        put_length(&mut out, self.body.len());
        out.extend_from_slice(body);
        out
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Damaged> {
        let unread = Self::unread(bytes)?;
        Ok(Self { body: unread.body()?, ..unread.head })
    }

    /// Reads everything except the body.
    pub(crate) fn unread(bytes: &[u8]) -> Result<UnreadEntry<'_>, Damaged> {
        let mut rest = bytes;
        let format = take(&mut rest, 1)?[0];
        if !(1..=FORMAT).contains(&format) {
            return Err(Damaged("another format"));
        }
        let stored = Timestamp(u64::from_le_bytes(array(&mut rest)?));
        let status = StatusCode::from_u16(u16::from_le_bytes(array(&mut rest)?));
        let status = status.map_err(|_| Damaged("no such status"))?;
        let version = version_of(take(&mut rest, 1)?[0]);
        let url = string(&mut rest)?.parse().map_err(|_| Damaged("the URL is none"))?;
        let (mut method, mut vary_values) = (None, VaryValues::new());
        if format > 1 {
            let name = string(&mut rest)?;
            if !name.is_empty() {
                method = Some(name.parse().map_err(|_| Damaged("no such method"))?);
            }
            for _ in 0..length(&mut rest)? {
                let name = string(&mut rest)?.to_owned();
                let is_there = take(&mut rest, 1)?[0] == 1;
                let value = string(&mut rest)?;
                vary_values.push((name, is_there.then(|| value.to_owned())));
            }
        }
        let mut headers = HeaderMap::new();
        for _ in 0..length(&mut rest)? {
            let name = HeaderName::from_bytes(text(&mut rest)?).map_err(|_| Damaged("no header name"))?;
            let value = HeaderValue::from_bytes(text(&mut rest)?).map_err(|_| Damaged("no header value"))?;
            headers.try_append(name, value).map_err(|_| Damaged("too many headers"))?;
        }
        let is_packed = take(&mut rest, 1)?[0] == 1;
        let body_length = length(&mut rest)?;
        let head = Self { stored, url, method, vary_values, status, version, headers, body: Bytes::new() };
        Ok(UnreadEntry { head, body_length, is_packed, rest })
    }

    /// When an entry was stored; 0 if its bytes cannot be read.
    pub(crate) fn stored_at(bytes: &[u8]) -> Timestamp {
        let time = bytes.get(1..9).and_then(|time| time.try_into().ok());
        Timestamp(time.map_or(0, u64::from_le_bytes))
    }
}

impl UnreadEntry<'_> {
    /// Reads the body.
    pub(crate) fn body(&self) -> Result<Bytes, Damaged> {
        let body = if self.is_packed { unpack(self.rest, self.body_length)? } else { self.rest.to_vec() };
        if body.len() != self.body_length {
            return Err(Damaged("the body has another length"));
        }
        Ok(body.into())
    }
}

fn unpack(packed: &[u8], length: usize) -> Result<Vec<u8>, Damaged> {
    let broken = |_| Damaged("the body does not unpack");
    let mut body = Vec::with_capacity(length.min(INITIAL_CAPACITY));
    let reader = zstd::stream::read::Decoder::with_buffer(packed).map_err(broken)?;
    // One byte more than the length shows whether there is more.
    reader.take(length as u64 + 1).read_to_end(&mut body).map_err(broken)?;
    Ok(body)
}

fn version_number(version: Version) -> u8 {
    match version {
        Version::HTTP_09 => 9,
        Version::HTTP_10 => 10,
        Version::HTTP_2 => 20,
        Version::HTTP_3 => 30,
        _ => 11,
    }
}

fn version_of(number: u8) -> Version {
    match number {
        9 => Version::HTTP_09,
        10 => Version::HTTP_10,
        20 => Version::HTTP_2,
        30 => Version::HTTP_3,
        _ => Version::HTTP_11,
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Damaged> {
    let (taken, left) = rest.split_at_checked(length).ok_or(Damaged("cut off"))?;
    *rest = left;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Damaged> {
    take(rest, N)?.try_into().map_err(|_| Damaged("cut off"))
}

fn length(rest: &mut &[u8]) -> Result<usize, Damaged> {
    usize::try_from(u64::from_le_bytes(array(rest)?)).map_err(|_| Damaged("a length beyond memory"))
}

fn text<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Damaged> {
    let length = length(rest)?;
    take(rest, length)
}

fn string<'a>(rest: &mut &'a [u8]) -> Result<&'a str, Damaged> {
    std::str::from_utf8(text(rest)?).map_err(|_| Damaged("no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(body: impl Into<Bytes>) -> Entry {
        let mut request = Request::parse("http://h/a?b").unwrap().method(Method::POST);
        let mut response = Response::new(request.url.clone(), StatusCode::NOT_FOUND, body);
        response.version = Version::HTTP_2;
        for (name, value) in [("x-a", &b"1"[..]), ("x-a", b"\xe9"), ("etag", b"\"v\"")] {
            let name = HeaderName::from_static(name);
            response.headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        for (name, value) in [("accept", "x"), ("accept", "y"), ("cookie", "secret=1")] {
            request.headers.append(name, HeaderValue::from_static(value));
        }
        let mut entry = Entry::of(&request, &response, Timestamp(1_700_000_000_123_456));
        let names = ["Accept", "Cookie", "accept-language"].map(str::to_owned);
        entry.set_vary_values(&names, &request.headers);
        entry
    }

    #[test]
    fn an_answer_comes_back_as_it_was() {
        for body in [String::new(), "short".to_owned(), "<p>again</p>".repeat(5_000)] {
            let entry = entry(body.clone());
            let bytes = entry.to_bytes();
            assert_eq!(Entry::from_bytes(&bytes).unwrap(), entry);
            let response = entry.response();
            assert_eq!((&response.body[..], response.flags), (body.as_bytes(), vec!["cached"]));
            let unread = Entry::unread(&bytes).unwrap();
            assert_eq!((unread.body_length, Entry::stored_at(&bytes)), (body.len(), entry.stored));
        }
        assert!(entry("<p>again</p>".repeat(5_000)).to_bytes().len() < 1_000, "bodies are compressed");
    }

    #[test]
    fn credentials_are_not_noted() {
        let vary_values = entry("").vary_values;
        let expected = [("Accept", Some("x, y")), ("Cookie", None), ("accept-language", None)];
        assert_eq!(vary_values, expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))));
    }

    #[test]
    fn a_cut_or_changed_value_is_damaged_and_never_a_panic() {
        let whole = entry("<p>again</p>".repeat(100)).to_bytes();
        for end in 0..whole.len() {
            assert!(Entry::from_bytes(&whole[..end]).is_err(), "{end} of {} bytes", whole.len());
        }
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut changed = whole.clone();
                changed[at] ^= bit;
                // Some changes give valid entries; the store's checksum detects those.
                let _ = Entry::from_bytes(&changed);
            }
        }
        let mut newer = whole;
        newer[0] = FORMAT + 1;
        assert_eq!(Entry::from_bytes(&newer), Err(Damaged("another format")));
    }

    #[test]
    fn a_body_that_unpacks_to_more_than_it_says_is_damaged() {
        let bomb = zstd::bulk::compress(&vec![0; 1 << 20], 3).unwrap();
        assert_eq!(unpack(&bomb, 10).unwrap().len(), 11);
    }
}
