//! Captures of a CDXJ index, whose files are read only where a capture is.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ArchiveError, Capture, Captures};
use crate::key::CaptureKey;
use crate::moment::Moment;

/// Greatest length of a line of an index, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// Whether a file is an index, by its name.
pub(super) fn is_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.ends_with(".cdxj") || name.ends_with(".cdx")
}

/// What a line says.
struct Line {
    url: String,
    moment: Moment,
    mime: String,
    status: u16,
    is_get: bool,
    file: String,
    offset: u64,
}

impl Captures {
    /// Adds the captures of an index. Those of other methods than GET are left out, because an index has their bodies only in part.
    pub(super) fn add_index(&mut self, path: &Path) -> Result<(), ArchiveError> {
        let named: Vec<PathBuf> = self.files.clone();
        let mut files: Vec<(String, u32)> = Vec::new();
        each_line(path, |number, line| {
            let wrong = |what: String| ArchiveError::text(path, format!("line {number}: {what}"));
            let Some(line) = Line::read(line).map_err(wrong)? else { return Ok(()) };
            if !line.is_get {
                return Ok(());
            }
            let file = match files.iter().rev().find(|(name, _)| *name == line.file) {
                Some((_, file)) => *file,
                None => {
                    let found = find(&line.file, path, &named).ok_or_else(|| {
                        wrong(format!("{} is neither beside the index nor named", line.file.escape_debug()))
                    })?;
                    let file =
                        u32::try_from(self.files.len()).map_err(|_| wrong("too many files".to_owned()))?;
                    self.files.push(found);
                    files.push((line.file, file));
                    file
                }
            };
            let Some(key) = CaptureKey::of(&line.url) else { return Ok(()) };
            let is_revisit = line.mime == "warc/revisit";
            let (status, offset, moment) = (line.status, line.offset, line.moment);
            self.entries.push((key, Capture { file, status, is_revisit, offset, moment }));
            Ok(())
        })
    }
}

/// Where a file of an index is: beside it, in the folder `archive` beside the folder of the index, or among the files that were named.
fn find(name: &str, index: &Path, named: &[PathBuf]) -> Option<PathBuf> {
    let name = Path::new(name);
    let folder = index.parent().unwrap_or(Path::new(""));
    let beside = [folder.join(name), folder.join("../archive").join(name)];
    let is_named = |path: &&PathBuf| path.file_name() == name.file_name();
    beside.into_iter().find(|path| path.is_file()).or_else(|| named.iter().find(is_named).cloned())
}

fn each_line(
    path: &Path,
    mut each: impl FnMut(u64, &str) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let io = |cause| ArchiveError::io(path, cause);
    let mut file = BufReader::new(File::open(path).map_err(io)?);
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
        each(number, String::from_utf8_lossy(&line).trim())?;
    }
}

impl Line {
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
            offset: offset
                .parse()
                .map_err(|_| format!("the offset is no number: {}", offset.escape_debug()))?,
        }))
    }
}
