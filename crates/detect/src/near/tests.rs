//! Tests of indexes as a whole: many documents, damaged files, killed processes.

mod damage;
mod disk;
mod kill;
mod many;
mod spread;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::near::{DocId, Document, Identity, Language, NearIndex, NearMatch};
use crate::simhash::{Features, SimHash};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

type Model = BTreeMap<(Language, DocId), SimHash>;

fn identity(k: u32) -> Identity {
    Identity::new(k, Features::default()).expect("k is at most 7")
}

fn language(name: &str) -> Language {
    Language::parse(name).expect("a name")
}

fn document(name: &str, id: impl Into<DocId>, hash: u128) -> Document {
    Document { language: language(name), id: id.into(), hash: SimHash(hash) }
}

/// Fingerprints from a seed, of which some are near to earlier ones.
struct Hashes {
    random: Xoshiro256PlusPlus,
    /// If set, the bits that are the same in most fingerprints.
    skew: Option<u128>,
    earlier: Vec<u128>,
}

impl Hashes {
    fn new(seed: u64, is_skewed: bool) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let skew = is_skewed.then(|| wide(&mut random) & wide(&mut random) & wide(&mut random));
        Self { random, skew, earlier: vec![1] }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn next(&mut self) -> u128 {
        let hash = match (self.below(3), self.skew) {
            (0, _) => {
                let at = self.below(self.earlier.len() as u64) as usize;
                let flips = self.below(9);
                (0..flips).fold(self.earlier[at], |hash, _| hash ^ 1 << self.below(128))
            }
            (_, None) => wide(&mut self.random),
            (_, Some(skew)) => wide(&mut self.random) & wide(&mut self.random) & !skew | skew,
        };
        if self.earlier.len() < 200 {
            self.earlier.push(hash);
        }
        hash.max(1)
    }
}

fn wide(random: &mut Xoshiro256PlusPlus) -> u128 {
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}

fn insert(index: &dyn NearIndex, documents: &[Document], model: &mut Model) {
    index.insert(documents).expect("insert");
    add(documents, model);
}

fn add(documents: &[Document], model: &mut Model) {
    for document in documents {
        model.insert((document.language, document.id.clone()), document.hash);
    }
    model.retain(|_, hash| *hash != SimHash(0));
}

/// All documents of an index.
fn all(index: &dyn NearIndex) -> Model {
    let mut found = Model::new();
    let visit = &mut |document: &Document| {
        let before = found.insert((document.language, document.id.clone()), document.hash);
        assert_eq!(before, None, "{document:?} is visited once");
        ControlFlow::Continue(())
    };
    index.for_each(visit).expect("for_each");
    found
}

/// The near documents, found by comparing with every document.
fn naive(model: &Model, query: &(Language, SimHash), k: u32) -> Vec<NearMatch> {
    let of_language = model.iter().filter(|((language, _), _)| *language == query.0);
    let near =
        of_language.map(|((_, id), hash)| NearMatch { id: id.clone(), distance: hash.distance(query.1) });
    let mut found: Vec<NearMatch> = near.filter(|near| near.distance <= k).collect();
    found.sort_by(NearMatch::order);
    found
}

/// Checks that an index has the documents of a model and answers queries as the model does; each `step`th document is a query.
fn check_index(index: &dyn NearIndex, model: &Model, step: usize, what: &str) {
    let k = index.identity().k();
    assert_eq!(index.stats().expect("stats").documents(), model.len() as u64, "{what}");
    assert!(all(index) == *model, "{what}: all documents and no others are visited");
    let queries: Vec<(Language, SimHash)> = model
        .iter()
        .step_by(step)
        .map(|((language, _), hash)| (*language, SimHash(hash.0 ^ 1 << 77)))
        .collect();
    let mut others = 0;
    for (query, found) in queries.iter().zip(index.near(&queries).expect("near")) {
        let expected = naive(model, query, k);
        others += expected.len().saturating_sub(1);
        assert_eq!(found, expected, "{what}: {} {}", query.0, query.1);
    }
    assert!(others > 0, "{what}: some documents are near to others");
}
