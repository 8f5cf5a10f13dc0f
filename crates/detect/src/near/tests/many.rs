//! Tests with so many documents that parts are frozen and merged.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::near::{DocId, Document, Language, MemoryIndex, NearIndex, Pair};
use crate::simhash::SimHash;

use super::{Hashes, Model, add, check_index, document, identity, insert, language};

/// Documents of two languages; one in ten has a text as its id, one in ten replaces an earlier one.
fn documents(count: u64, hashes: &mut Hashes) -> Vec<Document> {
    (0..count)
        .map(|n| {
            let number = if hashes.below(10) == 0 { hashes.below(n + 1) } else { n };
            let id = if number % 10 == 3 { DocId::from(format!("id {number}")) } else { number.into() };
            document(["hi", "ta"][usize::from(number % 7 == 0)], id, hashes.next())
        })
        .collect()
}

#[test]
fn documents_are_found_before_while_and_after_parts_are_merged() {
    for (k, is_skewed) in [(3, false), (7, true)] {
        let seed = 0x5eed_0501;
        println!("k = {k}, seed {seed:#x}");
        let mut hashes = Hashes::new(seed, is_skewed);
        let index = MemoryIndex::new(identity(k));
        let mut model = Model::new();
        // Four full deltas of Hindi, and some in the next one.
        for (round, documents) in documents(12_000, &mut hashes).chunks(3000).enumerate() {
            for batch in documents.chunks(500) {
                index.insert(batch).expect("insert");
            }
            add(documents, &mut model);
            let gone: Vec<DocId> = (0..500).map(|n| (n * 131 % 3000 * (round as u64 + 1)).into()).collect();
            let removed = index.remove(&language("hi"), &gone).expect("remove");
            let gone: BTreeSet<DocId> = gone.into_iter().collect();
            let there =
                gone.iter().filter(|id| model.remove(&(language("hi"), (*id).clone())).is_some()).count();
            assert_eq!(removed, there);
            check_index(&index, &model, 97, &format!("round {round}"));
        }
        index.settle();
        check_index(&index, &model, 31, "settled");
        let ids: Vec<DocId> = (0..2000).map(|n| (n * 7).into()).collect();
        let expected: Vec<Option<SimHash>> =
            ids.iter().map(|id| model.get(&(language("hi"), id.clone())).copied()).collect();
        assert_eq!(index.get(&language("hi"), &ids).expect("get"), expected);
        let bytes = &index.stats().expect("stats").languages[&language("hi")].bytes;
        assert!(bytes["hashes"] > 16 * 6000, "most is in frozen parts: {bytes:?}");
    }
}

#[test]
fn what_goes_on_while_parts_are_merged_is_not_lost() {
    let (index, has_ended) = (MemoryIndex::new(identity(3)), AtomicBool::new(false));
    let mut hashes = Hashes::new(0x5eed_0502, false);
    let stays: Vec<Document> = (0..5000).map(|n| document("hi", n, hashes.next())).collect();
    let mut model = Model::new();
    insert(&index, &stays, &mut model);
    thread::scope(|scope| {
        // One thread replaces and removes documents that are being merged, another adds documents and so causes merges; this one queries.
        let replacing = scope.spawn(|| {
            let (mut hashes, mut done) = (Hashes::new(0x5eed_0503, false), Model::new());
            for round in 0..60_u64 {
                let batch: Vec<Document> =
                    (0..160).map(|n| document("hi", n * 30 + round % 3, hashes.next())).collect();
                index.insert(&batch).expect("insert");
                done.extend(
                    batch.iter().map(|document| ((document.language, document.id.clone()), document.hash)),
                );
                let gone: Vec<DocId> = batch.iter().step_by(7).map(|document| document.id.clone()).collect();
                index.remove(&language("hi"), &gone).expect("remove");
                done.extend(gone.into_iter().map(|id| ((language("hi"), id), SimHash(0))));
            }
            done
        });
        let adding = scope.spawn(|| {
            let (mut hashes, mut model) = (Hashes::new(0x5eed_0504, false), Model::new());
            for batch in 0..100 {
                let first = 1_000_000 + batch * 300;
                let batch: Vec<Document> =
                    (first..first + 300).map(|id| document("hi", id, hashes.next())).collect();
                insert(&index, &batch, &mut Model::new());
                add(&batch, &mut model);
            }
            has_ended.store(true, Ordering::Release);
            model
        });
        let untouched: Vec<&Document> = stays
            .iter()
            .filter(|document| {
                let DocId::Number(id) = document.id else { unreachable!() };
                id % 30 > 2
            })
            .collect();
        while !has_ended.load(Ordering::Acquire) {
            for document in untouched.iter().step_by(97) {
                let found = index.near(&[(document.language, document.hash)]).expect("near");
                let own = found[0].iter().filter(|near| near.id == document.id).count();
                assert_eq!(own, 1, "{document:?} is found once");
            }
        }
        for (key, hash) in
            replacing.join().expect("who replaces").into_iter().chain(adding.join().expect("who adds"))
        {
            model.insert(key, hash);
        }
        model.retain(|_, hash| *hash != SimHash(0));
    });
    check_index(&index, &model, 997, "after all");
    index.settle();
    check_index(&index, &model, 997, "settled");
}

#[test]
fn building_is_inserting() {
    for k in [3, 7] {
        let mut hashes = Hashes::new(0x5eed_0505, k == 7);
        let mut documents = documents(5000, &mut hashes);
        documents.extend([
            document("hi", 1, 0),
            document("hi", 2, 77),
            document("hi", 2, 78),
            document("x", 5, 0),
        ]);
        let mut model = Model::new();
        add(&documents, &mut model);
        check_index(&MemoryIndex::build(identity(k), documents.clone()).expect("build"), &model, 97, "built");
        let index = MemoryIndex::new(identity(k));
        index.insert(&documents).expect("insert");
        check_index(&index, &model, 97, "inserted");
        // An index that was built in bulk accepts further documents.
        let index = MemoryIndex::build(identity(k), documents).expect("build");
        let more: Vec<Document> = (0..3000).map(|n| document("hi", n * 2, hashes.next())).collect();
        insert(&index, &more, &mut model);
        check_index(&index, &model, 97, "built and inserted");
    }
}

fn pairs_of(model: &Model, k: u32) -> BTreeSet<(Language, [DocId; 2], u32)> {
    let documents: Vec<_> = model.iter().collect();
    let mut pairs = BTreeSet::new();
    for (at, ((language, id), hash)) in documents.iter().enumerate() {
        for ((other_language, other_id), other) in &documents[at + 1..] {
            let distance = hash.distance(**other);
            if language == other_language && distance <= k {
                pairs.insert((*language, [id.clone(), other_id.clone()], distance));
            }
        }
    }
    pairs
}

#[test]
fn all_pairs_are_reported_once() {
    for (k, is_skewed) in [(3, false), (3, true), (7, false), (7, true)] {
        let mut hashes = Hashes::new(0x5eed_0506, is_skewed);
        let (built, inserted) = (documents(1500, &mut hashes), documents(900, &mut hashes));
        let mut model = Model::new();
        add(&built, &mut model);
        let index = MemoryIndex::build(identity(k), built).expect("build");
        // These go into the delta; some replace documents that were built in.
        insert(&index, &inserted, &mut model);
        index.remove(&language("hi"), &[5.into(), 6.into()]).expect("remove");
        model.remove(&(language("hi"), 5.into()));
        model.remove(&(language("hi"), 6.into()));
        let mut found = BTreeSet::new();
        index.pairs(&mut |Pair { language, ids, distance }| {
            assert!(found.insert((*language, ids.clone(), *distance)), "{ids:?} are told once");
            ControlFlow::Continue(())
        });
        let expected = pairs_of(&model, k);
        assert!(expected.len() > 30, "{}", expected.len());
        assert_eq!(found, expected, "k = {k}");
        let mut count = 0;
        index.pairs(&mut |_| {
            count += 1;
            if count == 10 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(count, 10);
    }
}

#[test]
fn queries_that_compare_too_many_are_scans_and_counted() {
    for k in [3, 7] {
        let mut hashes = Hashes::new(0x5eed_0507, false);
        let same = hashes.next();
        // All of them share their first band, as texts with the same menus do.
        let documents = (0..6000_u64).map(|id| {
            let hash = if id % 8 == 0 { same ^ (hashes.next() & (u128::MAX >> 32)) } else { hashes.next() };
            document("hi", id, hash)
        });
        let documents: Vec<Document> = documents.collect();
        let mut model = Model::new();
        add(&documents, &mut model);
        let index = MemoryIndex::build(identity(k), documents).expect("build");
        check_index(&index, &model, 31, "as it comes");
        assert_eq!(index.stats().expect("stats").heavy_buckets, 0);
        index.set_max_candidates(500);
        check_index(&index, &model, 31, "with few candidates");
        let stats = index.stats().expect("stats");
        assert!(stats.heavy_buckets > 10, "{}", stats.heavy_buckets);
        assert_eq!(stats.candidates.queries(), 2 * model.len().div_ceil(31) as u64);
        let queries = [(language("hi"), SimHash(same))];
        assert_eq!(index.scan(&queries), index.near(&queries).expect("near"));
    }
}

#[test]
fn languages_have_a_limit() {
    let index = MemoryIndex::new(identity(3));
    let documents: Vec<Document> = (0..1 << 16).map(|n| document(&format!("L{n}"), 1, 5)).collect();
    index.insert(&documents).expect("there is room");
    let error = index.insert(&[document("another", 1, 5)]).expect_err("there is none");
    assert_eq!(error.kind(), crate::near::IndexErrorKind::Input);
    index.insert(&[document("L5", 2, 5)]).expect("there is room for more of a language");
    assert_eq!(index.stats().expect("stats").documents(), (1 << 16) + 1);
}
