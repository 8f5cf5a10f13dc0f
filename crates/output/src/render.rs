//! Text for people: escaping, colours, tables, numbers. Nothing here prints.
//!
//! Everything that came from the web passes [`escape`] before it reaches a terminal or a log.

use std::borrow::Cow;
use std::io;

use huntsman_crawler::terminal::wants_color;
pub use huntsman_crawler::terminal::{escape, escape_document, escape_json};

/// Cuts a text to `length` characters, with an ellipsis in place of the rest.
pub fn shorten(text: &str, length: usize) -> Cow<'_, str> {
    match text.char_indices().nth(length) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let mut out: String = text.chars().take(length.saturating_sub(1)).collect();
            out.push('…');
            Cow::Owned(out)
        }
    }
}

/// Whether text is printed with colours.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    color: bool,
}

impl Style {
    /// The style for stdout: with colours if it supports them.
    pub fn stdout() -> Self {
        Self { color: wants_color(&io::stdout()) }
    }

    /// The style for stderr: with colours if it supports them.
    pub fn stderr() -> Self {
        Self { color: wants_color(&io::stderr()) }
    }

    /// A style without colours.
    pub fn none() -> Self {
        Self { color: false }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// In bold.
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Less bright.
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// In red.
    pub fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// In green.
    pub fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// In yellow.
    pub fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }
}

/// Rows with aligned columns, two blanks between them.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<usize>,
}

impl Table {
    /// Columns (from 0) that are aligned to the right.
    pub fn right(columns: &[usize]) -> Self {
        Self { rows: Vec::new(), right: columns.to_vec() }
    }

    /// Adds a row; cells are escaped.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| escape(cell.as_ref()).into_owned()).collect());
    }

    /// The lines, each behind `indent` and without trailing blanks.
    pub fn lines(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = indent.to_owned();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
                if column > 0 {
                    line.push_str("  ");
                }
                if self.right.contains(&column) {
                    line.push_str(&blanks);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&blanks);
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A number with a blank between thousands: `12 345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A number and its noun: `1 page`, `12 345 pages`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Seconds for people: `0.42 s`, `3 min 20 s`, `2 h 05 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..=9 => format!("{seconds:.2} s"),
        10..=119 => format!("{seconds:.1} s"),
        120..=7_199 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3_600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align_by_characters_and_not_by_bytes() {
        let mut table = Table::right(&[1]);
        table.row(["über", "1"]);
        table.row(["a", "1000"]);
        assert_eq!(table.lines("  "), "  über     1\n  a     1000\n");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            (count(7), count(1_234), count(12_345_678)),
            ("7".into(), "1 234".into(), "12 345 678".into())
        );
        assert_eq!(
            (duration(0.416), duration(12.34), duration(200.4), duration(7_530.0)),
            ("0.42 s".into(), "12.3 s".into(), "3 min 20 s".into(), "2 h 05 min".into())
        );
    }

    #[test]
    fn a_shortened_text_is_as_long_as_asked() {
        assert_eq!(shorten("grüßen", 4), "grü…");
        assert_eq!(shorten("four", 4), "four");
    }

    #[test]
    fn without_colour_there_are_no_escapes() {
        assert_eq!(Style::none().red("x"), "x");
        assert_eq!(Style { color: true }.red("x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
