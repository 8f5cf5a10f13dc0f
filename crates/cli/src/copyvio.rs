//! Copyright violations: articles beside the sources that they may copy.

mod args;
mod comparison;
mod input;
mod side_by_side;

pub(crate) use args::{CheckArgs, CompareArgs, CopyvioCommand};
pub(crate) use comparison::Comparison;
pub(crate) use input::{Input, Inputs, pdf_reader};
pub(crate) use side_by_side::page;
