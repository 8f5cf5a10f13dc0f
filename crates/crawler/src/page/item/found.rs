//! What a selector of a field found, and the types that it can become.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;
use url::Url;

use super::Item;
use super::part::{PagePart, Place};
use crate::error::{Error, Result};

/// A thing that the selector of a field found: a text, the value of an attribute, or an element.
#[derive(Clone)]
pub struct FoundValue<'a> {
    /// The part in which it was found.
    part: PagePart<'a>,
    kind: Kind<'a>,
    form: Form,
}

#[derive(Clone)]
enum Kind<'a> {
    Text(Cow<'a, str>),
    Place(Place<'a>),
}

/// How a thing is given as a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// White space is collapsed.
    #[default]
    Normal,
    /// As in the document.
    Raw,
    /// An element is given as markup.
    Markup,
}

impl<'a> FoundValue<'a> {
    pub(super) fn text_of(part: PagePart<'a>, text: impl Into<Cow<'a, str>>) -> Self {
        Self { part, kind: Kind::Text(text.into()), form: Form::Normal }
    }

    pub(super) fn place_of(part: PagePart<'a>, place: Place<'a>) -> Self {
        Self { part, kind: Kind::Place(place), form: Form::Normal }
    }

    pub(super) fn in_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// Another text in the same form, which was made of this value.
    pub(super) fn made(&self, text: Cow<'a, str>) -> Self {
        Self { part: self.part, kind: Kind::Text(text), form: self.form }
    }

    /// The value as a text. White space at both ends is removed and each run inside is one space, unless the field is `raw`; an element gives all
    /// text inside it, or its markup if the field is `html`. `None` if nothing is left.
    ///
    /// # Errors
    /// The texts of the item take more than 64 MiB.
    pub fn text(&self) -> Result<Option<Cow<'_, str>>> {
        Ok(self.in_its_form(self.raw_text()?))
    }

    /// Like [`text`](Self::text), for as long as the page lives if the text stands there as it is.
    pub(super) fn page_text(&self) -> Result<Option<Cow<'a, str>>> {
        let text = match &self.kind {
            Kind::Text(text) => text.clone(),
            Kind::Place(place) => self.text_at(place),
        };
        self.part.read(text.len())?;
        Ok(self.in_its_form(text))
    }

    fn in_its_form<'t>(&self, text: Cow<'t, str>) -> Option<Cow<'t, str>> {
        match self.form {
            Form::Raw | Form::Markup => Some(text),
            Form::Normal => Some(normal(text)).filter(|text| !text.is_empty()),
        }
    }

    /// The value as a text, as in the document; an element gives its markup if the field is `html`.
    ///
    /// # Errors
    /// The texts of the item take more than 64 MiB.
    pub fn raw_text(&self) -> Result<Cow<'_, str>> {
        let text = match &self.kind {
            Kind::Text(text) => Cow::Borrowed(&**text),
            Kind::Place(place) => self.text_at(place),
        };
        self.part.read(text.len())?;
        Ok(text)
    }

    fn text_at(&self, place: &Place<'a>) -> Cow<'a, str> {
        let is_markup = self.form == Form::Markup;
        match *place {
            Place::Element(element) if is_markup => Cow::Owned(element.html()),
            Place::Element(element) => element.raw_text(),
            Place::Node(node) if is_markup => Cow::Owned(node.markup()),
            Place::Node(node) => Cow::Borrowed(node.raw_text()),
            Place::Json(_, Value::String(text)) => Cow::Borrowed(text),
            Place::Json(_, value) => Cow::Owned(value.to_string()),
            Place::Page(page) => Cow::Borrowed(page.body_text()),
        }
    }

    /// The value as a part of the page, from which an item can be read.
    ///
    /// # Errors
    /// It is a text, or items are nested too deep.
    pub fn part(&self) -> Result<PagePart<'a>> {
        match &self.kind {
            Kind::Place(place) => self.part.inside(*place),
            Kind::Text(text) => Err(Error::msg(format!(
                "an item is read from an element, and {} is a text: select elements, without ::text and the like",
                shown(text)
            ))),
        }
    }

    /// The value as an absolute URL: a text is resolved against the base of the page; an element of HTML gives its `href` or `src`; one of XML
    /// that has neither, its text. `None` if the text is empty.
    ///
    /// # Errors
    /// It is no URL, or the element has neither attribute.
    pub fn url(&self) -> Result<Option<Url>> {
        let text = match &self.kind {
            Kind::Place(Place::Element(element)) if !element.is_xml() => return element.href().map(Some),
            Kind::Place(Place::Element(element)) => element.address().unwrap_or_default(),
            Kind::Place(Place::Node(node)) => match node.attr("href").or_else(|| node.attr("src")) {
                Some(address) => Cow::Borrowed(address),
                None if node.is_element() && !node.is_xml() => return node.href().map(Some),
                None => self.raw_text()?,
            },
            _ => self.raw_text()?,
        };
        let address = text.trim();
        let page = self.part.page();
        let url = |cause| Error::from(cause).context(format!("{} is not a URL", shown(address)));
        Some(address)
            .filter(|address| !address.is_empty())
            .map(|address| page.resolve(address).map_err(url))
            .transpose()
    }
}

impl fmt::Debug for FoundValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Text(text) => f.write_str(&shown(text)),
            Kind::Place(Place::Element(element)) => element.fmt(f),
            Kind::Place(Place::Node(node)) => node.fmt(f),
            Kind::Place(Place::Json(..)) => f.write_str("JSON"),
            Kind::Place(Place::Page(page)) => page.fmt(f),
        }
    }
}

/// A text without white space at its ends, and with one space for each run inside.
fn normal(text: Cow<'_, str>) -> Cow<'_, str> {
    let trimmed = text.trim();
    let mut after_space = false;
    let is_normal = trimmed.chars().all(|c| {
        let is_odd = c.is_whitespace() && (c != ' ' || after_space);
        after_space = c == ' ';
        !is_odd
    });
    match (text, is_normal) {
        (Cow::Borrowed(text), true) => Cow::Borrowed(text.trim()),
        (Cow::Owned(text), true) if trimmed_len(&text) == text.len() => Cow::Owned(text),
        (text, true) => Cow::Owned(text.trim().to_owned()),
        (text, false) => {
            let mut words = text.split_whitespace();
            let mut normal = String::with_capacity(text.len());
            normal.push_str(words.next().unwrap_or_default());
            for word in words {
                normal.push(' ');
                normal.push_str(word);
            }
            Cow::Owned(normal)
        }
    }
}

fn trimmed_len(text: &str) -> usize {
    text.trim().len()
}

/// A value in a message: in quotes, escaped, and at most 80 characters of it.
pub(super) fn shown(value: &str) -> String {
    const SHOWN: usize = 80;
    let cut = value.char_indices().nth(SHOWN).map(|(at, _)| at);
    let begin = value[..cut.unwrap_or(value.len())].escape_debug();
    format!("\"{begin}{}\"", if cut.is_some() { "..." } else { "" })
}

/// A type that a value of a page can become, so that a field of an item can have it: texts, numbers, booleans, URLs, JSON, and all
/// [`Item`]s. A field may also be an `Option` or a `Vec` of such a type.
///
/// Types of other crates are converted by a function: `#[item(css = "time", with = parse_date)]`, or `with = str::parse` for what
/// implements `FromStr`.
#[diagnostic::on_unimplemented(
    message = "a value of a page cannot become `{Self}`",
    note = "convert it with a function, `#[item(.., with = function)]`; `with = str::parse` does it for what implements `FromStr`",
    note = "a struct that is read from an element needs `#[derive(Item)]`"
)]
pub trait ItemValue: Sized {
    /// Makes a value of what was found; `None` if it is empty, and the next value is to be tried.
    ///
    /// # Errors
    /// It is not of this type. The message says what it is; field and page are added to it.
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>>;
}

impl<T: Item> ItemValue for T {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        T::from_part(&found.part()?).map(Some)
    }
}

impl ItemValue for String {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        Ok(found.text()?.map(Cow::into_owned))
    }
}

impl ItemValue for Url {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        found.url()
    }
}

impl ItemValue for bool {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        let Some(text) = found.text()? else { return Ok(None) };
        match &*text.trim().to_ascii_lowercase() {
            "true" => Ok(Some(true)),
            "false" => Ok(Some(false)),
            _ => Err(Error::msg(format!(
                "{} is neither true nor false; `exists` asks whether there is anything, and `with = function` converts",
                shown(&text)
            ))),
        }
    }
}

/// A value of JSON as it is; a text is read as JSON.
impl ItemValue for Value {
    fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
        if let Kind::Place(Place::Json(_, value)) = &found.kind {
            found.raw_text()?;
            return Ok(Some((*value).clone()));
        }
        let text = found.raw_text()?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let value = serde_json::from_str(&text);
        value
            .map(Some)
            .map_err(|cause| Error::from(cause).context(format!("{} is not JSON", shown(text.trim()))))
    }
}

/// The error of a text that is not a number.
fn no_number(text: &str, kind: &str) -> Error {
    let advice = "take it out with re = r\"...\", or convert it with `with = function`";
    Error::msg(format!("{} is not a number ({kind}); {advice}", shown(text)))
}

macro_rules! whole_numbers {
    ($($number:ident)*) => { $(
        impl ItemValue for $number {
            fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
                let Some(text) = found.text()? else { return Ok(None) };
                text.trim().parse().map(Some).map_err(|_| no_number(&text, stringify!($number)))
            }
        }
    )* };
}

whole_numbers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

macro_rules! numbers {
    ($($number:ident)*) => { $(
        impl ItemValue for $number {
            fn from_found(found: &FoundValue<'_>) -> Result<Option<Self>> {
                let Some(text) = found.text()? else { return Ok(None) };
                // `inf` and `NaN` on a page are words, and no format of feeds has them.
                let number = text.trim().parse().ok().filter(|number: &$number| number.is_finite());
                number.map(Some).ok_or_else(|| no_number(&text, stringify!($number)))
            }
        }
    )* };
}

numbers!(f32 f64);
