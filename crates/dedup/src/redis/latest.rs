//! The documents of a batch that count: the last one of each id.

use std::collections::{BTreeMap, HashMap, HashSet};

use huntsman_detect::near::{DocId, Document, IndexError, Language};
use huntsman_detect::simhash::SimHash;

pub(super) type Latest<'a> = BTreeMap<Language, Vec<(&'a DocId, SimHash)>>;

/// The documents of a batch by language, only the last one of each id, in the order in which the ids first occur.
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

/// The ids without repetitions, in the order in which they first occur.
pub(super) fn distinct(ids: &[DocId]) -> Vec<&DocId> {
    let mut seen = HashSet::with_capacity(ids.len());
    ids.iter().filter(|id| seen.insert(*id)).collect()
}
