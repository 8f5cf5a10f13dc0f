//! What of a batch counts: the last document of each id.

use std::collections::{BTreeMap, HashMap, HashSet};

use huntsman_detect::near::{DocId, Document, IndexError, Language};
use huntsman_detect::simhash::SimHash;

pub(super) type Latest<'a> = BTreeMap<Language, Vec<(&'a DocId, SimHash)>>;

/// The documents of a batch by language, of each id the last one, in the order in which they came first.
///
/// # Errors
/// An id is too long.
pub(super) fn latest(documents: &[Document]) -> Result<Latest<'_>, IndexError> {
    let mut languages = Latest::new();
    let mut places: HashMap<(Language, &DocId), usize> = HashMap::with_capacity(documents.len());
    for Document { language, id, hash } in documents {
        id.check()?;
        let list = languages.entry(*language).or_default();
        let place = *places.entry((*language, id)).or_insert(list.len());
        match list.get_mut(place) {
            Some(earlier) => earlier.1 = *hash,
            None => list.push((id, *hash)),
        }
    }
    Ok(languages)
}

/// Ids without repetition, in the order in which they came first.
pub(super) fn distinct(ids: &[DocId]) -> Vec<&DocId> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.iter().filter(|id| seen.insert(*id)).collect()
}
