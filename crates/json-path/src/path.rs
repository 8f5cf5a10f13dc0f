//! JSONPath (RFC 9535): paths are compiled, checked, and evaluated within a budget.
//!
//! The grammar is that of `jsonpath-rust` 1.0 (MIT, in upkeep, and the only crate whose syntax tree is public); evaluating is our own.
//! `jsonpath-rust` writes the place of every value as a text, so a document of a megabyte whose one name is as long as its array takes
//! memory without end. `serde_json_path` 0.7 (MIT) keeps no places, but its tree is private, and its evaluation has no limit either:
//! `$..*..*` gives as many values as the document has pairs of a value and one above it, and a regular expression is compiled again for
//! each value it is tried on. Neither can be stopped from outside. What the grammar of `jsonpath-rust` takes beyond the RFC
//! (functions of its own, arguments of the wrong type, names with spaces) is refused here.

use jsonpath_rust::parser::errors::JsonPathError;
use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use pest::error::InputLocation;
use serde_json::Value;

use crate::error::Error;
use crate::{check, evaluate};

/// Longest path in bytes.
const MAX_LENGTH: usize = 10_000;
/// Deepest nesting of brackets and parentheses in a path.
const MAX_NESTING: usize = 24;
/// Deepest nesting of parentheses in a path: the parser tries some alternatives anew at each level.
const MAX_PARENTHESES: usize = 8;

/// Limits of an evaluation. A path that exceeds them gives an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Values that are looked at; one that is looked at again counts again. (Default: 50 million, less than a second.)
    pub steps: usize,
    /// Values that the path, or a part of it, may select. (Default: four million, which take 32 MB.)
    pub results: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 50_000_000, results: 4_000_000 }
    }
}

/// A compiled path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    text: String,
    query: JpQuery,
}

impl JsonPath {
    /// Compiles a path such as `$.items[*].price` or `$..book[?@.price < 10 && @.isbn].title`.
    ///
    /// # Errors
    /// It is not a path by RFC 9535; the message shows the place by its character, where it is known.
    pub fn new(text: &str) -> Result<Self, Error> {
        check_size(text)?;
        let query = parse_json_path(text).map_err(|cause| explain(text, &cause))?;
        check::query(&query).map_err(|(part, what)| refused(text, find(text, &part), &what))?;
        Ok(Self { text: text.to_owned(), query })
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The values that the path selects, in the order of the document. A value that is reached in several ways is there several times.
    ///
    /// # Errors
    /// A limit of [`Limits::default`] is exceeded.
    pub fn select<'a>(&self, document: &'a Value) -> Result<Vec<&'a Value>, Error> {
        self.select_within(document, Limits::default())
    }

    /// Like [`select`](Self::select), within limits of the caller.
    ///
    /// # Errors
    /// One of them is exceeded.
    pub fn select_within<'a>(&self, document: &'a Value, limits: Limits) -> Result<Vec<&'a Value>, Error> {
        self.select_counted(document, limits).map(|(values, _)| values)
    }

    /// Like [`select_within`](Self::select_within), with the number of steps that were taken.
    ///
    /// # Errors
    /// As [`select_within`](Self::select_within).
    pub fn select_counted<'a>(
        &self,
        document: &'a Value,
        limits: Limits,
    ) -> Result<(Vec<&'a Value>, usize), Error> {
        let mut evaluation = evaluate::Evaluation::new(document, limits);
        let values = evaluation
            .select(&self.query.segments)
            .map_err(|what| Error::new(format!("JSONPath \"{}\": {what}", self.text.escape_debug())))?;
        Ok((values, evaluation.steps()))
    }
}

/// An error at a byte of a path; the message counts characters from 1.
fn refused(path: &str, byte: usize, what: &str) -> Error {
    let character = path[..path.floor_char_boundary(byte)].chars().count() + 1;
    Error::new(format!("JSONPath \"{}\", character {character}: {what}", path.escape_debug()))
}

/// Refuses what would cost the parser too much.
fn check_size(path: &str) -> Result<(), Error> {
    if path.len() > MAX_LENGTH {
        return Err(Error::new(format!(
            "a JSONPath has at most {MAX_LENGTH} bytes; this one has {}",
            path.len()
        )));
    }
    if !path.starts_with('$') {
        return Err(refused(path, 0, "a path begins with $, the whole document, such as $.items[*].name"));
    }
    let (mut open, mut parentheses, mut quote, mut escaped) = (0_usize, 0_usize, None, false);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut last, mut has_space) = ('$', false);
    for (at, character) in path.char_indices() {
        if quote.is_none() && matches!(character, ' ' | '\t' | '\n' | '\r') {
            has_space = true;
            continue;
        }
        // The parser takes them for one name.
        if has_space && is_word(last) && is_word(character) {
            let what = "a part of a path is missing before this; a name with spaces is written ['like this']";
            return Err(refused(path, at, what));
        }
        (last, has_space) = (if quote.is_some() { '"' } else { character }, false);
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(mark), _) if mark == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '(') => {
                open += 1;
                parentheses += usize::from(character == '(');
                if open > MAX_NESTING || parentheses > MAX_PARENTHESES {
                    let most =
                        format!("at most {MAX_NESTING} brackets and {MAX_PARENTHESES} parentheses nest");
                    return Err(refused(path, at, &most));
                }
            }
            (None, ']') => open = open.saturating_sub(1),
            (None, ')') => {
                open = open.saturating_sub(1);
                parentheses = parentheses.saturating_sub(1);
            }
            _ => {}
        }
    }
    match quote {
        Some(_) => Err(refused(path, path.len(), "the path ends within a name or text in quotes")),
        None => Ok(()),
    }
}

/// Says in words what the parser refused.
fn explain(path: &str, cause: &JsonPathError) -> Error {
    let at = match cause {
        JsonPathError::PestError(error) => match error.location {
            InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
        },
        other => {
            let what = other.to_string();
            // It quotes the part of the path that it means.
            let part = what.split('`').nth(1).unwrap_or_default();
            if what.contains("argument") {
                let what = match what.contains("number of arguments") {
                    true => format!("{part}() has too few or too many arguments"),
                    false => format!("{part}() takes a path, such as @.*"),
                };
                return refused(path, find(path, &format!("{part}(")), &what);
            }
            return refused(
                path,
                find(path, part),
                "this is not valid here; a name with other characters than letters, digits and _ is written ['name']",
            );
        }
    };
    match path.get(at..).and_then(|rest| rest.chars().next()) {
        None => refused(path, at, "the path ends too early"),
        Some(found) => refused(
            path,
            at,
            &format!(
                "{found:?} is not expected here; after $ come parts such as .name, ['name'], [0], [*], [?@.price < 10] and ..name"
            ),
        ),
    }
}

/// The byte at which a part of a path is, or 0.
fn find(path: &str, part: &str) -> usize {
    path.find(part.trim()).unwrap_or(0)
}
