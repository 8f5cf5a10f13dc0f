//! Scenarios of indexes of near-duplicates.

use std::path::Path;
use std::time::Duration;

use huntsman_testkit::crash::run_bounded;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;

use super::records::{each_once, field, lines};
use super::scenario::Scenario;
use crate::common::stories::{stories, write};
use crate::common::{huntsman, run};

/// `dedup add`, with flags and a report.
pub(crate) fn add() -> Scenario {
    dedup("add")
}

/// `dedup build`, with flags and a report.
pub(crate) fn build() -> Scenario {
    dedup("build")
}

fn dedup(what: &'static str) -> Scenario {
    let stories = stories(&mut StdRng::seed_from_u64(7), 20);
    let ids = field(&stories, "id");
    let prepare = move |directory: &Path| write(&directory.join("stories.jsonl"), &stories);
    let command = move |directory: &Path| {
        let mut command = huntsman(directory);
        command.args(["dedup", what, "stories.jsonl", "--index", "index", "--flags", "flags.jsonl"]);
        command.args(["--report", "report.json"]);
        command
    };
    // The expected flags come from an undisturbed run.
    let undisturbed = tempfile::tempdir().expect("a temporary directory");
    prepare(undisturbed.path());
    let ended = run_bounded(&mut command(undisturbed.path()), Duration::from_secs(60));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let flags = |directory: &Path| -> Result<Vec<String>, String> {
        let mut flags = lines(&directory.join("flags.jsonl"))?;
        // The time differs between runs.
        flags.iter_mut().filter_map(Value::as_object_mut).for_each(|flag| drop(flag.remove("ts")));
        Ok(flags.iter().map(ToString::to_string).collect())
    };
    let expected = flags(undisturbed.path()).expect("there are flags");
    assert!(expected.len() > 20, "the stories have near-duplicates: {}", expected.len());
    let mut scenario = Scenario::new(command, move |directory, _| {
        each_once("flags.jsonl", &expected, flags(directory)?)?;
        lines(&directory.join("report.json"))?;
        let said = run(huntsman(directory).args(["dedup", "export", "--index", "index"]));
        if said.code != Some(0) {
            return Err(format!("dedup export: {}", said.stderr));
        }
        let rows = said.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<_>, _>>();
        each_once("the index", &ids, field(&rows.map_err(|cause| format!("dedup export: {cause}"))?, "id"))
    });
    scenario.prepare = Box::new(prepare);
    scenario
}
