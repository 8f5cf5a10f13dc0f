//! Tests of audits through their public interface.

mod catalogue;
mod compare;
mod exports;
mod issues;
mod links;
