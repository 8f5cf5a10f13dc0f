//! JSON: all items as one list.

use huntsman_crawler::Result;
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::feed::{Feed, FieldChoice, Format};

/// One JSON list, with one item per line.
///
/// An uncompressed file is a complete document after every flush, also if the process is killed then. It cannot be
/// appended to: for crawls that are resumed use [`JsonLines`](super::JsonLines).
pub type Json<T> = Feed<T, List>;

/// The format of [`Json`].
#[derive(Debug, Default)]
pub struct List {
    any: bool,
    indent: Option<String>,
}

impl<T> Json<T> {
    /// Formats each item over several lines, indented by this many spaces.
    pub fn indent(mut self, spaces: usize) -> Self {
        self.format_mut().indent = Some(" ".repeat(spaces.min(16)));
        self
    }
}

impl Format for List {
    const NAME: &'static str = "JSON";
    const APPENDS: bool = false;

    fn begin(&mut self, _: &[u8], _: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.any = false;
        out.push(b'[');
        Ok(())
    }

    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(if self.any { b",\n" } else { b"\n" });
        match (&self.indent, fields.0.is_all()) {
            (None, true) => serde_json::to_writer(&mut *out, item)?,
            (None, false) => serde_json::to_writer(&mut *out, &fields.0.select(item)?)?,
            (Some(indent), all) => {
                let mut pretty =
                    Serializer::with_formatter(&mut *out, PrettyFormatter::with_indent(indent.as_bytes()));
                if all {
                    item.serialize(&mut pretty)?
                } else {
                    fields.0.select(item)?.serialize(&mut pretty)?
                }
            }
        }
        self.any = true;
        Ok(())
    }

    fn tail(&self) -> &'static [u8] {
        if self.any { b"\n]\n" } else { b"]\n" }
    }
}
