//! AvoidDup: learns which parts of URLs do not change the content of a page.

mod changing;
mod chrome;
mod content;
mod estimate;
pub mod evaluation;
mod explanation;
mod fold;
mod journal;
mod kinds;
mod links;
mod multimap;
mod order;
mod overrides;
mod own_words;
mod packed_key;
mod page;
mod predictor;
mod rows;
mod shape;
mod site;
mod sketch;
mod target;
mod tie;
mod totals;
mod words;

pub use explanation::{
    Evidence, ExplainedSlot, Explanation, Obstacle, Relation, SisterGroup, Sisters, TestedRange, Verdict,
};
pub use journal::Damaged;
pub use links::LinkPlaces;
pub use overrides::Overrides;
pub use page::PageText;
pub use predictor::{
    Attempt, Decision, IdleParameter, Options, Picture, Predictor, Reason, Rule, TemplateCounts,
    TemplatePicture,
};
pub use rows::Row;
pub use site::{Kinship, LinkContext};
pub use totals::Totals;
