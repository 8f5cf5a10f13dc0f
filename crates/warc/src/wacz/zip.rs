//! A ZIP file whose entries are stored as they are, so that a reader can begin at any byte of them.

use std::io::{self, Read, Seek, SeekFrom, Write};

use flate2::Crc;
use sha2::{Digest, Sha256};

/// The version of ZIP that has sizes of 64 bits.
const VERSION: u16 = 45;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
/// 1980-01-01, the first day of ZIP: the times are in the entries' own files.
const DATE: u16 = 1 << 5 | 1;
/// Stands for a number that is in the extra field for 64 bits.
const ELSEWHERE: u32 = u32::MAX;
/// Offset of the checksum within the header of an entry, and of the sizes within its extra field.
const CHECKSUM: u64 = 14;
const HEADER: u64 = 30;

/// An entry that was written.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// SHA-256 in hexadecimal digits.
    pub(super) digest: String,
    crc: u32,
    offset: u64,
}

/// Writes entries one after the other.
pub(super) struct ZipWriter<W> {
    out: W,
    offset: u64,
    entries: Vec<Stored>,
}

/// Takes the content of an entry.
pub(super) struct Entry<'a, W> {
    zip: &'a mut ZipWriter<W>,
    name: String,
    start: u64,
    bytes: u64,
    crc: Crc,
    digest: Sha256,
}

impl<W: Write + Seek> ZipWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, offset: 0, entries: Vec::new() }
    }

    /// Begins an entry.
    pub(super) fn entry(&mut self, name: &str) -> io::Result<Entry<'_, W>> {
        let start = self.offset;
        let mut header = Vec::new();
        header.extend(0x0403_4b50_u32.to_le_bytes());
        for number in [VERSION, FLAGS, 0, 0, DATE] {
            header.extend(number.to_le_bytes());
        }
        // The checksum and the sizes are not known yet.
        for number in [0, ELSEWHERE, ELSEWHERE] {
            header.extend(number.to_le_bytes());
        }
        header.extend(length_of(name)?.to_le_bytes());
        header.extend(20_u16.to_le_bytes());
        header.extend(name.as_bytes());
        header.extend(extra(&[0, 0]));
        self.put(&header)?;
        let (crc, digest) = (Crc::new(), Sha256::new());
        Ok(Entry { zip: self, name: name.to_owned(), start, bytes: 0, crc, digest })
    }

    /// Adds an entry with this content.
    pub(super) fn add(&mut self, name: &str, content: &mut dyn Read) -> io::Result<()> {
        let mut entry = self.entry(name)?;
        io::copy(content, &mut entry)?;
        entry.finish()
    }

    /// The entries so far.
    pub(super) fn entries(&self) -> &[Stored] {
        &self.entries
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Writes the directory.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let start = self.offset;
        for entry in std::mem::take(&mut self.entries) {
            let line = directory_line(&entry)?;
            self.put(&line)?;
            self.entries.push(entry);
        }
        let (count, length) = (self.entries.len() as u64, self.offset - start);
        let end = self.offset;
        let mut tail = Vec::new();
        tail.extend(0x0606_4b50_u32.to_le_bytes());
        tail.extend(44_u64.to_le_bytes());
        tail.extend([VERSION.to_le_bytes(), VERSION.to_le_bytes()].concat());
        tail.extend([0; 8]);
        for number in [count, count, length, start] {
            tail.extend(number.to_le_bytes());
        }
        tail.extend(0x0706_4b50_u32.to_le_bytes());
        tail.extend(0_u32.to_le_bytes());
        tail.extend(end.to_le_bytes());
        tail.extend(1_u32.to_le_bytes());
        tail.extend(0x0605_4b50_u32.to_le_bytes());
        tail.extend([0; 4]);
        let count = u16::try_from(count).unwrap_or(u16::MAX);
        tail.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
        tail.extend([short(length).to_le_bytes(), short(start).to_le_bytes()].concat());
        tail.extend([0; 2]);
        self.put(&tail)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write + Seek> Entry<'_, W> {
    /// Ends the entry: what was not known at its beginning is written there.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { zip, name, start, bytes, crc, digest } = self;
        zip.out.seek(SeekFrom::Start(start + CHECKSUM))?;
        zip.out.write_all(&crc.sum().to_le_bytes())?;
        zip.out.seek(SeekFrom::Start(start + HEADER + name.len() as u64))?;
        zip.out.write_all(&extra(&[bytes, bytes]))?;
        zip.out.seek(SeekFrom::Start(zip.offset))?;
        let digest = data_encoding::HEXLOWER.encode(&digest.finalize());
        zip.entries.push(Stored { name, bytes, digest, crc: crc.sum(), offset: start });
        Ok(())
    }
}

impl<W: Write + Seek> Write for Entry<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.zip.put(bytes)?;
        self.bytes += bytes.len() as u64;
        self.crc.update(bytes);
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.zip.out.flush()
    }
}

fn directory_line(entry: &Stored) -> io::Result<Vec<u8>> {
    let numbers = [entry.bytes, entry.bytes, entry.offset];
    let long: Vec<u64> = numbers.into_iter().filter(|number| short(*number) == ELSEWHERE).collect();
    let extra = if long.is_empty() { Vec::new() } else { extra(&long) };
    let mut line = Vec::new();
    line.extend(0x0201_4b50_u32.to_le_bytes());
    // The second byte of the version says that the attributes are those of Unix.
    for number in [VERSION | 3 << 8, VERSION, FLAGS, 0, 0, DATE] {
        line.extend(number.to_le_bytes());
    }
    for number in [entry.crc, short(entry.bytes), short(entry.bytes)] {
        line.extend(number.to_le_bytes());
    }
    let extra_length = u16::try_from(extra.len()).expect("it has at most 28 bytes");
    for number in [length_of(&entry.name)?, extra_length, 0, 0, 0] {
        line.extend(number.to_le_bytes());
    }
    line.extend((0o100_644_u32 << 16).to_le_bytes());
    line.extend(short(entry.offset).to_le_bytes());
    line.extend(entry.name.as_bytes());
    line.extend(extra);
    Ok(line)
}

/// The extra field with numbers of 64 bits.
fn extra(numbers: &[u64]) -> Vec<u8> {
    let length = u16::try_from(8 * numbers.len()).expect("there are at most three");
    let mut extra = [1_u16.to_le_bytes(), length.to_le_bytes()].concat();
    extra.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    extra
}

fn short(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(ELSEWHERE)
}

fn length_of(name: &str) -> io::Result<u16> {
    u16::try_from(name.len())
        .map_err(|_| io::Error::other(format!("the name is too long: {}", name.escape_debug())))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A file of which only the tail is kept, as if much had been written before.
    struct Far {
        tail: Cursor<Vec<u8>>,
        before: u64,
    }

    impl Write for Far {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.tail.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Far {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            let SeekFrom::Start(at) = to else { unreachable!("offsets are absolute") };
            self.tail.seek(SeekFrom::Start(at - self.before))
        }
    }

    #[test]
    fn offsets_past_32_bits_are_in_the_extra_field() {
        const BEFORE: u64 = 5 << 32;
        let far = Far { tail: Cursor::new(Vec::new()), before: BEFORE };
        let mut zip = ZipWriter { out: far, offset: BEFORE, entries: Vec::new() };
        zip.add("a", &mut &b"content"[..]).unwrap();
        let tail = zip.finish().unwrap().tail.into_inner();
        let find = |signature: u32| {
            let signature = signature.to_le_bytes();
            tail.windows(4).position(|four| four == signature).unwrap()
        };
        let number = |at: usize| u64::from_le_bytes(*tail[at..].first_chunk().unwrap());
        let line = find(0x0201_4b50);
        assert_eq!(tail[line + 42..line + 46], [0xff; 4], "the offset is elsewhere");
        assert_eq!(tail[line + 47..line + 51], [1, 0, 8, 0]);
        assert_eq!(number(line + 51), BEFORE);
        let end = find(0x0606_4b50);
        assert_eq!((number(end + 24), number(end + 32), number(end + 48)), (1, 1, BEFORE + line as u64));
        assert_eq!(number(find(0x0706_4b50) + 8), BEFORE + end as u64);
    }
}
