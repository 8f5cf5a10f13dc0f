//! Random calls; each result is compared with that of a naive model.

use std::collections::BTreeMap;

use huntsman_detect::near::{DocId, Document, Identity, Language, NearIndex};
use huntsman_detect::simhash::SimHash;

use super::hashes::{Hashes, Spread};
use super::{Opened, all, insert, language, naive, opened};
use crate::sites::Random;

/// Number of calls in one run.
const STEPS: usize = 300;
const LANGUAGES: [&str; 4] = ["hi", "ta", "en", "X_9"];

type Model = BTreeMap<(Language, DocId), SimHash>;

/// Makes random calls; the index must return the same as a model that compares with every document. There are few
/// ids, so most documents are replaced again and again, and many fingerprints are near to others. With `outlives`,
/// the index is closed and reopened between some calls.
pub fn random_steps_equal_a_naive_model(
    open: &impl Fn(Identity) -> Opened,
    k: u32,
    seed: u64,
    outlives: bool,
) {
    println!("k = {k}, seed {seed}");
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let spread = if seed.is_multiple_of(2) { Spread::Even } else { Spread::Skewed };
    let mut hashes = Hashes::new(seed, spread);
    let mut index = opened(open, k);
    let mut model = Model::new();
    let mut batch: Vec<Document> = Vec::new();
    let mut found_others = 0;
    for step in 0..STEPS {
        let place = format!("k = {k}, seed {seed}, step {step}");
        match random.below(10) {
            0..4 => {
                batch = (0..random.below(40))
                    .map(|_| random_document(&mut random, &mut hashes, &model))
                    .collect();
                add(&*index, &batch, &mut model);
            }
            4 => add(&*index, &batch, &mut model),
            5 => {
                let name = language(LANGUAGES[random.below(LANGUAGES.len())]);
                let ids: Vec<DocId> = (0..random.below(10)).map(|_| random_id(&mut random)).collect();
                let there = ids.iter().filter(|id| model.remove(&(name, (*id).clone())).is_some()).count();
                assert_eq!(index.remove(&name, &ids).expect("remove"), there, "{place}");
            }
            6 => {
                let name = language(LANGUAGES[random.below(LANGUAGES.len())]);
                let ids: Vec<DocId> = (0..20).map(|_| random_id(&mut random)).collect();
                let expected: Vec<Option<SimHash>> =
                    ids.iter().map(|id| model.get(&(name, id.clone())).copied()).collect();
                assert_eq!(index.get(&name, &ids).expect("get"), expected, "{place}");
            }
            7 if outlives => {
                drop(index);
                index = opened(open, k);
            }
            7 => index.flush().expect("flush"),
            _ => {
                let queries: Vec<(Language, SimHash)> = (0..10)
                    .map(|_| {
                        let document = random_document(&mut random, &mut hashes, &model);
                        (document.language, document.hash)
                    })
                    .collect();
                let documents = documents(&model);
                for (query, found) in queries.iter().zip(index.near(&queries).expect("near")) {
                    let expected = if query.1 == SimHash(0) { vec![] } else { naive(&documents, query, k) };
                    found_others += expected.len();
                    assert_eq!(found, expected, "{place}: {} {}", query.0, query.1);
                }
            }
        }
    }
    assert_eq!(all(&*index), model, "k = {k}, seed {seed}");
    assert_eq!(index.stats().expect("stats").documents(), model.len() as u64, "k = {k}, seed {seed}");
    assert!(found_others > 0, "k = {k}, seed {seed}: something was found");
}

fn documents(model: &Model) -> Vec<Document> {
    let document = |((language, id), hash): (&(Language, DocId), &SimHash)| Document {
        language: *language,
        id: id.clone(),
        hash: *hash,
    };
    model.iter().map(document).collect()
}

fn add(index: &dyn NearIndex, batch: &[Document], model: &mut Model) {
    insert(index, batch);
    for document in batch {
        let key = (document.language, document.id.clone());
        match document.hash {
            SimHash(0) => model.remove(&key),
            hash => model.insert(key, hash),
        };
    }
}

fn random_id(random: &mut Random) -> DocId {
    let number = random.below(150) as u64;
    if random.below(3) == 0 { number.to_string().into() } else { (number << (random.below(2) * 56)).into() }
}

/// A document whose fingerprint is new, or near to a stored one, or 0.
fn random_document(random: &mut Random, hashes: &mut Hashes, model: &Model) -> Document {
    let hash = match random.below(20) {
        0 => 0,
        1..12 if !model.is_empty() => {
            let known = model.values().nth(random.below(model.len())).expect("it is below the length");
            hashes.near(known.0, 9)
        }
        _ => hashes.next(),
    };
    let language = language(LANGUAGES[random.below(LANGUAGES.len())]);
    Document { language, id: random_id(random), hash: SimHash(hash) }
}
