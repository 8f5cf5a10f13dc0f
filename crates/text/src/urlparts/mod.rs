//! The parts of an address, and the canonical form in which two addresses are compared.
//!
//! - [`canonical`] and [`canonical_into`]: the canonical form. It is for keys only; never send a request to it.
//! - [`Parts`]: host, path segments with their parameters, query pairs, in their order, raw and decoded.
//! - [`guard`]: the properties of a path by which a crawler recognises a trap.
//!
//! This module does not parse addresses: everything starts from a [`url::Url`], which has lower-cased the scheme and the host, resolved dot
//! segments and dropped the default port.

mod canonical;
pub mod guard;
mod parts;

pub use canonical::name_matches;
pub use canonical::{CanonicalOptions, canonical, canonical_into};
pub use parts::{Pair, Pairs, Parts, Segment, Segments, Separator};
