//! Tables that find the rows which share a band of their fingerprint with a query.

use crate::simhash::SimHash;

/// Rows per slot of a directory, on average. A query then reads less than a cache line of a table.
const ROWS_PER_SLOT: usize = 10;

/// Slots of a run.
const SLOTS_PER_RUN: usize = 512;

/// The most rows of a table. Of the 32 bits of an entry, at least 4 are left to tell bands apart.
pub(super) const MAX_ROWS: usize = 1 << 28;

/// The number of 32-bit bands of a fingerprint.
pub(super) const BANDS: usize = 4;

/// The most probes of a query: for each band, the query's value and all values that differ from it in one bit.
pub(super) const MAX_PROBES: usize = BANDS * (1 + u32::BITS as usize);

/// A value of a band that a query looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// The number of the band; 0 is the most significant.
    pub(super) band: usize,
    /// The bits in which the value differs from that of the query: none or one.
    pub(super) flips: u32,
}

/// All probes in the order in which they are looked up; a prefix of them is enough for a smaller k.
static PROBES: [Probe; MAX_PROBES] = {
    let mut probes = [Probe { band: 0, flips: 0 }; MAX_PROBES];
    let mut at = 0;
    while at < MAX_PROBES {
        probes[at] = match at.checked_sub(BANDS) {
            None => Probe { band: at, flips: 0 },
            Some(at) => Probe { band: at / 32, flips: 1 << (at % 32) },
        };
        at += 1;
    }
    probes
};

/// The probes for fingerprints within k bits of a query, at most 7: each such fingerprint has at least one of these values.
///
/// If a fingerprint had none of them, its bits would differ in at least one place of each band, and in two of each band whose neighbours
/// are looked for: k + 1 in all. So for k up to 3 the values of k + 1 bands are enough, and each further bit needs the neighbours of one
/// more band (the pigeonhole principle with a threshold for each band; for tables that find the other bits see G. S. Manku, A. Jain, A. Das
/// Sarma, "Detecting Near-Duplicates for Web Crawling", WWW 2007).
pub(super) fn probes(k: u32) -> &'static [Probe] {
    let k = k as usize;
    match k.checked_sub(BANDS) {
        None => &PROBES[..=k],
        Some(more) => &PROBES[..BANDS + 32 * (more + 1)],
    }
}

/// The number of bands that need tables: those that occur in [`probes`].
pub(super) fn bands(k: u32) -> usize {
    BANDS.min(k as usize + 1)
}

/// Whether the values that differ from this band's in one bit are looked for.
pub(super) fn has_neighbours(k: u32, band: usize) -> bool {
    band + BANDS <= k as usize
}

/// The first probe that finds a fingerprint, given the bits in which it differs from the query.
pub(super) fn first_probe(k: u32, difference: u128) -> Option<Probe> {
    let mut found = (0..bands(k)).map(|band| Probe { band, flips: value(difference, band) });
    found
        .clone()
        .find(|probe| probe.flips == 0)
        .or_else(|| found.find(|probe| has_neighbours(k, probe.band) && probe.flips.is_power_of_two()))
}

/// A selection of bits of a band.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masked {
    pub(super) band: usize,
    mask: u32,
}

/// Selections of bits such that two fingerprints within k bits agree in at least one of them. If a band may differ in one bit, the
/// selections are two of its three thirds each, one of which does not contain that bit.
pub(super) fn masks(k: u32) -> impl Iterator<Item = Masked> {
    (0..bands(k)).flat_map(move |band| {
        let left_out: &[u32] =
            if has_neighbours(k, band) { &[0xffe0_0000, 0x001f_fc00, 0x03ff] } else { &[0] };
        left_out.iter().map(move |bits| Masked { band, mask: !bits })
    })
}

impl Masked {
    /// The selected bits of a fingerprint.
    pub(super) fn of(self, hash: u128) -> u32 {
        value(hash, self.band) & self.mask
    }

    /// Whether the selection is the whole band.
    pub(super) fn is_whole(self) -> bool {
        self.mask == u32::MAX
    }
}

/// The value of a band of a fingerprint.
pub(super) fn value(hash: u128, band: usize) -> u32 {
    (hash >> (96 - 32 * band)) as u32
}

/// Mixes a band's value: the upper bits become as good as random, and different values stay different.
///
/// The bands of texts of one language are unevenly distributed. If their upper bits chose the slot, a few slots would have most rows.
///
/// This is the finaliser of MurmurHash3 (A. Appleby, public domain).
pub(super) fn mixed(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// One table for each band, from its values to rows. Takes 17.6 bytes per row for four bands.
#[derive(Debug)]
pub(super) struct Bands {
    tables: Box<[Table]>,
}

/// A directory of slots, followed by the entries of all slots, 32 bits each. An entry holds the number of the row in its lower bits and, in
/// the remaining upper bits, which of the values of its slot the row has. The entries of a slot ascend, so those of one value are adjacent,
/// in the order of their rows.
#[derive(Debug)]
pub(super) struct Table {
    row_bits: u32,
    /// The start of each slot's entries, and last the end of the last slot's.
    starts: Box<[u32]>,
    entries: Box<[u32]>,
}

impl Bands {
    /// Builds the tables for k of the rows 0 to `rows`, whose fingerprints `hash` returns. Takes about 100 ns per row and no memory beside
    /// the tables.
    pub(super) fn build(k: u32, rows: usize, hash: impl Fn(usize) -> SimHash) -> Self {
        let table = |band| Table::build(rows, |row| value(hash(row).0, band));
        Self { tables: (0..bands(k)).map(table).collect() }
    }

    /// For each probe, at most `N` of them, the entries of the rows that may have its value, in ascending order: all that do, and some
    /// others.
    pub(super) fn sharing<const N: usize>(&self, hash: SimHash, probes: &[Probe]) -> [&[u32]; N] {
        // The memory for all probes is requested at once, before any of the results is used. A branch that depends on an entry would delay
        // the reads for the next probe, and so would much work between two reads.
        let mut places = [(0, 0); N];
        for (place, probe) in places.iter_mut().zip(probes) {
            *place = self.tables[probe.band].place(value(hash.0, probe.band) ^ probe.flips);
        }
        let mut sharing: [&[u32]; N] = [&[]; N];
        for ((entries, (slot, _)), probe) in sharing.iter_mut().zip(places).zip(probes) {
            *entries = self.tables[probe.band].slot(slot);
        }
        // Both ends are read, because a slot may span two cache lines.
        std::hint::black_box(sharing.iter().fold(0, |all, entries| match entries {
            [first, .., last] => all | first | last,
            _ => all,
        }));
        for ((entries, (_, rest)), probe) in sharing.iter_mut().zip(places).zip(probes) {
            *entries = self.tables[probe.band].of_rest(entries, rest);
        }
        sharing
    }

    /// The table of a band.
    pub(super) fn table(&self, band: usize) -> &Table {
        &self.tables[band]
    }

    /// The row number in an entry.
    pub(super) fn row(&self, entry: u32) -> u32 {
        self.tables[0].row(entry)
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self) -> usize {
        self.tables.iter().map(|table| size_of_val(&*table.starts) + size_of_val(&*table.entries)).sum()
    }
}

impl Table {
    /// Builds the table of the rows 0 to `rows`, whose values `value` returns.
    pub(super) fn build(rows: usize, value: impl Fn(usize) -> u32) -> Self {
        assert!(rows <= MAX_ROWS, "the rows of a part are limited");
        let slots = (rows / ROWS_PER_SLOT).max(1);
        let row_bits = (usize::BITS - rows.leading_zeros()).max(8);
        let mut table = Self { row_bits, starts: vec![0; slots + 1].into(), entries: Box::default() };
        // The array first holds counts, then ends; placing an entry decrements its end, so that the starts remain.
        (0..rows).for_each(|row| table.starts[table.place(value(row)).0] += 1);
        table.starts.iter_mut().fold(0, |end, start| {
            *start += end;
            *start
        });
        let mut entries = vec![0_u32; rows].into_boxed_slice();
        for row in (0..rows).rev() {
            let (slot, rest) = table.place(value(row));
            table.starts[slot] -= 1;
            entries[table.starts[slot] as usize] = rest << row_bits | row as u32;
        }
        for slot in table.starts.windows(2) {
            entries[slot[0] as usize..slot[1] as usize].sort_unstable();
        }
        table.entries = entries;
        table
    }

    /// The slot of a value, and the rest of the value that its entries store.
    fn place(&self, value: u32) -> (usize, u32) {
        let product = u64::from(mixed(value)) * (self.starts.len() as u64 - 1);
        ((product >> 32) as usize, (product as u32) >> self.row_bits)
    }

    fn slot(&self, slot: usize) -> &[u32] {
        &self.entries[self.starts[slot] as usize..self.starts[slot + 1] as usize]
    }

    /// The entries of a slot that have this rest.
    fn of_rest<'a>(&self, entries: &'a [u32], rest: u32) -> &'a [u32] {
        let is_before = |entry: &u32| entry >> self.row_bits < rest;
        let is_until = |entry: &u32| entry >> self.row_bits <= rest;
        if entries.len() > 3 * ROWS_PER_SLOT {
            return &entries[entries.partition_point(is_before)..entries.partition_point(is_until)];
        }
        // For so few entries counting is faster than a binary search.
        let (mut start, mut end) = (0, 0);
        for entry in entries {
            start += usize::from(is_before(entry));
            end += usize::from(is_until(entry));
        }
        &entries[start..end]
    }

    /// All entries in runs of some thousands. Two rows with the same value are in one run, and all entries between them [may have that
    /// value](Self::is_same) as well.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[u32]> {
        let starts = self.starts.iter().step_by(SLOTS_PER_RUN).map(|start| *start as usize);
        let ends = starts.clone().skip(1).chain([self.entries.len()]);
        starts.zip(ends).map(|(start, end)| &self.entries[start..end])
    }

    /// Whether the rows of two adjacent entries of a run may have the same value.
    pub(super) fn is_same(&self, a: u32, b: u32) -> bool {
        a >> self.row_bits == b >> self.row_bits
    }

    /// The row number in an entry.
    pub(super) fn row(&self, entry: u32) -> u32 {
        entry & ((1 << self.row_bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn mixing_is_one_to_one() {
        // Undoes each step of the mixing.
        let inverse =
            |odd: u32| (0..5).fold(1_u32, |x, _| x.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(x))));
        let (first, second) = (inverse(0x85eb_ca6b), inverse(0xc2b2_ae35));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0303);
        for x in (0..1000).chain((0..100_000).map(|_| rng.next_u32())) {
            let mut back = mixed(x);
            back = (back ^ back >> 16).wrapping_mul(second);
            back = (back ^ back >> 13 ^ back >> 26).wrapping_mul(first);
            assert_eq!(back ^ back >> 16, x);
        }
    }

    #[test]
    fn all_rows_with_a_value_are_found() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0304);
        for (rows, queries) in [(0, 1), (1, 2), (7, 5), (255, 20), (256, 20), (3000, 20), (660_000, 1)] {
            // Half of the fingerprints have few values in every band.
            let hashes: Vec<u128> = (0..rows)
                .map(|row| {
                    let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                    if row % 2 == 0 { random } else { random & (0x8001 * (u128::MAX / 0xffff)) }
                })
                .collect();
            for k in [0, 2, 3, 7] {
                let bands = Bands::build(k, rows, |row| SimHash(hashes[row]));
                for _ in 0..queries {
                    let query = hashes.get(rng.next_u32() as usize % rows.max(1)).copied().unwrap_or(5);
                    let sharing = bands.sharing::<MAX_PROBES>(SimHash(query), probes(k));
                    for (probe, entries) in probes(k).iter().zip(sharing) {
                        let has = |hash: u128| value(hash ^ query, probe.band) == probe.flips;
                        let found = entries.iter().map(|entry| bands.row(*entry));
                        let found: Vec<u32> = found.filter(|row| has(hashes[*row as usize])).collect();
                        let all: Vec<u32> =
                            (0..).zip(&hashes).filter(|(_, hash)| has(**hash)).map(|(row, _)| row).collect();
                        assert_eq!(found, all, "{rows} rows, k = {k}, {probe:?}");
                    }
                }
            }
        }
    }

    /// All ways to distribute this number of bits over four bands.
    fn spreads(bits: u32) -> impl Iterator<Item = [u32; 4]> {
        let counts = (0..4).fold(vec![vec![]], |lists: Vec<Vec<u32>>, _| {
            let longer = |list: Vec<u32>| (0..=bits).map(move |count| [&list[..], &[count]].concat());
            lists.into_iter().flat_map(longer).collect()
        });
        let counts = counts.into_iter().map(|list| <[u32; 4]>::try_from(list).expect("four bands"));
        counts.filter(move |counts| counts.iter().sum::<u32>() == bits)
    }

    #[test]
    fn however_k_bits_are_spread_over_bands_a_probe_finds_them() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0305);
        let mut differences = |bits| {
            let difference = |spread: [u32; 4]| {
                let mut difference = 0_u128;
                for (band, count) in spread.into_iter().enumerate() {
                    while value(difference, band).count_ones() < count {
                        difference |= 1 << (96 - 32 * band + rng.next_u32() as usize % 32);
                    }
                }
                difference
            };
            spreads(bits).map(difference).collect::<Vec<u128>>()
        };
        for k in 0..=7 {
            for difference in (0..=k).flat_map(&mut differences) {
                let first = probes(k).iter().find(|probe| value(difference, probe.band) == probe.flips);
                assert!(first.is_some(), "k = {k}, {difference:#x}");
                assert_eq!(first_probe(k, difference), first.copied(), "k = {k}, {difference:#x}");
                let is_same = |mask: Masked| mask.of(difference) == 0;
                assert!(masks(k).any(is_same), "k = {k}, {difference:#x}");
            }
            // No more probes are made than k needs, so some fingerprints at k + 1 bits are missed.
            let missed =
                differences(k + 1).into_iter().filter(|difference| first_probe(k, *difference).is_none());
            assert!(missed.count() > 0, "k = {k}");
        }
    }
}
