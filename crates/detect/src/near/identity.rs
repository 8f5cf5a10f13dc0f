//! The properties that an index is made for.

use std::fmt;

use super::error::{IndexError, IndexErrorKind};
use crate::simhash::Features;

/// The properties that an index is made for: the largest distance, and the features of texts.
///
/// An index cannot be used with another identity: tables made for 3 bits miss some of the fingerprints within 7, and fingerprints of other
/// features cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    k: u32,
    features: Features,
}

impl Identity {
    /// The largest k. Up to 7 differing bits, one of four bands of 32 bits differs in at most one bit, and one of eight bands of 16 bits is
    /// equal. Beyond 7, neither is certain.
    pub const MAX_K: u32 = 7;

    /// The identity of an index of fingerprints by `features` that finds all within `k` bits, k itself included.
    ///
    /// # Errors
    /// [`Input`](IndexErrorKind::Input): k is above [`MAX_K`](Self::MAX_K), for which results would not be exact.
    pub fn new(k: u32, features: Features) -> Result<Self, IndexError> {
        if k > Self::MAX_K {
            let message = format!(
                "k is {k}, and at most {} is possible: beyond it an answer would not be exact",
                Self::MAX_K
            );
            return Err(IndexError::new(IndexErrorKind::Input, message));
        }
        Ok(Self { k, features })
    }

    /// The largest distance of the documents that a query finds, 0 to 7.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// The features of texts that fingerprints are made of.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Checks whether an index that was made for `self` can be used for `asked`.
    ///
    /// # Errors
    /// [`Identity`](IndexErrorKind::Identity): it cannot; the message names both identities.
    pub fn check(&self, asked: &Identity) -> Result<(), IndexError> {
        if self == asked {
            return Ok(());
        }
        let message =
            format!("the index is made for {self}, not for {asked}; use it so, or build another index");
        Err(IndexError::new(IndexErrorKind::Identity, message))
    }
}

impl Default for Identity {
    /// The default: k = 3 and `words-log`.
    fn default() -> Self {
        Self { k: 3, features: Features::default() }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k = {} and {}", self.k, self.features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_above_7_is_refused() {
        for k in 0..=7 {
            assert_eq!(Identity::new(k, Features::Char5).map(|identity| identity.k()).ok(), Some(k));
        }
        for k in [8, 128, u32::MAX] {
            let error = Identity::new(k, Features::Char5).expect_err("it would not be exact");
            assert_eq!(error.kind(), IndexErrorKind::Input);
        }
    }

    #[test]
    fn another_identity_is_refused_and_both_are_named() {
        let (made, asked) = (Identity::default(), Identity::new(7, Features::Words3).expect("k is 7"));
        assert!(made.check(&made).is_ok());
        let error = made.check(&asked).expect_err("another one");
        assert_eq!(error.kind(), IndexErrorKind::Identity);
        let message = error.to_string();
        assert!(message.contains("k = 3 and words-log") && message.contains("k = 7 and words3"), "{message}");
    }
}
