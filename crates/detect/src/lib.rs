//! Words, fingerprints, signatures, language, URL parts: what duplicate and plagiarism detection stand on.
//!
//! The crate takes text and addresses and gives back values. It knows nothing of crawling: no
//! requests, no pages, no network, no runtime. Somebody with a folder of text files can use it.

// Files are written by `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod avoid;
pub mod copyvio;
pub mod lang;
pub mod lsh;
pub mod maybedont;
pub mod minhash;
pub mod near;
pub mod shingles;
pub mod simhash;
pub mod urlparts;
pub mod words;
