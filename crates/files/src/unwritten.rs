//! Distinguishes data that never reached the disk from data that was changed on it.

/// Bytes that a disk writes as one unit.
const SECTOR: u64 = 512;
/// Fewer zeros than this at the end may be real data.
const MIN_ZEROS: usize = 16;

/// Whether some of the bytes at an offset of a file were lost in a power cut before they were synced.
///
/// A file may then already have its full length although some of its sectors were never written: they are zeros. A bit
/// that was flipped later leaves no such sector.
pub fn has_unwritten(bytes: &[u8], at: u64) -> bool {
    let to_sector = usize::try_from(SECTOR - at % SECTOR).expect("a sector fits into memory");
    let (head, rest) = bytes.split_at(to_sector.min(bytes.len()));
    let is_zero = |piece: &[u8]| !piece.is_empty() && piece.iter().all(|byte| *byte == 0);
    // `head` is the rest of a sector whose beginning was written earlier: real data does not begin with zeros.
    is_zero(head) || rest.chunks(SECTOR as usize).any(|piece| piece.len() >= MIN_ZEROS && is_zero(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_of_zeros_was_not_written_and_zeros_among_others_were() {
        let written = |at: u64, hole: std::ops::Range<u64>| -> Vec<u8> {
            (at..at + 2_000).map(|byte| if hole.contains(&byte) { 0 } else { 7 }).collect()
        };
        for at in [0, 1, 511, 512, 700, 4_095] {
            assert!(!has_unwritten(&written(at, 0..0), at), "at {at}");
            let next = (at / 512 + 1) * 512;
            assert!(has_unwritten(&written(at, next..next + 512), at), "a sector, at {at}");
            assert!(!has_unwritten(&written(at, next + 1..next + 512), at), "less than a sector, at {at}");
            assert!(has_unwritten(&written(at, at..next), at), "the beginning, at {at}");
            let end = (at + 2_000) / 512 * 512;
            let last = written(at, end..at + 2_000);
            assert_eq!(has_unwritten(&last, at), at + 2_000 - end >= 16, "the end, at {at}");
        }
        for length in 1..100 {
            assert!(has_unwritten(&vec![0; length], 1_000), "nothing but {length} zeros");
        }
        assert!(!has_unwritten(&[], 0));
    }
}
