//! Copyright violations: compares articles with the sources that they may copy.

mod among;
mod args;
mod candidates;
mod common;
mod comparison;
mod input;
mod plan;
mod side_by_side;

pub(crate) use among::Among;
pub(crate) use args::{AmongArgs, CheckArgs, CompareArgs, CopyvioCommand, ShowArgs};
pub(crate) use candidates::CandidateArgs;
pub(crate) use comparison::{Compared, Comparison};
pub use input::pdf_reader;
pub(crate) use input::{Input, Inputs, Read};
pub(crate) use plan::{EachCheckArgs, PlanArgs};
pub(crate) use side_by_side::{STYLE, page, pair, table};
