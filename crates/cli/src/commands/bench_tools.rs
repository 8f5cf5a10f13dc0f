//! What the benches share: texts as languages have them, clocks, tables.

pub(crate) mod clock;
pub(crate) mod sheet;
pub(crate) mod stories;
