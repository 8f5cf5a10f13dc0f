//! Tests with differing bits that are distributed over a fingerprint in all ways.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::near::{DocId, Document, Language, MemoryIndex, NearIndex};
use crate::simhash::SimHash;

use super::{Hashes, Model, add, document, identity, insert, language, naive};

/// All ways to distribute this number of bits over the four quarters of a fingerprint, with random bits in each.
fn spreads(bits: u32, hashes: &mut Hashes) -> Vec<u128> {
    let mut differences = Vec::new();
    for code in 0..8_u32.pow(4) {
        let counts = [code & 7, code >> 3 & 7, code >> 6 & 7, code >> 9];
        if counts.iter().sum::<u32>() != bits {
            continue;
        }
        let mut difference = 0_u128;
        for (quarter, count) in counts.into_iter().enumerate() {
            while (difference >> (32 * quarter) & 0xffff_ffff).count_ones() < count {
                difference |= 1 << (32 * quarter + hashes.below(32) as usize);
            }
        }
        differences.push(difference);
    }
    differences
}

/// Fingerprints far apart from each other, all random or with most bits equal in most of them, and others around them.
fn documents(hashes: &mut Hashes) -> Vec<Document> {
    (0..1500).map(|id| document("hi", id, hashes.next())).collect()
}

/// An index with all documents in the delta, and one with all in a frozen part.
fn indexes(k: u32, documents: &[Document]) -> [(&'static str, MemoryIndex); 2] {
    let delta = MemoryIndex::new(identity(k));
    insert(&delta, documents, &mut Model::new());
    let frozen = MemoryIndex::build(identity(k), documents.to_vec()).expect("build");
    let bytes = |index: &MemoryIndex| index.stats().expect("stats").languages[&language("hi")].bytes.clone();
    assert!(bytes(&delta)["hashes"] == 0 && bytes(&frozen)["hashes"] > 0, "one is in a part, one is not");
    [("delta", delta), ("frozen", frozen)]
}

#[test]
fn bits_are_found_however_they_are_spread() {
    for (k, is_skewed) in (0..=7_u32).flat_map(|k| [(k, false), (k, true)]) {
        let mut hashes = Hashes::new(0x5eed_0510 + u64::from(k), is_skewed);
        let documents = documents(&mut hashes);
        let mut model = Model::new();
        add(&documents, &mut model);
        let mut queries: Vec<(Language, SimHash, bool)> = Vec::new();
        for bits in k.saturating_sub(1)..=k + 1 {
            for difference in spreads(bits, &mut hashes) {
                let base = documents[hashes.below(documents.len() as u64) as usize].hash.0;
                queries.push((language("hi"), SimHash((base ^ difference).max(1)), bits <= k));
            }
        }
        for (name, index) in indexes(k, &documents) {
            // The queries are made one by one, so that none benefits from data that another one loaded.
            for (language, hash, is_near) in &queries {
                let query = (*language, *hash);
                let found = index.near(&[query]).expect("near").remove(0);
                assert_eq!(found, naive(&model, &query, k), "{name}, k = {k}, skewed {is_skewed}, {hash}");
                assert!(!is_near || !found.is_empty(), "{name}, k = {k}, skewed {is_skewed}, {hash}");
            }
            let candidates = index.stats().expect("stats").candidates;
            let most = (queries.len() * documents.len()) as u64;
            assert!(is_skewed || candidates.sum() < most / 2, "{name}, k = {k}: tables answer, not scans");
        }
    }
}

#[test]
fn pairs_are_found_however_their_bits_are_spread() {
    for (k, is_skewed) in (0..=7_u32).flat_map(|k| [(k, false), (k, true)]) {
        let mut hashes = Hashes::new(0x5eed_0520 + u64::from(k), is_skewed);
        let mut documents: Vec<Document> = Vec::new();
        let mut add = |hash: u128| documents.push(document("hi", documents.len() as u64, hash));
        for bits in k..=k + 1 {
            for difference in spreads(bits, &mut hashes) {
                let base = hashes.next();
                add(base);
                add((base ^ difference).max(1));
            }
        }
        let mut expected = BTreeSet::new();
        for (at, a) in documents.iter().enumerate() {
            for b in &documents[at + 1..] {
                let distance = a.hash.distance(b.hash);
                if distance <= k {
                    expected.insert(([a.id.clone(), b.id.clone()], distance));
                }
            }
        }
        let mut told: BTreeSet<([DocId; 2], u32)> = BTreeSet::new();
        let index = MemoryIndex::build(identity(k), documents).expect("build");
        index.pairs(&mut |pair| {
            assert!(told.insert((pair.ids.clone(), pair.distance)), "k = {k}: {pair:?} is told once");
            ControlFlow::Continue(())
        });
        assert!(told == expected, "k = {k}, skewed {is_skewed}: {} of {}", told.len(), expected.len());
    }
}
