//! Copyright violations over a network: what sources say, whoever has to be asked for it.

mod cache;
mod candidates;
mod desk;
mod detour;
mod pages;
mod pdf;
mod reading;
mod recent;
mod sweep;
mod workspace;

pub use cache::CheckCache;
pub use candidates::{Candidate, CandidateError, CandidateSource, Finding, Given, Links, Subject};
pub use desk::Desk;
pub use pages::{Copied, Copyvio};
pub use pdf::{PdfError, PdfProcess, PdfText};
pub use reading::{NoText, Reading, TextKind, external_links};
pub use sweep::Sweep;
pub use workspace::{CheckPlan, Checked, Found, Workspace};
