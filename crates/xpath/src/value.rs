//! Results of expressions, and their conversions (section 3 and 4 of the recommendation).

use crate::document::{Document, Node};
use crate::lexer::is_space;

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nodes in document order, each once.
    Nodes(Vec<Node>),
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string.
    String(String),
}

impl Value {
    /// The result as a boolean: whether there are nodes, the number is neither zero nor NaN, or the string is not empty.
    pub fn boolean(&self) -> bool {
        match self {
            Self::Nodes(nodes) => !nodes.is_empty(),
            Self::Boolean(value) => *value,
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::String(text) => !text.is_empty(),
        }
    }

    /// The result as a number; a text that is none gives NaN.
    pub fn number(&self, document: &Document) -> f64 {
        match self {
            Self::Nodes(nodes) => nodes.first().map_or(f64::NAN, |first| number_of(document.value(*first))),
            Self::Boolean(value) => f64::from(u8::from(*value)),
            Self::Number(number) => *number,
            Self::String(text) => number_of(text),
        }
    }

    /// The result as a string: of nodes, that of the first one.
    pub fn string(&self, document: &Document) -> String {
        match self {
            Self::Nodes(nodes) => {
                nodes.first().map_or_else(String::new, |first| document.value(*first).to_owned())
            }
            Self::Boolean(value) => value.to_string(),
            Self::Number(number) => text_of(*number),
            Self::String(text) => text.clone(),
        }
    }

    /// The string of each node, or the only one of another result.
    pub fn strings(&self, document: &Document) -> Vec<String> {
        match self {
            Self::Nodes(nodes) => nodes.iter().map(|node| document.value(*node).to_owned()).collect(),
            _ => vec![self.string(document)],
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Node>> for Value {
    fn from(mut nodes: Vec<Node>) -> Self {
        nodes.sort_unstable();
        nodes.dedup();
        Self::Nodes(nodes)
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
