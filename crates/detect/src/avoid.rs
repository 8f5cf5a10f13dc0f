//! AvoidDup: learns which parts of URLs do not change the content of a page.

mod chrome;
mod content;
mod kinds;
mod page;
mod rows;
mod shape;
mod site;

pub use page::PageText;
pub use rows::Row;
pub use site::{Kinship, LinkContext, Options, Site, Verdict};
