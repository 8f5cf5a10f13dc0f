//! XPath 1.0 over trees of HTML and XML, within a budget.
//!
//! A [`Document`] is a tree in one array, in document order; it is built from events, or [read](Document::read_xml) from XML. An [`XPath`]
//! is an expression that was compiled once and is evaluated at any node of any document, with variables and prefixes of the caller.
//!
//! All axes, functions and operators of the recommendation are there (<https://www.w3.org/TR/1999/REC-xpath-19991116/>), and what parsel adds
//! to them: `re:test` and `re:replace` (EXSLT, with the syntax of the crate `regex`, in linear time), `set:difference`, `set:intersection`,
//! `set:distinct` and `set:has-same-node` (EXSLT), and `has-class`.
//!
//! A page or an expression cannot make an evaluation endless: each node that is visited and each character that is compared costs a step of
//! [`Limits::steps`], and an evaluation that uses them up is an [`Error`]. The nesting of expressions and trees is bounded as well.
//!
//! This crate is no HTML parser (a browser's tree is built elsewhere and copied into a document), it validates nothing, and it expands no
//! entities but the five of XML and those of characters: a document type declaration is passed over.
//!
//! ```
//! use huntsman_xpath::{Document, Scope, XPath};
//!
//! let feed = "<rss><item><title>Mills</title><g:price xmlns:g='urn:shop'>12</g:price></item><item><title>Dams</title></item></rss>";
//! let document = Document::read_xml(feed)?;
//! let scope = Scope::new().prefix("g", "urn:shop").variable("least", 10.0);
//! let titles = XPath::new("//item[g:price > $least]/title")?.evaluate(&document, document.root(), &scope)?;
//! assert_eq!(titles.strings(&document), ["Mills"]);
//! assert_eq!(XPath::new("count(//item)")?.evaluate(&document, document.root(), &scope)?.number(&document), 2.0);
//! # Ok::<(), huntsman_xpath::Error>(())
//! ```
//!
//! Without the feature `evaluate`, which is on by default, only the grammar is left: [`XPath::new`] tells whether an expression is valid, and
//! the crate needs no other one. So `derive(Item)` checks expressions while a program is compiled.

// Without the evaluation, the output of the parser is not read.
#![cfg_attr(not(feature = "evaluate"), allow(dead_code))]

#[cfg(feature = "evaluate")]
mod axes;
#[cfg(feature = "evaluate")]
mod document;
mod error;
#[cfg(feature = "evaluate")]
mod evaluate;
mod expression;
#[cfg(feature = "evaluate")]
mod functions;
#[cfg(feature = "evaluate")]
mod index;
mod lexer;
#[cfg(feature = "evaluate")]
mod markup;
#[cfg(feature = "evaluate")]
mod operand;
mod parser;
#[cfg(feature = "evaluate")]
mod postings;
#[cfg(feature = "evaluate")]
mod scope;
#[cfg(feature = "evaluate")]
mod value;
#[cfg(feature = "evaluate")]
mod xml;
mod xpath;

#[cfg(feature = "evaluate")]
pub use document::{Builder, Document, Kind, Node};
pub use error::Error;
#[cfg(feature = "evaluate")]
pub use postings::Postings;
#[cfg(feature = "evaluate")]
pub use scope::{Limits, Scope};
#[cfg(feature = "evaluate")]
pub use value::Value;
pub use xpath::XPath;
