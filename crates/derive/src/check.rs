//! Checks of the texts in attributes. An error points at the text, and its message says where in it.

use huntsman_css::Selector;
use huntsman_json_path::JsonPath;
use huntsman_xpath::XPath;
use syn::{Error, LitStr, Result};

/// # Errors
/// The text is no CSS selector.
pub(crate) fn css(text: &LitStr) -> Result<()> {
    Selector::parse(&text.value()).map(drop).map_err(|error| Error::new(text.span(), error))
}

/// # Errors
/// The text is no XPath expression, or it has a variable: nothing could give its value.
pub(crate) fn xpath(text: &LitStr) -> Result<()> {
    let checked = XPath::new(&text.value()).and_then(|expression| expression.without_variables());
    checked.map_err(|error| Error::new(text.span(), error))
}

/// # Errors
/// The text is no JSONPath.
pub(crate) fn json(text: &LitStr) -> Result<()> {
    JsonPath::new(&text.value()).map(drop).map_err(|error| Error::new(text.span(), error))
}

/// # Errors
/// The text is no regular expression of the crate `regex`.
pub(crate) fn regex(text: &LitStr) -> Result<()> {
    let parsed = regex_syntax::Parser::new().parse(&text.value());
    parsed.map(drop).map_err(|error| Error::new(text.span(), error))
}
