//! Words, languages and shingles of texts; parts and canonical form of URLs; times as text.
//!
//! A crawler and the detectors of duplicates must agree on these: what a word is, which language a text is in, and whether two URLs are the
//! same. The functions take texts and parsed URLs and return plain values, which are the same on every machine and in every version.
//!
//! This crate is not a detector: it neither compares nor remembers pages (see `huntsman-detect`). It does not read HTML (see
//! `huntsman-html`) or parse URLs (see the crate `url`), and it uses no network, no files and no runtime.
//!
//! ```
//! use huntsman_text::lang;
//! use huntsman_text::urlparts::canonical;
//! use huntsman_text::words::Words;
//! use url::Url;
//!
//! let words = Words::of("Crawlers follow links, and links lead to pages.");
//! assert_eq!(words.iter().take(3).collect::<Vec<_>>(), ["crawlers", "follow", "links"]);
//!
//! assert_eq!(lang::detect("irrelevant", Some("en-GB")).lang.code(), "en");
//!
//! let url = |text| canonical(&Url::parse(text).unwrap());
//! assert_eq!(url("http://example.org/?b=2&a=1#top"), url("http://EXAMPLE.org:80/?a=1&b=2"));
//! ```

pub mod bytes64;
pub mod lang;
pub mod shingles;
pub mod time;
pub mod urlparts;
pub mod words;
