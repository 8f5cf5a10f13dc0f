//! The full-text index: which sources it finds in generated texts, what survives a kill, and what it refuses.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use huntsman_crawler::{
    Backend, CrawlerBuilder, Job, Output, Page, Request, Result, Spider, Start, Timestamp,
};
use huntsman_detect::copyvio::Text;
use huntsman_middleware::Defaults;
use huntsman_sweep::{
    CandidateError, CandidateSource, IndexPages, IndexedPage, Subject, TextIndex, TextIndexError,
};
use huntsman_testkit::{Reply, ScriptedDownloader};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// A random word with the frequencies of a language: the nth most frequent word has a share of about 1/n.
fn word(rng: &mut StdRng) -> String {
    const VOCABULARY: f64 = 30_000.0;
    format!("w{}", VOCABULARY.powf(rng.random::<f64>()) as u32)
}

fn words(rng: &mut StdRng, number: usize) -> Vec<String> {
    (0..number).map(|_| word(rng)).collect()
}

fn subject(words: &[String]) -> Subject {
    Subject::new(Text::new(words.join(" ")))
}

fn page(url: &str, words: &[String]) -> IndexedPage {
    IndexedPage::new(url, Text::new(words.join(" ")))
}

/// The place of a page among the candidates for an article, from 0.
fn place(index: &TextIndex, article: &Subject, url: &str) -> Option<usize> {
    index.candidates(article).unwrap().iter().position(|candidate| candidate.url == url)
}

fn urls(index: &TextIndex, article: &Subject) -> Vec<String> {
    index.candidates(article).unwrap().into_iter().map(|candidate| candidate.url).collect()
}

/// Bytes of all files in a directory.
fn disk_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(
            |entry| {
                if entry.path().is_dir() {
                    disk_bytes(&entry.path())
                } else {
                    entry.metadata().unwrap().len()
                }
            },
        )
        .sum()
}

/// The peak memory of the process, mapped files included, if the system reports it.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    [line("VmHWM"), line("RssAnon")].join(", ")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// `TEXT_INDEX_PAGES` and `TEXT_INDEX_WORDS` ask for more pages and longer ones, for figures in a release build.
#[test]
fn the_source_of_a_passage_is_found_among_ten_thousand_pages() {
    let number = |name: &str, usual: usize| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (pages, size) = (number("TEXT_INDEX_PAGES", 10_000), number("TEXT_INDEX_WORDS", 150));
    const SOURCES: usize = 25;
    let mut rng = StdRng::seed_from_u64(7);
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path().join("index")).unwrap();
    let sources: Vec<Vec<String>> = (0..SOURCES).map(|_| words(&mut rng, 1_000)).collect();
    let start = std::time::Instant::now();
    let mut bytes = 0;
    for at in 0..pages {
        let text = sources.get(at).cloned().unwrap_or_else(|| words(&mut rng, size));
        bytes += text.iter().map(|word| word.len() + 1).sum::<usize>();
        index.add(&page(&format!("http://h/{at}"), &text)).unwrap();
    }
    index.commit().unwrap();
    println!("{pages} pages, {bytes} bytes, added in {:.1} s", start.elapsed().as_secs_f64());
    println!("{} bytes on disk; {}", disk_bytes(dir.path()), peak_memory());
    assert_eq!(index.pages().unwrap(), pages as u64);

    type Change = fn(&mut StdRng, &mut Vec<String>);
    fn replaced(rng: &mut StdRng, passage: &mut [String], every: usize) {
        passage.iter_mut().skip(every / 2).step_by(every).for_each(|replaced| *replaced = word(rng));
    }
    let changes: [(&str, Change, usize); 5] = [
        ("verbatim", |_, _| {}, SOURCES),
        ("every 8th word replaced", |rng, passage| replaced(rng, passage, 8), SOURCES),
        ("every 4th word replaced", |rng, passage| replaced(rng, passage, 4), SOURCES - 1),
        (
            "sentences of ten words in another order",
            |rng, passage| {
                let mut sentences: Vec<Vec<String>> = passage.chunks(10).map(<[String]>::to_vec).collect();
                sentences.shuffle(rng);
                *passage = sentences.concat();
            },
            SOURCES,
        ),
        ("thirty words of it", |_, passage| passage.truncate(30), SOURCES - 1),
    ];
    for (name, change, least) in changes {
        let (mut found, mut first) = (0, 0);
        let start = std::time::Instant::now();
        for (at, source) in sources.iter().enumerate() {
            let from = rng.random_range(0..900);
            let mut passage = source[from..from + 100].to_vec();
            change(&mut rng, &mut passage);
            let (mut before, after) = (words(&mut rng, 500), words(&mut rng, 400));
            before.extend(passage);
            before.extend(after);
            let place = place(&index, &subject(&before), &format!("http://h/{at}"));
            found += usize::from(place.is_some());
            first += usize::from(place == Some(0));
        }
        let took = start.elapsed().as_secs_f64() * 1_000.0 / SOURCES as f64;
        println!("{name}: {found} of {SOURCES} found, {first} first; {took:.1} ms an article");
        assert!(found >= least, "{name}: {found} of {SOURCES}");
    }
    // The article is not copied from any page: every candidate shares little with it.
    let other = index.candidates(&subject(&words(&mut rng, 500))).unwrap();
    assert!(other.len() <= 20);
}

#[test]
fn texts_without_spaces_between_words_are_found() {
    let mut rng = StdRng::seed_from_u64(3);
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path()).unwrap();
    // Han, Hiragana, Thai: common characters far more often than others.
    for (script, first, size) in
        [("han", 0x4e00_u32, 2_000.0_f64), ("kana", 0x3042, 80.0), ("thai", 0xe01, 40.0)]
    {
        let mut text = |length: usize| -> String {
            let one =
                |rng: &mut StdRng| char::from_u32(first + size.powf(rng.random::<f64>()) as u32).unwrap();
            (0..length).map(|_| one(&mut rng)).collect()
        };
        let source = text(600);
        for at in 0..300 {
            let text = if at == 77 { source.clone() } else { text(600) };
            index.add(&IndexedPage::new(format!("http://{script}/{at}"), Text::new(text))).unwrap();
        }
        index.commit().unwrap();
        let passage: String = source.chars().skip(200).take(60).collect();
        // Every 8th character is changed.
        let changed: String =
            passage.chars().enumerate().map(|(at, c)| if at % 8 == 5 { '一' } else { c }).collect();
        for passage in [passage, changed] {
            let article = Subject::new(Text::new([text(150), passage, text(150)].concat()));
            assert_eq!(urls(&index, &article)[0], format!("http://{script}/77"));
        }
    }
}

#[test]
fn the_page_of_the_article_is_no_candidate_and_hides_none() {
    let mut rng = StdRng::seed_from_u64(5);
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path()).unwrap();
    for at in 0..200 {
        index.add(&page(&format!("http://h/{at}"), &words(&mut rng, 200))).unwrap();
    }
    let source = words(&mut rng, 300);
    index.add(&page("http://source/", &source)).unwrap();
    // Its own words occur nowhere else.
    let own = |at: usize| format!("own{at}");
    let mut copied: Vec<String> = (0..50).map(own).collect();
    for (at, word) in source[100..160].iter().enumerate() {
        copied.extend([word.clone(), own(100 + at)]);
    }
    index.add(&page("http://copy/?b=1&a=2", &copied)).unwrap();
    index.commit().unwrap();
    let mut article = subject(&copied);
    article.url = Some("http://copy/?a=2&b=1#top".to_owned());
    let found = urls(&index, &article);
    assert!(!found.iter().any(|url| url.starts_with("http://copy/")), "{found:?}");
    // Every second word is changed, so no two neighbouring words are the same: such a passage is not found, but the two
    // unchanged words are enough.
    let mut article = subject(&[&copied[..50], &source[100..130]].concat());
    article.url = Some("http://copy/?a=2&b=1".to_owned());
    assert_eq!(urls(&index, &article)[0], "http://source/");
}

#[test]
fn candidates_have_their_texts_and_what_is_boilerplate_is_not_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path()).unwrap();
    let menu = "home imprint contact archive search about shop news forum login register help terms privacy";
    let text = |body: &str| Text::html(format!("<nav>{menu}</nav><p>{body}").as_bytes(), None);
    let mill = text("the old mill on the river ground corn until the flood of that year took its wheel");
    index.add(&IndexedPage::new("http://h/mill", mill.clone())).unwrap();
    index.add(&IndexedPage::new("http://h/other", text("nothing of this kind was ever seen here"))).unwrap();
    index.commit().unwrap();
    let article = Subject::new(text("old mill on the river ground corn until the flood"));
    let found = index.candidates(&article).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].url.as_str(), &found[0].text), ("http://h/mill", &Some(mill)));
}

#[test]
fn an_index_equals_a_map_under_random_steps() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("index");
    let mut index = TextIndex::open_or_create(&at).unwrap();
    // The words of each page are unique, so that each search has one result.
    let mut model: HashMap<u32, u32> = HashMap::new();
    let text = |page: u32, version: u32| -> Vec<String> {
        (0..8).map(|n| format!("p{page}v{version}n{n}")).collect()
    };
    for step in 1..=24 {
        for _ in 0..rng.random_range(0..12) {
            let (number, version) = (rng.random_range(0..30), step);
            index.add(&page(&format!("http://h/{number}"), &text(number, version))).unwrap();
            model.insert(number, version);
        }
        match rng.random_range(0..8) {
            0 => index.commit().unwrap(),
            1 => {
                index.close().unwrap();
                drop(index);
                index = TextIndex::open_or_create(&at).unwrap();
            }
            // Without `close` nothing is committed at the end.
            2 => {
                drop(index);
                index = TextIndex::open_or_create(&at).unwrap();
            }
            _ => {}
        }
        if step % 6 == 0 {
            index.commit().unwrap();
            assert_eq!(index.pages().unwrap(), model.len() as u64);
            for (number, version) in &model {
                let url = format!("http://h/{number}");
                assert_eq!(urls(&index, &subject(&text(*number, *version))), [url], "{number} {version}");
            }
        }
    }
}

#[test]
fn what_was_added_is_found_by_others_after_the_process_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let index = TextIndex::open_or_create(&first).unwrap();
    let text: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
    index.add(&page("http://h/a", &text)).unwrap();
    copy(&first, &second);
    // While another process adds pages, its uncommitted pages are not found; otherwise `open` commits them.
    assert!(urls(&TextIndex::open(&first).unwrap(), &subject(&text)).is_empty());
    let looking = TextIndex::open(&second).unwrap();
    assert_eq!(urls(&looking, &subject(&text)), ["http://h/a"]);
    assert!(matches!(looking.add(&page("http://h/b", &text)), Err(TextIndexError::ReadOnly)));
    assert!(
        !fs::read_dir(&second).unwrap().any(|entry| entry
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .ends_with(".log"))
    );
}

#[test]
fn what_is_no_index_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "mine").unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    for path in [&other, &file] {
        for opened in [TextIndex::open_or_create(path), TextIndex::open(path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, TextIndexError::NotAnIndex(_)), "{error}");
            assert!(error.to_string().contains("another directory"), "{error}");
        }
    }
    assert_eq!((fs::read(file).unwrap(), fs::read_dir(&other).unwrap().count()), (b"mine".to_vec(), 1));
    let missing = dir.path().join("missing");
    assert!(matches!(TextIndex::open(&missing), Err(TextIndexError::Missing(_))));
    assert!(!missing.exists());

    let path = dir.path().join("made/of/parts/");
    let index = TextIndex::open_or_create(&path).unwrap();
    assert!(matches!(TextIndex::open_or_create(&path), Err(TextIndexError::Locked(_))));
    index.close().unwrap();
    let again = TextIndex::open_or_create(&path).unwrap();
    drop(again);
    fs::write(path.join("huntsman-text-index.json"), r#"{"format":"huntsman text index","version":99}"#)
        .unwrap();
    assert!(matches!(TextIndex::open(&path), Err(TextIndexError::Version(_))));
}

/// The files of a directory with what is in them.
fn content(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(content(&path));
        } else {
            all.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn an_index_without_one_of_its_files_is_not_begun_anew_and_keeps_its_pages() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = TextIndex::open_or_create(&path).unwrap();
    let text: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
    index.add(&page("http://h/a", &text)).unwrap();
    index.close().unwrap();
    drop(index);
    let meta = path.join("index/meta.json");
    let kept = fs::read(&meta).unwrap();
    fs::remove_file(&meta).unwrap();
    let before = content(&path);
    for _ in 0..2 {
        for opened in [TextIndex::open_or_create(&path), TextIndex::open(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, TextIndexError::Damaged(..)), "{error}");
            let said = error.to_string();
            assert!(said.contains("meta.json") && said.contains("huntsman verify"), "{said}");
        }
        assert_eq!(content(&path), before);
    }
    fs::write(&meta, kept).unwrap();
    assert_eq!(urls(&TextIndex::open(&path).unwrap(), &subject(&text)), ["http://h/a"]);
}

#[test]
fn an_index_whose_process_was_killed_while_making_it_is_made_by_the_next_and_opened_by_none() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    TextIndex::open_or_create(&whole).unwrap().close().unwrap();
    let unfinished = r#"{"format":"huntsman text index","version":1,"unfinished":true}"#;
    for step in 0..6 {
        let path = dir.path().join(format!("killed {step}"));
        fs::create_dir(&path).unwrap();
        match step {
            0 => {}
            1 => fs::write(path.join("huntsman-text-index.lock"), "").unwrap(),
            2 => fs::write(path.join("huntsman-text-index.json.new"), "{\"for").unwrap(),
            3 => fs::write(path.join("huntsman-text-index.json"), unfinished).unwrap(),
            4 => {
                fs::create_dir(path.join("index")).unwrap();
                fs::write(path.join("index/.tmpabc"), "half").unwrap();
                fs::write(path.join("huntsman-text-index.json"), unfinished).unwrap();
            }
            _ => {
                copy(&whole, &path);
                fs::write(path.join("huntsman-text-index.json"), unfinished).unwrap();
            }
        }
        let before = content(&path);
        let error = TextIndex::open(&path).unwrap_err();
        assert!(matches!(error, TextIndexError::Missing(_)), "{step}: {error}");
        assert_eq!(content(&path), before, "{step}: opening changes nothing");
        let index = TextIndex::open_or_create(&path).unwrap_or_else(|error| panic!("{step}: {error}"));
        let text: Vec<String> = (0..40).map(|n| format!("x{n}")).collect();
        index.add(&page("http://h/a", &text)).unwrap();
        index.close().unwrap();
        drop(index);
        assert_eq!(urls(&TextIndex::open(&path).unwrap(), &subject(&text)), ["http://h/a"], "{step}");
    }
}

#[tokio::test]
async fn a_damaged_index_is_an_error_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    let index = TextIndex::open_or_create(&whole).unwrap();
    let mut rng = StdRng::seed_from_u64(11);
    let text = words(&mut rng, 300);
    for at in 0..50 {
        index.add(&page(&format!("http://h/{at}"), &text)).unwrap();
    }
    index.close().unwrap();
    drop(index);
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let article = subject(&text);
    for step in 0..40 {
        let damaged = dir.path().join(format!("damaged {step}"));
        copy(&whole, &damaged);
        let files: Vec<_> =
            fs::read_dir(damaged.join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
        let file = &files[rng.random_range(0..files.len())];
        let mut bytes = fs::read(file).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let at = rng.random_range(0..bytes.len());
        if rng.random() {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << rng.random_range(0..8);
        }
        fs::write(file, bytes).unwrap();
        // Opening may fail, but it must not panic.
        if let Ok(index) = TextIndex::open(&damaged) {
            match index.find(&article, "").await {
                Ok(found) => assert!(found.len() <= 20),
                Err(error) => assert!(matches!(error, CandidateError::Failed(_)), "{error}"),
            }
        }
    }
}

#[test]
fn of_a_long_text_the_beginning_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path()).unwrap();
    let long: Vec<String> = (0..200_000).map(|n| format!("ü{n:07}")).collect();
    index.add(&page("http://h/long", &long)).unwrap();
    index.add(&page(&format!("http://h/{}", "x".repeat(40_000)), &long)).unwrap();
    index.commit().unwrap();
    assert_eq!(index.pages().unwrap(), 1);
    let found = index.candidates(&subject(&long[..50])).unwrap();
    let kept = found[0].text.as_ref().unwrap().text().len();
    assert!(kept <= 1 << 20 && kept > (1 << 20) - 8, "{kept}");
    assert!(urls(&index, &subject(&long[150_000..150_050])).is_empty());
}

struct Everything;

impl Spider for Everything {
    type Item = ();

    fn start(&self) -> Start {
        Start::requests([Request::parse("http://h/").unwrap()])
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        out.follow_links(page);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_adds_what_its_pages_say() {
    let dir = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(dir.path().join("index")).unwrap();
    let body = |name: &str| (0..30).map(|n| format!("{name}{n} ")).collect::<String>();
    let web = ScriptedDownloader::new()
        .respond("http://h/robots.txt", Reply::status(404))
        .respond(
            "http://h/",
            Reply::html("<title>Start</title><a href=/page>a</a><a href=/moved>b</a><a href=/error>c</a><a href=/empty>d</a>"),
        )
        .respond("http://h/page", Reply::html(format!("<meta name=robots content=noindex><p>{}", body("page"))))
        .respond("http://h/moved", Reply::redirect(302, "/target?x=1#part"))
        .respond("http://h/target?x=1", Reply::html(format!("<p>{}", body("target"))))
        .respond("http://h/error", Reply::status(404).body(body("error")))
        .respond("http://h/empty", Reply::html("<img src=x>"));
    let job = Job::open(dir.path().join("job"), Backend::Redb).unwrap();
    let crawler = CrawlerBuilder::new(Everything)
        .plugin(Defaults)
        .plugin(IndexPages::new(index.clone()))
        .downloader(web)
        .job(job)
        .set("download_delay", 0.0);
    let report = crawler.build().unwrap().run().await.unwrap();
    index.close().unwrap();
    assert_eq!(report.stats["index/pages"], 3);
    let found = |name: &str| urls(&index, &Subject::new(Text::new(body(name))));
    assert_eq!(found("page"), ["http://h/page"]);
    assert_eq!(found("target"), ["http://h/target?x=1"]);
    assert!(found("error").is_empty());
    let source: Arc<dyn CandidateSource> = Arc::new(index);
    assert_eq!((source.name(), source.queries(&Subject::default())), ("index", vec![String::new()]));
}

#[test]
fn a_candidate_tells_when_its_page_was_crawled() {
    let directory = tempfile::tempdir().unwrap();
    let index = TextIndex::open_or_create(directory.path()).unwrap();
    let mut rng = StdRng::seed_from_u64(5);
    let text = words(&mut rng, 200);
    let mut crawled = page("http://a.example/", &text);
    crawled.fetched_at = Some(Timestamp(1_600_000_000_000_000));
    index.add(&crawled).unwrap();
    index.add(&page("http://b.example/", &words(&mut rng, 200))).unwrap();
    index.commit().unwrap();
    let found = index.candidates(&subject(&text[50..150])).unwrap();
    let seen = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    assert_eq!(found[0].dates.first_seen, Some(seen));
}
