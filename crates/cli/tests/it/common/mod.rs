//! Runs the real binary against local sites.

pub(crate) mod dashboard;
pub(crate) mod stories;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use huntsman_testkit::RunningSite;
use huntsman_testkit::command::command;
pub(crate) use huntsman_testkit::command::{Said, run, said};
use serde_json::Value;

/// The command in this working directory.
pub(crate) fn huntsman(directory: &Path) -> Command {
    command(env!("CARGO_BIN_EXE_huntsman"), directory)
}

/// `crawl` of a site into `out`, with the test profile; the site's address is allowed.
pub(crate) fn crawl(directory: &Path, site: &RunningSite) -> Command {
    let mut command = huntsman(directory);
    command.arg("crawl").arg(site.url("/").as_str()).args(["--profile", "test", "--out", "out"]);
    command.args(["--allow-address", &format!("127.0.0.1:{}", site.port()), "--set", "log_level=warn"]);
    command
}

/// Waits until the site was asked for a target.
pub(crate) fn wait_for(site: &RunningSite, target: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while site.count(target) == 0 {
        assert!(Instant::now() < deadline, "{target} was never asked for: {:?}", site.targets());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The lines of a `.jsonl` file.
pub(crate) fn lines(path: impl AsRef<Path>) -> Vec<Value> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

/// The values of a field in all lines, sorted.
pub(crate) fn field(lines: &[Value], name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut all: Vec<String> = lines.iter().map(|line| text(&line[name])).collect();
    all.sort();
    all
}

/// The report in a directory.
pub(crate) fn report(directory: &Path) -> Value {
    let text = std::fs::read(directory.join("report.json")).expect("there is a report");
    serde_json::from_slice(&text).expect("the report is JSON")
}
