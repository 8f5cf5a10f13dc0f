//! Tests of bands and rows against datasketch's, and of indexes against a scan of all signatures.

use huntsman_detect::lsh::{LshIndex, LshParams, PackedIndex};
use huntsman_detect::minhash::{PERMUTATIONS, Signature};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

#[test]
fn bands_and_rows_are_datasketchs() {
    let mut count = 0;
    for line in
        include_str!("../data/lsh-params-datasketch-1.6.5.tsv").lines().filter(|l| !l.starts_with('#'))
    {
        let row: Vec<f64> = line.split('\t').map(|cell| cell.parse().unwrap()).collect();
        let [threshold, permutations, positives, negatives, b, r] = row[..] else { panic!("{line}") };
        let found = LshParams::weighted(threshold, permutations as usize, positives, negatives).unwrap();
        assert_eq!((found.b as f64, found.r as f64), (b, r), "{line}");
        count += 1;
    }
    assert_eq!(count, 290);
}

/// An index that compares all signatures.
#[derive(Debug)]
struct Scan {
    params: LshParams,
    all: Vec<Option<Signature>>,
}

impl LshIndex for Scan {
    fn params(&self) -> LshParams {
        self.params
    }

    fn insert(&mut self, id: u32, signature: &Signature) {
        let at = id as usize;
        if at >= self.all.len() {
            self.all.resize(at + 1, None);
        }
        self.all[at] = Some(signature.clone());
    }

    fn remove(&mut self, id: u32) -> bool {
        self.all.get_mut(id as usize).is_some_and(|place| place.take().is_some())
    }

    fn candidates_into(&self, signature: &Signature, out: &mut Vec<u32>) {
        let LshParams { b, r } = self.params;
        let share_a_band = |other: &Signature| {
            let bands = signature.values().chunks(r).zip(other.values().chunks(r)).take(b);
            bands.into_iter().any(|(one, two)| one == two)
        };
        let matches = |place: &Option<Signature>| place.as_ref().is_some_and(share_a_band);
        out.clear();
        out.extend((0..).zip(&self.all).filter(|(_, place)| matches(place)).map(|(id, _)| id));
    }

    fn len(&self) -> usize {
        self.all.iter().flatten().count()
    }
}

/// Makes the same insertions, replacements, removals and queries on both, with signatures of all similarities.
fn agrees_with_a_scan(index: &mut dyn LshIndex, seed: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut scan = Scan { params: index.params(), all: Vec::new() };
    let contents: Vec<Vec<u64>> =
        (0..12).map(|_| (0..rng.random_range(0..80)).map(|_| rng.random()).collect()).collect();
    let mut found = 0;
    for step in 0..3_000 {
        let mut set = contents[rng.random_range(0..contents.len())].clone();
        set.truncate(set.len() - set.len() * rng.random_range(0..8) / 40);
        let signature = Signature::of(&set);
        let id = rng.random_range(0..300);
        match rng.random_range(0..4) {
            0 | 1 => {
                index.insert(id, &signature);
                scan.insert(id, &signature);
            }
            2 => assert_eq!(index.remove(id), scan.remove(id), "seed {seed:#x}, step {step}"),
            _ => {
                let candidates = index.candidates(&signature);
                assert_eq!(candidates, scan.candidates(&signature), "seed {seed:#x}, step {step}");
                found += candidates.len();
            }
        }
        assert_eq!((index.len(), index.is_empty()), (scan.len(), scan.is_empty()));
    }
    assert!(found > 1_000, "{found} candidates say little");
}

#[test]
fn the_packed_index_gives_the_candidates_of_a_scan() {
    for (seed, (b, r)) in (0x5eed_0110..).zip([(5, 25), (16, 8), (1, 128), (128, 1), (3, 7)]) {
        agrees_with_a_scan(&mut PackedIndex::new(LshParams { b, r }).unwrap(), seed);
    }
}

#[test]
fn nothing_is_left_of_what_was_removed() {
    let mut index = PackedIndex::new(LshParams::optimal(0.9, PERMUTATIONS).unwrap()).unwrap();
    let signature = Signature::of(&[1, 2, 3]);
    for id in 0..100 {
        index.insert(id, &signature);
        index.insert(id, &signature);
    }
    for id in (0..100).rev().step_by(2).chain((0..100).step_by(2)) {
        assert!(index.remove(id));
        assert!(!index.remove(id));
        assert!(!index.candidates(&signature).contains(&id));
    }
    assert!(index.is_empty() && index.candidates(&signature).is_empty());
    assert!(!index.remove(7_000_000));
}

#[cfg(feature = "lsh-datasketch")]
mod datasketch {
    use huntsman_detect::lsh::DatasketchIndex;

    use super::*;

    #[test]
    fn the_datasketch_index_gives_the_candidates_of_a_scan() {
        for (seed, threshold) in (0x5eed_0120..).zip([0.9, 0.5, 0.98, 0.1]) {
            agrees_with_a_scan(&mut DatasketchIndex::new(threshold).unwrap(), seed);
        }
    }

    #[test]
    fn both_indexes_give_the_same_candidates() {
        let mut theirs = DatasketchIndex::new(0.9).unwrap();
        let mut ours = PackedIndex::new(LshParams::optimal(0.9, PERMUTATIONS).unwrap()).unwrap();
        assert_eq!(theirs.params(), ours.params());
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x5eed_0130);
        let base: Vec<u64> = (0..400).map(|_| rng.random()).collect();
        let mut candidates = 0;
        for id in 0..500 {
            // Similarities from 0.67 to 1, the range in which pairs become candidates.
            let mut set = base.clone();
            for _ in 0..rng.random_range(0..80) {
                let at = rng.random_range(0..set.len());
                set[at] = rng.random();
            }
            let signature = Signature::of(&set);
            let found = ours.candidates(&signature);
            assert_eq!(found, theirs.candidates(&signature));
            candidates += found.len();
            ours.insert(id, &signature);
            theirs.insert(id, &signature);
        }
        assert!(candidates > 500, "{candidates}");
    }

    fn crates_params(threshold: f64, permutations: usize, positives: f64, negatives: f64) -> LshParams {
        use datasketch_minhash_lsh::{LshParams as Theirs, Weights};
        let found = Theirs::find_optimal_params(threshold, permutations, &Weights(positives, negatives));
        LshParams { b: found.b, r: found.r }
    }

    #[test]
    fn bands_and_rows_are_the_crates() {
        let mut settings = 0;
        for permutations in [4, 16, 32, 64, 100, 128, 160, 200, 256] {
            for step in 1..=28 {
                let threshold = f64::from(step) / 28.0 - 0.01;
                let ours = LshParams::optimal(threshold, permutations).unwrap();
                let theirs = crates_params(threshold, permutations, 0.5, 0.5);
                assert_eq!(ours, theirs, "threshold {threshold}, {permutations} permutations");
                settings += 1;
            }
        }
        assert_eq!(settings, 252);
    }

    /// The crate integrates with an allowed error of 0.001 and chooses wrongly if two settings are closer than that, or equal. Python's
    /// datasketch gives the same as this crate: these settings are in its table too.
    #[test]
    fn where_the_crate_takes_other_bands_than_datasketch_we_do_not() {
        for (threshold, permutations, positives, negatives, theirs) in [
            (0.475, 128, 0.3, 0.7, (28, 4)),
            (0.075, 256, 0.7, 0.3, (126, 2)),
            (0.5, 2, 0.5, 0.5, (1, 2)),
            (0.5, 3, 0.5, 0.5, (1, 2)),
        ] {
            let found = crates_params(threshold, permutations, positives, negatives);
            assert_eq!((found.b, found.r), theirs);
            let ours = LshParams::weighted(threshold, permutations, positives, negatives).unwrap();
            assert_ne!(ours, found);
            let line =
                format!("{threshold}\t{permutations}\t{positives}\t{negatives}\t{}\t{}\n", ours.b, ours.r);
            assert!(include_str!("../data/lsh-params-datasketch-1.6.5.tsv").contains(&line), "{line}");
        }
    }
}
