//! Scenarios of a spider that uses the library and writes feeds: lines and tables that belong to a job, and files
//! that each run writes anew; and tables for other programs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use huntsman::middleware::sinks::{Csv, Json, JsonLines, Xml};
use huntsman::prelude::*;
use huntsman::store::Backend;
use huntsman::{Job, crawl};

use super::crawls::{addresses, site};
use super::records::{each_once, field, lines, none_twice};
use super::scenario::{Checked, Moment, Scenario};

/// The environment variable with the start address; this test binary also runs as the spider.
const START: &str = "CRASH_TEST_SPIDER_START";
/// If this one is set, too, the spider writes tables.
#[cfg(all(feature = "parquet", feature = "sqlite"))]
const TABLES: &str = "CRASH_TEST_SPIDER_TABLES";

#[derive(Clone, Serialize)]
struct Found {
    url: String,
    title: String,
}

/// Runs the spider, if the variable is set.
#[test]
fn spider() {
    let Ok(start) = std::env::var(START) else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run_spider(&start)).unwrap_or_else(|cause| {
        eprintln!("{cause}");
        std::process::exit(1)
    });
}

async fn run_spider(start: &str) -> Result<()> {
    let spider = spider_fn([start.to_owned()], |page: &Page, out: &mut Output<Found>| {
        out.item(Found { url: page.url().to_string(), title: page.title().unwrap_or_default().to_owned() });
        out.follow_links(page);
        Ok(())
    });
    let crawl = crawl(spider)
        .profile(Profile::Test)
        .set("scope", "host")
        .set("allow_addresses", vec!["127.0.0.1:*"])
        .set("concurrent_requests_per_domain", 4)
        .set("job_commit_interval", 0.02)
        .set("job_sync", "full")
        .job(Job::open("job", Backend::Redb)?);
    #[cfg(all(feature = "parquet", feature = "sqlite"))]
    if std::env::var_os(TABLES).is_some() {
        let (database, database_end) = huntsman::middleware::sinks::Sqlite::of_job("items.sqlite")?;
        let (columns, columns_end) = huntsman::middleware::sinks::Parquet::of_job("items.parquet")?;
        let crawl = crawl.pipeline(database).persist(database_end).pipeline(columns).persist(columns_end);
        return crawl.run().await.map(drop);
    }
    let (rows, rows_end) = JsonLines::of_job("items.jsonl")?;
    let (table, table_end) = Csv::of_job("items.csv")?;
    crawl
        .pipeline(rows)
        .persist(rows_end)
        .pipeline(table)
        .persist(table_end)
        .pipeline(Json::overwrite("items.json")?)
        .pipeline(Xml::overwrite("items.xml")?)
        .pipeline(JsonLines::overwrite("items.jsonl.gz")?)
        .run()
        .await?;
    Ok(())
}

/// The command that runs this test binary as the spider.
fn spider_process(start: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test has a binary"));
    command.args(["crash::feeds::spider", "--exact", "--nocapture"]).env(START, start).current_dir(directory);
    command
}

/// A crawl with feeds in all formats.
pub(crate) fn feeds() -> Scenario {
    let site = site();
    let (start, [pages, _]) = (site.url("/").to_string(), addresses(&site));
    let mut scenario = Scenario::new(
        move |directory| spider_process(&start, directory),
        move |directory, moment| {
            each_once("items.jsonl", &pages, field(&lines(&directory.join("items.jsonl"))?, "url"))?;
            each_once("items.csv", &pages, table(&directory.join("items.csv"))?)?;
            for name in ["items.json", "items.xml", "items.jsonl.gz"] {
                made_anew(name, &directory.join(name), &pages, moment)?;
            }
            Ok(())
        },
    );
    scenario.sites.push(site);
    scenario
}

/// A crawl with an SQLite database and a Parquet file, which belong to a job.
#[cfg(all(feature = "parquet", feature = "sqlite"))]
pub(crate) fn tables() -> Scenario {
    let site = site();
    let (start, [pages, _]) = (site.url("/").to_string(), addresses(&site));
    let command = move |directory: &Path| {
        let mut command = spider_process(&start, directory);
        command.env(TABLES, "");
        command
    };
    let mut scenario = Scenario::new(command, move |directory, _| {
        each_once("items.sqlite", &pages, database(&directory.join("items.sqlite"))?)?;
        let journal = lines(&directory.join("items.parquet.jsonl"))?;
        each_once("items.parquet.jsonl", &pages, field(&journal, "url"))?;
        let file =
            fs::read(directory.join("items.parquet")).map_err(|cause| format!("items.parquet: {cause}"))?;
        match file.starts_with(b"PAR1") && file.ends_with(b"PAR1") {
            true => Ok(()),
            false => Err("items.parquet: it is not whole".to_owned()),
        }
    });
    scenario.sites.push(site);
    scenario
}

#[cfg(all(feature = "parquet", feature = "sqlite"))]
fn database(path: &Path) -> Result<Vec<String>, String> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let database = rusqlite::Connection::open(path)?;
        database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))?;
        let mut rows = database.prepare("SELECT url FROM items")?;
        rows.query_map([], |row| row.get(0))?.collect()
    };
    read().map_err(|cause| format!("{}: {cause}", path.display()))
}

fn table(path: &Path) -> Result<Vec<String>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
    let rows = reader.records().map(|row| row.map(|row| row[0].to_owned()));
    rows.collect::<Result<_, _>>().map_err(|cause| format!("{}: {cause}", path.display()))
}

/// Checks a file that has the items of the last run only, and is complete.
fn made_anew(name: &str, path: &Path, pages: &[String], moment: Moment) -> Checked {
    let wrong = |cause: &dyn std::fmt::Display| format!("{name}: {cause}");
    let mut bytes = fs::read(path).map_err(|cause| wrong(&cause))?;
    if name.ends_with(".gz") {
        let packed = std::mem::take(&mut bytes);
        GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).map_err(|cause| wrong(&cause))?;
    }
    let text = String::from_utf8(bytes).map_err(|cause| wrong(&cause))?;
    let is_whole = match name {
        "items.json" => text.trim_end().ends_with(']'),
        "items.xml" => text.trim_end().ends_with("</items>"),
        _ => text.is_empty() || text.ends_with('\n'),
    };
    if !is_whole {
        return Err(wrong(&"it has no end"));
    }
    // No address of the site is a prefix of another one.
    let found = text.split("http://").skip(1).map(|rest| {
        let end = rest.find(['"', '<', ',']).unwrap_or(rest.len());
        format!("http://{}", &rest[..end])
    });
    match moment {
        Moment::Undisturbed => each_once(name, pages, found),
        Moment::Completed => none_twice(name, pages, found.collect()),
    }
}
