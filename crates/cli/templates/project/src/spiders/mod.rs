//! The spiders, one a file.

pub mod quotes;
