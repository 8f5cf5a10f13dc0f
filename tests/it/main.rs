//! Tests of the whole project: crawls with the polite stack, the fuzz targets, and rules that the repository keeps.

mod conformance;
mod crawls;
mod dependencies;
mod fuzz;
#[cfg(feature = "project")]
mod project;
#[cfg(feature = "spider")]
mod spider;
