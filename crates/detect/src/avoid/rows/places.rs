//! The places of values in their order at which a row of evidence was tested.

/// A row is believed at this multiple of the length of the range at which it was tested, beyond each end of it.
const REACH: i64 = 2;

/// The places of the values with which a row was tested, in their order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TestedPlaces {
    /// The lowest and the highest at which it held; `None` before it did.
    pub(super) held: Option<(i64, i64)>,
    /// Of those at which it failed, the nearest ones below and above these; before it held, the lowest and the highest.
    failed: (Option<i64>, Option<i64>),
}

impl TestedPlaces {
    /// Adds a test at a place.
    pub(super) fn add(&mut self, at: i64, is_dup: bool) {
        let (below, above) = self.failed;
        match (self.held, is_dup) {
            (None, false) => {
                self.failed = (Some(below.map_or(at, |lowest| lowest.min(at))), above.max(Some(at)));
            }
            (None, true) => {
                self.held = Some((at, at));
                self.failed = (
                    above.filter(|highest| *highest < at).or(below.filter(|lowest| *lowest < at)),
                    below.filter(|lowest| *lowest > at).or(above.filter(|highest| *highest > at)),
                );
            }
            (Some((low, high)), true) => {
                let (low, high) = (low.min(at), high.max(at));
                self.held = Some((low, high));
                self.failed = (below.filter(|below| *below < low), above.filter(|above| *above > high));
            }
            (Some((low, _)), false) if at < low => self.failed.0 = below.max(Some(at)),
            (Some((_, high)), false) if at > high => {
                self.failed.1 = Some(above.map_or(at, |above| above.min(at)));
            }
            (Some(_), false) => {}
        }
    }

    /// Whether a place is nearer to one at which the row failed than to those at which it held.
    pub(super) fn is_near_failure(&self, at: i64) -> bool {
        let Some((low, high)) = self.held else { return false };
        let is_nearer = |failed: Option<i64>, held: i64| {
            failed.is_some_and(|failed| at.abs_diff(failed) < at.abs_diff(held))
        };
        (at < low && is_nearer(self.failed.0, low)) || (at > high && is_nearer(self.failed.1, high))
    }

    /// The places at which the row is believed.
    pub(super) fn believed(&self) -> Option<(i64, i64)> {
        let (low, high) = self.held?;
        let reach = high.saturating_sub(low).saturating_mul(REACH);
        Some((low.saturating_sub(reach), high.saturating_add(reach)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_near_a_failure_if_it_is_nearer_to_one_than_to_all_places_at_which_the_row_held() {
        for order in [
            &[(100, true), (200, true), (400, false), (0, false)][..],
            &[(400, false), (0, false), (200, true), (100, true)],
        ] {
            let mut places = TestedPlaces::default();
            for (at, is_dup) in order {
                places.add(*at, *is_dup);
            }
            let near: Vec<i64> = (-50..=500).step_by(50).filter(|at| places.is_near_failure(*at)).collect();
            assert_eq!(near, [-50, 0, 350, 400, 450, 500], "half-way it is not nearer");
            assert_eq!(places.believed(), Some((-100, 400)));
        }
    }

    #[test]
    fn a_range_forgets_failures_that_it_grows_over() {
        let mut places = TestedPlaces::default();
        assert!(!places.is_near_failure(10) && places.believed().is_none(), "nothing is known");
        for (at, is_dup) in [(100, true), (300, false), (280, false), (290, false)] {
            places.add(at, is_dup);
        }
        assert!(places.is_near_failure(195), "280 is nearer than 100");
        places.add(285, true);
        assert!(!places.is_near_failure(295), "280 is no end any more, and 290 was not the nearest");
        places.add(300, false);
        assert!(places.is_near_failure(295));
    }
}
