//! `copyvio compare` and `check`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::{Value, json};

use crate::common::{huntsman, run};

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
    // 80 words in a row have 76 windows of 5.
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
fn every_column_of_the_table_has_a_heading() {
    let dir = tempfile::tempdir().unwrap();
    // The confidence is possible, and the passage is suspected.
    for (name, text) in
        [("a.txt", words(0, 300)), ("b.txt", format!("{} {}", words(20, 100), words(700, 900)))]
    {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let said = run(huntsman(dir.path()).args(["copyvio", "compare", "a.txt", "b.txt"]));
    let cells = |line: usize| {
        let line = said.stdout.lines().nth(line).unwrap_or_default();
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(cells(0), ["confidence", "band", "verdict", "score", "coverage", "source"], "{said:?}");
    assert_eq!(
        (cells(1).len(), cells(1)[1].as_str(), cells(1)[2].as_str()),
        (6, "possible", "suspected"),
        "{said:?}"
    );
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
    // The menu of the page is reported as boilerplate.
    fs::write(dir.path().join("menu.txt"), words(900, 950)).unwrap();
    let made = compare(dir.path(), &["menu.txt", &copy, "--allow-address", &address]);
    let evidence = &made["sources"][0]["evidence"];
    assert_eq!(
        (&evidence["verdict"], &evidence["boilerplate_share"]),
        (&json!("none"), &json!(1.0)),
        "{evidence}"
    );
}

/// A PDF file of one page with columns of lines; each line is an instruction of its own.
fn pdf(columns: &[Vec<String>]) -> Vec<u8> {
    let mut content = String::from("BT /F1 9 Tf ");
    for (column, lines) in columns.iter().enumerate() {
        for (line, text) in lines.iter().enumerate() {
            let (x, y) = (40 + 260 * column, 800 - 11 * line);
            content.push_str(&format!("1 0 0 1 {x} {y} Tm ({text}) Tj "));
        }
    }
    content.push_str("ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>"
            .to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    huntsman_testkit::pdf::file(&objects.map(String::into_bytes))
}

/// A column of the words from `from` to `to`, six to a line; every fourth line ends with a hyphenated word.
fn column(from: usize, to: usize) -> Vec<String> {
    let (mut lines, mut rest) = (Vec::new(), String::new());
    let words: Vec<String> = (from..to).map(spelt).collect();
    for (line, words) in words.chunks(6).enumerate() {
        let mut text = format!("{rest}{}", words.join(" "));
        rest = String::new();
        if line % 4 == 3 && words.len() == 6 {
            rest = text.split_off(text.len() - 4);
            rest.push(' ');
            text.push('-');
        }
        lines.push(text);
    }
    lines
}

/// A word of small letters for a number.
fn spelt(n: usize) -> String {
    (0..8).map(|at| char::from(b'a' + ((n * 7_919 + at * 104_729 + n * at * 31) % 26) as u8)).collect()
}

#[cfg(feature = "pdf")]
#[test]
fn a_pdf_of_two_columns_is_read_column_by_column_and_broken_ones_cost_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let text = (0..600).map(spelt).collect::<Vec<_>>().join(" ");
    fs::write(dir.path().join("article.txt"), &text).unwrap();
    let file = pdf(&[column(0, 300), column(300, 600)]);
    fs::write(dir.path().join("whole.pdf"), &file).unwrap();
    fs::write(dir.path().join("torn.pdf"), &file[..file.len() / 3]).unwrap();
    fs::write(dir.path().join("no.pdf"), b"%PDF-1.7 and nothing else").unwrap();
    let made = compare(dir.path(), &["article.txt", "whole.pdf", "torn.pdf", "no.pdf"]);
    let confidence = made["sources"][0]["confidence"].as_f64().unwrap();
    assert!(confidence > 0.95, "{confidence}");
    assert!(
        made["sources"][0]["evidence"]["coverage"].as_f64().unwrap() > 0.95,
        "{}",
        made["sources"][0]["evidence"]
    );
    for broken in [&made["sources"][1], &made["sources"][2]] {
        assert_eq!(broken["status"], "failed", "{broken}");
        assert!(broken["reason"].as_str().unwrap().contains("PDF"), "{broken}");
    }
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
fn unusable_input_of_a_comparison_is_reported() {
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

fn check(dir: &Path, site: &RunningSite, args: &[&str]) -> (Value, Duration) {
    let address = format!("127.0.0.1:{}", site.port());
    let start = Instant::now();
    let mut command = huntsman(dir);
    command.args(["copyvio", "check"]).args(args).args(["--json", "--allow-address", &address]);
    let said = run(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    (serde_json::from_str(&said.stdout).expect("JSON"), start.elapsed())
}

fn statuses(made: &Value) -> Vec<&str> {
    made["sources"].as_array().unwrap().iter().map(|source| source["status"].as_str().unwrap()).collect()
}

/// The source with this URL in a result.
fn source<'v>(made: &'v Value, url: &str) -> &'v Value {
    let found = made["sources"].as_array().unwrap().iter().find(|source| source["source"] == url);
    found.unwrap_or_else(|| panic!("{url} is missing: {made:#}"))
}

/// A site with sources of all kinds.
fn sources() -> RunningSite {
    let text = words(0, 300);
    Site::builder()
        .page("/copy", format!("<p>{text}"))
        .page("/other", format!("<p>{}", words(5_000, 5_300)))
        .route("/hangs", |_| Answer::html("late").delay(Duration::from_secs(60)))
        .route("/fails", |_| Answer::status(500))
        .route("/huge", |_| Answer::html("x ".repeat(2 << 20)))
        .route("/image", |_| Answer::status(200).header("content-type", "image/png").body("PNG"))
        .start_blocking()
}

#[test]
fn every_source_of_a_check_has_a_status_and_the_time_is_kept() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sources());
    fs::write(dir.path().join("a.txt"), words(0, 300)).unwrap();
    fs::write(dir.path().join("mirrors.txt"), format!("# ours\n127.0.0.1:{}/other\n", site.port())).unwrap();
    let urls: Vec<String> = ["/fails", "/huge", "/image", "/other", "/copy", "/hangs", "/never"]
        .iter()
        .map(|path| site.url(path).to_string())
        .chain(["ftp://example.org/x".to_owned()])
        .collect();
    let mut args = vec![
        "a.txt",
        "--no-short-circuit",
        "--exclude",
        "mirrors.txt",
        "--max-time",
        "3",
        "--source-time",
        "60",
    ];
    urls.iter().for_each(|url| args.extend(["--source", url]));
    let (made, took) = check(dir.path(), &site, &args);
    // Sources of one host are fetched one after the other: nothing after the one that hangs is started.
    let statuses: Vec<&str> = urls.iter().map(|url| source(&made, url)["status"].as_str().unwrap()).collect();
    assert_eq!(
        statuses,
        ["failed", "failed", "failed", "excluded", "compared", "late", "late", "failed"],
        "{made:#}"
    );
    assert_eq!(made["sources"][0]["source"], urls[4], "the most suspicious first");
    for (at, word) in
        [(0, "500"), (6, "time_over"), (1, "2097152"), (2, "image/png"), (3, "/other"), (7, "ftp")]
    {
        let reason = source(&made, &urls[at])["reason"].as_str().unwrap();
        assert!(reason.contains(word), "{reason}");
    }
    assert_eq!((&made["violation"], &made["best"]), (&json!(true), &json!(urls[4])));
    assert!(took < Duration::from_millis(5_000), "{took:?}");
    assert!(!site.targets().iter().any(|target| target == "/other" || target == "/never"));
}

#[test]
fn a_violation_ends_the_check_and_what_was_not_begun_is_skipped() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sources());
    fs::write(dir.path().join("a.txt"), words(0, 300)).unwrap();
    let urls = ["/other", "/copy", "/hangs", "/never"].map(|path| site.url(path).to_string());
    let mut args = vec!["a.txt"];
    urls.iter().for_each(|url| args.extend(["--source", url]));
    let (made, _) = check(dir.path(), &site, &args);
    // The fetch of the third may have started before the copy was compared.
    for (at, status) in [(0, "compared"), (1, "compared"), (3, "skipped")] {
        assert_eq!(source(&made, &urls[at])["status"], status, "{made:#}");
    }
    assert_eq!(source(&made, &urls[3])["reason"], "short_circuit");
    assert!(!site.targets().iter().any(|target| target == "/never"));
}

#[test]
fn the_links_of_an_article_to_other_sites_are_its_sources() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sources());
    let link = site.url("/copy");
    fs::write(dir.path().join("a.wiki"), format!("{}<ref>[{link} a page]</ref>", words(0, 300))).unwrap();
    fs::write(
        dir.path().join("a.html"),
        format!("<p>{}<a href='{link}'>from</a> <a href=/x>own</a>", words(0, 300)),
    )
    .unwrap();
    for article in ["a.wiki", "a.html"] {
        let (made, _) = check(dir.path(), &site, &[article]);
        assert_eq!(
            (statuses(&made), &made["sources"][0]["source"]),
            (vec!["compared"], &json!(link.to_string()))
        );
        assert_eq!(made["violation"], true, "{made:#}");
        let (made, _) = check(dir.path(), &site, &[article, "--no-links"]);
        assert_eq!((statuses(&made).len(), &made["violation"]), (0, &json!(false)));
    }
    let said = run(huntsman(dir.path()).args(["copyvio", "check", "a.html", "--no-links"]));
    assert_eq!((said.code, &*said.stdout), (Some(0), ""));
    assert!(said.stderr.contains("nothing to compare with"), "{said:?}");
    // An article of fifteen words is not checked.
    fs::write(dir.path().join("short.txt"), words(0, 15)).unwrap();
    let (made, _) = check(dir.path(), &site, &["short.txt", "--source", link.as_str()]);
    assert_eq!(
        (statuses(&made), &made["sources"][0]["reason"]),
        (vec!["skipped"], &json!("article_too_small"))
    );
}

#[test]
fn mirrors_of_the_wiki_of_an_article_are_recognised_by_their_links_and_excluded() {
    let dir = tempfile::tempdir().unwrap();
    let text = words(0, 300);
    // Sources and wiki are one site here, with two names.
    let site = Site::builder()
        .page("/wiki/Mill", format!("<p>{text}"))
        .page("/copy", format!("<p>{text}"))
        .route("/mirror", |asked| {
            Answer::html(format!(
                "<p>{}<p><a href='http://{}/wiki/Mill?action=history'>authors</a>",
                words(0, 300),
                asked.header("host").unwrap()
            ))
        })
        .start_blocking();
    let article = site.url("/wiki/Mill").to_string();
    let urls = ["/mirror", "/copy"].map(|path| site.url(path).to_string());
    let args = [article.as_str(), "--no-short-circuit", "--source", &urls[0], "--source", &urls[1]];
    let (made, _) = check(dir.path(), &site, &args);
    let mirror = source(&made, &urls[0]);
    assert_eq!(mirror["status"], "excluded", "{made:#}");
    assert!(mirror["reason"].as_str().unwrap().contains("/wiki/Mill"), "{mirror}");
    assert_eq!(source(&made, &urls[1])["status"], "compared");
    // The same text from a file has no wiki, unless a flag gives its address.
    fs::write(dir.path().join("a.txt"), text).unwrap();
    let (made, _) = check(dir.path(), &site, &["a.txt", "--source", &urls[0]]);
    assert_eq!(source(&made, &urls[0])["status"], "compared", "{made:#}");
    let args = ["a.txt", "--url", &article, "--source", &urls[0], "--source", &article];
    let (made, _) = check(dir.path(), &site, &args);
    assert_eq!((statuses(&made), &made["sources"][0]["source"]), (vec!["excluded"], &json!(urls[0])));
    let said = run(huntsman(dir.path()).args(["copyvio", "check", "a.txt", "--url", "a.txt"]));
    assert!(said.code == Some(2) && said.stderr.contains("--url"), "{said:?}");
}

#[test]
fn a_cached_result_fetches_only_the_best_source() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sources());
    fs::write(dir.path().join("a.txt"), words(0, 300)).unwrap();
    let urls = ["/other", "/copy"].map(|path| site.url(path).to_string());
    let args = ["a.txt", "--source", &urls[0], "--source", &urls[1], "--cache", "results"];
    let (first, _) = check(dir.path(), &site, &args);
    assert_eq!(first["cached_at"], Value::Null, "{first:#}");
    let (second, _) = check(dir.path(), &site, &args);
    assert!(second["cached_at"].as_str().is_some_and(|at| at.starts_with("20")), "{second:#}");
    assert_eq!(first["sources"], second["sources"]);
    assert_eq!(site.count("/other"), 1);
    assert_eq!(site.count("/copy"), 2);
    // An edited article is a new article.
    fs::write(dir.path().join("a.txt"), format!("{} more", words(0, 300))).unwrap();
    let (edited, _) = check(dir.path(), &site, &args);
    assert_eq!((&edited["cached_at"], site.count("/other")), (&Value::Null, 2));
    let other = fs::read_dir(dir.path().join("results")).unwrap().count();
    assert!(other > 0);
}

#[test]
fn among_many_texts_exactly_the_pairs_with_a_long_run_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("essays");
    fs::create_dir(&folder).unwrap();
    let mut lines = String::new();
    for n in 0..60 {
        // Every tenth text has 40 words of the one five before it.
        let own = words(n * 300, n * 300 + 250);
        let copied = if n % 10 == 9 { words((n - 5) * 300 + 50, (n - 5) * 300 + 90) } else { String::new() };
        let text = format!("{own} {copied}");
        fs::write(folder.join(format!("{n:02}.txt")), &text).unwrap();
        lines.push_str(&format!("{}\n", json!({"url": format!("http://a.example/{n}"), "text": text})));
    }
    fs::write(dir.path().join("pages.jsonl"), lines).unwrap();
    let among = |args: &[&str]| {
        let said = run(huntsman(dir.path()).args(["copyvio", "among"]).args(args));
        assert_eq!(said.code, Some(0), "{said:?}");
        let found: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (found, said.stderr)
    };
    let (found, said) = among(&["essays"]);
    let pairs: Vec<(&str, &str)> = found
        .iter()
        .map(|line| (line["article"].as_str().unwrap(), line["source"].as_str().unwrap()))
        .collect();
    let expected: Vec<(String, String)> =
        (0..6).map(|n| (format!("{}9.txt", n), format!("{}4.txt", n))).collect();
    let expected: Vec<(&str, &str)> = expected.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(pairs, expected);
    assert_eq!((&found[0]["evidence"]["longest_run"], &found[0]["delta"]), (&json!(40.0), &json!(36)));
    assert!(said.contains("60 texts, 6 pairs compared, 6 told"), "{said}");
    // The texts are compared with others; a text is no source of itself.
    let (found, said) = among(&["essays", "--against", "pages.jsonl"]);
    assert_eq!(found.len(), 60 + 2 * 6, "{said}");
    let (found, _) = among(&["pages.jsonl", "--against", "pages.jsonl"]);
    assert_eq!(found.len(), 2 * 6, "both ways");
    for (args, code, word) in [
        (&["missing"][..], 2, "missing"),
        (&["essays", "--run", "4"], 2, "--run"),
        (&["-", "--against", "-"], 2, "stdin"),
    ] {
        let said = run(huntsman(dir.path()).args(["copyvio", "among"]).args(args));
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.stderr.contains(word), "{}", said.stderr);
    }
    fs::write(dir.path().join("odd.jsonl"), "{\"id\": 1}\nnonsense\n{\"id\": 2, \"html\": \"<p>x\"}\n")
        .unwrap();
    let (found, said) = among(&["odd.jsonl"]);
    assert!(
        found.is_empty() && said.contains("odd.jsonl:1") && said.contains("2 documents could not be read"),
        "{said}"
    );
}

#[test]
fn what_is_known_to_stand_on_many_sites_excuses_and_changes_no_confidence() {
    let dir = tempfile::tempdir().unwrap();
    let notice = words(50_000, 50_120);
    fs::write(dir.path().join("a.txt"), format!("{} {notice}", words(0, 800))).unwrap();
    fs::write(dir.path().join("b.txt"), format!("{} {notice}", words(1_000, 1_800))).unwrap();
    let pages = |hosts: usize| -> String {
        let page = |n: usize| json!({"url": format!("http://host{}.example/{n}", n / 2), "text": format!("{} {notice}", words(2_000 + n * 100, 2_080 + n * 100))});
        (0..2 * hosts).map(|n| format!("{}\n", page(n))).collect()
    };
    fs::write(dir.path().join("many.jsonl"), pages(5)).unwrap();
    fs::write(dir.path().join("few.jsonl"), pages(4)).unwrap();
    let compared = |args: &[&str]| {
        let made = compare(dir.path(), &[&["a.txt", "b.txt"], args].concat());
        let one = &made["sources"][0];
        (
            one["confidence"].clone(),
            one["evidence"]["verdict"].clone(),
            one["evidence"]["boilerplate_share"].clone(),
        )
    };
    let plain = compared(&[]);
    assert_eq!(plain.1, "suspected");
    assert_eq!(compared(&["--common", "few.jsonl"]), plain);
    assert_eq!(compared(&["--common", "few.jsonl", "--common-hosts", "4"]).1, "none");
    assert_eq!(compared(&["--common", "many.jsonl"]), (plain.0, json!("none"), json!(1.0)));
    let said =
        run(huntsman(dir.path()).args(["copyvio", "compare", "a.txt", "b.txt", "--common", "gone.jsonl"]));
    assert_eq!(said.code, Some(2), "{said:?}");
}
