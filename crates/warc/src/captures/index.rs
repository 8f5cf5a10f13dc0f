//! Captures of a CDXJ index, whose files are read only where a capture is.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use super::{ArchiveError, Capture, Captures};
use crate::archive::Archive;
use crate::key::CaptureKey;
use crate::moment::Moment;
use crate::named::Archives;

/// Greatest length of a line of an index, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// A line of an index: a capture, and where its record is.
#[derive(Clone, Debug)]
pub struct IndexLine {
    /// The URL.
    pub url: String,
    /// When the capture was made.
    pub moment: Moment,
    /// The media type; `warc/revisit` if the body is in another record.
    pub mime: String,
    /// The HTTP status; 0 if it is not told.
    pub status: u16,
    /// Whether it answers a GET request.
    pub is_get: bool,
    /// The name of the file.
    pub file: String,
    /// Offset of the record in the file.
    pub offset: u64,
    /// Length of the record in the file, if it is told.
    pub length: Option<u64>,
}

impl Captures {
    /// Adds the captures of an index. Those of other methods than GET are left out, because an index has their bodies only in part.
    pub(super) fn add_index(&mut self, index: &Archive, archives: &Archives) -> Result<(), ArchiveError> {
        let mut files: HashMap<String, u32> = HashMap::new();
        index_lines(index, |number, line| {
            if !line.is_get {
                return Ok(());
            }
            let file = match files.get(&line.file) {
                Some(file) => *file,
                None => {
                    let found = archives.file_of(index, &line.file);
                    let found = found.ok_or_else(|| {
                        ArchiveError::text(index.name(), format!("line {number}: {}", line.without_file()))
                    })?;
                    let file = self.add_file(&found)?;
                    files.insert(line.file, file);
                    file
                }
            };
            let Some(key) = CaptureKey::of(&line.url) else { return Ok(()) };
            let is_revisit = line.mime == "warc/revisit";
            let (status, offset, moment) = (line.status, line.offset, line.moment);
            let length = line.length.unwrap_or(0);
            self.entries.push((key, Capture { file, status, is_revisit, offset, length, moment }));
            Ok(())
        })
    }
}

/// Passes on the lines of an index, with their numbers from 1.
///
/// # Errors
/// The index cannot be read, a line is not one of CDXJ, or `each` fails.
pub fn index_lines(
    index: &Archive,
    mut each: impl FnMut(u64, IndexLine) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let io = |cause| ArchiveError::io(index, cause);
    let mut file = BufReader::new(index.open().map_err(io)?);
    let is_gzip = file.fill_buf().map_err(io)?.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn Read> =
        if is_gzip { Box::new(flate2::bufread::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut reader = BufReader::new(reader);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        if (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).map_err(io)? == 0 {
            return Ok(());
        }
        let read = IndexLine::read(String::from_utf8_lossy(&line).trim());
        let read = read.map_err(|what| ArchiveError::text(index.name(), format!("line {number}: {what}")))?;
        if let Some(read) = read {
            each(number, read)?;
        }
    }
}

impl IndexLine {
    /// Reads `KEY TIME {...}`; `None` for lines about the index itself.
    fn read(line: &str) -> Result<Option<Self>, String> {
        if line.is_empty() || line.starts_with('!') {
            return Ok(None);
        }
        if line.starts_with("CDX ") {
            return Err(
                "it is an index of the older form CDX: make a new one (huntsman warc index)".to_owned()
            );
        }
        let fields = line.split_once('{').map(|(before, _)| (before, &line[before.len()..]));
        let (before, json) = fields.ok_or("it has no JSON object, as lines of CDXJ have")?;
        let moment = before.split_ascii_whitespace().last().and_then(Moment::parse);
        let moment = moment.ok_or("it has no time of 14 digits")?;
        let json: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let text = |name: &str| match &json[name] {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let needed = |name: &str| text(name).ok_or_else(|| format!("it has no {name}"));
        let offset = needed("offset")?;
        Ok(Some(Self {
            url: needed("url")?,
            moment,
            mime: text("mime").unwrap_or_default(),
            status: text("status").and_then(|status| status.parse().ok()).unwrap_or(0),
            is_get: text("method").is_none_or(|method| method.eq_ignore_ascii_case("GET")),
            file: needed("filename")?,
            length: text("length").and_then(|length| length.parse().ok()),
            offset: offset
                .parse()
                .map_err(|_| format!("the offset is no number: {}", offset.escape_debug()))?,
        }))
    }

    /// What is wrong if the file is nowhere.
    pub fn without_file(&self) -> String {
        format!("{} is neither beside the index nor named", self.file.escape_debug())
    }
}
