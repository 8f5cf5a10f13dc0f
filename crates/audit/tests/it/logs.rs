//! Log files of servers beside an audit.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman_audit::{AuditBuilder, LogReader, Logs, audit};
use huntsman_testkit::{Reply, ScriptedDownloader};
use serde_json::{Map, Value, json};

use crate::{issues_of, urls_of};

const GOOGLE: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// An audit of a site whose page /lone no page links to.
fn of(logs: Logs) -> AuditBuilder {
    let web = ScriptedDownloader::new()
        .respond("https://a.example/", Reply::html("<a href=/mill>Mill</a><a href='/list?page=2'>List</a>"))
        .respond("https://a.example/mill", Reply::html("<a href=/>Front</a>"))
        .respond("https://a.example/list?page=2", Reply::html("<a href=/>Front</a>"))
        .respond("https://a.example/lone", Reply::html("<a href=/>Front</a>"));
    audit(["https://a.example/"]).downloader(web).options(|options| options.logs(Some(logs)))
}

/// A line of the combined format.
fn hit(address: &str, target: &str, status: u16, agent: &str) -> String {
    format!(
        "{address} - - [26/Nov/2026:14:03:00 +0000] \"GET {target} HTTP/1.1\" {status} 9 \"-\" \"{agent}\"\n"
    )
}

fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn rows(path: &Path) -> Vec<Value> {
    let mut lines = csv::Reader::from_path(path).unwrap();
    lines.deserialize::<Map<String, Value>>().map(|row| Value::Object(row.unwrap())).collect()
}

/// The columns of the row whose first column has this value.
fn row<'a>(rows: &'a [Value], first: &str) -> &'a Value {
    rows.iter().find(|row| row.as_object().unwrap().values().next() == Some(&json!(first))).unwrap()
}

/// Two logs: one that names no host and one that does.
fn logs(dir: &Path) -> [PathBuf; 2] {
    let lines = [
        hit("66.249.66.1", "/mill", 200, GOOGLE).repeat(3),
        hit("66.249.66.1", "/lone", 200, GOOGLE),
        hit("66.249.66.1", "/gone", 404, GOOGLE),
        hit("66.249.66.1", "/cart?add=7", 200, GOOGLE),
        hit("66.249.66.1", "/logo.png", 200, GOOGLE),
        hit("1.2.3.4", "/private", 200, "Firefox/140.0"),
        "garbage\n\n".to_owned(),
        "1.2.3.4 - - [26/Nov/2026:14:03:00 +0000] \"POST /mill HTTP/1.1\" 200 9 \"-\" \"x\"\n".to_owned(),
    ];
    let packed = dir.join("access.log.1.gz");
    let mut gz = GzEncoder::new(File::create(&packed).unwrap(), Compression::default());
    gz.write_all(lines.concat().as_bytes()).unwrap();
    gz.finish().unwrap();
    let json = "{\"host\":\"A.example\",\"request\":\"GET /mill HTTP/2.0\",\"status\":200,\"http_user_agent\":\"bingbot/2.0\",\"time\":\"2026-11-27T00:00:00Z\"}\n\
                {\"host\":\"b.example\",\"request\":\"GET /mill HTTP/2.0\",\"status\":200,\"http_user_agent\":\"bingbot/2.0\"}\n\
                {\"host\":\"a.example:443\",\"request\":\"GET /list?page=2 HTTP/2.0\",\"status\":503,\"http_user_agent\":\"GPTBot\"}\n";
    [packed, file(dir, "access.json", json)]
}

#[tokio::test(start_paused = true)]
async fn pages_are_told_with_the_robots_that_ask_for_them_and_what_stands_only_in_logs_is_an_orphan() {
    let dir = tempfile::tempdir().unwrap();
    let audit = of(Logs::read(logs(dir.path())).unwrap()).run().await.unwrap();
    let orphan = &issues_of(&audit, "orphan")[0];
    assert_eq!(
        (orphan.url.as_str(), &orphan.evidence.value),
        ("https://a.example/lone", &json!("only in server logs"))
    );
    assert_eq!(urls_of(&audit, "orphan").len(), 1);
    // What has a query, is a file, or was not asked for by a robot is not requested because of a log.
    for path in ["cart?add=7", "logo.png", "private", "gone"] {
        assert!(audit.site.get(&format!("https://a.example/{path}")).is_none(), "{path}");
    }
    audit.write(dir.path()).unwrap();
    let table = rows(&dir.path().join("csv/logs.csv"));
    let mill = row(&table, "https://a.example/mill");
    assert_eq!(
        (
            &mill["known_as"],
            &mill["requests"],
            &mill["robot_requests"],
            &mill["answers_2xx"],
            &mill["robots"]
        ),
        (&json!("page"), &json!(4), &json!(4), &json!(4), &json!("Googlebot 3; bingbot 1"))
    );
    assert_eq!(mill["last_robot"], "2026-11-27T00:00:00Z");
    let private = row(&table, "https://a.example/private");
    assert_eq!(
        (&private["known_as"], &private["requests"], &private["robot_requests"]),
        (&json!(""), &json!(1), &json!(0))
    );
    assert_eq!(row(&table, "https://a.example/list?page=2")["answers_5xx"], json!(1));
    // Nobody asked for the front page.
    let front = row(&table, "https://a.example/");
    assert_eq!((&front["requests"], &front["known_as"]), (&json!(0), &json!("page")));
    let robots = rows(&dir.path().join("csv/log_robots.csv"));
    let google = row(&robots, "Googlebot");
    assert_eq!(
        (&google["requests"], &google["urls"], &google["answers_4xx"], &google["verification"]),
        (&json!(7), &json!(5), &json!(1), &json!("none: the User-Agent says so"))
    );
    let pages = rows(&dir.path().join("csv/pages.csv"));
    assert_eq!(row(&pages, "https://a.example/mill")["log_robot_requests"], json!(4));
    let told = audit.totals()["logs"].clone();
    assert_eq!(
        (&told["requests"], &told["other_hosts"], &told["without_page"]),
        (&json!(10), &json!(1), &json!(1))
    );
    assert_eq!(told["period"], json!(["2026-11-26T14:03:00Z", "2026-11-27T00:00:00Z"]));
    assert!(
        audit.notes[0].ends_with(
            "access.log.1.gz: 1 of 10 lines could not be read; line 9: it has no time in brackets"
        ),
        "{:?}",
        audit.notes
    );
    assert_eq!(audit.notes[1], "1 requests in the logs are for other hosts, such as b.example");
    let report = audit.html().unwrap();
    let view = report.split("id=\"view-logs\"").nth(1).unwrap().split("</section>").next().unwrap();
    for shown in [
        "10 requests for the site",
        "no address was verified",
        "/private",
        "Pages that no robot visits",
        "1 of 10 lines",
    ] {
        assert!(view.contains(shown), "{shown}\n{view}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_room_for_urls_of_logs_they_are_told_and_not_requested() {
    let dir = tempfile::tempdir().unwrap();
    let logs = LogReader::new().max_urls(0).sorted_bytes(1).read(logs(dir.path())).unwrap();
    let audit = of(logs).run().await.unwrap();
    assert!(urls_of(&audit, "orphan").is_empty() && audit.site.get("https://a.example/lone").is_none());
    audit.write(dir.path()).unwrap();
    let table = rows(&dir.path().join("csv/logs.csv"));
    let lone = row(&table, "https://a.example/lone");
    assert_eq!((&lone["known_as"], &lone["robot_requests"]), (&json!(""), &json!(1)));
    assert_eq!(
        row(&table, "https://a.example/mill")["requests"],
        json!(4),
        "sums are the same if they are sorted on disk"
    );
}

#[tokio::test(start_paused = true)]
async fn a_robot_is_confirmed_by_the_addresses_of_its_operator() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        [hit("66.249.66.1", "/mill", 200, GOOGLE), hit("6.6.6.6", "/mill", 200, GOOGLE).repeat(2)].concat();
    let log = file(dir.path(), "access.log", &text);
    let ranges = file(dir.path(), "googlebot.json", "{\"prefixes\": [{\"ipv4Prefix\": \"66.249.64.0/19\"}]}");
    let logs = LogReader::new().ranges("Googlebot", ranges).unwrap().read([log]).unwrap();
    let audit = of(logs).run().await.unwrap();
    audit.write(dir.path()).unwrap();
    let robots = rows(&dir.path().join("csv/log_robots.csv"));
    assert_eq!(
        (&robots[0]["confirmed"], &robots[0]["contradicted"], &robots[0]["verification"]),
        (&json!(1), &json!(2), &json!("by the addresses that its operator publishes"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_log_without_user_agents_tells_that_robots_are_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let line = "1.2.3.4 - - [26/Nov/2026:14:03:00 +0000] \"GET /lone HTTP/1.1\" 200 9\n";
    let audit = of(Logs::read([file(dir.path(), "access.log", line)]).unwrap()).run().await.unwrap();
    assert_eq!(urls_of(&audit, "orphan"), ["https://a.example/lone"]);
    assert_eq!(audit.notes, ["the logs name no User-Agent, so robots cannot be told from readers"]);
    let other = "{\"host\":\"b.example\",\"uri\":\"/\",\"status\":200}\n";
    let audit = of(Logs::read([file(dir.path(), "other.log", other)]).unwrap()).run().await.unwrap();
    assert_eq!(
        audit.notes,
        ["1 requests in the logs are for other hosts, such as b.example; none is for the site"]
    );
}

#[test]
fn files_that_are_no_logs_are_refused_and_damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    for (path, said) in [
        (dir.path().join("nowhere.log"), "nowhere.log: No such file"),
        (dir.path().to_owned(), "it is a folder; name the files in it"),
        (
            file(dir.path(), "poem.txt", "roses\nare red\n"),
            "none of its 2 lines is in the common, the combined or the JSON format; line 1: it has no time",
        ),
        (
            file(dir.path(), "iis.log", "#Fields: date time cs-uri-stem\n2026-11-26 00:00:00 /\n"),
            "line 1: it is a line of the W3C extended format",
        ),
        (file(dir.path(), "broken.gz", "\u{1f}\u{fffd}"), "none of its 1 lines"),
    ] {
        let error = Logs::read([path]).unwrap_err();
        assert!(error.is_usage() && error.to_string().contains(said), "{error}");
    }
    let mut gz = GzEncoder::new(Vec::new(), Compression::none());
    gz.write_all(hit("1.2.3.4", "/", 200, "x").repeat(5_000).as_bytes()).unwrap();
    let whole = gz.finish().unwrap();
    let cut = dir.path().join("cut.gz");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let logs = Logs::read([cut]).unwrap();
    let note = logs.files()[0].note().unwrap();
    assert!(
        logs.files()[0].lines > 1_000
            && note.contains("cut.gz: reading ended at line")
            && note.ends_with("the lines before it count"),
        "{note}"
    );
    let long = format!(
        "{}{}\n{}",
        hit("1.2.3.4", "/", 200, "x"),
        "x".repeat(200_000),
        hit("1.2.3.4", "/", 200, "x")
    );
    let logs = Logs::read([file(dir.path(), "long.log", &long)]).unwrap();
    assert_eq!((logs.files()[0].lines, logs.files()[0].unread), (3, 1));
    assert!(Logs::read([file(dir.path(), "empty.log", "")]).unwrap().files()[0].note().is_none());
}
