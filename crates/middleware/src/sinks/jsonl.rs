//! JSON lines: one object per line, so a crash damages at most the last line.

use huntsman_crawler::Result;
use serde::Serialize;

use super::feed::{Feed, FieldChoice, Format};
use super::settled::SettledPages;

/// One JSON object a line, UTF-8.
///
/// ```no_run
/// use huntsman_middleware::sinks::JsonLines;
/// # #[derive(serde::Serialize)] struct Quote;
/// # fn main() -> huntsman_crawler::Result<()> {
/// let feed: JsonLines<Quote> = JsonLines::create("quotes.jsonl")?;
/// let small = JsonLines::<Quote>::append("quotes.jsonl.zst")?.fields(["author", "text"]).rename("text", "quote");
/// # Ok(()) }
/// ```
pub type JsonLines<T> = Feed<T, Lines>;

impl<T> JsonLines<T> {
    /// Lets the file have a line for each page of a shared crawl that was settled, behind the record of the page. The observer must be given
    /// to the builder.
    pub fn settled(&mut self) -> SettledPages {
        SettledPages(self.lines.get_or_insert_default().clone())
    }
}

/// The format of [`JsonLines`].
#[derive(Debug, Default)]
pub struct Lines;

impl Format for Lines {
    const NAME: &'static str = "JSON lines";
    const APPENDS: bool = true;

    fn begin(&mut self, _: &[u8], _: &FieldChoice<'_>, _: &mut Vec<u8>) -> Result<()> {
        Ok(())
    }

    fn item(&mut self, item: &impl Serialize, fields: &FieldChoice<'_>, out: &mut Vec<u8>) -> Result<()> {
        if fields.0.is_all() {
            serde_json::to_writer(&mut *out, item)?;
        } else {
            serde_json::to_writer(&mut *out, &fields.0.select(item)?)?;
        }
        out.push(b'\n');
        Ok(())
    }
}
