use std::fs;
use std::path::PathBuf;

use huntsman_crawler::{Context, Persist, Pipeline, Settings};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::json;

use super::*;

struct Bench {
    folder: tempfile::TempDir,
    cx: Context,
}

fn bench() -> Bench {
    Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(Settings::default()) }
}

/// All rows of a file, with the names of their columns.
fn rows(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect()
}

fn column(path: &Path, name: &str) -> Vec<Field> {
    let cell = |row: Vec<(String, Field)>| row.into_iter().find(|(column, _)| column == name).unwrap().1;
    rows(path).into_iter().map(cell).collect()
}

fn texts(texts: &[&str]) -> Vec<Field> {
    texts.iter().map(|text| Field::Str((*text).to_owned())).collect()
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    async fn begin(&self, mut feed: Parquet<Value>, items: &[Value]) -> Parquet<Value> {
        feed.open(&self.cx).await.unwrap();
        for item in items {
            feed.process_item(item.clone(), &self.cx).await.unwrap();
        }
        Pipeline::<Value>::flush(&mut feed).await.unwrap();
        feed
    }

    async fn write(&self, feed: Parquet<Value>, items: &[Value]) {
        let mut feed = self.begin(feed, items).await;
        Pipeline::<Value>::close(&mut feed).await.unwrap();
    }
}

#[tokio::test]
async fn columns_have_types_that_fit_all_items() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let items = [
        json!({"n": 1, "x": 1, "yes": true, "t": "a", "l": ["p", "q"], "wide": 9_007_199_254_740_993_i64, "mixed": 1}),
        json!({"n": null, "x": 0.1, "t": "b\0\"", "l": [], "wide": 0.5, "mixed": "one", "big": u64::MAX, "m": {"k": [1]}}),
        json!({"n": i64::MIN, "l": [null, "r"], "none": null, "late": 4.35}),
    ];
    bench.write(Parquet::create(&path).unwrap(), &items).await;
    assert_eq!(column(&path, "n"), [Field::Long(1), Field::Null, Field::Long(i64::MIN)]);
    assert_eq!(column(&path, "x"), [Field::Double(1.0), Field::Double(0.1), Field::Null]);
    assert_eq!(column(&path, "yes"), [Field::Bool(true), Field::Null, Field::Null]);
    assert_eq!(column(&path, "t")[..2], texts(&["a", "b\0\""]));
    // What has no common type is JSON, so that nothing is rounded or lost.
    let json = |name: &str| -> Vec<Value> {
        let read = |field| match field {
            Field::Null => Value::Null,
            Field::Str(text) => serde_json::from_str(&text).unwrap(),
            Field::Bytes(bytes) => serde_json::from_slice(bytes.data()).unwrap(),
            other => panic!("{name} is {other:?}"),
        };
        column(&path, name).into_iter().map(read).collect()
    };
    for name in ["wide", "mixed", "big", "m"] {
        assert_eq!(json(name), items.iter().map(|item| item[name].clone()).collect::<Vec<_>>(), "{name}");
    }
    let lists = column(&path, "l");
    let list = |field: &Field| match field {
        Field::ListInternal(list) => list.elements().to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(list(&lists[0]), texts(&["p", "q"]));
    assert_eq!(list(&lists[1]), []);
    assert_eq!(list(&lists[2]), [Field::Null, Field::Str("r".to_owned())]);
    assert_eq!(column(&path, "none"), [Field::Null, Field::Null, Field::Null]);
    assert_eq!(column(&path, "late")[2], Field::Double(4.35));
    assert_eq!(bench.names(), ["a.parquet"], "the journal is removed");
}

#[tokio::test]
async fn row_groups_and_columns_have_limits() {
    let mut settings = Settings::default();
    settings.change(|own: &mut FeedSettings| own.feed_parquet_group_rows = 3);
    settings.change(|own: &mut FeedSettings| own.feed_max_columns = 1);
    let bench = Bench { cx: Context::detached(settings), ..bench() };
    let path = bench.path("a.parquet");
    let items: Vec<Value> = (0..8).map(|n| json!({"n": n, "m": n + 1})).collect();
    bench.write(Parquet::create(&path).unwrap(), &items).await;
    assert_eq!(column(&path, "n"), (0..8).map(Field::Long).collect::<Vec<_>>());
    let rest = column(&path, "_rest");
    assert!(matches!(&rest[7], Field::Str(text) if text == "{\"m\":8}"), "{:?}", rest[7]);
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
}

#[tokio::test]
async fn declared_fields_are_columns_also_without_items() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let feed = Parquet::create(&path).unwrap().fields(["b", "a"]).rename("a", "first");
    bench.write(feed, &[json!({"a": 1, "c": 2})]).await;
    let row: Vec<String> = rows(&path)[0].iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(row, ["b", "first"]);
    bench.write(Parquet::overwrite(&path).unwrap(), &[]).await;
    assert!(rows(&path).is_empty());
    bench.write(Parquet::create(bench.path("gone.parquet")).unwrap().store_empty(false), &[]).await;
    assert_eq!(bench.names(), ["a.parquet"]);
}

#[tokio::test]
async fn a_killed_feed_has_its_items_in_the_journal_and_goes_on() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let killed = bench.begin(Parquet::append(&path).unwrap(), &[json!({"n": 1}), json!({"n": 2})]).await;
    drop(killed);
    let journal = bench.path("a.parquet.jsonl");
    assert_eq!(fs::read_to_string(&journal).unwrap(), "{\"n\":1}\n{\"n\":2}\n");
    fs::write(&journal, "{\"n\":1}\n{\"n\":2}\n{\"n\":").unwrap();
    bench.write(Parquet::append(&path).unwrap(), &[json!({"n": 3})]).await;
    assert_eq!(column(&path, "n"), [Field::Long(1), Field::Long(2), Field::Long(3)]);
    let error = Parquet::<Value>::append(&path).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("%(time)s"), "{error}");
    assert_eq!(bench.names(), ["a.parquet"], "a refused feed leaves no journal");
}

#[tokio::test]
async fn a_journal_that_is_being_written_belongs_to_one_crawl() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let first = bench.begin(Parquet::append(&path).unwrap(), &[json!({"n": 1})]).await;
    let error = Parquet::<Value>::append(&path).unwrap_err().to_string();
    assert!(error.contains("another crawl"), "{error}");
    drop(first);
}

#[tokio::test]
async fn batches_are_files_and_those_of_a_killed_run_are_completed() {
    let bench = bench();
    let name = bench.path("a-%(batch_id)03d.parquet");
    let items: Vec<Value> = (0..5).map(|n| json!({"n": n})).collect();
    let mut killed = bench.begin(Parquet::append(&name).unwrap().batch_items(2), &items).await;
    // What is under way is done; the last file is not closed.
    killed.settle().await;
    drop(killed);
    assert_eq!(bench.names(), ["a-001.parquet", "a-002.parquet", "a-003.parquet.jsonl"]);
    bench.write(Parquet::append(&name).unwrap().batch_items(2), &[json!({"n": 5})]).await;
    assert_eq!(bench.names(), ["a-001.parquet", "a-002.parquet", "a-003.parquet", "a-004.parquet"]);
    let all = bench.names().into_iter().flat_map(|name| column(&bench.path(&name), "n"));
    assert_eq!(all.collect::<Vec<_>>(), (0..6).map(Field::Long).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_job_goes_on_with_its_journal() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let (feed, position) = Parquet::<Value>::of_job(&path).unwrap();
    position.load(None).unwrap();
    let mut feed = bench.begin(feed, &[json!({"n": 1}), json!({"n": 2})]).await;
    let saved = position.save().unwrap().unwrap();
    feed.process_item(json!({"n": 3}), &bench.cx).await.unwrap();
    Pipeline::<Value>::flush(&mut feed).await.unwrap();
    drop((feed, position));
    for (number, expected) in [(4, vec![1, 2, 4]), (5, vec![1, 2, 5])] {
        let (feed, position) = Parquet::of_job(&path).unwrap();
        position.load(Some(&saved)).unwrap();
        bench.write(feed, &[json!({"n": number})]).await;
        assert_eq!(column(&path, "n"), expected.into_iter().map(Field::Long).collect::<Vec<_>>());
    }
    assert_eq!(bench.names(), ["a.parquet", "a.parquet.jsonl"], "a job keeps its journal");
}

#[tokio::test]
async fn a_file_that_cannot_be_made_keeps_the_journal_and_is_told() {
    let bench = bench();
    let path = bench.path("a.parquet");
    let mut feed = bench.begin(Parquet::append(&path).unwrap(), &[json!({"n": 1})]).await;
    let error = feed.process_item(json!([1]), &bench.cx).await.unwrap_err().to_string();
    assert!(error.contains("named fields"), "{error}");
    // The place of the file is taken by a folder.
    fs::create_dir(&path).unwrap();
    Pipeline::<Value>::close(&mut feed).await.unwrap();
    assert_eq!(fs::read_to_string(bench.path("a.parquet.jsonl")).unwrap(), "{\"n\":1}\n");
    let losses = bench.cx.losses();
    assert!(losses.len() == 1 && losses[0].to_string().contains("a.parquet.jsonl"), "{losses:?}");
    assert_eq!(bench.cx.stats().get("feedexport/failed_count/file"), 1);
}

#[test]
fn a_second_compression_is_refused() {
    let error = Parquet::<Value>::create("a.parquet.gz").unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("compressed inside"), "{error}");
    assert!(Parquet::<Value>::of_job("a.parquet.gz").is_err());
}
