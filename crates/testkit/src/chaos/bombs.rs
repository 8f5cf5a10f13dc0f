//! Small streams that unpack to very large ones, written by hand where no library would write them.

use std::sync::OnceLock;

use bytes::{BufMut, Bytes, BytesMut};
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::answer::Part;

const MIB: usize = 1 << 20;

/// A stream that is never held in memory as a whole: a beginning, a repeated block, and an end.
pub(super) struct Bomb {
    pub(super) head: Bytes,
    pub(super) block: Bytes,
    pub(super) times: u64,
    pub(super) tail: Bytes,
}

impl Bomb {
    /// The stream as the chunks of a chunked body, including the last chunk.
    pub(super) fn chunks(&self) -> Vec<Part> {
        vec![
            Part::Bytes(chunk(&self.head)),
            Part::Repeat(chunk(&self.block), self.times),
            Part::Bytes(chunk(&self.tail)),
            Part::Bytes(Bytes::from_static(b"0\r\n\r\n")),
        ]
    }

    /// The whole stream, for compressing it once more and for tests.
    pub(super) fn bytes(&self) -> Bytes {
        let mut out = BytesMut::from(&self.head[..]);
        (0..self.times).for_each(|_| out.put_slice(&self.block));
        out.put_slice(&self.tail);
        out.freeze()
    }
}

/// One chunk; for empty data nothing is written, because an empty chunk ends a body.
pub(super) fn chunk(data: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    if !data.is_empty() {
        out.put_slice(format!("{:x}\r\n", data.len()).as_bytes());
        out.put_slice(data);
        out.put_slice(b"\r\n");
    }
    out.freeze()
}

/// Raw deflate without a final block, ended at a byte boundary, so that such pieces can be concatenated.
fn deflated(data: &[u8]) -> Bytes {
    let mut packer = Compress::new(Compression::best(), false);
    // A full flush adds some bytes to the worst case of stored blocks.
    let mut out = Vec::with_capacity(data.len() + data.len() / 100 + 128);
    packer.compress_vec(data, &mut out, FlushCompress::Full).expect("deflate packs any bytes");
    assert_eq!(packer.total_in(), data.len() as u64, "the buffer is large enough for all of the data");
    out.into()
}

/// The final empty block of raw deflate.
const DEFLATE_END: &[u8] = b"\x03\x00";
/// The header of a gzip file: magic number, deflate, no flags, no time, no operating system.
pub(super) const GZIP_HEAD: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff";

/// One MiB of blanks, compressed only once because it is the same in every bomb.
fn blank_block() -> Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| deflated(&vec![b' '; MIB])).clone()
}

/// `page`, then `mib` MiB of blanks, as gzip with correct checksum and length.
pub(super) fn gzip(page: &[u8], mib: u64) -> Bomb {
    let mut crc = Crc::new();
    crc.update(page);
    let mut blanks = Crc::new();
    blanks.update(&vec![b' '; MIB]);
    (0..mib).for_each(|_| crc.combine(&blanks));
    let mut tail = BytesMut::from(DEFLATE_END);
    tail.put_u32_le(crc.sum());
    // The length field holds the length modulo 2^32.
    tail.put_u32_le((page.len() as u64 + mib * MIB as u64) as u32);
    let head = [GZIP_HEAD, &deflated(page)].concat().into();
    Bomb { head, block: blank_block(), times: mib, tail: tail.freeze() }
}

/// The same data as HTTP's `deflate`, which is the zlib format.
pub(super) fn zlib(page: &[u8], mib: u64) -> Bomb {
    let raw = raw_deflate(page, mib);
    let mut tail = BytesMut::from(&raw.tail[..]);
    tail.put_u32(adler32(page, mib * MIB as u64));
    Bomb { head: [b"\x78\xda", &raw.head[..]].concat().into(), tail: tail.freeze(), ..raw }
}

/// The same data as raw deflate, which some servers send under the name `deflate`.
pub(super) fn raw_deflate(page: &[u8], mib: u64) -> Bomb {
    Bomb { head: deflated(page), block: blank_block(), times: mib, tail: DEFLATE_END.into() }
}

/// Compresses any bytes with gzip.
pub(super) fn gzipped(data: &[u8]) -> Bytes {
    let mut crc = Crc::new();
    crc.update(data);
    let mut out = BytesMut::from(GZIP_HEAD);
    out.put_slice(&deflated(data));
    out.put_slice(DEFLATE_END);
    out.put_u32_le(crc.sum());
    out.put_u32_le(data.len() as u32);
    out.freeze()
}

/// Checksum of `page` followed by this many blanks (RFC 1950): for equal bytes, both sums have a closed form.
fn adler32(page: &[u8], blanks: u64) -> u32 {
    const MODULUS: u64 = 65_521;
    let (mut a, mut b) = (1u64, 0u64);
    for &byte in page {
        a = (a + u64::from(byte)) % MODULUS;
        b = (b + a) % MODULUS;
    }
    let (n, blank) = (blanks % MODULUS, u64::from(b' '));
    // n (n + 1) / 2 modulo a prime; one of both factors is even before the reduction.
    let triangle = if blanks.is_multiple_of(2) {
        (blanks / 2 % MODULUS) * ((blanks + 1) % MODULUS)
    } else {
        n * (blanks.div_ceil(2) % MODULUS)
    } % MODULUS;
    let b = (b + n * a + blank * triangle) % MODULUS;
    let a = (a + n * blank) % MODULUS;
    u32::try_from(b << 16 | a).expect("two sums of 16 bits")
}

const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
const ZSTD_BLOCK: u32 = 128 * 1024;

fn zstd_block(last: bool, kind: u32, size: u32) -> [u8; 3] {
    let [a, b, c, _] = (u32::from(last) | kind << 1 | size << 3).to_le_bytes();
    [a, b, c]
}

/// The same data as zstd: blocks of type RLE need 4 bytes for 128 KiB (RFC 8878, section 3.1.1.2).
pub(super) fn zstd(page: &[u8], mib: u64) -> Bomb {
    // A window of 2^(10 + 13) bytes, no length, no checksum.
    zstd_with_window(page, mib, 13 << 3)
}

/// A zstd frame that needs a window of 2 TiB to be decompressed.
pub(super) fn zstd_huge_window(page: &[u8]) -> Bomb {
    zstd_with_window(page, 1, 31 << 3)
}

fn zstd_with_window(page: &[u8], mib: u64, window: u8) -> Bomb {
    const RAW: u32 = 0;
    const RLE: u32 = 1;
    let size = u32::try_from(page.len()).expect("a small page");
    let head = [ZSTD_MAGIC, &[0, window], &zstd_block(false, RAW, size), page].concat().into();
    let block = [&zstd_block(false, RLE, ZSTD_BLOCK)[..], b" "].concat().into();
    let times = mib * MIB as u64 / u64::from(ZSTD_BLOCK);
    Bomb { head, block, times, tail: zstd_block(true, RAW, 0).to_vec().into() }
}

/// Writes bits in the order of deflate and brotli: the lowest bit of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for at in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("a byte was begun");
            *last |= u8::from(value >> at & 1 == 1) << self.used;
            self.used = (self.used + 1) % 8;
        }
    }

    fn align(&mut self) {
        self.used = 0;
    }
}

/// `page`, then about `mib` MiB of blanks in steps of 16, as brotli: each meta-block is one copy of 16 MiB in 13 bytes
/// (RFC 7932, section 9.2).
pub(super) fn brotli(page: &[u8], mib: u64) -> Bytes {
    const BLOCK: u32 = 1 << 24;
    // Insert 4 literals (code 4) and copy by code 23: cell 384, bits 3-5 the insert code, bits 0-2 the low bits of
    // the copy code.
    const COMMAND: u32 = 384 | 4 << 3 | 7;
    const COPY_BASE: u32 = 2_118;
    let mut bits = Bits::default();
    bits.put(0b1111, 4); // window of 2^24
    // Stored meta-block: not last, length in 4 nibbles, uncompressed.
    bits.put(0, 1);
    bits.put(0, 2);
    bits.put(u32::try_from(page.len() - 1).expect("a small page"), 16);
    bits.put(1, 1);
    bits.align();
    bits.bytes.extend_from_slice(page);
    for _ in 0..mib.div_ceil(16) {
        bits.put(0, 1); // not last
        bits.put(2, 2); // length in 6 nibbles
        bits.put(BLOCK - 1, 24);
        bits.put(0, 1); // compressed
        bits.put(0, 3); // one block type for literals, commands and distances each
        bits.put(0, 6); // no postfix bits, no direct distances
        bits.put(0, 2); // context mode of literals
        bits.put(0, 2); // one tree for literals, one for distances
        for (symbol, width) in [(u32::from(b' '), 8), (COMMAND, 10), (0, 6)] {
            bits.put(1, 2); // simple prefix code
            bits.put(0, 2); // of one symbol, which then takes no bits
            bits.put(symbol, width);
        }
        // Distance code 0 is the last distance, at first 4: the literals just written.
        bits.put(BLOCK - 4 - COPY_BASE, 24);
    }
    bits.put(0b11, 2); // last and empty
    bits.bytes.into()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::*;

    const PAGE: &[u8] = b"<p>page</p>";

    /// Reads to the end; returns the beginning and the length.
    fn unpack(mut reader: impl Read) -> (Vec<u8>, u64) {
        let mut start = vec![0; PAGE.len()];
        reader.read_exact(&mut start).expect("a valid stream");
        let rest = io::copy(&mut reader, &mut io::sink()).expect("a valid stream to the end");
        (start, rest + PAGE.len() as u64)
    }

    fn is_whole(reader: impl Read, mib: u64) {
        assert_eq!(unpack(reader), (PAGE.to_vec(), PAGE.len() as u64 + (mib << 20)));
    }

    #[test]
    fn the_streams_are_valid_and_as_long_as_they_say() {
        for mib in [1, 3, 32] {
            is_whole(flate2::read::GzDecoder::new(&gzip(PAGE, mib).bytes()[..]), mib);
            is_whole(flate2::read::ZlibDecoder::new(&zlib(PAGE, mib).bytes()[..]), mib);
            is_whole(flate2::read::DeflateDecoder::new(&raw_deflate(PAGE, mib).bytes()[..]), mib);
            is_whole(zstd::Decoder::new(&zstd(PAGE, mib).bytes()[..]).expect("a zstd frame"), mib);
        }
        let packed = brotli(PAGE, 48);
        is_whole(brotli_decompressor::Decompressor::new(&packed[..], 4_096), 48);
    }

    #[test]
    fn a_gibibyte_is_small_on_the_wire() {
        assert!(gzip(PAGE, 1_024).bytes().len() < 2 * MIB);
        assert!(zstd(PAGE, 1_024).bytes().len() < 40_000);
        assert!(brotli(PAGE, 1_024).len() < 1_000);
        assert!(gzipped(&gzip(PAGE, 1_024).bytes()).len() < 20_000);
    }

    #[test]
    fn packed_twice_is_a_valid_stream_of_a_valid_stream() {
        let twice = gzipped(&gzip(PAGE, 5).bytes());
        is_whole(flate2::read::GzDecoder::new(flate2::read::GzDecoder::new(&twice[..])), 5);
    }
}
