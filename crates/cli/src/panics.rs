//! Panics: they are reported where the failure matters to the user, and never in the words of a library.
//!
//! Damaged files and strange pages can make a library panic. The caller of that library catches the panic and says
//! what failed and what to do. The text of the panic, with paths of the machine that built the program, helps only
//! its authors: it is printed if `RUST_BACKTRACE` is set.

use std::env;
use std::panic::{self, AssertUnwindSafe};

use crate::exit::{Failure, Outcome};

const VARIABLE: &str = "RUST_BACKTRACE";

/// Suppresses the message of every panic unless `RUST_BACKTRACE` is set.
pub(crate) fn keep_quiet() {
    if env::var_os(VARIABLE).is_none() {
        panic::set_hook(Box::new(|_| {}));
    }
}

/// Runs the work of a command; a panic that nothing else caught becomes its failure.
pub(crate) fn caught(work: impl FnOnce() -> Outcome) -> Outcome {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Failure::crawl(format!(
            "the program panicked, which is a fault in it: run it again with {VARIABLE}=1 to see where, and report that"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    #[test]
    fn a_panic_is_a_failure_that_does_not_repeat_its_text() {
        assert_eq!(caught(|| Ok(Exit::Done)).unwrap(), Exit::Done);
        let failure = caught(|| panic!("page 7 is odd")).unwrap_err();
        assert_eq!(failure.exit, Exit::Crawl);
        assert!(
            failure.message.contains(VARIABLE) && !failure.message.contains("page 7"),
            "{}",
            failure.message
        );
    }
}
