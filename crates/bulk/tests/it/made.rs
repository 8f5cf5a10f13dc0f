//! Made-up fingerprints with near pairs, copies and heavy values, and a naive join of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use huntsman_bulk::{Columns, Form, Input, Join};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) struct Made {
    pub(crate) rows: Vec<(String, &'static str, u128)>,
}

pub(crate) type Pairs = Vec<(String, String, String, u32)>;

/// Rows of two languages with text ids: some are random, some near to others at each distance to k + 2, some copies, and many share a band.
pub(crate) fn made(seed: u64, number: usize, k: u32, heavy: usize) -> Made {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let wide =
        |random: &mut Xoshiro256PlusPlus| u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    let mut hashes: Vec<u128> = Vec::with_capacity(number);
    // The upper bit is set, so that `hi` is negative.
    let band = (wide(&mut random) | 1 << 127) & !((1_u128 << 96) - 1);
    while hashes.len() < number {
        let fresh = match hashes.len() < heavy {
            true => band | wide(&mut random) >> 32,
            false => wide(&mut random),
        };
        hashes.push(fresh);
        let near = (random.next_u64() % u64::from(k + 3)) as u32;
        if random.next_u64() % 4 == 0 && hashes.len() < number {
            hashes.push((0..near).fold(fresh, |hash, _| hash ^ 1 << (random.next_u64() % 128)));
        }
    }
    let rows = hashes.into_iter().enumerate().map(|(at, hash)| {
        let id = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        (format!("d{id}"), if at % 7 < 5 || at < heavy { "HINDI" } else { "ENGLISH" }, hash)
    });
    Made { rows: rows.collect() }
}

impl Made {
    /// Writes the rows as JSON lines.
    pub(crate) fn lines(&self, path: &Path) {
        let mut lines = String::new();
        for (id, lang, hash) in &self.rows {
            writeln!(lines, r#"{{"id":"{id}","lang":"{lang}","simhash":"{hash:032x}"}}"#).unwrap();
        }
        std::fs::write(path, lines).unwrap();
    }

    /// The first id of each fingerprint, by language.
    fn first(&self) -> BTreeMap<(&str, u128), &str> {
        let mut first = BTreeMap::new();
        for (id, lang, hash) in &self.rows {
            let least = first.entry((*lang, *hash)).or_insert(id.as_str());
            *least = (*least).min(id);
        }
        first
    }

    /// All pairs, by comparing all.
    pub(crate) fn pairs(&self, k: u32) -> Pairs {
        let first: Vec<_> = self.first().into_iter().collect();
        let mut pairs = Vec::new();
        for (at, ((lang, hash), id)) in first.iter().enumerate() {
            for ((other_lang, other), other_id) in &first[at + 1..] {
                let distance = (hash ^ other).count_ones();
                if lang == other_lang && distance <= k {
                    let (a, b) = (id.min(other_id), id.max(other_id));
                    pairs.push(((*lang).to_owned(), (*a).to_owned(), (*b).to_owned(), distance));
                }
            }
        }
        pairs.sort();
        pairs
    }

    /// The ids that have the fingerprint of an earlier one, with that.
    pub(crate) fn same(&self) -> Vec<(String, String)> {
        let first = self.first();
        let firsts = self.rows.iter().map(|(id, lang, hash)| (id.clone(), first[&(*lang, *hash)].to_owned()));
        let mut same: Vec<_> = firsts.filter(|(id, first)| id != first).collect();
        same.sort();
        same
    }
}

pub(crate) fn join(input: &Path, out: &Path, k: u32) -> Join {
    let input = Input { paths: vec![input.to_owned()], columns: Columns::default(), ..Input::default() };
    let mut join = Join::new(input, out);
    join.k = k;
    join.form = Form::Csv;
    join.threads = 2;
    join.memory = 64 << 20;
    join
}

/// The rows of a table of CSV, sorted.
pub(crate) fn table(folder: PathBuf) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for part in std::fs::read_dir(folder).unwrap() {
        let mut reader = csv::Reader::from_path(part.unwrap().path()).unwrap();
        rows.extend(reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect::<Vec<_>>()));
    }
    rows.sort();
    rows
}

pub(crate) fn pairs(out: &Path) -> Pairs {
    let rows = table(out.join("pairs")).into_iter();
    rows.map(|row| (row[0].clone(), row[1].clone(), row[2].clone(), row[3].parse().unwrap())).collect()
}
