//! Lists of places by keys.

use std::ops::Range;

/// For each key the places that have it, in ascending order; a place is the number of a node in document order. All lists lie one after the other,
/// at four bytes per place and per key.
///
/// What lies inside an element is a range of places, so [`within`](Self::within) finds the nodes of a key inside an element without a look at the others.
#[derive(Clone, Debug, Default)]
pub struct Postings {
    /// Where the list of each key begins, and where the last one ends.
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl Postings {
    /// Lists the given pairs of a key and a place. The keys are less than `keys`, and the places of each key ascend.
    pub fn of(keys: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0_u32; keys + 1];
        for (key, _) in pairs.clone() {
            starts[key as usize + 1] += 1;
        }
        for key in 0..keys {
            starts[key + 1] += starts[key];
        }
        let mut places = vec![0; starts[keys] as usize];
        let mut next = starts.clone();
        for (key, place) in pairs {
            let at = &mut next[key as usize];
            places[*at as usize] = place;
            *at += 1;
        }
        Self { starts, places }
    }

    /// The places of a key; none for a key that there is not.
    pub fn all(&self, key: usize) -> &[u32] {
        match self.starts.get(key..key + 2) {
            Some(&[from, to]) => &self.places[from as usize..to as usize],
            _ => &[],
        }
    }

    /// The places of a key that lie in a range. It takes logarithmic time.
    pub fn within(&self, key: usize, range: Range<u32>) -> &[u32] {
        let all = self.all(key);
        let from = all.partition_point(|place| *place < range.start);
        let inside = &all[from..];
        // Most ranges are whole pages.
        match inside.last() {
            Some(last) if *last >= range.end => &inside[..inside.partition_point(|place| *place < range.end)],
            _ => inside,
        }
    }
}
