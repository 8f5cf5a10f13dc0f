//! `#[derive(Item)]`: structs that are read from pages. Use it through the crates `huntsman` or `huntsman-crawler`, which export it beside the
//! trait that it implements.
//!
//! Selectors, XPath and regular expressions are checked here, by the grammars that also read them in a crawl: what is not valid does not compile. Nothing
//! is matched here, and this crate knows no page.

mod attributes;
mod check;
mod expand;
mod field;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements the trait `Item` for a struct with named fields: each field says by `#[item(..)]` where its value is.
///
/// | key of a field | meaning |
/// | --- | --- |
/// | `css = "h1"` | a CSS selector: elements, `::text`, `::attr(name)`; elements are inside the part that is read |
/// | `xpath = ".//h1"` | an XPath 1.0 expression, without variables |
/// | `url` | the URL of the page |
/// | `re = r"\d+"` | takes what a regular expression finds: of each match its first group, or all of it if there is none |
/// | `join = ", "` | makes one text of all values |
/// | `with = function` | converts: a function or closure that gets `&str` and returns `T`, `Option<T>` or `Result<T, E>` |
/// | `default`, `default = expression` | the value if nothing is found; alone, it needs no selector |
/// | `exists` | for a `bool`: whether anything is found |
/// | `html` | an element gives its markup instead of the text inside it |
/// | `raw` | white space stays as it is, and a text without anything else counts |
/// | `skip` | not read from the page: `Default::default()` |
///
/// They are applied in this order: the selector, white space, `re`, `join`, `with`.
///
/// The type of a field is a text, a number, `bool`, `Url`, `serde_json::Value`, another item or what `with` returns; or a `Vec` or an `Option` of these,
/// or an `Option` of a `Vec`. These two are recognised by their names. A field that is neither is the first value that is not empty, and it is an error
/// if there is none.
///
/// | key of the struct | meaning |
/// | --- | --- |
/// | `prefix(a = "http://www.w3.org/2005/Atom")` | prefixes of namespaces for XPath |
/// | `crate = path` | where `huntsman` is, if the crate has another name or is `huntsman_crawler` |
#[proc_macro_derive(Item, attributes(item))]
pub fn item(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let made = expand::expand(&input);
    // The stub keeps the compiler from complaining of each place where the item is used.
    made.unwrap_or_else(|error| [error.into_compile_error(), expand::stub(&input)].into_iter().collect())
        .into()
}
