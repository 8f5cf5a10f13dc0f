//! What pages hold for programs: JSON in bodies and scripts, JSON-LD, microdata and Open Graph.
//!
//! - [`read_json`] and [`read_lenient`] read JSON as a whole, [`assigned`] reads the value that a script assigns to a variable.
//! - [`json_ld`] collects the linked data of a page, [`LinkedData`] gives it as typed values.
//! - [`microdata`] reads the items that are marked up in HTML, and [`OpenGraph`] the `meta` elements for previews.
//!
//! ```
//! use huntsman_page_data::{assigned, read_json, read_lenient};
//!
//! assert_eq!(read_json(r#"{"name": "mill"}"#)?["name"], "mill");
//! let script = "window.__STATE__ = {cart: [], user: 'Ada',}; start();";
//! let state = assigned(script, "window.__STATE__").expect("the script assigns it")?;
//! assert_eq!(state["user"], "Ada");
//! assert_eq!(read_lenient("{price: 7,}")?["price"], 7);
//! # Ok::<(), huntsman_page_data::Error>(())
//! ```
//!
//! The crate runs no scripts, fetches nothing (contexts of JSON-LD neither), and knows no vocabulary: it does not check that a product has
//! a price. Everything is read within limits; where one is exceeded, an error names it.

mod error;
mod json;
mod json_ld;
mod lenient;
mod linked_data;
mod microdata;
mod open_graph;
mod script;
mod type_name;

pub use error::Error;
pub use json::{MAX_DEPTH, MAX_VALUES, read_json};
pub use json_ld::json_ld;
pub use lenient::read_lenient;
pub use linked_data::{LinkedData, OneOrMany, type_of};
pub use microdata::{Microdata, MicrodataItem, MicrodataValue, microdata};
pub use open_graph::OpenGraph;
pub use script::assigned;
pub use type_name::type_name;
