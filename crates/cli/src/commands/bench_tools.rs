//! What the benches share: texts as languages have them, clocks, tables.

pub(crate) mod clock;
pub(crate) mod sheet;
pub(crate) mod stories;

/// How this program was built, which its times depend on.
pub(crate) const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };
