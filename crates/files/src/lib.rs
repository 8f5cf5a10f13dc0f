//! How files are written: private to the user, durable across a power cut, and never through a symbolic link that somebody planted.
//!
//! Every file that this workspace writes is opened, replaced, renamed and removed here; clippy refuses the bare calls elsewhere.
//!
//! | property | what it means |
//! |---|---|
//! | private | new files have mode 0600 and new directories 0700, for there are cookies and addresses with tokens in them |
//! | durable | a directory is synced after a name in it was made, changed or removed; [`replace`] syncs the content before the name |
//! | no links | the name that is opened may not be a symbolic link; directories above it are the choice of the user, and may be |
//!
//! Links that stand directly in `/dev`, in `/dev/fd` or anywhere in `/proc` are followed: only the system makes them, so that a
//! file named `/dev/stdout` is the standard output.
//!
//! What it does not do: what is written to a file after it was opened is synced by the caller, who knows when a record is
//! whole. Modes of files that were there already are left as they are, but for [`make_private`]. Reading needs none of this.
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
mod open;
mod output;
mod replacement;
mod unwritten;

pub use directory::{
    create_dir, create_dir_all, remove_any, remove_dir, remove_dir_all, remove_file, rename, sync_dir,
};
pub use open::{create_new, make_private, open_append, open_empty, open_write, refuse_link, sync};
pub use output::Output;
pub use replacement::{Replacement, replace, write};
pub use unwritten::has_unwritten;
