//! `huntsman shell`, `view`, `parse`, and crawls that are replayed, run as processes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use huntsman_testkit::command::said;
use huntsman_testkit::{RunningSite, Site, SiteBuilder};

use crate::common::{Said, huntsman, run};

fn pages() -> SiteBuilder {
    Site::builder()
        .robots("User-agent: *\nDisallow: /private")
        .page("/", "<title>Mills</title><a href=/a>A</a><a href=/private>no</a><p>one<p>two")
        .page("/a", "<title>A</title><h1>a\u{1b}[31m</h1><a href=/>home</a>")
}

fn on(directory: &Path, site: &RunningSite, words: &[&str]) -> Command {
    let mut command = huntsman(directory);
    // The history of whoever runs the tests is not theirs, and no browser is started.
    command.args(words).env("XDG_STATE_HOME", directory).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command.env_remove("BROWSER").env("TMPDIR", directory);
    command.args(["--allow-address", &format!("127.0.0.1:{}", site.port())]);
    command
}

/// What a command says to these lines.
fn piped(command: &mut Command, lines: &str) -> Said {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    said(child.wait_with_output().unwrap())
}

#[test]
fn commands_of_a_flag_print_what_they_find_and_the_exit_code_says_how_it_went() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages().start_blocking());
    let url = site.url("/").to_string();
    let shell = |commands: &[&str]| {
        let flags = commands.iter().flat_map(|command| ["-c", command]);
        run(on(dir.path(), &site, &["shell", &url]).args(flags))
    };
    let found = shell(&["css title::text", "xpath //p/text()"]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(0), "Mills\none\ntwo\n"), "{found:?}");
    let nothing = shell(&["css h7"]);
    assert!(
        nothing.code == Some(1) && nothing.stderr.contains("nothing on the page matches h7"),
        "{nothing:?}"
    );
    let wrong = shell(&["css p::txt", "css title::text"]);
    assert!(wrong.code == Some(2) && wrong.stdout.is_empty(), "{wrong:?}");
    assert!(wrong.stderr.contains("  p::txt\n   ^ there is no pseudo-element"), "{wrong:?}");
    let closed = run(on(dir.path(), &site, &["shell", site.url("/private").as_str()]).args(["-c", "page"]));
    assert!(closed.code == Some(1) && closed.stderr.contains("--ignore-robots"), "{closed:?}");
}

#[test]
fn lines_of_a_pipe_are_commands_and_a_wrong_one_ends_nothing() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages().start_blocking());
    let shell = ["shell", site.url("/").as_str()].map(str::to_owned);
    let shell = [shell[0].as_str(), shell[1].as_str(), "-s", "download_delay=0"];
    let told = piped(
        &mut on(dir.path(), &site, &shell),
        "links\nfollow 0\ncss h1\ncss a::attr(href) as home\nderive Page\nsettings download_delay\nsave fixture a\nnonsense\nheaders\nexit\nlinks\n",
    );
    assert_eq!(told.code, Some(2), "{told:?}");
    for part in [
        "   0  ",
        "200 OK, text/html",
        "   0  <h1>a\\u{1b}[31m</h1>",
        "#[item(css = \"a::attr(href)\")]\n    home: Url,",
        "download_delay = 0",
        "saved fixtures/a.fixture.json",
        "HTTP/1.1 200 OK",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:?}");
    }
    assert!(
        told.stderr.contains("there is no command nonsense") && !told.stdout.contains('\u{1b}'),
        "{told:?}"
    );
    assert!(!dir.path().join("huntsman").exists(), "a pipe leaves no history");

    // A fixture is a page without a network.
    drop(site);
    let saved = run(huntsman(dir.path()).args(["shell", "fixtures/a.fixture.json", "-c", "css title::text"]));
    assert_eq!((saved.code, saved.stdout.as_str()), (Some(0), "A\n"), "{saved:?}");
}

#[test]
fn view_writes_a_private_copy_and_prints_its_path_without_a_browser() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages().start_blocking());
    let told = run(&mut on(dir.path(), &site, &["view", site.url("/a").as_str()]));
    assert_eq!(told.code, Some(0), "{told:?}");
    let path = Path::new(told.stdout.trim());
    let copy = fs::read_to_string(path).unwrap();
    assert!(
        path.starts_with(dir.path()) && copy.contains(&format!("<base href=\"{}\">", site.url("/a"))),
        "{copy}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        let told = run(on(dir.path(), &site, &["view", site.url("/a").as_str()]).env("BROWSER", "/bin/true"));
        assert!(told.code == Some(0) && told.stdout.starts_with("opened "), "{told:?}");
    }
}

#[test]
fn a_recorded_crawl_is_replayed_without_the_site_and_a_missing_exchange_fails_it() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages().start_blocking());
    let url = site.url("/").to_string();
    let crawl = |more: &[&str]| {
        let words = [&["crawl", &url, "--profile", "test", "-s", "robotstxt_obey=true"][..], more].concat();
        run(&mut on(dir.path(), &site, &words))
    };
    let recorded = crawl(&["--record", "web/", "--out", "one"]);
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let pages = |out: &str| {
        let text = fs::read_to_string(dir.path().join(out).join("pages.jsonl")).unwrap();
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["url"].to_string();
        let mut urls: Vec<String> = text.lines().map(line).collect();
        urls.sort();
        urls
    };
    let asked = site.targets().len();
    let replayed = crawl(&["--replay", "web", "--out", "two"]);
    assert_eq!((replayed.code, site.targets().len()), (Some(0), asked), "nothing is sent: {replayed:?}");
    assert_eq!((pages("two").len(), pages("two")), (2, pages("one")));

    let a = fs::read_dir(dir.path().join("web")).unwrap().map(|entry| entry.unwrap().path());
    let a = a
        .into_iter()
        .find(|path| path.to_str().unwrap().contains("-a-") && path.extension().unwrap() == "json");
    fs::remove_file(a.unwrap()).unwrap();
    let missing = crawl(&["--replay", "web", "--out", "three"]);
    assert_eq!((missing.code, site.targets().len()), (Some(1), asked), "{missing:?}");
    assert!(missing.stderr.contains("1 requests were not in the recording"), "{missing:?}");
    let drops = fs::read_to_string(dir.path().join("three/drops.jsonl")).unwrap();
    assert!(drops.contains("not_recorded") && drops.contains("is not among the exchanges in web"), "{drops}");
}

#[test]
fn parse_prints_what_a_spider_file_gives_for_a_page() {
    let (dir, site) = (tempfile::tempdir().unwrap(), pages().start_blocking());
    let item = "[items.page]\n[items.page.fields]\ntitle = { css = \"title::text\" }\n";
    let spider = format!("name = \"mills\"\nstart = \"{}\"\n{item}", site.url("/"));
    fs::write(dir.path().join("mills.toml"), spider).unwrap();
    let told = run(&mut on(dir.path(), &site, &["parse", "mills.toml", site.url("/").as_str(), "--json"]));
    assert!(
        told.code == Some(0)
            && told.stdout.starts_with("{\"item\":{")
            && told.stdout.contains("\"title\":\"Mills\""),
        "{told:?}"
    );
    let none = run(&mut on(dir.path(), &site, &["parse", "none.toml", site.url("/").as_str()]));
    assert!(none.code != Some(0) && none.stderr.contains("none.toml"), "{none:?}");
}
