//! Several numbers by one key, where most keys have one number.

use std::hash::Hash;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;

/// A number, such as that of a content, and what is noted with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted<T> {
    pub(crate) number: u32,
    pub(crate) note: T,
}

pub(crate) type List<T> = SmallVec<[Noted<T>; 2]>;

/// Numbers by key. A key with one number has no list, so it takes no more than an entry of a table does; numbers are below 2^31.
#[derive(Clone, Debug)]
pub(crate) struct Multimap<K, T = ()> {
    /// A number with its note, or the number of a list.
    by_key: HashMap<K, Noted<T>>,
    lists: Vec<List<T>>,
}

/// The bit that marks the number of a list.
const LIST: u32 = 1 << 31;

impl<K, T> Default for Multimap<K, T> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), lists: Vec::new() }
    }
}

impl<K: Copy + Eq + Hash, T: Copy + Default> Multimap<K, T> {
    /// Forgets all; the memory is used again.
    pub(crate) fn clear(&mut self) {
        self.by_key.clear();
        self.lists.clear();
    }

    /// The numbers of a key with their notes.
    pub(crate) fn get(&self, key: K) -> &[Noted<T>] {
        match self.by_key.get(&key) {
            None => &[],
            Some(one) if one.number & LIST == 0 => std::slice::from_ref(one),
            Some(list) => &self.lists[(list.number & !LIST) as usize],
        }
    }

    /// Adds the first number of a key, or changes the list of those that it has, which must not become empty.
    pub(crate) fn change(&mut self, key: K, first: Noted<T>, change: impl FnOnce(&mut List<T>)) {
        debug_assert!(first.number & LIST == 0, "numbers have 31 bits");
        let one = match self.by_key.entry(key) {
            Entry::Vacant(free) => {
                free.insert(first);
                return;
            }
            Entry::Occupied(known) => known.into_mut(),
        };
        if one.number & LIST != 0 {
            return change(&mut self.lists[(one.number & !LIST) as usize]);
        }
        let mut list = List::from_slice(&[*one]);
        change(&mut list);
        if let [only] = *list {
            *one = only;
        } else {
            *one = Noted { number: LIST | self.lists.len() as u32, note: T::default() };
            self.lists.push(list);
        }
    }
}

impl<K: Copy + Eq + Hash> Multimap<K> {
    /// Adds a number, unless the key has it. Of more than `most` numbers the newest are kept.
    pub(crate) fn remember(&mut self, key: K, number: u32, most: usize) {
        let new = Noted { number, note: () };
        self.change(key, new, |list| remember(list, new, most));
    }

    /// The numbers of a key.
    pub(crate) fn numbers(&self, key: K) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        self.get(key).iter().map(|noted| noted.number)
    }
}

/// Adds a value to a list of the newest ones, unless it is there.
pub(crate) fn remember<A: smallvec::Array<Item: PartialEq>>(
    list: &mut SmallVec<A>,
    value: A::Item,
    most: usize,
) {
    if !list.contains(&value) {
        if list.len() == most {
            list.remove(0);
        }
        list.push(value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn a_key_has_the_newest_of_its_numbers_in_the_order_in_which_they_came() {
        let seed = 7;
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut naive: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut numbers: Multimap<u64> = Multimap::default();
        for _ in 0..2_000 {
            let (key, number) = (dice.next_u64() % 200, dice.next_u32() % 9);
            numbers.remember(key, number, 4);
            let known = naive.entry(key).or_default();
            if !known.contains(&number) {
                known.push(number);
                known.drain(..known.len().saturating_sub(4));
            }
        }
        for key in 0..200 {
            let expected = naive.get(&key).cloned().unwrap_or_default();
            assert_eq!(numbers.numbers(key).collect::<Vec<_>>(), expected, "key {key}, seed {seed}");
        }
    }

    #[test]
    fn a_changed_number_of_a_key_needs_no_list() {
        let mut numbers: Multimap<u64, u8> = Multimap::default();
        let noted = |number, note| Noted { number, note };
        for (number, note) in [(1, 5), (2, 6)] {
            numbers.change(9, noted(number, note), |list| list[0] = noted(number, note));
        }
        assert_eq!(numbers.get(9), [noted(2, 6)]);
        assert!(numbers.lists.is_empty(), "{numbers:?}");
    }
}
