//! The `huntsman` command.
fn main() {}
