//! The integration tests of the crate, as one program.

mod diagnostics;
