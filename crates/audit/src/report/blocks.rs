//! The data of a report, in blocks: rows of tables as JSON, at most a megabyte at once.
//!
//! A browser reads a block when a view needs it, so a report of a hundred thousand pages opens as fast as one of ten. The blocks stand in the page
//! itself, or in files beside it that the page loads as scripts, because a page that was opened from a disk may load nothing else.

use std::path::PathBuf;

use huntsman_crawler::Result;
use serde::Serialize;

use crate::tables::written_text;

/// Bytes of a block, and of a file.
const BYTES: usize = 1_000_000;
/// Bytes around the rows of a block in its file.
const AROUND: usize = 64;

/// Where blocks are written.
#[derive(Debug)]
pub(super) enum Blocks {
    /// In the page: the id of each block, and its JSON.
    Within(Vec<(String, String)>),
    /// In files of this folder.
    Beside(PathBuf),
}

impl Blocks {
    fn add(&mut self, name: &str, number: usize, rows: &str) -> Result<()> {
        match self {
            Self::Within(blocks) => {
                blocks.push((format!("block-{name}-{number}"), format!("[{rows}]")));
                Ok(())
            }
            Self::Beside(folder) => {
                let path = folder.join(format!("{name}-{number}.js"));
                // The text of a function is a part of its source. A string would be a copy of it, and a browser keeps both for a while.
                written_text(&path, &format!("huntsman(\"{name}\",{number},()=>{{/*[{rows}]*/}})\n"))
            }
        }
    }
}

/// Where the rows of a table are.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Located {
    /// Number of rows.
    pub(super) rows: usize,
    /// The number of the first row of each block.
    starts: Vec<usize>,
}

/// Writes the rows of a table into blocks.
#[derive(Debug)]
pub(super) struct Rows {
    name: String,
    text: String,
    located: Located,
}

impl Rows {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), text: String::new(), located: Located::default() }
    }

    /// Number of rows so far.
    pub(super) fn len(&self) -> usize {
        self.located.rows
    }

    /// Whether the next row begins a block.
    pub(super) fn begins_block(&self) -> bool {
        self.text.is_empty()
    }

    /// Ends the block if a row of so many bytes does not fit into it.
    pub(super) fn make_room(&mut self, bytes: usize, blocks: &mut Blocks) -> Result<()> {
        let is_full = !self.text.is_empty() && self.text.len() + bytes + AROUND > BYTES;
        if is_full { self.end_block(blocks) } else { Ok(()) }
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: &impl Serialize, blocks: &mut Blocks) -> Result<()> {
        let row = safe(&serde_json::to_string(row)?);
        self.make_room(row.len(), blocks)?;
        if self.text.is_empty() {
            self.located.starts.push(self.located.rows);
        } else {
            self.text.push_str(",\n");
        }
        self.text.push_str(&row);
        self.located.rows += 1;
        Ok(())
    }

    fn end_block(&mut self, blocks: &mut Blocks) -> Result<()> {
        blocks.add(&self.name, self.located.starts.len() - 1, &self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Writes the last block.
    pub(super) fn finish(mut self, blocks: &mut Blocks) -> Result<Located> {
        if !self.text.is_empty() {
            self.end_block(blocks)?;
        }
        Ok(self.located)
    }
}

/// JSON that can stand in an element of a page and in a comment of a script: the characters that end or begin something there are written by their
/// numbers, which is the same in JSON, where they are only in texts.
pub(super) fn safe(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '/' if out.ends_with('*') => out.push_str("\\u002f"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn no_text_ends_the_element_or_the_script_around_it() {
        let evil = "</script><!-- */}) alert(1) /**//* **/ \\u0060 \u{2028}";
        let json = safe(&serde_json::to_string(evil).unwrap());
        assert!(!json.contains(['<', '\u{2028}']) && !json.contains("*/"), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), evil);
    }

    #[test]
    fn a_block_has_at_most_a_megabyte_and_the_rows_are_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut blocks = Blocks::Beside(dir.path().to_owned());
        let mut rows = Rows::new("pages");
        let long = "x".repeat(700);
        for number in 0..4_000 {
            rows.add(&(number, &long), &mut blocks).unwrap();
        }
        let located = rows.finish(&mut blocks).unwrap();
        assert_eq!((located.rows, located.starts.len()), (4_000, 3));
        let mut next = 0;
        for (number, start) in located.starts.iter().enumerate() {
            let file = std::fs::read_to_string(dir.path().join(format!("pages-{number}.js"))).unwrap();
            assert!(file.len() <= BYTES, "{}", file.len());
            let begin = file.find("/*").unwrap() + 2;
            let rows: Vec<Value> = serde_json::from_str(&file[begin..file.rfind("*/").unwrap()]).unwrap();
            assert_eq!((*start, &rows[0][0]), (next, &next.into()));
            next += rows.len();
        }
        assert_eq!(next, 4_000);
    }
}
