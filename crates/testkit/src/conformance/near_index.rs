//! What every [`NearIndex`] promises.
//!
//! Each function tests one promise and takes a factory, which opens a new or an existing index, and the k that the
//! index is made for; [`near_index_conformance!`](crate::near_index_conformance) makes a test of each, for k = 3 and
//! for k = 7. Promises that only persistent indexes make are separate: [`what_was_done_is_there_after_reopening`],
//! [`another_identity_is_refused`], and reopening between random steps.
//!
//! The expected results always come from the naive method: a comparison with every document.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use huntsman_detect::near::{
    DocId, Document, Identity, IndexError, IndexErrorKind, Language, NearIndex, NearMatch,
};
use huntsman_detect::simhash::{Features, SimHash};

mod hashes;
mod random;

pub use hashes::{Hashes, Spread};
pub use random::random_steps_equal_a_naive_model;

/// Makes one test of each promise, in a module of its own, for a factory `Fn(&Path, Identity) -> Opened` that stores
/// its index in that directory or under that name. With `outlives` as the last argument, the promises of persistent
/// indexes are tested as well.
///
/// ```
/// # use std::path::Path;
/// # use huntsman_detect::near::{Identity, MemoryIndex};
/// # use huntsman_testkit::conformance::near_index::Opened;
/// fn open(_: &Path, identity: Identity) -> Opened {
///     Ok(Box::new(MemoryIndex::new(identity)))
/// }
///
/// huntsman_testkit::near_index_conformance!(memory, open);
/// ```
#[macro_export]
macro_rules! near_index_conformance {
    ($name:ident, $open:expr) => {
        $crate::near_index_conformance!(@ $name, $open, false,);
    };
    ($name:ident, $open:expr, outlives) => {
        $crate::near_index_conformance!(@ $name, $open, true,
            what_was_done_is_there_after_reopening another_identity_is_refused
        );
    };
    (@ $name:ident, $open:expr, $outlives:expr, $($more:ident)*) => {
        $crate::near_index_conformance!(@@ $name, $open, $outlives,
            an_index_begins_empty all_within_k_bits_are_found_and_no_others matches_go_by_distance_and_then_by_id
            answers_come_in_the_order_of_the_queries languages_are_apart ids_come_back_as_they_were_given
            an_id_that_is_too_long_is_refused_before_anything_is_done a_document_is_replaced_by_its_id
            in_a_batch_the_last_of_an_id_stays a_batch_again_changes_nothing texts_without_words_are_never_found
            what_is_removed_is_gone fingerprints_are_given_for_ids every_document_is_visited_once
            a_visit_ends_when_its_callback_says_so a_visit_may_use_the_index skewed_fingerprints_are_found_as_well
            fingerprints_of_texts_are_found_as_well racing_writers_lose_nothing
            queries_during_inserts_find_all_earlier_documents $($more)*
        );
    };
    (@@ $name:ident, $open:expr, $outlives:expr, $($promise:ident)+) => {
        mod $name {
            use super::*;

            use $crate::conformance::near_index as suite;

            $(
                #[test]
                fn $promise() {
                    for k in [3, 7] {
                        let directory = suite::directory();
                        suite::$promise(&|identity| $open(directory.path(), identity), k);
                    }
                }
            )+

            #[test]
            fn random_steps_equal_a_naive_model() {
                for (seed, k) in [(0, 3), (1, 7), (2, 0), (3, 3), (4, 4)] {
                    let directory = suite::directory();
                    let open = |identity| $open(directory.path(), identity);
                    suite::random_steps_equal_a_naive_model(&open, k, seed, $outlives);
                }
            }
        }
    };
}

/// The result of a factory.
pub type Opened = Result<Box<dyn NearIndex>, IndexError>;

/// A directory for one index, removed when it is dropped.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The identity of an index that finds everything within k bits, with the usual features.
pub fn identity(k: u32) -> Identity {
    Identity::new(k, Features::default()).expect("k is at most 7")
}

fn language(name: &str) -> Language {
    Language::parse(name).expect("a name of the suite is one")
}

fn document(name: &str, id: impl Into<DocId>, hash: u128) -> Document {
    Document { language: language(name), id: id.into(), hash: SimHash(hash) }
}

fn opened(open: &impl Fn(Identity) -> Opened, k: u32) -> Box<dyn NearIndex> {
    let index = open(identity(k)).expect("the factory opens an index");
    assert_eq!(index.identity(), &identity(k));
    index
}

fn insert(index: &dyn NearIndex, documents: &[Document]) {
    index.insert(documents).expect("insert");
}

fn near(index: &dyn NearIndex, name: &str, hash: u128) -> Vec<NearMatch> {
    let mut found = index.near(&[(language(name), SimHash(hash))]).expect("near");
    assert_eq!(found.len(), 1, "one query has one answer");
    found.pop().expect("one answer")
}

fn ids(found: &[NearMatch]) -> Vec<DocId> {
    found.iter().map(|near| near.id.clone()).collect()
}

fn count(index: &dyn NearIndex) -> u64 {
    index.stats().expect("stats").documents()
}

/// All documents, by language and id.
fn all(index: &dyn NearIndex) -> BTreeMap<(Language, DocId), SimHash> {
    let mut found = BTreeMap::new();
    let visit = &mut |document: &Document| {
        let before = found.insert((document.language, document.id.clone()), document.hash);
        assert_eq!(before, None, "{document:?} is visited once");
        ControlFlow::Continue(())
    };
    index.for_each(visit).expect("for_each");
    found
}

/// The near documents, found by comparing with every document.
fn naive(documents: &[Document], query: &(Language, SimHash), k: u32) -> Vec<NearMatch> {
    let of_language = documents.iter().filter(|document| document.language == query.0);
    let mut found: Vec<NearMatch> = of_language
        .map(|document| NearMatch { id: document.id.clone(), distance: document.hash.distance(query.1) })
        .filter(|near| near.distance <= k)
        .collect();
    found.sort_by(NearMatch::order);
    found
}

/// A document for each fingerprint, with its position as its id, in one language.
fn numbered(name: &str, hashes: impl IntoIterator<Item = u128>) -> Vec<Document> {
    (0_u64..).zip(hashes).map(|(id, hash)| document(name, id, hash)).collect()
}

/// Inserts documents and compares results with the naive ones: queries are every `step`th document, and a fingerprint
/// that differs from it in some bits.
fn judge(index: &dyn NearIndex, documents: &[Document], step: usize, k: u32, hashes: &mut Hashes) {
    for batch in documents.chunks(1000) {
        insert(index, batch);
    }
    let mut queries = Vec::new();
    for document in documents.iter().step_by(step) {
        queries.push((document.language, document.hash));
        queries.push((document.language, SimHash(hashes.near(document.hash.0, k + 1))));
    }
    let found = index.near(&queries).expect("near");
    assert_eq!(found.len(), queries.len());
    let mut others = 0;
    for (query, found) in queries.iter().zip(&found) {
        assert_eq!(*found, naive(documents, query, k), "k = {k}, {}", query.1);
        others += found.len().saturating_sub(1);
    }
    assert!(others > 0, "of the documents of this test some are near to others");
}

/// A new index is empty, and batches without documents change nothing.
pub fn an_index_begins_empty(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    insert(&*index, &[]);
    assert_eq!(near(&*index, "hi", 1), []);
    assert_eq!(index.near(&[]).expect("near"), Vec::<Vec<NearMatch>>::new());
    assert_eq!(index.get(&language("hi"), &[1.into()]).expect("get"), [None]);
    assert_eq!(index.remove(&language("hi"), &[1.into()]).expect("remove"), 0);
    assert_eq!((count(&*index), all(&*index).len()), (0, 0));
    index.flush().expect("flush");
}

/// For every distance up to k + 2: a document is found if and only if the distance is at most k, wherever the
/// differing bits are.
pub fn all_within_k_bits_are_found_and_no_others(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0401, Spread::Even);
    let base = hashes.next();
    let mut patterns = BTreeSet::new();
    for distance in 0..=k + 2 {
        // The differing bits are as far apart as possible, which touches as many bands as possible; close together;
        // and anywhere.
        for step in [16, 33, 1, 128 / (k + 2) + 1] {
            let bit = |start: u32, n: u32| 1_u128 << ((start + n * step) % 128);
            patterns.extend((0..128).map(|start| (0..distance).fold(0, |bits, n| bits | bit(start, n))));
        }
        patterns.extend((0..100).map(|_| hashes.bits(distance)));
    }
    let documents = numbered("hi", patterns.iter().map(|bits| base ^ bits));
    let index = opened(open, k);
    insert(&*index, &documents);
    for query in [base, base ^ 1, base ^ 1 << 127, base ^ (1 << 64 | 1 << 31), !base] {
        let query = (language("hi"), SimHash(query));
        assert_eq!(near(&*index, "hi", query.1.0), naive(&documents, &query, k), "k = {k}, {}", query.1);
    }
}

/// Results are sorted by distance; for equal distances, numeric ids come first, then text ids by their bytes.
pub fn matches_go_by_distance_and_then_by_id(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    let (hash, far) = (0xabcd << 64 | 0x1234, 0xabcd << 64 | 0x1235);
    let texts = ["b", "a", "10", "9"].map(|id| document("hi", id, hash));
    let numbers = [10, 9, u64::MAX].map(|id| document("hi", id, hash));
    insert(&*index, &[document("hi", 1, far), document("hi", "A", far)]);
    insert(&*index, &texts);
    insert(&*index, &numbers);
    let found = near(&*index, "hi", hash);
    let expected: [DocId; 9] = [
        9.into(),
        10.into(),
        u64::MAX.into(),
        "10".into(),
        "9".into(),
        "a".into(),
        "b".into(),
        1.into(),
        "A".into(),
    ];
    assert_eq!(ids(&found), expected);
    assert_eq!(found.iter().map(|near| near.distance).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 0, 1, 1]);
}

/// A batch of queries of several languages, with and without matches, gets its results in the order of the queries.
pub fn answers_come_in_the_order_of_the_queries(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0402, Spread::Even);
    let names = ["hi", "ta", "X-1"];
    let documents: Vec<Document> =
        (0..300).map(|n| document(names[n % 3], n as u64, hashes.next())).collect();
    let index = opened(open, k);
    insert(&*index, &documents);
    let query = |n: usize| match n % 4 {
        0 => (language("never-seen"), SimHash(hashes.clone().next())),
        1 => (language("ta"), documents[0].hash),
        _ => (documents[n % 300].language, documents[n % 300].hash),
    };
    let queries: Vec<(Language, SimHash)> = (0..1000).map(query).collect();
    for (query, found) in queries.iter().zip(index.near(&queries).expect("near")) {
        assert_eq!(found, naive(&documents, query, k));
    }
}

/// The same id and fingerprint in two languages make two documents.
pub fn languages_are_apart(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    insert(&*index, &[document("hi", 1, 5 << 100), document("bn", 1, 5 << 100), document("bn", 2, 7 << 100)]);
    assert_eq!(ids(&near(&*index, "hi", 5 << 100)), [1.into()]);
    assert_eq!(ids(&near(&*index, "bn", 5 << 100)), [1.into(), DocId::from(2)]);
    assert_eq!(near(&*index, "mr", 5 << 100), []);
    assert_eq!(index.remove(&language("hi"), &[1.into(), 2.into()]).expect("remove"), 1);
    assert_eq!(near(&*index, "hi", 5 << 100), []);
    assert_eq!(near(&*index, "bn", 5 << 100).len(), 2);
    let stats = index.stats().expect("stats");
    let documents = stats.languages.iter().filter(|(_, stats)| stats.documents > 0);
    assert_eq!(
        documents.map(|(name, stats)| (*name, stats.documents)).collect::<Vec<_>>(),
        [(language("bn"), 2)]
    );
}

/// Ids are numbers and texts, including ones that look alike, with any characters, empty ones and ones of the maximum
/// length.
pub fn ids_come_back_as_they_were_given(open: &impl Fn(Identity) -> Opened, k: u32) {
    let longest = "x".repeat(DocId::MAX_BYTES);
    let numbers = [0, 1, 7, u64::from(u32::MAX), 1 << 53, i64::MAX as u64, 1 << 63, u64::MAX];
    let texts = ["", "7", "07", "a b:c*{d}\n", "\0", "हिन्दी", "18446744073709551615", "-1", "d:7", &longest];
    let given: BTreeSet<DocId> =
        numbers.into_iter().map(DocId::from).chain(texts.into_iter().map(DocId::from)).collect();
    let index = opened(open, k);
    let documents: Vec<Document> = given.iter().map(|id| document("hi", id.clone(), 9 << 90)).collect();
    insert(&*index, &documents);
    assert_eq!(ids(&near(&*index, "hi", 9 << 90)), given.iter().cloned().collect::<Vec<DocId>>());
    assert_eq!(all(&*index).into_keys().map(|(_, id)| id).collect::<BTreeSet<DocId>>(), given);
    for id in &given {
        assert_eq!(
            index.get(&language("hi"), std::slice::from_ref(id)).expect("get"),
            [Some(SimHash(9 << 90))]
        );
    }
}

/// A batch with an id that is too long is an input error, and none of its documents is inserted.
pub fn an_id_that_is_too_long_is_refused_before_anything_is_done(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    let too_long = document("hi", "x".repeat(DocId::MAX_BYTES + 1), 3);
    let mut documents = numbered("hi", [5 << 70; 5000]);
    documents.push(too_long.clone());
    let error = index.insert(&documents).expect_err("an id is too long");
    assert_eq!(error.kind(), IndexErrorKind::Input, "{error}");
    assert_eq!((near(&*index, "hi", 5 << 70), count(&*index)), (vec![], 0));
    assert_eq!(index.get(&language("hi"), std::slice::from_ref(&too_long.id)).expect("get"), [None]);
}

/// An id keeps only its latest fingerprint, even if it had the same fingerprint before another one.
pub fn a_document_is_replaced_by_its_id(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0403, Spread::Even);
    let index = opened(open, k);
    for id in [DocId::from(3), DocId::from("three")] {
        let versions = [hashes.next(), hashes.next()];
        for round in 0..5 {
            let (now, before) = (versions[round % 2], versions[(round + 1) % 2]);
            insert(&*index, &[document("hi", id.clone(), now)]);
            assert_eq!(ids(&near(&*index, "hi", now)), std::slice::from_ref(&id), "round {round}");
            assert_eq!(near(&*index, "hi", before), [], "round {round}");
        }
        let close = versions[0] ^ 1;
        insert(&*index, &[document("hi", id.clone(), close)]);
        assert_eq!(near(&*index, "hi", versions[0]), [NearMatch { id, distance: 1 }]);
    }
    assert_eq!(count(&*index), 2);
}

/// If a batch has several fingerprints of one id, the last one counts, even if it is the one that was stored before.
pub fn in_a_batch_the_last_of_an_id_stays(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0404, Spread::Even);
    let (a, b, c) = (hashes.next(), hashes.next(), hashes.next());
    let index = opened(open, k);
    let batch = |hashes: &[u128]| hashes.iter().map(|hash| document("hi", 1, *hash)).collect::<Vec<_>>();
    for (round, batch) in
        [batch(&[a, b]), batch(&[c, a, b]), batch(&[a, c, b]), batch(&[b, a, 0, c, b])].iter().enumerate()
    {
        insert(&*index, batch);
        assert_eq!((near(&*index, "hi", a), near(&*index, "hi", c)), (vec![], vec![]), "round {round}");
        assert_eq!(ids(&near(&*index, "hi", b)), [1.into()], "round {round}");
    }
    insert(&*index, &batch(&[a, 0]));
    assert_eq!((near(&*index, "hi", a), near(&*index, "hi", b), count(&*index)), (vec![], vec![], 0));
}

/// Inserting the same batch any number of times leaves the results and the count unchanged.
pub fn a_batch_again_changes_nothing(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0405, Spread::Even);
    let documents: Vec<Document> =
        (0..500).map(|n| document(["hi", "ta"][n % 2], n as u64 / 2, hashes.next())).collect();
    let index = opened(open, k);
    insert(&*index, &documents);
    let before = all(&*index);
    assert_eq!(before.len(), 500);
    insert(&*index, &documents);
    insert(&*index, &documents[100..200]);
    let twice = [&documents[..], &documents[..]].concat();
    insert(&*index, &twice);
    assert_eq!((count(&*index), all(&*index)), (500, before));
    for document in &documents {
        let found = near(&*index, document.language.as_str(), document.hash.0);
        assert_eq!(ids(&found), std::slice::from_ref(&document.id));
    }
}

/// The fingerprint 0 stands for a text without words: it is not indexed, it removes the stored fingerprint of its id,
/// and as a query it finds nothing, not even fingerprints near to it.
pub fn texts_without_words_are_never_found(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    insert(&*index, &[document("hi", 1, 0), document("hi", 2, 1), document("hi", "3", 1 << 70)]);
    assert_eq!(near(&*index, "hi", 0), []);
    assert_eq!(count(&*index), 2);
    let within: &[DocId] = if k >= 2 { &[2.into(), "3".into()] } else { &[2.into()] };
    assert_eq!(ids(&near(&*index, "hi", 1)), within);
    insert(&*index, &[document("hi", 2, 0)]);
    assert_eq!(index.get(&language("hi"), &[1.into(), 2.into()]).expect("get"), [None, None]);
    assert_eq!(ids(&near(&*index, "hi", 1 << 70)), ["3".into()]);
    assert_eq!(count(&*index), 1);
}

/// A removed document is not found, not counted and not visited, and can be inserted again; removing a document that
/// is not stored does not count as a removal.
pub fn what_is_removed_is_gone(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0406, Spread::Even);
    let mut documents = numbered("hi", (0..400).map(|_| hashes.next()));
    documents.iter_mut().step_by(3).for_each(|document| document.id = document.id.to_string().into());
    let index = opened(open, k);
    insert(&*index, &documents);
    let (gone, left) = documents.split_at(150);
    let mut ids_gone: Vec<DocId> = gone.iter().map(|document| document.id.clone()).collect();
    ids_gone.extend([9999.into(), "never there".into(), ids_gone[0].clone()]);
    assert_eq!(index.remove(&language("hi"), &ids_gone).expect("remove"), 150);
    assert_eq!(index.remove(&language("hi"), &ids_gone).expect("remove"), 0);
    assert_eq!(index.remove(&language("ta"), &ids_gone).expect("remove"), 0);
    for document in &documents {
        let expected = naive(left, &(document.language, document.hash), k);
        assert_eq!(near(&*index, "hi", document.hash.0), expected, "{}", document.id);
    }
    assert_eq!((count(&*index), all(&*index).len()), (250, 250));
    insert(&*index, &gone[..10]);
    assert_eq!(ids(&near(&*index, "hi", gone[3].hash.0)), [gone[3].id.clone()]);
    assert_eq!(count(&*index), 260);
}

/// The index returns one fingerprint for each id, in their order; `None` for an id that is not stored.
pub fn fingerprints_are_given_for_ids(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    insert(
        &*index,
        &[document("hi", 1, 5), document("hi", "1", 6), document("ta", 1, 7), document("hi", 2, 8)],
    );
    let asked: [DocId; 6] = [2.into(), "1".into(), 3.into(), 1.into(), "2".into(), 2.into()];
    let found = index.get(&language("hi"), &asked).expect("get");
    assert_eq!(found, [Some(8), Some(6), None, Some(5), None, Some(8)].map(|hash| hash.map(SimHash)));
    assert_eq!(index.get(&language("ta"), &asked).expect("get")[3], Some(SimHash(7)));
}

/// A visit calls back once for every stored document, with its present fingerprint.
pub fn every_document_is_visited_once(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0407, Spread::Even);
    let index = opened(open, k);
    let mut expected = BTreeMap::new();
    for n in 0..1500_u64 {
        let (name, id) = (["hi", "ta", "x"][n as usize % 3], n % 1000);
        let id = if id % 7 == 0 { DocId::from(id.to_string()) } else { id.into() };
        let document = document(name, id, hashes.next());
        insert(&*index, std::slice::from_ref(&document));
        expected.insert((document.language, document.id), document.hash);
    }
    assert_eq!(all(&*index), expected);
    assert_eq!(count(&*index), expected.len() as u64);
}

/// A visit whose callback returns `Break` does not call it again.
pub fn a_visit_ends_when_its_callback_says_so(open: &impl Fn(Identity) -> Opened, k: u32) {
    let index = opened(open, k);
    insert(&*index, &numbered("hi", 1..=50));
    insert(&*index, &numbered("ta", 1..=50));
    for end in [1, 49, 50, 51, 99] {
        let mut visited = 0;
        let visit = &mut |_: &Document| {
            visited += 1;
            if visited == end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        index.for_each(visit).expect("for_each");
        assert_eq!(visited, end);
    }
}

/// The callback of a visit may query, insert and remove.
pub fn a_visit_may_use_the_index(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0408, Spread::Even);
    let index = opened(open, k);
    insert(&*index, &numbered("hi", (0..100).map(|_| hashes.next())));
    let mut visited = 0;
    let visit = &mut |visited_document: &Document| {
        let DocId::Number(number) = visited_document.id else { panic!("numbers were inserted") };
        if number < 100 {
            visited += 1;
            assert_eq!(ids(&near(&*index, "hi", visited_document.hash.0)), [number.into()]);
            insert(&*index, &[document("hi", 100 + number, hashes.next())]);
            assert_eq!(index.remove(&language("hi"), &[number.into()]).expect("remove"), 1);
        }
        ControlFlow::Continue(())
    };
    index.for_each(visit).expect("for_each");
    assert_eq!((visited, count(&*index)), (100, 100));
}

/// If bits are far from random, as within one language, many documents share a band; none is left out because of
/// that.
pub fn skewed_fingerprints_are_found_as_well(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0409, Spread::Skewed);
    let mut documents = numbered("hi", (0..3000).map(|_| hashes.next()));
    // This adds bands that are the same in all fingerprints.
    let same = hashes.next();
    documents
        .extend((3000..4000).map(|id| document("hi", id, same & !0xffff_ffff | hashes.next() & 0xffff_ffff)));
    documents.extend((4000..4200).map(|id| document("hi", id, hashes.near(same, k + 1))));
    judge(&*opened(open, k), &documents, 40, k, &mut hashes);
}

/// Fingerprints of real words: of stories, and of copies of them with some words changed.
pub fn fingerprints_of_texts_are_found_as_well(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_040a, Spread::Texts);
    let documents = numbered("en", (0..600).map(|_| hashes.next()));
    judge(&*opened(open, k), &documents, 10, k, &mut hashes);
}

/// Several threads insert and remove documents of their own, and all their changes are stored. A document that all of
/// them insert is stored once.
pub fn racing_writers_lose_nothing(open: &impl Fn(Identity) -> Opened, k: u32) {
    const WRITERS: u64 = 4;
    let mut hashes = Hashes::new(0x5eed_040b, Spread::Even);
    let shared = numbered("shared", (0..100).map(|_| hashes.next()));
    let own = |writer: u64| {
        let mut hashes = Hashes::new(0x5eed_040c + writer, Spread::Even);
        let documents =
            (0..300).map(move |n| document(["a", "b"][n as usize % 2], writer * 1000 + n, hashes.next()));
        documents.collect::<Vec<Document>>()
    };
    let index = opened(open, k);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (index, shared) = (&*index, &shared);
            scope.spawn(move || {
                for (own, shared) in own(writer).chunks(15).zip(shared.chunks(5)) {
                    insert(index, &[own, shared].concat());
                    index.remove(&language("a"), &[own[0].id.clone()]).expect("remove");
                }
            });
        }
    });
    let mut expected: BTreeMap<(Language, DocId), SimHash> = BTreeMap::new();
    for document in (0..WRITERS).flat_map(own).chain(shared) {
        expected.insert((document.language, document.id), document.hash);
    }
    for documents in (0..WRITERS).map(own) {
        for own in documents.chunks(15) {
            expected.remove(&(language("a"), own[0].id.clone()));
        }
    }
    assert_eq!(all(&*index), expected);
    assert_eq!(count(&*index), expected.len() as u64);
}

/// A document that is stored before a query begins and not removed is found, whatever other threads insert meanwhile.
pub fn queries_during_inserts_find_all_earlier_documents(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0410, Spread::Even);
    let documents = numbered("hi", (0..200).map(|_| hashes.next()));
    let index = opened(open, k);
    insert(&*index, &documents);
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut hashes = Hashes::new(0x5eed_0411, Spread::Even);
            for batch in 0..20 {
                let first = 1000 + batch * 100;
                let more = (first..first + 100).map(|id| document("hi", id, hashes.next()));
                insert(&*index, &more.collect::<Vec<_>>());
                // Other documents are replaced again and again.
                insert(&*index, &[document("hi", 500, hashes.next()), document("hi", "x", hashes.next())]);
            }
            has_ended.store(true, Ordering::Release);
        });
        let mut rounds = 0;
        while rounds < 3 || !has_ended.load(Ordering::Acquire) {
            let queries: Vec<_> =
                documents.iter().map(|document| (document.language, document.hash)).collect();
            for (document, found) in documents.iter().zip(index.near(&queries).expect("near")) {
                assert_eq!(ids(&found), std::slice::from_ref(&document.id));
            }
            rounds += 1;
        }
    });
    assert_eq!(count(&*index), 200 + 20 * 100 + 2);
}

/// Documents are inserted, replaced and removed; after closing and reopening the index any number of times, all
/// changes are still there.
pub fn what_was_done_is_there_after_reopening(open: &impl Fn(Identity) -> Opened, k: u32) {
    let mut hashes = Hashes::new(0x5eed_0412, Spread::Skewed);
    let mut documents: Vec<Document> = (0..1000)
        .map(|n| {
            let id = if n % 5 == 0 { DocId::from(format!("id {n}")) } else { DocId::from(n as u64) };
            document(["hi", "ta", "x"][n % 3], id, hashes.next())
        })
        .collect();
    insert(&*opened(open, k), &documents);
    for round in 0..3 {
        let index = opened(open, k);
        let expected =
            documents.iter().map(|document| ((document.language, document.id.clone()), document.hash));
        assert_eq!(all(&*index), expected.collect(), "round {round}");
        for document in documents.iter().step_by(20) {
            let query = (document.language, document.hash);
            assert_eq!(index.near(&[query]).expect("near")[0], naive(&documents, &query, k), "round {round}");
        }
        for document in documents.iter_mut().step_by(7) {
            document.hash = SimHash(hashes.next());
            insert(&*index, std::slice::from_ref(document));
        }
        for document in documents.drain(100..150) {
            assert_eq!(index.remove(&document.language, &[document.id]).expect("remove"), 1);
        }
        index.flush().expect("flush");
    }
}

/// An index that was made for one identity is not opened for another.
pub fn another_identity_is_refused(open: &impl Fn(Identity) -> Opened, k: u32) {
    insert(&*opened(open, k), &[document("hi", 1, 5)]);
    for (other, features) in [(k - 1, Features::WordsLog), (5, Features::WordsLog), (k, Features::Char5)] {
        let other = Identity::new(other, features).expect("k is at most 7");
        let error = open(other).map(|_| ()).expect_err("it is made for another one");
        assert_eq!(error.kind(), IndexErrorKind::Identity, "{error}");
    }
    assert_eq!(ids(&near(&*opened(open, k), "hi", 5)), [1.into()]);
}
