//! Tests of job directories and stores on a real disk.

mod crash;
mod directory;
mod fixture;
mod writer;
