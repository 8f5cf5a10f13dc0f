//! The state of a command's files after a crash: the system calls of one run are recorded, and crashes between any
//! two of them are simulated afterwards.
//!
//! A [`Recording`] holds what one run of a binary did to the files of a directory, as `strace` saw it, so no library
//! and no raw call is missed. [`Recording::restore`] writes the directory as it would be after a [`Crash`] at any
//! point, with all unsynced changes kept, lost, or kept in part. [`Recording::faults`] lists the calls that may fail,
//! and [`run_with`] makes one of them fail, or kills the process there, in a run of its own.
//!
//! The simulated file system is as strict as POSIX allows: data is durable after a sync of the file, a name after a
//! sync of its directory, and syncing a new file does not make its name durable. Code that is correct here is correct
//! on ext4, XFS and Btrfs, which all promise more. A rename happens entirely or not at all. If a random part of the
//! unsynced changes is lost, names are lost from some point on, as in a journal, and data anywhere, in sectors.

mod fault;
mod process;
mod recorder;
mod recording;
mod state;
mod trace;

pub use fault::{Effect, Fault, run_with};
pub use process::{Exited, run_bounded};
pub use recording::Recording;
pub use state::{Crash, Loss};
