//! Fingerprints as in a large archive: ten languages, with more than a quarter of the documents in Hindi; random
//! numbers of 16 digits as ids; and one of a thousand documents near to the one before it, in the same language.

use std::sync::Arc;

use huntsman::detect::near::{DocId, Document, Language};
use huntsman::detect::simhash::SimHash;
use huntsman::detect::words::Words;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Number of documents in each language in an archive of news, of 15,896,966 in all.
const LANGUAGES: [(&str, u64); 10] = [
    ("hi", 4_170_000),
    ("bn", 2_100_000),
    ("en", 1_826_966),
    ("ta", 1_750_000),
    ("mr", 1_600_000),
    ("ml", 1_300_000),
    ("te", 1_200_000),
    ("gu", 1_100_000),
    ("or", 500_000),
    ("pa", 350_000),
];

/// The largest of the languages.
pub(super) fn hindi() -> Language {
    Language::parse("hi").expect("hi is a name")
}

/// The distribution of the bits of fingerprints.
#[derive(Clone, Debug)]
pub(super) enum Spread {
    /// All bits are random and independent.
    Even,
    /// Each bit is set as often as among texts with the word frequencies of a language: for each bit, the number of
    /// texts out of 65,536 that have it set. Some buckets of an index are large then.
    Texts(Arc<[u16]>),
}

impl Spread {
    /// Estimates the distribution from 4,000 texts of 300 words, in which the n-th most frequent word has a share of
    /// about 1/n.
    pub(super) fn texts(seed: u64) -> Self {
        const TEXTS: u32 = 4_000;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 9 << 48);
        let mut counts = [0_u32; SimHash::BITS as usize];
        for _ in 0..TEXTS {
            let word = |_| format!("w{}", 50_000.0_f64.powf(random.random_range(0.0..1.0)) as usize);
            let text: Vec<String> = (0..300).map(word).collect();
            let hash = SimHash::of(&Words::of(&text.join(" "))).0;
            counts.iter_mut().enumerate().for_each(|(bit, count)| *count += (hash >> bit & 1) as u32);
        }
        Self::Texts(counts.into_iter().map(|count| (count * 65_535 / TEXTS) as u16).collect())
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Texts(_) => "texts",
        }
    }
}

/// A generator of documents, the same ones for the same seed.
#[derive(Debug)]
pub(super) struct Documents {
    random: Xoshiro256PlusPlus,
    spread: Spread,
    languages: Vec<(Language, u64)>,
    total: u64,
    /// The language and the fingerprint of the document before.
    last: (Language, u128),
}

impl Documents {
    pub(super) fn new(seed: u64, spread: &Spread) -> Self {
        let language = |(name, count)| (Language::parse(name).expect("a code is a name"), count);
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            spread: spread.clone(),
            languages: LANGUAGES.into_iter().map(language).collect(),
            total: LANGUAGES.iter().map(|(_, count)| count).sum(),
            last: (hindi(), 1),
        }
    }

    fn hash(&mut self) -> u128 {
        match &self.spread {
            Spread::Even => self.random.random(),
            Spread::Texts(shares) => {
                let bits = shares.iter().map(|share| u128::from(self.random.random::<u16>() < *share));
                bits.enumerate().fold(0, |hash, (at, bit)| hash | bit << at)
            }
        }
    }

    /// The fingerprint with at most `most` bits changed.
    pub(super) fn near(&mut self, hash: SimHash, most: u32) -> SimHash {
        let bits = self.random.random_range(0..=most);
        SimHash((0..bits).fold(hash.0, |hash, _| hash ^ 1 << self.random.random_range(0..SimHash::BITS)))
    }

    fn language(&mut self) -> Language {
        let mut at = self.random.random_range(0..self.total);
        let found = self.languages.iter().find(|(_, count)| {
            let is_it = at < *count;
            at = at.saturating_sub(*count);
            is_it
        });
        found.expect("it is below the sum").0
    }
}

impl Iterator for Documents {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        let (language, hash) = match self.random.random_range(0..1_000) {
            0 => (self.last.0, self.near(SimHash(self.last.1), 5).0),
            _ => (self.language(), self.hash()),
        };
        self.last = (language, hash);
        let id = DocId::Number(self.random.random_range(0..10_u64.pow(16)));
        Some(Document { language, id, hash: SimHash(hash) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_their_shares_and_a_seed_gives_the_same_documents() {
        let documents: Vec<Document> = Documents::new(1, &Spread::Even).take(20_000).collect();
        let hindi = documents.iter().filter(|document| document.language == hindi()).count();
        assert!((4_900..5_600).contains(&hindi), "{hindi} of 20,000 are Hindi");
        assert!(Documents::new(1, &Spread::Even).take(20_000).eq(documents));
    }

    #[test]
    fn bits_of_texts_are_not_even() {
        let Spread::Texts(shares) = Spread::texts(1) else { panic!("it is one of texts") };
        assert_eq!(shares.len(), 128);
        let uneven = shares.iter().filter(|share| !(13_000..52_000).contains(*share)).count();
        assert!(uneven > 20, "{shares:?}");
        assert!(!Documents::new(1, &Spread::texts(1)).take(100).any(|document| document.hash.0 == 0));
    }
}
