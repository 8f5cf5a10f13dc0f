//! Generated sites: the same pages on every run, made when they are asked for.
//!
//! [`Harbour`] and [`Uniform`] are functions from an address to a page: any server can send these, and the command `huntsman` does. The others
//! are sites of this crate's server.

mod boats;
#[cfg(feature = "kit")]
mod forum;
mod harbour;
#[cfg(feature = "kit")]
mod linked;
mod page;
#[cfg(feature = "kit")]
mod quotes;
mod random;
mod uniform;
#[cfg(feature = "kit")]
mod words;

#[cfg(feature = "kit")]
pub use forum::{Forum, forum};
pub use harbour::Harbour;
#[cfg(feature = "kit")]
pub use linked::{linked, linked_path, linked_targets};
pub use page::Page;
#[cfg(feature = "kit")]
pub use quotes::quotes;
pub use uniform::Uniform;

#[cfg(feature = "kit")]
pub(crate) use random::Random;
#[cfg(feature = "kit")]
pub(crate) use words::prose;
