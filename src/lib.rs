//! Huntsman.
