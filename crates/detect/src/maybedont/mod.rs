//! Predicts which addresses have content that was fetched already, exactly as the Python package MaybeDont 0.1.1 does.
//!
//! [`DupePredictor`] learns from pages, each an address and a text, which parameters and paths do not change the content, and gives the
//! probability that the content of an address is known. [`Gate`] makes the decision of MaybeDont's middleware from it: warm-up, threshold,
//! exploration.
//!
//! This is the reference, for comparisons and for users who want the behaviour they know. It has the weaknesses of the original: it counts
//! pairs, uses the most optimistic claim, learns about query parameters only one at a time, and keeps everything. The intended differences
//! are:
//!
//! - An address is canonicalised for predictions too, not only for learning.
//! - The hash functions are different, so two texts of similarity 0.9 may be equal here and not there, or the other way round.
//! - As a defence against hostile pages, texts are cut at [`MAX_SHINGLES`](huntsman_text::shingles::MAX_SHINGLES), 64 parameters of an
//!   address count, and for addresses that lack parameters of their path, 512 of these are looked up.
//! - Samples and the random choices of the exploration depend on a seed.

mod address;
mod gate;
mod predictor;
mod rows;
mod saved;
mod state;

pub use address::Address;
pub use gate::{Decision, Gate, GateSettings};
pub use predictor::{DupePredictor, Estimate, Learned, PredictorSettings, SettingsError};
pub use rows::{Claim, Counts, Row, Table, Totals};
