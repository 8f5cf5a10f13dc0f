//! What a crash leaves of a command's files: its system calls are recorded, and any crash between them is made up afterwards.
//!
//! A [`Recording`] is what one run of a binary did to the files of a directory, as `strace` saw it, so that no library and no
//! raw call is missed. [`Recording::restore`] writes the directory as it would be after a [`Crash`]: at any point, with all
//! that was not synced kept, lost, or kept in part. [`Recording::faults`] lists the calls that may fail, and [`run_with`]
//! has one of them fail, or kill the process, in a run of its own.
//!
//! The file system in mind is as strict as POSIX allows: data lasts after a sync of the file, a name after a sync of its
//! directory, and the sync of a new file is none of its name. What holds there holds on ext4, XFS and Btrfs, which all
//! promise more. A rename is done wholly or not at all. Where a random part of what was not synced is lost, names are lost from
//! some point on, as in a journal, and data anywhere, in sectors.

mod fault;
mod process;
mod recorder;
mod recording;
mod state;
mod trace;

pub use fault::{Effect, Fault, run_with};
pub use process::{Ended, run_bounded};
pub use recording::Recording;
pub use state::{Crash, Loss};
