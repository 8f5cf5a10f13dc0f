//! A panic of a command is its failure, with a message that says what to do.

use std::panic::{self, AssertUnwindSafe};

use super::exit::{Failure, Outcome};

/// The variable with which a panic tells where it happened.
pub const VARIABLE: &str = "RUST_BACKTRACE";

/// Runs the work of a command; a panic that nothing else caught becomes its failure.
///
/// # Errors
/// Those of the work, or it panicked.
pub fn caught(work: impl FnOnce() -> Outcome) -> Outcome {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Failure::crawl(format!(
            "the program panicked, which is a fault in it: run it again with {VARIABLE}=1 to see where, and report that"
        )))
    })
}

#[cfg(test)]
mod tests {
    use super::super::exit::Exit;
    use super::*;

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
