//! Tests of the scan of pages: against other parsers, against damage, and against documents designed to be slow.

mod content;
mod differential;
mod facts;
mod hostile;
mod html5lib;
mod linear;
mod traps;
