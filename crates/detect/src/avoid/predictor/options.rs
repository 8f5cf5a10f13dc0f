//! How much evidence the predictor needs before it skips.

/// Options of the predictor: how much evidence it needs before it skips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The number of pages of a site that are learnt before anything is skipped. Default: 300, as MaybeDont.
    pub warmup: u32,
    /// A URL is skipped if the probability that its content is known is greater than this. Default: 0.98.
    pub threshold: f64,
    /// The share of the skips that are fetched nevertheless, for evidence and for an estimate of the loss. Default: 0.05.
    pub exploration: f64,
    /// The lower limit to which that share falls with the explorations of a rule that found nothing new: the share is `exploration * 20 /
    /// (20 + explored)`. Default: `None`, it does not fall. The estimate of the loss then weighs each exploration by the share with which
    /// it was drawn (Horvitz and Thompson 1952).
    pub exploration_min: Option<f64>,
    /// The number of its own observations that a row needs before it decides. Default: 10.
    pub min_evidence: f64,
    /// The seed that decides, together with the URL, which skips are explored. Default: 0.
    pub seed: u64,
    /// The most bytes of texts and URLs of all sites that are kept for relearning. Beyond it, the sites with most of them stop relearning
    /// and use what they know, until a quarter is free. Default: 128 MiB.
    pub learning_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            warmup: 300,
            threshold: 0.98,
            exploration: 0.05,
            exploration_min: None,
            min_evidence: 10.0,
            seed: 0,
            learning_bytes: 128 << 20,
        }
    }
}
