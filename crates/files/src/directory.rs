//! Directories and the names in them: a change is durable, so a name that was created, renamed or removed stays so
//! after a power cut.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::Path;

use crate::open::refuse_link;

/// Creates a directory and its missing parents with private modes. An existing directory may be a symbolic link,
/// because the user gave its name; [`create_dir`] is for the names that a program makes up within it.
///
/// # Errors
/// A directory cannot be created, or something other than a directory has its name.
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    match make(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.parent().is_some() => {
            create_dir_all(path.parent().expect("there is one"))?;
            make(path)
        }
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

/// Creates a private directory in an existing one. The directory may exist already, but a symbolic link is refused.
///
/// # Errors
/// As [`create_dir_all`]; or the name is a symbolic link.
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    refuse_link(path)?;
    match make(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

fn make(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    sync_parent(path)
}

/// Renames a file or directory durably. A file or a link of the new name is replaced, never followed.
///
/// The caller must sync the content before: otherwise the new name may have an empty file after a power cut.
///
/// # Errors
/// As [`std::fs::rename`].
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    fs::rename(from, to)?;
    sync_parent(to)?;
    if from.parent() == to.parent() { Ok(()) } else { sync_parent(from) }
}

/// Removes a file or a link durably; the target of a link stays.
///
/// # Errors
/// As [`std::fs::remove_file`].
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_file(&path)?;
    sync_parent(path.as_ref())
}

/// Removes an empty directory, durably.
///
/// # Errors
/// As [`std::fs::remove_dir`].
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_dir(&path)?;
    sync_parent(path.as_ref())
}

/// Removes a directory and everything in it durably. Links are removed and not followed, also if the name itself is a
/// link.
///
/// # Errors
/// As [`std::fs::remove_dir_all`].
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    fs::remove_dir_all(&path)?;
    sync_parent(path.as_ref())
}

/// Removes whatever has this name durably: a file, a link, or a directory with everything in it. Returns whether the
/// name existed.
///
/// # Errors
/// The name exists and cannot be removed.
pub fn remove_any(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref();
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => remove_dir_all(path),
        Ok(_) => remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Syncs the list of names in a directory to disk.
///
/// # Errors
/// The disk fails. A file system that does not support this, such as some network file systems, is not an error;
/// neither is an operating system without it.
pub fn sync_dir(path: impl AsRef<Path>) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match fs::File::open(path).and_then(|directory| directory.sync_all()) {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        synced => synced,
    }
}

/// Syncs the directory of a path after its name was created or removed.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_dir("."),
        Some(parent) => sync_dir(parent),
        None => Ok(()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_are_private_and_may_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        for _ in 0..2 {
            create_dir_all(&deep).unwrap();
            create_dir(deep.join("d")).unwrap();
        }
        for path in [dir.path().join("a"), dir.path().join("a/b"), deep.clone(), deep.join("d")] {
            assert_eq!(mode(&path), 0o700, "{}", path.display());
        }
        fs::write(deep.join("file"), "").unwrap();
        assert!(remove_dir(&deep).is_err(), "it is not empty");
        remove_dir(deep.join("d")).unwrap();
        assert!(!deep.join("d").exists());
        assert!(create_dir_all(deep.join("file")).is_err() && create_dir(deep.join("file")).is_err());
        assert_eq!(create_dir(deep.join("x/y")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_directory_that_the_user_names_may_be_a_link_and_one_that_we_name_may_not() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("out");
        fs::create_dir(dir.path().join("disk")).unwrap();
        symlink(dir.path().join("disk"), &link).unwrap();
        create_dir_all(&link).unwrap();
        create_dir_all(link.join("more")).unwrap();
        let error = create_dir(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
    }

    #[test]
    fn removing_and_renaming_do_not_follow_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("precious")).unwrap();
        fs::write(at("precious/file"), "precious").unwrap();
        let plant = || {
            fs::create_dir(at("ours")).unwrap();
            symlink(at("precious"), at("ours/directory")).unwrap();
            symlink(at("precious/file"), at("ours/file")).unwrap();
            symlink(at("precious"), at("link")).unwrap();
        };
        plant();
        remove_dir_all(at("ours")).unwrap();
        remove_file(at("link")).unwrap();
        plant();
        for there in [true, false] {
            assert_eq!(remove_any(at("ours")).unwrap(), there);
            assert_eq!(remove_any(at("link")).unwrap(), there);
        }
        plant();
        fs::write(at("new"), "new").unwrap();
        rename(at("new"), at("ours/file")).unwrap();
        assert_eq!(fs::read_to_string(at("ours/file")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("precious/file")).unwrap(), "precious");
    }

    #[test]
    fn a_name_without_a_directory_is_in_the_current_one() {
        sync_parent(Path::new("name")).unwrap();
        sync_parent(Path::new("/")).unwrap();
        assert_eq!(sync_dir("no/such").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
