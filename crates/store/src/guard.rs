//! Panics of a backend become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::error::{START_ANEW, StoreError, StoreErrorKind};

/// Runs a step of a backend; a panic in it is [`StoreErrorKind::Damaged`], for the backends assert what only a damaged file
/// breaks. What the panic says is about the inside of the backend and helps nobody here.
pub(crate) fn guarded<T>(path: &Path, step: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    // What a caught panic leaves behind is not used: the store fails all later writes.
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
