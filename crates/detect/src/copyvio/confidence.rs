//! The confidence that an article copies a source, computed from two numbers.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Above this share of the article, the second formula of [`of_share`] applies.
const SHARE_KNEE: f64 = 0.52763;

/// The confidence of the reference detector that an article takes its words from a source: `C`.
///
/// It is the larger of two functions of A, the size of the article's chain, and D, the size of the part that it shares:
///
/// | function | range | value |
/// |---|---|---|
/// | of the share r = D / A | r <= 0.52763 | -ln(1 - r) |
/// | | r > 0.52763 | -0.8939 r^2 + 1.8948 r - 0.0009 |
/// | of D alone | D <= 100 | D / (D + 100) |
/// | | 100 < D <= 250 | (D - 25) / (D + 50) |
/// | | 250 < D <= 500 | (10.5 D - 750) / (10 D) |
/// | | D > 500 | (D - 50) / D |
///
/// (`earwigbot` 0.4, `CopyvioWorkspace._calculate_confidence`.) So 67 shared windows are [`Band::Possible`] in an article
/// of any length.
///
/// ```
/// use huntsman_detect::copyvio::{Band, Confidence};
///
/// let confidence = Confidence::of(500, 250);
/// assert_eq!(confidence.value(), 0.75);
/// assert_eq!(confidence.band(), Band::Suspected);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// No confidence, for sources that were not compared.
    pub const ZERO: Self = Self(0.0);

    /// The confidence for an article's chain of size `article` that shares `delta` windows with a source.
    ///
    /// Deliberately different: an article of size 0 (degree 1, no words) gives 0; the reference would divide by zero.
    pub fn of(article: usize, delta: usize) -> Self {
        if article == 0 {
            return Self::ZERO;
        }
        // Texts are far shorter than 2^53 words.
        let (article, delta) = (article as f64, delta as f64);
        // `abs` turns a -0.0 from the logarithm into 0.0 and changes nothing else.
        Self(of_share(delta / article).max(of_delta(delta)).abs())
    }

    /// The number, between 0 and 1, for display and output.
    pub fn value(self) -> f64 {
        self.0.clamp(0.0, 1.0)
    }

    /// The number exactly as the reference computes it: for two equal texts 1.0000000000000002.
    pub fn exact(self) -> f64 {
        self.0
    }

    /// The band of this confidence. The number is compared unrounded, and both limits belong to the higher band.
    pub fn band(self) -> Band {
        match self.0 {
            c if c >= Band::SUSPECTED => Band::Suspected,
            c if c >= Band::POSSIBLE => Band::Possible,
            _ => Band::None,
        }
    }
}

fn of_share(share: f64) -> f64 {
    if share <= SHARE_KNEE {
        -(1.0 - share).ln()
    } else {
        // The order of the operations is that of the reference, so that the last bit agrees.
        -0.8939 * (share * share) + 1.8948 * share - 0.0009
    }
}

fn of_delta(delta: f64) -> f64 {
    if delta <= 100.0 {
        delta / (delta + 100.0)
    } else if delta <= 250.0 {
        (delta - 25.0) / (delta + 50.0)
    } else if delta <= 500.0 {
        (10.5 * delta - 750.0) / (10.0 * delta)
    } else {
        (delta - 50.0) / delta
    }
}

impl fmt::Display for Confidence {
    /// Formats as a percentage with one decimal, as the reference's page does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} %", self.value() * 100.0)
    }
}

impl Serialize for Confidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.value())
    }
}

impl<'de> Deserialize<'de> for Confidence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Ok(Self(if value.is_finite() { value.clamp(0.0, 1.0) } else { 0.0 }))
    }
}

/// The bands into which the reference's page divides confidences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Band {
    /// A confidence below 0.4; green on the reference's page.
    None,
    /// A confidence from 0.4; yellow on the reference's page.
    Possible,
    /// A confidence from 0.75, which is a violation; red on the reference's page.
    Suspected,
}

impl Band {
    /// The lower limit of [`Band::Possible`].
    pub const POSSIBLE: f64 = 0.4;
    /// The lower limit of [`Band::Suspected`]: the reference's `min_confidence`.
    pub const SUSPECTED: f64 = 0.75;
}

impl fmt::Display for Band {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Band::None => "none",
            Band::Possible => "possible",
            Band::Suspected => "suspected",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_article_without_windows_has_no_confidence() {
        assert_eq!(Confidence::of(0, 0), Confidence::ZERO);
    }

    #[test]
    fn nothing_shared_is_positive_zero() {
        assert!(Confidence::of(200, 0).exact().is_sign_positive());
    }

    #[test]
    fn what_is_shown_never_exceeds_one() {
        assert!(Confidence::of(20, 20).exact() > 1.0);
        assert_eq!(Confidence::of(20, 20).value(), 1.0);
        assert_eq!(serde_json::to_string(&Confidence::of(20, 20)).unwrap(), "1.0");
        assert_eq!(Confidence::of(20, 20).to_string(), "100.0 %");
    }

    #[test]
    fn bands_begin_at_their_limits_whatever_the_length() {
        assert_eq!(Confidence::of(1_000_000, 66).band(), Band::None);
        assert_eq!(Confidence::of(1_000_000, 67).band(), Band::Possible);
        assert_eq!(Confidence::of(1_000_000, 249).band(), Band::Possible);
        assert_eq!(Confidence::of(1_000_000, 250).band(), Band::Suspected);
        assert_eq!(Confidence::of(100, 32).band(), Band::None);
        assert_eq!(Confidence::of(100, 33).band(), Band::Possible);
        assert_eq!(Confidence::of(100, 53).band(), Band::Suspected);
    }
}
