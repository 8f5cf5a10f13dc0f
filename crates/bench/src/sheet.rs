//! Tables for people and for documentation.

use std::io::{self, Write as _};

use huntsman_cli::exit::Outcome;
use huntsman_cli::render::{Style, Table};
use serde::Serialize;

use crate::BUILD;
use clap::Args;

/// A table with a title; its first column is text, the others are figures.
#[derive(Debug)]
pub(crate) struct Sheet {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    /// What a reader must know to understand the figures.
    note: String,
}

impl Sheet {
    pub(crate) fn new<T: Into<String>>(title: impl Into<String>, head: impl IntoIterator<Item = T>) -> Self {
        Self {
            title: title.into(),
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
            note: String::new(),
        }
    }

    pub(crate) fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    pub(crate) fn text(&self, style: Style) -> String {
        let mut table = Table::right(&(1..self.head.len()).collect::<Vec<_>>());
        table.row(&self.head);
        self.rows.iter().for_each(|row| table.row(row));
        let lines = table.lines("");
        let mut out = format!("\n{}\n", style.bold(&self.title));
        for (at, line) in lines.lines().enumerate() {
            out += &if at == 0 { style.dim(line) } else { line.to_owned() };
            out.push('\n');
        }
        if !self.note.is_empty() {
            out += &format!("{}\n", style.dim(&self.note));
        }
        out
    }

    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let figures = "---: | ".repeat(self.head.len().saturating_sub(1));
        let mut out = format!("\n{}:\n\n{}| --- | {}", self.title, line(&self.head), figures.trim_end());
        out.push('\n');
        out.extend(self.rows.iter().map(|row| line(row)));
        if !self.note.is_empty() {
            out += &format!("\n{}\n", self.note);
        }
        out
    }
}

/// How figures are printed: as tables unless another form is wanted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormArgs {
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Prints tables in Markdown.
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

impl FormArgs {
    /// Prints the results: the report as JSON, or its tables with version, build and seed.
    pub(crate) fn print(self, report: &impl Serialize, sheets: &[Sheet], seed: u64) -> Outcome<()> {
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", serde_json::to_string(report)?)?;
            return Ok(());
        }
        let style = Style::stdout();
        for sheet in sheets {
            let text = if self.markdown { sheet.markdown() } else { sheet.text(style) };
            stdout.write_all(text.as_bytes())?;
        }
        writeln!(stdout, "\nhuntsman {}, {BUILD} build, seed {seed}", env!("CARGO_PKG_VERSION"))?;
        Ok(())
    }
}

/// A number with three significant digits.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A number, or `-` for `None`.
pub(crate) fn figure_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

/// A number of bytes in MiB.
pub(crate) fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sheet_is_a_table_for_people_and_one_in_markdown() {
        let mut sheet = Sheet::new("Shares", ["edit", "k = 3"]).note("In %.");
        sheet.row(["a | b", "98"]);
        assert_eq!(sheet.text(Style::none()), "\nShares\nedit   k = 3\na | b     98\nIn %.\n");
        assert_eq!(
            sheet.markdown(),
            "\nShares:\n\n| edit | k = 3 |\n| --- | ---: |\n| a \\| b | 98 |\n\nIn %.\n"
        );
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let shown = [123_456.4, 12.345, 1.234, 0.0004].map(figure);
        assert_eq!(shown, ["123456", "12.3", "1.23", "0.00"]);
    }
}
