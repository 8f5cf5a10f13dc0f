//! Panics: they are reported where the failure matters to the user, and never in the words of a library.
//!
//! Damaged files and strange pages can make a library panic. The caller of that library catches the panic and says
//! what failed and what to do. The text of the panic, with paths of the machine that built the program, helps only
//! its authors: it is printed if `RUST_BACKTRACE` is set.

use std::env;
use std::panic;

use crate::command::panics::VARIABLE;

/// Suppresses the message of every panic unless `RUST_BACKTRACE` is set.
pub(crate) fn keep_quiet() {
    if env::var_os(VARIABLE).is_none() {
        panic::set_hook(Box::new(|_| {}));
    }
}
