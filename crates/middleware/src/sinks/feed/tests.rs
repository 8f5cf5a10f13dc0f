use super::super::{Csv, Json, JsonLines, Xml};
use super::*;
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// An item of any shape; `{"bad": true}` cannot be written.
#[derive(Debug)]
struct Thing(Value);

impl Serialize for Thing {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error as _, SerializeMap};
        if self.0 == json!({"bad": true}) {
            // Fails in the middle, after something was written.
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("begun", &1)?;
            return Err(S::Error::custom("a bad item"));
        }
        self.0.serialize(serializer)
    }
}

struct Bench {
    folder: tempfile::TempDir,
    cx: Context,
}

fn bench() -> Bench {
    Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(Settings::default()) }
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// Writes items and closes the feed; returns the error messages of single items.
    async fn write<F: Format>(&self, mut feed: Feed<Thing, F>, items: &[Value]) -> Vec<String> {
        let mut errors = Vec::new();
        feed.open(&self.cx).await.unwrap();
        for item in items {
            if let Err(error) = feed.process_item(Thing(item.clone()), &self.cx).await {
                errors.push(error.to_string());
            }
        }
        Pipeline::<Thing>::flush(&mut feed).await.unwrap();
        Pipeline::<Thing>::close(&mut feed).await.unwrap();
        errors
    }
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    MultiGzDecoder::new(bytes).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn json_lines_are_added_to_and_a_bad_item_leaves_no_trace() {
    let bench = bench();
    let path = bench.path("a.jsonl");
    let errors = bench
        .write(JsonLines::create(&path).unwrap(), &[json!({"a": 1}), json!({"bad": true}), json!({"a": 2})])
        .await;
    assert_eq!(errors.len(), 1);
    assert!(errors[0].contains("a.jsonl") && errors[0].contains("a bad item"), "{errors:?}");
    bench.write(JsonLines::append(&path).unwrap(), &[json!({"a": 3})]).await;
    assert_eq!(bench.text("a.jsonl"), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
    bench.write(JsonLines::overwrite(&path).unwrap(), &[]).await;
    assert_eq!(bench.text("a.jsonl"), "");
    assert_eq!(bench.cx.stats().get("feedexport/success_count/file"), 3);
}

#[tokio::test]
async fn json_is_a_document_after_every_flush() {
    let bench = bench();
    let mut feed: Json<Thing> = Json::create(bench.path("a.json")).unwrap();
    feed.open(&bench.cx).await.unwrap();
    let mut expected = Vec::new();
    for n in 0..4 {
        let read: Value = serde_json::from_str(&bench.text("a.json")).unwrap();
        assert_eq!(read, Value::Array(expected.clone()));
        feed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
        assert!(feed.process_item(Thing(json!({"bad": true})), &bench.cx).await.is_err());
        Pipeline::<Thing>::flush(&mut feed).await.unwrap();
        expected.push(json!({"n": n}));
    }
    Pipeline::<Thing>::close(&mut feed).await.unwrap();
    assert_eq!(bench.text("a.json"), "[\n{\"n\":0},\n{\"n\":1},\n{\"n\":2},\n{\"n\":3}\n]\n");
    let error = Json::<Thing>::append(bench.path("a.json")).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains(".jsonl"), "{error}");
}

#[tokio::test]
async fn xml_is_a_document_after_every_flush() {
    let bench = bench();
    let mut feed: Xml<Thing> = Xml::create(bench.path("a.xml")).unwrap();
    feed.open(&bench.cx).await.unwrap();
    assert!(bench.text("a.xml").ends_with("<items>\n</items>\n"));
    for n in 0..2 {
        feed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
        Pipeline::<Thing>::flush(&mut feed).await.unwrap();
        assert!(bench.text("a.xml").ends_with(&format!("<item><n>{n}</n></item>\n</items>\n")));
    }
    Pipeline::<Thing>::close(&mut feed).await.unwrap();
    assert_eq!(bench.text("a.xml").matches("</items>").count(), 1);
    assert!(Xml::<Thing>::append(bench.path("a.xml")).unwrap_err().is_usage());
}

#[tokio::test]
async fn json_can_be_indented() {
    let bench = bench();
    bench.write(Json::create(bench.path("a.json")).unwrap().indent(2), &[json!({"a": [1]})]).await;
    assert_eq!(bench.text("a.json"), "[\n{\n  \"a\": [\n    1\n  ]\n}\n]\n");
}

#[tokio::test]
async fn fields_are_chosen_ordered_and_renamed() {
    let bench = bench();
    let items = [json!({"a": 1, "b": 2, "c": 3}), json!({"c": 4})];
    let feed = JsonLines::create(bench.path("a.jsonl")).unwrap().fields(["c", "a"]).rename("a", "first");
    bench.write(feed, &items).await;
    assert_eq!(bench.text("a.jsonl"), "{\"c\":3,\"first\":1}\n{\"c\":4}\n");
    let feed = Csv::create(bench.path("a.csv")).unwrap().fields(["c", "a"]).rename("a", "first");
    bench.write(feed, &items).await;
    assert_eq!(bench.text("a.csv"), "c,first\n3,1\n4,\n");
}

#[tokio::test]
async fn csv_quotes_joins_and_guards() {
    let bench = bench();
    let items = [
        json!({"name": "a, \"b\"\nc", "tags": ["x", "y"], "n": -5, "none": null, "yes": true}),
        json!({"name": "=1+1", "tags": [], "n": 0.5, "extra": "lost"}),
        json!({"name": "@x", "tags": ["+1", "2"], "yes": {"k": 1}}),
        json!({"name": "-1"}),
        json!({"name": "\tx"}),
        json!({"name": "\rx"}),
        json!({"name": "\n=x", "tags": ["＝1", "＋2"]}),
        json!({"name": "－1", "tags": ["＠x"]}),
    ];
    bench.write(Csv::create(bench.path("a.csv")).unwrap(), &items).await;
    let expected = "name,tags,n,none,yes\n\
        \"a, \"\"b\"\"\nc\",\"x,y\",-5,,true\n\
        '=1+1,,0.5,,\n\
        '@x,\"'+1,2\",,,\"{\"\"k\"\":1}\"\n\
        '-1,,,,\n\
        '\tx,,,,\n\
        \"'\rx\",,,,\n\
        \"'\n=x\",\"'＝1,＋2\",,,\n\
        '－1,'＠x,,,\n";
    assert_eq!(bench.text("a.csv"), expected);
    let mut settings = Settings::default();
    settings.change(|own: &mut FeedSettings| own.feed_csv_guard = false);
    let open = Bench { cx: Context::detached(settings), ..bench };
    open.write(Csv::overwrite(open.path("a.csv")).unwrap().join("|"), &items[1..3]).await;
    assert_eq!(open.text("a.csv"), "name,tags,n,extra\n=1+1,,0.5,lost\n@x,+1|2,,\n");
}

#[tokio::test]
async fn csv_goes_on_under_the_columns_that_are_there() {
    let bench = bench();
    let path = bench.path("a.csv");
    bench.write(Csv::create(&path).unwrap().rename("b", "B"), &[json!({"a": 1, "b": "x\ny"})]).await;
    bench.write(Csv::append(&path).unwrap().rename("b", "B"), &[json!({"b": 2, "c": 3, "a": 4})]).await;
    assert_eq!(bench.text("a.csv"), "a,B\n1,\"x\ny\"\n4,2\n");
    let mut other = Csv::<Thing>::append(&path).unwrap().fields(["b", "a"]);
    let error = other.open(&bench.cx).await.unwrap_err().to_string();
    assert!(error.contains("a, B") && error.contains("b, a"), "{error}");
}

#[tokio::test]
async fn a_torn_record_is_cut_off() {
    let bench = bench();
    std::fs::write(bench.path("a.jsonl"), "{\"a\":1}\n{\"a\":2").unwrap();
    bench.write(JsonLines::append(bench.path("a.jsonl")).unwrap(), &[json!({"a": 3})]).await;
    assert_eq!(bench.text("a.jsonl"), "{\"a\":1}\n{\"a\":3}\n");
    // The line break inside of quotes ends no record.
    std::fs::write(bench.path("a.csv"), "a,b\n1,2\n3,\"x\ny").unwrap();
    bench.write(Csv::append(bench.path("a.csv")).unwrap(), &[json!({"a": 5})]).await;
    assert_eq!(bench.text("a.csv"), "a,b\n1,2\n5,\n");
}

#[tokio::test]
async fn a_compressed_file_is_readable_after_a_kill_and_goes_on() {
    for name in ["a.jsonl.gz", "a.jsonl.zst"] {
        let bench = bench();
        let path = bench.path(name);
        let read = |bytes: &[u8]| match name.ends_with("gz") {
            true => gunzip(bytes),
            false => String::from_utf8(zstd::stream::decode_all(bytes).unwrap()).unwrap(),
        };
        let mut killed: JsonLines<Thing> = JsonLines::create(&path).unwrap();
        killed.open(&bench.cx).await.unwrap();
        for n in 0..1_000 {
            killed.process_item(Thing(json!({"n": n})), &bench.cx).await.unwrap();
        }
        Pipeline::<Thing>::flush(&mut killed).await.unwrap();
        // The process is killed: the encoder never writes its end, and part of the next record is in the file.
        let mut torn = std::fs::read(&path).unwrap();
        std::mem::forget(killed);
        for lost in [0, 20] {
            torn.truncate(torn.len() - lost);
            std::fs::write(&path, &torn).unwrap();
            bench.write(JsonLines::append(&path).unwrap(), &[json!({"n": "again"})]).await;
            bench.write(JsonLines::append(&path).unwrap(), &[json!({"n": "once more"})]).await;
            let text = read(&std::fs::read(&path).unwrap());
            let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let whole = lines.len() - 2;
            assert!(if lost == 0 { whole == 1_000 } else { whole < 1_000 }, "{name}: {whole}");
            assert!((0..whole).all(|n| lines[n]["n"] == n), "{name}");
            assert_eq!((&lines[whole]["n"], &lines[whole + 1]["n"]), (&json!("again"), &json!("once more")));
            assert_eq!(bench.names(), [name]);
        }
    }
}

#[tokio::test]
async fn batches_are_numbered_and_go_on() {
    let bench = bench();
    let name = bench.path("%(name)s-%(batch_id)03d.csv");
    let feed = || Csv::append(&name).unwrap().batch_items(2).param("name", "q");
    let items: Vec<Value> = (0..5).map(|n| json!({"n": n})).collect();
    bench.write(feed(), &items).await;
    assert_eq!(bench.names(), ["q-001.csv", "q-002.csv", "q-003.csv"]);
    assert_eq!(bench.text("q-002.csv"), "n\n2\n3\n");
    bench.write(feed(), &items[..1]).await;
    assert_eq!(bench.names().last().unwrap(), "q-004.csv");
    assert_eq!(bench.text("q-003.csv"), "n\n4\n");
    let mut unnumbered = JsonLines::<Thing>::create(bench.path("x.jsonl")).unwrap().batch_items(2);
    assert!(unnumbered.open(&bench.cx).await.unwrap_err().to_string().contains("%(batch_id)05d"));
}

#[tokio::test]
async fn empty_files_are_kept_or_not() {
    let bench = bench();
    bench.write(JsonLines::create(bench.path("kept.jsonl")).unwrap(), &[]).await;
    bench.write(Json::create(bench.path("kept.json")).unwrap(), &[]).await;
    bench.write(JsonLines::create(bench.path("gone.jsonl")).unwrap().store_empty(false), &[]).await;
    bench
        .write(JsonLines::create(bench.path("gone-%(batch_id)d.jsonl")).unwrap().store_empty(false), &[])
        .await;
    assert_eq!(bench.names(), ["kept.json", "kept.jsonl"]);
    assert_eq!(bench.text("kept.json"), "[]\n");
}

#[tokio::test]
async fn only_wanted_items_are_written() {
    let bench = bench();
    let feed = JsonLines::create(bench.path("a.jsonl")).unwrap().filter(|thing: &Thing| thing.0["n"] == 1);
    bench.write(feed, &[json!({"n": 0}), json!({"n": 1})]).await;
    assert_eq!(bench.text("a.jsonl"), "{\"n\":1}\n");
}

#[test]
fn a_file_that_cannot_be_made_says_what_to_do() {
    let bench = bench();
    let fails = |path: PathBuf, what: &str| {
        let error = JsonLines::<Thing>::create(&path).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(path.to_str().unwrap()), "{error}");
    };
    fails(bench.path("no/such/folder.jsonl"), "make its folder first");
    std::fs::write(bench.path("there.jsonl"), "").unwrap();
    fails(bench.path("there.jsonl"), "append to it, overwrite it, or choose another name");
    let error = JsonLines::<Thing>::overwrite(bench.folder.path()).unwrap_err().to_string();
    assert!(error.contains("it is a folder"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn items_are_handed_over_by_number_and_by_time() {
    let mut settings = Settings::default();
    settings.change(|own: &mut FeedSettings| own.feed_flush_items = 3);
    settings.change(|own: &mut FeedSettings| own.feed_flush_interval = 1.0);
    let bench = Bench { folder: tempfile::tempdir().unwrap(), cx: Context::detached(settings) };
    let mut feed: JsonLines<Thing> = JsonLines::create(bench.path("a.jsonl")).unwrap();
    feed.open(&bench.cx).await.unwrap();
    for expected in [0, 0, 3, 3] {
        feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
        assert_eq!(bench.text("a.jsonl").lines().count(), expected);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
    assert_eq!(bench.text("a.jsonl").lines().count(), 5);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_disk_stops_the_feed_for_good() {
    let bench = bench();
    let mut feed: JsonLines<Thing> = JsonLines::append("/dev/full").unwrap();
    feed.open(&bench.cx).await.unwrap();
    feed.process_item(Thing(json!(1)), &bench.cx).await.unwrap();
    let error = Pipeline::<Thing>::flush(&mut feed).await.unwrap_err().to_string();
    assert!(error.contains("/dev/full") && error.contains("make room"), "{error}");
    assert!(feed.process_item(Thing(json!(2)), &bench.cx).await.is_err());
    assert!(Pipeline::<Thing>::flush(&mut feed).await.is_err());
    assert!(Pipeline::<Thing>::close(&mut feed).await.is_err());
    assert_eq!(bench.cx.stats().get("feedexport/failed_count/file"), 1);
}
