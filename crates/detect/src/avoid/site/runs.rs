//! Runs: the contents of URLs that differ in one value, in the order of that value.
//!
//! Contents are mostly runs: a file at all revisions between two changes, a list between two posts. Where both neighbours of a value show the
//! same, the value between them does so too, nearly always.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::avoid::content::ContentId;

/// The most values of a run that are remembered.
const MAX_VALUES: usize = 4_096;

/// The contents by key and place.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(HashMap<u64, SmallVec<[(i64, ContentId); 1]>>);

/// Where a value is in its run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// The distance to the nearest known value.
    pub(super) nearest: u64,
    /// The contents at the known values below and above, and the distance between these; `None` at an end.
    pub(super) between: Option<(ContentId, ContentId, u64)>,
}

impl Runs {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn add(&mut self, key: u64, at: i64, content: ContentId) {
        let run = self.0.entry(key).or_default();
        match run.binary_search_by_key(&at, |(place, _)| *place) {
            Ok(known) => run[known].1 = content,
            Err(next) if run.len() < MAX_VALUES => run.insert(next, (at, content)),
            Err(_) => {}
        }
    }

    /// `None` if no value of the run is known.
    pub(super) fn around(&self, key: u64, at: i64) -> Option<Surroundings> {
        let run = self.0.get(&key)?;
        let next = run.partition_point(|(place, _)| *place < at);
        let above = run.get(next).filter(|(place, _)| *place != at).or_else(|| run.get(next + 1));
        let below = next.checked_sub(1).map(|below| run[below]);
        let distance = |other: &(i64, ContentId)| other.0.abs_diff(at);
        let nearest = above.iter().copied().chain(below.iter()).map(distance).min()?;
        let between = below.zip(above).map(|(below, above)| (below.1, above.1, above.0.abs_diff(below.0)));
        Some(Surroundings { nearest, between })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_between_the_nearest_known_ones() {
        let mut runs = Runs::default();
        assert!(runs.around(1, 5).is_none());
        for (at, content) in [(10, 1), (40, 3), (20, 2)] {
            runs.add(1, at, content);
        }
        let around = |at: i64| runs.around(1, at).map(|place| (place.nearest, place.between));
        assert_eq!(around(13), Some((3, Some((1, 2, 10)))));
        assert_eq!(around(20), Some((10, Some((1, 3, 30)))), "the value itself does not count");
        assert_eq!(around(50), Some((10, None)));
        assert_eq!(around(-5), Some((15, None)));
        assert!(runs.around(2, 13).is_none());
    }
}
