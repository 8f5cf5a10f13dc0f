//! Compares with values that the Python package MaybeDont 0.1.1 gave (with datasketch 1.6.5, w3lib 2.1.2).
//!
//! The project's own copy is in `tests/data/oracles/maybedont`; `HUNTSMAN_ORACLES=DIR` reads `DIR/maybedont` instead: every file there
//! whose `schema` is one of the two below. Unknown fields are ignored. Probabilities must agree within 1e-9, counts and decisions exactly.

use std::collections::BTreeSet;
use std::path::PathBuf;

use huntsman_detect::maybedont::{
    Address, Claim, Counts, Decision, DupePredictor, Estimate, Gate, GateSettings, PredictorSettings, Row,
    Table,
};
use huntsman_detect::shingles::{ShingleSet, TooCommon, for_each_shingle};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const SCENARIO: &str = "maybedont-oracle/1";
const UNITS: &str = "maybedont-oracle-units/1";

/// The files of one schema, each with its name.
fn files(schema: &str) -> Vec<(String, Value)> {
    let folder = match std::env::var_os("HUNTSMAN_ORACLES") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/oracles")),
    }
    .join("maybedont");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let mut found = Vec::new();
    let mut known = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        known += usize::from([SCENARIO, UNITS].iter().any(|known| value["schema"] == *known));
        if value["schema"] == schema {
            found.push((path.display().to_string(), value));
        }
    }
    assert!(known > 0, "no oracle file in {}", folder.display());
    found
}

#[derive(Deserialize)]
struct Scenario {
    config: Config,
    lines: Vec<String>,
    texts: Vec<Vec<usize>>,
    #[serde(default)]
    sample: Option<Vec<usize>>,
    #[serde(default)]
    middleware: Option<Middleware>,
    #[serde(default)]
    expected_too_common: Option<usize>,
    #[serde(default)]
    expected_skipped: Option<usize>,
    steps: Vec<Vec<Value>>,
    final_tables: Map<String, Value>,
}

#[derive(Deserialize)]
struct Config {
    jaccard_threshold: f64,
    num_perm: usize,
}

#[derive(Deserialize)]
struct Middleware {
    initial_queue_limit: usize,
    threshold: f64,
    exploration: f64,
}

impl Scenario {
    fn text(&self, index: &Value) -> String {
        self.text_at(index.as_u64().unwrap() as usize)
    }

    fn text_at(&self, index: usize) -> String {
        let lines: Vec<&str> = self.texts[index].iter().map(|&line| &*self.lines[line]).collect();
        lines.join("\n")
    }

    fn settings(&self) -> PredictorSettings {
        assert_eq!(self.config.num_perm, 128);
        PredictorSettings { jaccard_threshold: self.config.jaccard_threshold, ..PredictorSettings::default() }
    }
}

fn near(found: f64, expected: &Value) -> bool {
    (found - expected.as_f64().unwrap()).abs() <= 1e-9
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A row in the format of the oracles.
fn row_value(row: &Row) -> Value {
    let key = match &row.claim {
        Claim::Path { path } => json!([path]),
        Claim::Param { param } => json!([param]),
        Claim::PathParam { path, param } => json!([path, param]),
        Claim::PathQueryParam { path, rest, param } => json!([path, rest, param]),
        Claim::ParamValue { param, value } => json!([param, value]),
        Claim::PathParamValue { path, param, value } => json!([path, param, value]),
    };
    json!([key, row.counts.dup, row.counts.nodup])
}

fn assert_tables(predictor: &DupePredictor, tables: &Map<String, Value>, at: &str) {
    assert_eq!(tables.len(), Table::ALL.len(), "{at}");
    for table in Table::ALL {
        let rows: Vec<Value> = predictor.rows(table).iter().map(row_value).collect();
        let expected = tables[table.name()].as_array().unwrap();
        assert_eq!(rows.len(), expected.len(), "{at}: rows of {table}");
        for (row, expected) in rows.iter().zip(expected) {
            assert_eq!(row, expected, "{at}: {table}");
        }
    }
}

fn best_value(answer: &Estimate) -> Value {
    let tables: Vec<&str> = answer.best.iter().map(|row| row.claim.table().name()).collect();
    if tables.is_empty() { Value::Null } else { json!(tables) }
}

#[test]
fn maybedont_oracle_scenarios() {
    let (mut scenarios, mut steps) = (0, 0);
    for (name, value) in files(SCENARIO) {
        let scenario: Scenario = serde_json::from_value(value).unwrap_or_else(|e| panic!("{name}: {e}"));
        match &scenario.middleware {
            Some(middleware) => replay_decisions(&name, &scenario, middleware),
            None => replay_predictor(&name, &scenario),
        }
        scenarios += 1;
        steps += scenario.steps.len();
    }
    println!("maybedont_oracle_scenarios: {scenarios} files, {steps} cases");
}

fn replay_predictor(name: &str, scenario: &Scenario) {
    let sample: Vec<ShingleSet> = match &scenario.sample {
        None => Vec::new(),
        Some(texts) => texts.iter().map(|&at| ShingleSet::of(&scenario.text_at(at))).collect(),
    };
    let mut predictor = DupePredictor::new(scenario.settings(), TooCommon::among(&sample)).unwrap();
    if let Some(expected) = scenario.expected_too_common {
        assert_eq!(predictor.too_common().len(), expected, "{name}: too common");
    }
    for (number, step) in scenario.steps.iter().enumerate() {
        let at = format!("{name}, step {number}, {step:?}");
        match text(&step[0]) {
            "u" => {
                let url = text(&step[1]);
                let learned = predictor.update_model(url, &scenario.text(&step[2]));
                assert_eq!(Some(learned.duplicates as u64), step[3].as_u64(), "{at}");
                let canonical = step.get(4).map_or(url, text);
                assert_eq!(Address::parse(url).identity(), canonical, "{at}");
            }
            "p" => {
                let answer = predictor.estimate(text(&step[1]));
                assert!(near(answer.probability, &step[2]), "{at}: {}", answer.probability);
                assert_eq!(predictor.duplicate_probability(text(&step[1])), answer.probability, "{at}");
                assert_eq!(best_value(&answer), step[3], "{at}");
            }
            "t" => {
                for (table, expected) in step[1].as_object().unwrap() {
                    let table = *Table::ALL.iter().find(|t| t.name() == table).expect("a known table");
                    let found = predictor.totals(table);
                    let found = json!([found.rows, found.counts.dup, found.counts.nodup]);
                    assert_eq!(&found, expected, "{at}: {table}");
                }
            }
            other => panic!("{at}: unknown kind {other}"),
        }
    }
    assert_tables(&predictor, &scenario.final_tables, name);
}

fn replay_decisions(name: &str, scenario: &Scenario, middleware: &Middleware) {
    let settings = GateSettings {
        warm_up: middleware.initial_queue_limit,
        threshold: middleware.threshold,
        exploration: middleware.exploration,
        predictor: scenario.settings(),
        ..GateSettings::default()
    };
    let mut gate = Gate::new(settings).unwrap();
    let mut skipped = 0;
    for (number, step) in scenario.steps.iter().enumerate() {
        let at = format!("{name}, step {number}, {step:?}");
        assert_eq!(step[0], "m", "{at}");
        let url = text(&step[1]);
        let probability = match gate.decide(url) {
            Decision::Fetch { explored, probability } => {
                assert!(!explored, "{at}: there is no exploration");
                assert_eq!(step[3], "fetch", "{at}: {probability:?}");
                gate.learn(url, &scenario.text(&step[2]));
                probability
            }
            Decision::Skip { reason, probability, rows } => {
                assert_eq!(step[3], "skip", "{at}: {reason}");
                assert!(!rows.is_empty() && !reason.is_empty(), "{at}");
                skipped += 1;
                Some(probability)
            }
        };
        match probability {
            Some(found) => assert!(near(found, &step[4]), "{at}: {found}"),
            None => assert_eq!(step[4], Value::Null, "{at}"),
        }
    }
    if let Some(expected) = scenario.expected_skipped {
        assert_eq!(skipped, expected, "{name}: skipped");
    }
    let predictor = gate.predictor().expect("the warm-up is over");
    if let Some(expected) = scenario.expected_too_common {
        assert_eq!(predictor.too_common().len(), expected, "{name}: too common");
    }
    assert_tables(predictor, &scenario.final_tables, name);
}

#[test]
fn maybedont_oracle_units() {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let strings = |value: &Value| -> BTreeSet<String> {
        list(value).iter().map(|shingle| text(shingle).to_owned()).collect()
    };
    let shingles = |text: &str| {
        let mut found = BTreeSet::new();
        for_each_shingle(text, |shingle| {
            found.insert(shingle.to_owned());
        });
        found
    };
    let (mut count, mut units) = (0, 0);
    for (name, file) in files(UNITS) {
        units += 1;
        for case in list(&file["prob"]) {
            let counts = Counts { dup: case[0].as_u64().unwrap(), nodup: case[1].as_u64().unwrap() };
            assert!(near(counts.probability(), &case[2]), "{name}: {case}");
            count += 1;
        }
        for case in list(&file["urls"]) {
            let address = Address::parse(text(&case["url"]));
            assert_eq!(address.identity(), case["canonical"], "{name}: {case}");
            assert_eq!(address.path(), case["path"], "{name}: {case}");
            assert_eq!(json!(address.query()), case["query"], "{name}: {case}");
            count += 1;
        }
        for case in list(&file["shingles"]) {
            let found = shingles(text(&case["text"]));
            assert_eq!(found, strings(&case["shingles"]), "{name}: {case}");
            assert_eq!(ShingleSet::of(text(&case["text"])).len(), found.len(), "{name}: {case}");
            count += 1;
        }
        for case in list(&file["too_common"]) {
            let texts: Vec<String> =
                list(&case["texts"]).iter().map(|value| text(value).to_owned()).collect();
            let sets: Vec<ShingleSet> = texts.iter().map(|text| ShingleSet::of(text)).collect();
            let common = TooCommon::among(&sets);
            let mut found = texts.iter().fold(BTreeSet::new(), |mut all, text| {
                all.extend(shingles(text));
                all
            });
            found.retain(|shingle| common.contains(shingle));
            assert_eq!(found, strings(&case["too_common"]), "{name}: {case}");
            assert_eq!(common.len(), found.len(), "{name}: {case}");
            count += 1;
        }
    }
    println!("maybedont_oracle_units: {units} files, {count} cases");
}
