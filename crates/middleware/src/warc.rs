//! WARC 1.1 (ISO 28500:2017): stored responses as records that archives and their tools read.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, Method, StatusCode, Version, header};
use huntsman_crawler::Timestamp;
use url::Url;
use xxhash_rust::xxh3::xxh3_128;

use crate::http_cache::StoredResponse;

/// Writes records, each as a separate gzip member, so that a reader can begin at any of them.
///
/// The records are `warcinfo` and `response`. The block of a response is a status line, the headers, and the body with
/// its content codings. Transfer codings are not part of it: `Transfer-Encoding`, and a `Content-Length` that differs
/// from the length of the body, are written under the names that archives use for such headers, `X-Archive-Orig-...`.
/// HTTP/2 responses get a status line of HTTP/1.1, as readers expect, and the field `WARC-Protocol: h2`. Digests are
/// not written; they are optional.
#[derive(Debug)]
pub struct WarcWriter<W: Write> {
    out: W,
    /// The id of the `warcinfo` that later records point to.
    info: Option<String>,
    records: u64,
}

/// The fields of a response record besides its block.
struct Record<'a> {
    id: String,
    url: &'a Url,
    at: Timestamp,
    status: StatusCode,
    version: Version,
    headers: &'a HeaderMap,
    body: &'a [u8],
}

impl<W: Write> WarcWriter<W> {
    /// Creates a writer to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, info: None, records: 0 }
    }

    /// Writes a `warcinfo` record with fields by name, such as `software`; the records after it belong to it.
    ///
    /// # Errors
    /// `out` fails.
    pub fn info(&mut self, file_name: &str, at: Timestamp, fields: &[(&str, &str)]) -> io::Result<()> {
        let block: String =
            fields.iter().map(|(name, value)| format!("{name}: {}\r\n", one_line(value))).collect();
        let id = record_id(&[b"warcinfo", file_name.as_bytes(), &at.0.to_le_bytes(), block.as_bytes()]);
        let head = [
            ("WARC-Type", "warcinfo".to_owned()),
            ("WARC-Record-ID", id.clone()),
            ("WARC-Date", at.to_rfc3339()),
            ("WARC-Filename", one_line(file_name)),
            ("Content-Type", "application/warc-fields".to_owned()),
        ];
        self.record(&head, block.as_bytes())?;
        self.info = Some(id);
        Ok(())
    }

    /// Writes a stored response with its body ([`StoredResponse::body`]); returns whether it was written. A response to
    /// another method than `GET` is left out, because its record would look like the page.
    ///
    /// # Errors
    /// `out` fails.
    pub fn response(&mut self, answer: &StoredResponse, body: &[u8]) -> io::Result<bool> {
        if answer.method().is_some_and(|method| method != Method::GET) {
            return Ok(false);
        }
        self.page(&Record {
            // The same response has the same id in every export.
            id: record_id(&[b"response", answer.key().as_bytes(), &answer.stored().0.to_le_bytes()]),
            url: answer.url(),
            at: answer.stored(),
            status: answer.status(),
            version: answer.version(),
            headers: answer.headers(),
            body,
        })?;
        Ok(true)
    }

    fn page(&mut self, record: &Record<'_>) -> io::Result<()> {
        let mut head = vec![
            ("WARC-Type", "response".to_owned()),
            ("WARC-Record-ID", record.id.clone()),
            ("WARC-Date", record.at.to_rfc3339()),
            ("WARC-Target-URI", record.url[..url::Position::AfterQuery].to_owned()),
            ("Content-Type", "application/http;msgtype=response".to_owned()),
        ];
        head.extend(self.info.clone().map(|id| ("WARC-Warcinfo-ID", id)));
        let protocol = match record.version {
            Version::HTTP_2 => Some("h2"),
            Version::HTTP_3 => Some("h3"),
            _ => None,
        };
        head.extend(protocol.map(|protocol| ("WARC-Protocol", protocol.to_owned())));
        self.record(&head, &http_block(record))
    }

    fn record(&mut self, head: &[(&str, String)], block: &[u8]) -> io::Result<()> {
        let mut member = GzEncoder::new(&mut self.out, Compression::default());
        member.write_all(b"WARC/1.1\r\n")?;
        for (name, value) in head {
            write!(member, "{name}: {value}\r\n")?;
        }
        write!(member, "Content-Length: {}\r\n\r\n", block.len())?;
        member.write_all(block)?;
        member.write_all(b"\r\n\r\n")?;
        member.finish()?;
        self.records += 1;
        Ok(())
    }

    /// The number of records written, `warcinfo` included.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Flushes and returns the underlying writer.
    ///
    /// # Errors
    /// Flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The response as it could have been sent over HTTP/1.1.
fn http_block(record: &Record<'_>) -> Vec<u8> {
    let version = if record.version == Version::HTTP_10 { "1.0" } else { "1.1" };
    let reason = record.status.canonical_reason().unwrap_or_default();
    let mut block = format!("HTTP/{version} {} {reason}\r\n", record.status.as_u16()).into_bytes();
    let length = record.body.len().to_string();
    for (name, value) in record.headers {
        let is_of_transfer = name == header::TRANSFER_ENCODING
            || (name == header::CONTENT_LENGTH && value.as_bytes() != length.as_bytes());
        if is_of_transfer {
            block.extend_from_slice(b"X-Archive-Orig-");
        }
        block.extend_from_slice(name.as_str().as_bytes());
        block.extend_from_slice(b": ");
        block.extend_from_slice(value.as_bytes());
        block.extend_from_slice(b"\r\n");
    }
    let is_told = |value: &http::HeaderValue| value.as_bytes() == length.as_bytes();
    if !record.headers.get_all(header::CONTENT_LENGTH).iter().any(is_told) {
        block.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
    }
    block.extend_from_slice(b"\r\n");
    block.extend_from_slice(record.body);
    block
}

/// An id derived from the given parts: a UUID of version 8 (RFC 9562).
fn record_id(parts: &[&[u8]]) -> String {
    let hash = xxh3_128(&parts.join(&0));
    let hash = (hash & !(0xf << 76)) | (0x8 << 76);
    let hash = (hash & !(0x3 << 62)) | (0x2 << 62);
    let digits = format!("{hash:032x}");
    let [a, b, c, d, e] = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("<urn:uuid:{a}-{b}-{c}-{d}-{e}>")
}

/// Replaces line breaks, which a field value cannot contain.
fn one_line(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;

    use super::*;

    fn record<'a>(url: &'a Url, headers: &'a HeaderMap, body: &'a [u8]) -> Record<'a> {
        Record {
            id: record_id(&[b"test"]),
            url,
            at: Timestamp(1_700_000_000_123_456),
            status: StatusCode::OK,
            version: Version::HTTP_2,
            headers,
            body,
        }
    }

    #[test]
    fn a_record_is_a_member_with_the_fields_of_the_standard() {
        let url = Url::parse("http://h/a?b#c").unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("transfer-encoding", "chunked"), ("content-length", "99"), ("x-a", "1"), ("x-a", "2")]
        {
            headers.append(name, value.parse().unwrap());
        }
        let mut warc = WarcWriter::new(Vec::new());
        warc.info("a.warc.gz", Timestamp(0), &[("software", "test\r\nforged: 1")]).unwrap();
        let first = warc.out.len();
        warc.page(&record(&url, &headers, b"body")).unwrap();
        assert_eq!(warc.records(), 2);
        let out = warc.finish().unwrap();
        let text = |bytes: &[u8]| {
            let mut text = String::new();
            MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(&out[first..first + 2], [0x1f, 0x8b], "a member of its own");
        let info = text(&out[..first]);
        assert!(info.starts_with("WARC/1.1\r\nWARC-Type: warcinfo\r\n"), "{info}");
        assert!(info.ends_with("\r\n\r\nsoftware: test  forged: 1\r\n\r\n\r\n"), "{info}");
        let id = info.lines().find_map(|line| line.strip_prefix("WARC-Record-ID: ")).unwrap();
        let block = "HTTP/1.1 200 OK\r\nX-Archive-Orig-transfer-encoding: chunked\r\n\
            X-Archive-Orig-content-length: 99\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 4\r\n\r\nbody";
        let expected = format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: {}\r\nWARC-Date: 2023-11-14T22:13:20.123Z\r\n\
             WARC-Target-URI: http://h/a?b\r\nContent-Type: application/http;msgtype=response\r\n\
             WARC-Warcinfo-ID: {id}\r\nWARC-Protocol: h2\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            record_id(&[b"test"]),
            block.len()
        );
        assert_eq!(text(&out[first..]), expected);
    }

    #[test]
    fn ids_are_uuids_and_differ() {
        let (a, b) = (record_id(&[b"ab", b"c"]), record_id(&[b"a", b"bc"]));
        assert_ne!(a, b);
        for id in [a, b] {
            let digits = id.strip_prefix("<urn:uuid:").unwrap().strip_suffix('>').unwrap();
            let lengths: Vec<usize> = digits.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&digits[14..15], "8", "{id}");
            assert!("89ab".contains(&digits[19..20]), "{id}");
        }
    }
}
