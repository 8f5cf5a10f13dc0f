//! Query, flag, insert: what is done with each batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use huntsman::detect::near::{DocId, Document, Identity, Language, Near};
use huntsman::detect::simhash::SimHash;

use super::flags::{FlagLine, Flags};
use super::index::{Opened, failure};
use super::metrics::{Stage, Telemetry};
use super::record::Story;
use super::spelling::Spellings;
use super::summary::Summary;
use crate::exit::Outcome;

/// What is near to a document, the nearest first.
pub(crate) type Found = Vec<Near>;

/// Asks, flags and inserts.
#[derive(Debug)]
pub(crate) struct Adding {
    pub(crate) index: Arc<Opened>,
    pub(crate) identity: Identity,
    pub(crate) flags: Flags,
    pub(crate) min_words: usize,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) spellings: Spellings,
}

impl Adding {
    /// Flags what is near to indexed documents or to earlier ones of the batch, and then inserts all of it.
    ///
    /// The flags are written before anything is inserted: who is killed in between finds, after starting again, the documents not
    /// indexed and their flags written, and writes them no second time.
    pub(crate) fn add(&mut self, stories: Vec<Story>, summary: &mut Summary) -> Outcome<()> {
        let stories = self.without_empty(stories, summary);
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
            summary.short += u64::from(is_short);
            match known {
                Some(known) if known == *hash => summary.unchanged += 1,
                known => {
                    if known.is_some() {
                        summary.replaced(story);
                    }
                    if !is_short && !self.flags.has(story) {
                        let mut found = near.remove(&at).unwrap_or_default();
                        // What the batch has put in the place of an indexed text counts, not that text.
                        found.retain(|near| near.id != *id && earlier.get(language, &near.id).is_none());
                        earlier.near(&story.document, self.identity.k(), &mut found);
                        if known.is_none() {
                            // Told already, by a run that ended before it had indexed this one.
                            found.retain(|near| !self.flags.has_pair(language, &near.id, id));
                        }
                        if !found.is_empty() {
                            found.sort_unstable_by(Near::order);
                            self.flags.push(&FlagLine::new(story, &found, &self.identity))?;
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
        summary.flagged += flagged.len() as u64;
        self.insert(&stories)
    }

    /// Inserts, without looking for anything.
    pub(crate) fn insert(&mut self, stories: &[Story]) -> Outcome<()> {
        let start = Instant::now();
        // Those that are there as well: a server may have been left with half of what belongs to a document.
        let documents: Vec<Document> = stories.iter().map(|story| story.document.clone()).collect();
        if documents.is_empty() {
            return Ok(());
        }
        self.index.near().insert(&documents).map_err(|error| failure(&error))?;
        self.telemetry.took(Stage::Insert, start.elapsed(), stories.iter());
        stories.iter().for_each(|story| self.spellings.learn(story.document.language, &story.lang));
        self.spellings.save();
        Ok(())
    }

    /// Flags what is near to indexed documents, and inserts nothing.
    pub(crate) fn query(&mut self, stories: Vec<Story>, summary: &mut Summary) -> Outcome<()> {
        let stories = self.without_empty(stories, summary);
        let is_short = |at: &usize| stories[*at].is_shorter_than(self.min_words);
        summary.short += (0..stories.len()).filter(is_short).count() as u64;
        let asked: Vec<usize> = (0..stories.len()).filter(|at| !is_short(at)).collect();
        let mut near = self.near(&stories, &asked)?;
        for at in asked {
            let story = &stories[at];
            let mut found = near.remove(&at).unwrap_or_default();
            found.retain(|near| near.id != story.document.id);
            if !found.is_empty() {
                self.flags.push(&FlagLine::new(story, &found, &self.identity))?;
                self.telemetry.flagged(story);
                summary.flagged += 1;
            }
        }
        self.flags.flush(false)
    }

    /// Makes durable what was done.
    pub(crate) fn finish(&self) -> Outcome<()> {
        self.flags.sync()?;
        self.index.near().flush().map_err(|error| failure(&error))
    }

    fn without_empty(&self, mut stories: Vec<Story>, summary: &mut Summary) -> Vec<Story> {
        stories.retain(|story| {
            if story.is_empty() {
                summary.skipped_short += 1;
                self.telemetry.skipped(Some(story), "empty");
            }
            !story.is_empty()
        });
        stories
    }

    /// With which fingerprints the documents are indexed.
    fn indexed(&self, stories: &[Story]) -> Outcome<Vec<Option<SimHash>>> {
        let mut by_language = HashMap::<Language, (Vec<usize>, Vec<DocId>)>::new();
        for (at, story) in stories.iter().enumerate() {
            let (places, ids) = by_language.entry(story.document.language).or_default();
            places.push(at);
            ids.push(story.document.id.clone());
        }
        let mut before = vec![None; stories.len()];
        for (language, (places, ids)) in by_language {
            let found = self.index.near().get(&language, &ids).map_err(|error| failure(&error))?;
            places.into_iter().zip(found).for_each(|(at, found)| before[at] = found);
        }
        Ok(before)
    }

    fn near(&self, stories: &[Story], asked: &[usize]) -> Outcome<HashMap<usize, Found>> {
        let start = Instant::now();
        let query = |at: &usize| (stories[*at].document.language, stories[*at].document.hash);
        let queries: Vec<(Language, SimHash)> = asked.iter().map(query).collect();
        if queries.is_empty() {
            return Ok(HashMap::new());
        }
        let found = self.index.near().near(&queries).map_err(|error| failure(&error))?;
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
