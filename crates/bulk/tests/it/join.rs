//! The join finds what a comparison of all pairs finds, whatever its limits.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use huntsman_bulk::export::{Export, export};
use huntsman_bulk::{Error, Form, Input, Join};
use huntsman_detect::near::{Document, Identity, Language, MemoryIndex};
use huntsman_detect::simhash::{Features, SimHash};

use crate::made::{join, made, pairs, table};

/// A number of the environment, for larger runs by hand, or the one that a run of all tests can bear.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn all_pairs_of_each_distance_are_found_once() {
    let folder = tempfile::tempdir().unwrap();
    for k in 0..=7 {
        for seed in 0..number("HUNTSMAN_JOIN_SEEDS", 3) {
            let made = made(seed * 100 + u64::from(k), number("HUNTSMAN_JOIN_BRUTE", 3_000) as usize, k, 0);
            let (input, out) = (folder.path().join("in.jsonl"), folder.path().join(format!("{k}-{seed}")));
            made.lines(&input);
            let report = join(&input, &out, k).run(&|_| ()).unwrap();
            let expected = made.pairs(k);
            assert_eq!(pairs(&out), expected, "k = {k}, seed {seed}");
            let same: Vec<_> =
                table(out.join("same")).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
            assert_eq!(same, made.same());
            assert_eq!((report.pairs, report.folded), (expected.len() as u64, same.len() as u64));
            assert!(k == 0 || !expected.is_empty());
        }
    }
}

#[test]
fn a_heavy_band_is_joined_by_its_other_bits() {
    let folder = tempfile::tempdir().unwrap();
    for k in [1, 3, 7] {
        let made = made(11, 7_000, k, 6_000);
        let (input, out) = (folder.path().join("in.jsonl"), folder.path().join(format!("{k}")));
        made.lines(&input);
        let report = join(&input, &out, k).run(&|_| ()).unwrap();
        assert_eq!(pairs(&out), made.pairs(k), "k = {k}");
        assert!(report.heavy_values > 0 && report.heaviest[0].rows > 4_096, "{report:?}");
        assert_eq!(report.heaviest[0].lang, "HINDI");
        // Without the parts, this band alone would be compared 18 million times.
        assert!(report.candidates < 1_000_000, "{}", report.candidates);
    }
}

#[test]
fn an_export_in_several_parts_is_read_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let index = MemoryIndex::build(Identity::default(), documents(20_000)).unwrap();
    let (whole, expected) = (folder.path().join("whole"), folder.path().join("expected"));
    let parts = export(&index, &whole, &Export::default()).unwrap();
    assert_eq!(parts.len(), 1);
    join(&whole, &expected, 3).run(&|_| ()).unwrap();
    for (form, part_bytes) in [(Form::Parquet, 200_000), (Form::Jsonl, 300_000), (Form::Csv, 100_000)] {
        let exported = folder.path().join(form.name());
        let parts = export(&index, &exported, &Export { form, part_bytes, ..Export::default() }).unwrap();
        assert!(parts.len() > 3, "{form}: {parts:?}");
        assert_eq!(parts.iter().map(|part| part.rows).sum::<u64>(), 20_000);
        // The limit is looked at after some rows, and so short a Parquet file has much metadata.
        assert!(parts.iter().all(|part| part.bytes <= part_bytes * 6 / 5), "{form}: {parts:?}");
        let names: Vec<String> = (0..parts.len()).map(|part| format!("part-{part:05}.{form}")).collect();
        assert_eq!(parts.iter().map(|part| part.name.clone()).collect::<Vec<_>>(), names);
        let out = folder.path().join(format!("{form}-out"));
        let report = join(&exported, &out, 3).run(&|_| ()).unwrap();
        assert_eq!((report.rows, bytes(&out)), (20_000, bytes(&expected)), "{form}");
        // A part that is missing, or of another export, is noticed.
        fs::remove_file(exported.join(&names[1])).unwrap();
        assert!(join(&exported, &folder.path().join("none"), 3).run(&|_| ()).is_err());
    }
}

fn documents(number: u64) -> impl Iterator<Item = Document> {
    let hindi = Language::parse("hi").unwrap();
    (0..number).map(move |id| {
        let noise = |number: u64| u128::from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number << 7);
        let base = noise(id / 3 * 7 + 1) << 64 | noise(id / 3 * 13 + 5);
        let hash = base ^ 1 << (id % 3 * 11) ^ u128::from(id % 3 == 2) << 90;
        Document { language: hindi, id: id.into(), hash: SimHash(hash) }
    })
}

#[test]
fn an_export_joins_to_the_pairs_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let rows = number("HUNTSMAN_JOIN_ROWS", 60_000);
    let index = MemoryIndex::build(Identity::default(), documents(rows)).unwrap();
    let (exported, out) = (folder.path().join("exported"), folder.path().join("out"));
    export(&index, &exported, &Export::default()).unwrap();
    join(&exported, &out, 3).run(&|_| ()).unwrap();
    // A file without an extension is known by its first bytes.
    let unloaded = folder.path().join("20261126_x");
    fs::copy(exported.join("part-00000.parquet"), &unloaded).unwrap();
    let again = folder.path().join("again");
    join(&unloaded, &again, 3).run(&|_| ()).unwrap();
    assert_eq!(bytes(&again), bytes(&out));
    let mut expected = Vec::new();
    index.pairs(&mut |pair| {
        let [a, b] = pair.ids.clone().map(|id| id.to_string());
        expected.push((pair.language.to_string(), a, b, pair.distance));
        ControlFlow::Continue(())
    });
    expected.sort();
    assert!(expected.len() as u64 > rows / 2);
    assert_eq!(pairs(&out), expected);
}

fn bytes(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for table in ["pairs", "same"] {
        for part in fs::read_dir(out.join(table)).unwrap() {
            let path = part.unwrap().path();
            let name = format!("{table}/{}", path.file_name().unwrap().to_string_lossy());
            all.push((name, fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn little_memory_and_other_threads_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let index = MemoryIndex::build(Identity::default(), documents(1_200_000)).unwrap();
    let exported = folder.path().join("exported");
    export(&index, &exported, &Export::default()).unwrap();
    let run = |name: &str, memory: u64, threads: usize| {
        let out = folder.path().join(name);
        let mut join = join(&exported, &out, 3);
        (join.form, join.memory, join.threads) = (Form::Parquet, memory, threads);
        join.run(&|_| ()).unwrap();
        bytes(&out)
    };
    // 38 MiB of rows in 15 MiB for each of two threads are several passes.
    assert_eq!(run("little", 64 << 20, 2), run("much", 1 << 30, 1));
}

#[test]
fn a_stopped_join_goes_on_and_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let made = made(5, 20_000, 7, 5_000);
    let input = folder.path().join("in.jsonl");
    made.lines(&input);
    let whole = folder.path().join("whole");
    join(&input, &whole, 7).run(&|_| ()).unwrap();
    let out = folder.path().join("stopped");
    for steps in [1, 3, 9] {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), std::sync::atomic::AtomicUsize::new(0));
        let mut join = join(&input, &out, 7);
        join.stop = Arc::clone(&stop);
        let ended = join.run(&|_| {
            if done.fetch_add(1, Ordering::Relaxed) == steps {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!(matches!(ended, Err(Error::Stopped)), "{ended:?}");
        assert!(!out.join("_DONE.json").exists());
    }
    let report = join(&input, &out, 7).run(&|_| ()).unwrap();
    assert_eq!(bytes(&out), bytes(&whole));
    assert!(!out.join("temp").exists());
    // The same request again reads what was found; another one is refused.
    let read = join(&input, &out, 7).run(&|_| ()).unwrap();
    assert_eq!(
        (read.pairs, read.candidates, read.heaviest),
        (report.pairs, report.candidates, report.heaviest)
    );
    let refused = join(&input, &out, 3).run(&|_| ()).unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("--fresh"), "{refused}");
}

#[test]
fn against_an_archive_only_pairs_between_the_two_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut month = made(21, 2_000, 3, 0);
    let all = made(21, 2_000, 3, 0);
    let mut archive = made(21, 2_000, 3, 0);
    let is_new = |at: usize| at.is_multiple_of(2);
    let keep = |rows: &mut Vec<_>, new: bool| {
        let mut at = 0;
        rows.retain(|_| {
            at += 1;
            is_new(at) == new
        });
    };
    keep(&mut month.rows, true);
    keep(&mut archive.rows, false);
    let (new, old, out) =
        (folder.path().join("new.jsonl"), folder.path().join("old.jsonl"), folder.path().join("out"));
    month.lines(&new);
    archive.lines(&old);
    let mut join = join(&new, &out, 3);
    join.against = vec![old];
    join.run(&|_| ()).unwrap();
    // A group of copies that has both sides is on both.
    let sides = |lang: &str, id: &str| {
        let hash = all.rows.iter().find(|row| row.0 == id && row.1 == lang).unwrap().2;
        let has = |rows: &[(String, &str, u128)]| rows.iter().any(|row| row.1 == lang && row.2 == hash);
        [has(&month.rows), has(&archive.rows)]
    };
    let mut expected = all.pairs(3);
    expected.retain(|(lang, a, b, _)| {
        let (a, b) = (sides(lang, a), sides(lang, b));
        a[0] && b[1] || a[1] && b[0]
    });
    assert!(!expected.is_empty());
    assert_eq!(pairs(&out), expected);
}

#[test]
fn unfinished_exports_cut_files_and_other_features_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let index = MemoryIndex::build(Identity::default(), documents(500)).unwrap();
    let exported = folder.path().join("exported");
    export(&index, &exported, &Export::default()).unwrap();
    let refused = |paths: &[&Path]| {
        let input =
            Input { paths: paths.iter().map(|path| (*path).to_owned()).collect(), ..Input::default() };
        let error = Join::new(input, folder.path().join("out")).run(&|_| ()).unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    let other = folder.path().join("other");
    let identity = Identity::new(3, Features::Char5).unwrap();
    export(&MemoryIndex::build(identity, documents(9)).unwrap(), &other, &Export::default()).unwrap();
    assert!(refused(&[&exported, &other]).contains("char5"));
    let part = exported.join("part-00000.parquet");
    let whole = fs::read(&part).unwrap();
    fs::write(&part, &whole[..whole.len() - 9]).unwrap();
    assert!(refused(&[&exported]).contains("part-00000.parquet"));
    assert!(refused(&[&part]).contains("no whole Parquet file"));
    fs::write(&part, whole).unwrap();
    fs::remove_file(exported.join("_DONE.json")).unwrap();
    assert!(refused(&[&exported]).contains("_DONE.json"));
    let foreign = folder.path().join("foreign.csv");
    fs::write(&foreign, "story_id,lang,h1,h2\n1,hi,1,2\n").unwrap();
    assert!(refused(&[&foreign]).contains("--columns"));
}

#[test]
fn foreign_columns_ids_of_both_kinds_and_rows_without_fingerprint_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.csv"), folder.path().join("out"));
    let rows = "story_id,lang,h1,h2\n9,hi,-1,2\n10,HINDI,-1,3\nabc,Hindi,-1,2\nx,hi,,\n18446744073709551615,hi,7,7\n";
    fs::write(&input, rows).unwrap();
    let mut join = join(&input, &out, 3);
    join.input.columns = "id=story_id,hi=h1,lo=h2".parse().unwrap();
    let report = join.run(&|_| ()).unwrap();
    assert_eq!((report.rows, report.without_fingerprint, report.folded), (4, 1, 1));
    // Texts are in the order of their bytes.
    assert_eq!(pairs(&out), [("HINDI".to_owned(), "10".to_owned(), "9".to_owned(), 1)]);
    assert_eq!(table(out.join("same")), [["abc", "9", "HINDI"]]);
}

#[test]
fn of_a_folder_that_was_named_only_scratch_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out, temp) =
        (folder.path().join("in.jsonl"), folder.path().join("out"), folder.path().join("shared"));
    made(4, 500, 3, 0).lines(&input);
    fs::create_dir(&temp).unwrap();
    fs::write(temp.join("of another program"), "x").unwrap();
    let mut join = join(&input, &out, 3);
    join.temp = Some(temp.clone());
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    let scratch = std::sync::OnceLock::new();
    join.run(&|_| {
        let own = names(&temp).into_iter().find(|name| name.starts_with("huntsman-join-"));
        scratch.get_or_init(|| temp.join(own.unwrap()));
    })
    .unwrap();
    assert_eq!(names(&temp), ["of another program"]);
    // What a kill in the end leaves is removed by the next run.
    fs::create_dir(scratch.get().unwrap()).unwrap();
    fs::write(scratch.get().unwrap().join("step"), "x").unwrap();
    join.run(&|_| ()).unwrap();
    assert_eq!(names(&temp), ["of another program"]);
}

#[test]
fn scratch_files_take_no_more_room_than_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |name: &str, id: &dyn Fn(usize) -> String| {
        let rows = made(3, 30_000, 3, 0).rows.into_iter().enumerate();
        let lines = rows.map(|(at, (_, lang, hash))| {
            format!("{{\"id\":{},\"lang\":\"{lang}\",\"simhash\":\"{hash:032x}\"}}\n", id(at))
        });
        let path = folder.path().join(name);
        fs::write(&path, lines.collect::<String>()).unwrap();
        path
    };
    let url = |at: usize| format!("\"https://example.org/a/longer/path/that/ends/with/{at}\"");
    let numbers = lines("numbers.jsonl", &|at| at.to_string());
    let texts = lines("texts.jsonl", &url);
    let mixed = lines("mixed.jsonl", &|at| if at % 2 == 0 { at.to_string() } else { url(at) });
    for input in [numbers, texts, mixed] {
        let out = input.with_extension("out");
        let join = join(&input, &out, 7);
        let room = join.room().unwrap();
        assert!(room.needed > 0 && room.missing() == 0 && room.free.is_some(), "{room:?}");
        let most = std::sync::Mutex::new(0);
        let ended = join.run(&|_| {
            let files = fs::read_dir(out.join("temp")).unwrap().flatten();
            // A step of the other thread may give its file its name just now.
            let bytes: u64 = files.filter_map(|file| Some(file.metadata().ok()?.len())).sum();
            let mut most = most.lock().unwrap();
            *most = bytes.max(*most);
        });
        ended.unwrap();
        let most = most.into_inner().unwrap();
        assert!(most > 500_000 && most < room.needed, "{most} of {room:?}");
        assert_eq!(join.room().unwrap().needed, 0, "nothing is left to do");
    }
}

#[test]
fn telemetry_has_each_step_and_in_the_end_what_the_report_says() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.jsonl"), folder.path().join("out"));
    made(8, 7_000, 3, 6_000).lines(&input);
    let join = join(&input, &out, 3);
    let steps = std::sync::Mutex::new(Vec::new());
    let report = join
        .run(&|_| {
            let text = join.telemetry.families().text();
            let done = text.lines().find_map(|line| line.strip_prefix("huntsman_join_steps_done "));
            steps.lock().unwrap().push(done.unwrap().parse::<u64>().unwrap());
        })
        .unwrap();
    let mut steps = steps.into_inner().unwrap();
    steps.sort_unstable();
    // Two languages with four keys each.
    assert_eq!((steps[0], steps.last()), (0, Some(&8)));
    let text = join.telemetry.families().text();
    let heavy = &report.heaviest[0];
    for line in [
        format!("huntsman_join_rows {}", report.rows),
        format!("huntsman_join_folded {}", report.folded),
        format!("huntsman_join_input_bytes {}", fs::metadata(&input).unwrap().len()),
        format!("huntsman_join_result_bytes {}", report.bytes),
        format!("huntsman_join_pairs{{key=\"1\"}} {}", report.keys[1].pairs),
        format!(
            "huntsman_join_heavy_value_rows{{lang=\"HINDI\",key=\"0\",id=\"{}\"}} {}",
            heavy.id, heavy.rows
        ),
    ] {
        assert!(text.lines().any(|has| has == line), "{line}: {text}");
    }
    assert_eq!(report.pairs, report.keys.iter().map(|key| key.pairs).sum::<u64>());
}
