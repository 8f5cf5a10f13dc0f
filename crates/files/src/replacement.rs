//! Replacing a file as one step: readers and a power cut find the old content or the new, never a part.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::directory::rename;
use crate::open::{create_new_unsynced, refuse_link};

/// What is being written has this behind its name.
const UNFINISHED: &str = ".new";

/// Writes the new content of a file, or makes it. If `write` fails, the old content stays.
///
/// # Errors
/// The error of `write`; or the file cannot be made, synced or renamed, or its name is a symbolic link.
pub fn replace<E: From<io::Error>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut Replacement) -> Result<(), E>,
) -> Result<(), E> {
    let mut new = Replacement::new(path)?;
    write(&mut new)?;
    Ok(new.finish()?)
}

/// [`replace`] with content that is there in one piece.
///
/// # Errors
/// As [`replace`].
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
    replace(path, |new| new.write_all(content.as_ref()))
}

/// The new content of a file, written beside it as `NAME.new` until it is whole. Dropped before
/// [`finish`](Self::finish), it leaves everything as it was.
///
/// Two that replace a file at once do it one after the other. What a killed process left behind is removed by the next one.
#[derive(Debug)]
pub struct Replacement {
    // None once it is finished.
    writer: Option<BufWriter<File>>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Replacement {
    /// Begins the new content of a file.
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

    /// Puts the new content in the place of the old one, durably.
    ///
    /// # Errors
    /// It cannot be written, synced or renamed; the old content stays.
    pub fn finish(mut self) -> io::Result<()> {
        let writer = self.writer.as_mut().expect("it is finished once");
        writer.flush()?;
        writer.get_ref().sync_all()?;
        rename(&self.unfinished, &self.path)?;
        // Unlocked now that the name is gone.
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

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let _ = std::fs::remove_file(&self.unfinished);
            // What is in its buffer is of no worth, and the file system may be full.
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

/// A new file of this name, locked. If somebody writes to one, it is waited for; if he died, or it is something else, it is removed.
fn alone(path: &Path) -> io::Result<File> {
    loop {
        match create_new_unsynced(path) {
            Ok(file) => {
                lock(&file);
                // Before it was locked, another may have taken it for left behind.
                if is_at(&file, path) {
                    return Ok(file);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Without its lock, a file is removed only if it is none of ours: gone since, it may be another one now.
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

/// The file of this name; none if it is something else, as a link.
fn open_left_behind(path: &Path) -> io::Result<Option<File>> {
    if path.symlink_metadata()?.is_file() { File::open(path).map(Some) } else { Ok(None) }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Waits for the lock of a file. Where a file system has none, two at once are not kept apart.
fn lock(file: &File) {
    let _ = file.lock();
}

/// Whether a name is still that of an open file.
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
    fn a_write_that_fails_leaves_the_old_content_and_nothing_beside_it() {
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
        // Where it is written until it is whole: that name is nobody else's.
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
