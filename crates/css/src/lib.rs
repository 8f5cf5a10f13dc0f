//! CSS selectors as Scrapy's users write them: with `::text`, `::attr(name)` and `:contains('text')`.
//!
//! This crate has their grammar and what the parts of a selector mean, which follows parsel. The crate `selectors` parses and matches. A tree
//! implements `selectors::Element` for the [`Dialect`] and asks each [`Branch`] which elements it matches.
//!
//! It is no tree and no parser of HTML: `derive(Item)` compiles it into the compiler to check selectors, so it has few dependencies.
//!
//! ```
//! use huntsman_css::{Selector, Take};
//!
//! let selector = Selector::parse("h1::text, img::attr(alt)")?;
//! let takes: Vec<&Take> = selector.branches().iter().map(|branch| branch.take()).collect();
//! assert_eq!(takes, [&Take::Text, &Take::Attr("alt".to_owned())]);
//!
//! let error = Selector::parse("p::foo").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "CSS selector \"p::foo\", character 2: there is no pseudo-element ::foo; there are ::text and ::attr(name)"
//! );
//! # Ok::<(), huntsman_css::Error>(())
//! ```

mod dialect;
mod error;
mod grammar;
mod selector;

pub use dialect::{Dialect, Name, PseudoClass, PseudoElement};
pub use error::Error;
pub use selector::{Branch, Key, Selector, Take};
