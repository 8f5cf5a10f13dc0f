//! Tests of audits through their public interface.

mod catalogue;
mod compare;
mod issues;
mod links;
