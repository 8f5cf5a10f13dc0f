//! One pass over a web page: links, title, meta, blocks and text without a tree.
//!
//! Bytes in, borrowed ranges out: [`sniff`] says what a body is, [`decode_body`] makes text of it, and a [`Scan`] finds
//! in one linear pass what nearly every page is fetched for, about ten times faster than building a tree. Below it
//! lies [`tokenize`], the tokenizer of the HTML standard, for other kinds of sinks.
//!
//! It does not build a tree, run selectors, resolve addresses, follow anything or know what an address means.
#![forbid(unsafe_code)]

mod blocks;
mod charset;
mod foreign;
mod kind;
mod link;
mod meta;
mod references;
mod region;
mod scan;
mod sink;
mod tags;
mod text;
mod tokenizer;
mod value;

pub use charset::{CharsetSource, Decoded, content_charset, decode_body, encode_query};
pub use kind::{PageKind, kind_from_headers, sniff};
pub use link::{Link, LinkTag, ResourceKind, ResourceLink};
pub use meta::{LinkElement, Meta, MetaRefresh};
pub use references::{Context, decode};
pub use region::Region;
pub use scan::{Block, Cut, Scan, ScanOptions};
pub use tokenizer::{Attributes, MAX_DOCUMENT, Name, Sink, Span, State, TextKind, tokenize, tokenize_from};
