//! Metrics in Prometheus' text format, version 0.0.4: one encoder for everything in Huntsman that writes them.
//!
//! [`Families`] are numbers at a moment, which the caller makes anew for each scrape. [`counter_file`] is a file whose counters go on over
//! the runs of a program. The crate is not a registry, opens no socket (that is `huntsman-serve`), and does not know what is counted.
//!
//! The encoder is that of `prometheus-client`. It writes OpenMetrics, which differs from 0.0.4 in four points that
//! scrapers and `promtool` see: the type of a counter is declared under its name without `_total`, metrics without a
//! type are `unknown` instead of `untyped`, bounds of histograms are written `5.0` instead of `5` (another label, so
//! another series), and the text ends with `# EOF`. Counters are encoded under their full names; the other three
//! points are changed back line by line in [`Families::text`].
//!
//! ```
//! use huntsman_metrics::{Families, Kind};
//!
//! let mut families = Families::default();
//! let by_status = [(vec![("status", "200".to_owned())], 7_u64)];
//! families.family("requests_total", "Requests by status.", Kind::Counter, by_status);
//! assert!(families.text().ends_with("requests_total{status=\"200\"} 7\n"));
//! ```

// Files are written with `huntsman_files`; see clippy.toml.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod counter_file;

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, GaugeValueEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

/// Content type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family, which says what may be computed from its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The numbers only grow. The name ends with `_total`.
    Counter,
    /// The numbers go up and down.
    Gauge,
    /// Durations or other amounts, counted by bucket.
    Histogram,
    /// The type is not known.
    Untyped,
}

/// A number in the form in which it is written: counts have no decimal point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Count(u64),
    /// Any other number.
    Real(f64),
}

/// Amounts, such as durations in seconds, counted by bucket. All histograms of a family have the same buckets.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds of the buckets in ascending order, with the number of amounts in each; the last bound is infinite.
    classes: Vec<(f64, u64)>,
    sum: f64,
}

#[derive(Clone, Debug)]
enum Value {
    Number(Number),
    Histogram(Histogram),
}

/// A label and its value; the value may be any text.
pub type Label = (&'static str, String);

/// The metrics of one name, with a sample for each set of labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    kind: Kind,
    samples: Vec<(Vec<Label>, Value)>,
}

/// Families of metrics at a moment, in the order in which they are written. A family is a name with one sample for each set of labels.
#[derive(Debug, Default)]
pub struct Families(Vec<Family>);

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Number {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<f64> for Number {
    fn from(real: f64) -> Self {
        Self::Real(real)
    }
}

impl EncodeGaugeValue for Number {
    fn encode(&self, encoder: &mut GaugeValueEncoder) -> fmt::Result {
        match self {
            Self::Count(count) => EncodeGaugeValue::encode(count, encoder),
            Self::Real(real) => EncodeGaugeValue::encode(real, encoder),
        }
    }
}

impl Histogram {
    /// An empty histogram with buckets that end at `ends`, in ascending order, and one for everything above.
    pub fn new(ends: &[f64]) -> Self {
        let classes = ends.iter().copied().chain([f64::INFINITY]).map(|end| (end, 0)).collect();
        Self { classes, sum: 0.0 }
    }

    /// Adds a number of things that took the same time each.
    pub fn observe(&mut self, took: Duration, things: u64) {
        let seconds = took.as_secs_f64();
        if let Some((_, count)) = self.classes.iter_mut().find(|(end, _)| seconds <= *end) {
            *count += things;
        }
        self.sum += seconds * things as f64;
    }

    /// A histogram of amounts that were counted elsewhere. `below` has the upper bounds in ascending order, each with the number of
    /// amounts up to it; `count` and `sum` are those of all amounts.
    pub fn of_cumulative(below: impl IntoIterator<Item = (f64, u64)>, count: u64, sum: f64) -> Self {
        let mut before = 0;
        let classes = below.into_iter().chain([(f64::INFINITY, count)]);
        let classes = classes.map(|(end, below)| (end, below - std::mem::replace(&mut before, below)));
        Self { classes: classes.collect(), sum }
    }

    /// Number of amounts.
    pub fn count(&self) -> u64 {
        self.classes.iter().map(|(_, count)| count).sum()
    }
}

impl Families {
    /// Adds a family of one sample without labels.
    pub fn single(&mut self, name: &str, help: &str, kind: Kind, number: impl Into<Number>) {
        self.family(name, help, kind, [(Vec::new(), number)]);
    }

    /// Adds a family, even if it has no samples yet. The name must be a valid metric name; help and labels may be any
    /// text.
    pub fn family<N: Into<Number>>(
        &mut self,
        name: &str,
        help: &str,
        kind: Kind,
        samples: impl IntoIterator<Item = (Vec<Label>, N)>,
    ) {
        let samples = samples.into_iter().map(|(labels, number)| (labels, Value::Number(number.into())));
        self.push(name, help, kind, samples.collect());
    }

    /// Adds a family of histograms.
    pub fn histograms(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, Histogram)>,
    ) {
        let samples = samples.into_iter().map(|(labels, histogram)| (labels, Value::Histogram(histogram)));
        self.push(name, help, Kind::Histogram, samples.collect());
    }

    fn push(&mut self, name: &str, help: &str, kind: Kind, samples: Vec<(Vec<Label>, Value)>) {
        self.0.push(Family { name: name.to_owned(), help: help.to_owned(), kind, samples });
    }

    /// Appends the families of `others`.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The metrics in the text format.
    pub fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut encoded = String::new();
        encode_registry(&mut encoded, &registry).expect("a string takes all that is written");
        let mut text = String::with_capacity(encoded.len());
        for line in encoded.lines() {
            if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" unknown")) {
                let _ = writeln!(text, "# TYPE {name} untyped");
            } else if let Some((name, end, labels, number)) = bucket(line) {
                let comma = if labels.is_empty() { "" } else { "," };
                let end = if end.is_finite() { end.to_string() } else { "+Inf".to_owned() };
                let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{end}\"}} {number}");
            } else {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// For a bucket line of a histogram: the name, the upper bound, the other labels, and the number.
fn bucket(line: &str) -> Option<(&str, f64, &str, &str)> {
    let (name, rest) = line.split_once("_bucket{le=\"")?;
    let (bound, rest) = rest.split_once('"')?;
    let (labels, number) = rest.rsplit_once("} ")?;
    let end: f64 = bound.parse().ok()?;
    (!name.contains(['{', '#', ' '])).then_some((name, end, labels.trim_start_matches(','), number))
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder) -> fmt::Result {
        match self {
            Self::Number(number) => encoder.encode_gauge(number),
            Self::Histogram(Histogram { classes, sum }) => {
                let count = classes.iter().map(|(_, count)| count).sum();
                let exemplars: Option<&HashMap<usize, Exemplar<NoLabelSet, f64>>> = None;
                encoder.encode_histogram(*sum, count, classes, exemplars)
            }
        }
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for Family { name, help, kind, samples } in &self.0 {
            let kind = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Untyped => MetricType::Unknown,
            };
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            let mut family = encoder.encode_descriptor(name, &help, None, kind)?;
            for (labels, value) in samples {
                if labels.is_empty() {
                    value.encode(&mut family)?;
                } else {
                    value.encode(&mut family.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_that_of_version_0_0_4() {
        let mut families = Families::default();
        let by_status =
            [(vec![("status", "200".to_owned())], 7_u64), (vec![("status", "404".to_owned())], 1)];
        families.family("requests_total", "Requests.", Kind::Counter, by_status);
        families.single("load", "How much.", Kind::Gauge, 0.5);
        families.single("odd", "A stat.", Kind::Untyped, 3_u64);
        families.family("none_total", "Nothing yet.", Kind::Counter, None::<(Vec<Label>, u64)>);
        let mut seconds = Histogram::new(&[1e-6, 0.25, 5.0]);
        for took in [0.1, 5.0, 99.0] {
            seconds.observe(Duration::from_secs_f64(took), 1);
        }
        families.histograms("seconds", "How long.", [(vec![("by", "x".to_owned())], seconds)]);
        let expected = "\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{status=\"200\"} 7
requests_total{status=\"404\"} 1
# HELP load How much.
# TYPE load gauge
load 0.5
# HELP odd A stat.
# TYPE odd untyped
odd 3
# HELP none_total Nothing yet.
# TYPE none_total counter
# HELP seconds How long.
# TYPE seconds histogram
seconds_sum{by=\"x\"} 104.1
seconds_count{by=\"x\"} 3
seconds_bucket{by=\"x\",le=\"0.000001\"} 0
seconds_bucket{by=\"x\",le=\"0.25\"} 1
seconds_bucket{by=\"x\",le=\"5\"} 2
seconds_bucket{by=\"x\",le=\"+Inf\"} 3
";
        assert_eq!(families.text(), expected);
    }

    #[test]
    fn counts_of_elsewhere_are_a_histogram_as_well() {
        let mut families = Families::default();
        families.histograms(
            "n",
            "N.",
            [(Vec::new(), Histogram::of_cumulative([(0.0, 1), (3.0, 4)], 5, 11.0))],
        );
        let text = families.text();
        let numbers = [
            "n_sum 11.0",
            "n_count 5",
            "n_bucket{le=\"0\"} 1",
            "n_bucket{le=\"3\"} 4",
            "n_bucket{le=\"+Inf\"} 5",
        ];
        assert_eq!(text.lines().skip(2).collect::<Vec<_>>(), numbers);
    }

    #[test]
    fn nothing_breaks_out_of_a_label() {
        let mut families = Families::default();
        let labels = ["x\"} 1\n\\", "# TYPE a unknown", "_bucket{le=\"5.0\"}"];
        families.family("a", "A.", Kind::Gauge, labels.map(|label| (vec![("l", label.to_owned())], 1_u64)));
        let text = families.text();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [r#"a{l="x\"} 1\n\\"} 1"#, r##"a{l="# TYPE a unknown"} 1"##, r#"a{l="_bucket{le=\"5.0\"}"} 1"#]
        );
    }
}
