//! A program made of spiders, `examples/project.rs`, as people run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use huntsman::project::command::exit::Exit;
use huntsman::{Output, Page, Project, spider_fn};
use huntsman_testkit::command::{Said, command, run, said};
use huntsman_testkit::{Answer, Gate, RunningSite, Site, SiteBuilder};
use serde_json::Value;

mod several;
#[cfg(all(unix, feature = "sqlite"))]
mod walk;

/// The program of the example `project`, in this working directory.
fn bookshop(directory: &Path) -> Command {
    example("project", directory)
}

/// A program that is built together with the tests, in this working directory.
fn example(name: &str, directory: &Path) -> Command {
    let tests = std::env::current_exe().expect("the tests have a path");
    let target = tests.parent().and_then(Path::parent).expect("they are in a folder of the target folder");
    let program: PathBuf = target.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{} is missing: build the examples", program.display());
    command(program, directory)
}

/// A command for a site, whose address is allowed; the shelf is its first page.
fn on(directory: &Path, site: &RunningSite, words: &[&str]) -> Command {
    let mut command = bookshop(directory);
    command.args(words).args(["--profile", "test", "--allow-address", &format!("127.0.0.1:{}", site.port())]);
    command.args(["-a", &format!("start={}", site.url("/")), "-s", "log_level=warn"]);
    command
}

fn books() -> SiteBuilder {
    Site::builder()
        .page("/", "<a class=book href=/1>Mills</a> <a class=book href=/2>Dams</a>")
        .page("/1", "<h1>Mills</h1><p class=price>10.50</p>")
        .page("/2", "<h1>Dams</h1><p class=price>25.00</p>")
}

fn words(directory: &Path, words: &[&str]) -> Said {
    run(bookshop(directory).args(words))
}

fn titles(text: &str) -> Vec<String> {
    let title = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON")["title"].clone();
    let mut titles: Vec<String> =
        text.lines().map(|line| title(line).as_str().expect("a title").to_owned()).collect();
    titles.sort();
    titles
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn list_names_the_spiders_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(words(dir.path(), &["list"]).stdout, "books\ncheap\n");
    let version = words(dir.path(), &["version"]).stdout;
    assert_eq!(version, format!("bookshop {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_spider_is_refused_with_the_list_and_the_nearest_name() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["crawl", "check", "settings"] {
        let said = words(dir.path(), &[command, "boks"]);
        let all = format!("{}{}", said.stdout, said.stderr);
        assert_eq!(said.code, Some(2), "{all}");
        for part in ["no spider boks", "did you mean books?", "books, cheap"] {
            assert!(all.contains(part), "{command}: {all}");
        }
    }
    assert_eq!(words(dir.path(), &["crawl"]).code, Some(2), "with two spiders one has to be named");
}

#[test]
fn arguments_are_typed_and_what_nobody_reads_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (given, parts) in [
        (&[][..], ["-a start=VALUE", "missing"]),
        (&["-a", "start=here"], ["-a start=here", "relative URL"]),
        (&["-a", "start=http://a.example/", "-a", "most=many"], ["-a most=many", "invalid digit"]),
        (&["-a", "start=http://a.example/", "-a", "mst=3"], ["-a mst", "did you mean most?"]),
        (&["-a", "start"], ["-a start", "NAME=VALUE"]),
    ] {
        let said = words(dir.path(), &[&["crawl", "books"], given].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(parts.iter().all(|part| said.stderr.contains(part)), "{said:?}");
    }
}

#[test]
fn items_go_to_stdout_or_into_files_that_are_added_to_or_overwritten() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| {
        let said = run(on(dir.path(), &site, &["crawl", "books"]).args(more));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.starts_with("finished after"), "{said:?}");
        said.stdout
    };
    assert_eq!(titles(&crawl(&[])), ["Dams", "Mills"]);
    for _ in 0..2 {
        assert_eq!(
            crawl(&["-o", "all.jsonl", "-O", "last.csv", "-o", "%(name)s-%(most)s.jsonl.gz", "-a", "most=1"]),
            ""
        );
    }
    assert_eq!(titles(&read(dir.path(), "all.jsonl")), ["Mills", "Mills"]);
    assert_eq!(read(dir.path(), "last.csv"), "title,price\nMills,10.5\n");
    assert!(dir.path().join("books-1.jsonl.gz").is_file(), "names have the spider and its arguments");
    assert_eq!(titles(&crawl(&["-o", "-"])), ["Dams", "Mills"]);

    fs::write(dir.path().join("list.json"), "[]\n").unwrap();
    for (name, part) in [("list.json", "exists"), ("list.txt", ".jsonl, .csv, .json or .xml")] {
        let said = run(on(dir.path(), &site, &["crawl", "books"]).args(["-o", name]));
        assert!(said.code != Some(0) && said.stderr.contains(part), "{said:?}");
    }
    crawl(&["-O", "list.json"]);
    assert!(read(dir.path(), "list.json").starts_with("[\n{"));
}

#[test]
fn a_spider_with_pipelines_of_its_own_prints_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let said = run(&mut on(dir.path(), &site, &["crawl", "cheap"]));
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{said:?}");
    let said = run(on(dir.path(), &site, &["crawl", "cheap"]).args(["-o", "-"]));
    assert_eq!(titles(&said.stdout), ["Mills"], "its pipelines come first");
}

#[test]
fn the_settings_file_wins_over_the_spider_and_yields_to_environment_and_flags() {
    let dir = tempfile::tempdir().unwrap();
    let depth = |spider: &str, flags: &[&str], variable: Option<&str>| {
        let mut command = bookshop(dir.path());
        command
            .args(["settings", spider, "--get", "depth_limit", "-a", "start=http://a.example/"])
            .args(flags);
        variable.map(|value| command.env("HUNTSMAN_DEPTH_LIMIT", value));
        let said = run(&mut command);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout.trim().to_owned()
    };
    assert_eq!((depth("cheap", &[], None), depth("books", &[], None)), ("3".into(), "0".into()));
    let file = dir.path().join("huntsman.toml");
    fs::write(&file, "[settings]\ndepth_limit = 4\n").unwrap();
    assert_eq!((depth("cheap", &[], None), depth("books", &[], None)), ("4".into(), "4".into()));
    fs::write(&file, "[settings]\ndepth_limit = 4\n[spiders.cheap]\ndepth_limit = 5\n").unwrap();
    assert_eq!((depth("cheap", &[], None), depth("books", &[], None)), ("5".into(), "4".into()));
    assert_eq!(depth("cheap", &[], Some("6")), "6");
    assert_eq!(depth("cheap", &["-s", "depth_limit=7"], Some("6")), "7");
    let explained = run(bookshop(dir.path()).args([
        "settings",
        "cheap",
        "--get",
        "depth_limit",
        "--explain",
        "-a",
        "start=http://a.example/",
    ]));
    for source in ["spider", "settings file huntsman.toml"] {
        assert!(explained.stdout.contains(source), "{explained:?}");
    }
}

#[test]
fn a_table_for_no_spider_and_an_unknown_setting_are_told_before_a_crawl() {
    let dir = tempfile::tempdir().unwrap();
    for (text, parts) in [
        ("[spiders.cheep]\ndepth_limit = 1\n", ["[spiders.cheep]", "did you mean [spiders.cheap]?"]),
        ("[spiders.cheap]\ndepth_limt = 1\n", ["huntsman.toml", "depth_limit"]),
        ("retry_times = 1\n[settings]\nretry_times = 2\n", ["retry_times", "both"]),
        ("[spiders]\ncheap = 1\n", ["spiders.cheap", "[spiders.cheap]"]),
    ] {
        fs::write(dir.path().join("huntsman.toml"), text).unwrap();
        for command in ["crawl", "check"] {
            let said = words(dir.path(), &[command, "cheap", "-a", "start=http://a.example/"]);
            let all = format!("{}{}", said.stdout, said.stderr);
            assert!(said.code == Some(2) && parts.iter().all(|part| all.contains(part)), "{command}: {all}");
        }
    }
}

#[test]
fn check_says_which_spiders_can_be_run() {
    let dir = tempfile::tempdir().unwrap();
    let said = words(dir.path(), &["check", "books", "-a", "start=http://a.example/"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "books: ok\n"), "{said:?}");
    let said = words(dir.path(), &["check"]);
    assert_eq!(said.code, Some(0), "nobody can give arguments to all spiders at once: {said:?}");
    assert!(said.stdout.contains("books: not checked") && said.stdout.contains("-a start=VALUE"), "{said:?}");
    let said = words(dir.path(), &["check", "books"]);
    assert!(said.code == Some(2) && said.stdout.contains("-a start=VALUE"), "{said:?}");
}

#[test]
fn parse_prints_the_items_and_requests_of_a_callback() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let page = |path: &str| site.url(path).to_string();
    let shelf = run(&mut on(dir.path(), &site, &["parse", &page("/"), "--spider", "books"]));
    let expected =
        format!("0 items\n2 requests\n  GET {} -> Book\n  GET {} -> Book\n", page("/1"), page("/2"));
    assert_eq!((shelf.code, shelf.stdout), (Some(0), expected));
    let book = ["parse", &page("/1"), "--spider", "books", "--callback", "Book"];
    let said = run(&mut on(dir.path(), &site, &book));
    let expected = "1 item\n  {\"title\":\"Mills\",\"price\":10.5}\n0 requests\n";
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), expected));
    let said = run(on(dir.path(), &site, &book).arg("--json"));
    assert_eq!(said.stdout, "{\"item\":{\"title\":\"Mills\",\"price\":10.5}}\n");
    assert_eq!(site.count("/2"), 0, "nothing is followed");
}

#[test]
fn parse_tells_why_there_is_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let page = |path: &str| site.url(path).to_string();
    for (path, more, part) in [
        ("/none", &["--spider", "books"][..], "404"),
        ("/1", &["--spider", "books", "--callback", "Bok"], "Bok"),
        ("/", &["--spider", "books", "--callback", "Book"], "title"),
        ("/", &[], "--spider: books, cheap"),
        ("/", &["--spider", "books", "-c", "Book", "--callback-arguments", "7"], "object of JSON"),
    ] {
        let said = run(on(dir.path(), &site, &["parse", &page(path)]).args(more));
        assert!(!matches!(said.code, Some(0)) && said.stderr.contains(part), "{path} {more:?}: {said:?}");
    }
}

#[test]
fn a_limit_fails_the_run_when_asked_to_and_the_report_is_written() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let mut command = on(dir.path(), &site, &["crawl", "books", "--report", "report.json"]);
    let said = run(command.args(["-s", "closespider_pagecount=1", "--fail-on-limit"]));
    assert_eq!(said.code, Some(3), "{said:?}");
    let report: Value = serde_json::from_str(&read(dir.path(), "report.json")).unwrap();
    assert_eq!(report["finish_reason"], "closespider_pagecount");
}

#[test]
fn the_log_goes_where_the_settings_say() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let mut command = on(dir.path(), &site, &["crawl", "books"]);
    let said =
        run(command.args(["--log-file", "crawl.log", "--log-format", "json", "-s", "log_level=debug"]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let log = read(dir.path(), "crawl.log");
    let levels: Vec<Value> =
        log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["level"].clone()).collect();
    assert!(levels.iter().any(|level| level == "debug"), "{log}");
    assert!(said.stderr.starts_with("finished after"), "{said:?}");
}

#[test]
fn metrics_are_served_while_the_crawl_runs() {
    use std::io::{BufRead, BufReader, Read, Write};
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
    let site = books().answer("/1", Answer::html("<h1>Mills</h1>").behind(&gate)).start_blocking();
    let mut command = on(dir.path(), &site, &["crawl", "books", "--metrics", "0"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics at http://").unwrap().strip_suffix("/metrics").unwrap();
    wait_for(&site, "/1");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("huntsman_downloader_response_count"), "{answer}");
    gate.open();
    assert!(child.wait().is_ok());
}

#[test]
fn items_have_a_file_although_pipelines_check_them_and_fetch_their_images() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let (start, images) = (site.url("/1").to_string(), dir.path().join("images"));
    let project = Project::new("shop").crawler("titles", move |_| {
        let spider = spider_fn([start.clone()], |page: &Page, out: &mut Output<Value>| {
            out.item(serde_json::json!({ "title": page.css("h1::text")?.get() }));
            Ok(())
        });
        let crawl = huntsman::crawl(spider).pipeline(huntsman::middleware::ItemChecks::default());
        Ok(crawl.concurrent_pipeline(huntsman::middleware::Media::images(&images)))
    });
    let (run, address) = (dir.path().join("run"), format!("127.0.0.1:{}", site.port()));
    let words = ["shop", "crawl", "--out", run.to_str().unwrap(), "--allow-address", &address];
    assert_eq!(project.run(words), Exit::Done);
    assert_eq!(read(&run, "items.jsonl"), "{\"title\":\"Mills\"}\n");
}

#[test]
fn a_check_has_a_time_limit_and_judges_contracts_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("titles");
    fs::create_dir(&folder).unwrap();
    let project = Project::new("shop")
        .spider("titles", |_| {
            Ok(spider_fn(["https://books.example/"], |page: &Page, out: &mut Output<String>| {
                if page.url().path() == "/slow" {
                    std::thread::sleep(Duration::from_secs(600));
                }
                out.items(page.css("h1::text")?.get_all().to_vec());
                Ok(())
            }))
        })
        .contract("longest", |most, given| {
            let too_long = given
                .items
                .iter()
                .find(|item| item.as_str().map(str::len) > most.as_u64().map(|n| n as usize));
            too_long.map_or(Ok(()), |item| Err(huntsman::Error::msg(format!("{item} is too long"))))
        });
    let store = |name: &str, contract: &str| {
        let request = huntsman::Request::parse(&format!("https://books.example/{name}")).unwrap();
        let response = huntsman::Response::html(request.url.clone(), "<h1>Mills</h1>");
        let fingerprinter = huntsman::Fingerprinter::from_settings(&huntsman::Settings::default()).unwrap();
        huntsman::middleware::Exchange::new(&request, &fingerprinter, &response)
            .write(&folder, name)
            .unwrap();
        let contract = format!("{{\"contract\": {{\"own\": {contract}}}}}");
        fs::write(folder.join(format!("{name}.expected.json")), contract).unwrap();
    };
    let fixtures = dir.path().to_str().unwrap();
    let check = || project.run(["shop", "check", "--timeout", "0.2", "--fixtures", fixtures]);
    store("good", "{\"longest\": 5}");
    assert_eq!(check(), Exit::Done);
    for (name, contract) in [("bad", "{\"longest\": 4}"), ("unknown", "{\"longset\": 4}"), ("slow", "{}")] {
        store(name, contract);
        assert_eq!(check(), Exit::Crawl, "{name}");
        fs::remove_file(folder.join(format!("{name}.fixture.json"))).unwrap();
    }
    assert_eq!(check(), Exit::Done);
}

#[test]
fn a_program_has_commands_of_its_own() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let project = || {
        Project::new("shop").spider("titles", |_| {
            Ok(spider_fn(["https://a.example/"], |_: &Page, _: &mut Output<()>| Ok(())))
        })
    };
    let with_command = project().command("shelves", "Lists the shelves", move |words| {
        kept.lock().unwrap().extend(words.to_vec());
        if words.is_empty() { Err(huntsman::Error::usage("name a shelf")) } else { Ok(()) }
    });
    assert_eq!(with_command.run(["shop", "shelves", "--all", "x"]), Exit::Done);
    assert_eq!(*seen.lock().unwrap(), ["--all", "x"]);
    assert_eq!(
        (with_command.run(["shop", "shelves"]), with_command.run(["shop", "list"])),
        (Exit::Usage, Exit::Done)
    );
    assert_eq!(project().command("crawl", "Another one", |_| Ok(())).run(["shop", "list"]), Exit::Usage);
}

#[test]
fn bench_measures_the_program_against_fetching_alone() {
    let dir = tempfile::tempdir().unwrap();
    let said = words(dir.path(), &["bench", "--pages", "100", "--kb", "2", "--links", "5", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let figures: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&figures["crawl"]["pages"], &figures["raw"]["pages"]), (&100.into(), &100.into()));
    assert!(
        figures["crawl"]["cpu_s"].as_f64() > Some(0.0) && fs::read_dir(dir.path()).unwrap().next().is_none()
    );
}

#[test]
fn the_spider_of_a_finished_crawl_is_not_made_again() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let made = Arc::new(AtomicUsize::new(0));
    let (counter, start) = (Arc::clone(&made), site.url("/1").to_string());
    let project = Project::new("shop").spider("titles", move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(spider_fn([start.clone()], |page: &Page, out: &mut Output<String>| {
            out.items(page.css("h1::text")?.get_all().to_vec());
            Ok(())
        }))
    });
    let (run, address) = (dir.path().join("run"), format!("127.0.0.1:{}", site.port()));
    let words = ["shop", "crawl", "--out", run.to_str().unwrap(), "--allow-address", &address];
    for _ in 0..2 {
        assert_eq!(project.run(words), Exit::Done);
    }
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert_eq!(read(&run, "items.jsonl"), "\"Mills\"\n");
}

fn wait_for(site: &RunningSite, target: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while site.count(target) == 0 {
        assert!(Instant::now() < deadline, "{target} was never asked for: {:?}", site.targets());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
mod stopping {
    use std::io::{BufRead, BufReader};
    use std::process::Child;

    use super::*;

    fn signal(child: &Child) {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// A crawl that is stopped while this page is in flight; reads stderr until it says that it stops.
    fn stopped(command: &mut Command, site: &RunningSite, page: &str) -> Child {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(site, page);
        signal(&child);
        let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("once more to stop at once")), "it does not say so");
        child
    }

    #[test]
    fn a_crawl_that_a_signal_stopped_goes_on_with_its_job_and_loses_nothing() {
        let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
        let site = books().answer("/1", Answer::html("<h1>Mills</h1><p class=price>1").behind(&gate));
        let site = site.start_blocking();
        let job = ["crawl", "books", "--out", "run", "-s", "concurrent_requests=1"];
        let child = stopped(&mut on(dir.path(), &site, &job), &site, "/1");
        // The crawl says so just before it stops, and nothing outside of it shows when it has.
        std::thread::sleep(Duration::from_millis(100));
        gate.open();
        let first = said(child.wait_with_output().unwrap());
        assert_eq!(first.code, Some(130), "{first:?}");
        assert_eq!(site.count("/2"), 0, "nothing new was asked for");

        let other = run(&mut on(dir.path(), &site, &["crawl", "cheap", "--out", "run"]));
        assert_eq!(other.code, Some(2), "{other:?}");
        assert!(other.stderr.contains("the spider books") && other.stderr.contains("--fresh"), "{other:?}");

        let second = run(&mut on(dir.path(), &site, &job));
        assert_eq!(second.code, Some(0), "{second:?}");
        assert_eq!(titles(&read(dir.path(), "run/items.jsonl")), ["Dams", "Mills"]);
        assert_eq!((site.count("/"), site.count("/1"), site.count("/2")), (1, 1, 1));
        let third = run(&mut on(dir.path(), &site, &job));
        assert!(third.code == Some(0) && third.stderr.contains("Nothing to do"), "{third:?}");
    }

    #[test]
    fn the_second_signal_ends_at_once() {
        let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::default());
        let site = books().answer("/1", Answer::html("x").behind(&gate)).start_blocking();
        let child = stopped(&mut on(dir.path(), &site, &["crawl", "books"]), &site, "/1");
        let begun = Instant::now();
        signal(&child);
        let ended = said(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "the page that never ends did not delay it");
    }

    #[test]
    fn a_new_job_does_not_overwrite_the_items_of_others() {
        let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
        fs::write(dir.path().join("all.jsonl"), "{\"title\":\"Locks\"}\n").unwrap();
        let job = ["crawl", "books", "--out", "run", "-o", "all.jsonl"];
        let said = run(&mut on(dir.path(), &site, &job));
        assert!(said.code == Some(2) && said.stderr.contains("-O"), "{said:?}");
        assert_eq!(titles(&read(dir.path(), "all.jsonl")), ["Locks"]);
        assert!(!dir.path().join("run").exists());
        let said = run(&mut on(dir.path(), &site, &["crawl", "books", "--out", "run", "-O", "all.jsonl"]));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(titles(&read(dir.path(), "all.jsonl")), ["Dams", "Mills"]);
    }
}

#[test]
fn a_crawl_that_fails_a_rule_of_quality_ends_with_code_10_and_says_which() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let schema = r#"{"properties": {"price": {"maximum": 20}}}"#;
    fs::write(dir.path().join("book.json"), schema).unwrap();
    let settings = "[spiders.books]\nmin_items = 2\nitem_schema = \"book.json\"\nitem_coverage = true\n";
    fs::write(dir.path().join("huntsman.toml"), settings).unwrap();
    let crawl = |more: &[&str]| {
        run(on(dir.path(), &site, &["crawl", "books"])
            .args(["-O", "b.jsonl", "--report", "r.json"])
            .args(more))
    };
    let said = crawl(&[]);
    assert_eq!(said.code, Some(i32::from(Exit::Quality as u8)), "{said:?}");
    assert!(said.stderr.contains("finished, but a quality rule failed"), "{said:?}");
    assert!(
        said.stderr.contains("min_items = 2: items is 1") && said.stderr.contains("in all of 1 item"),
        "{said:?}"
    );
    assert_eq!(titles(&read(dir.path(), "b.jsonl")), ["Mills"]);
    let report: Value = serde_json::from_str(&read(dir.path(), "r.json")).unwrap();
    assert_eq!(report["failed_rules"][0]["rule"], "min_items = 2");
    assert_eq!(report["stats"]["item_faults_count/price/maximum"], 1);
    assert_eq!(crawl(&["-s", "min_items=1"]).code, Some(0));
    // The log is counted in time for the rules.
    let said = crawl(&["-s", "min_items=1", "-s", "quality_rules=log_count/WARNING == 0"]);
    assert!(said.code == Some(10) && said.stderr.contains("log_count/WARNING is "), "{said:?}");
    let said = crawl(&["-s", "item_schema=none.json"]);
    assert!(said.code == Some(2) && said.stderr.contains("none.json (setting item_schema)"), "{said:?}");
}

#[cfg(feature = "s3")]
mod buckets {
    use std::io::Read;

    use huntsman_testkit::moto::Server;

    use super::*;

    /// A crawl whose feeds go to a bucket of this server.
    fn crawl(directory: &Path, site: &RunningSite, endpoint: &str, more: &[&str]) -> Said {
        let mut command = on(directory, site, &["crawl", "books"]);
        command.env("AWS_ENDPOINT_URL", endpoint).env("NO_PROXY", "127.0.0.1,localhost");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "very-secret");
        command.env("AWS_MAX_ATTEMPTS", "2");
        run(command.args(more))
    }

    fn local(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory.join("uploads/shop")).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn feeds_become_objects_and_none_is_replaced_unasked() {
        let (dir, site, server) = (tempfile::tempdir().unwrap(), books().start_blocking(), Server::start());
        server.make_bucket("shop");
        // A large upload that an earlier crawl could not finish.
        let large = "0123456789abcdef".repeat((9 << 20) / 16);
        fs::create_dir_all(dir.path().join("uploads/shop")).unwrap();
        fs::write(dir.path().join("uploads/shop/large.jsonl"), &large).unwrap();
        fs::write(dir.path().join("uploads/shop/large.jsonl.upload"), "").unwrap();

        let named = ["-o", "s3://shop/%(name)s-%(batch_id)03d.jsonl.gz", "-o", "s3://shop/last.csv"];
        let said = crawl(dir.path(), &site, &server.url(), &named);
        assert_eq!(said.code, Some(0), "{said:?}");
        let packed = server.get("shop", "books-001.jsonl.gz").expect("an object");
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(titles(&text), ["Dams", "Mills"]);
        assert_eq!(server.get("shop", "last.csv").unwrap().iter().filter(|byte| **byte == b'\n').count(), 3);
        assert!(server.get("shop", "large.jsonl").is_some_and(|bytes| bytes == large.as_bytes()));
        assert_eq!(local(dir.path()), [""; 0], "what was uploaded is removed here");

        let said = crawl(dir.path(), &site, &server.url(), &named[2..]);
        assert!(said.code != Some(0) && said.stderr.contains("the object exists"), "{said:?}");
        let said =
            crawl(dir.path(), &site, &server.url(), &[&named[..2], &["-O", "s3://shop/last.csv"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(server.get("shop", "books-002.jsonl.gz").is_some(), "numbers go on");
    }

    #[test]
    fn a_bucket_that_fails_costs_no_item_and_is_told_without_secrets() {
        let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
        let mut server = Server::start();
        server.make_bucket("shop");
        // A bucket that cannot be used is told before the crawl.
        let said = crawl(dir.path(), &site, &server.url(), &["-o", "s3://other/a.jsonl"]);
        assert!(said.code != Some(0) && said.stderr.contains("s3://other/a.jsonl"), "{said:?}");

        server.kill();
        let endpoint = server.url();
        let named = ["-O", "s3://shop/a.jsonl", "--report", "report.json", "-s", "log_level=debug"];
        let said = crawl(dir.path(), &site, &endpoint, &named);
        for part in ["s3://shop/a.jsonl", "uploads/shop/a.jsonl", "AWS_ENDPOINT_URL"] {
            assert!(said.stderr.contains(part), "{part}: {said:?}");
        }
        assert!(!said.stderr.contains("very-secret"), "{said:?}");
        let report = read(dir.path(), "report.json");
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["stats"]["feedexport/failed_count/s3"], 1, "{report}");
        assert_eq!(titles(&read(dir.path(), "uploads/shop/a.jsonl")), ["Dams", "Mills"]);
        assert_eq!(local(dir.path()), ["a.jsonl", "a.jsonl.upload"]);

        let server = Server::start();
        server.make_bucket("shop");
        let said = crawl(dir.path(), &site, &server.url(), &["-O", "s3://shop/b.jsonl"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(
            titles(&String::from_utf8(server.get("shop", "a.jsonl").unwrap()).unwrap()),
            ["Dams", "Mills"]
        );
        assert_eq!(local(dir.path()), [""; 0]);
    }

    #[test]
    fn a_job_uploads_when_it_ends_and_tries_again_with_the_same_command() {
        let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
        let mut server = Server::start();
        server.make_bucket("shop");
        server.kill();
        // With -O nothing is asked before the crawl.
        let named = ["--out", "run", "-O", "s3://shop/a.jsonl"];
        let said = crawl(dir.path(), &site, &server.url(), &named);
        assert!(said.code != Some(0) && said.stderr.contains("uploads/shop/a.jsonl"), "{said:?}");
        let server = Server::start();
        server.make_bucket("shop");
        let said = crawl(dir.path(), &site, &server.url(), &named);
        assert_eq!(said.code, Some(0), "{said:?}");
        let text = String::from_utf8(server.get("shop", "a.jsonl").unwrap()).unwrap();
        assert_eq!(titles(&text), ["Dams", "Mills"]);
    }

    #[test]
    fn a_new_job_replaces_no_object_unasked() {
        let (dir, site, server) = (tempfile::tempdir().unwrap(), books().start_blocking(), Server::start());
        server.make_bucket("shop");
        let crawl = |more: &[&str]| crawl(dir.path(), &site, &server.url(), more);
        let lines = || server.get("shop", "a.jsonl").unwrap().iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(crawl(&["-O", "s3://shop/a.jsonl", "-a", "most=1"]).code, Some(0));
        assert_eq!(lines(), 1);
        // The job was refused, so that giving the same command again does not make the object its own.
        for _ in 0..2 {
            let said = crawl(&["--out", "run", "-o", "s3://shop/a.jsonl"]);
            assert!(said.code != Some(0) && said.stderr.contains("the object exists"), "{said:?}");
            assert_eq!(lines(), 1);
        }
        assert_eq!(crawl(&["--out", "other", "-O", "s3://shop/a.jsonl"]).code, Some(0));
        assert_eq!(lines(), 2, "it is replaced when that is asked for");
    }
}

#[cfg(all(feature = "parquet", feature = "sqlite"))]
#[test]
fn parquet_and_sqlite_are_formats_of_the_command_line() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| run(on(dir.path(), &site, &["crawl", "books"]).args(more));
    let files = ["-o", "all.sqlite", "-o", "all.db?table=books", "-o", "%(name)s.parquet"];
    assert_eq!(crawl(&files).code, Some(0));
    assert!(fs::read(dir.path().join("all.sqlite")).unwrap().starts_with(b"SQLite format 3\0"));
    assert!(dir.path().join("all.db").is_file());
    assert!(fs::read(dir.path().join("books.parquet")).unwrap().ends_with(b"PAR1"));
    let said = crawl(&files);
    assert!(said.code == Some(1) && said.stderr.contains("Parquet cannot be added to"), "{said:?}");
    // A job goes on with all of them.
    let job = ["--out", "run", "-o", "job.sqlite", "-o", "job.parquet"];
    assert_eq!(crawl(&job).code, Some(0));
    assert!(dir.path().join("job.parquet").is_file() && dir.path().join("job.sqlite").is_file());
    let said = crawl(&["--out", "other", "-o", "job.sqlite"]);
    assert!(said.code == Some(2) && said.stderr.contains("-O"), "{said:?}");
}

#[test]
fn parse_follows_as_deep_as_it_is_told_and_shows_what_comes_out_of_the_pipelines() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let page = site.url("/").to_string();
    let parse = |more: &[&str]| run(on(dir.path(), &site, &["parse", &page, "--spider", "cheap"]).args(more));
    let said = parse(&["--depth", "1", "--pipelines"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with(&format!("depth 0: {page}\n0 items\n2 requests\n")), "{said:?}");
    assert_eq!(said.stdout.matches("depth 1: ").count(), 2, "{said:?}");
    let passed = "1 item out of the pipelines\n  {\"title\":\"Mills\",\"price\":10.5}\n";
    assert!(said.stdout.ends_with(passed), "the other one is too expensive: {said:?}");
    let said = parse(&["-d", "1", "--json"]);
    let book = format!("{{\"page\":\"{}\",\"item\":{{\"title\":\"Dams\",\"price\":25.0}}}}", site.url("/2"));
    assert!(said.stdout.lines().any(|line| line == book), "{said:?}");
    let said = parse(&["-d", "1", "--max-pages", "2"]);
    assert!(said.stdout.matches("depth ").count() == 2 && said.stderr.contains("--max-pages 2"), "{said:?}");
}

#[test]
fn fixtures_are_recorded_replayed_and_checked_without_the_site() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let crawl = |more: &[&str]| run(on(dir.path(), &site, &["crawl", "books"]).args(more));
    assert_eq!(crawl(&["--record", "fixtures/books", "-O", "one.jsonl"]).code, Some(0));
    let asked = site.targets().len();
    let replayed = crawl(&["--replay", "fixtures/books", "-O", "two.jsonl"]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert_eq!(titles(&read(dir.path(), "two.jsonl")), titles(&read(dir.path(), "one.jsonl")));
    assert_eq!(site.targets().len(), asked, "nothing was sent");

    let check = |more: &[&str]| {
        let start = format!("start={}", site.url("/"));
        run(bookshop(dir.path()).args(["check", "books", "-a", &start]).args(more))
    };
    let new = check(&[]);
    assert!(new.code == Some(1) && new.stdout.contains("nothing is expected of it yet"), "{new:?}");
    let accepted = check(&["--accept"]);
    assert!(
        accepted.code == Some(0) && accepted.stdout.contains("3 fixtures: 0 ok, 3 accepted, 0 wrong"),
        "{accepted:?}"
    );
    let well = check(&[]);
    assert!(
        well.code == Some(0) && well.stdout.contains("3 fixtures: 3 ok, 0 accepted, 0 wrong"),
        "{well:?}"
    );

    let files =
        || fs::read_dir(dir.path().join("fixtures/books")).unwrap().map(|entry| entry.unwrap().path());
    let of = |text: &str, ending: &str| {
        let has = |path: &PathBuf| {
            path.to_str().unwrap().ends_with(ending) && fs::read_to_string(path).unwrap().contains(text)
        };
        files().find(has).unwrap()
    };
    let expected = of("Mills", ".expected.json");
    fs::write(&expected, fs::read_to_string(&expected).unwrap().replace("10.5", "11.5")).unwrap();
    let differs = check(&[]);
    assert_eq!(differs.code, Some(1), "{differs:?}");
    assert!(differs.stdout.contains("items[0].price: expected 11.5, found 10.5"), "{differs:?}");
    fs::write(of("/2\"", ".fixture.json"), "{\n  \"version\": 1,,\n}").unwrap();
    let damaged = check(&[]);
    assert!(
        damaged.stdout.contains(".fixture.json: ") && damaged.stdout.contains("line 2 column"),
        "{damaged:?}"
    );
    let refused = crawl(&["--replay", "fixtures/books"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("line 2 column"), "{refused:?}");
    fs::create_dir(dir.path().join("fixtures/boks")).unwrap();
    fs::copy(of("Mills", ".expected.json"), dir.path().join("fixtures/boks/a.fixture.json")).unwrap();
    let unknown = check(&[]);
    assert!(unknown.code == Some(2) && unknown.stderr.contains("there is no spider boks"), "{unknown:?}");
}

#[test]
fn the_shell_of_a_project_knows_its_spider_and_its_settings() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    fs::write(dir.path().join("huntsman.toml"), "[spiders.books]\ndepth_limit = 7\n").unwrap();
    let page = site.url("/").to_string();
    let shell = |more: &[&str]| run(on(dir.path(), &site, &["shell", &page, "--spider", "books"]).args(more));
    let said = shell(&["-c", "css a.book::text", "-c", "parse", "-c", "settings depth_limit"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let expected = format!("Mills\nDams\n0 items\n2 requests\n  GET {} -> Book\n", site.url("/1"));
    assert!(said.stdout.starts_with(&expected) && said.stdout.contains("depth_limit = 7"), "{said:?}");
    let saved = shell(&["-c", "save fixture shelf"]);
    assert_eq!(saved.code, Some(0), "{saved:?}");
    assert!(read(dir.path(), "fixtures/books/shelf.expected.json").contains("\"callback\": \"Book\""));
    let start = format!("start={page}");
    let check = run(bookshop(dir.path()).args(["check", "books", "-a", &start]));
    assert!(check.code == Some(0) && check.stdout.contains("1 fixture: 1 ok"), "{check:?}");
    // Without a spider it is a shell all the same.
    let plain =
        ["shell", &page, "--profile", "test", "--allow-address", &format!("127.0.0.1:{}", site.port())];
    let said = run(bookshop(dir.path()).args(plain).args(["-c", "css a.book::text"]));
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "Mills\nDams\n"), "{said:?}");
}

/// A program that is killed when this value is dropped, if it has not ended.
#[cfg(unix)]
struct Killed(std::process::Child);

#[cfg(unix)]
impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
#[test]
fn the_program_serves_its_own_spiders_as_jobs() {
    let (dir, site) = (tempfile::tempdir().unwrap(), books().start_blocking());
    let settings = format!("allow_addresses = [\"127.0.0.1:{}\"]\ndownload_delay = 0\n", site.port());
    fs::write(dir.path().join("huntsman.toml"), settings).unwrap();
    let mut daemon = bookshop(dir.path());
    let daemon = daemon.args(["serve", "jobs", "-L", "error"]).stderr(Stdio::null()).spawn().unwrap();
    let mut daemon = Killed(daemon);
    let begun = Instant::now();
    let until = |arguments: &[&str], is_wanted: &dyn Fn(&Said) -> bool| loop {
        let said = words(dir.path(), arguments);
        if is_wanted(&said) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{said:?}");
    };
    until(&["jobs", "status"], &|said| said.code == Some(0));
    assert_eq!(words(dir.path(), &["jobs", "spiders", "bookshop"]).stdout, "books\ncheap\n");
    let start = format!("start={}", site.url("/"));
    let said = words(dir.path(), &["jobs", "schedule", "bookshop", "books", "-a", &start]);
    let id = said.stdout.trim().to_owned();
    assert!(said.code == Some(0) && !id.is_empty(), "{said:?}");
    let done = until(&["jobs", "show", &id, "--json"], &|said| said.stdout.contains("finished"));
    let job: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!((&job["exit_code"], &job["items"]), (&0.into(), &2.into()), "{job}");
    assert_eq!(titles(&words(dir.path(), &["jobs", "items", &id]).stdout), ["Dams", "Mills"]);
    // An argument that the spider does not know is refused by the program, and the log says why.
    let said = words(dir.path(), &["jobs", "schedule", "bookshop", "books", "-a", "shlf=1"]);
    let id = said.stdout.trim().to_owned();
    let done = until(&["jobs", "show", &id, "--json"], &|said| said.stdout.contains("finished"));
    assert!(done.stdout.contains("exit code 2; the log says more"), "{done:?}");
    assert!(!words(dir.path(), &["jobs", "log", &id]).stdout.is_empty());
    run(Command::new("kill").args(["-TERM", &daemon.0.id().to_string()]));
    assert_eq!(daemon.0.wait().unwrap().code(), Some(130));
}
