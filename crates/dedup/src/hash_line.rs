//! The line of a fingerprint, which is an input of later runs.

use huntsman_detect::near::{DocId, Document};
use serde::Serialize;

use crate::record::Story;

/// A fingerprint as a line of JSON, such as `{"id":"a","lang":"ENGLISH","simhash":"..."}`. A line like this is a document of later runs,
/// which then need no text.
#[derive(Clone, Debug, Serialize)]
pub struct HashLine<'a> {
    id: &'a DocId,
    lang: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang_confidence: Option<f64>,
    simhash: String,
    /// Set only for a text that has too few words to be flagged, so that later runs do not flag it either.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<usize>,
}

impl<'a> HashLine<'a> {
    /// The line of a document that was read. Texts with fewer than `min_words` words say how many they have.
    pub fn of_story(story: &'a Story, min_words: usize) -> Self {
        Self {
            id: &story.document.id,
            lang: &story.lang,
            lang_confidence: story.lang_confidence,
            simhash: story.document.hash.to_string(),
            words: story.words.filter(|_| story.is_shorter_than(min_words)),
        }
    }

    /// The line of an indexed document, with the spelling of its language.
    pub fn of_document(document: &'a Document, lang: &'a str) -> Self {
        let simhash = document.hash.to_string();
        Self { id: &document.id, lang, lang_confidence: None, simhash, words: None }
    }
}
