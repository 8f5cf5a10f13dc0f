//! A file of metrics whose counters go on from run to run, from which a collector serves Prometheus while no run is going on.
//!
//! If counters began anew with every run, Prometheus would misread them: after a run that counts 100, a run that counts 120 would look like
//! an increase of only 20. Therefore the counters and histograms in the file go on from run to run.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A longer file was not written by this module, and is replaced.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum number of series per metric. The input of a run may choose labels, and could choose others in every run.
const MAX_SERIES: usize = 50_000;

/// Adds the numbers of a run to those in the file and writes the file. `run` is the text of the run's [`Families`](crate::Families). A
/// file that is not one of metrics is replaced.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, run: &str) -> io::Result<()> {
    let mut before = String::new();
    if let Ok(file) = File::open(path) {
        // If the file cannot be read as text, it is not a file of metrics and is ignored.
        if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut before).is_err()
            || before.len() as u64 > MAX_FILE_BYTES
        {
            before.clear();
        }
    }
    huntsman_files::write(path, sum(run, &before))
}

/// A metric: its comment lines, and its numbers by name and labels.
struct Metric<'a> {
    name: &'a str,
    head: Vec<&'a str>,
    is_counted: bool,
    numbers: Vec<(&'a str, &'a str)>,
}

fn metrics(text: &str) -> Vec<Metric<'_>> {
    let mut metrics: Vec<Metric<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let name = rest.split(' ').next().unwrap_or(rest);
            metrics.push(Metric { name, head: vec![line], is_counted: false, numbers: Vec::new() });
            continue;
        }
        let Some(metric) = metrics.last_mut() else { continue };
        if line.starts_with("# TYPE ") {
            metric.is_counted = line.ends_with(" counter") || line.ends_with(" histogram");
            metric.head.push(line);
        } else if let Some((series, number)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#')) {
            metric.numbers.push((series, number));
        }
    }
    metrics
}

/// The gauges of this run, and the sums of the counters and histograms of this run and the file.
fn sum(run: &str, before: &str) -> String {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    let mut known: HashMap<&str, Metric<'_>> = metrics(before)
        .into_iter()
        .filter(|metric| metric.is_counted)
        .map(|metric| (metric.name, metric))
        .collect();
    let mut out = String::new();
    let mut put = |text: &[&str]| {
        text.iter().for_each(|text| out.push_str(text));
        out.push('\n');
    };
    for metric in metrics(run) {
        metric.head.iter().for_each(|line| put(&[line]));
        let earlier = known.remove(metric.name).filter(|_| metric.is_counted);
        let earlier = earlier.map(|metric| metric.numbers).unwrap_or_default();
        let mut by_series: HashMap<&str, f64> =
            earlier.iter().filter_map(|(series, text)| Some((*series, number(text)?))).collect();
        for (series, text) in &metric.numbers {
            match (by_series.remove(series), number(text)) {
                (Some(before), Some(now)) => put(&[series, " ", &(before + now).to_string()]),
                _ => put(&[series, " ", text]),
            }
        }
        // Adds the numbers of languages that this run did not meet.
        let room = MAX_SERIES.saturating_sub(metric.numbers.len());
        for (series, text) in earlier.iter().filter(|(series, _)| by_series.contains_key(series)).take(room) {
            put(&[series, " ", text]);
        }
    }
    // Adds the metrics of other commands that write the same file, ordered by name.
    let mut rest: Vec<Metric<'_>> = known.into_values().collect();
    rest.sort_by_key(|metric| metric.name);
    for metric in rest.into_iter().filter(|metric| metric.name.starts_with("huntsman_")) {
        metric.head.iter().for_each(|line| put(&[line]));
        metric.numbers.iter().take(MAX_SERIES).for_each(|(series, text)| put(&[series, " ", text]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "# HELP huntsman_a_total A.\n# TYPE huntsman_a_total counter\n\
                       huntsman_a_total{lang=\"x\"} 100\nhuntsman_a_total{lang=\"y\"} 1\n\
                       # HELP huntsman_h H.\n# TYPE huntsman_h histogram\n\
                       huntsman_h_bucket{le=\"+Inf\"} 2\nhuntsman_h_sum 0.5\nhuntsman_h_count 2\n\
                       # HELP huntsman_g G.\n# TYPE huntsman_g gauge\nhuntsman_g 7\n";

    #[test]
    fn counters_and_histograms_go_on_and_gauges_do_not() {
        assert_eq!(sum(RUN, ""), RUN);
        let today = RUN.replace("lang=\"y\"", "lang=\"z\"").replace("huntsman_g 7", "huntsman_g 5");
        let both = sum(&today, RUN);
        let expected = "# HELP huntsman_a_total A.\n# TYPE huntsman_a_total counter\n\
                        huntsman_a_total{lang=\"x\"} 200\nhuntsman_a_total{lang=\"z\"} 1\n\
                        huntsman_a_total{lang=\"y\"} 1\n\
                        # HELP huntsman_h H.\n# TYPE huntsman_h histogram\n\
                        huntsman_h_bucket{le=\"+Inf\"} 4\nhuntsman_h_sum 1\nhuntsman_h_count 4\n\
                        # HELP huntsman_g G.\n# TYPE huntsman_g gauge\nhuntsman_g 5\n";
        assert_eq!(both, expected);
        // A command with fewer metrics removes gauges only.
        let (counters, _) = expected.split_once("# HELP huntsman_g").unwrap();
        assert_eq!(sum("", expected), counters);
    }

    #[test]
    fn a_file_of_something_else_is_written_anew() {
        for other in [
            "my notes",
            "# HELP\n# TYPE",
            "huntsman_a_total{lang=\"x\"} 5\n",
            "# HELP huntsman_a_total\nhuntsman_a_total{lang=\"x\"} 5",
        ] {
            assert_eq!(sum(RUN, other), RUN, "{other}");
        }
        let damaged = RUN.replace(" 100\n", " NaN\n").replace(" 1\n", " -5\n").replace("0.5", "much");
        assert_eq!(sum(RUN, &damaged), RUN.replace("} 2", "} 4").replace("count 2", "count 4"));
    }
}
