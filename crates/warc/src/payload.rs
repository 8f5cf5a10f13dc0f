//! What a record has for a reader of pages: the head of its HTTP message, and the body as it is meant.

use std::borrow::Cow;
use std::io::{self, Read};

use http::{HeaderMap, header};

use crate::head::RecordHead;
use crate::message::{HttpHead, unchunked};

/// Number of codings that may be stacked on a body.
const MAX_CODINGS: usize = 5;

/// The content of a record: the HTTP head, if it has one, and the body without its chunks.
///
/// Archives differ in what they store. Some keep the header of a coding and store the body without it, so chunks are taken off only if the body
/// consists of chunks, and a content coding counts only if the body can be of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    http: Option<HttpHead>,
    /// Of a record that is not an HTTP message.
    media_type: Option<String>,
    body: Vec<u8>,
    is_encoded: bool,
}

impl Payload {
    /// The content of a record with this head and block.
    pub fn new(head: &RecordHead, mut block: Vec<u8>) -> Self {
        let media_type = head.get("Content-Type");
        let is_http = media_type.is_none_or(|value| value.starts_with("application/http"));
        let http = if is_http { HttpHead::parse(&block) } else { None };
        match http {
            Some(http) => {
                let body = block.split_off(http.length.min(block.len()));
                Self::of_message(http, body)
            }
            None => {
                let media_type = media_type.filter(|_| !is_http).map(str::to_owned);
                Self { http: None, media_type, body: block, is_encoded: false }
            }
        }
    }

    /// The content of an HTTP message.
    pub fn of_message(http: HttpHead, body: Vec<u8>) -> Self {
        let is_chunked = http.get("transfer-encoding").is_some_and(|value| {
            value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"))
        });
        let body = if is_chunked { unchunked(&body).unwrap_or(body) } else { body };
        let outermost = codings(&http).pop();
        let is_encoded = outermost.is_some_and(|coding| can_be(&coding, &body));
        Self { http: Some(http), media_type: None, body, is_encoded }
    }

    /// The head of the HTTP message.
    pub fn http(&self) -> Option<&HttpHead> {
        self.http.as_ref()
    }

    /// The status of a response; `None` if the record is no response over HTTP.
    pub fn status(&self) -> Option<u16> {
        self.http.as_ref()?.status()
    }

    /// The value of `Content-Type` of the message, or of the record if it is no message.
    pub fn content_type(&self) -> Option<&str> {
        match &self.http {
            Some(http) => http.get("content-type"),
            None => self.media_type.as_deref(),
        }
    }

    /// The headers that are true of the body: without transfer coding, and without a content coding that the body does not have.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_true = |name: &str| {
            !name.eq_ignore_ascii_case("transfer-encoding")
                && (self.is_encoded || !name.eq_ignore_ascii_case("content-encoding"))
        };
        self.http.iter().flat_map(HttpHead::headers).filter(move |(name, _)| is_true(name))
    }

    /// The body, with its content coding.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body, with its content coding.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// Cuts the body to a length; returns whether it was longer.
    pub(crate) fn cut(&mut self, limit: u64) -> bool {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_longer = self.body.len() > most;
        self.body.truncate(most);
        is_longer
    }

    /// The body without its content coding, and at most its first `limit` bytes.
    ///
    /// # Errors
    /// The coding is not known (gzip, deflate, br and zstd are), or the body is damaged.
    pub fn decoded(&self, limit: u64) -> io::Result<Cow<'_, [u8]>> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let codings = self.http.as_ref().filter(|_| self.is_encoded).map(codings).unwrap_or_default();
        if codings.is_empty() {
            return Ok(Cow::Borrowed(&self.body[..self.body.len().min(most)]));
        }
        if codings.len() > MAX_CODINGS {
            return Err(io::Error::other("the body has too many content codings"));
        }
        let mut reader: Box<dyn Read + '_> = Box::new(&self.body[..]);
        for coding in codings.iter().rev() {
            reader = decoder(coding, reader)?;
        }
        let mut decoded = Vec::new();
        reader.take(limit).read_to_end(&mut decoded)?;
        Ok(Cow::Owned(decoded))
    }
}

/// Whether a body is compressed already, by its content coding or its media type and by its first bytes.
///
/// ```
/// # use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
/// let mut headers = HeaderMap::new();
/// assert!(!huntsman_warc::is_packed(&headers, b"<p>words"));
/// headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
/// assert!(huntsman_warc::is_packed(&headers, b"\x1f\x8b\x08\x00"));
/// assert!(!huntsman_warc::is_packed(&headers, b"<p>words, whatever the header says"));
/// ```
pub fn is_packed(headers: &HeaderMap, body: &[u8]) -> bool {
    let value = |name| headers.get(name).and_then(|value: &http::HeaderValue| value.to_str().ok());
    let coding =
        value(header::CONTENT_ENCODING).and_then(|codings| codings.rsplit(',').next()).map(str::trim);
    match coding.unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "identity" => {}
        coding => return can_be(coding, body),
    }
    let media_type = value(header::CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let is_of_kind = PACKED_TYPES.iter().any(|packed| media_type.starts_with(packed));
    is_of_kind && !is_text(&body[..body.len().min(512)])
}

/// Beginnings of media types whose contents are compressed.
const PACKED_TYPES: [&str; 10] = [
    "image/jpeg",
    "image/png",
    "image/gif",
    "image/webp",
    "image/avif",
    "video/",
    "audio/",
    "font/woff",
    "application/zip",
    "application/gzip",
];

/// The codings in the order in which they were applied.
fn codings(http: &HttpHead) -> Vec<String> {
    let values = http.headers().filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    let codings =
        values.flat_map(|(_, value)| value.split(',')).map(|coding| coding.trim().to_ascii_lowercase());
    codings.filter(|coding| !coding.is_empty() && coding != "identity").collect()
}

/// Whether a body can be of a coding, by its first bytes.
fn can_be(coding: &str, body: &[u8]) -> bool {
    match (coding, body) {
        (_, []) => false,
        ("gzip" | "x-gzip", body) => body.starts_with(&[0x1f, 0x8b]),
        ("zstd", body) => body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]),
        // The others begin with no certain bytes, but do not look like text.
        (_, body) => !is_text(&body[..body.len().min(512)]),
    }
}

fn is_text(start: &[u8]) -> bool {
    let end = match std::str::from_utf8(start) {
        Ok(_) => start.len(),
        // The last character may be cut.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => return false,
    };
    start[..end].iter().all(|byte| *byte >= b' ' || matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c'))
}

fn decoder<'a>(coding: &str, mut reader: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
    match coding {
        "gzip" | "x-gzip" => Ok(Box::new(flate2::read::MultiGzDecoder::new(reader))),
        "br" => Ok(Box::new(brotli_decompressor::Decompressor::new(reader, 16 << 10))),
        "zstd" => Ok(Box::new(zstd::stream::read::Decoder::new(reader)?)),
        "deflate" => {
            // The standard means zlib; some servers send deflate without its frame.
            let mut start = [0; 2];
            let read = reader.read(&mut start)?;
            let is_framed = start[0] & 0x0f == 8 && u16::from_be_bytes(start) % 31 == 0;
            let whole = io::Cursor::new(start[..read].to_vec()).chain(reader);
            Ok(match is_framed {
                true => Box::new(flate2::read::ZlibDecoder::new(whole)),
                false => Box::new(flate2::read::DeflateDecoder::new(whole)),
            })
        }
        other => Err(io::Error::other(format!("the content coding is not known: {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const PAGE: &[u8] = b"<html><p>a page, and the same again, and the same again, \xc3\xa9</p></html>";

    fn payload(headers: &str, body: &[u8]) -> Payload {
        let head = format!("HTTP/1.1 200 OK\r\n{headers}\r\n");
        Payload::of_message(HttpHead::parse(head.as_bytes()).unwrap(), body.to_vec())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn deflate(bytes: &[u8], is_framed: bool) -> Vec<u8> {
        if is_framed {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        } else {
            let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(bytes).unwrap();
            out.finish().unwrap()
        }
    }

    #[test]
    fn bodies_lose_the_codings_that_they_have() {
        let zstd = zstd::encode_all(PAGE, 1).unwrap();
        let twice = gzip(&deflate(PAGE, true));
        for (coding, body) in [
            ("gzip", gzip(PAGE)),
            ("deflate", deflate(PAGE, true)),
            ("deflate", deflate(PAGE, false)),
            ("zstd", zstd),
            ("deflate, gzip", twice),
            ("identity", PAGE.to_vec()),
        ] {
            let payload = payload(&format!("Content-Encoding: {coding}\r\n"), &body);
            assert_eq!(payload.decoded(1 << 20).unwrap(), PAGE, "{coding}");
            assert_eq!(payload.body(), body, "{coding}");
            assert_eq!(payload.decoded(5).unwrap(), &PAGE[..5], "{coding}");
        }
    }

    #[test]
    fn a_coding_that_was_undone_before_is_not_undone_again() {
        for coding in ["gzip", "deflate", "br", "zstd", "unheard-of"] {
            let payload = payload(&format!("Content-Encoding: {coding}\r\nX-A: b\r\n"), PAGE);
            assert_eq!(payload.decoded(1 << 20).unwrap(), PAGE, "{coding}");
            assert_eq!(payload.headers().collect::<Vec<_>>(), [("X-A", "b")], "{coding}");
        }
        let chunked = payload("Transfer-Encoding: gzip, chunked\r\n", b"3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(chunked.body(), b"abc");
        let undone = payload("Transfer-Encoding: chunked\r\n", PAGE);
        assert_eq!(undone.body(), PAGE);
    }

    #[test]
    fn a_damaged_body_is_an_error_and_a_bomb_ends_at_the_limit() {
        let mut cut = gzip(PAGE);
        cut.truncate(20);
        assert!(payload("Content-Encoding: gzip\r\n", &cut).decoded(1 << 20).is_err());
        let bomb = gzip(&vec![0; 10 << 20]);
        assert_eq!(payload("Content-Encoding: gzip\r\n", &bomb).decoded(1000).unwrap().len(), 1000);
        let many = ["gzip"; 6].join(",");
        assert!(payload(&format!("Content-Encoding: {many}\r\n"), &bomb).decoded(1000).is_err());
    }
}
