//! `huntsman links`: what it reads and prints, and how it ends.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use huntsman_testkit::{Answer, Site};
use serde_json::Value;

use crate::common::{huntsman, run};

#[test]
fn links_of_files_and_of_a_server_are_checked_and_a_broken_one_fails_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::builder()
        .page("/", "<h1 id=top-of-page>Start</h1>")
        .answer("/teapot", Answer::status(418))
        .start_blocking();
    fs::create_dir(dir.path().join("docs")).unwrap();
    let text =
        format!("# Mills\n[b](b.md#gone) [server]({0}#top-of-page) [teapot]({0}teapot)\n", site.url("/"));
    fs::write(dir.path().join("docs/a.md"), text).unwrap();
    fs::write(dir.path().join("docs/b.md"), "# B\n").unwrap();
    let links = |more: &[&str]| {
        let mut command = huntsman(dir.path());
        command.args(["links", "docs", "--allow-address", &format!("127.0.0.1:{}", site.port())]).args(more);
        run(&mut command)
    };
    let said = links(&[]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stdout.contains("docs/a.md:2:1: broken b.md#gone"), "{}", said.stdout);
    assert!(said.stdout.ends_with("3 links: 2 broken, 1 good\n"), "{}", said.stdout);
    let said = links(&["--accept", "2xx,418", "--no-fragments", "--format", "json", "--out", "links.json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let report: Value = serde_json::from_slice(&fs::read(dir.path().join("links.json")).unwrap()).unwrap();
    assert_eq!(report["totals"]["good"], 3, "{report}");
}

#[test]
fn standard_input_is_read_and_wrong_arguments_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = huntsman(dir.path());
    command.args(["links", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"[x](gone.md)\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(10) && said.starts_with("-:1:1: broken gone.md"), "{said}");
    for (arguments, part) in [
        (vec!["links"], "SOURCE"),
        (vec!["links", "missing.md"], "missing.md"),
        (vec!["links", ".", "--accept", "2x"], "links_accept"),
        (vec!["links", ".", "--exclude", "re:("], "links_exclude"),
        (vec!["links", ".", "--root-dir", "nowhere"], "nowhere"),
    ] {
        let said = run(huntsman(dir.path()).args(&arguments));
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(part), "{arguments:?}: {}", said.stderr);
    }
}
