//! 64 bytes that are tested all at once, one bit each: how texts are read many bytes at a time.

use std::ops::RangeInclusive;

use fearless_simd::prelude::*;
use fearless_simd::u8x64;

/// The number of bytes of a chunk.
pub const CHUNK: usize = 64;

/// A chunk of a text in the vectors of the processor. The results of tests have a bit for each byte; the lowest one is that of the first byte.
///
/// All methods are compiled for the level of the caller, which chooses it once for a whole text.
///
/// ```
/// use fearless_simd::{Level, dispatch};
/// use huntsman_text::bytes64::{Bytes64, CHUNK};
///
/// let mut chunk = [b' '; CHUNK];
/// chunk[..5].copy_from_slice(b"a1 b2");
/// let digits = dispatch!(Level::new(), simd => Bytes64::of(simd, &chunk).within(b'0'..=b'9'));
/// assert_eq!(digits, 0b10010);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bytes64<S: Simd> {
    simd: S,
    bytes: u8x64<S>,
}

impl<S: Simd> Bytes64<S> {
    /// Reads a chunk.
    #[inline(always)]
    pub fn of(simd: S, chunk: &[u8; CHUNK]) -> Self {
        Self { simd, bytes: u8x64::from_slice(simd, chunk) }
    }

    /// Which bytes are this one.
    #[inline(always)]
    pub fn equal(self, byte: u8) -> u64 {
        self.bytes.simd_eq(u8x64::splat(self.simd, byte)).to_bitmask()
    }

    /// Which bytes are within a range. Its end must not be below its start.
    #[inline(always)]
    pub fn within(self, range: RangeInclusive<u8>) -> u64 {
        let from_start = self.bytes - u8x64::splat(self.simd, *range.start());
        from_start.simd_le(u8x64::splat(self.simd, range.end() - range.start())).to_bitmask()
    }

    /// Which bytes are not ASCII.
    #[inline(always)]
    pub fn not_ascii(self) -> u64 {
        self.bytes.simd_ge(u8x64::splat(self.simd, 0x80)).to_bitmask()
    }
}

#[cfg(test)]
mod tests {
    use fearless_simd::{Level, dispatch};

    use super::*;

    #[test]
    fn each_byte_has_its_bit_at_every_level() {
        for start in 0..=3 {
            let chunk: [u8; CHUNK] = std::array::from_fn(|at| (64 * start + at) as u8);
            let naive = |test: &dyn Fn(u8) -> bool| {
                chunk.iter().enumerate().fold(0, |all, (at, byte)| all | u64::from(test(*byte)) << at)
            };
            for level in [Level::baseline(), Level::new()] {
                dispatch!(level, simd => {
                    let bytes = Bytes64::of(simd, &chunk);
                    assert_eq!(bytes.not_ascii(), naive(&|byte| !byte.is_ascii()), "{level:?}");
                    for (low, high) in [(0, 0), (0, 255), (9, 13), (b'A', b'Z'), (200, 255), (255, 255)] {
                        assert_eq!(bytes.equal(low), naive(&|byte| byte == low), "{level:?} {low}");
                        let within = naive(&|byte| (low..=high).contains(&byte));
                        assert_eq!(bytes.within(low..=high), within, "{level:?} {low}..={high}");
                    }
                });
            }
        }
    }
}
