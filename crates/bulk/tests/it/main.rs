//! Joins of fingerprints in files, compared with a naive comparison of all pairs and with the index in memory.

mod cluster;
mod join;
mod made;
mod sql;
