//! Evaluates models of duplicate URLs: generated sites, a crawl of them without a network, and the score of a real crawl.
//!
//! A [`Case`] is a generated site: requests in the order of their discovery, each with the content that its response has. A [`Simulation`]
//! crawls it with a given number of requests in flight, with the [`Predictor`](super::Predictor) or with MaybeDont's
//! [`Gate`](crate::maybedont::Gate), and reports what was found and what was lost. A [`Truth`] is a list of the URLs of a real site with
//! the content of each; it scores the URLs that a crawl downloaded. A [`TruthMaker`] makes such a list from the texts
//! of the pages. A [`Replay`] crawls a [`Recording`] of a real site again, with either model.
//!
//! The tests of this crate and `huntsman-bench avoid-dup` use it.
//!
//! ```
//! use huntsman_detect::avoid::Options;
//! use huntsman_detect::avoid::evaluation::{Case, Simulation};
//!
//! let requests = Case::PathSessions.requests(1);
//! let outcome = Simulation::in_flight(16).with_default(&requests, Options::default());
//! assert!(outcome.recall().unwrap() > 0.6 && outcome.lost == 0, "{outcome:?}");
//! ```

mod case;
mod outcome;
mod recorded_response;
mod recording;
mod reference_replay;
mod replay;
mod replayed;
mod seeded_random;
mod simulation;
mod synthetic;
mod truth;
mod truth_maker;

pub use case::{Case, CaseRequest};
pub use outcome::{Outcome, Times};
pub use recorded_response::RecordedResponse;
pub use recording::{Recording, RecordingError};
pub use replay::{Order, Replay};
pub use replayed::{Cause, Duplicate, Loss, Replayed};
pub use simulation::Simulation;
pub use truth::{Score, Truth, TruthError, View, ViewScore};
pub use truth_maker::{MadeTruth, ResponseKind, TruthMaker};
