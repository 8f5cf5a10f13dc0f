//! Finds possible sources of an article over the network, reads them, and compares them with the article.

mod cache;
mod candidates;
mod check;
mod checked;
mod comparison;
mod cores;
mod full_text;
mod memory;
mod near_candidates;
mod pages;
mod pdf;
mod pending;
mod plan;
mod questions;
mod reading;
mod recent;
mod search;
mod source_reader;
mod sources;
mod sweep;
#[cfg(feature = "text-index")]
mod text_index;
mod text_only;
mod workspace;

pub use cache::CheckCache;
pub(crate) use cache::is_whole as is_whole_result;
pub use candidates::{Candidate, CandidateError, CandidateSource, Finding, Given, Links, Subject};
pub use checked::{Checked, Found};
pub use memory::{Memory, Room};
pub use near_candidates::NearCandidates;
pub use pages::{Copied, Copyvio};
pub use pdf::{PdfError, PdfProcess, PdfText};
pub use pending::PendingArticles;
pub use plan::CheckPlan;
pub use reading::{NoText, Reading, TextKind, external_links, links_to_others};
pub use search::{Engine, SearchEngine};
pub use source_reader::SourceResult;
pub use sweep::Sweep;
#[cfg(feature = "text-index")]
pub use text_index::{IndexPages, IndexedPage, TextIndex, TextIndexCheck, TextIndexError};
pub use workspace::Workspace;
