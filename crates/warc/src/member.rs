//! Makes gzip members, with one compressor for each thread.

use std::cell::RefCell;

use flate2::{Compress, Compression, Crc, FlushCompress, Status};

/// The head of a member without name and time (RFC 1952).
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// Bytes by which the room for a member grows at least.
const ROOM: usize = 16 << 10;

thread_local! {
    /// The compressor of this thread, and its level. A new one for each record would cost more than compressing a short one, because its tables
    /// have to be cleared.
    static COMPRESSOR: RefCell<Option<(u32, Compress)>> = const { RefCell::new(None) };
}

/// Parts as one gzip member.
pub(crate) fn member(parts: &[&[u8]], level: u32) -> Vec<u8> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(of, _)| *of != level) {
            *kept = Some((level, Compress::new(Compression::new(level), false)));
        }
        let (_, compress) = kept.as_mut().expect("it was just made");
        compress.reset();
        let mut member = HEAD.to_vec();
        let mut crc = Crc::new();
        for part in parts {
            crc.update(part);
            let mut rest = *part;
            while !rest.is_empty() {
                let before = compress.total_in();
                push(compress, rest, &mut member, FlushCompress::None);
                let taken = usize::try_from(compress.total_in() - before).expect("at most the input");
                rest = &rest[taken..];
            }
        }
        while push(compress, &[], &mut member, FlushCompress::Finish) != Status::StreamEnd {}
        member.extend(crc.sum().to_le_bytes());
        member.extend(crc.amount().to_le_bytes());
        member
    })
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
                let member = member(parts, level);
                let mut read = Vec::new();
                flate2::read::GzDecoder::new(&member[..]).read_to_end(&mut read).unwrap();
                assert_eq!(read, parts.concat(), "level {level}");
            }
        }
    }
}
