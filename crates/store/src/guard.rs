//! Converts panics of a backend to errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{START_ANEW, StoreError, StoreErrorKind};

/// Runs a step of a backend; a panic in it becomes [`StoreErrorKind::Damaged`], because the backends assert conditions
/// that only a damaged file violates. The message of the panic is about the internals of the backend, so it is dropped.
pub(crate) fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    // The state after a caught panic is not used: the store fails all later writes.
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(|_| {
        Err(StoreError::new(StoreErrorKind::Damaged, format!("the file is damaged; {START_ANEW}")).at(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_damaged_file() {
        let error = guarded(Path::new("f"), || -> Result<(), _> { panic!("page {} is odd", 7) });
        let error = error.expect_err("it panicked");
        assert_eq!(error.kind(), StoreErrorKind::Damaged);
        assert!(error.to_string().starts_with("f: the file is damaged; "), "{error}");
        assert!(!error.to_string().contains("page 7"), "the words of a library are not for users: {error}");
    }
}
