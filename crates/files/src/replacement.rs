//! Replaces a file atomically: readers, and the disk after a power cut, have the old content or the new, never a part.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::directory::rename;
use crate::open::{create_new_unsynced, refuse_link};

/// Suffix of the name under which the new content is written.
const UNFINISHED: &str = ".new";

/// Replaces the content of a file, or creates it. If `write` fails, the old content stays.
///
/// # Errors
/// The error of `write`; or the file cannot be created, synced or renamed, or its name is a symbolic link.
pub fn replace<E: From<io::Error>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut Replacement) -> Result<(), E>,
) -> Result<(), E> {
    let mut new = Replacement::new(path)?;
    write(&mut new)?;
    Ok(new.finish()?)
}

/// [`replace`] with content that is already in memory.
///
/// # Errors
/// As [`replace`].
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, |new| new.write_all(content.as_ref()))
}

/// The new content of a file, written next to it as `NAME.new` until it is complete. If it is dropped before
/// [`finish`](Self::finish), the file stays as it was.
///
/// Two writers that replace the same file do so one after the other. A `NAME.new` that a killed process left is removed
/// by the next writer.
#[derive(Debug)]
pub struct Replacement {
    // `None` once it is finished.
    writer: Option<BufWriter<File>>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Replacement {
    /// Begins to write the new content of a file.
    ///
    /// # Errors
    /// As [`replace`].
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        refuse_link(path)?;
        let unfinished = unfinished(path)?;
        let file = alone(&unfinished)?;
        Ok(Self { writer: Some(BufWriter::with_capacity(1 << 16, file)), unfinished, path: path.to_owned() })
    }

    /// Replaces the old content by the new, durably.
    ///
    /// # Errors
    /// The new content cannot be written, synced or renamed; the old content stays.
    pub fn finish(mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("it is finished once");
        writer.flush()?;
        writer.get_ref().sync_all()?;
        rename(&self.unfinished, &self.path)?;
        // The lock is released only now that the temporary name is gone.
        self.writer = None;
        Ok(())
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().expect("it is written before it is finished").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().expect("it is written before it is finished").flush()
    }
}

impl Seek for Replacement {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.writer.as_mut().expect("it is written before it is finished").seek(to)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let _ = std::fs::remove_file(&self.unfinished);
            // The buffer is discarded without a write, because it is not needed and the disk may be full.
            drop(writer.into_parts());
        }
    }
}

fn unfinished(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"));
    };
    let mut name = OsString::from(name);
    name.push(UNFINISHED);
    Ok(path.with_file_name(name))
}

/// Creates and locks a new file of this name. If another writer has it locked, waits for that; if the file was left by
/// a killed process or is not a regular file, removes it.
fn alone(path: &Path) -> io::Result<File> {
    loop {
        match create_new_unsynced(path) {
            Ok(file) => {
                lock(&file);
                // Before it was locked, another writer may have removed it as a leftover.
                if is_at(&file, path) {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // A file is removed without its lock only if it cannot be another writer's; a name that vanished may be
                // a new file by now.
                match open_left_behind(path) {
                    Ok(Some(file)) => {
                        lock(&file);
                        if is_at(&file, path) {
                            remove(path)?;
                        }
                    }
                    Ok(None) => remove(path)?,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Opens the file of this name; `None` if it is not a regular file, for example a link.
fn open_left_behind(path: &Path) -> io::Result<Option<File>> {
    if path.symlink_metadata()?.is_file() { File::open(path).map(Some) } else { Ok(None) }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Waits for the lock of a file. On a file system without locks, two simultaneous writers are not kept apart.
fn lock(file: &File) {
    let _ = file.lock();
}

/// Whether a name still refers to an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |found: io::Result<std::fs::Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    let open = id(file.metadata());
    open.is_some() && open == id(path.symlink_metadata())
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::{fs, thread};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_content_and_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        write(&path, "old").unwrap();
        let failed = replace(&path, |new| {
            new.write_all(b"half of the")?;
            Err::<(), _>(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!((fs::read_to_string(&path).unwrap(), names(dir.path())), ("old".into(), vec!["a".into()]));
        replace(&path, |new| write!(new, "new")).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(dir.path())), ("new".into(), vec!["a".into()]));
    }

    #[test]
    fn until_it_is_finished_the_old_content_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut new = Replacement::new(&path).unwrap();
        new.write_all(b"new").unwrap();
        new.flush().unwrap();
        assert!(!path.exists());
        new.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.new"), "half").unwrap();
        write(dir.path().join("a"), "new").unwrap();
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn many_at_once_replace_one_after_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let inside = AtomicU32::new(0);
        thread::scope(|scope| {
            for number in 0..8u8 {
                let (path, inside) = (&path, &inside);
                scope.spawn(move || {
                    for _ in 0..20 {
                        replace(path, |new| {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two write at once");
                            new.write_all(&[number; 5_000])?;
                            inside.fetch_sub(1, Ordering::SeqCst);
                            Ok::<(), io::Error>(())
                        })
                        .unwrap();
                    }
                });
            }
        });
        let content = fs::read(&path).unwrap();
        assert!(content.len() == 5_000 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_no_planted_link_is_followed() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (target, path) = (dir.path().join("precious"), dir.path().join("a"));
        fs::write(&target, "precious").unwrap();
        // The temporary name of the new content belongs to this crate alone.
        symlink(&target, dir.path().join("a.new")).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(path.symlink_metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(path.symlink_metadata().unwrap().is_file());
        fs::remove_file(&path).unwrap();
        symlink(&target, &path).unwrap();
        let error = write(&path, "new").unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    }
}
