//! What components learn about hosts, and what goes with a host from one process to the next if the queue is shared.

use crate::host::HostKey;

/// A part of a crawl that learns about hosts what the next process that works on them should know, such as their robots.txt.
///
/// A component registers it with [`Hooks::hand_over`](crate::Hooks::hand_over). Unless the queue is shared, no method is called.
pub trait HandOver: Send + Sync + 'static {
    /// Begins to keep what is learnt, for [`learnt`](Self::learnt).
    fn begin(&self);

    /// Returns what was learnt since the last call. It is called after every event of the crawl, so it must be quick.
    fn learnt(&self) -> Vec<HostNote>;

    /// Returns what was learnt and is not told yet, because it was too little: called before hosts go to another process, and at the end of the crawl.
    fn rest(&self) -> Vec<HostNote> {
        Vec::new()
    }

    /// Takes what another process learnt about a host, before this process asks the host for anything. What cannot be read is passed over.
    fn take_over(&self, note: &HostNote);
}

/// One thing that was learnt about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNote {
    /// The host.
    pub host: HostKey,
    /// What it is about; a later note of the same host about the same replaces it. It begins with the name of the component.
    pub about: String,
    /// What was learnt. A frontier may leave out a long one.
    pub value: Vec<u8>,
}
