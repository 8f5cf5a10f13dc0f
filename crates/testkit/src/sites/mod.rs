//! Generated sites: their pages are the same on every run, and are generated on request.
//!
//! [`Harbour`], [`Chandlery`] and [`Uniform`] are functions from an address to a page, which any server can send; the command
//! `huntsman` does. The others are sites for this crate's server.

#[cfg(feature = "kit")]
mod audit;
mod boats;
mod chandlery;
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
pub use audit::{ALSO_AUDITED, AUDITED, Audited, audited, audited_rendered};
pub use chandlery::Chandlery;
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
