//! Tests of the other commands, run as processes.

use std::process::{Command, Stdio};

use huntsman_testkit::{Answer, RunningSite, Site, SiteBuilder};
use serde_json::{Value, json};

use crate::common::{crawl, field, huntsman, lines, report, run};

/// The pages that are fetched.
fn pages() -> SiteBuilder {
    Site::builder()
        .robots("User-agent: *\nDisallow: /private # not you")
        .page("/", "<html lang=en><title>T</title><p>Some text.</p><a href='/a'>a</a> <a href='/a'>again</a>")
}

/// The same with rules of all kinds. Its delay would be waited for between robots.txt and a page.
fn site() -> RunningSite {
    pages()
        .robots("User-agent: *\nDisallow: /private # not you\nAllow: /private/ok\nCrawl-delay: 2.5\nSitemap: /map.xml\n\nUser-agent: other\nDisallow: /\n")
        .answer("/busy/robots.txt", Answer::status(503))
        .start_blocking()
}

fn on(site: &RunningSite, command: &str, args: &[&str]) -> Command {
    let dir = std::env::temp_dir();
    let mut made = huntsman(&dir);
    made.arg(command).args(args).args(["--allow-address", &format!("127.0.0.1:{}", site.port())]);
    made
}

#[test]
fn fetch_prints_the_body_as_it_was_received() {
    let site = pages().start_blocking();
    let said = run(&mut on(&site, "fetch", &[site.url("/").as_str()]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("<html lang=en><title>T</title>") && said.stdout.ends_with("again</a>"));
    assert_eq!(site.targets(), ["/robots.txt", "/"], "the whole chain");
}

#[test]
fn fetch_prints_record_text_links_or_headers() {
    let site = pages().start_blocking();
    let url = site.url("/").to_string();
    let get = |flag: &str| run(&mut on(&site, "fetch", &[&url, flag])).stdout;
    let record: Value = serde_json::from_str(&get("--json")).unwrap();
    assert_eq!((&record["title"], &record["links"], &record["words"]), (&json!("T"), &json!(2), &json!(4)));
    assert_eq!(get("--text"), "Some text.\na again\n");
    assert_eq!(get("--links"), format!("{0}\n{0}\n", site.url("/a")));
    assert!(get("--headers").starts_with("HTTP/1.1 200 OK\n"));
}

#[test]
fn fetch_of_an_error_prints_it_and_exits_1() {
    let site = pages().start_blocking();
    let said = run(&mut on(&site, "fetch", &[site.url("/nowhere").as_str()]));
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.contains("not found") && said.stderr.contains("404"), "{said:?}");
}

#[test]
fn fetch_obeys_robots_txt_and_names_the_line() {
    let site = site();
    let said = run(&mut on(&site, "fetch", &[site.url("/private").as_str()]));
    assert_eq!((said.code, site.count("/private")), (Some(1), 0));
    assert!(
        said.stderr.contains("Disallow: /private") && said.stderr.contains("--ignore-robots"),
        "{}",
        said.stderr
    );
}

#[test]
fn robots_prints_the_deciding_line() {
    let site = site();
    let url = site.url("/private/x").to_string();
    let said = run(&mut on(&site, "robots", &[&url, "/private/x", "/private/ok/y", "/free"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in [
        "forbidden  /private/x     line 2: Disallow: /private",
        "allowed    /private/ok/y  line 3: Allow: /private/ok",
        "allowed    /free          no rule matches",
        "crawl delay  2.5 s",
    ] {
        assert!(said.stdout.contains(line), "no \"{line}\" in\n{}", said.stdout);
    }
}

#[test]
fn robots_speaks_json_and_judges_for_another_agent() {
    let site = site();
    let url = site.url("/free").to_string();
    let said = run(&mut on(&site, "robots", &[&url, "--json", "--agent", "Other/2.0"]));
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&value["group"], &value["paths"][0]["path"]), (&json!("named"), &json!("/free")));
    assert_eq!(
        (&value["paths"][0]["allowed"], &value["paths"][0]["rule"]),
        (&json!(false), &json!("Disallow: /"))
    );
    assert_eq!(value["sitemaps"], json!([site.url("/map.xml").as_str()]));
}

#[test]
fn robots_reads_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "User-agent: *\nDisallow: /a\n").unwrap();
    let said = run(huntsman(&std::env::temp_dir()).arg("robots").arg(file.path()).args(["/a/b", "c"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("forbidden  /a/b") && said.stdout.contains("allowed    c"),
        "{}",
        said.stdout
    );
}

#[test]
fn robots_without_an_answer_forbids_everything_and_exits_1() {
    let site = Site::builder().answer("/robots.txt", Answer::status(503)).start_blocking();
    let url = site.url("/").to_string();
    let said = run(&mut on(&site, "robots", &[&url, "--set", "retry_enabled=false"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stdout.contains("forbidden  /"), "{}", said.stdout);
}

#[test]
fn settings_explain_where_a_value_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("huntsman.toml"), "retry_times = 5\n").unwrap();
    let mut command = huntsman(dir.path());
    command.args(["settings", "--profile", "broad", "--set", "user_agent=b/1 (+https://b.example/)"]);
    let said = run(command.args(["--get", "retry_times", "--explain"]).env("HUNTSMAN_RETRY_TIMES", "4"));
    let lines: Vec<&str> = said.stdout.lines().map(str::trim).collect();
    assert_eq!(lines[0], "retry_times = 4", "{said:?}");
    assert!(lines[1].starts_with("default") && lines[2].starts_with("profile broad"), "{lines:?}");
    assert!(lines[3].contains("huntsman.toml") && lines[4].starts_with("environment"), "{lines:?}");
}

#[test]
fn settings_list_the_components_in_order() {
    let said = run(huntsman(&std::env::temp_dir()).args(["settings", "--components", "--json"]));
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    let order = |name: &str| {
        value["downloader"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["order"]
            .as_i64()
    };
    assert_eq!((order("robots_txt"), order("retry"), order("redirect")), (Some(100), Some(550), Some(600)));
}

#[test]
fn version_and_completions_print_something_usable() {
    let dir = std::env::temp_dir();
    let version = run(huntsman(&dir).args(["version", "-v"]));
    assert!(version.stdout.starts_with(concat!("huntsman ", env!("CARGO_PKG_VERSION"), "\n")), "{version:?}");
    assert!(version.stdout.contains("stores"), "{version:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = run(huntsman(&dir).args(["completions", shell]));
        assert!(said.stdout.contains("max-pages") && said.code == Some(0), "{shell}");
    }
}

#[test]
fn printing_into_a_closed_pipe_is_no_error() {
    let mut command = huntsman(&std::env::temp_dir());
    let mut child = command.arg("settings").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let said = crate::common::said(child.wait_with_output().unwrap());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
}

#[test]
fn demo_crawls_its_forum_and_writes_all_reports() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).args(["demo", "--out", "demo"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let demo = dir.path().join("demo");
    let pages = lines(demo.join("pages.jsonl"));
    assert!(pages.len() > 300, "{}", pages.len());
    assert!(field(&pages, "final_url").iter().any(|url| url.contains("/topic?t=")));
    assert_eq!(report(&demo)["finish_reason"], "finished");
    let html = std::fs::read_to_string(demo.join("report.html")).unwrap();
    assert!(html.contains("<svg") && !html.contains("<script") && html.contains("Pages by depth"));
    let avoided = &report(&demo)["avoid_dup"];
    assert!(avoided["skipped"].as_u64() > Some(200) && avoided["explored_new"] == 0, "{avoided}");
    let rules = std::fs::read_to_string(demo.join("rules.json")).unwrap();
    assert!(rules.contains("\\\"sid\\\" does not matter"), "{rules}");
    let canonical = std::fs::read_to_string(demo.join("canonical.toml")).unwrap();
    assert!(canonical.contains("\"sid\", # "), "{canonical}");
    assert!(said.stdout.contains("report.html") && said.stdout.contains("finished after"), "{}", said.stdout);
    // The article took two posts: its sources are exactly the pages with them, on both hosts.
    let copied: Vec<&Value> = pages.iter().filter(|page| page["copyvio"]["verdict"] == "suspected").collect();
    let has_post = |page: &Value| {
        let text = page["text"].as_str().unwrap();
        text.contains("the tide would not wait") || text.contains("do not believe the paint")
    };
    assert!(copied.len() >= 4 && copied.iter().all(|page| has_post(page)), "{copied:#?}");
    assert_eq!(pages.iter().filter(|page| has_post(page)).count(), copied.len());
    assert_eq!(report(&demo)["copyvio"]["suspected"], copied.len());
    assert!(
        said.stdout.contains("suspected copies") && html.contains("seems to be copied from"),
        "{}",
        said.stdout
    );
}

#[test]
fn two_demos_fetch_the_same_pages() {
    let dir = tempfile::tempdir().unwrap();
    let pages = |name: &str| {
        run(huntsman(dir.path()).args(["demo", "--out", name]));
        let paths = lines(dir.path().join(name).join("pages.jsonl"));
        // Ports differ between runs.
        let mut paths: Vec<String> = field(&paths, "url")
            .iter()
            .map(|url| url.splitn(4, '/').last().unwrap_or("").to_owned())
            .collect();
        paths.sort();
        paths
    };
    assert_eq!(pages("one"), pages("two"));
}

#[cfg(unix)]
#[test]
fn the_processor_time_of_a_command_is_its_own() {
    let site = Site::builder().page("/", "one page").start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let command = crawl(dir.path(), &site);
    // A shell uses two seconds of processor time, and is then replaced by the command.
    let mut shell = std::process::Command::new("bash");
    shell.args([
        "-c",
        "until [[ $user > 0m2 ]]; do for ((i = 0; i < 50000; i++)); do :; done; times > times; read user rest < times; done; exec \"$@\"",
        "bash",
    ]);
    shell.arg(command.get_program()).args(command.get_args()).current_dir(dir.path()).stdin(Stdio::null());
    let said = run(&mut shell);
    assert_eq!(said.code, Some(0), "{said:?}");
    let cpu_s = report(&dir.path().join("out"))["cpu_s"].as_f64().unwrap();
    assert!((0.0..2.0).contains(&cpu_s), "{cpu_s}");
}

#[test]
fn bench_measures_the_crawl_against_fetching_alone() {
    let said = run(huntsman(&std::env::temp_dir())
        .args(["bench", "crawl", "--pages", "200", "--kb", "2", "--links", "5", "--json"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let value: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&value["crawl"]["pages"], &value["raw"]["pages"]), (&json!(200), &json!(200)));
    assert!(value["crawl"]["cpu_s_per_1000_pages"].as_f64().unwrap() > 0.0);
}

#[test]
fn bench_measures_audits_beside_crawls_and_the_judging_of_a_made_up_site() {
    let dir = tempfile::tempdir().unwrap();
    let said = run(huntsman(dir.path()).args([
        "bench",
        "audit",
        "--crawled",
        "40",
        "--pages",
        "200",
        "--links",
        "25",
        "--json",
    ]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let measures = serde_json::from_str::<Value>(&said.stdout).unwrap()["measures"].clone();
    assert_eq!((&measures["crawl"]["pages"], &measures["judging"]["pages"]), (&json!(40), &json!(200)));
    for cost in [&measures["crawl"]["audit"], &measures["crawl"]["plain"], &measures["judging"]["cost"]] {
        assert!(cost["peak_rss_bytes"].as_u64().unwrap() > 1 << 20, "{measures}");
    }
    assert!(measures["judging"]["issues"].as_u64().unwrap() > 0, "titles that pages share");
    assert!(measures["judging"]["segment_bytes"].as_u64().unwrap() > 10_000, "{measures}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left");
}
