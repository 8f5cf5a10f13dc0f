//! Archives: files of records and their indexes, on disk, within WACZ files and in buckets.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "s3")]
use huntsman_bucket::Object;

/// Greatest part of a file that is read at once for its directory, in bytes.
const MAX_READ: u64 = 1 << 30;

/// A file of records, or an index of some, wherever it is.
#[derive(Clone, Debug)]
pub struct Archive {
    name: Arc<str>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    File(PathBuf),
    /// A part of a WACZ file.
    Part {
        whole: Arc<Archive>,
        range: Range<u64>,
        is_deflated: bool,
    },
    #[cfg(feature = "s3")]
    Object(Object),
}

impl Archive {
    /// A file on disk.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.to_string_lossy().into(), place: Place::File(path) }
    }

    /// A part of an archive with a name of its own.
    pub(crate) fn part(whole: &Arc<Self>, name: &str, range: Range<u64>, is_deflated: bool) -> Self {
        let whole = Arc::clone(whole);
        Self {
            name: format!("{}/{name}", whole.name).into(),
            place: Place::Part { whole, range, is_deflated },
        }
    }

    /// An object of a bucket.
    #[cfg(feature = "s3")]
    pub(crate) fn object(object: Object) -> Self {
        Self { name: object.address().into(), place: Place::Object(object) }
    }

    /// Its path or address, as messages have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The last part of its name.
    pub fn file_name(&self) -> &str {
        self.name.rsplit(['/', std::path::MAIN_SEPARATOR]).next().unwrap_or_default()
    }

    /// The folder of a file on disk.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path.parent().unwrap_or(Path::new(""))),
            _ => None,
        }
    }

    /// The object of a bucket.
    #[cfg(feature = "s3")]
    pub(crate) fn as_object(&self) -> Option<&Object> {
        match &self.place {
            Place::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The WACZ file of which it is a part.
    pub(crate) fn whole(&self) -> Option<&Arc<Self>> {
        match &self.place {
            Place::Part { whole, .. } => Some(whole),
            _ => None,
        }
    }

    /// Number of its bytes.
    ///
    /// # Errors
    /// It is not there, or the system does not tell.
    pub fn length(&self) -> io::Result<u64> {
        match &self.place {
            Place::File(path) => Ok(std::fs::metadata(path)?.len()),
            Place::Part { range, .. } => Ok(range.end - range.start),
            #[cfg(feature = "s3")]
            Place::Object(object) => object.size(),
        }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        self.open_at(0, None)
    }

    /// Reads from an offset on: a number of bytes, or all that follow.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open_at(&self, offset: u64, length: Option<u64>) -> io::Result<Box<dyn Read + Send>> {
        match &self.place {
            Place::File(path) => {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(offset))?;
                Ok(Box::new(file.take(length.unwrap_or(u64::MAX))))
            }
            Place::Part { whole, range, is_deflated } => {
                let packed = |start: u64, length| whole.open_at(range.start + start, Some(length));
                if *is_deflated {
                    let file = BufReader::new(packed(0, range.end - range.start)?);
                    let mut unpacked = flate2::bufread::DeflateDecoder::new(file);
                    io::copy(&mut (&mut unpacked).take(offset), &mut io::sink())?;
                    return Ok(Box::new(unpacked.take(length.unwrap_or(u64::MAX))));
                }
                let left = (range.end - range.start).saturating_sub(offset);
                packed(offset, length.map_or(left, |length| length.min(left)))
            }
            #[cfg(feature = "s3")]
            Place::Object(object) => {
                let end = match length {
                    Some(length) => offset.saturating_add(length),
                    None => object.size()?,
                };
                Ok(Box::new(object.read(offset..end)))
            }
        }
    }

    /// The bytes of a range.
    pub(crate) fn bytes(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = range.end.saturating_sub(range.start);
        if length > MAX_READ {
            return Err(io::Error::other(format!("its directory has {length} bytes")));
        }
        let mut bytes = Vec::new();
        self.open_at(range.start, Some(length))?.read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }
}
