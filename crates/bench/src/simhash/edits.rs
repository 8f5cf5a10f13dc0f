//! Changes that are made to a text before it is published again, of several kinds and strengths: they give
//! near-duplicates of known origin.

use std::collections::BTreeSet;

use rand::RngExt;
use rand::seq::{SliceRandom, index};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::stories::{Story, choice, text};

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The text is unchanged.
    Copy,
    /// The white space is changed.
    Layout,
    /// The text is in capital letters, without punctuation.
    CasePunct,
    /// A number of words is replaced by other words of the language.
    Words,
    /// A share of the words has a typing mistake: a letter added, left out, replaced, or swapped.
    Typo,
    /// A share of the words is replaced by other words of the language.
    Replace,
    /// A share of the words is left out.
    Delete,
    /// A paragraph of another story is inserted; its length is a share of the text's.
    Add,
    /// A share of the text is missing at the end.
    Truncate,
    /// A number of words of navigation is added, half of them before the text and half of them after it.
    Chrome,
    /// The paragraphs are in another order.
    Reorder,
    /// A name is replaced by another one everywhere.
    Rename,
}

/// Material that edits take from elsewhere.
#[derive(Debug)]
pub(super) struct Around<'a> {
    /// Other stories of the same language, at least one.
    pub(super) others: &'a [&'a Story],
    /// Words of navigation, at least 60.
    pub(super) chrome: &'a [String],
}

const SHARES: &[f64] = &[0.002, 0.005, 0.01, 0.02, 0.05, 0.1];
const PARTS: &[f64] = &[0.02, 0.05, 0.1, 0.25];

impl Edit {
    pub(super) const ALL: [Self; 12] = [
        Self::Copy,
        Self::Layout,
        Self::CasePunct,
        Self::Words,
        Self::Typo,
        Self::Replace,
        Self::Delete,
        Self::Add,
        Self::Truncate,
        Self::Chrome,
        Self::Reorder,
        Self::Rename,
    ];

    /// The name of the kind in files of pairs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Layout => "layout",
            Self::CasePunct => "casepunct",
            Self::Words => "kwords",
            Self::Typo => "typo",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Add => "addpara",
            Self::Truncate => "truncate",
            Self::Chrome => "chrome",
            Self::Reorder => "reorder",
            Self::Rename => "rename",
        }
    }

    /// The strengths of the edit, the weakest first.
    pub(super) fn levels(self) -> &'static [f64] {
        match self {
            Self::Copy | Self::Layout | Self::CasePunct => &[0.0],
            Self::Reorder | Self::Rename => &[1.0],
            Self::Words => &[1.0, 2.0, 5.0],
            Self::Typo | Self::Replace | Self::Delete => SHARES,
            Self::Add | Self::Truncate => PARTS,
            Self::Chrome => &[20.0, 60.0],
        }
    }

    /// The changed text.
    pub(super) fn of(
        self,
        level: f64,
        story: &Story,
        around: &Around<'_>,
        random: &mut Xoshiro256PlusPlus,
    ) -> String {
        let paragraphs = &story.paragraphs;
        let count = story.words().count();
        match self {
            Self::Copy => story.text(),
            Self::Layout => {
                let lines: Vec<String> = paragraphs.iter().map(|words| words.join("  ")).collect();
                lines.join(" \n")
            }
            Self::CasePunct => {
                let is_mark =
                    |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '।' | '"' | '\'' | '(' | ')');
                story.text().replace(is_mark, " ").to_uppercase()
            }
            Self::Words => {
                replaced(story, &some(count, level as usize, random), &mut |word| around.word(word, random))
            }
            Self::Replace => {
                let which = some(count, share(count, level), random);
                replaced(story, &which, &mut |word| around.word(word, random))
            }
            Self::Typo => {
                let letters: Vec<char> = paragraphs[0]
                    .iter()
                    .flat_map(|word| word.chars())
                    .filter(|c| c.is_alphabetic())
                    .collect();
                let letters: Vec<char> = letters.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
                let which = some(count, share(count, level), random);
                replaced(story, &which, &mut |word| typo(word, &letters, random))
            }
            Self::Delete => {
                let which = some(count, share(count, level), random);
                replaced(story, &which, &mut |_| String::new())
            }
            Self::Add => {
                let new = choice(around.others, random).words().take(share(count, level).max(3)).cloned();
                let (mut all, at) = (paragraphs.clone(), random.random_range(0..=paragraphs.len()));
                all.insert(at, new.collect());
                text(&all)
            }
            Self::Truncate => {
                let left = count.saturating_sub(share(count, level).max(3));
                story.words().take(left).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Self::Chrome => {
                let words = &around.chrome[..(level as usize).min(around.chrome.len())];
                let (before, behind) = words.split_at(words.len() / 2);
                let mut all = vec![before.to_vec()];
                all.extend(paragraphs.iter().cloned());
                all.push(behind.to_vec());
                text(&all)
            }
            Self::Reorder => {
                let mut all = paragraphs.clone();
                all.shuffle(random);
                text(&all)
            }
            Self::Rename => {
                let old = &story.names[0];
                let new = around.word(old, random);
                let renamed = |word: &String| if word == old { new.clone() } else { word.clone() };
                let all: Vec<Vec<String>> =
                    paragraphs.iter().map(|words| words.iter().map(renamed).collect()).collect();
                text(&all)
            }
        }
    }
}

impl Around<'_> {
    /// A random word of the other stories that differs from `but`, with the frequencies of those stories.
    fn word(&self, but: &str, random: &mut Xoshiro256PlusPlus) -> String {
        // In a language of one word, the last word is kept.
        let mut word = but;
        for _ in 0..100 {
            let paragraph: &Vec<String> = choice(&choice(self.others, random).paragraphs, random);
            word = choice(paragraph.as_slice(), random).as_str();
            if word != but {
                break;
            }
        }
        word.to_owned()
    }
}

/// A share of a number, at least 1.
fn share(count: usize, of_all: f64) -> usize {
    ((count as f64 * of_all).round() as usize).clamp(1, count)
}

/// The given number of different positions.
fn some(count: usize, many: usize, random: &mut Xoshiro256PlusPlus) -> BTreeSet<usize> {
    index::sample(random, count, many.min(count)).into_iter().collect()
}

/// The text with the words at some positions replaced; an empty replacement removes the word.
fn replaced(story: &Story, which: &BTreeSet<usize>, new: &mut dyn FnMut(&str) -> String) -> String {
    let mut at = 0;
    let mut word = |word: &String| {
        at += 1;
        if which.contains(&(at - 1)) { new(word) } else { word.clone() }
    };
    let words = |words: &Vec<String>| words.iter().map(&mut word).filter(|word| !word.is_empty()).collect();
    text(&story.paragraphs.iter().map(words).collect::<Vec<_>>())
}

/// A word with one mistake in it.
fn typo(word: &str, letters: &[char], random: &mut Xoshiro256PlusPlus) -> String {
    let old: Vec<char> = word.chars().collect();
    // If the change has no effect, as when two equal letters are swapped, another one is tried.
    for _ in 0..100 {
        let mut new = old.clone();
        let letter = if letters.is_empty() { 'a' } else { *choice(letters, random) };
        if new.len() < 2 {
            new.push(letter);
        } else {
            let at = random.random_range(0..new.len() - 1);
            match random.random_range(0..4) {
                0 => drop(new.remove(at)),
                1 => new.insert(at, letter),
                2 => new.swap(at, at + 1),
                _ => new[at] = letter,
            }
        }
        if new != old {
            return new.into_iter().collect();
        }
    }
    format!("{word}a")
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::stories::Writer;

    /// Calls `check` for each language with a story, its text, and the material for edits.
    fn each(check: impl Fn(&str, &Story, &[String], &Around<'_>, &mut Xoshiro256PlusPlus)) {
        for seed in 0..3 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            for writer in Writer::all().unwrap() {
                let stories: Vec<Story> = (0..3).map(|_| writer.story(&mut random, 400)).collect();
                let others: Vec<&Story> = stories[1..].iter().collect();
                let chrome: Vec<String> = stories[1].words().take(60).cloned().collect();
                let words: Vec<String> = stories[0].words().cloned().collect();
                let around = Around { others: &others, chrome: &chrome };
                let at = format!("{} of seed {seed}", writer.lang);
                check(&at, &stories[0], &words, &around, &mut random);
            }
        }
    }

    fn split(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    /// Number of positions at which two texts of equal length have different words.
    fn changed(words: &[String], text: &str) -> usize {
        let new = split(text);
        assert_eq!(words.len(), new.len());
        words.iter().zip(new).filter(|(old, new)| *old != new).count()
    }

    #[test]
    fn so_many_words_are_replaced_as_the_level_says() {
        each(|at, story, words, around, random| {
            for level in Edit::Words.levels() {
                let new = Edit::Words.of(*level, story, around, random);
                assert_eq!(changed(words, &new), *level as usize, "{at}");
            }
            for (level, number) in [(0.002, 1), (0.005, 2), (0.01, 4), (0.02, 8), (0.05, 20), (0.1, 40)] {
                for edit in [Edit::Replace, Edit::Typo] {
                    assert_eq!(changed(words, &edit.of(level, story, around, random)), number, "{at}");
                }
                let new = Edit::Delete.of(level, story, around, random);
                let new = split(&new);
                assert_eq!(new.len(), words.len() - number, "{at}");
                let mut rest = words.iter();
                assert!(new.iter().all(|word| rest.any(|other| other == word)), "{at}: the order stays");
            }
        });
    }

    #[test]
    fn a_typo_changes_one_letter_or_two_that_are_neighbours() {
        each(|at, story, words, around, random| {
            let new = Edit::Typo.of(0.1, story, around, random);
            for (old, new) in words.iter().zip(split(&new)) {
                let (old_letters, new_letters) = (old.chars().count(), new.chars().count());
                assert!(old_letters.abs_diff(new_letters) <= 1, "{at}: {old} {new}");
                let front = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
                let back =
                    old.chars().rev().zip(new.chars().rev()).take_while(|(old, new)| old == new).count();
                assert!(old == new || front + back + 2 >= old_letters, "{at}: {old} {new}");
            }
        });
    }

    #[test]
    fn copies_and_other_layouts_have_the_same_words() {
        each(|at, story, words, around, random| {
            assert_eq!(Edit::Copy.of(0.0, story, around, random), story.text(), "{at}");
            let layout = Edit::Layout.of(0.0, story, around, random);
            assert_ne!(layout, story.text(), "{at}");
            assert_eq!(changed(words, &layout), 0, "{at}");
            let plain = Edit::CasePunct.of(0.0, story, around, random);
            assert!(!plain.contains(['.', ',', '।', '"']), "{at}");
            assert_eq!(plain, plain.to_uppercase(), "{at}");
        });
    }

    #[test]
    fn text_is_added_and_cut_off_by_its_share() {
        each(|at, story, words, around, random| {
            for (level, number) in [(0.02, 8), (0.05, 20), (0.1, 40), (0.25, 100)] {
                let new = Edit::Add.of(level, story, around, random);
                let new = split(&new);
                assert_eq!(new.len(), words.len() + number, "{at}");
                let front = words.iter().zip(&new).take_while(|(old, new)| old == *new).count();
                let back =
                    words.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == *new).count();
                assert!(front + back >= words.len(), "{at}: all of the story is there");
                let new = Edit::Truncate.of(level, story, around, random);
                assert_eq!(split(&new), words[..words.len() - number], "{at}");
            }
        });
    }

    #[test]
    fn navigation_stands_around_the_story() {
        each(|at, story, words, around, random| {
            for level in Edit::Chrome.levels() {
                let (new, half) = (Edit::Chrome.of(*level, story, around, random), *level as usize / 2);
                let new = split(&new);
                assert_eq!(new[..half], around.chrome[..half], "{at}");
                assert_eq!(new[half..new.len() - half], *words, "{at}");
                assert_eq!(new[new.len() - half..], around.chrome[half..2 * half], "{at}");
            }
        });
    }

    #[test]
    fn paragraphs_move_whole_and_names_change_everywhere() {
        each(|at, story, words, around, random| {
            let new = Edit::Reorder.of(1.0, story, around, random);
            let sorted = |text: &str| {
                let mut paragraphs: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
                paragraphs.sort();
                paragraphs
            };
            assert_eq!(sorted(&new), sorted(&story.text()), "{at}");
            let new = Edit::Rename.of(1.0, story, around, random);
            let times = words.iter().filter(|word| **word == story.names[0]).count();
            assert_eq!(changed(words, &new), times, "{at}");
        });
    }
}
