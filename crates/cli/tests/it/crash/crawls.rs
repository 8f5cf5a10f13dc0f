//! Scenarios of crawls and sweeps, and of the further files that they write.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use huntsman::sweep::TextIndex;
use huntsman_testkit::{Answer, RunningSite, Site};
use serde_json::Value;

use super::records::{each_once, field, json, lines, none_twice};
use super::scenario::{Checked, Moment, Scenario};
use crate::common::{huntsman, run};

/// Number of pages of the site; every fifth links to a page that does not exist.
const PAGES: usize = 24;

/// The path of a page.
fn path(page: usize) -> String {
    if page == 0 { "/".to_owned() } else { format!("/{page}") }
}

/// Words that are on no other page.
fn words(page: usize) -> String {
    (page * 300..page * 300 + 80).map(|n| format!("word{} ", n * 7_919 % 99_991)).collect()
}

/// The address of the source that a page links to, if it does.
fn source(page: usize, port: u16) -> Option<String> {
    (page % 3 == 1).then(|| format!("http://source.test:{port}/{page}"))
}

/// A tree of pages with texts of their own. Each takes a moment, so that commits fall between them.
pub(crate) fn site() -> RunningSite {
    let answer = |page: usize, port: &str| {
        let children = [2 * page + 1, 2 * page + 2].into_iter().filter(|child| *child < PAGES);
        let mut links: Vec<String> = children.map(path).collect();
        links.extend(page.is_multiple_of(5).then(|| format!("/gone/{page}")));
        links.extend(source(page, port.parse().expect("a port")));
        let links: String = links.iter().map(|link| format!("<a href='{link}'>{link}</a> ")).collect();
        Answer::html(format!("<title>{page}</title><p>{}</p>{links}", words(page)))
            .delay(Duration::from_millis(4))
    };
    Site::builder()
        .route("/*", move |asked| {
            let port =
                asked.header("host").and_then(|host| host.rsplit(':').next()).unwrap_or("0").to_owned();
            match asked.path()[1..]
                .parse()
                .or_else(|cause| if asked.path() == "/" { Ok(0) } else { Err(cause) })
            {
                Ok(page) if page < PAGES => answer(page, &port),
                _ => Answer::status(404),
            }
        })
        .host("source.test")
        .route("/*", |asked| {
            let page = asked.path()[1..].parse().unwrap_or(0);
            Answer::html(format!("<p>Before. {} After.</p>", words(page)))
        })
        .start_blocking()
}

/// All addresses of the site: those of pages, and those that do not exist.
pub(crate) fn addresses(site: &RunningSite) -> [Vec<String>; 2] {
    let pages = (0..PAGES).map(|page| site.url(&path(page)).to_string()).collect();
    let gone = (0..PAGES).step_by(5).map(|page| site.url(&format!("/gone/{page}")).to_string()).collect();
    [pages, gone]
}

/// Flags for a crawl of the site into `out` with many commits.
fn flags(command: &mut Command, site: &str, store: &str, sync: &str) {
    command.args([site, "--profile", "test", "--out", "out", "--allow-address", "127.0.0.1:*"]);
    command.args([
        "--store",
        store,
        "--concurrency",
        "4",
        "--per-host",
        "4",
        "--set",
        "job_commit_interval=0.02",
    ]);
    command.args(["--set", "log_level=warn", "--set", &format!("job_sync={sync}")]);
}

/// Checks that each address is in exactly one record, and that the report exists.
fn whole_crawl(out: &Path, [pages, gone]: &[Vec<String>; 2]) -> Checked {
    let found = lines(&out.join("pages.jsonl"))?;
    let drops = lines(&out.join("drops.jsonl"))?;
    each_once("pages.jsonl", pages, field(&found, "url"))?;
    // Links to other hosts are refused, and a resumed crawl need not record that again.
    let drops: Vec<String> =
        field(&drops, "url").into_iter().filter(|url| url.contains("127.0.0.1")).collect();
    each_once("drops.jsonl", gone, drops)?;
    let report = json(&out.join("report.json"))?;
    if report["pages"] != PAGES {
        return Err(format!("report.json counts {} pages of {PAGES}", report["pages"]));
    }
    Ok(())
}

/// A crawl with additional flags and an additional check.
fn crawl_with(
    [store, sync]: [&'static str; 2],
    more: &'static [&'static str],
    check: impl Fn(&Path, Moment) -> Checked + 'static,
) -> Scenario {
    let site = site();
    let (start, addresses) = (site.url("/").to_string(), addresses(&site));
    let command = move |directory: &Path| {
        let mut command = huntsman(directory);
        command.arg("crawl");
        flags(&mut command, &start, store, sync);
        command.args(more);
        command
    };
    let mut scenario = Scenario::new(command, move |directory, moment| {
        whole_crawl(&directory.join("out"), &addresses).and_then(|()| check(directory, moment))
    });
    scenario.sites.push(site);
    scenario.survives_power_cuts = sync == "full";
    scenario
}

/// `crawl` with a store.
pub(crate) fn crawl(store: &'static str, sync: &'static str) -> Scenario {
    crawl_with([store, sync], &[], |_, _| Ok(()))
}

/// `crawl --fresh` over a finished crawl. A run without the flag continues from any state.
pub(crate) fn fresh() -> Scenario {
    let mut scenario = crawl("redb", "full");
    let site = scenario.sites[0].url("/").to_string();
    let command = move |directory: &Path| {
        let mut command = huntsman(directory);
        command.arg("crawl");
        flags(&mut command, &site, "redb", "full");
        command
    };
    let again = command.clone();
    let first = template(command.clone());
    scenario.prepare = Box::new(move |directory| copy(first.path(), directory));
    scenario.command = Box::new(move |directory| {
        let mut command = command(directory);
        command.arg("--fresh");
        command
    });
    scenario.again = Some(Box::new(again));
    scenario
}

/// A directory in which a command ran to its end.
fn template(command: impl Fn(&Path) -> Command) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = run(&mut command(directory.path()));
    assert_eq!(said.code, Some(0), "{said:?}");
    directory
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the disk takes it");
    for entry in fs::read_dir(from).expect("a directory") {
        let (entry, to) = (entry.expect("a directory"), to.to_owned());
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("the disk takes it");
        }
    }
}

/// `crawl --index`.
pub(crate) fn indexed() -> Scenario {
    crawl_with(["redb", "full"], &["--index", "index"], |directory, _| {
        let index = TextIndex::open(directory.join("index")).map_err(|cause| cause.to_string())?;
        match index.pages().map_err(|cause| cause.to_string())? {
            found if found == PAGES as u64 => Ok(()),
            found => Err(format!("the index has {found} pages of {PAGES}")),
        }
    })
}

/// `crawl --record`; a response may be recorded twice around a crash, but none is missing.
pub(crate) fn recorded() -> Scenario {
    let mut scenario = crawl_with(["redb", "full"], &["--record", "crawl.jsonl.zst"], |_, _| Ok(()));
    let all = addresses(&scenario.sites[0]).concat();
    let crawled = scenario.check;
    scenario.check = Box::new(move |directory, moment| {
        crawled(directory, moment)?;
        let packed =
            fs::read(directory.join("crawl.jsonl.zst")).map_err(|cause| format!("the recording: {cause}"))?;
        let text = zstd::decode_all(&packed[..]).map_err(|cause| format!("the recording: {cause}"))?;
        let lines = String::from_utf8_lossy(&text).into_owned();
        let found = lines.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>();
        let found = found.map_err(|cause| format!("the recording: {cause}"))?;
        if let Some(at) = (0..found.len()).find(|at| found[*at]["n"] != at + 1) {
            return Err(format!("line {} of the recording has the number {}", at + 1, found[at]["n"]));
        }
        let mut urls = field(&found, "url");
        if moment == Moment::Completed {
            urls.sort();
            urls.dedup();
        }
        each_once("the recording", &all, urls)
    });
    scenario
}

const CACHE: &[&str] = &["--set", "httpcache_enabled=true", "--set", "httpcache_dir=cache"];

/// A crawl with an HTTP cache, which may lose entries in a crash but must never be damaged.
pub(crate) fn cached() -> Scenario {
    let mut scenario = crawl_with(["redb", "full"], CACHE, |_, _| Ok(()));
    let [pages, gone] = addresses(&scenario.sites[0]);
    let (all, crawled) = ([pages, gone].concat(), scenario.check);
    scenario.check = Box::new(move |directory, moment| {
        crawled(directory, moment)?;
        let said = run(huntsman(directory).args(["cache", "ls", "cache", "--json"]));
        if said.code != Some(0) {
            return Err(format!("cache ls: {}", said.stderr));
        }
        let listed = said.stdout.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>();
        let stored = field(&listed.map_err(|cause| format!("cache ls: {cause}"))?, "url");
        match moment {
            Moment::Undisturbed => each_once("the cache", &all, stored),
            Moment::Completed => none_twice("the cache", &all, stored),
        }
    });
    scenario
}

/// `cache export-warc`.
pub(crate) fn export() -> Scenario {
    let crawl = cached();
    let first = template(crawl.command);
    let export = |directory: &Path| {
        let mut command = huntsman(directory);
        command.args(["cache", "export-warc", "cache", "--out", "cache.warc.gz"]);
        command
    };
    let whole = {
        let directory = tempfile::tempdir().expect("a temporary directory");
        copy(first.path(), directory.path());
        let said = run(&mut export(directory.path()));
        assert_eq!(said.code, Some(0), "{said:?}");
        records_of(&directory.path().join("cache.warc.gz")).expect("the export is whole")
    };
    let mut scenario = Scenario::new(export, move |directory, _| {
        let found = records_of(&directory.join("cache.warc.gz"))?;
        if found == whole { Ok(()) } else { Err(format!("{found} of {whole} records")) }
    });
    scenario.prepare = Box::new(move |directory| copy(first.path(), directory));
    scenario.makes_a_new_file = true;
    scenario
}

/// The number of records in a WARC file; an error if the file is damaged.
fn records_of(path: &Path) -> Result<usize, String> {
    let file = fs::File::open(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut text)
        .map_err(|cause| format!("{}: {cause}", path.display()))?;
    Ok(text.windows(8).filter(|window| window == b"WARC/1.1").count())
}

/// `sweep` of a site; every third page is a copy of a page that it links to.
pub(crate) fn sweep() -> Scenario {
    let site = site();
    let (start, port, addresses) = (site.url("/").to_string(), site.port(), addresses(&site));
    let name = format!("source.test:{port}");
    let command = move |directory: &Path| {
        let mut command = huntsman(directory);
        command.arg("sweep");
        flags(&mut command, &start, "redb", "full");
        command.args([
            "--resolve",
            &format!("{name}:127.0.0.1"),
            "--allow-address",
            &name,
            "--no-short-circuit",
        ]);
        command
    };
    let mut scenario = Scenario::new(command, move |directory, _| {
        let out = directory.join("out");
        whole_crawl(&out, &addresses)?;
        let found = lines(&out.join("sweep.jsonl"))?;
        let pair = |article: &str, source: &str| format!("{article} {source}");
        let expected: Vec<String> =
            (0..PAGES).filter_map(|page| Some(pair(&addresses[0][page], &source(page, port)?))).collect();
        let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let pairs = found.iter().map(|line| pair(&text(line, "article"), &text(line, "source")));
        each_once("sweep.jsonl", &expected, pairs)?;
        if let Some(line) = found.iter().find(|line| line["status"] != "compared") {
            return Err(format!("sweep.jsonl: {line}"));
        }
        let report =
            fs::read_to_string(out.join("sweep.html")).map_err(|cause| format!("sweep.html: {cause}"))?;
        match report.matches("<section id=\"source-").count() {
            sections if sections == expected.len() => Ok(()),
            sections => Err(format!("sweep.html has {sections} comparisons of {}", expected.len())),
        }
    });
    scenario.sites.push(site);
    scenario
}
