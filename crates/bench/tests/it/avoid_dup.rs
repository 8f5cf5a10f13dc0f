//! `huntsman-bench avoid-dup`.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use huntsman::detect::avoid::Options;
use huntsman::detect::avoid::evaluation::{Case, Simulation};
use huntsman_testkit::{RunningSite, Site};
use serde_json::{Value, json};

use crate::common::{Said, huntsman_bench, run};

const ARTICLES: usize = 300;

/// Articles that link to the next ones, each with and without a session id of its own; `truth` says which addresses
/// show the same page.
fn site() -> (RunningSite, String) {
    let mut site = Site::builder();
    let mut truth = "# area, page, kind, URL\n-1\t-1\tother\t/nowhere.rss\n0\t0\tpage\t/\n".to_owned();
    for n in 0..ARTICLES {
        let words: Vec<String> =
            (0..40).map(|word| format!("w{}", (n * 7_919 + word * 104_729) % 99_991)).collect();
        let mut links = String::new();
        for next in [2 * n + 1, 2 * n + 2].into_iter().filter(|next| *next < ARTICLES) {
            links += &format!("<li><a href='/{next}'>x</a> <a href='/{next}?sid=s{n}x{next}'>y</a>");
            // In the second view, each copy counts as content of its own.
            let copy = ARTICLES + next;
            truth +=
                &format!("{next}\t{next}\tpage\t/{next}\n{next}\t{copy}\tpage\t/{next}?sid=s{n}x{next}\n");
        }
        site = site.page(
            &if n == 0 { "/".to_owned() } else { format!("/{n}") },
            format!("<title>{n}</title><p>{}</p><ul>{links}</ul>", words.join(" ")),
        );
    }
    (site.start_blocking(), truth)
}

/// The lines of a `.jsonl` file.
fn lines(path: impl AsRef<Path>) -> Vec<Value> {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect()
}

fn bench(directory: &Path, args: &[&str]) -> Said {
    run(huntsman_bench(directory).args(["avoid-dup"]).args(args))
}

fn bench_site(directory: &Path, site: &RunningSite, truth: &str, args: &[&str]) -> Said {
    run(huntsman_bench(directory)
        .args(["avoid-dup", "--site", site.url("/").as_str(), "--truth", truth])
        .args(args))
}

fn value(said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

#[test]
fn made_up_sites_give_the_figures_of_the_library_for_both_models() {
    let dir = tempfile::tempdir().unwrap();
    let out =
        value(&bench(dir.path(), &["--case", "two-hosts", "--in-flight", "4", "--seed", "9", "--json"]));
    assert_eq!(out["seeds"], json!([9]));
    let cases = out["cases"].as_array().unwrap();
    let named: Vec<(&str, u64)> = cases
        .iter()
        .map(|case| (case["case"].as_str().unwrap(), case["in_flight"].as_u64().unwrap()))
        .collect();
    assert_eq!(named, [("two-hosts", 4)]);
    let case = &cases[0];
    for mode in ["default", "reference"] {
        for key in ["recall", "lost", "lost_share", "fetched", "skipped", "explored"] {
            assert!(case[mode][key].is_number(), "{mode}.{key} of {case}");
        }
        for time in ["learn_us", "ask_us"] {
            let (median, p99) = (&case[mode][time]["median"], &case[mode][time]["p99"]);
            assert!(median.as_f64().unwrap() > 0.0 && p99.as_f64() >= median.as_f64(), "{case}");
        }
    }
    let options = Options { seed: 9, ..Options::default() };
    let expected = Simulation::in_flight(4).with_default(&Case::TwoHosts.requests(9), options);
    let run = &case["default"]["runs"][0];
    let near = |found: &Value, expected: Option<f64>| {
        assert!((found.as_f64().unwrap() - expected.unwrap()).abs() < 1e-9, "{found}, {expected:?}");
    };
    near(&run["recall"], expected.recall());
    assert_eq!(
        (&run["fetched"], &run["skipped"], &run["lost"], &run["explored"]),
        (
            &json!(expected.fetched),
            &json!(expected.skipped),
            &json!(expected.lost),
            &json!(expected.explored)
        )
    );
    near(&run["estimated_loss_most"], expected.estimated_loss.map(|(_, most)| most));
}

#[test]
fn the_table_of_made_up_sites_has_both_models_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let said = bench(dir.path(), &["--case", "sister-hosts", "--in-flight", "0", "--seeds", "2"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stdout.contains('\u{1b}'), "no colours where nobody sees them: {}", said.stdout);
    let mut table = said.stdout.lines();
    let words = |line: Option<&str>| line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(table.next()), ["default:", "reference:"]);
    assert!(words(table.next()).starts_with(&["case".to_owned(), "in".to_owned(), "flight".to_owned()]));
    let row = words(table.next());
    assert_eq!(row[..4], ["sister-hosts", "0", "1140", "390"], "{row:?}");
    assert!(said.stdout.contains("seeds 1, 2; ranges are over the seeds"), "{}", said.stdout);
}

#[test]
fn a_site_is_crawled_and_its_figures_equal_a_recount() {
    let (dir, (site, truth)) = (tempfile::tempdir().unwrap(), site());
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(truth.as_bytes()).unwrap();
    std::fs::write(dir.path().join("truth.tsv.gz"), packed.finish().unwrap()).unwrap();
    let out = value(&bench_site(
        dir.path(),
        &site,
        "truth.tsv.gz",
        &["--seed", "4", "--concurrency", "4", "--out", "runs", "--json"],
    ));
    assert_eq!((&out["view"], &out["seeds"], &out["concurrency"]), (&json!("area"), &json!([4]), &json!(4)));
    let rows: Vec<Vec<&str>> = truth.lines().skip(2).map(|line| line.split('\t').collect()).collect();
    for mode in ["default", "reference"] {
        let pages = lines(dir.path().join(format!("runs/{mode}-4/pages.jsonl")));
        let origin = site.url("/").to_string();
        let got: HashSet<String> =
            pages.iter().map(|page| page["url"].as_str().unwrap().replacen(&origin, "/", 1)).collect();
        let run = &out[mode]["runs"][0];
        for (column, view) in [(0, "area"), (1, "page")] {
            let downloaded: Vec<&Vec<&str>> = rows.iter().filter(|row| got.contains(row[3])).collect();
            let contents = |rows: &[&Vec<&str>]| {
                rows.iter().map(|row| row[column].to_owned()).collect::<HashSet<String>>().len()
            };
            let all: Vec<&Vec<&str>> = rows.iter().collect();
            let (total, have) = (contents(&all), contents(&downloaded));
            let score = &run[view];
            assert_eq!(score["pages"], rows.len(), "{run}");
            assert_eq!(score["contents"], total, "{run}");
            assert_eq!(score["downloads"], downloaded.len(), "{run}");
            assert_eq!(score["lost"], total - have, "{run}");
            let share = |part: usize, whole: usize| 1.0 - part as f64 / whole as f64;
            let near = |key: &str, expected: f64| {
                let found = score[key].as_f64().unwrap_or_else(|| panic!("no {key}: {run}"));
                assert!((found - expected).abs() < 1e-9, "{key} = {found}, not {expected}: {run}");
            };
            near("saved", share(downloaded.len(), rows.len()));
            near("possible", share(total, rows.len()));
            near("lost_share", share(have, total));
            if total < rows.len() {
                near("avoided", share(downloaded.len() - have, rows.len() - total));
            }
        }
        assert_eq!(out[mode]["saved"], run["area"]["saved"], "one seed is its own median");
        assert_eq!(run["out_of_scope"], 0);
        let skipped = lines(dir.path().join(format!("runs/{mode}-4/drops.jsonl")));
        let skipped = skipped.iter().filter(|drop| drop["reason"] == "duplicate_content").count();
        assert_eq!(run["skipped"], skipped);
    }
    assert!(out["default"]["runs"][0]["area"]["saved"].as_f64().unwrap() > 0.1, "{out}");
    assert_eq!(out["default"]["runs"][0]["area"]["lost"], 0);

    let again = bench_site(dir.path(), &site, "truth.tsv.gz", &["--seed", "4", "--out", "runs"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("--fresh"), "{}", again.stderr);
}

#[test]
fn a_table_of_a_site_is_by_the_view_that_was_asked_for_and_leaves_nothing_behind() {
    let (dir, (site, truth)) = (tempfile::tempdir().unwrap(), site());
    std::fs::write(dir.path().join("truth.tsv"), truth).unwrap();
    let args = ["--view", "page", "--mode", "reference", "--seeds", "1"];
    let said = bench_site(dir.path(), &site, "truth.tsv", &args);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("599 pages, 599 contents by the view page, 0.0 % could be saved"),
        "{said:?}"
    );
    assert!(
        said.stdout.contains("reference: seed 1") && !said.stdout.contains("default:"),
        "{}",
        said.stdout
    );
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["truth.tsv"]);
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_crawled() {
    let (dir, (site, _)) = (tempfile::tempdir().unwrap(), site());
    std::fs::write(dir.path().join("wrong.tsv"), "0\t0\tpage\t/\n1\tpage\t/a\n").unwrap();
    std::fs::write(dir.path().join("empty.tsv"), "# nothing\n").unwrap();
    std::fs::write(dir.path().join("plain.gz"), "0\t0\tpage\t/\n").unwrap();
    for (truth, words) in [
        ("wrong.tsv", "wrong.tsv: line 2: 3 columns; a row has 4"),
        ("empty.tsv", "no row has the kind \"page\""),
        ("missing.tsv", "missing.tsv: "),
        ("plain.gz", "plain.gz: "),
    ] {
        let said = bench_site(dir.path(), &site, truth, &["--out", "runs"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(words), "no \"{words}\": {}", said.stderr);
    }
    for (args, words) in [
        (&["--case", "forum-randm"][..], "forum-random"),
        (&["--site", "http://127.0.0.1:9/"], "--truth"),
        (&["--truth", "wrong.tsv"], "--site"),
        (&["--seed", "1", "--seeds", "2"], "--seed"),
    ] {
        let said = bench(dir.path(), args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(words), "no \"{words}\": {}", said.stderr);
    }
    assert!(!dir.path().join("runs").exists());
    assert!(site.targets().is_empty());
}

#[test]
fn a_site_that_does_not_answer_is_an_error_of_the_crawl() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("truth.tsv"), "0\t0\tpage\t/\n").unwrap();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    drop(closed);
    let args = ["--site", &url, "--truth", "truth.tsv", "--mode", "reference", "--seed", "1"];
    let said = bench(dir.path(), &args);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("could not be fetched"), "{}", said.stderr);
}

/// The rows of a truth: path and query, and the two numbers.
fn rows(truth: &str) -> BTreeMap<&str, (&str, &str)> {
    truth
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains("\tpage\t"))
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            (columns[3], (columns[0], columns[1]))
        })
        .collect()
}

#[test]
fn a_recorded_crawl_gives_its_truth_and_is_replayed() {
    let (dir, (site, known)) = (tempfile::tempdir().unwrap(), site());
    let address = format!("127.0.0.1:{}", site.port());
    let crawled = run(huntsman_bench(dir.path())
        .args(["crawl", site.url("/").as_str(), "--profile", "test", "--allow-address", &address])
        .args(["--record", "site.jsonl.zst", "--set", "log_level=warn"]));
    assert_eq!(crawled.code, Some(0), "{crawled:?}");
    let made = value(&bench(
        dir.path(),
        &["--make-truth", "site.jsonl.zst", "--area", "p", "-o", "site.tsv.gz", "--json"],
    ));
    assert_eq!((&made["urls"], &made["pages"]), (&json!(2 * ARTICLES - 1), &json!(2 * ARTICLES - 1)));
    assert_eq!((&made["area"]["contents"], &made["page"]["contents"]), (&json!(ARTICLES), &json!(ARTICLES)));
    let mut truth = String::new();
    let packed = std::fs::File::open(dir.path().join("site.tsv.gz")).unwrap();
    GzDecoder::new(packed).read_to_string(&mut truth).unwrap();
    let (known, found) = (rows(&known), rows(&truth));
    assert_eq!(known.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    // The numbers of the two lists differ; which URLs have the same number does not.
    let mut numbers: BTreeMap<&str, &str> = BTreeMap::new();
    for (url, (area, page)) in &found {
        assert_eq!(*numbers.entry(known[url].0).or_insert(area), *area, "{url}");
        assert_eq!(area, page, "{url}");
    }
    let args = ["--recording", "site.jsonl.zst", "--in-flight", "4", "--seed", "1", "--json"];
    let replayed = value(&bench(dir.path(), &args));
    let run = &replayed["recordings"][0];
    assert_eq!((run["recording"].as_str(), run["lost_share"].as_f64()), (Some("site"), Some(0.0)), "{run}");
    assert_eq!(run["possible"], made["area"]["possible"]);
    assert!(run["saved"].as_f64().unwrap() > 0.1, "{run}");
    // MaybeDont's rules crawl the same recording, beside our own model or alone.
    let reference = &replayed["recordings"][1];
    assert_eq!((&run["mode"], &reference["mode"]), (&json!("default"), &json!("reference")), "{replayed}");
    let alone = value(&bench(dir.path(), &[&args[..], &["--mode", "reference"]].concat()));
    assert_eq!(alone["recordings"], json!([reference]));
    // Without a selector both views are the same, and without a file the list goes to stdout.
    let said = bench(dir.path(), &["--make-truth", "site.jsonl.zst"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout, truth);
    assert!(said.stderr.contains("599 pages") && said.stderr.contains("49.9 %"), "{}", said.stderr);
}

#[test]
fn a_recording_without_pages_or_with_a_damaged_end_makes_no_truth() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let page = "{\"url\":\"http://h/\",\"status\":200,\"ctype\":\"text/html\",\"body\":\"<p>x\"}\n";
    std::fs::write(at("page.jsonl"), page).unwrap();
    std::fs::write(at("error.jsonl"), page.replace("200", "404")).unwrap();
    std::fs::write(at("cut.jsonl"), format!("{page}{}", &page[..40])).unwrap();
    let packed = zstd::bulk::compress(page.repeat(100).as_bytes(), 3).unwrap();
    std::fs::write(at("cut.jsonl.zst"), &packed[..packed.len() - 3]).unwrap();
    for (recording, more, words) in [
        ("error.jsonl", &[][..], "error.jsonl: no response is an HTML page"),
        ("cut.jsonl", &[], "cut.jsonl: line 2: "),
        ("cut.jsonl.zst", &[], "cut.jsonl.zst: "),
        ("none.jsonl", &[], "none.jsonl: "),
        ("page.jsonl", &["--area", "p["], "--area p["),
        ("page.jsonl", &["--area", "#content"], "it matches on no page"),
        ("page.jsonl", &["--site", "http://h/"], "--site"),
    ] {
        let said = bench(dir.path(), &[&["--make-truth", recording, "-o", "truth.tsv"], more].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(words), "no \"{words}\": {}", said.stderr);
    }
    assert!(!at("truth.tsv").exists());
}
