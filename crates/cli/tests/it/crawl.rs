//! `huntsman crawl`, run as a process: records, limits, scope, exit codes.

use huntsman_testkit::{Answer, RunningSite, Site, sites};
use serde_json::{Value, json};

use crate::common::{crawl, field, huntsman, lines, report, run};

fn small() -> RunningSite {
    Site::builder()
        .page("/", "<html lang='de-AT'><title> Start  page </title><a href='/a#x'>a</a> <a href='/gone'>g</a> <a href='mailto:x@y'>m</a>")
        .page("/a", "<title>A</title><p>The quick brown fox jumps over the lazy dog and runs on into the dark wood. <a href='/old'>o</a>")
        .answer("/old", Answer::redirect(301, "/new"))
        .page("/new", "<a href='http://127.0.0.2:1/elsewhere'>e</a>")
        .start_blocking()
}

#[test]
fn every_page_is_one_record_with_the_fields_in_their_order() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout, "", "stdout is for data");
    let pages = lines(dir.path().join("out/pages.jsonl"));
    assert_eq!(field(&pages, "url"), ["/", "/a", "/old"].map(|path| site.url(path).to_string()));
    let first = pages.iter().find(|page| page["depth"] == 0).unwrap();
    let keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let fields = "url final_url status depth referer content_type bytes wire_bytes title lang words links fetched_at elapsed_ms ok truncated";
    assert_eq!(keys.join(" "), fields);
    assert_eq!(first["title"], "Start page");
    assert_eq!(first["lang"], "de");
    assert_eq!(first["links"], 2, "mailto is no link to follow");
    assert_eq!(
        (&first["words"], &first["referer"], &first["ok"]),
        (&Value::Null, &Value::Null, &json!(true))
    );
}

#[test]
fn a_redirect_is_one_record_under_the_requested_url() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    run(&mut crawl(dir.path(), &site));
    let pages = lines(dir.path().join("out/pages.jsonl"));
    let page = pages.iter().find(|page| page["url"] == site.url("/old").as_str()).unwrap();
    assert_eq!(page["final_url"], site.url("/new").as_str());
    assert_eq!(page["depth"], 2);
}

#[test]
fn an_answer_that_is_no_success_is_a_drop_with_its_status() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    run(&mut crawl(dir.path(), &site));
    let drops = lines(dir.path().join("out/drops.jsonl"));
    let drop = drops.iter().find(|drop| drop["url"] == site.url("/gone").as_str()).unwrap();
    assert_eq!(
        (&drop["state"], &drop["reason"], &drop["status"]),
        (&json!("failed"), &json!("http_status"), &json!(404))
    );
    assert_eq!(drop["referer"], site.url("/").as_str());
}

#[test]
fn text_adds_text_words_and_the_detected_language() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    run(crawl(dir.path(), &site).arg("--text"));
    let pages = lines(dir.path().join("out/pages.jsonl"));
    let page = pages.iter().find(|page| page["title"] == "A").unwrap();
    assert_eq!((&page["lang"], &page["words"]), (&json!("en"), &json!(17)));
    assert!(page["text"].as_str().unwrap().starts_with("The quick brown fox"));
}

#[test]
fn the_report_adds_up() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let said = run(crawl(dir.path(), &site).args(["--seed", "7"]));
    let report = report(&dir.path().join("out"));
    assert_eq!(
        (&report["finish_reason"], &report["pages"], &report["seed"]),
        (&json!("finished"), &json!(3), &json!(7))
    );
    assert_eq!(report["requests"], site.requests().len());
    assert!(
        report["cpu_s"].as_f64().unwrap() > 0.0 && report["peak_rss_bytes"].as_u64().unwrap() > 1_000_000
    );
    assert!(report["stats"].as_object().unwrap().values().all(Value::is_number));
    assert!(said.stderr.contains("finished after"), "{}", said.stderr);
}

#[test]
fn events_of_the_log_are_counted_in_the_report() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let out = dir.path().join("out");
    let said = run(crawl(dir.path(), &site).args(["--set", "log_level=debug", "--set", "log_format=json"]));
    let logged = |level: &str| said.stderr.lines().filter(|line| line.contains(level)).count();
    let report = report(&out);
    for (level, key) in [("\"level\":\"debug\"", "log_count/DEBUG"), ("\"level\":\"info\"", "log_count/INFO")]
    {
        assert!(logged(level) > 0, "{}", said.stderr);
        assert_eq!(report["stats"][key], logged(level), "{}", said.stderr);
    }
    assert_eq!(report["stats"].get("feedexport/success_count/file"), Some(&json!(1)));
}

#[test]
fn records_go_to_stdout_and_nothing_else_does() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let said = run(crawl(dir.path(), &site).args(["--out", "-"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(pages.len(), 3);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no files");
}

#[test]
fn max_pages_is_honoured_exactly() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(60, 6).start_blocking());
    let mut command = crawl(dir.path(), &site);
    let said = run(command.args(["--max-pages", "17"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 17);
    assert_eq!(report(&dir.path().join("out"))["finish_reason"], "closespider_pagecount");
}

#[test]
fn a_limit_fails_the_run_when_asked_to() {
    let (dir, site) = (tempfile::tempdir().unwrap(), sites::linked(60, 6).start_blocking());
    let said = run(crawl(dir.path(), &site).args(["--max-pages", "5", "--fail-on-limit"]));
    assert_eq!(said.code, Some(3), "{said:?}");
}

#[test]
fn max_depth_0_fetches_the_start_url_only() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    run(crawl(dir.path(), &site).args(["--max-depth", "0"]));
    assert_eq!(site.targets(), ["/"]);
}

#[test]
fn max_depth_is_the_number_of_links_from_a_start_url() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    run(crawl(dir.path(), &site).args(["--max-depth", "1"]));
    assert_eq!(field(&lines(dir.path().join("out/pages.jsonl")), "depth"), ["0", "1"]);
}

#[test]
fn max_depth_beyond_the_guard_is_honoured() {
    let next = |asked: &huntsman_testkit::SiteRequest| {
        let next: u32 = asked.path().trim_start_matches('/').parse().unwrap_or(0) + 1;
        Answer::html(format!("<a href='/{next}'>n</a>"))
    };
    let site = Site::builder().route("/*", next).start_blocking();
    let dir = tempfile::tempdir().unwrap();
    run(crawl(dir.path(), &site).args(["--max-depth", "25"]));
    assert_eq!(lines(dir.path().join("out/pages.jsonl")).len(), 26);
}

#[test]
fn max_time_stops_a_slow_site() {
    let slow = |asked: &huntsman_testkit::SiteRequest| {
        let next: u32 = asked.path().trim_start_matches('/').parse().unwrap_or(0) + 1;
        Answer::html(format!("<a href='/{next}'>n</a>")).delay(std::time::Duration::from_millis(100))
    };
    let site = Site::builder().route("/*", slow).start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(crawl(dir.path(), &site).args(["--max-time", "1", "--set", "depth_guard=0"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(report(&dir.path().join("out"))["finish_reason"], "closespider_timeout");
}

#[test]
fn max_time_does_not_wait_for_a_page_that_never_ends() {
    let site = Site::builder()
        .page("/", "<a href='/stuck'>s</a>")
        .answer("/stuck", Answer::html("x").delay(std::time::Duration::from_secs(60)))
        .hold(std::time::Duration::from_secs(60))
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(crawl(dir.path(), &site).args(["--max-time", "0.5", "--set", "drain_timeout=3600"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let report = report(&dir.path().join("out"));
    assert_eq!((&report["finish_reason"], &report["pages"]), (&json!("closespider_timeout"), &json!(1)));
    let drops = lines(dir.path().join("out/drops.jsonl"));
    assert_eq!(drops[0]["reason"], "not_crawled", "it was left, and did not run into its own timeout");
}

#[test]
fn a_start_url_that_redirects_out_of_scope_says_what_to_do() {
    let site = Site::builder()
        .route("/", |asked| {
            let port =
                asked.header("host").and_then(|host| host.rsplit_once(':')).map_or("80", |(_, port)| port);
            Answer::redirect(301, format!("http://127.0.0.2:{port}/"))
        })
        .host("127.0.0.2")
        .page("/", "here")
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(crawl(dir.path(), &site).args(["--allow-address", "127.0.0.2:*"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.stderr.contains("http://127.0.0.2:") && said.stderr.contains("--allow-host"),
        "{}",
        said.stderr
    );
}

#[test]
fn seeds_come_from_stdin_and_from_a_file() {
    let site = small();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("seeds.txt"),
        format!("# mine\n\n{}\n{}\n", site.url("/a"), site.url("/new")),
    )
    .unwrap();
    let address = format!("127.0.0.1:{}", site.port());
    let common =
        ["--profile", "test", "--set", "log_level=warn", "--max-depth", "0", "--allow-address", &address];
    let said =
        run(huntsman(dir.path()).args(["crawl", "--seeds", "seeds.txt", "--out", "file"]).args(common));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("file/pages.jsonl")).len(), 2);
    let stdin = std::fs::File::open(dir.path().join("seeds.txt")).unwrap();
    let said =
        run(huntsman(dir.path()).args(["crawl", "--seeds", "-", "--out", "stdin"]).args(common).stdin(stdin));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("stdin/pages.jsonl")).len(), 2);
}

#[test]
fn seeds_come_from_a_column_of_csv() {
    let site = small();
    let dir = tempfile::tempdir().unwrap();
    let list = format!("name;page\nfirst;{}\nsecond;{}\n", site.url("/a"), site.url("/new"));
    std::fs::write(dir.path().join("seeds.csv"), list).unwrap();
    let address = format!("127.0.0.1:{}", site.port());
    let crawl = |seeds: &str, column: &str, out: &str| {
        let mut command = huntsman(dir.path());
        command.args(["crawl", "--profile", "test", "--set", "log_level=warn", "--max-depth", "0"]);
        command.args(["--allow-address", &address, "--seeds", seeds, "--seeds-column", column]);
        command.args(["--seeds-delimiter", ";", "--out", out]);
        command
    };
    for (column, out) in [("page", "by-name"), ("2", "by-number")] {
        let said = run(&mut crawl("seeds.csv", column, out));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(lines(dir.path().join(out).join("pages.jsonl")).len(), 2);
    }
    let stdin = std::fs::File::open(dir.path().join("seeds.csv")).unwrap();
    let said = run(crawl("-", "page", "stdin").stdin(stdin));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(lines(dir.path().join("stdin/pages.jsonl")).len(), 2);
    let said = run(&mut crawl("seeds.csv", "link", "none"));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("no column \"link\"") && said.stderr.contains("name, page"), "{said:?}");
}

#[test]
fn only_listed_urls_are_fetched() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    std::fs::write(dir.path().join("list.txt"), format!("{}\n{}\n", site.url("/"), site.url("/a?"))).unwrap();
    let said = run(crawl(dir.path(), &site).args(["--only", "list.txt"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut targets = site.targets();
    targets.sort();
    assert_eq!(targets, ["/", "/a"]);
}

#[test]
fn the_scope_is_the_host_of_the_start_url() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::builder()
        .page("/", "<a href='//127.0.0.2:PORT/x'>other</a>")
        .host("127.0.0.2")
        .page("/x", "far")
        .start_blocking();
    // The port is known only now, so a second site links to the first.
    let port = site.port();
    let link = format!("<a href='http://127.0.0.2:{port}/x'>x</a>");
    let start = Site::builder().page("/", link).start_blocking();
    let address = ["--allow-address", "127.0.0.2:*"];
    run(crawl(dir.path(), &start).args(address));
    assert_eq!(site.count("/x"), 0);
    let said = run(crawl(dir.path(), &start).args(address).args(["--allow-host", "127.0.0.2", "--fresh"]));
    assert_eq!((said.code, site.count("/x")), (Some(0), 1), "{said:?}");
}

#[test]
fn globs_choose_among_links_and_exclude_wins() {
    let links =
        ["/docs/a", "/docs/b", "/docs/old/c", "/news/d"].map(|path| format!("<a href='{path}'>x</a>"));
    let site =
        Site::builder().page("/", links.concat()).page("/docs/*", "x").page("/news/*", "x").start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(crawl(dir.path(), &site).args(["--include", "*/docs/*", "--exclude", "*/old/*"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut targets = site.targets();
    targets.sort();
    assert_eq!(targets, ["/", "/docs/a", "/docs/b"]);
}

#[test]
fn a_seed_that_cannot_be_fetched_fails_the_run_and_the_others_go_on() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let said = run(crawl(dir.path(), &site).arg(site.url("/nowhere").as_str()));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("/nowhere could not be fetched"), "{}", said.stderr);
    let report = report(&dir.path().join("out"));
    assert_eq!((&report["pages"], report["failed_seeds"].as_array().unwrap().len()), (&json!(3), 1));
}

#[test]
fn links_that_a_guard_cuts_are_counted_in_the_summary_and_the_report() {
    let mut site = Site::builder().page("/", "<a href='/1'>x</a>");
    for page in 1..25 {
        site = site.page(&format!("/{page}"), format!("<a href='/{}'>x</a>", page + 1));
    }
    let (dir, site) = (tempfile::tempdir().unwrap(), site.start_blocking());
    let said = run(&mut crawl(dir.path(), &site));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("finished with losses after"), "{}", said.stderr);
    let cut = format!("1 link cut by depth_guard, first: {}: depth 21 is beyond 20", site.url("/21"));
    assert!(said.stderr.contains(&cut), "{}", said.stderr);
    assert_eq!(said.stderr.matches("the guard depth_guard refused a link").count(), 1, "{}", said.stderr);
    let report = report(&dir.path().join("out"));
    let loss =
        json!([{"kind": "links", "name": "depth_guard", "count": 1, "first": cut.split("first: ").nth(1)}]);
    assert_eq!((&report["pages"], &report["losses"]), (&json!(21), &loss));
}

#[test]
fn start_urls_that_the_settings_refuse_are_an_error_with_a_reason() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let said = run(crawl(dir.path(), &site).args(["--set", "urllength_limit=10"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("could not be fetched"), "{}", said.stderr);
    assert_eq!(lines(dir.path().join("out/drops.jsonl"))[0]["reason"], "url_length");
}

/// Every file below a directory.
fn files_below(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn a_password_in_a_refused_address_is_shown_and_written_nowhere() {
    let site = Site::builder();
    let site = site
        .page("/", "<a href='http://link:SECRET@other.example/'>l</a> <a href='/moved'>m</a>")
        .answer("/moved", Answer::redirect(302, "http://moved:SECRET@other.example/"))
        .start_blocking();
    let (host, dir) = (format!("127.0.0.1:{}", site.port()), tempfile::tempdir().unwrap());
    let seeds = dir.path().join("seeds");
    // The file is so large that its later lines are checked only while the crawl runs.
    let padding = format!("# {}\n", "x".repeat(1_000)).repeat(17_000);
    let urls = format!("http://{host}/\nhttp://user:SECRET@{host}/a\nhttp://SECRET@{host}/b\n");
    std::fs::write(&seeds, format!("{urls}{padding}https://u:SEC/RET@{host}/c\nhttp://u:SECRET@[bad/\n"))
        .unwrap();
    let mut command = huntsman(dir.path());
    command.args(["crawl", "--seeds", seeds.to_str().unwrap(), "--profile", "test", "--out", "out"]);
    let said = run(command.args(["--allow-address", &host, "--set", "log_level=debug"]));
    assert_eq!(said.code, Some(1), "{said:?}");
    for text in [&said.stdout, &said.stderr] {
        assert!(!text.contains("SECRET") && !text.contains("RET@"), "{text}");
    }
    assert!(said.stderr.contains(&format!("http://***@{host}/a")), "{}", said.stderr);
    let drops = lines(dir.path().join("out/drops.jsonl"));
    assert!(
        drops
            .iter()
            .any(|drop| drop["url"] == format!("http://***@{host}/a") && drop["reason"] == "userinfo")
    );
    for path in files_below(&dir.path().join("out")) {
        // The texts of pages come from the pages.
        if path.ends_with("pages.jsonl") {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|part| part == b"SECRET"), "{}", path.display());
        assert!(!bytes.windows(4).any(|part| part == b"RET@"), "{}", path.display());
    }

    for (bad, code) in [
        ("ftp://u:SECRET@h/", 2),
        ("u:SECRET@h", 2),
        ("http://u:SECRET@[bad/", 2),
        ("http://u:SECRET@127.0.0.1:9/", 1),
    ] {
        let said = run(huntsman(dir.path()).args(["crawl", bad, "--out", "none"]));
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(!said.stderr.contains("SECRET") && said.stderr.contains("***@"), "{}", said.stderr);
    }
}

#[test]
fn robots_txt_is_obeyed_unless_a_flag_says_otherwise() {
    let build = || {
        let site = Site::builder().robots("User-agent: *\nDisallow: /secret\n");
        site.page("/", "<a href='/secret'>s</a>").page("/secret", "s").start_blocking()
    };
    let polite = |dir: &std::path::Path, site: &RunningSite, flags: &[&str]| {
        let address = format!("127.0.0.1:{}", site.port());
        let url = site.url("/");
        let mut command = huntsman(dir);
        command
            .args(["crawl", url.as_str(), "--delay", "0", "--out", "out", "--allow-address", &address])
            .args(flags);
        run(&mut command)
    };
    let (dir, site) = (tempfile::tempdir().unwrap(), build());
    let said = polite(dir.path(), &site, &[]);
    assert_eq!((said.code, site.count("/secret")), (Some(0), 0), "{said:?}");
    assert_eq!(lines(dir.path().join("out/drops.jsonl"))[0]["reason"], "robots");
    let (dir, site) = (tempfile::tempdir().unwrap(), build());
    polite(dir.path(), &site, &["--ignore-robots"]);
    assert_eq!((site.count("/secret"), site.count("/robots.txt")), (1, 0));
}

#[test]
fn credentials_and_secret_headers_reach_their_origin() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    let origin = site.url("/").origin().ascii_serialization();
    let flags = [format!("--auth={origin}=me:secret"), format!("--secret-header={origin}=X-Key: abc")];
    let said = run(crawl(dir.path(), &site).args(flags).args(["--set", "log_level=debug"]));
    let first = &site.requests()[0].request;
    assert_eq!(first.header("authorization"), Some("Basic bWU6c2VjcmV0"));
    assert_eq!(first.header("x-key"), Some("abc"));
    assert!(!said.stderr.contains("secret\"") && !said.stderr.contains("me:secret"), "{}", said.stderr);
}

#[test]
fn settings_come_from_file_environment_and_flags() {
    let (dir, site) = (tempfile::tempdir().unwrap(), small());
    std::fs::write(dir.path().join("huntsman.toml"), "user_agent = \"from-file\"\ncookies_enabled = false\n")
        .unwrap();
    run(crawl(dir.path(), &site).args(["--max-depth", "0", "--out", "1"]));
    run(crawl(dir.path(), &site)
        .args(["--max-depth", "0", "--out", "2"])
        .env("HUNTSMAN_USER_AGENT", "from-environment"));
    run(crawl(dir.path(), &site)
        .args(["--max-depth", "0", "--out", "3", "--set", "user_agent=from-flag"])
        .env("HUNTSMAN_USER_AGENT", "from-environment"));
    let agents: Vec<_> =
        site.requests().iter().map(|seen| seen.request.header("user-agent").unwrap().to_owned()).collect();
    assert_eq!(agents, ["from-file", "from-environment", "from-flag"]);
}

#[test]
fn what_pages_say_cannot_steer_the_terminal() {
    let site = Site::builder()
        .answer(
            "/",
            Answer::html("<title>\u{1b}[31mred\u{9b}2J</title><a href='/%1b[2J'>x</a>\u{1b}]0;t\u{7}"),
        )
        .start_blocking();
    let dir = tempfile::tempdir().unwrap();
    let said = run(crawl(dir.path(), &site).args(["--set", "log_level=debug"]));
    let raw = |c: char| c.is_control() && c != '\n';
    assert!(!said.stderr.contains(raw), "{:?}", said.stderr);
    let json = run(crawl(dir.path(), &site).args([
        "--fresh",
        "--set",
        "log_level=debug",
        "--set",
        "log_format=json",
    ]));
    assert!(!json.stderr.contains(raw), "{:?}", json.stderr);
    let title = &lines(dir.path().join("out/pages.jsonl"))[0]["title"];
    assert!(title.as_str().unwrap().contains('\u{1b}'), "the data itself stays as it was");
}
