//! Which rows share a band of their fingerprint with a given one.

use crate::simhash::SimHash;

/// Rows to a slot of a directory, on average: what is read of a table for one query is less than a cache line.
const ROWS_PER_SLOT: usize = 10;

/// The most rows that a table has: of 32 bits of an entry, at least 4 are left to tell bands apart.
pub(super) const MAX_ROWS: usize = 1 << 28;

/// How fingerprints are cut into bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// Four bands of 32 bits. Fingerprints that differ in at most 3 bits have one in common, and unrelated ones hardly ever have.
    Wide,
    /// Eight bands of 16 bits. Fingerprints that differ in at most 7 bits have one in common.
    Narrow,
}

impl Cut {
    /// The most bands of a cut.
    pub(super) const MOST: usize = 8;

    /// The cut that is exact for k, at most 7, with the fewest rows to compare.
    pub(super) fn of(k: u32) -> Self {
        if k <= 3 { Cut::Wide } else { Cut::Narrow }
    }

    /// How many bands there are.
    pub(super) fn bands(self) -> usize {
        match self {
            Cut::Wide => 4,
            Cut::Narrow => 8,
        }
    }

    /// A band of a fingerprint, mixed: its upper bits are as good as random, and different bands stay different.
    ///
    /// Bands of texts of one language are not evenly spread. With their upper bits for a slot, some slots would have most rows.
    pub(super) fn mixed(self, hash: u128, band: usize) -> u32 {
        match self {
            Cut::Wide => mix32((hash >> (96 - 32 * band)) as u32),
            Cut::Narrow => u32::from(mix16((hash >> (112 - 16 * band)) as u16)) << 16,
        }
    }

    /// The first band that two fingerprints have in common, by the bits in which they differ.
    pub(super) fn first_shared(self, difference: u128) -> Option<usize> {
        (0..self.bands()).find(|band| match self {
            Cut::Wide => (difference >> (96 - 32 * band)) as u32 == 0,
            Cut::Narrow => (difference >> (112 - 16 * band)) as u16 == 0,
        })
    }
}

/// The finaliser of MurmurHash3 (A. Appleby, public domain): one to one.
fn mix32(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
    x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
    x ^ x >> 16
}

/// One to one as each step is: a shift to the right that is put over, a product with an odd number.
fn mix16(mut x: u16) -> u16 {
    x = (x ^ x >> 8).wrapping_mul(0x88b5);
    x = (x ^ x >> 7).wrapping_mul(0xdb2d);
    x ^ x >> 9
}

/// For each band a table from its values to rows.
///
/// A table is a directory of slots and behind it the entries of all slots, 32 bits each: the number of the row, and above it, in as many
/// bits as are left, which of the bands of its slot the row has. In a slot entries ascend, so those of one band follow each other in the
/// order of their rows. For four tables this is 17.6 bytes a row, for eight 35.2 and down to 32 the more rows there are.
#[derive(Debug)]
pub(super) struct Bands {
    cut: Cut,
    slots: u32,
    row_bits: u32,
    tables: Box<[Table]>,
}

#[derive(Debug)]
struct Table {
    /// Where the entries of each slot begin, and at last where those of the last one end.
    starts: Box<[u32]>,
    entries: Box<[u32]>,
}

impl Bands {
    /// The tables of rows 0 to `rows`, whose fingerprints `hash` tells. Takes about 100 ns a row and no memory beside the tables.
    pub(super) fn build(cut: Cut, rows: usize, hash: impl Fn(usize) -> SimHash) -> Self {
        assert!(rows <= MAX_ROWS, "the rows of a part are limited");
        let most = match cut {
            Cut::Wide => usize::MAX,
            // A slot for each value: the directory alone tells it.
            Cut::Narrow => 1 << 16,
        };
        let slots = (rows / ROWS_PER_SLOT).clamp(1, most) as u32;
        let row_bits = (usize::BITS - rows.leading_zeros()).max(8);
        let mut bands = Self { cut, slots, row_bits, tables: Box::default() };
        bands.tables =
            (0..cut.bands()).map(|band| bands.table(rows, |row| cut.mixed(hash(row).0, band))).collect();
        bands
    }

    fn table(&self, rows: usize, mixed: impl Fn(usize) -> u32) -> Table {
        // Counts, then ends, of which each entry takes one away: at last they are starts.
        let mut starts = vec![0_u32; self.slots as usize + 1].into_boxed_slice();
        (0..rows).for_each(|row| starts[self.place(mixed(row)).0] += 1);
        starts.iter_mut().fold(0, |end, start| {
            *start += end;
            *start
        });
        let mut entries = vec![0_u32; rows].into_boxed_slice();
        for row in (0..rows).rev() {
            let (slot, rest) = self.place(mixed(row));
            starts[slot] -= 1;
            entries[starts[slot] as usize] = rest << self.row_bits | row as u32;
        }
        for slot in starts.windows(2) {
            entries[slot[0] as usize..slot[1] as usize].sort_unstable();
        }
        Table { starts, entries }
    }

    /// The slot of a band, and what of it an entry has.
    fn place(&self, mixed: u32) -> (usize, u32) {
        let product = u64::from(mixed) * u64::from(self.slots);
        ((product >> 32) as usize, (product as u32) >> self.row_bits)
    }

    pub(super) fn cut(&self) -> Cut {
        self.cut
    }

    /// Entries of the rows that may share a band with a fingerprint: all that do, and some others. Ascending.
    pub(super) fn sharing(&self, hash: SimHash, band: usize) -> &[u32] {
        let (slot, rest) = self.place(self.cut.mixed(hash.0, band));
        let table = &self.tables[band];
        let entries = &table.entries[table.starts[slot] as usize..table.starts[slot + 1] as usize];
        let is_before = |entry: &u32| entry >> self.row_bits < rest;
        let is_of = |entry: &u32| entry >> self.row_bits == rest;
        if entries.len() > 3 * ROWS_PER_SLOT {
            let start = entries.partition_point(is_before);
            let entries = &entries[start..];
            return &entries[..entries.partition_point(is_of)];
        }
        let start = entries.iter().take_while(|entry| is_before(entry)).count();
        let entries = &entries[start..];
        &entries[..entries.iter().take_while(|entry| is_of(entry)).count()]
    }

    /// The groups of entries whose rows may share a band, at least two each. Two rows that share it are in one group.
    pub(super) fn groups(&self, band: usize) -> impl Iterator<Item = &[u32]> {
        let table = &self.tables[band];
        let slots = table.starts.windows(2).map(|slot| &table.entries[slot[0] as usize..slot[1] as usize]);
        let groups = slots.flat_map(|slot| slot.chunk_by(|a, b| a >> self.row_bits == b >> self.row_bits));
        groups.filter(|group| group.len() > 1)
    }

    /// The row of an entry.
    pub(super) fn row(&self, entry: u32) -> u32 {
        entry & ((1 << self.row_bits) - 1)
    }

    /// Bytes that the tables take.
    pub(super) fn bytes(&self) -> usize {
        self.tables.iter().map(|table| size_of_val(&*table.starts) + size_of_val(&*table.entries)).sum()
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn mixing_is_one_to_one() {
        let mut seen = vec![false; 1 << 16];
        (0..=u16::MAX).for_each(|x| seen[usize::from(mix16(x))] = true);
        assert!(seen.iter().all(|seen| *seen));
        // Each step of the wide one is undone.
        let inverse =
            |odd: u32| (0..5).fold(1_u32, |x, _| x.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(x))));
        let (first, second) = (inverse(0x85eb_ca6b), inverse(0xc2b2_ae35));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0303);
        for x in (0..1000).chain((0..100_000).map(|_| rng.next_u32())) {
            let mut back = mix32(x);
            back = (back ^ back >> 16).wrapping_mul(second);
            back = (back ^ back >> 13 ^ back >> 26).wrapping_mul(first);
            assert_eq!(back ^ back >> 16, x);
        }
    }

    #[test]
    fn all_rows_that_share_a_band_are_found() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0304);
        for cut in [Cut::Wide, Cut::Narrow] {
            for (rows, queries) in [(0, 1), (1, 2), (7, 5), (255, 20), (256, 20), (3000, 20), (660_000, 1)] {
                // Half of them have few values in every band.
                let hashes: Vec<u128> = (0..rows)
                    .map(|row| {
                        let random = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                        if row % 2 == 0 { random } else { random & (0x8001 * (u128::MAX / 0xffff)) }
                    })
                    .collect();
                let bands = Bands::build(cut, rows, |row| SimHash(hashes[row]));
                for _ in 0..queries {
                    let query = hashes.get(rng.next_u32() as usize % rows.max(1)).copied().unwrap_or(5);
                    for band in 0..cut.bands() {
                        let shares = |hash: u128| cut.mixed(hash, band) == cut.mixed(query, band);
                        let found = bands.sharing(SimHash(query), band).iter().map(|entry| bands.row(*entry));
                        let found: Vec<u32> = found.filter(|row| shares(hashes[*row as usize])).collect();
                        let all: Vec<u32> =
                            (0..).zip(&hashes).filter(|(_, h)| shares(**h)).map(|(row, _)| row).collect();
                        assert_eq!(found, all, "{cut:?}, {rows} rows, band {band}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_shared_band_counts_from_the_most_significant() {
        assert_eq!(Cut::Wide.first_shared(0), Some(0));
        assert_eq!(Cut::Wide.first_shared(1 << 127), Some(1));
        assert_eq!(Cut::Wide.first_shared(1 << 127 | 1 << 95 | 1 << 63), Some(3));
        assert_eq!(Cut::Wide.first_shared(1 << 127 | 1 << 95 | 1 << 63 | 1), None);
        assert_eq!(Cut::Narrow.first_shared(1 << 127 | 1 << 111), Some(2));
        assert_eq!(Cut::Narrow.first_shared(u128::MAX << 16), Some(7));
    }
}
