//! AvoidDup: learns which parts of URLs do not change the content of a page.

mod chrome;
mod content;
pub mod evaluation;
mod journal;
mod kinds;
mod links;
mod order;
mod overrides;
mod own_words;
mod page;
mod predictor;
mod rows;
mod shape;
mod site;
mod target;
mod tie;
mod totals;

pub use journal::Damaged;
pub use links::LinkPlaces;
pub use overrides::Overrides;
pub use page::PageText;
pub use predictor::{Attempt, Decision, IdleParameter, Options, Predictor, Reason, Rule};
pub use rows::Row;
pub use site::{Kinship, LinkContext};
pub use totals::Totals;
