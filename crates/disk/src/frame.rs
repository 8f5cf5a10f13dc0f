//! Frames: compressed pieces of a spool, each with its length and a checksum.

use crate::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::{Compressor, Decompressor};

use crate::spool::Spool;

/// Bytes before compression at which a frame is ended. Reading any one entry reads its whole frame.
pub const FRAME: usize = 32 * 1_024;
/// Bytes at the beginning of a file of frames.
pub const HEADER: u64 = 12;
/// A frame has at most this many bytes, before and after compression.
const MAX_FRAME: usize = 1 << 30;
/// Length before and after compression, and checksum.
const FRAME_HEADER: usize = 16;
/// The fastest level: the next ones take twice the time for a tenth of the bytes.
const LEVEL: i32 = 1;
const MAGIC: &[u8; 8] = b"huntsman";

/// What a file of frames begins with: what it is, the kind of its content, and the version of that.
pub fn header(kind: u16, version: u16) -> [u8; HEADER as usize] {
    let mut header = [0; HEADER as usize];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&kind.to_le_bytes());
    header[10..].copy_from_slice(&version.to_le_bytes());
    header
}

/// Makes frames of bytes.
pub struct Framed {
    compressor: Compressor<'static>,
}

impl std::fmt::Debug for Framed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Framed")
    }
}

impl Framed {
    /// A maker of frames, which keeps its buffers.
    pub fn new() -> Result<Self> {
        let compressor = Compressor::new(LEVEL).map_err(|error| Error::io("compressing", error))?;
        Ok(Self { compressor })
    }

    /// Appends the frame of these bytes.
    pub fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if bytes.len() > MAX_FRAME {
            return Err(Error::msg(format!("{} bytes are too many for one entry", bytes.len())));
        }
        let start = out.len();
        out.resize(start + FRAME_HEADER + zstd::zstd_safe::compress_bound(bytes.len()), 0);
        let length = self
            .compressor
            .compress_to_buffer(bytes, &mut out[start + FRAME_HEADER..])
            .map_err(|error| Error::io("compressing", error))?;
        out.truncate(start + FRAME_HEADER + length);
        let checksum = xxh3_64(&out[start + FRAME_HEADER..]);
        out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        out[start + 4..start + 8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        out[start + 8..start + 16].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }
}

/// Reads the frames of a spool.
pub struct Frames {
    decompressor: Decompressor<'static>,
    stored: Vec<u8>,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Frames")
    }
}

/// Bytes of the first read of a frame. Most frames are shorter, and need no second one.
const READ_AT_ONCE: usize = 16 * 1_024;

impl Frames {
    /// A reader of frames, which keeps its buffers.
    pub fn new() -> Result<Self> {
        let decompressor = Decompressor::new().map_err(|error| Error::io("decompressing", error))?;
        Ok(Self { decompressor, stored: Vec::new() })
    }

    /// Checks the beginning of a file of frames. An empty one has none, and counts.
    pub fn check(&mut self, spool: &Spool, kind: u16, version: u16) -> Result<()> {
        spool.read(0, HEADER as usize, &mut self.stored)?;
        let expected = header(kind, version);
        let name = spool.name();
        if self.stored.is_empty() || self.stored == expected {
            return Ok(());
        }
        if self.stored.len() < expected.len() || self.stored[..10] != expected[..10] {
            return Err(Error::msg(format!(
                "{name} does not begin as a file of this kind does: it was changed, or is another file; {ADVICE}"
            )));
        }
        let found = u16::from_le_bytes([self.stored[10], self.stored[11]]);
        Err(Error::msg(format!(
            "{name} has version {found} of its format, and this program reads version {version}: use the program that wrote it, or begin anew with --fresh"
        )))
    }

    /// Reads the frame at an offset. Returns the offset of the next one; `None` at the end, if there is no frame at the offset.
    pub fn read(&mut self, spool: &Spool, offset: u64, out: &mut Vec<u8>) -> Result<Option<u64>> {
        if offset >= spool.len() {
            return Ok(None);
        }
        let damaged = |what: &str| {
            Error::msg(format!("{} is damaged at byte {offset}: {what}; {ADVICE}", spool.name()))
        };
        spool.read(offset, READ_AT_ONCE, &mut self.stored)?;
        if self.stored.len() < FRAME_HEADER {
            return Err(damaged("it is cut there"));
        }
        let number =
            |at: usize| u32::from_le_bytes(self.stored[at..at + 4].try_into().expect("four bytes")) as usize;
        let (length, raw) = (number(0), number(4));
        let checksum = u64::from_le_bytes(self.stored[8..16].try_into().expect("eight bytes"));
        if length > MAX_FRAME || raw > MAX_FRAME {
            return Err(damaged("what stands there is no length"));
        }
        let whole = FRAME_HEADER + length;
        if self.stored.len() < whole {
            spool.read(offset, whole, &mut self.stored)?;
        }
        let Some(stored) = self.stored.get(FRAME_HEADER..whole) else {
            return Err(damaged("it is cut in the frame that begins there"));
        };
        if xxh3_64(stored) != checksum {
            return Err(damaged("the frame there is not what was written"));
        }
        out.clear();
        out.reserve(raw);
        let found = self
            .decompressor
            .decompress_to_buffer(stored, out)
            .map_err(|error| Error::io(format!("decompressing {}", spool.name()), error))?;
        if found != raw {
            return Err(damaged("the frame there has another length than it says"));
        }
        Ok(Some(offset + whole as u64))
    }
}

/// What to do about a damaged file.
pub(crate) const ADVICE: &str = "restore it from a copy, or begin anew with --fresh";

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::Scratch;

    const VERSION: u16 = 3;

    fn file(pieces: &[&[u8]]) -> Vec<u8> {
        let mut out = header(1, VERSION).to_vec();
        let mut framed = Framed::new().unwrap();
        pieces.iter().for_each(|piece| framed.put(piece, &mut out).unwrap());
        out
    }

    /// Reads all frames of a file with these bytes.
    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("segment");
        fs::write(&path, bytes).unwrap();
        let spool = Spool::open(&path, &Scratch::temporary())?;
        let mut frames = Frames::new()?;
        frames.check(&spool, 1, VERSION)?;
        let (mut offset, mut all, mut out) = (HEADER, Vec::new(), Vec::new());
        while let Some(next) = frames.read(&spool, offset, &mut out)? {
            all.push(out.clone());
            offset = next;
        }
        Ok(all)
    }

    #[test]
    fn frames_come_back_whole() {
        let noise: Vec<u8> =
            (0..90_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let pieces: [&[u8]; 4] = [b"moths", b"", &noise, &[7; 100_000]];
        assert_eq!(read(&file(&pieces)).unwrap(), pieces);
        assert!(read(&header(1, VERSION)).unwrap().is_empty());
    }

    #[test]
    fn a_cut_a_changed_byte_and_another_version_are_told_with_their_place() {
        let whole = file(&[b"moths fly at dusk", b"over quiet meadows"]);
        for length in 1..whole.len() {
            let is_border = length == file(&[b"moths fly at dusk"]).len() || length == HEADER as usize;
            let found = read(&whole[..length]);
            assert_eq!(found.is_ok(), is_border, "cut at {length}: {found:?}");
            if let Err(error) = found {
                let told = error.to_string();
                assert!(told.contains("segment") && told.contains("--fresh"), "{told}");
            }
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            assert!(read(&changed).is_err(), "byte {at}");
        }
        let mut newer = whole;
        newer[10] = 4;
        assert!(read(&newer).unwrap_err().to_string().contains("version 4"));
    }
}
