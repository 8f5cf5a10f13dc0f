//! Copyright violations over a network: what sources say, whoever has to be asked for it.

mod pdf;

pub use pdf::{PdfError, PdfProcess, PdfText};
