//! Which addresses have content that was fetched already: exactly as the Python package MaybeDont 0.1.1 answers it.
//!
//! [`DupePredictor`] learns from pages, an address and a text each, which parameters and paths change nothing, and says how probable
//! it is that an address repeats what is known. [`Gate`] is the decision that MaybeDont's middleware makes of it: warm-up,
//! threshold, exploration.
//!
//! This is the reference: for comparing, and for those who want what they are used to. It has the weaknesses of the original: it counts
//! pairs, takes the boldest claim, learns of query parameters only one at a time, and keeps everything. What differs, on purpose:
//!
//! - An address is canonicalised for questions too, not only for learning.
//! - Hash functions are others, so two texts of similarity 0.9 may be taken for equal here and not there, or the other way.
//! - Against hostile pages: texts are cut at [`MAX_SHINGLES`](huntsman_text::shingles::MAX_SHINGLES), 64 parameters of an address count, and
//!   512 of a path are looked for where they lack.
//! - Samples, and the coin of the exploration, follow from a seed.

mod address;
mod gate;
mod predictor;
mod rows;
mod saved;
mod state;

pub use address::Address;
pub use gate::{Decision, Gate, GateSettings};
pub use predictor::{Answer, DupePredictor, Learned, PredictorSettings, SettingsError};
pub use rows::{Claim, Counts, Row, Table, Totals};
