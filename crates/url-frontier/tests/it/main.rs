//! The frontier on a server in this process, which does as the reference implementation does.

mod conformance;
mod crawls;
mod nodes;
