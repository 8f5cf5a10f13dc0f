//! The number of bands into which a signature is cut.

use std::fmt;

use crate::minhash::PERMUTATIONS;

/// The number of bands and the number of values in each.
///
/// A pair of similarity `J` is a candidate with [probability](Self::probability) `1 - (1 - J^r)^b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LshParams {
    /// The number of bands.
    pub b: usize,
    /// The number of values in each band.
    pub r: usize,
}

impl LshParams {
    /// The bands and rows with the least error around a similarity, for a signature of `permutations` values.
    ///
    /// Both errors count equally: the area under the curve of [`probability`](Self::probability) left of `threshold` (different pages that
    /// become candidates) and the area above it on the right (equal pages that do not). This is datasketch's rule and gives its numbers;
    /// `(0.9, 128)` is 5 bands of 25, MaybeDont's setting.
    ///
    /// ```
    /// use huntsman_detect::lsh::LshParams;
    ///
    /// let params = LshParams::optimal(0.9, 128)?;
    /// assert_eq!((params.b, params.r), (5, 25));
    /// assert!((params.probability(0.95) - 0.803).abs() < 1e-3);
    /// # Ok::<(), huntsman_detect::lsh::LshParamsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the threshold is not within 0 to 1, or there are not 1 to 4,096 permutations.
    pub fn optimal(threshold: f64, permutations: usize) -> Result<Self, LshParamsError> {
        Self::weighted(threshold, permutations, 0.5, 0.5)
    }

    /// As [`optimal`](Self::optimal), with one weight for false positives (different pages that become candidates) and one for false
    /// negatives. If a weight is 0, the other error can be made arbitrarily small, and rounding decides.
    ///
    /// # Errors
    ///
    /// As `optimal`, and if a weight is negative or not finite.
    pub fn weighted(
        threshold: f64,
        permutations: usize,
        false_positives: f64,
        false_negatives: f64,
    ) -> Result<Self, LshParamsError> {
        // The search costs permutations * log(permutations) integrals.
        const MAX_PERMUTATIONS: usize = 4096;
        // Errors this close are equal apart from rounding; then fewer bands win, then fewer rows, as in datasketch.
        const TIE: f64 = 1e-12;
        if !(0.0..=1.0).contains(&threshold) {
            return Err(LshParamsError(format!("the threshold {threshold} is not within 0 to 1")));
        }
        if !(1..=MAX_PERMUTATIONS).contains(&permutations) {
            return Err(LshParamsError(format!(
                "{permutations} permutations are not within 1 to {MAX_PERMUTATIONS}"
            )));
        }
        for weight in [false_positives, false_negatives] {
            if !weight.is_finite() || weight < 0.0 {
                return Err(LshParamsError(format!("the weight {weight} is not a positive number")));
            }
        }
        let mut best = (f64::INFINITY, LshParams { b: 1, r: permutations });
        for b in 1..=permutations {
            for r in 1..=permutations / b {
                let params = LshParams { b, r };
                let positives = integral(0.0, threshold, |s| params.probability(s));
                let negatives = integral(threshold, 1.0, |s| 1.0 - params.probability(s));
                let error = positives * false_positives + negatives * false_negatives;
                if error < best.0 * (1.0 - TIE) {
                    best = (error, params);
                }
            }
        }
        Ok(best.1)
    }

    /// The probability that two signatures of sets with this Jaccard similarity are candidates of each other.
    pub fn probability(self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.r as i32)).powi(self.b as i32)
    }

    /// Whether a [`Signature`](crate::minhash::Signature) has enough values for these bands.
    pub(super) fn fit(self) -> bool {
        self.b > 0 && self.r > 0 && self.b.checked_mul(self.r).is_some_and(|values| values <= PERMUTATIONS)
    }
}

/// The error for index settings that are out of range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LshParamsError(pub(super) String);

impl fmt::Display for LshParamsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LshParamsError {}

/// The integral of a smooth function, by Gauss-Legendre quadrature with 8 points on each of 16 parts. It is exact to 12 digits for the
/// curves here, which are polynomials; datasketch uses scipy's adaptive rule.
fn integral(from: f64, to: f64, function: impl Fn(f64) -> f64) -> f64 {
    const PARTS: usize = 16;
    const POINTS: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
        (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
    ];
    let half = (to - from) / (2 * PARTS) as f64;
    let mut sum = 0.0;
    for part in 0..PARTS {
        let middle = from + half * (2 * part + 1) as f64;
        for (x, weight) in POINTS {
            sum += weight * (function(middle - half * x) + function(middle + half * x));
        }
    }
    sum * half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_integrated_exactly() {
        for power in [0, 1, 25, 128] {
            let found = integral(0.2, 1.0, |s| s.powi(power));
            let exact = (1.0 - 0.2_f64.powi(power + 1)) / f64::from(power + 1);
            assert!((found - exact).abs() < 1e-12, "{power}: {found} and {exact}");
        }
    }

    #[test]
    fn probabilities_of_the_default_are_as_tabled() {
        let params = LshParams { b: 5, r: 25 };
        for (jaccard, probability) in
            [(0.80, 0.019), (0.85, 0.083), (0.90, 0.311), (0.92, 0.485), (0.97, 0.957), (1.0, 1.0)]
        {
            assert!((params.probability(jaccard) - probability).abs() < 6e-4, "{jaccard}");
        }
    }

    #[test]
    fn senseless_settings_are_refused() {
        for (threshold, permutations) in [(-0.1, 128), (1.1, 128), (f64::NAN, 128), (0.9, 0), (0.9, 4097)] {
            assert!(LshParams::optimal(threshold, permutations).is_err(), "{threshold} {permutations}");
        }
        assert!(LshParams::weighted(0.9, 128, f64::INFINITY, 0.5).is_err());
        assert!(LshParams::weighted(0.9, 128, 0.5, -1.0).is_err());
    }
}
