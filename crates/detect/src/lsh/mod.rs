//! Locality-sensitive hashing: finds the signatures that are likely to be similar to a given one, without comparing all of them.
//!
//! A signature is cut into `b` bands of `r` values; two signatures are candidates of each other if they agree in all values of a band.
//! [`LshParams`] chooses `b` and `r`; [`LshIndex`] is the interface of an index; [`PackedIndex`] is the one to use. An index returns
//! candidates without verifying them, because only the caller has the signatures.

#[cfg(feature = "lsh-datasketch")]
mod datasketch;
mod packed;
mod params;

use std::fmt;

#[cfg(feature = "lsh-datasketch")]
pub use datasketch::DatasketchIndex;
pub use packed::PackedIndex;
pub use params::{LshParams, LshParamsError};

use crate::minhash::Signature;

/// An index from the bands of signatures to the numbers of the signatures.
///
/// All implementations give the same candidates for the same signatures and the same [`LshParams`].
pub trait LshIndex: fmt::Debug + Send + Sync {
    /// The bands and rows into which signatures are cut.
    fn params(&self) -> LshParams;

    /// Adds a signature under a number. If there is a signature under this number, it is replaced.
    ///
    /// Numbers are meant to be dense: an index may take memory for all numbers up to the largest.
    fn insert(&mut self, id: u32, signature: &Signature);

    /// Removes the signature with this number; returns whether there was one.
    fn remove(&mut self, id: u32) -> bool;

    /// Puts the numbers of all signatures that share a band with `signature` into `out`, in ascending order, each once. The former content
    /// of `out` is dropped.
    fn candidates_into(&self, signature: &Signature, out: &mut Vec<u32>);

    /// The numbers of all signatures that share a band with `signature`, in ascending order.
    fn candidates(&self, signature: &Signature) -> Vec<u32> {
        let mut out = Vec::new();
        self.candidates_into(signature, &mut out);
        out
    }

    /// The number of signatures.
    fn len(&self) -> usize;

    /// Whether there are no signatures.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
