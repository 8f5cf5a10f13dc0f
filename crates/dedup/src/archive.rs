//! Documents of WARC files: pages of crawls, and the texts of pages (WET).

use std::io::Read;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;

use huntsman_html::content_charset;
use huntsman_text::lang::Lang;
use huntsman_warc::{Payload, ReadError, RecordHead, WarcReader};

use crate::input::{Each, too_long};
use crate::record::{Body, Position, RawDocument};

/// Longest head of an HTTP message, which the length of a document does not count.
const HEAD: u64 = 64 << 10;

/// The id of a document in an archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveId {
    /// Its URL, so that a later capture of a page replaces an earlier one.
    #[default]
    Url,
    /// The id of its record, without angle brackets.
    Record,
    /// Its time as 14 digits, a slash, and its URL.
    UrlDate,
}

impl FromStr for ArchiveId {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "url" => Ok(Self::Url),
            "record" => Ok(Self::Record),
            "url-date" => Ok(Self::UrlDate),
            _ => Err("use url, record or url-date".to_owned()),
        }
    }
}

impl ArchiveId {
    fn of(self, head: &RecordHead) -> Result<String, String> {
        let needed = |value: Option<&str>, field: &str| {
            value.map(str::to_owned).ok_or_else(|| format!("the record has no {field}, and so no id"))
        };
        let url = || needed(head.target(), "WARC-Target-URI");
        match self {
            Self::Url => url(),
            Self::Record => {
                let id = needed(head.id(), "WARC-Record-ID")?;
                Ok(id.trim_matches(['<', '>']).to_owned())
            }
            Self::UrlDate => {
                let date = needed(head.date(), "WARC-Date")?;
                let digits: String = date.chars().filter(char::is_ascii_digit).take(14).collect();
                Ok(format!("{digits}/{}", url()?))
            }
        }
    }
}

/// Passes on the documents of a file in their order. What is damaged is a document that cannot be read, and the records behind it are read.
pub(crate) fn documents(
    file: impl Read,
    name: &Arc<str>,
    max_document: u64,
    id: ArchiveId,
    each: Each<'_>,
) -> Result<ControlFlow<()>, String> {
    let mut reader = WarcReader::new(file);
    loop {
        let body = match next(&mut reader, 0, max_document, id) {
            Ok(Some(Some(body))) => body,
            Ok(Some(None)) => continue,
            Ok(None) => return Ok(ControlFlow::Continue(())),
            Err(error) if error.is_damage() => Body::Unreadable(error.to_string()),
            Err(error) => return Err(format!("{name}: {error}")),
        };
        let position = Position { source: Arc::clone(name), line: None };
        if each(Ok(RawDocument { position, body })).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

/// The document of the record that an index names; `None` if it can be none.
pub(crate) fn member(record: impl Read, offset: u64, max_document: u64, id: ArchiveId) -> Option<Body> {
    match next(&mut WarcReader::new(record), offset, max_document, id) {
        Ok(Some(body)) => body,
        Ok(None) => Some(Body::Unreadable(format!("no record begins at byte {offset}"))),
        Err(error) => Some(Body::Unreadable(error.behind(offset).to_string())),
    }
}

/// The document of the next record, if it can be one. `start` is where the reader began in its file.
fn next<R: Read>(
    reader: &mut WarcReader<R>,
    start: u64,
    max_document: u64,
    id: ArchiveId,
) -> Result<Option<Option<Body>>, ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    let is_of_web = head.target().is_some_and(|url| url.starts_with("http:") || url.starts_with("https:"));
    match head.kind() {
        "response" | "resource" | "conversion" if is_of_web => {}
        "revisit" => return Ok(Some(Some(Body::LeftOut("revisit")))),
        _ => return Ok(Some(None)),
    }
    let block = reader.block(max_document.saturating_add(HEAD))?;
    let offset = start + reader.finish()?.map_or(0, |span| span.offset);
    let at = |what: String| {
        format!(
            "the record at byte {offset}, of {}: {what}",
            head.target().unwrap_or_default().escape_debug()
        )
    };
    if block.is_cut {
        return Ok(Some(Some(Body::Unreadable(at(too_long(max_document))))));
    }
    let document = document(&head, &Payload::new(&head, block.bytes), max_document, id);
    Ok(Some(Some(document.unwrap_or_else(|what| Body::Unreadable(at(what))))))
}

fn document(head: &RecordHead, payload: &Payload, max_document: u64, id: ArchiveId) -> Result<Body, String> {
    if payload.status().is_some_and(|status| status != 200) {
        return Ok(Body::LeftOut("status"));
    }
    let content_type = payload.content_type().unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_html = match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => true,
        "text/plain" => false,
        _ => return Ok(Body::LeftOut("media_type")),
    };
    let bytes = payload.decoded(max_document + 1).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_document {
        return Err(too_long(max_document));
    }
    // The first of several languages is the one that most of the text has.
    let lang = head.get("WARC-Identified-Content-Language").and_then(|langs| langs.split(',').next());
    Ok(Body::Archived {
        id: id.of(head)?,
        is_html,
        charset: content_charset(content_type).map(str::to_owned),
        lang: lang.and_then(Lang::parse).map(|lang| lang.code().to_owned()),
        bytes: bytes.into_owned(),
    })
}
