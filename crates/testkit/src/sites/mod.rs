//! Generated sites: the same pages on every run, made when they are asked for.

mod forum;
mod linked;
mod quotes;
pub(crate) mod words;

pub use forum::{Forum, forum};
pub use linked::{linked, linked_path, linked_targets};
pub use quotes::quotes;
pub(crate) use words::{Random, prose};
