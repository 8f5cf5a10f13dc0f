//! Writes the responses of an HTTP cache as WARC records.

use std::io::{self, Write};

use http::{Method, Version};
use huntsman_crawler::Timestamp;
use huntsman_warc::{Options, Record, RecordKind, WarcWriter, is_packed, record_id, response_head};

use crate::http_cache::StoredResponse;

/// Writes stored responses into a WARC 1.1 file, each as a gzip member of its own, after a record about the file. Requests are not stored, so there
/// are no records of them.
#[derive(Debug)]
pub struct WarcExport<W: Write>(WarcWriter<W>);

impl<W: Write> WarcExport<W> {
    /// Begins a file, which should be buffered, with a `warcinfo` record.
    ///
    /// # Errors
    /// `out` fails.
    pub fn new(out: W, file_name: &str, at: Timestamp, fields: &[(&str, &str)]) -> io::Result<Self> {
        let mut writer = WarcWriter::new(out, Options::default());
        writer.write(&Record::info(file_name, at.to_rfc3339(), fields))?;
        Ok(Self(writer))
    }

    /// Writes a stored response with its body ([`StoredResponse::body`]); returns whether it was written. A response to
    /// another method than `GET` is left out, because its record would look like the page.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn response(&mut self, response: &StoredResponse, body: &[u8]) -> io::Result<bool> {
        if response.method().is_some_and(|method| method != Method::GET) {
            return Ok(false);
        }
        let head = response_head(response.status(), response.version(), response.headers(), body);
        // The same response has the same id in every export.
        let id = record_id(&[b"response", response.key().as_bytes(), &response.stored().0.to_le_bytes()]);
        let mut record = Record::new(RecordKind::Response, response.stored().to_rfc3339())
            .id(id)
            .field("WARC-Target-URI", &response.url()[..url::Position::AfterQuery]);
        let protocol = match response.version() {
            Version::HTTP_2 => Some("h2"),
            Version::HTTP_3 => Some("h3"),
            _ => None,
        };
        if let Some(protocol) = protocol {
            record = record.field("WARC-Protocol", protocol);
        }
        self.0.write(&record.http(&head, body).packed(is_packed(response.headers(), body)))?;
        Ok(true)
    }

    /// Flushes and returns the underlying writer.
    ///
    /// # Errors
    /// Flushing fails.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish()
    }
}
