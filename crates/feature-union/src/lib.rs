//! The features that the whole workspace switches on in crates that only other libraries use: a crate without code, which `test.sh` checks
//! beside each crate that it checks alone, so that Cargo need not check most libraries again. Its manifest says which, and why.
