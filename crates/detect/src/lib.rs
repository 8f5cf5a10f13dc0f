//! Models of what is copied: duplicate URLs, near-duplicate texts, copied passages.
//!
//! The crate takes text and addresses and gives back values. It knows nothing of crawling: no requests, no pages, no sockets, no runtime.
//! Somebody with a folder of text files can use it. It reads no documents either: that is `huntsman-dedup`, which keeps indexes in Redis, too.
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

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod avoid;
pub mod copyvio;
pub mod lsh;
pub mod maybedont;
pub mod minhash;
pub mod near;
pub mod simhash;

/// What the models read, from the crate `huntsman-text`.
pub use huntsman_text::{lang, shingles, urlparts, words};
