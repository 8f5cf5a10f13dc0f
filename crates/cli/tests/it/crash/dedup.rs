//! Scenarios of indexes of near-duplicates.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

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

/// `dedup join`, with a report. Its tables are the same to the byte, whatever happened before.
pub(crate) fn join() -> Scenario {
    let mut rows = "id,lang,hi,lo\n".to_owned();
    for id in 0..6_000_u64 {
        let noise = (id / 3 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (hi, lo) = (noise as i64, (noise ^ noise >> 31) as i64 ^ ((id % 3) as i64 * 5));
        rows += &format!(
            "story-{},{},{hi},{}\n",
            id * 7_919 % 6_007,
            ["hi", "en"][id as usize / 3 % 2],
            lo * (id % 90).min(1) as i64
        );
    }
    let prepare =
        move |directory: &Path| std::fs::write(directory.join("in.csv"), &rows).expect("a file is written");
    let command = |directory: &Path| {
        // A copy of the directory has the same input, so it gets the same time.
        let input = std::fs::File::options().write(true).open(directory.join("in.csv"));
        let dated =
            input.and_then(|input| input.set_modified(UNIX_EPOCH + Duration::from_secs(1_800_000_000)));
        dated.expect("the input can be dated");
        let mut command = huntsman(directory);
        command.args(["dedup", "join", "in.csv", "--out", "near", "--k", "4", "--threads", "2"]);
        command.args(["--memory", "64MB", "--report", "report.json"]);
        command
    };
    let tables = |directory: &Path| -> Result<Vec<Vec<u8>>, String> {
        let read = |table: &str| {
            let path = directory.join("near").join(table).join("part-00000.parquet");
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        ["pairs", "same"].map(read).into_iter().collect()
    };
    let undisturbed = tempfile::tempdir().expect("a temporary directory");
    prepare(undisturbed.path());
    let ended = run_bounded(&mut command(undisturbed.path()), Duration::from_secs(60));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let expected = tables(undisturbed.path()).expect("there are tables");
    let mut scenario = Scenario::new(command, move |directory, _| {
        let report = lines(&directory.join("report.json"))?;
        if report[0]["pairs"].as_u64().is_none_or(|pairs| pairs < 2_000) {
            return Err(format!("the report has too few pairs: {}", report[0]));
        }
        if tables(directory)? != expected {
            return Err("the tables are others than those of an undisturbed run".to_owned());
        }
        if directory.join("near/temp").exists() {
            return Err("scratch files are left".to_owned());
        }
        Ok(())
    });
    scenario.prepare = Box::new(prepare);
    scenario
}
