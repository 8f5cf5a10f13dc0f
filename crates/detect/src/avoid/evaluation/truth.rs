//! A list of which URLs of a site have the same content, and the score of a crawl by it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{self, BufRead};

/// The kind of rows that are scored.
const PAGE: &str = "page";
/// The most bytes of a line; no URL of a list is longer.
const MAX_BYTES: usize = 64 << 10;

/// The URLs of a site with the number of the content of each.
///
/// The format is text of tab-separated rows with four columns: number of the content by the view `area`, number of the content by the view
/// `page`, kind, and path with query. Two URLs with the same number have the same content. Kinds other than `page` (redirects, errors,
/// anything that is not HTML) have the number -1 and are not scored. Empty lines and lines that begin with `#` are ignored.
///
/// ```
/// use huntsman_detect::avoid::evaluation::{Truth, View};
///
/// let truth = "0\t0\tpage\t/a\n0\t1\tpage\t/a?sid=1\n-1\t-1\tother\t/a.rss\n";
/// let truth = Truth::read(truth.as_bytes())?;
/// let score = truth.score(["http://h.example/a", "http://h.example/a.rss"]);
/// assert_eq!((score.view(View::Area).saved(), score.view(View::Area).lost()), (0.5, 0));
/// assert_eq!((score.view(View::Page).saved(), score.view(View::Page).lost()), (0.5, 1));
/// # Ok::<(), huntsman_detect::avoid::evaluation::TruthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Truth {
    rows: Vec<Row>,
    by_url: HashMap<Box<str>, usize>,
}

#[derive(Clone, Debug)]
struct Row {
    url: Box<str>,
    /// The contents by view; for pages only.
    contents: Option<[u32; 2]>,
}

/// The definition of the content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The main content area, as a reader sees it.
    Area,
    /// All visible text except the text that most pages have: what a crawler without knowledge of the site can use.
    Page,
}

impl View {
    /// Both views, in the order of the columns.
    pub const ALL: [Self; 2] = [Self::Area, Self::Page];

    /// The name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Area => "area",
            Self::Page => "page",
        }
    }
}

/// Why a list of URLs and contents cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TruthError {
    /// The list cannot be read.
    Io(io::Error),
    /// A line is malformed.
    Line {
        /// Its number, from 1.
        number: usize,
        /// What is wrong with it.
        what: String,
    },
    /// No row is a page.
    NoPages,
}

impl fmt::Display for TruthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(_) => f.write_str("reading the list of contents"),
            Self::Line { number, what } => write!(f, "line {number}: {what}"),
            Self::NoPages => f.write_str("no row has the kind \"page\""),
        }
    }
}

impl std::error::Error for TruthError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(cause) => Some(cause),
            Self::Line { .. } | Self::NoPages => None,
        }
    }
}

impl Truth {
    /// Reads a list. Takes about three times the memory of the text.
    ///
    /// # Errors
    /// The list cannot be read, a line is malformed (the error names it), or there is no page.
    pub fn read(mut text: impl BufRead) -> Result<Self, TruthError> {
        let mut truth = Self { rows: Vec::new(), by_url: HashMap::new() };
        let mut line = Vec::new();
        for number in 1.. {
            let wrong = |what: String| TruthError::Line { number, what };
            line.clear();
            let mut limited = io::Read::take(&mut text, MAX_BYTES as u64);
            if limited.read_until(b'\n', &mut line).map_err(TruthError::Io)? == 0 {
                break;
            }
            if line.len() == MAX_BYTES && line.last() != Some(&b'\n') {
                return Err(wrong(format!("longer than {MAX_BYTES} bytes")));
            }
            let line = std::str::from_utf8(&line).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let row = Row::parse(line).map_err(wrong)?;
            if truth.by_url.insert(row.url.clone(), truth.rows.len()).is_some() {
                return Err(wrong(format!("{} is listed before", row.url.escape_debug())));
            }
            truth.rows.push(row);
        }
        if truth.rows.iter().all(|row| row.contents.is_none()) {
            return Err(TruthError::NoPages);
        }
        Ok(truth)
    }

    /// The path and query of each row, in order.
    pub fn urls(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| &*row.url)
    }

    /// Scores a crawl that downloaded these URLs: absolute URLs, or path and query. Repetitions, fragments and the origin are ignored; URLs
    /// are not canonicalised.
    pub fn score<'a>(&self, downloaded: impl IntoIterator<Item = &'a str>) -> Score {
        let got: HashSet<Cow<'_, str>> =
            downloaded.into_iter().map(key).filter(|url| !url.is_empty()).collect();
        let rows: Vec<&Row> =
            got.iter().filter_map(|url| Some(&self.rows[*self.by_url.get(&**url)?])).collect();
        let out_of_scope = got.len() - rows.len();
        Score { out_of_scope, ..self.score_of(&rows) }
    }

    /// Scores a crawl that downloaded these rows; each counts once.
    pub(super) fn score_rows(&self, downloaded: impl Iterator<Item = usize>) -> Score {
        let got: HashSet<usize> = downloaded.collect();
        let rows: Vec<&Row> = got.iter().map(|row| &self.rows[*row]).collect();
        self.score_of(&rows)
    }

    /// The content of a row by the area; `None` unless it is a page.
    pub(super) fn content(&self, row: usize) -> Option<u32> {
        self.rows[row].contents.map(|contents| contents[View::Area as usize])
    }

    fn score_of(&self, rows: &[&Row]) -> Score {
        let pages: Vec<[u32; 2]> = rows.iter().filter_map(|row| row.contents).collect();
        let all: Vec<[u32; 2]> = self.rows.iter().filter_map(|row| row.contents).collect();
        let contents = |of: &[[u32; 2]], view: usize| {
            of.iter().map(|contents| contents[view]).collect::<HashSet<u32>>().len()
        };
        let views = [0, 1].map(|view| ViewScore {
            pages: all.len(),
            contents: contents(&all, view),
            downloads: pages.len(),
            contents_downloaded: contents(&pages, view),
        });
        Score { out_of_scope: 0, not_pages: rows.len() - pages.len(), views }
    }
}

impl Row {
    fn parse(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [area, page, kind, url] = columns[..] else {
            return Err(format!(
                "{} columns; a row has 4, separated by tabs: number by area, number by page, kind, path and query",
                columns.len()
            ));
        };
        if !url.starts_with('/') {
            return Err(format!("\"{}\" is not a path: it does not begin with a slash", url.escape_debug()));
        }
        let number = |text: &str, view: View| -> Result<Option<u32>, String> {
            let wrong =
                || format!("\"{}\" is not the number of a content by {}", text.escape_debug(), view.name());
            if text == "-1" { Ok(None) } else { text.parse().map(Some).map_err(|_| wrong()) }
        };
        let (area, page) = (number(area, View::Area)?, number(page, View::Page)?);
        let contents = match (kind, area, page) {
            (PAGE, Some(area), Some(page)) => Some([area, page]),
            (PAGE, ..) => return Err("a page needs a number of its content by both views".to_owned()),
            _ => None,
        };
        Ok(Self { url: url.into(), contents })
    }
}

/// The path and query of an absolute URL; other texts unchanged.
pub(super) fn key(url: &str) -> Cow<'_, str> {
    let url = url.trim();
    let url = url.split('#').next().unwrap_or(url);
    let Some((_, rest)) = url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
    else {
        return url.into();
    };
    let rest = rest.strip_suffix('?').unwrap_or(rest);
    match rest.find(['/', '?']) {
        Some(at) if rest[at..].starts_with('/') => rest[at..].into(),
        Some(at) => format!("/{}", &rest[at..]).into(),
        None => "/".into(),
    }
}

/// The score of a crawl by a [`Truth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Score {
    /// The number of URLs that are not on the list.
    pub out_of_scope: usize,
    /// The number of URLs on the list that are not pages.
    pub not_pages: usize,
    views: [ViewScore; 2],
}

impl Score {
    /// The score by one view.
    pub fn view(&self, view: View) -> ViewScore {
        self.views[view as usize]
    }
}

/// The score of a crawl by one view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewScore {
    /// The number of URLs of the site that are pages.
    pub pages: usize,
    /// The number of distinct contents of the pages.
    pub contents: usize,
    /// The number of pages that were downloaded.
    pub downloads: usize,
    /// The number of distinct contents that were downloaded.
    pub contents_downloaded: usize,
}

impl ViewScore {
    /// The share of the pages that a crawl could leave out without loss.
    pub fn possible(&self) -> f64 {
        1.0 - self.contents as f64 / self.pages as f64
    }

    /// The share of the pages that were not downloaded.
    pub fn saved(&self) -> f64 {
        1.0 - self.downloads as f64 / self.pages as f64
    }

    /// The share of the duplicates that were not downloaded; `None` if there are none.
    pub fn avoided(&self) -> Option<f64> {
        let duplicates = self.pages - self.contents;
        let downloaded = self.downloads - self.contents_downloaded;
        (duplicates > 0).then(|| 1.0 - downloaded as f64 / duplicates as f64)
    }

    /// The number of contents of which no page was downloaded.
    pub fn lost(&self) -> usize {
        self.contents - self.contents_downloaded
    }

    /// The share of the contents of which no page was downloaded.
    pub fn lost_share(&self) -> f64 {
        self.lost() as f64 / self.contents as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: &str = "# a comment\n0\t0\tpage\t/\n0\t1\tpage\t/?a=1\n1\t2\tpage\t/b\n1\t2\tpage\t/b?x\n2\t3\tpage\t/c\n-1\t-1\tredirect\t/r\n";

    #[test]
    fn a_score_counts_each_url_once_and_only_pages_of_the_list() {
        let truth = Truth::read(TRUTH.as_bytes()).unwrap();
        let score = truth.score([
            "http://h.example?",
            "https://h.example:81/#top",
            "/b",
            " /b?x ",
            "http://h.example/r",
            "http://h.example/elsewhere",
            "",
        ]);
        assert_eq!((score.out_of_scope, score.not_pages), (1, 1));
        let area = score.view(View::Area);
        assert_eq!((area.pages, area.contents, area.downloads, area.contents_downloaded), (5, 3, 3, 2));
        assert_eq!((area.possible(), area.saved(), area.avoided()), (1.0 - 0.6, 1.0 - 0.6, Some(0.5)));
        assert_eq!((area.lost(), area.lost_share()), (1, 1.0 / 3.0));
        assert_eq!(score.view(View::Page).lost(), 2);
        assert_eq!(truth.score(["http://h.example?a=1"]).view(View::Page).downloads, 1);
    }

    #[test]
    fn nothing_downloaded_is_all_lost_and_a_site_without_copies_has_none_to_avoid() {
        let truth = Truth::read("5\t9\tpage\t/\r\n\r\n7\t8\tpage\t/a\r\n".as_bytes()).unwrap();
        let area = truth.score([]).view(View::Area);
        assert_eq!((area.saved(), area.lost(), area.possible(), area.avoided()), (1.0, 2, 0.0, None));
        assert_eq!(truth.urls().collect::<Vec<_>>(), ["/", "/a"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let long = format!("0\t0\tpage\t/{}\n", "x".repeat(MAX_BYTES));
        for (text, number, word) in [
            ("0\t0\tpage\t/\n0\t0\t/b\n", 2, "3 columns"),
            ("0 0 page /\n", 1, "1 columns"),
            ("# c\n\n0\tx\tpage\t/\n", 3, "\"x\" is not the number of a content by page"),
            ("0\t-1\tpage\t/\n", 1, "both views"),
            ("0\t0\tpage\tb\n", 1, "slash"),
            ("0\t0\tpage\t/\n1\t1\tpage\t/\n", 2, "listed before"),
            (long.as_str(), 1, "longer than"),
        ] {
            let error = Truth::read(text.as_bytes()).unwrap_err();
            let said = error.to_string();
            assert!(said.starts_with(&format!("line {number}: ")) && said.contains(word), "{said}");
        }
        let error = Truth::read(&b"0\t0\tpage\t/\n0\t0\tpage\t/\xFF\n"[..]).unwrap_err();
        assert!(error.to_string().starts_with("line 2: "), "{error}");
        assert!(matches!(Truth::read(&b"-1\t-1\tother\t/\n"[..]), Err(TruthError::NoPages)));
    }
}
