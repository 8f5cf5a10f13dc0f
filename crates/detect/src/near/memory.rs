//! An index in memory only.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::document::{DocId, Document, NearMatch};
use super::engine::{Engine, NoJournal, check_languages};
use super::error::IndexError;
use super::identity::Identity;
use super::index::{IndexStats, NearIndex};
use super::language::Language;
use super::pairs::{self, Pair};
use super::rows::Rows;
use crate::simhash::SimHash;

/// An index in memory, without files.
///
/// A document whose id is a number takes 35 to 41 bytes: the more random the numbers are, the more.
///
/// ```
/// use huntsman_detect::near::{Document, Identity, Language, MemoryIndex, NearMatch, NearIndex};
/// use huntsman_detect::simhash::SimHash;
/// use huntsman_detect::words::Words;
///
/// let hindi = Language::parse("hi")?;
/// let story = SimHash::of(&Words::of("एक कहानी जो बार-बार छपती है"));
/// let index = MemoryIndex::new(Identity::default());
/// index.insert(&[Document { language: hindi, id: 17.into(), hash: story }])?;
///
/// let other = SimHash(story.0 ^ 0b101);
/// assert_eq!(index.near(&[(hindi, other)])?, [[NearMatch { id: 17.into(), distance: 2 }]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MemoryIndex {
    engine: Engine,
}

impl MemoryIndex {
    /// An empty index.
    pub fn new(identity: Identity) -> Self {
        Self { engine: Engine::new(identity) }
    }

    /// An index of many documents, built in bulk: half a microsecond per document, where inserting takes one or two.
    ///
    /// # Errors
    /// [`Input`](super::IndexErrorKind::Input): an id is too long, or there are too many languages.
    pub fn build(
        identity: Identity,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Self, IndexError> {
        let mut languages = BTreeMap::<Language, Rows>::new();
        for document in documents {
            document.id.check()?;
            if !languages.contains_key(&document.language) {
                check_languages(languages.len())?;
            }
            let rows = languages.entry(document.language).or_default();
            rows.push((&document.id).into(), document.hash);
        }
        Ok(Self { engine: Engine::with_rows(identity, languages) })
    }

    /// Sets how many documents a query compares one by one. If more of them share a band with it, the query scans all documents of its
    /// language, which is as exact, and is counted in [`IndexStats::heavy_buckets`]. The default is 100,000.
    pub fn set_max_candidates(&self, max_candidates: usize) {
        self.engine.set_max_candidates(max_candidates);
    }

    /// Returns the results of [`near`](NearIndex::near), by comparing with every document: some 0.3 ms for a million.
    pub fn scan(&self, queries: &[(Language, SimHash)]) -> Vec<Vec<NearMatch>> {
        self.engine.scan(queries)
    }

    /// Calls `each` with all pairs of documents of one language within k bits, each pair once, until it breaks.
    ///
    /// If fingerprints are evenly distributed, this takes 0.02 us per document for k up to 3 and 0.7 us for k up to 7. If many share bands,
    /// as those of texts of one language do, it takes 2.5 us among four million for k = 7. The time for the results comes on top: a
    /// thousand copies of one text are half a million pairs. For k above 3 it takes 4.4 bytes of memory per document of one language during
    /// the call. Documents inserted meanwhile are not visited; those removed meanwhile may be.
    pub fn pairs(&self, each: &mut dyn FnMut(&Pair) -> ControlFlow<()>) {
        pairs::all(&self.engine, each);
    }

    /// Waits for the merges in the background. Afterwards the index uses the least memory, and queries are fastest.
    pub fn settle(&self) {
        self.engine.settle();
    }
}

impl NearIndex for MemoryIndex {
    fn identity(&self) -> &Identity {
        self.engine.identity()
    }

    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        Ok(self.engine.near(queries))
    }

    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        Ok(self.engine.get(language, ids))
    }

    fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        self.engine.insert(documents, &NoJournal)
    }

    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError> {
        self.engine.remove(language, ids, &NoJournal)
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        Ok(self.engine.stats())
    }

    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError> {
        self.engine.for_each(each);
        Ok(())
    }

    fn flush(&self) -> Result<(), IndexError> {
        Ok(())
    }
}
