//! The three steps for each batch of documents: query the index, write the flags, insert.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use huntsman_detect::near::{DocId, Document, Language, NearMatch};
use huntsman_detect::simhash::SimHash;

use crate::counts::Counts;
use crate::error::Error;
use crate::flags::{FlagLine, Flags};
use crate::index::Index;
use crate::metrics::{Stage, Telemetry};
use crate::record::Story;
use crate::spelling::Spellings;
use crate::warning::{Warning, Warnings};

/// The indexed documents that are near to one document, the nearest first.
type Found = Vec<NearMatch>;

/// The number of replaced documents per run that are reported one by one; later ones are only counted.
const MAX_REPLACED_WARNINGS: u64 = 3;

/// Queries an index for near-duplicates of documents, writes the flags, and inserts the documents.
#[derive(Debug)]
pub struct Dedup {
    index: Arc<Index>,
    flags: Flags,
    min_words: usize,
    telemetry: Arc<Telemetry>,
    spellings: Spellings,
    warnings: Warnings,
}

impl Dedup {
    /// A value that compares documents with this index and writes the flags to `flags`. Texts with fewer than 50 words
    /// are indexed, but not flagged.
    pub fn new(index: impl Into<Arc<Index>>, flags: Flags) -> Self {
        Self {
            index: index.into(),
            flags,
            min_words: 50,
            telemetry: Arc::default(),
            spellings: Spellings::default(),
            warnings: Warnings::default(),
        }
    }

    /// Sets the least number of words of a text that is flagged. Shorter texts are indexed, but not flagged.
    pub fn min_words(mut self, words: usize) -> Self {
        self.min_words = words;
        self
    }

    /// Sets the metrics that this value updates.
    pub fn telemetry(mut self, telemetry: Arc<Telemetry>) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Sets the table in which the spelling of each language is kept.
    pub fn spellings(mut self, spellings: Spellings) -> Self {
        self.spellings = spellings;
        self
    }

    /// Sets the callback for warnings.
    pub fn warnings(mut self, warnings: Warnings) -> Self {
        self.warnings = warnings;
        self
    }

    /// Flags each document that is near to an indexed one or to an earlier one of the batch, and then inserts the whole batch.
    ///
    /// The flags are written before anything is inserted. If a run is killed in between, the flags are written and the documents are not
    /// indexed; the next run does not write these flags again.
    ///
    /// # Errors
    /// The index fails, or the flags cannot be written.
    pub fn add(&mut self, stories: Vec<Story>, counts: &mut Counts) -> Result<(), Error> {
        let stories = self.without_empty(stories, counts);
        let before = self.indexed(&stories)?;
        let asked: Vec<usize> = (0..stories.len())
            .filter(|at| before[*at] != Some(stories[*at].document.hash))
            .filter(|at| !stories[*at].is_shorter_than(self.min_words))
            .collect();
        let mut near = self.near(&stories, &asked)?;
        let mut earlier = EarlierInBatch::default();
        let mut flagged = Vec::new();
        for (at, story) in stories.iter().enumerate() {
            let Document { language, id, hash } = &story.document;
            let known = earlier.get(language, id).or(before[at]);
            let is_short = story.is_shorter_than(self.min_words);
            counts.short += u64::from(is_short);
            match known {
                Some(known) if known == *hash => counts.unchanged += 1,
                known => {
                    if known.is_some() {
                        self.replaced(story, counts);
                    }
                    if !is_short && !self.flags.has(story) {
                        let mut found = near.remove(&at).unwrap_or_default();
                        // If the batch replaces an indexed text, the new text is compared, and the old one is not.
                        found.retain(|near| near.id != *id && earlier.get(language, &near.id).is_none());
                        earlier.near(&story.document, self.index.near().identity().k(), &mut found);
                        if known.is_none() {
                            // A run that ended before it had indexed this document may have written the pair already.
                            found.retain(|near| !self.flags.has_pair(language, &near.id, id));
                        }
                        if !found.is_empty() {
                            found.sort_unstable_by(NearMatch::order);
                            self.flags.push(&FlagLine::new(story, &found, self.index.near().identity()));
                            flagged.push(at);
                        }
                    }
                }
            }
            earlier.put(language, id, *hash);
        }
        let start = Instant::now();
        self.flags.flush(true)?;
        self.telemetry.record_duration(
            Stage::Persist,
            start.elapsed(),
            flagged.iter().map(|at| &stories[*at]),
        );
        flagged.iter().for_each(|at| self.telemetry.record_flagged(&stories[*at]));
        counts.flagged += flagged.len() as u64;
        self.insert(&stories)
    }

    fn replaced(&self, story: &Story, counts: &mut Counts) {
        counts.replaced += 1;
        if counts.replaced <= MAX_REPLACED_WARNINGS {
            let (position, id, lang) =
                (story.position.clone(), story.document.id.clone(), story.lang.clone());
            self.warnings.tell(&Warning::Replaced { position, id, lang });
        }
    }

    fn insert(&mut self, stories: &[Story]) -> Result<(), Error> {
        let start = Instant::now();
        // Inserts unchanged documents too: if an earlier insert was interrupted, the server may hold only half of a document's keys.
        let documents: Vec<Document> = stories.iter().map(|story| story.document.clone()).collect();
        if documents.is_empty() {
            return Ok(());
        }
        self.index.near().insert(&documents)?;
        self.telemetry.record_duration(Stage::Insert, start.elapsed(), stories.iter());
        stories.iter().for_each(|story| self.spellings.learn(story.document.language, &story.lang));
        self.spellings.save(&self.warnings);
        Ok(())
    }

    /// Flags each document that is near to an indexed one, and inserts nothing.
    ///
    /// # Errors
    /// The index fails, or the flags cannot be written.
    pub fn query(&mut self, stories: Vec<Story>, counts: &mut Counts) -> Result<(), Error> {
        let stories = self.without_empty(stories, counts);
        let is_short = |at: &usize| stories[*at].is_shorter_than(self.min_words);
        counts.short += (0..stories.len()).filter(is_short).count() as u64;
        let asked: Vec<usize> = (0..stories.len()).filter(|at| !is_short(at)).collect();
        let mut near = self.near(&stories, &asked)?;
        for at in asked {
            let story = &stories[at];
            let mut found = near.remove(&at).unwrap_or_default();
            found.retain(|near| near.id != story.document.id);
            if !found.is_empty() {
                self.flags.push(&FlagLine::new(story, &found, self.index.near().identity()));
                self.telemetry.record_flagged(story);
                counts.flagged += 1;
            }
        }
        self.flags.flush(false)
    }

    /// Makes the flags and the index durable.
    ///
    /// # Errors
    /// The disk or the server fails.
    pub fn finish(&self) -> Result<(), Error> {
        self.flags.sync()?;
        Ok(self.index.near().flush()?)
    }

    fn without_empty(&self, mut stories: Vec<Story>, counts: &mut Counts) -> Vec<Story> {
        stories.retain(|story| {
            if story.is_empty() {
                counts.skipped_short += 1;
                self.telemetry.record_skipped(Some(story), "empty");
            }
            !story.is_empty()
        });
        stories
    }

    /// The fingerprint under which each document is indexed; `None` for each one that is not.
    fn indexed(&self, stories: &[Story]) -> Result<Vec<Option<SimHash>>, Error> {
        let mut by_language = HashMap::<Language, (Vec<usize>, Vec<DocId>)>::new();
        for (at, story) in stories.iter().enumerate() {
            let (places, ids) = by_language.entry(story.document.language).or_default();
            places.push(at);
            ids.push(story.document.id.clone());
        }
        let mut before = vec![None; stories.len()];
        for (language, (places, ids)) in by_language {
            let found = self.index.near().get(&language, &ids)?;
            places.into_iter().zip(found).for_each(|(at, found)| before[at] = found);
        }
        Ok(before)
    }

    fn near(&self, stories: &[Story], asked: &[usize]) -> Result<HashMap<usize, Found>, Error> {
        let start = Instant::now();
        let query = |at: &usize| (stories[*at].document.language, stories[*at].document.hash);
        let queries: Vec<(Language, SimHash)> = asked.iter().map(query).collect();
        if queries.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.index.near().near(&queries)?;
        self.telemetry.record_duration(Stage::Query, start.elapsed(), asked.iter().map(|at| &stories[*at]));
        Ok(asked.iter().copied().zip(found).collect())
    }
}

/// The documents of a batch so far. If an id occurs more than once, only its last document is kept.
#[derive(Debug, Default)]
struct EarlierInBatch {
    places: HashMap<(Language, DocId), usize>,
    /// By language. A batch has a thousand documents or so at most, and each is compared with those before it.
    documents: HashMap<Language, Vec<(SimHash, DocId)>>,
}

impl EarlierInBatch {
    fn get(&self, language: &Language, id: &DocId) -> Option<SimHash> {
        let at = *self.places.get(&(*language, id.clone()))?;
        Some(self.documents.get(language)?.get(at)?.0)
    }

    fn put(&mut self, language: &Language, id: &DocId, hash: SimHash) {
        let documents = self.documents.entry(*language).or_default();
        match self.places.get(&(*language, id.clone())) {
            Some(at) => documents[*at].0 = hash,
            None => {
                self.places.insert((*language, id.clone()), documents.len());
                documents.push((hash, id.clone()));
            }
        }
    }

    fn near(&self, document: &Document, k: u32, found: &mut Found) {
        let documents = self.documents.get(&document.language).map_or(&[][..], Vec::as_slice);
        let near = documents.iter().map(|(hash, id)| (hash.distance(document.hash), id));
        let near = near.filter(|(distance, id)| *distance <= k && **id != document.id);
        found.extend(near.map(|(distance, id)| NearMatch { id: id.clone(), distance }));
    }
}
