//! Bijections that distribute non-random numbers evenly: the finalisers of MurmurHash3, by A. Appleby, in the public domain.

/// Each bit of the result depends on each bit of the input; different inputs have different results.
pub(super) fn fmix32(mut number: u32) -> u32 {
    number ^= number >> 16;
    number = number.wrapping_mul(0x85eb_ca6b);
    number ^= number >> 13;
    number = number.wrapping_mul(0xc2b2_ae35);
    number ^ number >> 16
}

/// As [`fmix32`], for 64 bits.
pub(super) fn fmix64(mut number: u64) -> u64 {
    number ^= number >> 33;
    number = number.wrapping_mul(0xff51_afd7_ed55_8ccd);
    number ^= number >> 33;
    number = number.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_are_the_published_ones() {
        assert_eq!((fmix32(0), fmix32(1), fmix32(u32::MAX)), (0, 0x514e_28b7, 0x81f1_6f39));
        assert_eq!((fmix64(0), fmix64(1)), (0, 0xb456_bcfc_34c2_cb2c));
    }
}
