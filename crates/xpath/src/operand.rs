//! Values within an evaluation, borrowed from the document, the expression or the scope as far as possible.

use std::borrow::Cow;

use crate::document::{Document, Node};
use crate::lexer::is_space;
use crate::value::Value;

/// A [`Value`] that need not own what it is made of: most strings of an evaluation are literals and texts of the document.
#[derive(Clone, Debug)]
pub(crate) enum Operand<'a> {
    /// Nodes in document order, each once.
    Nodes(Cow<'a, [Node]>),
    Boolean(bool),
    Number(f64),
    Text(Cow<'a, str>),
}

impl<'a> Operand<'a> {
    pub(crate) fn nodes(nodes: Vec<Node>) -> Self {
        Self::Nodes(Cow::Owned(nodes))
    }

    pub(crate) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn boolean(&self) -> bool {
        match self {
            Self::Nodes(nodes) => !nodes.is_empty(),
            Self::Boolean(value) => *value,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::Text(text) => !text.is_empty(),
        }
    }

    pub(crate) fn number(&self, document: &Document) -> f64 {
        match self {
            Self::Nodes(nodes) => nodes.first().map_or(f64::NAN, |first| number_of(document.value(*first))),
            Self::Boolean(value) => f64::from(u8::from(*value)),
            Self::Number(number) => *number,
            Self::Text(text) => number_of(text),
        }
    }

    pub(crate) fn string(self, document: &'a Document) -> Cow<'a, str> {
        match self {
            Self::Nodes(nodes) => Cow::Borrowed(nodes.first().map_or("", |first| document.value(*first))),
            Self::Boolean(value) => Cow::Borrowed(if value { "true" } else { "false" }),
            Self::Number(number) => Cow::Owned(text_of(number)),
            Self::Text(text) => text,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Nodes(nodes) => Value::Nodes(nodes.into_owned()),
            Self::Boolean(value) => Value::Boolean(value),
            Self::Number(number) => Value::Number(number),
            Self::Text(text) => Value::String(text.into_owned()),
        }
    }
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Nodes(nodes) => Self::Nodes(Cow::Borrowed(nodes)),
            Value::Boolean(value) => Self::Boolean(*value),
            Value::Number(number) => Self::Number(*number),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
        }
    }
}

/// A number as XPath writes it: digits with at most one point, after a minus sign or none, between white space.
pub(crate) fn number_of(text: &str) -> f64 {
    let text = text.trim_matches(is_space);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    if is_number { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

/// A number as a string: without an exponent, whole numbers without a point.
pub(crate) fn text_of(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    // Adding zero makes a zero of a negative one.
    format!("{}", number + 0.0)
}
