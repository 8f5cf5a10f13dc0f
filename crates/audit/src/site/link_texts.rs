//! The texts of the links that lead to each URL of the site.
//!
//! Memory holds four bytes for each URL and twelve for each text that is kept of it; the texts are on disk. A URL with many texts, such as a front
//! page, keeps those with the smallest hashes: these are the same ones in whatever order pages arrive, and their links are counted from the
//! first one on, because a text that is kept at the end was kept all the time.

use huntsman_crawler::Result;
use huntsman_disk::{Cursor, Entry, Fields, List, Numbered, Scratch, Sorter, put_bytes, put_number};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

/// Texts that are kept of a URL.
const MAX_TEXTS: usize = 5;
/// Ends the texts of a URL.
const NONE: u32 = u32::MAX;

/// A text that leads to a URL, and how many links have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LinkText {
    pub(crate) text: Box<str>,
    pub(crate) links: u32,
}

/// A text of a URL as it is counted in memory: by its hash.
#[derive(Clone, Copy, Debug)]
struct Counted {
    hash: u32,
    links: u32,
    /// The place of the next text of the same URL.
    next: u32,
}

/// How often each text leads to each URL.
#[derive(Debug, Default)]
struct Counts {
    /// For each URL the place of its first text.
    first: Vec<u32>,
    counted: Vec<Counted>,
}

impl Counts {
    fn of(number: u32) -> Self {
        Self { first: vec![NONE; number as usize], counted: Vec::new() }
    }

    fn places(&self, to: u32) -> impl Iterator<Item = u32> {
        let at = |place: u32| (place != NONE).then_some(place);
        let first = self.first.get(to as usize).copied().and_then(at);
        std::iter::successors(first, move |place| at(self.counted[*place as usize].next))
    }

    /// Counts a link. Returns whether its text is one that was not kept before.
    fn add(&mut self, to: u32, hash: u32) -> bool {
        let (mut number, mut largest) = (0, None);
        let mut next = self.first[to as usize];
        while next != NONE {
            let (place, counted) = (next, &mut self.counted[next as usize]);
            if counted.hash == hash {
                counted.links += 1;
                return false;
            }
            number += 1;
            if largest.is_none_or(|(hash, _)| hash < counted.hash) {
                largest = Some((counted.hash, place));
            }
            next = counted.next;
        }
        let made = |next| Counted { hash, links: 1, next };
        match largest {
            Some((largest, place)) if number == MAX_TEXTS => {
                let is_smaller = hash < largest;
                if is_smaller {
                    let next = self.counted[place as usize].next;
                    self.counted[place as usize] = made(next);
                }
                is_smaller
            }
            _ => {
                let Ok(place) = u32::try_from(self.counted.len()) else { return false };
                let first = &mut self.first[to as usize];
                self.counted.push(made(std::mem::replace(first, place)));
                true
            }
        }
    }

    /// The number of links with a text; `None` if it is not kept.
    fn links(&self, to: u32, hash: u32) -> Option<u32> {
        let mut counted = self.places(to).map(|place| self.counted[place as usize]);
        counted.find(|counted| counted.hash == hash).map(|counted| counted.links)
    }
}

/// Collects the texts of links.
#[derive(Debug)]
pub(super) struct LinkTextsWriter {
    counts: Counts,
    texts: Sorter<StoredText>,
}

impl LinkTextsWriter {
    /// For so many URLs. `limit` is the number of bytes that are sorted at once.
    pub(super) fn new(scratch: &Scratch, limit: usize, number: u32) -> Self {
        Self { counts: Counts::of(number), texts: Sorter::new(scratch, limit) }
    }

    /// Adds a link with its text.
    pub(super) fn add(&mut self, to: u32, text: &str) -> Result<()> {
        // The upper half of a hash of 64 bits.
        let hash = (xxh3_64(text.as_bytes()) >> 32) as u32;
        if self.counts.add(to, hash) {
            self.texts.push(StoredText { to, hash, text: text.into() })?;
        }
        Ok(())
    }

    pub(super) fn finish(self, scratch: &Scratch) -> Result<LinkTexts> {
        Ok(LinkTexts { counts: self.counts, texts: List::of(self.texts.finish()?, scratch)? })
    }
}

/// The texts of links, by the URLs to which they lead.
#[derive(Debug)]
pub(super) struct LinkTexts {
    counts: Counts,
    texts: List<StoredText>,
}

impl LinkTexts {
    pub(super) fn reader(&self) -> LinkTextsReader<'_> {
        LinkTextsReader { texts: self, cursor: self.texts.cursor(), ahead: None }
    }
}

/// Reads the texts of one URL after the other.
#[derive(Debug)]
pub(crate) struct LinkTextsReader<'a> {
    texts: &'a LinkTexts,
    cursor: Cursor<'a, StoredText>,
    /// A text that was read and belongs to a later URL.
    ahead: Option<StoredText>,
}

impl LinkTextsReader<'_> {
    /// The texts that lead to a URL, most links first. URLs must be asked for in order.
    pub(super) fn of(&mut self, number: u32) -> Result<Vec<LinkText>> {
        let mut found: Vec<LinkText> = Vec::new();
        loop {
            let text = match self.ahead.take() {
                Some(text) => text,
                None => match self.cursor.next()? {
                    Some(text) => text.clone(),
                    None => break,
                },
            };
            if text.to > number {
                self.ahead = Some(text);
                break;
            }
            // Others made room for texts with smaller hashes, or belong to a URL that was not asked for.
            let links = (text.to == number).then(|| self.texts.counts.links(number, text.hash));
            if let Some(links) = links.flatten() {
                found.push(LinkText { text: text.text, links });
            }
        }
        found.sort_by(|one, two| (two.links, &one.text).cmp(&(one.links, &two.text)));
        Ok(found)
    }
}

/// A text of a URL as it is written on disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StoredText {
    to: u32,
    hash: u32,
    text: Box<str>,
}

impl Entry for StoredText {
    fn heap_size(&self) -> usize {
        self.text.len() + 16
    }

    fn put(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        put_number(u64::from(self.to - before.map_or(0, |before| before.to)), out);
        out.extend_from_slice(&self.hash.to_le_bytes());
        put_bytes(self.text.as_bytes(), out);
    }

    fn read(before: Option<&Self>, from: &mut Fields<'_>) -> Option<Self> {
        let to = before.map_or(0, |before| before.to).checked_add(from.number_u32()?)?;
        let hash = u32::from_le_bytes(from.take(4)?.try_into().ok()?);
        Some(Self { to, hash, text: from.text()?.into() })
    }
}

impl Numbered for StoredText {
    fn number(&self) -> u32 {
        self.to
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::StdRng;
    use rand::seq::SliceRandom as _;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    fn texts(links: &[(u32, String)]) -> Vec<Vec<LinkText>> {
        let scratch = Scratch::temporary();
        let mut writer = LinkTextsWriter::new(&scratch, 1_000, 40);
        links.iter().for_each(|(to, text)| writer.add(*to, text).unwrap());
        let texts = writer.finish(&scratch).unwrap();
        let mut reader = texts.reader();
        (0..40).step_by(2).map(|number| reader.of(number).unwrap()).collect()
    }

    #[test]
    fn texts_are_counted_exactly_in_whatever_order_links_come() {
        let seed = rand::random::<u64>();
        let mut random = StdRng::seed_from_u64(seed);
        let mut links: Vec<(u32, String)> = (0..3_000)
            .map(|_| {
                let to = random.random_range(0..40);
                (to, format!("text {}", random.random_range(0..=to)))
            })
            .collect();
        let found = texts(&links);
        for (of, to) in found.iter().zip((0..40).step_by(2)) {
            let mut expected: BTreeMap<&str, u32> = BTreeMap::new();
            links
                .iter()
                .filter(|(number, _)| *number == to)
                .for_each(|(_, text)| *expected.entry(text).or_default() += 1);
            assert_eq!(of.len(), expected.len().min(MAX_TEXTS), "seed {seed}");
            for LinkText { text, links } in of {
                assert_eq!(expected[&**text], *links, "{text} to {to}, seed {seed}");
            }
            assert!(of.is_sorted_by_key(|text| std::cmp::Reverse(text.links)), "{of:?}");
        }
        links.shuffle(&mut random);
        assert_eq!(texts(&links), found, "seed {seed}");
    }
}
