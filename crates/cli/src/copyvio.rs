//! Copyright violations: compares articles with the sources that they may copy.

mod args;
mod candidates;
mod common;
mod documents;
mod input;
mod plan;

pub(crate) use args::{AmongArgs, CheckArgs, CompareArgs, CopyvioCommand, ShowArgs};
pub(crate) use candidates::CandidateArgs;
pub(crate) use documents::Documents;
#[cfg(feature = "pdf")]
pub(crate) use input::pdf_process;
pub use input::pdf_reader;
pub(crate) use input::{Input, Inputs};
pub(crate) use plan::{EachCheckArgs, PlanArgs};
