//! Tests of audits through their public interface.

mod catalogue;
mod issues;
