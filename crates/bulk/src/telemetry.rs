//! What a join is doing, as metrics.

use std::sync::{Mutex, MutexGuard, PoisonError};

use huntsman_metrics::{Families, Kind};

use crate::join::{JoinReport, KeyReport};

/// What a join has done so far. The thread that serves metrics reads it while the join goes on.
#[derive(Debug, Default)]
pub struct Telemetry(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    report: JoinReport,
    steps: u64,
    done: u64,
}

impl Telemetry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows were folded, and so many steps follow.
    pub(crate) fn begin(&self, report: &JoinReport, steps: usize, keys: usize) {
        let mut state = self.state();
        *state = State { report: report.clone(), steps: steps as u64, done: 0 };
        state.report.keys = vec![KeyReport::default(); keys];
    }

    /// A step of a key was done.
    pub(crate) fn add(&self, key: usize, of: &KeyReport, heavy_values: u64) {
        let mut state = self.state();
        state.done += 1;
        let report = &mut state.report;
        report.candidates += of.candidates;
        report.pairs += of.pairs;
        report.heavy_values += heavy_values;
        report.keys[key].add(of);
    }

    /// The join has ended.
    pub(crate) fn end(&self, report: &JoinReport) {
        let mut state = self.state();
        state.report = report.clone();
        state.done = state.steps;
    }

    /// All metrics at this moment. They are those of one join: a run that goes on with it has what the earlier ones did, too.
    pub fn families(&self) -> Families {
        let state = self.state();
        let (report, mut all) = (&state.report, Families::default());
        let mut one = |name: &str, help: &str, number: u64| {
            all.single(&format!("huntsman_join_{name}"), help, Kind::Gauge, number);
        };
        one("rows", "Rows of the input that have a fingerprint.", report.rows);
        one("without_fingerprint", "Rows without a fingerprint.", report.without_fingerprint);
        one("replaced", "Rows whose id came again with another fingerprint.", report.replaced);
        one("folded", "Rows whose fingerprint an earlier id has.", report.folded);
        one("input_bytes", "Bytes of the input.", report.input_bytes);
        one("result_bytes", "Bytes of the results.", report.bytes);
        one("heavy_values", "Values of keys that more than 4,096 rows share.", report.heavy_values);
        one("steps", "Steps of the join.", state.steps);
        one("steps_done", "Steps that were done.", state.done);
        all.single("huntsman_join_fold_seconds", "Time to fold the rows.", Kind::Gauge, report.fold_seconds);
        let keys = || report.keys.iter().enumerate();
        let label = |key: usize| vec![("key", key.to_string())];
        let candidates = keys().map(|(key, of)| (label(key), of.candidates));
        all.family("huntsman_join_candidates", "Comparisons by key.", Kind::Gauge, candidates);
        let pairs = keys().map(|(key, of)| (label(key), of.pairs));
        all.family("huntsman_join_pairs", "Pairs found by key.", Kind::Gauge, pairs);
        let seconds = keys().map(|(key, of)| (label(key), of.seconds));
        all.family("huntsman_join_key_seconds", "Time of all threads by key.", Kind::Gauge, seconds);
        let heaviest = report.heaviest.iter().map(|heavy| {
            let labels =
                vec![("lang", heavy.lang.clone()), ("key", heavy.key.to_string()), ("id", heavy.id.clone())];
            (labels, heavy.rows)
        });
        let help = "Rows that share a value of a key, of the ten largest, with the id of one of them.";
        all.family("huntsman_join_heavy_value_rows", help, Kind::Gauge, heaviest);
        all
    }
}
