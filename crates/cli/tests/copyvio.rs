//! `copyvio compare`.

mod common;

use std::fs;
use std::path::Path;

use common::{huntsman, run};
use huntsman_testkit::Site;
use serde_json::{Value, json};

fn words(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("word{}", (n * 7_919) % 99_991)).collect::<Vec<_>>().join(" ")
}

fn compare(dir: &Path, args: &[&str]) -> Value {
    let said = run(huntsman(dir).args(["copyvio", "compare"]).args(args).arg("--json"));
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).expect("JSON")
}

#[test]
fn a_comparison_has_both_numbers_and_places_in_the_texts_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let article = format!("Über Mühlen.\n\n{}\n\nEnde der {}.", words(0, 120), words(500, 700));
    let source = format!("Etwas anderes zuerst: {} und Schluß.", words(20, 100));
    fs::write(dir.path().join("article.txt"), &article).unwrap();
    fs::write(dir.path().join("source.txt"), &source).unwrap();
    fs::write(dir.path().join("other.txt"), words(2_000, 2_300)).unwrap();
    let made = compare(dir.path(), &["article.txt", "source.txt", "other.txt", "missing.txt"]);
    let [one, other, missing] = [0, 1, 2].map(|at| &made["sources"][at]);
    assert_eq!(
        [one, other, missing].map(|source| source["source"].as_str().unwrap()),
        ["source.txt", "other.txt", "missing.txt"],
        "in the order in which they were named"
    );
    // 80 words that stand together: 76 windows of 5.
    assert_eq!(
        (&one["status"], &one["delta"], &one["band"]),
        (&json!("compared"), &json!(76), &json!("possible"))
    );
    assert_eq!(made["article"]["size"], 2 + 120 + 2 + 200 + 4);
    let [from, to] = [0, 1].map(|end| one["spans"][0]["article"][end].as_u64().unwrap() as usize);
    let passage: String = article.chars().skip(from).take(to - from).collect();
    assert_eq!(passage, words(20, 100));
    let [from, to] = [0, 1].map(|end| one["spans"][0]["source"][end].as_u64().unwrap() as usize);
    assert_eq!(source.chars().skip(from).take(to - from).collect::<String>(), words(20, 100));
    assert_eq!(
        (&one["evidence"]["verdict"], &one["evidence"]["longest_run"]),
        (&json!("suspected"), &json!(80.0))
    );
    assert_eq!((&other["confidence"], &other["evidence"]["verdict"]), (&json!(0.0), &json!("none")));
    assert_eq!((&missing["status"], &missing["evidence"]["coverage"]), (&json!("failed"), &json!(0.0)));
    assert!(missing["reason"].as_str().unwrap().contains("No such file"), "{missing}");
    assert_eq!((&made["best"], &made["violation"]), (&json!("source.txt"), &json!(false)));
}

#[test]
fn pages_wiki_texts_and_stdin_are_read_by_what_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let text = words(0, 300);
    let site = Site::builder()
        .page("/copy", format!("<nav>{}</nav><p>{text}</p>", words(900, 950)))
        .start_blocking();
    fs::write(
        dir.path().join("a.wiki"),
        format!("'''{text}'''<ref>{}</ref> [[File:x.png|{0}]]", words(400, 450)),
    )
    .unwrap();
    fs::write(dir.path().join("b.html"), format!("<title>x</title><p><b>{text}</b>")).unwrap();
    let address = format!("127.0.0.1:{}", site.port());
    let [copy, gone] = ["/copy", "/gone"].map(|path| site.url(path).to_string());
    let made = compare(dir.path(), &["a.wiki", "b.html", &copy, &gone, "--allow-address", &address]);
    let confidence = |at: usize| made["sources"][at]["confidence"].as_f64().unwrap();
    assert!(confidence(0) > 0.99 && confidence(1) > 0.9, "{made}");
    assert_eq!(made["article"]["size"], 304, "neither the reference nor the file counts");
    let gone = &made["sources"][2];
    assert_eq!(
        (&gone["status"], gone["reason"].as_str().unwrap().contains("404")),
        (&json!("failed"), true),
        "{gone}"
    );
    // The menu of the page is told as what it is.
    fs::write(dir.path().join("menu.txt"), words(900, 950)).unwrap();
    let made = compare(dir.path(), &["menu.txt", &copy, "--allow-address", &address]);
    let evidence = &made["sources"][0]["evidence"];
    assert_eq!(
        (&evidence["verdict"], &evidence["boilerplate_share"]),
        (&json!("none"), &json!(1.0)),
        "{evidence}"
    );
}

#[test]
fn the_page_shows_both_texts_with_marks_that_lead_to_each_other_and_no_script() {
    let dir = tempfile::tempdir().unwrap();
    let evil = "<script>alert(1)</script> \u{202e}";
    fs::write(dir.path().join("a.txt"), format!("{evil}{} tail", words(0, 60))).unwrap();
    fs::write(dir.path().join("b.txt"), format!("head\n{}\n{evil}", words(10, 50))).unwrap();
    let said =
        run(huntsman(dir.path()).args(["copyvio", "compare", "a.txt", "b.txt", "--html", "page.html"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("suspected") && said.stdout.contains("b.txt"), "{}", said.stdout);
    let page = fs::read_to_string(dir.path().join("page.html")).unwrap();
    assert!(!page.contains("<script") && !page.contains('\u{202e}'));
    let marked = format!("href=\"#s1-0\" title=\"40 equal words, 40 in a row\">{}</a>", words(10, 50));
    assert!(page.contains(&marked) && page.contains("id=\"s1-0\""), "{page}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.txt"), words(0, 60)).unwrap();
    for (args, code, word) in [
        (&["missing.txt", "a.txt"][..], 1, "missing.txt"),
        (&["a.txt"][..], 2, "SOURCE"),
        (&["a.txt", "ftp://example.org/x"][..], 2, "ftp"),
        (&["-", "-"][..], 2, "stdin"),
        (&["a.txt", "a.txt", "--degree", "17"][..], 2, "16"),
    ] {
        let said = run(huntsman(dir.path()).args(["copyvio", "compare"]).args(args));
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.stderr.contains(word), "{args:?}: {}", said.stderr);
    }
}
