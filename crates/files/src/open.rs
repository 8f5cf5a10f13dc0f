//! Opens files for writing: with private modes, and not through links.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::directory::sync_parent;

/// Creates a new file, open for reading and writing.
///
/// # Errors
/// The name exists already, even as a dangling link; or the file cannot be created.
pub fn create_new(path: impl AsRef<Path>) -> io::Result<File> {
    let file = create_new_unsynced(path.as_ref())?;
    sync_parent(path.as_ref())?;
    Ok(file)
}

/// [`create_new`] for a temporary name, without syncing the directory.
pub(crate) fn create_new_unsynced(path: &Path) -> io::Result<File> {
    options().read(true).write(true).create_new(true).open(path)
}

/// Opens a file for appending and reading; a missing file is created. A pipe, a device or another file that is not
/// regular is opened for writing only.
///
/// # Errors
/// The name is a symbolic link, or the file can be neither opened nor created.
pub fn open_append(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = options();
    options.append(true);
    open(path.as_ref(), &mut options)
}

/// Opens a file for reading and writing at its beginning, without truncating it; a missing file is created.
///
/// # Errors
/// As [`open_append`].
pub fn open_write(path: impl AsRef<Path>) -> io::Result<File> {
    let mut options = options();
    options.write(true);
    open(path.as_ref(), &mut options)
}

/// Opens a file for writing and truncates it. This is for results that are read while they grow;
/// [`replace`](crate::replace) is for all others. A pipe or a device is not truncated.
///
/// # Errors
/// As [`open_append`].
pub fn open_empty(path: impl AsRef<Path>) -> io::Result<File> {
    let file = open_write(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Syncs a file to disk; does nothing for a file that is not regular.
///
/// # Errors
/// The disk fails, or is full.
pub fn sync(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
}

/// Makes an existing file or directory private: a file gets mode 0600, a directory 0700. For files that an earlier
/// version or a library created.
///
/// # Errors
/// The name is a symbolic link, or the mode cannot be changed. Nothing is changed on systems without modes.
pub fn make_private(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    refuse_link(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let found = path.metadata()?;
        let mode = if found.is_dir() { 0o700 } else { 0o600 };
        if found.permissions().mode() & 0o777 != mode {
            fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        }
    }
    Ok(())
}

/// Returns an error if a name is a symbolic link. For libraries that open files themselves; [`open_write`] and the
/// others check it atomically when they open.
///
/// # Errors
/// The name is a symbolic link.
pub fn refuse_link(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if is_link && !is_of_the_system(path) { Err(link_error(path)) } else { Ok(()) }
}

/// Whether only the system makes links in the directory of this name, so that they are followed.
pub(crate) fn is_of_the_system(path: &Path) -> bool {
    // Only `/dev` itself: in `/dev/shm`, another file system, every user may make links.
    let parent = path.parent();
    parent == Some(Path::new("/dev")) || parent == Some(Path::new("/dev/fd")) || path.starts_with("/proc")
}

pub(crate) fn link_error(path: &Path) -> io::Error {
    let target = fs::read_link(path).map(|target| format!(" to {:?}", target.display().to_string()));
    let what = format!(
        "it is a symbolic link{}, and links are not followed when files are written; remove it, or name the file it points to",
        target.unwrap_or_default()
    );
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Options that make private files.
fn options() -> OpenOptions {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens the file with these options, or creates it.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    if !is_of_the_system(path) {
        no_link(path, options)?;
    }
    let is_special = path.metadata().is_ok_and(|found| !found.is_file());
    match options.read(!is_special).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map_err(|error| clear(path, error)),
    }
    // Two processes may create it at once; then both open the same file.
    let file = options.create(true).open(path).map_err(|error| clear(path, error))?;
    sync_parent(path)?;
    Ok(file)
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it looks")]
fn no_link(_: &Path, options: &mut OpenOptions) -> io::Result<()> {
    let flag = rustix::fs::OFlags::NOFOLLOW.bits();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flag.cast_signed());
    Ok(())
}

#[cfg(not(unix))]
fn no_link(path: &Path, _: &mut OpenOptions) -> io::Result<()> {
    refuse_link(path)
}

/// Replaces the system's message for a refused link, "too many levels of symbolic links", by a clear one.
fn clear(path: &Path, error: io::Error) -> io::Error {
    if refuse_link(path).is_err() { link_error(path) } else { error }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        create_new(at("new")).unwrap();
        open_append(at("append")).unwrap();
        open_write(at("write")).unwrap();
        for name in ["new", "append", "write"] {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        fs::set_permissions(at("write"), fs::Permissions::from_mode(0o644)).unwrap();
        open_write(at("write")).unwrap();
        assert_eq!(mode(&at("write")), 0o644);
        make_private(at("write")).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        make_private(dir.path()).unwrap();
        assert_eq!((mode(&at("write")), mode(dir.path())), (0o600, 0o700));
    }

    #[test]
    fn a_planted_link_is_refused_with_advice_and_its_target_is_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("precious"), dir.path().join("pages.jsonl"));
        fs::write(&target, "precious").unwrap();
        for there in [true, false] {
            symlink(if there { &target } else { Path::new("nowhere") }, &link).unwrap();
            assert_eq!(create_new(&link).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            let refused = [
                open_append(&link).unwrap_err(),
                open_write(&link).unwrap_err(),
                open_empty(&link).unwrap_err(),
                make_private(&link).unwrap_err(),
                refuse_link(&link).unwrap_err(),
            ];
            for error in refused {
                let text = error.to_string();
                assert!(text.contains("symbolic link") && text.contains("remove it"), "{text}");
            }
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(!dir.path().join("nowhere").exists());
    }

    #[test]
    fn a_link_above_the_name_is_the_choice_of_the_user() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("disk")).unwrap();
        symlink(dir.path().join("disk"), dir.path().join("out")).unwrap();
        open_append(dir.path().join("out/a")).unwrap().write_all(b"a").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("disk/a")).unwrap(), "a");
    }

    #[test]
    fn an_existing_file_keeps_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        open_append(&path).unwrap().write_all(b" more").unwrap();
        sync(&open_append(&path).unwrap()).unwrap();
        let mut text = String::new();
        let mut file = open_write(&path).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "old more");
        assert_eq!(create_new(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        open_empty(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn devices_can_be_written_to() {
        open_append("/dev/null").unwrap().write_all(b"x").unwrap();
        open_write("/dev/null").unwrap().write_all(b"x").unwrap();
        open_empty("/dev/null").unwrap().write_all(b"x").unwrap();
        sync(&open_append("/dev/null").unwrap()).unwrap();
        // This link was made by the system.
        open_append("/dev/stdout").unwrap();
        assert!(is_of_the_system(Path::new("/dev/fd/3")) && is_of_the_system(Path::new("/proc/self/fd/1")));
        assert!(!is_of_the_system(Path::new("/dev/shm/planted")) && !is_of_the_system(Path::new("stdout")));
    }
}
