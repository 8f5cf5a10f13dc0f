//! Texts of many documents: lines of JSON, files, stdin, buckets.

use std::ops::ControlFlow;

use huntsman::dedup::{Body, RawDocument, ReadOptions, Source, SourceError};
use huntsman::detect::copyvio::Text;
use serde::Deserialize;
use serde_json::Value;

use crate::exit::Outcome;
use crate::render::{escape, warn};

/// Reads documents, and counts those that cannot be read.
#[derive(Debug)]
pub(crate) struct Documents {
    /// Maximum size of a document in bytes.
    max_bytes: u64,
    /// Number of texts that were read.
    pub(crate) texts: u64,
    /// Number of documents without a text.
    pub(crate) errors: u64,
}

/// The fields that are read from a line of input; all others are ignored.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Value,
    /// The id in the records of a crawl.
    url: Option<String>,
    text: Option<String>,
    html: Option<String>,
}

/// Number of errors that are printed one by one.
const MAX_PRINTED: u64 = 20;

impl Documents {
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self { max_bytes, texts: 0, errors: 0 }
    }

    /// Passes the id and the text of each document of a source to `take`. A document that cannot be read is reported on
    /// stderr and skipped.
    ///
    /// # Errors
    /// `take` returned an error.
    pub(crate) fn each(
        &mut self,
        source: &Source,
        take: &mut dyn FnMut(&str, Text) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut failure = None;
        let options = ReadOptions { max_document: self.max_bytes, ..ReadOptions::default() };
        let _ = source.read(&options, &mut |raw| {
            if is_left_out(&raw) {
                return ControlFlow::Continue(());
            }
            let document = raw.map_err(|broken| broken.to_string()).and_then(|raw| {
                let place = raw.position.to_string();
                document(raw).map_err(|why| format!("{place}: {why}"))
            });
            match document {
                Ok((id, text)) => {
                    self.texts += 1;
                    if let Err(error) = take(&id, text) {
                        failure = Some(error);
                        return ControlFlow::Break(());
                    }
                }
                Err(why) => {
                    self.errors += 1;
                    if self.errors <= MAX_PRINTED {
                        warn(&escape(&why));
                    }
                }
            }
            ControlFlow::Continue(())
        });
        failure.map_or(Ok(()), Err)
    }
}

/// Whether a record of an archive is no document, such as an image or an error page.
pub(super) fn is_left_out(raw: &Result<RawDocument, SourceError>) -> bool {
    matches!(raw, Ok(RawDocument { body: Body::LeftOut(_), .. }))
}

/// The id of a document and its text.
pub(super) fn document(raw: RawDocument) -> Result<(String, Text), String> {
    match raw.body {
        Body::Unreadable(why) => Err(why),
        Body::LeftOut(why) => Err(format!("no document: {why}")),
        Body::Fingerprint(_) => Err("no document: a fingerprint has no text".to_owned()),
        Body::Archived { id, is_html, charset, bytes, .. } => match is_html {
            true => Ok((id, Text::html(&bytes, charset.as_deref()))),
            false => Ok((id, Text::plain(&bytes, charset.as_deref()))),
        },
        Body::File { path, is_html: true, bytes } => Ok((path, Text::html(&bytes, None))),
        Body::File { path, is_html: false, bytes } => Ok((path, Text::plain(&bytes, None))),
        Body::Line(bytes) => {
            let line: Line = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
            let id = match (line.id, line.url) {
                (Value::String(id), _) | (Value::Null, Some(id)) => id,
                (Value::Null, None) => return Err("neither id nor url".to_owned()),
                (other, _) => other.to_string(),
            };
            match (line.html, line.text) {
                (Some(html), _) => Ok((id, Text::html(html.as_bytes(), Some("utf-8")))),
                (None, Some(text)) => Ok((id, Text::new(text))),
                (None, None) => Err("neither text nor html; a crawl has text with --text".to_owned()),
            }
        }
    }
}
