//! Tests of the seed layout, which other programs use: they read what this program writes, and the other way round.

use std::collections::{BTreeMap, BTreeSet};

use huntsman_dedup::redis::{Layout, RedisIndex};
use huntsman_detect::near::{DocId, Document, Identity, IndexErrorKind, NearIndex, NearMatch};
use huntsman_detect::simhash::{Features, SimHash};
use huntsman_testkit::redis::Server;

use super::model::{Model, Source, identity, language, open, random_steps, settings};

#[test]
fn the_seed_layout_is_the_naive_index() {
    let server = Server::start();
    for (seed, k) in [(1, 3), (2, 7), (3, 0)] {
        server.cli(&["FLUSHALL"]);
        let index = open(&server.url(), Layout::Seed, k);
        random_steps(&index, &mut Model::default(), &mut Source::new(seed, 40), 30);
    }
}

/// The key names of the first deployments, written independently of the implementation.
fn keys(language: &str, hash: SimHash) -> Vec<String> {
    let digits = format!("{:032X}", hash.0);
    (0..8).map(|band| format!("{language}:{band}:{}", &digits[4 * band..4 * band + 4])).collect()
}

#[test]
fn what_the_seed_layout_writes_is_what_redis_cli_reads() {
    let server = Server::start();
    let index = open(&server.url(), Layout::Seed, 3);
    let (mut source, mut model) = (Source::new(4, 40), Model::default());
    for _ in 0..20 {
        let documents = source.documents(40);
        index.insert(&documents).expect("an insert");
        model.insert(&documents);
        let (language, ids) = (source.language(), [source.id(), source.id()]);
        index.remove(&language, &ids).expect("a removal");
        model.remove(language, &ids);
    }
    // Every key that should exist, with every member.
    let mut sets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut hashes: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for ((language, id), hash) in &model.0 {
        let id = match id {
            DocId::Text(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => format!("\"{text}"),
            id => id.to_string(),
        };
        for key in keys(language.as_str(), *hash) {
            sets.entry(key).or_default().insert(id.clone());
        }
        hashes.entry(format!("simhashes:{language}")).or_default().insert(id, format!("{:032x}", hash.0));
    }
    let lines =
        |arguments: &[&str]| -> Vec<String> { server.cli(arguments).lines().map(str::to_owned).collect() };
    let mut found: BTreeSet<String> = lines(&["KEYS", "*"]).into_iter().collect();
    assert!(found.remove("simhashes-meta"));
    assert_eq!(found, sets.keys().chain(hashes.keys()).cloned().collect());
    // One redis-cli reads all sets; each begins with its key.
    let commands: String = sets.keys().map(|key| format!("ECHO {key}\nSMEMBERS {key}\n")).collect();
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut key = "";
    let said = server.cli_with_input(&[], &commands);
    for line in said.lines() {
        if sets.contains_key(line) {
            key = line;
            read.insert(key.to_owned(), BTreeSet::new());
        } else {
            read.entry(key.to_owned()).or_default().insert(line.to_owned());
        }
    }
    assert_eq!(read, sets);
    for (key, fields) in hashes {
        let found = lines(&["HGETALL", &key]);
        let found: BTreeMap<_, _> = found.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        assert_eq!(found, fields, "{key}");
    }
}

#[test]
fn what_redis_cli_writes_is_found() {
    let server = Server::start();
    let hash = SimHash(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    let mut commands = String::new();
    let near = [("1001", 0), ("1002", 0b1011), ("an-id", 1 << 127), ("007", 0b1_1111)];
    for (id, flipped) in near {
        let hash = SimHash(hash.0 ^ flipped);
        keys("HINDI", hash).iter().for_each(|key| commands += &format!("SADD {key} {id}\n"));
        commands += &format!("HSET simhashes:HINDI {id} {hash}\n");
    }
    // Traces of a writer that was stopped halfway, of one whose hash is invalid, and of one whose hash has changed since.
    let keys = keys("HINDI", hash);
    keys.iter().for_each(|key| commands += &format!("SADD {key} 2001 2002 2003\n"));
    commands += "HSET simhashes:HINDI 2002 nonsense 2003 ffffffffffffffffffffffffffffffff\n";
    server.cli_with_input(&[], &commands);

    let index = open(&server.url(), Layout::Seed, 3);
    let hindi = language("hi");
    let found = index.near(&[(hindi, hash), (language("ta"), hash), (hindi, SimHash(0))]).expect("an answer");
    let ids = |ids: &[(&str, u32)]| -> Vec<NearMatch> {
        let near = ids.iter().map(|(id, distance)| {
            let id = id.parse().ok().filter(|_| !id.starts_with('0')).map_or((*id).into(), DocId::Number);
            NearMatch { id, distance: *distance }
        });
        near.collect()
    };
    assert_eq!(found, [ids(&[("1001", 0), ("an-id", 1), ("1002", 3)]), vec![], vec![]]);
    let wider = open(&server.url(), Layout::Seed, 7);
    let found = wider.near(&[(hindi, hash)]).expect("an answer");
    assert_eq!(found, [ids(&[("1001", 0), ("an-id", 1), ("1002", 3), ("007", 5)])]);
    assert_eq!(index.stats().expect("stats").languages[&hindi].documents, 6);

    // Documents that other programs wrote are replaced and removed like our own.
    let moved = SimHash(!hash.0);
    index.insert(&[Document { language: hindi, id: 1001.into(), hash: moved }]).expect("an insert");
    assert_eq!(index.remove(&hindi, &["an-id".into(), 1002.into(), "none".into()]).expect("a removal"), 2);
    let found = index.near(&[(hindi, hash), (hindi, moved)]).expect("an answer");
    assert_eq!(found[0], []);
    assert_eq!(found[1], ids(&[("1001", 0), ("2003", hash.distance(SimHash(u128::MAX)))])[..1]);
    assert!(!server.cli(&["SMEMBERS", &keys[0]]).lines().any(|id| id == "1001"), "the old bands go");
}

#[test]
fn only_what_we_began_says_of_which_features_it_is() {
    let server = Server::start();
    server.cli(&["HSET", "simhashes:HINDI", "1", &"1".repeat(32)]);
    let hash = SimHash(5);
    let index = open(&server.url(), Layout::Seed, 3);
    for name in ["hi", "ta"] {
        index.insert(&[Document { language: language(name), id: 7.into(), hash }]).expect("an insert");
    }
    assert_eq!(server.cli(&["HGETALL", "simhashes-meta"]), "TAMIL\nwords-log\n");
    let other = Identity::new(3, Features::Char5).expect("k is 3");
    let error =
        RedisIndex::open(settings(&server.url(), Layout::Seed), other).expect_err("of other features");
    assert_eq!(error.kind(), IndexErrorKind::Identity);
    assert!(error.to_string().contains("words-log"), "{error}");
    // Eight bands serve every k.
    assert!(RedisIndex::open(settings(&server.url(), Layout::Seed), identity(7)).is_ok());
}
