//! Checks the links of files and of single pages, without a crawl of their sites.

mod answer;
mod cache;
mod check;
mod extract;
mod local;
mod options;
mod reference;
mod report;
mod source;
mod spider;

pub use answer::{LinkOutcome, LinkState};
pub use check::{CheckedLink, LinkCheck, LinkReport};
pub(crate) use extract::{Format, markdown_options, references};
pub use options::{LinkOptions, StatusRanges};
pub(crate) use reference::Base;
pub use reference::{Reference, Target};
pub use report::LinkFormat;
pub use source::UnreadSource;
