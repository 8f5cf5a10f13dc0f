//! Writes files safely: private to the user, durable across a power cut, and never through a symbolic link that another
//! user planted.
//!
//! Every file that this workspace writes is opened, replaced, renamed and removed here; clippy refuses the functions of
//! `std` elsewhere.
//!
//! | property | what it means |
//! |---|---|
//! | private | new files have mode 0600 and new directories 0700, because they may contain cookies and URLs with tokens |
//! | durable | a directory is synced after a name in it was created, changed or removed; [`replace`] syncs the content before the name |
//! | no links | the name that is opened may not be a symbolic link; the directories above it are the choice of the user, and may be |
//!
//! Links directly in `/dev`, in `/dev/fd` or anywhere in `/proc` are followed, because only the system makes them: a
//! file named `/dev/stdout` is the standard output.
//!
//! Locks are taken here, too: a [`Lock`] that is dropped is free even if another thread is starting a process.
//!
//! Data that is written to a file after it was opened is not synced here: the caller does that, because it knows when a
//! record is complete. Modes of existing files are left as they are, except by [`make_private`]. Reading needs none of
//! this.
//!
//! ```
//! use std::io::Write;
//!
//! # let parent = tempfile::tempdir()?;
//! # let out = parent.path().join("out");
//! huntsman_files::create_dir_all(&out)?;
//! let mut log = huntsman_files::open_append(out.join("log"))?;
//! log.write_all(b"one line\n")?;
//! log.sync_data()?;
//! huntsman_files::replace(out.join("report.html"), |file| file.write_all(b"<!doctype html>"))?;
//! assert_eq!(std::fs::read_to_string(out.join("report.html"))?, "<!doctype html>");
//! # Ok::<(), std::io::Error>(())
//! ```

mod directory;
mod lock;
mod open;
mod output;
mod replacement;
mod room;
mod unwritten;

pub use directory::{
    create_dir, create_dir_all, remove_any, remove_dir, remove_dir_all, remove_file, rename, sync_dir,
};
pub use lock::{Lock, LockRefused};
pub use open::{create_new, make_private, open_append, open_empty, open_write, refuse_link, sync};
pub use output::Output;
pub use replacement::{Replacement, replace, write};
pub use room::no_room;
pub use unwritten::has_unwritten;
