//! A real browser renders pages of a site that exists only in memory.
//!
//! The browser is the one that is installed, or that at `HUNTSMAN_TEST_BROWSER`.

mod bounds;
mod contexts;
mod ends;
mod hostile;
mod kit;
mod loads;
mod ready;
mod steps;
mod tree;
