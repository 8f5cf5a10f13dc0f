//! Compares one fingerprint with all others: slow, but exact in every case.

/// Rows per block. A block is examined row by row only if one of its rows is near.
const BLOCK: usize = 64;

/// Puts into `rows` the numbers of all upper halves that differ from `query` in at most `k` bits, in ascending order.
///
/// Only upper halves are read. Hardly one unrelated fingerprint in 10^10 is within 7 bits there, so the lower halves are rarely needed, and
/// memory bandwidth limits the speed.
pub(super) fn within(halves: &[u64], query: u64, k: u32, rows: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if x86::within(halves, query, k, rows) {
        return;
    }
    portable(halves, query, k, rows);
}

/// The portable loop, without special instructions. If it is inlined into functions with target features, it is compiled to their
/// instructions.
#[inline(always)]
fn portable(halves: &[u64], query: u64, k: u32, rows: &mut Vec<u32>) {
    let (blocks, rest) = halves.as_chunks::<BLOCK>();
    let k = u64::from(k);
    let mut first = 0;
    for block in blocks {
        // A loop and not an iterator's sum, which would be a function of its own and would not be compiled to the same instructions.
        let mut near = 0;
        for half in block {
            near |= u64::from(u64::from((half ^ query).count_ones()) <= k);
        }
        if near > 0 {
            push_near(block, first, query, k, rows);
        }
        first += BLOCK as u32;
    }
    push_near(rest, first, query, k, rows);
}

#[cold]
fn push_near(halves: &[u64], first: u32, query: u64, k: u64, rows: &mut Vec<u32>) {
    let near = (first..).zip(halves).filter(|(_, half)| u64::from((*half ^ query).count_ones()) <= k);
    rows.extend(near.map(|(row, _)| row));
}

/// The same loop, compiled for processors with wider registers and an instruction that counts bits.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "a function for a processor that has more may only be called on one")]
mod x86 {
    use std::arch::is_x86_feature_detected as has;

    /// Scans with special instructions if the processor has them; returns whether it did.
    pub(super) fn within(halves: &[u64], query: u64, k: u32, rows: &mut Vec<u32>) -> bool {
        if has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512vpopcntdq") {
            // SAFETY: the processor has all features that the function is compiled for.
            unsafe { avx512(halves, query, k, rows) };
            return true;
        }
        if has!("avx2") && has!("popcnt") {
            // SAFETY: the processor has all features that the function is compiled for.
            unsafe { avx2(halves, query, k, rows) };
            return true;
        }
        false
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512vpopcntdq")]
    pub(super) fn avx512(halves: &[u64], query: u64, k: u32, rows: &mut Vec<u32>) {
        super::portable(halves, query, k, rows);
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn avx2(halves: &[u64], query: u64, k: u32, rows: &mut Vec<u32>) {
        super::portable(halves, query, k, rows);
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    type Scan = fn(&[u64], u64, u32, &mut Vec<u32>);

    /// The implementations that this processor can run.
    #[expect(unsafe_code, reason = "see x86")]
    fn ways() -> Vec<(&'static str, Scan)> {
        let mut ways: Vec<(&str, Scan)> =
            vec![("chosen", within), ("portable", |h, q, k, r| portable(h, q, k, r))];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                // SAFETY: the processor has all features that the function is compiled for.
                ways.push(("avx2", |h, q, k, r| unsafe { x86::avx2(h, q, k, r) }));
            }
            if is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vpopcntdq")
            {
                // SAFETY: the processor has all features that the function is compiled for.
                ways.push(("avx512", |h, q, k, r| unsafe { x86::avx512(h, q, k, r) }));
            }
        }
        ways
    }

    #[test]
    fn every_way_of_scanning_finds_the_same_rows() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0302);
        for len in [0, 1, 63, 64, 65, 640, 1000] {
            let query = rng.next_u64();
            let halves: Vec<u64> = (0..len)
                .map(|_| (0..rng.next_u32() % 12).fold(query, |half, _| half ^ 1 << (rng.next_u32() % 64)))
                .collect();
            for k in 0..=7 {
                let distance = |half: &u64| {
                    let differing = (0..64).filter(|bit| (half ^ query) >> bit & 1 == 1);
                    differing.count() as u32
                };
                let expected: Vec<u32> =
                    (0..).zip(&halves).filter(|(_, half)| distance(half) <= k).map(|(row, _)| row).collect();
                for (name, scan) in ways() {
                    let mut rows = Vec::new();
                    scan(&halves, query, k, &mut rows);
                    assert_eq!(rows, expected, "{name}, {len} rows, k = {k}");
                }
            }
        }
    }
}
