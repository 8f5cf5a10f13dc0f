//! Which of 64 bytes pass a test, one bit each: how texts are read many bytes at a time.

/// The number of bytes of a mask.
pub const CHUNK: usize = 64;

/// The bytes that pass a test; the lowest bit is that of the first byte. Compilers test many of them at a time.
///
/// ```
/// use huntsman_text::byte_mask::{CHUNK, byte_mask};
///
/// let mut bytes = [b' '; CHUNK];
/// bytes[..5].copy_from_slice(b"a1 b2");
/// assert_eq!(byte_mask(&bytes, |byte| byte.is_ascii_digit()), 0b10010);
/// ```
#[inline]
pub fn byte_mask(bytes: &[u8; CHUNK], test: impl Fn(u8) -> bool) -> u64 {
    let mut tested = [0; CHUNK];
    for (tested, byte) in tested.iter_mut().zip(bytes) {
        *tested = u8::from(test(*byte));
    }
    let eights = tested.as_chunks::<8>().0.iter().enumerate();
    // The product has the lowest bits of eight bytes side by side in its highest byte.
    let packed = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    eights.fold(0, |all, (at, eight)| all | packed(eight) << (8 * at))
}
