//! Pages that are not yet in a commit of the index: files that survive a killed process and are read by the next one
//! that opens the index.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

/// Files such as `pages-00000012.log` in the directory of an index. A record is a length (4 bytes, little-endian), a
/// checksum (8 bytes, XXH3-64) and that many bytes. An incomplete record ends a file.
#[derive(Debug)]
pub(super) struct Journal {
    directory: PathBuf,
    /// Number of the current file, or of the next one if there is none.
    number: u64,
    /// Number of the first file since the journal was opened.
    first: u64,
    file: Option<File>,
}

/// Maximum size of a record; no page is larger.
const MAX_RECORD: usize = 64 << 20;
/// Size of the length and the checksum before a record, in bytes.
const HEAD: usize = 12;

impl Journal {
    /// Opens the journal of a directory. New files get numbers after those of the existing files.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let last = Self::files(directory)?.last().map_or(0, |(number, _)| *number);
        Ok(Self { directory: directory.to_owned(), number: last + 1, first: last + 1, file: None })
    }

    /// The existing files with their numbers, the oldest first.
    pub(super) fn files(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("pages-")?.strip_suffix(".log"));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                files.push((number, entry.path()));
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// Writes a record. It survives a killed process, but maybe not a power cut.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let path = self.directory.join(format!("pages-{:08}.log", self.number));
                self.file.insert(huntsman_files::create_new(path)?)
            }
        };
        let length = u32::try_from(record.len()).map_err(|_| io::Error::other("a page is too large"))?;
        let mut bytes = Vec::with_capacity(record.len() + 12);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(record).to_le_bytes());
        bytes.extend_from_slice(record);
        file.write_all(&bytes)
    }

    /// Syncs the written records, so that they survive a power cut.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Ends the current file and returns its number, if there is one; the next record begins another file. The file is
    /// synced, because [`sync`](Self::sync) no longer reaches it.
    pub(super) fn rotate(&mut self) -> io::Result<Option<u64>> {
        let Some(file) = self.file.take() else { return Ok(None) };
        file.sync_data()?;
        self.number += 1;
        Ok(Some(self.number - 1))
    }

    /// The number of the newest file that was ended; `None` if there was none since the journal was opened.
    pub(super) fn last(&self) -> Option<u64> {
        (self.number > self.first).then(|| self.number - 1)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes the files up to a number, whose pages are in a commit.
    pub(super) fn forget(directory: &Path, last: u64) -> io::Result<()> {
        for (_, path) in Self::files(directory)?.into_iter().filter(|(number, _)| *number <= last) {
            huntsman_files::remove_file(path)?;
        }
        Ok(())
    }

    /// Passes each record of a file to `each`, up to an incomplete one.
    ///
    /// # Errors
    /// The disk or `each` fails; or a complete record does not match its checksum:
    /// [`InvalidData`](io::ErrorKind::InvalidData).
    pub(super) fn read<E: From<io::Error>>(
        path: &Path,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut file = BufReader::new(File::open(path)?);
        let (mut record, mut at) = (Vec::new(), 0);
        loop {
            let mut head = [0; HEAD];
            match file.read_exact(&mut head) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                other => other?,
            }
            let (length, sum) = head.split_at(4);
            let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            let sum = u64::from_le_bytes(sum.try_into().expect("eight bytes"));
            record.clear();
            (&mut file).take(length.min(MAX_RECORD) as u64).read_to_end(&mut record)?;
            if length <= MAX_RECORD && record.len() < length {
                return Ok(());
            }
            if length > MAX_RECORD || xxh3_64(&record) != sum {
                let is_lost = huntsman_files::has_unwritten(&head, at)
                    || huntsman_files::has_unwritten(&record, at + HEAD as u64);
                return if is_lost { Ok(()) } else { Err(damaged(at).into()) };
            }
            each(&record)?;
            at += (HEAD + length) as u64;
        }
    }
}

fn damaged(at: u64) -> io::Error {
    let what = format!(
        "the page at byte {at} is not what was written; move this file away to go on without the pages in it from there on"
    );
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records that can be read, and how reading ends.
    fn read(path: &Path) -> (Vec<Vec<u8>>, io::Result<()>) {
        let mut all = Vec::new();
        let end = Journal::read(path, |record| -> io::Result<()> {
            all.push(record.to_vec());
            Ok(())
        });
        (all, end)
    }

    #[test]
    fn whatever_is_torn_off_the_records_before_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(dir.path()).unwrap();
        let written = [b"one".to_vec(), Vec::new(), vec![7; 300]];
        written.iter().for_each(|record| journal.append(record).unwrap());
        let (_, path) = Journal::files(dir.path()).unwrap().remove(0);
        let bytes = fs::read(&path).unwrap();
        for end in 0..=bytes.len() {
            fs::write(&path, &bytes[..end]).unwrap();
            let (read, torn) = read(&path);
            torn.unwrap();
            assert_eq!(read, written[..read.len()], "{end}");
            assert_eq!(read.len(), [15, 27, 339].iter().filter(|whole| end >= **whole).count(), "{end}");
        }
        // What a power cut leaves of records that were not synced: zeros.
        for end in [0, 15, 27] {
            let mut lost = bytes.clone();
            lost[end..].fill(0);
            fs::write(&path, lost).unwrap();
            let (read, torn) = read(&path);
            torn.unwrap();
            assert_eq!(read, written[..read.len()], "{end}");
        }
    }

    #[test]
    fn a_record_that_was_changed_is_an_error_and_the_records_before_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::new(dir.path()).unwrap();
        let written = [b"one".to_vec(), Vec::new(), vec![7; 300]];
        written.iter().for_each(|record| journal.append(record).unwrap());
        let (_, path) = Journal::files(dir.path()).unwrap().remove(0);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x80;
            fs::write(&path, damaged).unwrap();
            let (read, end) = read(&path);
            assert_eq!(read, written[..read.len()], "{at}");
            // These make a length longer than the file, as that of a record that was not written to its end.
            if [1, 2, 16, 17, 27, 28, 29].contains(&at) {
                continue;
            }
            let error = end.map(|()| at).expect_err("a bit is wrong");
            assert!(
                error.kind() == io::ErrorKind::InvalidData && error.to_string().contains("at byte"),
                "{error}"
            );
        }
    }

    #[test]
    fn files_have_rising_numbers_and_are_removed_from_the_oldest() {
        let dir = tempfile::tempdir().unwrap();
        let numbers = || {
            let files = Journal::files(dir.path()).unwrap();
            files.into_iter().map(|(number, _)| number).collect::<Vec<_>>()
        };
        let mut journal = Journal::new(dir.path()).unwrap();
        assert_eq!(journal.rotate().unwrap(), None);
        journal.append(b"a").unwrap();
        assert_eq!(journal.rotate().unwrap(), Some(1));
        journal.append(b"b").unwrap();
        assert_eq!(numbers(), [1, 2]);
        let mut later = Journal::new(dir.path()).unwrap();
        later.append(b"c").unwrap();
        assert_eq!(numbers(), [1, 2, 3]);
        Journal::forget(dir.path(), 2).unwrap();
        assert_eq!(numbers(), [3]);
    }
}
