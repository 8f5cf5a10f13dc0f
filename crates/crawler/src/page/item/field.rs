//! A field of an item: its selector, and what is done with what it finds.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use huntsman_xpath::Scope;
use regex::{Captures, Match, Regex};

use super::found::{Form, FoundValue, ItemValue, shown};
use super::part::PagePart;
use crate::error::{Error, Result};

/// A field of an item. The code of `#[derive(Item)]` has one as a static, so that regular expressions are compiled once.
#[derive(Debug)]
pub struct Field {
    /// The name with that of the item: `Book.price`.
    name: &'static str,
    query: Query,
    form: Form,
    pattern: Option<&'static str>,
    join: Option<&'static str>,
    regex: OnceLock<Regex>,
    scope: OnceLock<Scope>,
}

/// Where the values of a field are.
#[derive(Clone, Copy, Debug)]
pub enum Query {
    /// What a CSS selector matches.
    Css(&'static str),
    /// What an XPath expression selects, with the prefixes that it may use.
    XPath(&'static str, &'static [(&'static str, &'static str)]),
    /// What a JSONPath selects.
    Json(&'static str),
    /// The URL of the page.
    Url,
}

impl Field {
    /// A field without regular expression and the like.
    pub const fn new(name: &'static str, query: Query) -> Self {
        Self {
            name,
            query,
            form: Form::Normal,
            pattern: None,
            join: None,
            regex: OnceLock::new(),
            scope: OnceLock::new(),
        }
    }

    /// Keeps white space as it is.
    pub const fn raw(mut self) -> Self {
        self.form = Form::Raw;
        self
    }

    /// Takes elements as markup.
    pub const fn html(mut self) -> Self {
        self.form = Form::Markup;
        self
    }

    /// Takes what a regular expression finds in the values: of each match its first group that took part, or all of it.
    pub const fn regex(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// Makes one text of all values.
    pub const fn join(mut self, with: &'static str) -> Self {
        self.join = Some(with);
        self
    }

    /// The first value.
    ///
    /// # Errors
    /// There is none, or it cannot be converted.
    pub fn one<T>(&self, part: &PagePart<'_>, convert: impl Convert<T>) -> Result<T> {
        match self.optional(part, convert)? {
            Some(value) => Ok(value),
            None => Err(self.nothing(part).context(self.name)),
        }
    }

    /// The first value, if there is one.
    ///
    /// # Errors
    /// It cannot be converted.
    pub fn optional<T>(&self, part: &PagePart<'_>, convert: impl Convert<T>) -> Result<Option<T>> {
        self.named(|| {
            // Most fields have one value, and most parts have it in the first place where it can be.
            if let (Query::Css(css), None) = (self.query, self.join) {
                let Some(found) = part.first_css(css)? else { return Ok(None) };
                let found = found.in_form(self.form);
                let value = match self.pattern {
                    None => convert(&found)?,
                    Some(pattern) => match self.first_match(pattern, &found)? {
                        Some(found) => convert(&found)?,
                        None => None,
                    },
                };
                if value.is_some() {
                    return Ok(value);
                }
            }
            first(&self.formed(self.select(part)?)?, &convert)
        })
    }

    /// All values.
    ///
    /// # Errors
    /// One cannot be converted.
    pub fn list<T>(&self, part: &PagePart<'_>, convert: impl Convert<T>) -> Result<Vec<T>> {
        self.read(part, |found| {
            let count = found.len();
            let one = |(number, value): (usize, &FoundValue<'_>)| {
                let value =
                    convert(value).map_err(|error| error.context(format!("value {number} of {count}")));
                value.transpose()
            };
            (1..).zip(&found).filter_map(one).collect()
        })
    }

    /// All values, if there are any.
    ///
    /// # Errors
    /// One cannot be converted.
    pub fn optional_list<T>(&self, part: &PagePart<'_>, convert: impl Convert<T>) -> Result<Option<Vec<T>>> {
        self.list(part, convert).map(|list| Some(list).filter(|list| !list.is_empty()))
    }

    /// Whether anything was found.
    ///
    /// # Errors
    /// The part cannot be searched.
    pub fn exists(&self, part: &PagePart<'_>) -> Result<bool> {
        self.read(part, |found| Ok(!found.is_empty()))
    }

    /// Adds the name of the field to errors.
    fn named<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        work().map_err(|error| error.context(self.name))
    }

    /// Hands all that was found over.
    fn read<'a, T>(
        &self,
        part: &PagePart<'a>,
        then: impl FnOnce(Vec<FoundValue<'a>>) -> Result<T>,
    ) -> Result<T> {
        self.named(|| then(self.formed(self.select(part)?)?))
    }

    fn select<'a>(&self, part: &PagePart<'a>) -> Result<Vec<FoundValue<'a>>> {
        match self.query {
            Query::Css(css) => part.find_css(css),
            Query::Json(path) => part.find_json(path),
            Query::XPath(path, prefixes) => {
                part.find_xpath(path, self.scope.get_or_init(|| scope_of(prefixes)))
            }
            Query::Url => Ok(vec![FoundValue::text_of(*part, part.page().url().as_str())]),
        }
    }

    /// What was selected, in the form of the field.
    fn formed<'a>(&self, mut found: Vec<FoundValue<'a>>) -> Result<Vec<FoundValue<'a>>> {
        if self.form != Form::Normal {
            found = found.into_iter().map(|value| value.in_form(self.form)).collect();
        }
        if let Some(pattern) = self.pattern {
            found = self.matches(pattern, &found)?;
        }
        match self.join {
            Some(with) => joined(&found, with),
            None => Ok(found),
        }
    }

    fn compiled(&self, pattern: &str) -> Result<&Regex> {
        if let Some(regex) = self.regex.get() {
            return Ok(regex);
        }
        let regex = Regex::new(pattern)?;
        Ok(self.regex.get_or_init(|| regex))
    }

    fn matches<'a>(&self, pattern: &str, found: &[FoundValue<'a>]) -> Result<Vec<FoundValue<'a>>> {
        let regex = self.compiled(pattern)?;
        let mut matches = Vec::new();
        for value in found {
            let Some(text) = value.page_text()? else { continue };
            if has_groups(regex) {
                let groups = regex.captures_iter(&text).filter_map(|groups| first_group(&groups));
                matches.extend(groups.map(|group| value.made(slice(&text, group.range()))));
            } else {
                matches.extend(regex.find_iter(&text).map(|found| value.made(slice(&text, found.range()))));
            }
        }
        Ok(matches)
    }

    /// The first of the [`matches`](Self::matches), unless a match without groups comes before it.
    fn first_match<'a>(&self, pattern: &str, found: &FoundValue<'a>) -> Result<Option<FoundValue<'a>>> {
        let regex = self.compiled(pattern)?;
        let Some(text) = found.page_text()? else { return Ok(None) };
        // Looking for groups costs more than looking for the whole match.
        let place = if has_groups(regex) {
            regex.captures(&text).and_then(|groups| first_group(&groups)).map(|group| group.range())
        } else {
            regex.find(&text).map(|found| found.range())
        };
        Ok(place.map(|place| found.made(slice(&text, place))))
    }

    /// The error if there is no value: the selector, and what it found.
    fn nothing(&self, part: &PagePart<'_>) -> Error {
        let selector = match self.query {
            Query::Css(css) => format!("css {}", shown(css)),
            Query::XPath(path, _) => format!("xpath {}", shown(path)),
            Query::Json(path) => format!("json {}", shown(path)),
            Query::Url => "the URL".to_owned(),
        };
        let selected = self.select(part).unwrap_or_default();
        let texts = selected.iter().filter_map(|value| Some(value.text().ok()??.into_owned()));
        let mut texts = texts.take(1);
        Error::msg(match (selected.is_empty(), texts.next(), self.pattern) {
            (true, ..) => format!("nothing matches {selector}"),
            (false, None, _) => format!("what {selector} matches has no text"),
            (false, Some(text), Some(pattern)) => {
                format!("re {} matches nothing in {} ({selector})", shown(pattern), shown(&text))
            }
            (false, Some(text), None) => {
                format!("the conversion gives nothing for {} ({selector})", shown(&text))
            }
        })
    }
}

/// What makes a value of what was found, or nothing.
pub trait Convert<T>: Fn(&FoundValue<'_>) -> Result<Option<T>> {}

impl<T, F: Fn(&FoundValue<'_>) -> Result<Option<T>>> Convert<T> for F {}

/// The conversion by the type of the field.
pub fn value<T: ItemValue>(found: &FoundValue<'_>) -> Result<Option<T>> {
    T::from_found(found)
}

/// The conversion by a function, `with = function`.
pub fn with<T, R: Converted<T>>(
    function: impl Fn(&str) -> R,
) -> impl Fn(&FoundValue<'_>) -> Result<Option<T>> {
    move |found| {
        let Some(text) = found.text()? else { return Ok(None) };
        function(&text)
            .converted()
            .map_err(|why| Error::msg(format!("{} cannot be converted: {why}", shown(&text))))
    }
}

/// What a function of `with` may return: a value, an `Option` or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "the function of `with` returns `{Self}`, which is no `{T}`",
    note = "it gets a `&str`, and returns the value of the field or what its `Option` or `Vec` contains: `T`, `Option<T>` or `Result<T, E>`"
)]
pub trait Converted<T> {
    /// The value, nothing, or the error as a text.
    fn converted(self) -> Result<Option<T>, String>;
}

impl<T> Converted<T> for T {
    fn converted(self) -> Result<Option<T>, String> {
        Ok(Some(self))
    }
}

impl<T> Converted<T> for Option<T> {
    fn converted(self) -> Result<Option<T>, String> {
        Ok(self)
    }
}

impl<T, E: std::fmt::Display> Converted<T> for Result<T, E> {
    fn converted(self) -> Result<Option<T>, String> {
        self.map(Some).map_err(|error| error.to_string())
    }
}

/// Whether an expression has groups besides the whole match.
pub(super) fn has_groups(regex: &Regex) -> bool {
    regex.captures_len() > 1
}

/// The first group that took part in a match.
pub(super) fn first_group<'t>(groups: &Captures<'t>) -> Option<Match<'t>> {
    groups.iter().skip(1).flatten().next()
}

/// A part of a text, without a copy if the text is borrowed.
fn slice<'a>(text: &Cow<'a, str>, range: Range<usize>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[range]),
        Cow::Owned(text) => Cow::Owned(text[range].to_owned()),
    }
}

/// The first value that is not empty.
fn first<T>(found: &[FoundValue<'_>], convert: impl Convert<T>) -> Result<Option<T>> {
    found.iter().find_map(|value| convert(value).transpose()).transpose()
}

fn joined<'a>(found: &[FoundValue<'a>], with: &str) -> Result<Vec<FoundValue<'a>>> {
    let mut texts = Vec::with_capacity(found.len());
    for value in found {
        texts.extend(value.text()?);
    }
    let text: Vec<Cow<'_, str>> = texts;
    Ok(found
        .first()
        .filter(|_| !text.is_empty())
        .map(|first| first.made(Cow::Owned(text.join(with))))
        .into_iter()
        .collect())
}

/// A scope with the prefixes of an item.
pub(super) fn scope_of(prefixes: &[(&str, &str)]) -> Scope {
    prefixes.iter().fold(Scope::new(), |scope, (prefix, uri)| scope.prefix(*prefix, *uri))
}
