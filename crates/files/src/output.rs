//! An output file that the user named: replaced as a whole, or written directly if it is a pipe or device.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::open::open_append;
use crate::replacement::Replacement;

/// An output file that is being written.
///
/// A regular file is replaced when the output is complete, by [`finish`](Self::finish). A pipe, a device or
/// `/dev/stdout` cannot be replaced and is written directly.
#[derive(Debug)]
pub struct Output(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Replacement),
    AsItComes(BufWriter<File>),
}

impl Output {
    /// Opens the output; creates the file if it is missing.
    ///
    /// # Errors
    /// The file cannot be written to, or is a symbolic link that the system did not make.
    pub fn new(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let is_special = crate::open::is_of_the_system(path)
            || path.symlink_metadata().is_ok_and(|found| !found.is_file() && !found.is_symlink());
        Ok(Self(if is_special {
            // It is opened at its end, since it may hold the output of an earlier program, as in `(a; b) > file`.
            Kind::AsItComes(BufWriter::new(open_append(path)?))
        } else {
            Kind::Whole(Replacement::new(path)?)
        }))
    }

    /// Completes the output and makes it durable.
    ///
    /// # Errors
    /// The rest of the output cannot be written; a regular file is as it was before.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Whole(new) => new.finish(),
            Kind::AsItComes(mut out) => out.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Whole(new) => new.write(bytes),
            Kind::AsItComes(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Whole(new) => new.flush(),
            Kind::AsItComes(out) => out.flush(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_gets_a_whole_result_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.html");
        fs::write(&path, "old").unwrap();
        let mut out = Output::new(&path).unwrap();
        out.write_all(b"half").unwrap();
        drop(out);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let mut out = Output::new(&path).unwrap();
        out.write_all(b"whole").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_gets_the_result_as_it_comes() {
        for path in ["/dev/null", "/dev/stdout"] {
            let out = Output::new(path).unwrap();
            out.finish().unwrap();
        }
        let full = Output::new("/dev/full");
        if let Ok(mut full) = full {
            full.write_all(b"x").unwrap();
            assert_eq!(full.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        assert!(Output::new("/tmp").is_err(), "a directory");
    }

    #[test]
    fn a_planted_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("elsewhere", dir.path().join("report.html")).unwrap();
        let error = Output::new(dir.path().join("report.html")).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert!(!dir.path().join("elsewhere").exists());
    }
}
