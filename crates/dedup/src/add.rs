//! Query, flag, insert: what is done with each batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use huntsman_detect::near::{DocId, Document, Language, Near};
use huntsman_detect::simhash::SimHash;

use crate::counts::Counts;
use crate::error::Error;
use crate::flags::{FlagLine, Flags};
use crate::index::Index;
use crate::metrics::{Stage, Telemetry};
use crate::record::Story;
use crate::spelling::Spellings;
use crate::warning::{Warning, Warnings};

/// What is near to a document, the nearest first.
type Found = Vec<Near>;

/// How many documents that took the place of another text are told one by one.
const REPLACED_TOLD: u64 = 3;

/// Asks an index, flags and inserts.
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
    /// Documents are compared with this index, and what is near goes to these flags. Texts with fewer than 50 words are indexed, but not
    /// flagged.
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

    /// Texts with fewer words are indexed, but not flagged.
    pub fn min_words(mut self, words: usize) -> Self {
        self.min_words = words;
        self
    }

    /// Counts what is done here.
    pub fn telemetry(mut self, telemetry: Arc<Telemetry>) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Keeps how languages are spelt here.
    pub fn spellings(mut self, spellings: Spellings) -> Self {
        self.spellings = spellings;
        self
    }

    /// What is called with each warning.
    pub fn warnings(mut self, warnings: Warnings) -> Self {
        self.warnings = warnings;
        self
    }

    /// Flags what is near to indexed documents or to earlier ones of the batch, and then inserts all of it.
    ///
    /// The flags are written before anything is inserted: a run that is killed in between leaves the documents not indexed and their flags
    /// written, and the next one writes them no second time.
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
        let mut earlier = Earlier::default();
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
                        // What the batch has put in the place of an indexed text counts, not that text.
                        found.retain(|near| near.id != *id && earlier.get(language, &near.id).is_none());
                        earlier.near(&story.document, self.index.near().identity().k(), &mut found);
                        if known.is_none() {
                            // Told already, by a run that ended before it had indexed this one.
                            found.retain(|near| !self.flags.has_pair(language, &near.id, id));
                        }
                        if !found.is_empty() {
                            found.sort_unstable_by(Near::order);
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
        self.telemetry.took(Stage::Persist, start.elapsed(), flagged.iter().map(|at| &stories[*at]));
        flagged.iter().for_each(|at| self.telemetry.flagged(&stories[*at]));
        counts.flagged += flagged.len() as u64;
        self.insert(&stories)
    }

    fn replaced(&self, story: &Story, counts: &mut Counts) {
        counts.replaced += 1;
        if counts.replaced <= REPLACED_TOLD {
            let (place, id, lang) = (story.place.clone(), story.document.id.clone(), story.lang.clone());
            self.warnings.tell(&Warning::Replaced { place, id, lang });
        }
    }

    fn insert(&mut self, stories: &[Story]) -> Result<(), Error> {
        let start = Instant::now();
        // Those that are there as well: a server may have been left with half of what belongs to a document.
        let documents: Vec<Document> = stories.iter().map(|story| story.document.clone()).collect();
        if documents.is_empty() {
            return Ok(());
        }
        self.index.near().insert(&documents)?;
        self.telemetry.took(Stage::Insert, start.elapsed(), stories.iter());
        stories.iter().for_each(|story| self.spellings.learn(story.document.language, &story.lang));
        self.spellings.save(&self.warnings);
        Ok(())
    }

    /// Flags what is near to indexed documents, and inserts nothing.
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
                self.telemetry.flagged(story);
                counts.flagged += 1;
            }
        }
        self.flags.flush(false)
    }

    /// Makes durable what was done.
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
                self.telemetry.skipped(Some(story), "empty");
            }
            !story.is_empty()
        });
        stories
    }

    /// With which fingerprints the documents are indexed.
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
        self.telemetry.took(Stage::Query, start.elapsed(), asked.iter().map(|at| &stories[*at]));
        Ok(asked.iter().copied().zip(found).collect())
    }
}

/// The documents of a batch so far; of each id the last one.
#[derive(Debug, Default)]
struct Earlier {
    places: HashMap<(Language, DocId), usize>,
    /// By language: a batch has some thousand at most, and each is compared with those before it.
    documents: HashMap<Language, Vec<(SimHash, DocId)>>,
}

impl Earlier {
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
        found.extend(near.map(|(distance, id)| Near { id: id.clone(), distance }));
    }
}
