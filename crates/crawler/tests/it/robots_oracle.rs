//! Runs external robots.txt cases: `(file, agent, address)` and whether the address may be fetched.
//!
//! The project's own copy is in `tests/data/oracles/robots`; `HUNTSMAN_ORACLES=DIR` uses `DIR/robots` instead.

use std::path::PathBuf;

use huntsman_crawler::robots::Robots;
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: serde_json::Value,
    #[serde(default)]
    rule: serde_json::Value,
    robots: String,
    agent: String,
    url: String,
    allowed: bool,
}

#[test]
fn robots_oracle() {
    let folder = match std::env::var_os("HUNTSMAN_ORACLES") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/oracles")),
    }
    .join("robots");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with("cases") && name.ends_with(".json")
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no cases*.json in {}", folder.display());

    let mut count = 0;
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let cases: Cases = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for case in cases.cases {
            let rules = Robots::parse(case.robots.as_bytes()).agent(&case.agent);
            let decision = rules.decide_url(&Url::parse(&case.url).unwrap());
            count += 1;
            if decision.allowed != case.allowed {
                wrong.push(format!(
                    "{} {} ({}): {} for {} should be {}, decided by {:?}",
                    file.display(),
                    case.id,
                    case.rule,
                    case.url,
                    case.agent,
                    case.allowed,
                    decision.line
                ));
            }
        }
    }
    println!("robots_oracle: {} files, {count} cases", files.len());
    assert!(count > 0, "no cases in {}", folder.display());
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
