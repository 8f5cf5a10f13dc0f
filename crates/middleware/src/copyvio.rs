//! Copyright violations over a network: what sources say, whoever has to be asked for it.

mod pdf;
mod reading;
mod workspace;

pub use pdf::{PdfError, PdfProcess, PdfText};
pub use reading::{NoText, TextKind};
pub use workspace::{CheckPlan, Checked, Desk, Found, Workspace};
