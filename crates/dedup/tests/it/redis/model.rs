//! A naive index for comparison, and random fingerprints of which many are near each other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use huntsman_dedup::redis::{Layout, RedisIndex, RedisSettings};
use huntsman_detect::near::{DocId, Document, Identity, Language, NearIndex, NearMatch};
use huntsman_detect::simhash::{Features, SimHash};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A model that compares every document with every query.
#[derive(Debug, Default)]
pub(crate) struct Model(pub(crate) BTreeMap<(Language, DocId), SimHash>);

impl Model {
    pub(crate) fn insert(&mut self, documents: &[Document]) {
        for Document { language, id, hash } in documents {
            match hash.0 {
                0 => self.0.remove(&(*language, id.clone())),
                _ => self.0.insert((*language, id.clone()), *hash),
            };
        }
    }

    pub(crate) fn remove(&mut self, language: Language, ids: &[DocId]) -> usize {
        ids.iter().filter(|id| self.0.remove(&(language, (*id).clone())).is_some()).count()
    }

    pub(crate) fn near(&self, k: u32, (language, hash): (Language, SimHash)) -> Vec<NearMatch> {
        let own = self.0.iter().filter(|((other, _), _)| *other == language && hash.0 != 0);
        let mut near: Vec<NearMatch> = own
            .map(|((_, id), other)| NearMatch { id: id.clone(), distance: hash.distance(*other) })
            .filter(|near| near.distance <= k)
            .collect();
        near.sort_by(NearMatch::order);
        near
    }

    /// Checks that an index holds exactly these documents and finds them.
    pub(crate) fn check(&self, index: &dyn NearIndex, queries: &[(Language, SimHash)], context: &str) {
        let mut held = BTreeMap::new();
        index
            .for_each(&mut |document| {
                let before = held.insert((document.language, document.id.clone()), document.hash);
                assert_eq!(before, None, "{context}: {document:?} is visited twice");
                ControlFlow::Continue(())
            })
            .expect("a visit");
        assert!(held == self.0, "{context}: {} documents are held, {} should be", held.len(), self.0.len());
        let own: Vec<(Language, SimHash)> =
            self.0.iter().map(|((language, _), hash)| (*language, *hash)).collect();
        for queries in [queries, &own] {
            let found = index.near(queries).expect("an answer");
            for (query, found) in queries.iter().zip(found) {
                assert_eq!(found, self.near(index.identity().k(), *query), "{context}: {query:?}");
            }
        }
        assert_eq!(index.stats().expect("stats").documents(), self.0.len() as u64, "{context}");
    }
}

/// Generates documents of which many are near others, some change, and some are removed.
pub(crate) struct Source {
    rng: Xoshiro256PlusPlus,
    centres: Vec<u128>,
    ids: u64,
}

impl Source {
    /// `ids` is the number of distinct ids; it is small enough that ids recur.
    pub(crate) fn new(seed: u64, ids: u64) -> Self {
        println!("seed {seed}");
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let centres = (0..20).map(|_| wide(&mut rng)).collect();
        Self { rng, centres, ids }
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.rng.next_u64() % end
    }

    pub(crate) fn language(&mut self) -> Language {
        Language::parse(["HINDI", "EN", "X-1"][self.below(3) as usize]).expect("a language")
    }

    pub(crate) fn id(&mut self) -> DocId {
        let ids = self.ids;
        match self.below(4) {
            0 => format!("https://a.example/{}", self.below(ids)).into(),
            1 => self.below(ids).to_string().into(),
            2 => (u64::MAX - self.below(ids)).into(),
            _ => self.below(ids).into(),
        }
    }

    pub(crate) fn hash(&mut self) -> SimHash {
        if self.below(10) == 0 {
            return SimHash(wide(&mut self.rng));
        }
        let centre = self.below(20) as usize;
        let mut hash = self.centres[centre];
        for _ in 0..self.below(9) {
            hash ^= 1 << self.below(128);
        }
        SimHash(hash)
    }

    pub(crate) fn document(&mut self) -> Document {
        let hash = if self.below(20) == 0 { SimHash(0) } else { self.hash() };
        Document { language: self.language(), id: self.id(), hash }
    }

    pub(crate) fn documents(&mut self, count: usize) -> Vec<Document> {
        (0..count).map(|_| self.document()).collect()
    }

    pub(crate) fn queries(&mut self, count: usize) -> Vec<(Language, SimHash)> {
        (0..count).map(|_| (self.language(), self.hash())).collect()
    }
}

fn wide(rng: &mut Xoshiro256PlusPlus) -> u128 {
    u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())
}

pub(crate) fn settings(url: &str, layout: Layout) -> RedisSettings {
    url.parse::<RedisSettings>().expect("an address").layout(layout).design_size(2000)
}

pub(crate) fn identity(k: u32) -> Identity {
    Identity::new(k, Features::WordsLog).expect("k is at most 7")
}

pub(crate) fn open(url: &str, layout: Layout, k: u32) -> RedisIndex {
    RedisIndex::open(settings(url, layout), identity(k)).expect("an index")
}

pub(crate) fn language(name: &str) -> Language {
    Language::parse(name).expect("a language")
}

/// Inserts and removes documents at random. After each step the index must find what the model does, and at the end it must hold the same
/// documents.
pub(crate) fn random_steps(index: &dyn NearIndex, model: &mut Model, source: &mut Source, steps: usize) {
    steps_without_end(index, model, source, steps);
    model.check(index, &source.queries(50), "at the end");
}

/// As [`random_steps`], without the comparison of everything at the end.
pub(crate) fn steps_without_end(index: &dyn NearIndex, model: &mut Model, source: &mut Source, steps: usize) {
    for step in 0..steps {
        if source.below(3) > 0 {
            let count = source.below(60) as usize;
            let documents = source.documents(count);
            index.insert(&documents).expect("an insert");
            model.insert(&documents);
        } else {
            let language = source.language();
            let mut ids: Vec<DocId> = (0..source.below(30)).map(|_| source.id()).collect();
            ids.extend(ids.first().cloned());
            let removed = index.remove(&language, &ids).expect("a removal");
            assert_eq!(removed, model.remove(language, &ids), "step {step}");
        }
        let language = source.language();
        let ids: Vec<DocId> = (0..20).map(|_| source.id()).collect();
        let hashes = index.get(&language, &ids).expect("hashes");
        let expected: Vec<Option<SimHash>> =
            ids.into_iter().map(|id| model.0.get(&(language, id)).copied()).collect();
        assert_eq!(hashes, expected, "step {step}");
        let queries = source.queries(20);
        for (query, found) in queries.iter().zip(index.near(&queries).expect("an answer")) {
            assert_eq!(found, model.near(index.identity().k(), *query), "step {step}: {query:?}");
        }
    }
}
