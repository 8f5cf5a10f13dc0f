//! The decision whether to fetch an address, as MaybeDont's middleware makes it from the probability.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::address::Address;
use super::predictor::{DupePredictor, PredictorSettings, SettingsError};
use super::rows::Row;
use super::saved::FORMAT;
use huntsman_text::shingles::{ShingleSet, TooCommon};

/// Settings of a [`Gate`]. The defaults are those of MaybeDont 0.1.1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateSettings {
    /// The number of pages that are fetched before anything is skipped; they show which shingles are too common. 300 by default
    /// (`AVOID_DUP_CONTENT_INITIAL_QUEUE_LIMIT`); 0 is treated as 1.
    pub warm_up: usize,
    /// The probability above which an address is skipped. 0.98 by default (`AVOID_DUP_CONTENT_THRESHOLD`).
    pub threshold: f64,
    /// The share of the addresses to be skipped that are fetched nevertheless. 0.05 by default (`AVOID_DUP_CONTENT_EXPLORATION`).
    pub exploration: f64,
    /// The seed that selects these addresses, by a hash of it and the address; so the order of the calls does not matter.
    pub seed: u64,
    /// The settings for comparing pages.
    pub predictor: PredictorSettings,
}

impl Default for GateSettings {
    fn default() -> Self {
        GateSettings {
            warm_up: 300,
            threshold: 0.98,
            exploration: 0.05,
            seed: 0,
            predictor: PredictorSettings::default(),
        }
    }
}

/// The decision for an address.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The address is to be fetched, and the result passed to [`learn`](Gate::learn).
    Fetch {
        /// Whether it would have been skipped and is fetched to check that prediction.
        explored: bool,
        /// The probability that its content is known; `None` in the warm-up.
        probability: Option<f64>,
    },
    /// The address is not to be fetched, because its content is probably known.
    Skip {
        /// The reason as text.
        reason: String,
        /// The probability that its content is known.
        probability: f64,
        /// The evidence, see [`Estimate::best`](super::Estimate::best).
        rows: Vec<Row>,
    },
}

/// Decides which addresses to fetch, as `AvoidDupContentMiddleware` of MaybeDont 0.1.1 does, without a crawler.
///
/// Call [`decide`](Self::decide) for each address, fetch it if the decision says so, and pass the result to [`learn`](Self::learn): the
/// address after redirects, and the text of the body. During the warm-up pages are only collected; at its end the shingles that are too
/// common are taken from them, and then all of them are learned at once. Call neither for addresses that should not be judged.
///
/// ```
/// use huntsman_detect::maybedont::{Decision, Gate, GateSettings};
///
/// let mut gate = Gate::new(GateSettings { warm_up: 100, threshold: 0.95, ..GateSettings::default() })?;
/// let mut skipped = 0;
/// for topic in 0..200 {
///     for url in [format!("http://h/t/{topic}"), format!("http://h/t/{topic}?sid=f00")] {
///         match gate.decide(&url) {
///             Decision::Fetch { .. } => gate.learn(&url, &format!("what is said of {topic}")),
///             Decision::Skip { reason, .. } => {
///                 assert!(reason.starts_with("`sid` changes nothing on any path: "), "{reason}");
///                 skipped += 1;
///             }
///         }
///     }
/// }
/// assert!(skipped > 100);
/// # Ok::<(), huntsman_detect::maybedont::SettingsError>(())
/// ```
///
/// It can be saved with serde and restored, during the warm-up too.
#[derive(Debug)]
pub struct Gate {
    settings: GateSettings,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// Shingles instead of texts: they take about as much memory, and not more for hostile texts.
    WarmUp(Vec<(String, ShingleSet)>),
    Open(Box<DupePredictor>),
}

impl Gate {
    /// A gate without any knowledge.
    ///
    /// # Errors
    ///
    /// If the threshold is not a number, the exploration is not within 0 to 1, or a setting of the predictor is out of range.
    pub fn new(settings: GateSettings) -> Result<Self, SettingsError> {
        if settings.threshold.is_nan() {
            return Err(SettingsError("threshold: not a number".to_owned()));
        }
        if !(0.0..=1.0).contains(&settings.exploration) {
            return Err(SettingsError(format!("exploration: {} is not within 0 to 1", settings.exploration)));
        }
        DupePredictor::new(settings.predictor.clone(), TooCommon::default())?;
        Ok(Gate { settings, phase: Phase::WarmUp(Vec::new()) })
    }

    /// The settings.
    pub fn settings(&self) -> &GateSettings {
        &self.settings
    }

    /// The predictor, once the warm-up is over.
    pub fn predictor(&self) -> Option<&DupePredictor> {
        match &self.phase {
            Phase::WarmUp(_) => None,
            Phase::Open(predictor) => Some(predictor),
        }
    }

    /// The number of pages collected in the warm-up; `None` after it.
    pub fn queued(&self) -> Option<usize> {
        match &self.phase {
            Phase::WarmUp(queue) => Some(queue.len()),
            Phase::Open(_) => None,
        }
    }

    /// Decides whether to fetch an address.
    pub fn decide(&self, url: &str) -> Decision {
        let Phase::Open(predictor) = &self.phase else {
            return Decision::Fetch { explored: false, probability: None };
        };
        let address = Address::parse(url);
        let estimate = predictor.estimate_for(&address);
        let probability = estimate.probability;
        let likely = probability > self.settings.threshold;
        if !likely || self.explores(&address) {
            return Decision::Fetch { explored: likely, probability: Some(probability) };
        }
        let evidence: Vec<String> = estimate.best.iter().map(Row::to_string).collect();
        let reason = match evidence.is_empty() {
            true => "nothing is known of such addresses, and the threshold is below that".to_owned(),
            false => evidence.join("; "),
        };
        Decision::Skip { reason, probability, rows: estimate.best }
    }

    fn explores(&self, address: &Address) -> bool {
        let hash = xxh3_64_with_seed(address.identity().as_bytes(), self.settings.seed);
        // The upper 53 bits as a number from 0 to 1.
        ((hash >> 11) as f64) < self.settings.exploration * (1_u64 << 53) as f64
    }

    /// Learns from a fetched page: its address after redirects, and its text.
    ///
    /// The page that ends the warm-up costs as much as all pages before it together.
    pub fn learn(&mut self, url: &str, text: &str) {
        let queue = match &mut self.phase {
            Phase::Open(predictor) => {
                predictor.update_model(url, text);
                return;
            }
            Phase::WarmUp(queue) => queue,
        };
        queue.push((url.to_owned(), ShingleSet::of(text)));
        if queue.len() < self.settings.warm_up {
            return;
        }
        let queue = std::mem::take(queue);
        let common = TooCommon::among(queue.iter().map(|(_, shingles)| shingles));
        let mut predictor = DupePredictor::new(self.settings.predictor.clone(), common)
            .expect("the settings were tried when the gate was made");
        for (url, shingles) in queue {
            predictor.learn(&Address::parse(&url), shingles);
        }
        self.phase = Phase::Open(Box::new(predictor));
    }
}

/// The stored form of a gate: with a queue or with a predictor.
#[derive(Serialize, Deserialize)]
struct Saved<Q, P> {
    format: u32,
    settings: GateSettings,
    queue: Option<Q>,
    predictor: Option<P>,
}

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (queue, predictor) = match &self.phase {
            Phase::WarmUp(queue) => (Some(queue), None),
            Phase::Open(predictor) => (None, Some(predictor)),
        };
        Saved { format: FORMAT, settings: self.settings.clone(), queue, predictor }.serialize(serializer)
    }
}

/// Values that no gate can have saved give an error that says what is wrong.
impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved: Saved<Vec<(String, ShingleSet)>, Box<DupePredictor>> = Saved::deserialize(deserializer)?;
        if saved.format != FORMAT {
            let format = saved.format;
            return Err(D::Error::custom(format!(
                "the gate was saved in format {format}, this version reads format {FORMAT}"
            )));
        }
        let mut gate = Gate::new(saved.settings).map_err(D::Error::custom)?;
        gate.phase = match (saved.queue, saved.predictor) {
            (Some(queue), None) => Phase::WarmUp(queue),
            (None, Some(predictor)) => Phase::Open(predictor),
            _ => return Err(D::Error::custom("a gate has either a queue or a predictor")),
        };
        Ok(gate)
    }
}
