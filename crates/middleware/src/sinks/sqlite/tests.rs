use huntsman_crawler::{Context, Persist, Pipeline, Settings};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

use super::*;

struct Bench {
    folder: tempfile::TempDir,
    cx: Context,
}

fn bench() -> Bench {
    Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(Settings::default()) }
}

/// All rows of a table with the names of its columns.
fn rows(path: &Path, table: &str) -> (Vec<String>, Vec<Vec<Cell>>) {
    // As another program would read it: while the feed writes, or after it was killed.
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
    let mut query = connection.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let width = names.len();
    let read = query.query_map([], |row| (0..width).map(|column| row.get(column)).collect());
    (names, read.unwrap().collect::<rusqlite::Result<_>>().unwrap())
}

fn column(path: &Path, table: &str) -> Vec<Cell> {
    rows(path, table).1.into_iter().map(|mut row| row.remove(0)).collect()
}

fn integers(numbers: impl IntoIterator<Item = i64>) -> Vec<Cell> {
    numbers.into_iter().map(Cell::Integer).collect()
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

impl Bench {
    fn path(&self) -> PathBuf {
        self.folder.path().join("a.sqlite")
    }

    async fn begin(&self, mut feed: Sqlite<Value>, items: &[Value]) -> Sqlite<Value> {
        feed.open(&self.cx).await.unwrap();
        for item in items {
            feed.process_item(item.clone(), &self.cx).await.unwrap();
        }
        Pipeline::<Value>::flush(&mut feed).await.unwrap();
        feed
    }

    async fn write(&self, feed: Sqlite<Value>, items: &[Value]) {
        let mut feed = self.begin(feed, items).await;
        Pipeline::<Value>::close(&mut feed).await.unwrap();
    }
}

#[tokio::test]
async fn values_keep_their_types_and_nested_ones_are_json() {
    let bench = bench();
    let items = [json!({
        "n": i64::MIN, "big": u64::MAX, "real": 0.1, "text": "1", "nul": "a\0b", "none": null, "yes": true,
        "list": ["x", 1], "map": {"k": "v"}
    })];
    bench.write(Sqlite::create(bench.path()).unwrap(), &items).await;
    let (names, rows) = rows(&bench.path(), "items");
    assert_eq!(names, ["n", "big", "real", "text", "nul", "none", "yes", "list", "map"]);
    let expected = [
        Cell::Integer(i64::MIN),
        text("18446744073709551615"),
        Cell::Real(0.1),
        text("1"),
        text("a\0b"),
        Cell::Null,
        Cell::Integer(1),
        text("[\"x\",1]"),
        text("{\"k\":\"v\"}"),
    ];
    assert_eq!(rows, [expected]);
    let left: Vec<_> = std::fs::read_dir(bench.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "a closed database is one file");
    assert_eq!(bench.cx.stats().get("feedexport/success_count/file"), 1);
}

#[tokio::test]
async fn new_fields_become_columns_and_odd_names_are_only_names() {
    let bench = bench();
    let odd = "a\"; DROP TABLE items; --";
    bench
        .write(
            Sqlite::create(bench.path()).unwrap(),
            &[json!({}), json!({odd: 1}), json!({"": 2, "x\0y": 3})],
        )
        .await;
    bench
        .write(Sqlite::append(bench.path()).unwrap(), &[json!({"Name": 4, "name": 5, "_rowid_": 6, odd: 7})])
        .await;
    let (names, rows) = rows(&bench.path(), "items");
    assert_eq!(names, [odd, "", "x\u{fffd}y", "Name", "name_2", "_rowid__2"]);
    assert_eq!(rows[0], vec![Cell::Null; 6]);
    assert_eq!(rows[1][0], Cell::Integer(1));
    assert_eq!(rows[2][1..3], integers([2, 3]));
    assert_eq!(rows[3][..1], integers([7]));
    assert_eq!(rows[3][3..], integers([4, 5, 6]));
}

#[tokio::test]
async fn fields_beyond_the_limit_are_kept_together() {
    let mut settings = Settings::default();
    settings.change(|own: &mut FeedSettings| own.feed_max_columns = 2);
    let bench = Bench { cx: Context::detached(settings), ..bench() };
    let items = [json!({"a": 1}), json!({"a": 2, "b": 3, "c": [4], "d": "5"}), json!({"_rest": 6})];
    bench.write(Sqlite::create(bench.path()).unwrap(), &items).await;
    let (names, rows) = rows(&bench.path(), "items");
    assert_eq!(names, ["a", "b", "_rest"]);
    assert_eq!(rows[1], [Cell::Integer(2), Cell::Integer(3), text("{\"c\":[4],\"d\":\"5\"}")]);
    assert_eq!(rows[2][2], text("{\"_rest\":6}"));
}

#[tokio::test]
async fn fields_are_chosen_renamed_and_filtered() {
    let bench = bench();
    let feed = Sqlite::create(bench.path()).unwrap().fields(["c", "a"]).rename("a", "first").table("of mine");
    let feed = feed.filter(|item: &Value| item["a"] != 2);
    bench.write(feed, &[json!({"a": 1, "b": 0}), json!({"a": 2})]).await;
    let (names, rows) = rows(&bench.path(), "of mine");
    assert_eq!(names, ["c", "first"]);
    assert_eq!(rows, [[Cell::Null, Cell::Integer(1)]]);
}

#[tokio::test]
async fn tables_of_one_database_are_written_side_by_side() {
    let bench = bench();
    let named = |table: &str| format!("{}?table={table}", bench.path().display());
    let mut one = bench.begin(Sqlite::append(named("one")).unwrap(), &[json!({"n": 1})]).await;
    let mut two = bench.begin(Sqlite::append(named("two")).unwrap(), &[json!({"n": 2})]).await;
    one.process_item(json!({"n": 3}), &bench.cx).await.unwrap();
    two.process_item(json!({"n": 4}), &bench.cx).await.unwrap();
    Pipeline::<Value>::close(&mut one).await.unwrap();
    Pipeline::<Value>::close(&mut two).await.unwrap();
    bench.write(Sqlite::overwrite(named("two")).unwrap(), &[json!({"m": 5})]).await;
    assert_eq!(column(&bench.path(), "one"), integers([1, 3]));
    assert_eq!(rows(&bench.path(), "two"), (vec!["m".to_owned()], vec![integers([5])]));
}

#[tokio::test]
async fn a_killed_feed_has_what_was_flushed_and_goes_on() {
    let bench = bench();
    let feed = bench.begin(Sqlite::create(bench.path()).unwrap(), &[json!({"n": 1}), json!({"n": 2})]).await;
    let mut killed = feed;
    killed.process_item(json!({"n": 3}), &bench.cx).await.unwrap();
    assert_eq!(column(&bench.path(), "items"), integers([1, 2]), "others read while it is written");
    // The process is killed: nothing is closed.
    std::mem::forget(killed);
    assert_eq!(column(&bench.path(), "items"), integers([1, 2]));
    bench.write(Sqlite::append(bench.path()).unwrap(), &[json!({"n": 4})]).await;
    assert_eq!(column(&bench.path(), "items"), integers([1, 2, 4]));
}

#[tokio::test]
async fn rows_behind_the_position_of_a_job_are_cut_and_a_new_job_drops_the_table() {
    let bench = bench();
    let (feed, position) = Sqlite::of_job(bench.path()).unwrap();
    position.load(None).unwrap();
    let mut feed = bench.begin(feed, &[json!({"n": 1, "rowid": "x"}), json!({"n": 2})]).await;
    let saved = position.save().unwrap().unwrap();
    position.sync().unwrap();
    feed.process_item(json!({"n": 3}), &bench.cx).await.unwrap();
    Pipeline::<Value>::flush(&mut feed).await.unwrap();
    assert_eq!(column(&bench.path(), "items").len(), 3);
    std::mem::forget((feed, position));

    let (feed, position) = Sqlite::of_job(bench.path()).unwrap();
    position.load(Some(&saved)).unwrap();
    bench.write(feed, &[json!({"n": 4})]).await;
    position.sync().unwrap();
    assert_eq!(column(&bench.path(), "items"), integers([1, 2, 4]));
    assert_eq!(position.save().unwrap().unwrap(), b"3");

    let (_feed, position) = Sqlite::<Value>::of_job(bench.path()).unwrap();
    let error = position.load(Some(b"9")).unwrap_err().to_string();
    assert!(error.contains("ends with row 3") && error.contains("--fresh"), "{error}");
    assert!(position.load(Some(b"x")).is_err());
    position.load(None).unwrap();
    let tables = Connection::open(bench.path()).unwrap();
    let left: i64 = tables.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[tokio::test(start_paused = true)]
async fn rows_are_committed_by_number_and_by_time() {
    let mut settings = Settings::default();
    settings.change(|own: &mut FeedSettings| own.feed_flush_items = 3);
    let bench = Bench { cx: Context::detached(settings), ..bench() };
    let mut feed = bench.begin(Sqlite::create(bench.path()).unwrap().fields(["n"]), &[]).await;
    let table = |expected: usize| match expected {
        0 => true,
        _ => column(&bench.path(), "items").len() == expected,
    };
    for expected in [0, 0, 3, 3] {
        feed.process_item(json!({"n": 1}), &bench.cx).await.unwrap();
        assert!(table(expected), "{expected}");
    }
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    feed.process_item(json!({"n": 1}), &bench.cx).await.unwrap();
    assert!(table(5));
}

#[tokio::test]
async fn what_cannot_be_written_says_what_to_do() {
    let bench = bench();
    std::fs::write(bench.path(), "some text that is no database, and long enough to have a header of one")
        .unwrap();
    let error = Sqlite::<Value>::overwrite(bench.path()).unwrap_err().to_string();
    assert!(error.contains("no SQLite database") && error.contains("a.sqlite"), "{error}");
    assert!(Sqlite::<Value>::create(bench.path()).unwrap_err().to_string().contains("choose another name"));
    let mut feed = Sqlite::create(bench.folder.path().join("b.sqlite")).unwrap();
    feed.open(&bench.cx).await.unwrap();
    let error = feed.process_item(json!("no fields"), &bench.cx).await.unwrap_err().to_string();
    assert!(error.contains("named fields") && error.contains("b.sqlite"), "{error}");
    feed.process_item(json!({"n": 1}), &bench.cx).await.unwrap();
    Pipeline::<Value>::close(&mut feed).await.unwrap();
    assert_eq!(column(&bench.folder.path().join("b.sqlite"), "items"), integers([1]));
}

#[cfg(unix)]
#[test]
fn a_database_is_private_and_a_planted_link_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let bench = bench();
    let _feed = Sqlite::<Value>::create(bench.path()).unwrap();
    for entry in std::fs::read_dir(bench.folder.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let link = bench.folder.path().join("link.sqlite");
    symlink(bench.path(), &link).unwrap();
    let error = Sqlite::<Value>::append(&link).unwrap_err().to_string();
    assert!(error.contains("symbolic link"), "{error}");
}
