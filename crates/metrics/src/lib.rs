//! Metrics in Prometheus' text format, version 0.0.4: one encoder for the crawl, the server and `dedup`.
//!
//! The encoder is that of `prometheus-client`. It writes OpenMetrics, which differs from 0.0.4 in four points that
//! scrapers and `promtool` see: the type of a counter is declared under its name without `_total`, metrics without a
//! type are `unknown` instead of `untyped`, bounds of histograms are written `5.0` instead of `5` (another label, so
//! another series), and the text ends with `# EOF`. Counters are encoded under their full names; the other three
//! points are changed back line by line in [`Families::text`].

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
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The type of a family, which says what may be computed from its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The numbers only grow. The name ends with `_total`.
    Counter,
    Gauge,
    Histogram,
    /// The type is not known.
    Untyped,
}

/// A number in the form in which it is written: counts have no decimal point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Count(u64),
    Real(f64),
}

/// Durations by bucket. All histograms of a family have the same buckets.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// Upper bounds of the buckets in ascending order, with the number of durations in each; the last bound is
    /// infinite.
    classes: Vec<(f64, u64)>,
    sum: f64,
}

#[derive(Clone, Debug)]
enum Value {
    Number(Number),
    Histogram(Histogram),
}

/// A label and its value.
type Label = (&'static str, String);

/// The metrics of one name, with a sample for each set of labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: String,
    kind: Kind,
    samples: Vec<(Vec<Label>, Value)>,
}

/// Families of metrics at a moment, in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Families(Vec<Family>);

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
    /// A histogram with buckets that end at `ends` seconds, in ascending order.
    pub(crate) fn new(ends: &[f64]) -> Self {
        let classes = ends.iter().copied().chain([f64::INFINITY]).map(|end| (end, 0)).collect();
        Self { classes, sum: 0.0 }
    }

    /// Adds a number of things that took the same time each.
    pub(crate) fn observe(&mut self, took: Duration, things: u64) {
        let seconds = took.as_secs_f64();
        if let Some((_, count)) = self.classes.iter_mut().find(|(end, _)| seconds <= *end) {
            *count += things;
        }
        self.sum += seconds * things as f64;
    }
}

impl Families {
    /// Adds a family of one sample without labels.
    pub(crate) fn single(&mut self, name: &str, help: &str, kind: Kind, number: impl Into<Number>) {
        self.family(name, help, kind, [(Vec::new(), number)]);
    }

    /// Adds a family, even if it has no samples yet. The name must be a valid metric name; help and labels may be any
    /// text.
    pub(crate) fn family<N: Into<Number>>(
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
    pub(crate) fn histograms(
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
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The metrics in the text format.
    pub(crate) fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut encoded = String::new();
        encode_registry(&mut encoded, &registry).expect("a string takes all that is written");
        let mut text = String::with_capacity(encoded.len());
        for line in encoded.lines() {
            if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" unknown")) {
                let _ = writeln!(text, "# TYPE {name} untyped");
            } else if let Some((name, end, rest)) = bucket(line) {
                let _ = writeln!(text, "{name}_bucket{{le=\"{end}\"{rest}");
            } else {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// For a bucket line of a histogram: the name, the finite upper bound, and the rest of the line.
fn bucket(line: &str) -> Option<(&str, f64, &str)> {
    let (name, rest) = line.split_once("_bucket{le=\"")?;
    let (bound, rest) = rest.split_once('"')?;
    let end: f64 = bound.parse().ok()?;
    (end.is_finite() && !name.contains(['{', '#', ' '])).then_some((name, end, rest))
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
seconds_bucket{le=\"0.000001\",by=\"x\"} 0
seconds_bucket{le=\"0.25\",by=\"x\"} 1
seconds_bucket{le=\"5\",by=\"x\"} 2
seconds_bucket{le=\"+Inf\",by=\"x\"} 3
";
        assert_eq!(families.text(), expected);
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
