//! Writes the text of PDF pages column by column, even if the file has the lines across columns.
//!
//! By default the text of a page keeps the order in which it was written, which for most programs is the reading
//! order. If columns of prose stand side by side and their lines alternate in the file, the left column is printed
//! first.

use std::io::Write;
use std::ops::Range;

use pdf_extract::{MediaBox, OutputDev, OutputError, Transform};

/// Minimum number of lines in each of two columns.
const MIN_LINES: usize = 4;
/// Minimum median of the words in a line of prose, and of the share of its column that the line fills.
const MIN_WORDS: usize = 3;
const MIN_FILLED: f64 = 0.6;
/// Maximum number of gutters that are considered.
const MAX_GUTTERS: usize = 5;

/// Prints pages.
pub(super) struct Columns<W: Write> {
    out: W,
    text: String,
    pieces: Vec<Piece>,
    /// Where the last letter ended, and its base line.
    last: Option<(f64, f64)>,
    is_first: bool,
    is_new_page: bool,
}

/// Letters that were written in one operation.
#[derive(Debug)]
struct Piece {
    text: Range<usize>,
    gap: Gap,
    start: f64,
    end: f64,
    /// Measured downwards.
    y: f64,
    size: f64,
}

/// The gap before a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gap {
    None,
    Space,
    Line,
}

/// Consecutive pieces on one line.
#[derive(Clone, Debug)]
struct Line {
    pieces: Range<usize>,
    start: f64,
    end: f64,
    y: f64,
    size: f64,
    words: usize,
}

impl<W: Write> Columns<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, text: String::new(), pieces: Vec::new(), last: None, is_first: true, is_new_page: false }
    }

    fn write_page(&mut self) -> Result<(), OutputError> {
        if self.pieces.is_empty() {
            return Ok(());
        }
        if self.is_new_page {
            self.out.write_all(b"\n")?;
        }
        self.is_new_page = true;
        let lines = lines(&self.pieces, &self.text);
        match reading_order(&lines) {
            None => self.write_pieces(0..self.pieces.len(), true)?,
            Some(order) => {
                for (at, line) in order.into_iter().enumerate() {
                    if at > 0 {
                        self.out.write_all(b"\n")?;
                    }
                    self.write_pieces(line.pieces, true)?;
                }
            }
        }
        self.text.clear();
        self.pieces.clear();
        Ok(self.out.flush()?)
    }

    /// Writes pieces in their order, without the gap before the first one.
    fn write_pieces(&mut self, pieces: Range<usize>, mut is_first: bool) -> Result<(), OutputError> {
        for piece in &self.pieces[pieces] {
            let gap: &[u8] = match piece.gap {
                _ if is_first => b"",
                Gap::None => b"",
                Gap::Space => b" ",
                Gap::Line => b"\n",
            };
            is_first = false;
            self.out.write_all(gap)?;
            self.out.write_all(self.text[piece.text.clone()].as_bytes())?;
        }
        Ok(())
    }
}

/// Prints the text read so far even if parsing of a page broke off.
impl<W: Write> Drop for Columns<W> {
    fn drop(&mut self) {
        let _ = self.write_page();
    }
}

impl<W: Write> OutputDev for Columns<W> {
    fn begin_page(
        &mut self,
        _: u32,
        _: &MediaBox,
        _: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.last = None;
        Ok(())
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.write_page()
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        _: f64,
        font_size: f64,
        letters: &str,
    ) -> Result<(), OutputError> {
        // The side of a square with the area of the letter's box on the page.
        let (across, down) = (font_size * (place.m11 + place.m21), font_size * (place.m12 + place.m22));
        let size = (across * down).abs().sqrt();
        let (x, y) = (place.m31, -place.m32);
        let gap = match self.last {
            Some((end, last_y)) if self.is_first => {
                let apart = (y - last_y).abs();
                match () {
                    () if apart > 1.5 * size || x < end && apart > 0.5 * size => Gap::Line,
                    () if x > end + 0.1 * size => Gap::Space,
                    () => Gap::None,
                }
            }
            _ => Gap::None,
        };
        let end = x + width * size;
        let from = self.text.len();
        self.text.push_str(letters);
        let is_begun = !self.is_first && self.last.is_some();
        match self.pieces.last_mut() {
            Some(piece) if is_begun => {
                piece.text.end = self.text.len();
                piece.end = end;
            }
            _ => {
                let text = from..self.text.len();
                self.pieces.push(Piece { text, gap, start: x, end, y, size });
            }
        }
        self.is_first = false;
        self.last = Some((end, y));
        Ok(())
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.is_first = true;
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        Ok(())
    }
}

/// Groups pieces into lines: a wide gap separates two lines.
fn lines(pieces: &[Piece], text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let words = text[piece.text.clone()].split_whitespace().count();
        match lines.last_mut() {
            Some(line)
                if piece.gap != Gap::Line
                    && (piece.y - line.y).abs() < 0.5 * piece.size
                    && piece.start - line.end < 1.5 * piece.size
                    && piece.start >= line.start =>
            {
                line.pieces.end = at + 1;
                line.end = line.end.max(piece.end);
                line.words += words;
            }
            _ => lines.push(Line {
                pieces: at..at + 1,
                start: piece.start,
                end: piece.end,
                y: piece.y,
                size: piece.size,
                words,
            }),
        }
    }
    lines
}

/// The lines column by column, if they belong to columns whose lines alternate.
fn reading_order(lines: &[Line]) -> Option<Vec<Line>> {
    if lines.iter().any(|line| !(line.start + line.end + line.y).is_finite()) {
        return None;
    }
    let gutters = gutters(lines);
    let all = std::iter::once(gutters.clone());
    let each = gutters.iter().map(|gutter| vec![*gutter]);
    let gutters = all.chain(each).find(|gutters| are_between_columns(lines, gutters))?;
    let mut across: Vec<&Line> = lines.iter().filter(|line| column(line, &gutters).is_none()).collect();
    across.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut ordered = Vec::with_capacity(lines.len());
    let mut from = f64::NEG_INFINITY;
    // A line across columns separates the parts above and below it.
    for end in across.iter().map(|line| Some(*line)).chain([None]) {
        let to = end.map_or(f64::INFINITY, |line| line.y);
        for number in 0..=gutters.len() {
            let is_there =
                |line: &&Line| column(line, &gutters) == Some(number) && line.y >= from && line.y < to;
            let mut column: Vec<Line> = lines.iter().filter(is_there).cloned().collect();
            column.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.start.total_cmp(&b.start)));
            ordered.append(&mut column);
        }
        ordered.extend(end.cloned());
        from = to;
    }
    Some(ordered)
}

/// The index of the column in which a line stands, from the left; `None` if it crosses a gutter.
fn column(line: &Line, gutters: &[f64]) -> Option<usize> {
    let number = gutters.iter().filter(|gutter| line.start >= **gutter).count();
    gutters.get(number).is_none_or(|gutter| line.end <= *gutter).then_some(number)
}

/// The middles of the widest vertical stripes in which no short line has a letter, from the left.
fn gutters(lines: &[Line]) -> Vec<f64> {
    let left = lines.iter().map(|line| line.start).fold(f64::INFINITY, f64::min);
    let right = lines.iter().map(|line| line.end).fold(f64::NEG_INFINITY, f64::max);
    let mut short: Vec<&Line> =
        lines.iter().filter(|line| line.end - line.start < MIN_FILLED * (right - left)).collect();
    short.sort_by(|a, b| a.start.total_cmp(&b.start));
    let size = middle(short.iter().map(|line| line.size).collect());
    let mut gutters: Vec<(f64, f64)> = Vec::new();
    let mut end = f64::INFINITY;
    for line in short {
        if line.start - end >= 0.5 * size {
            gutters.push((line.start - end, f64::midpoint(line.start, end)));
        }
        end = if end.is_finite() { end.max(line.end) } else { line.end };
    }
    gutters.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut gutters: Vec<f64> = gutters.into_iter().map(|(_, middle)| middle).take(MAX_GUTTERS).collect();
    gutters.sort_by(f64::total_cmp);
    gutters
}

/// Whether all columns hold prose, stand side by side, and were written with alternating lines.
fn are_between_columns(lines: &[Line], gutters: &[f64]) -> bool {
    let numbers: Vec<usize> = lines.iter().filter_map(|line| column(line, gutters)).collect();
    let turns = numbers.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let columns: Vec<Vec<&Line>> = (0..=gutters.len())
        .map(|number| lines.iter().filter(|line| column(line, gutters) == Some(number)).collect())
        .collect();
    let range = |column: &[&Line]| {
        let first = column.iter().map(|line| line.y).fold(f64::INFINITY, f64::min);
        let last = column.iter().map(|line| line.y).fold(f64::NEG_INFINITY, f64::max);
        (first, last)
    };
    let are_beside = |pair: &[Vec<&Line>]| {
        let (a, b) = (range(&pair[0]), range(&pair[1]));
        2.0 * (a.1.min(b.1) - a.0.max(b.0)) >= (a.1 - a.0).min(b.1 - b.0)
    };
    !gutters.is_empty()
        && columns.iter().all(|column| column.len() >= MIN_LINES && is_prose(column))
        && (lines.len() - numbers.len()) * 4 <= numbers.len()
        && turns * 3 >= numbers.len()
        && columns.windows(2).all(are_beside)
}

/// Whether the lines have several words and fill their column, unlike the cells of a table.
fn is_prose(column: &[&Line]) -> bool {
    let start = column.iter().map(|line| line.start).fold(f64::INFINITY, f64::min);
    let end = column.iter().map(|line| line.end).fold(f64::NEG_INFINITY, f64::max);
    let filled = middle(column.iter().map(|line| line.end - line.start).collect());
    let words = middle(column.iter().map(|line| line.words as f64).collect());
    words >= MIN_WORDS as f64 && filled >= MIN_FILLED * (end - start)
}

/// The median; 0 for an empty list.
fn middle(mut numbers: Vec<f64>) -> f64 {
    let at = numbers.len() / 2;
    if numbers.is_empty() {
        return 0.0;
    }
    *numbers.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of letters of size 10 that are 5 wide; each string is written in one operation at its position.
    fn page(strings: &[(f64, f64, &str)]) -> String {
        let mut out = Vec::new();
        let mut columns = Columns::new(&mut out);
        for (x, y, text) in strings {
            columns.begin_word().unwrap();
            for (at, letter) in text.chars().enumerate() {
                let place = Transform::row_major(1.0, 0.0, 0.0, 1.0, x + 5.0 * at as f64, -y);
                columns.output_character(&place, 0.5, 0.0, 10.0, &letter.to_string()).unwrap();
            }
        }
        columns.end_page().unwrap();
        drop(columns);
        String::from_utf8(out).unwrap()
    }

    const LEFT: [&str; 6] = [
        "one two three four",
        "five six seven eight",
        "nine ten eleven a",
        "twelve and so on",
        "fourteen or not x",
        "end of the left",
    ];
    const RIGHT: [&str; 6] = [
        "the right begins",
        "goes on and on y",
        "with more words",
        "that fill it all",
        "to the very last",
        "line of the right",
    ];

    fn rows(left: &[&'static str], right: &[&'static str]) -> Vec<(f64, f64, &'static str)> {
        let row = |(at, (a, b)): (usize, (&&'static str, &&'static str))| {
            [(0.0, 12.0 * at as f64, *a), (130.0, 12.0 * at as f64, *b)]
        };
        left.iter().zip(right).enumerate().flat_map(row).collect()
    }

    #[test]
    fn columns_whose_lines_take_turns_are_read_one_after_the_other() {
        let mut strings = vec![(0.0, -30.0, "A title that stands across both columns of it")];
        strings.extend(rows(&LEFT, &RIGHT));
        let expected = format!("{}\n{}\n{}", strings[0].2, LEFT.join("\n"), RIGHT.join("\n"));
        assert_eq!(page(&strings), expected);
    }

    #[test]
    fn columns_that_were_written_one_after_the_other_and_tables_stay_as_they_are() {
        let place = |x: f64| move |(at, text): (usize, &&'static str)| (x, 12.0 * at as f64, *text);
        let by_column: Vec<_> = LEFT
            .iter()
            .enumerate()
            .map(place(0.0))
            .chain(RIGHT.iter().enumerate().map(place(130.0)))
            .collect();
        assert_eq!(page(&by_column), format!("{}\n{}", LEFT.join("\n"), RIGHT.join("\n")));
        let (names, numbers) = (["a", "b", "c", "d", "e", "f"], ["1", "2", "3", "4", "5", "6"]);
        assert_eq!(page(&rows(&names, &numbers)), "a 1\nb 2\nc 3\nd 4\ne 5\nf 6");
    }

    #[test]
    fn words_that_were_placed_one_by_one_are_lines_and_strings_that_touch_are_words() {
        assert_eq!(
            page(&[(0.0, 0.0, "old"), (20.0, 0.0, "mi"), (30.0, 0.0, "ll"), (0.0, 12.0, "here")]),
            "old mill\nhere"
        );
        let by_word = |row: Vec<(f64, f64, &'static str)>| -> Vec<(f64, f64, &'static str)> {
            let words = |(x, y, text): (f64, f64, &'static str)| {
                let mut at = x;
                text.split(' ').map(move |word| {
                    let place = (at, y, word);
                    at += 5.0 * (word.len() + 1) as f64;
                    place
                })
            };
            row.into_iter().flat_map(words).collect()
        };
        assert_eq!(page(&by_word(rows(&LEFT, &RIGHT))), format!("{}\n{}", LEFT.join("\n"), RIGHT.join("\n")));
    }

    #[test]
    fn three_columns_are_three() {
        let third = [
            "third has its own",
            "words in the last",
            "of three columns",
            "that are no table",
            "but only prose q",
            "and here it ends",
        ];
        let strings: Vec<(f64, f64, &str)> = (0..6)
            .flat_map(|at| {
                [(0.0, LEFT[at]), (130.0, RIGHT[at]), (250.0, third[at])]
                    .map(|(x, text)| (x, 12.0 * at as f64, text))
            })
            .collect();
        assert_eq!(
            page(&strings),
            format!("{}\n{}\n{}", LEFT.join("\n"), RIGHT.join("\n"), third.join("\n"))
        );
    }
}
