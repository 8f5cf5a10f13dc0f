//! Detectors of copies: duplicate URLs, near-duplicate texts, copied passages.
//!
//! The crate takes texts and addresses and returns values. It does not depend on crawling: it knows no requests, no pages, no sockets and
//! no runtime, so it works as well on a folder of text files. Reading documents is the task of `huntsman-dedup`, which also keeps indexes
//! in Redis.
//!
//! ```
//! use huntsman_detect::simhash::{Features, SimHash};
//! use huntsman_detect::words::Words;
//!
//! let hash = |text| SimHash::with(Features::default(), &Words::of(text));
//! let story = "the ferry leaves the outer harbour at noon and comes back when the tide turns";
//! assert_eq!(hash(story), hash("The ferry leaves the outer harbour at noon, and comes back when the tide turns!"));
//! assert!(hash(story).distance(hash("nothing of the kind was ever said by anybody here")) > 7);
//! ```

// All files are written by way of `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod avoid;
pub mod copyvio;
pub mod lsh;
pub mod maybedont;
pub mod minhash;
pub mod near;
pub mod simhash;

/// The input types of the detectors, from the crate `huntsman-text`.
pub use huntsman_text::{lang, shingles, urlparts, words};
