//! Sites that the command itself serves on loopback: the forum of `demo` and the linked pages of `bench`.

mod forum;
mod linked;
mod prose;

pub(crate) use forum::Forum;
pub(crate) use linked::Linked;
