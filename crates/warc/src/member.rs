//! Makes gzip members, with one compressor for each thread.

use std::cell::RefCell;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// The head of a member without name and time (RFC 1952).
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes by which the room for a member grows at least.
const ROOM: usize = 16 << 10;

thread_local! {
    /// The compressors of this thread, by their levels. A new one for each record would cost more than compressing a short one, because its tables
    /// have to be cleared.
    static COMPRESSORS: RefCell<[Option<Compress>; 10]> = const { RefCell::new([const { None }; 10]) };
}

/// Parts as one gzip member, with its checksum.
pub(crate) struct Member {
    bytes: Vec<u8>,
    crc: Crc,
}

impl Member {
    /// Compresses all parts.
    pub(crate) fn of(parts: &[&[u8]], level: u32) -> Vec<u8> {
        Self::with(parts, level, |compress, member| {
            while push(compress, &[], &mut member.bytes, FlushCompress::Finish) != Status::StreamEnd {}
        })
    }

    /// Compresses parts, and puts others behind them as they are, because they are compressed already: compressing them again takes as long as for
    /// other bytes, and makes them no smaller.
    pub(crate) fn stored(parts: &[&[u8]], packed: &[&[u8]], level: u32) -> Vec<u8> {
        Self::with(parts, level, |compress, member| {
            // Bytes begin at a byte then, and there is room left only if all of it was written.
            while push(compress, &[], &mut member.bytes, FlushCompress::Sync) == Status::Ok
                && member.bytes.len() == member.bytes.capacity()
            {}
            for part in packed {
                member.crc.update(part);
                part.chunks(usize::from(u16::MAX)).for_each(|block| member.store(block, false));
            }
            member.store(&[], true);
        })
    }

    fn with(parts: &[&[u8]], level: u32, end: impl FnOnce(&mut Compress, &mut Self)) -> Vec<u8> {
        COMPRESSORS.with_borrow_mut(|kept| {
            let level = level.min(9);
            let compress =
                kept[level as usize].get_or_insert_with(|| Compress::new(Compression::new(level), false));
            compress.reset();
            let mut member = Self { bytes: HEAD.to_vec(), crc: Crc::new() };
            for part in parts {
                member.crc.update(part);
                let mut rest = *part;
                while !rest.is_empty() {
                    let before = compress.total_in();
                    push(compress, rest, &mut member.bytes, FlushCompress::None);
                    let taken = usize::try_from(compress.total_in() - before).expect("at most the input");
                    rest = &rest[taken..];
                }
            }
            end(compress, &mut member);
            member.bytes.extend(member.crc.sum().to_le_bytes());
            member.bytes.extend(member.crc.amount().to_le_bytes());
            member.bytes
        })
    }

    /// A block of bytes as they are (RFC 1951, 3.2.4).
    fn store(&mut self, block: &[u8], is_last: bool) {
        let length = u16::try_from(block.len()).expect("a block of at most 65,535 bytes");
        self.bytes.push(u8::from(is_last));
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend((!length).to_le_bytes());
        self.bytes.extend_from_slice(block);
    }
}

fn push(compress: &mut Compress, input: &[u8], member: &mut Vec<u8>, flush: FlushCompress) -> Status {
    member.reserve(ROOM);
    compress.compress_vec(input, member, flush).expect("a compressor takes all bytes")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn members_are_what_gzip_reads_whatever_the_thread_made_before() {
        let noise: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for level in [6, 0, 9, 6, 1] {
            for parts in [&[&b""[..]][..], &[b"a", b"", b"b"], &[b"head", &noise, b"\r\n"], &[&[0; 100_000]]]
            {
                for cut in 0..=parts.len() {
                    let (packed, stored) = (&parts[..cut], &parts[cut..]);
                    let made = [Member::of(parts, level), Member::stored(packed, stored, level)];
                    for member in made {
                        let mut read = Vec::new();
                        let mut reader = flate2::read::GzDecoder::new(&member[..]);
                        reader.read_to_end(&mut read).unwrap();
                        assert_eq!(read, parts.concat(), "level {level}");
                        assert!(reader.into_inner().is_empty(), "nothing is behind the member");
                    }
                }
            }
        }
    }
}
