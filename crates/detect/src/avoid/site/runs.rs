//! Runs: the contents of URLs that differ in one value, in the order of that value.
//!
//! Contents are mostly runs: a file at all revisions between two changes, a list between two posts. Where both neighbours of a value show the
//! same, the value between them does so too, nearly always.

use crate::avoid::content::ContentId;
use crate::avoid::multimap::{Multimap, Noted};
use crate::avoid::packed_key::PackedKey;

/// The most values of a run that are remembered.
const MAX_VALUES: usize = 4_096;

/// The contents by key, each with its place and sorted by it.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Multimap<PackedKey, At>);

/// A place in a run, aligned as a 32-bit number.
#[derive(Clone, Copy, Debug, Default)]
struct At(PackedKey);

impl At {
    fn value(self) -> i64 {
        self.0.value().cast_signed()
    }
}

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
        let new = Noted { number: content, note: At(at.cast_unsigned().into()) };
        self.0.change(key.into(), new, |run| {
            match run.binary_search_by_key(&at, |known| known.note.value()) {
                Ok(known) => run[known] = new,
                Err(next) if run.len() < MAX_VALUES => run.insert(next, new),
                Err(_) => {}
            }
        });
    }

    /// `None` if no value of the run is known.
    pub(super) fn around(&self, key: u64, at: i64) -> Option<Surroundings> {
        let run = self.0.get(key.into());
        let place = |known: &Noted<At>| known.note.value();
        let next = run.partition_point(|known| place(known) < at);
        let above = run.get(next).filter(|known| place(known) != at).or_else(|| run.get(next + 1));
        let below = next.checked_sub(1).map(|below| run[below]);
        let nearest =
            above.iter().copied().chain(below.iter()).map(|known| place(known).abs_diff(at)).min()?;
        let between = below
            .zip(above)
            .map(|(below, above)| (below.number, above.number, place(above).abs_diff(place(&below))));
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
