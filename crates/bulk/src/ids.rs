//! The ids of all rows of a join by their numbers, in files.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::row::Id;

/// Bytes of an entry: a number, or where a text begins in the second file.
const ENTRY: u64 = 8;

fn paths(folder: &Path) -> [PathBuf; 2] {
    [folder.join("ids"), folder.join("ids.text")]
}

/// Writes ids in the order of their numbers.
pub(crate) struct IdWriter {
    paths: [PathBuf; 2],
    entries: BufWriter<File>,
    texts: BufWriter<File>,
    text_bytes: u64,
}

impl IdWriter {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let paths = paths(folder);
        let open = |path: &Path| {
            let file = huntsman_files::open_empty(path).map_err(Error::writing(path))?;
            Ok::<_, Error>(BufWriter::with_capacity(1 << 17, file))
        };
        Ok(Self { entries: open(&paths[0])?, texts: open(&paths[1])?, paths, text_bytes: 0 })
    }

    pub(crate) fn add(&mut self, id: &Id) -> Result<()> {
        let entry = match id {
            Id::Number(number) => number.to_le_bytes(),
            Id::Text(text) => {
                let at = self.text_bytes;
                self.text_bytes += text.len() as u64;
                self.texts.write_all(text.as_bytes()).map_err(Error::writing(&self.paths[1]))?;
                at.to_le_bytes()
            }
        };
        self.entries.write_all(&entry).map_err(Error::writing(&self.paths[0]))
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        // The text of the last id ends here.
        let end = self.text_bytes.to_le_bytes();
        self.entries.write_all(&end).map_err(Error::writing(&self.paths[0]))?;
        for (file, path) in [self.entries, self.texts].into_iter().zip(&self.paths) {
            let file = file.into_inner().map_err(|error| Error::writing(path)(error.into_error()))?;
            huntsman_files::sync(&file).map_err(Error::writing(path))?;
        }
        Ok(())
    }
}

/// Reads ids by their numbers.
pub(crate) struct Ids {
    paths: [PathBuf; 2],
    files: [File; 2],
    are_texts: bool,
}

impl Ids {
    pub(crate) fn open(folder: &Path, are_texts: bool) -> Result<Self> {
        let paths = paths(folder);
        let open = |path: &Path| File::open(path).map_err(Error::reading(path));
        Ok(Self { files: [open(&paths[0])?, open(&paths[1])?], paths, are_texts })
    }

    pub(crate) fn id(&mut self, number: u64) -> Result<Id> {
        let mut entries = [0; 2 * ENTRY as usize];
        read_at(&mut self.files[0], number * ENTRY, &mut entries).map_err(Error::reading(&self.paths[0]))?;
        let entry = |at: usize| u64::from_le_bytes(entries[at..at + 8].try_into().expect("eight bytes"));
        let (start, end) = (entry(0), entry(8));
        if !self.are_texts {
            return Ok(Id::Number(start as i64));
        }
        let damaged = || Error::input(&self.paths[1], "is damaged; begin anew with --fresh");
        let length = end.checked_sub(start).filter(|length| *length <= 1 << 20).ok_or_else(damaged)?;
        let mut text = vec![0; length as usize];
        read_at(&mut self.files[1], start, &mut text).map_err(Error::reading(&self.paths[1]))?;
        Ok(Id::Text(String::from_utf8(text).map_err(|_| damaged())?.into()))
    }
}

fn read_at(file: &mut File, at: u64, out: &mut [u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(out)
}
