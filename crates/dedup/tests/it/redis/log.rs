//! Tests of the log layout: the data in the server, and several processes that append.

use huntsman_dedup::redis::{Layout, RedisIndex};
use huntsman_detect::near::{Document, Identity, IndexErrorKind, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_testkit::redis::Server;

use super::model::{Model, Source, identity, language, open, random_steps, settings};

#[test]
fn the_log_layout_is_the_naive_index() {
    let server = Server::start();
    for (seed, k) in [(101, 3), (102, 7)] {
        server.cli(&["FLUSHALL"]);
        // Small segments, which are soon full.
        let settings = settings(&server.url(), Layout::Log).segment_bytes(1000);
        let index = RedisIndex::open(settings.clone(), identity(k)).expect("an index");
        let (mut source, mut model) = (Source::new(seed, 40), Model::default());
        random_steps(&index, &mut model, &mut source, 30);
        let reopened = RedisIndex::open(settings, identity(k)).expect("an index");
        model.check(&reopened, &source.queries(20), "opened anew");
        assert!(server.cli(&["EXISTS", "sh:{HINDI}:log:2", "sh:{HINDI}:tlog:2"]).starts_with('2'));
    }
}

#[test]
fn records_are_those_of_the_layout_and_what_is_known_is_not_appended_again() {
    let server = Server::start();
    let index = open(&server.url(), Layout::Log, 3);
    let hindi = language("hi");
    let documents = [
        Document { language: hindi, id: 0x4142.into(), hash: SimHash(0x43) },
        Document { language: hindi, id: "id".into(), hash: SimHash(0x44) },
    ];
    for _ in 0..3 {
        index.insert(&documents).expect("an insert");
    }
    let value = |key: &str| server.cli(&["GET", key]).into_bytes();
    assert_eq!(value("sh:{HINDI}:log:0"), b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0C\0\0\0\0\0\0AB\n");
    assert_eq!(value("sh:{HINDI}:tlog:0"), b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0D\0\x02id\n");
    assert_eq!(index.stats().expect("stats").bytes["log"], 44);
    assert_eq!(index.remove(&hindi, &[1.into(), "id".into(), "id".into()]).expect("a removal"), 1);
    assert_eq!(value("sh:{HINDI}:tlog:0").len(), 41);
}

#[test]
fn a_record_that_is_cut_off_is_passed_over_and_the_next_segment_begun() {
    let server = Server::start();
    let (mut source, mut model) = (Source::new(103, 40), Model::default());
    for torn in 0..3 {
        let index = open(&server.url(), Layout::Log, 3);
        model.check(&index, &[], "before");
        let documents = source.documents(100);
        index.insert(&documents).expect("an insert");
        model.insert(&documents);
        for part in ["log", "tlog"] {
            server.cli(&["APPEND", &format!("sh:{{HINDI}}:{part}:{torn}"), "seventeen bytes.."]);
        }
    }
    model.check(&open(&server.url(), Layout::Log, 3), &source.queries(20), "after");
    assert!(server.cli(&["EXISTS", "sh:{HINDI}:log:2", "sh:{HINDI}:tlog:2"]).starts_with('2'));
}

#[test]
fn processes_see_what_others_appended() {
    let server = Server::start();
    let settings = settings(&server.url(), Layout::Log).segment_bytes(5000);
    let indexes: Vec<RedisIndex> =
        (0..4).map(|_| RedisIndex::open(settings.clone(), identity(3)).expect("an index")).collect();
    let (mut source, mut model) = (Source::new(104, 1_000_000), Model::default());
    let parts: Vec<Vec<Document>> = (0..4_u64)
        .map(|part| {
            let ids = (0..500).map(|id| part * 1000 + id);
            ids.map(|id| Document { language: source.language(), id: id.into(), hash: source.hash() })
                .collect()
        })
        .collect();
    std::thread::scope(|scope| {
        for (index, part) in indexes.iter().zip(&parts) {
            scope.spawn(move || part.chunks(7).for_each(|batch| index.insert(batch).expect("an insert")));
        }
    });
    parts.iter().for_each(|part| model.insert(part));
    for index in &indexes {
        model.check(index, &source.queries(20), "each of them");
    }
    // No document was appended twice.
    let total: u64 = indexes[0].stats().expect("stats").bytes["log"];
    assert_eq!(total, 2000 * 24);
}

#[test]
fn of_other_features_it_is_refused() {
    let server = Server::start();
    let document = Document { language: language("hi"), id: 1.into(), hash: SimHash(1) };
    open(&server.url(), Layout::Log, 3).insert(&[document]).expect("an insert");
    let other = Identity::new(3, Features::Char5).expect("k is 3");
    let error = RedisIndex::open(settings(&server.url(), Layout::Log), other).expect_err("other features");
    assert_eq!(error.kind(), IndexErrorKind::Identity);
    // The layouts in one server are independent.
    let compact = open(&server.url(), Layout::Compact, 3);
    assert_eq!(compact.near(&[(language("hi"), SimHash(1))]).expect("an answer"), [[]]);
}
