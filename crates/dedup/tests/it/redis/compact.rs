//! Tests of the compact layout: the data in the server, and its size.

use huntsman_dedup::redis::{HashTag, Layout, RedisIndex};
use huntsman_detect::near::{Document, Identity, IndexErrorKind, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_testkit::redis::Server;

use super::model::{Model, Source, identity, language, open, random_steps, settings};

#[test]
fn the_compact_layout_is_the_naive_index() {
    let server = Server::start();
    for (seed, k) in [(11, 3), (12, 7), (13, 0), (14, 4)] {
        server.cli(&["FLUSHALL"]);
        let index = open(&server.url(), Layout::Compact, k);
        random_steps(&index, &mut Model::default(), &mut Source::new(seed, 40), 30);
        index.flush().expect("a flush");
    }
}

#[test]
fn rows_and_members_are_those_of_the_layout() {
    let server = Server::start();
    let index = RedisIndex::open(settings(&server.url(), Layout::Compact).design_size(1), identity(3));
    let index = index.expect("an index");
    let hash = SimHash(1);
    let hindi = language("hi");
    index.insert(&[Document { language: hindi, id: 258.into(), hash }]).expect("an insert");
    index.insert(&[Document { language: hindi, id: "a".into(), hash }]).expect("an insert");
    let lines = |arguments: &[&str]| server.cli(arguments);
    assert_eq!(lines(&["GET", "sh:{HINDI}:next"]), "2\n");
    assert_eq!(lines(&["SMEMBERS", "sh:languages"]), "HINDI\n");
    let row = lines(&["HGET", "sh:{HINDI}:d:0", "0"]);
    assert_eq!(row.as_bytes(), b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01\x02\n");
    assert_eq!(lines(&["HSTRLEN", "sh:{HINDI}:d:0", "1"]), "16\n");
    assert_eq!(lines(&["HGET", "sh:{HINDI}:t:0", "1"]), "a\n");
    // fmix32(0) is 0 and fmix32(1) is 0x514e28b7. With one bit for the bucket, the rest is the whole value.
    for band in ["0", "1", "2"] {
        assert_eq!(lines(&["SMEMBERS", &format!("sh:{{HINDI}}:{band}:0")]), "0\n1\n");
    }
    let member = 0x514e_28b7_u64 << 32;
    assert_eq!(lines(&["SMEMBERS", "sh:{HINDI}:3:0"]), format!("{member}\n{}\n", member + 1));
    let encoding = lines(&["OBJECT", "ENCODING", "sh:{HINDI}:3:0"]);
    assert_eq!(encoding, "intset\n");
    assert_eq!(lines(&["OBJECT", "ENCODING", "sh:{HINDI}:d:0"]), "listpack\n");
    index.flush().expect("a flush");
    assert_eq!(
        lines(&["HMGET", "sh:{HINDI}:meta", "version", "p", "features", "tag", "count"]),
        "1\n1\nwords-log\nlanguage\n2\n"
    );

    // All data of a document is removed with it, except its number.
    assert_eq!(index.remove(&hindi, &[258.into(), "a".into()]).expect("a removal"), 2);
    let mut keys: Vec<String> = lines(&["KEYS", "*"]).lines().map(str::to_owned).collect();
    keys.sort();
    assert_eq!(keys, ["sh:languages", "sh:{HINDI}:meta", "sh:{HINDI}:next"]);
}

#[test]
fn a_document_that_changes_leaves_nothing_behind() {
    let server = Server::start();
    let index = open(&server.url(), Layout::Compact, 3);
    let mut source = Source::new(15, 40);
    let language = language("hi");
    for _ in 0..20 {
        let documents = (0..50).map(|id: u64| Document { language, id: id.into(), hash: source.hash() });
        index.insert(&documents.collect::<Vec<_>>()).expect("an insert");
    }
    let mut members = 0;
    for key in server.cli(&["KEYS", "sh:{HINDI}:[0-3]:*"]).lines() {
        members += server.cli(&["SCARD", key]).trim().parse::<u32>().expect("a number");
    }
    assert_eq!((members, server.cli(&["GET", "sh:{HINDI}:next"]).trim()), (200, "50"));
}

#[test]
fn another_design_size_keeps_what_is_there_and_other_features_or_tags_are_refused() {
    let server = Server::start();
    let (mut source, mut model) = (Source::new(16, 1000), Model::default());
    let documents = source.documents(300);
    model.insert(&documents);
    open(&server.url(), Layout::Compact, 3).insert(&documents).expect("an insert");
    let larger = settings(&server.url(), Layout::Compact).design_size(1 << 20);
    let index = RedisIndex::open(larger.clone(), identity(7)).expect("an index");
    model.check(&index, &source.queries(20), "opened anew");

    let features = Identity::new(3, Features::Words3).expect("k is 3");
    let error = RedisIndex::open(larger.clone(), features).expect_err("other features");
    assert_eq!(error.kind(), IndexErrorKind::Identity);
    let error = RedisIndex::open(larger.clone().tag(HashTag::Band), identity(3)).expect_err("another tag");
    assert_eq!(error.kind(), IndexErrorKind::Identity);
    assert!(error.to_string().contains("keys go by language"), "{error}");
    server.cli(&["HSET", "sh:{HINDI}:meta", "version", "2"]);
    let error = RedisIndex::open(larger, identity(3)).expect_err("another version");
    assert_eq!(error.kind(), IndexErrorKind::Format);
}

#[test]
fn what_is_no_index_is_named() {
    let server = Server::start();
    let index = open(&server.url(), Layout::Compact, 3);
    let document = Document { language: language("hi"), id: 1.into(), hash: SimHash(1) };
    index.insert(std::slice::from_ref(&document)).expect("an insert");
    server.cli(&["HSET", "sh:{HINDI}:d:0", "0", "short"]);
    let error = index.near(&[(document.language, document.hash)]).expect_err("no row");
    assert_eq!(error.kind(), IndexErrorKind::Damaged);
    assert!(error.to_string().contains("sh:{HINDI}:d:0"), "{error}");
    server.cli(&["SET", "sh:languages", "x"]);
    let error = RedisIndex::open(settings(&server.url(), Layout::Compact), identity(3)).expect_err("no set");
    assert_eq!(error.kind(), IndexErrorKind::Format);
}

#[test]
fn several_writers_number_and_name_documents_once() {
    let server = Server::start();
    let (mut source, mut model) = (Source::new(17, 100_000), Model::default());
    let language = language("hi");
    let documents: Vec<Document> =
        (0..2000_u64).map(|id| Document { language, id: id.into(), hash: source.hash() }).collect();
    model.insert(&documents);
    // Each thread acts as another machine, and all of them insert the same documents at the same time.
    let together = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let index = open(&server.url(), Layout::Compact, 3);
                for batch in documents.chunks(40) {
                    together.wait();
                    index.insert(batch).expect("an insert");
                }
            });
        }
    });
    model.check(&open(&server.url(), Layout::Compact, 3), &source.queries(50), "four writers");
}
