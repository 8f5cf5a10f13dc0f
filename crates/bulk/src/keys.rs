//! Keys: parts of a fingerprint of which two near fingerprints share at least one.
//!
//! Fingerprints that differ in at most k bits differ in at most k of m disjoint parts, so they are equal in at least m - k: in one of
//! k + 1 parts, and in two of nine for k up to 7 (the pigeonhole principle; G. S. Manku, A. Jain, A. Das Sarma, "Detecting Near-Duplicates
//! for Web Crawling", WWW 2007).

/// Widths of the nine parts for k above 3, the most significant first.
const NINE: [u32; 9] = [15, 15, 14, 14, 14, 14, 14, 14, 14];

/// Cuts the bits of a mask into parts of these widths, the most significant first.
fn cut(mask: u128, widths: impl IntoIterator<Item = u32>) -> Vec<u128> {
    let mut left = (0..128).rev().filter(|bit| mask >> bit & 1 == 1);
    widths
        .into_iter()
        .map(|width| left.by_ref().take(width as usize).map(|bit| 1_u128 << bit).sum())
        .collect()
}

/// The masks of the keys for a distance. Fingerprints within 0 bits are equal, and need none.
pub(crate) fn keys(k: u32) -> Vec<u128> {
    match k {
        0 => Vec::new(),
        1..=3 => cut(u128::MAX, std::iter::repeat_n(32, k as usize + 1)),
        _ => {
            let parts = cut(u128::MAX, NINE);
            let pairs = (0..9).flat_map(|a| (a + 1..9).map(move |b| (a, b)));
            pairs.map(|(a, b)| parts[a] | parts[b]).collect()
        }
    }
}

/// The k + 1 parts of all bits outside of a key: near fingerprints that share the key share one of these, too.
pub(crate) fn parts(key: u128, k: u32) -> Vec<u128> {
    let parts = k + 1;
    let width = (!key).count_ones() / parts;
    cut(!key, std::iter::repeat_n(width, parts as usize))
}

/// A hash of the bits of a mask. Others that have the same one are told apart by the comparison.
pub(crate) fn hash(fingerprint: u128, mask: u128) -> u32 {
    let bits = fingerprint & mask;
    let mut mixed = (bits >> 64) as u64 ^ (bits as u64).rotate_left(29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93).wrapping_shr(32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_parts_are_disjoint_and_as_many_as_the_distance_needs() {
        for k in 1..=7 {
            let keys = keys(k);
            assert_eq!(keys.len(), if k <= 3 { k as usize + 1 } else { 36 });
            for key in &keys {
                let parts = parts(*key, k);
                assert_eq!(parts.len(), k as usize + 1);
                let all = parts.iter().fold(*key, |all, part| {
                    assert!(*part != 0 && all & part == 0);
                    all | part
                });
                assert!(all.count_ones() >= 128 - k);
            }
        }
    }

    #[test]
    fn near_fingerprints_share_a_key_and_a_part() {
        let mut state = 7_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for k in 1..=7 {
            for _ in 0..2_000 {
                let differ = (0..k).fold(0_u128, |bits, _| bits | 1 << random(128));
                let shared = keys(k).into_iter().find(|key| differ & key == 0).expect("a key is shared");
                assert!(parts(shared, k).iter().any(|part| differ & part == 0));
            }
        }
    }
}
