//! Evidence in addition to the confidence: where two texts agree, how much, and what may excuse it. It never changes `C`.

mod boilerplate;
mod direction;
mod disguise;
mod document;
mod licence;
mod quotation;
mod report;
mod runs;
mod verdict;

pub use boilerplate::Boilerplate;
pub use direction::{Dates, Direction};
pub use disguise::Disguise;
pub use document::{Document, MAX_DOCUMENT};
pub use licence::{LicenceHint, LicenceKind, licence_hint};
pub use report::{Article, Evidence, Passage, Span};
pub use verdict::{Score, Verdict};
