//! Stories in ten languages: those in the build, and any number of generated ones of any length with the same words.
//!
//! No person wrote the stories of the build: they are random walks over pairs of words of translated manuals, so
//! words, their frequencies and scripts are real. Generated stories are walks over these, made in the same way.

use std::collections::{BTreeMap, HashMap};

use huntsman_cli::exit::{Failure, Outcome};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The packed file: for each language a line with a tab and its code, then a line for each paragraph.
const PACKED: &[u8] = include_bytes!("stories.txt.zst");

/// A text as paragraphs of words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Story {
    pub(crate) paragraphs: Vec<Vec<String>>,
    /// Words that are repeated, like the names of people.
    pub(crate) names: Vec<String>,
}

impl Story {
    pub(crate) fn text(&self) -> String {
        text(&self.paragraphs)
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = &String> {
        self.paragraphs.iter().flatten()
    }
}

/// Joins words with blanks, and paragraphs with an empty line.
pub(crate) fn text(paragraphs: &[Vec<String>]) -> String {
    let paragraphs = paragraphs.iter().filter(|words| !words.is_empty());
    paragraphs.map(|words| words.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// Generates stories of one language.
#[derive(Debug)]
pub(crate) struct Writer {
    /// ISO 639-1.
    pub(crate) lang: String,
    words: Vec<String>,
    /// First words of paragraphs.
    starts: Vec<usize>,
    /// All words in the order of the texts.
    flat: Vec<usize>,
    /// For each word, the words that follow it in the texts; `None` stands for the end of a paragraph.
    next: Vec<Vec<Option<usize>>>,
    /// Rare words, from which names are chosen.
    rare: Vec<usize>,
}

impl Writer {
    /// The writers of all languages, in the order of their codes.
    pub(crate) fn all() -> Outcome<Vec<Self>> {
        let packed = zstd::decode_all(PACKED)?;
        let text = String::from_utf8(packed)
            .map_err(|_| Failure::crawl("the stories of this build are not UTF-8"))?;
        let mut languages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut lang = "";
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix('\t') {
                Some(name) => lang = name,
                None => languages.entry(lang).or_default().push(line),
            }
        }
        Ok(languages.into_iter().map(|(lang, paragraphs)| Self::of(lang, &paragraphs)).collect())
    }

    fn of(lang: &str, paragraphs: &[&str]) -> Self {
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut writer = Self {
            lang: lang.to_owned(),
            words: Vec::new(),
            starts: Vec::new(),
            flat: Vec::new(),
            next: Vec::new(),
            rare: Vec::new(),
        };
        let mut counts: Vec<usize> = Vec::new();
        for paragraph in paragraphs {
            let mut last: Option<usize> = None;
            for word in paragraph.split(' ') {
                let number = *numbers.entry(word).or_insert_with(|| {
                    writer.words.push(word.to_owned());
                    writer.next.push(Vec::new());
                    counts.push(0);
                    counts.len() - 1
                });
                counts[number] += 1;
                writer.flat.push(number);
                match last {
                    None => writer.starts.push(number),
                    Some(last) => writer.next[last].push(Some(number)),
                }
                last = Some(number);
            }
            if let Some(last) = last {
                writer.next[last].push(None);
            }
        }
        let is_name = |number: &usize| {
            counts[*number] <= 2 && (3..=14).contains(&writer.words[*number].chars().count())
        };
        writer.rare = (0..counts.len()).filter(is_name).collect();
        writer
    }

    /// A story of this many words: paragraphs of some 80 words, sentences of at most 40. Three of ten words do not
    /// follow the previous one anywhere in the texts, so that no sentence of a text survives for long; two of a
    /// hundred are names.
    pub(crate) fn story(&self, random: &mut Xoshiro256PlusPlus, words: usize) -> Story {
        let names: Vec<usize> = (0..3).map(|_| *choice(&self.rare, random)).collect();
        let (mut paragraphs, mut left) = (Vec::new(), words);
        while left > 0 {
            let length = random.random_range(40..=120);
            let mut paragraph: Vec<usize> = Vec::with_capacity(length + 40);
            while paragraph.len() < length {
                let (mut word, mut sentence) = (Some(*choice(&self.starts, random)), 0);
                while let Some(this) = word.filter(|_| sentence < 40) {
                    paragraph.push(this);
                    sentence += 1;
                    if random.random_bool(0.02) {
                        paragraph.push(*choice(&names, random));
                        sentence += 1;
                    }
                    word = match random.random_bool(0.3) {
                        true => Some(*choice(&self.flat, random)),
                        false => *choice(&self.next[this], random),
                    };
                }
            }
            paragraph.truncate(left);
            left -= paragraph.len();
            paragraphs.push(paragraph.into_iter().map(|word| self.words[word].clone()).collect());
        }
        Story { paragraphs, names: names.into_iter().map(|name| self.words[name].clone()).collect() }
    }
}

/// A random element of a list, all equally likely. The texts of the build leave no list empty.
pub(crate) fn choice<'a, T>(of: &'a [T], random: &mut Xoshiro256PlusPlus) -> &'a T {
    &of[random.random_range(0..of.len())]
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn stories_of_ten_languages_have_the_length_that_was_asked_for() {
        let writers = Writer::all().unwrap();
        let langs: Vec<&str> = writers.iter().map(|writer| writer.lang.as_str()).collect();
        assert_eq!(langs, ["bn", "en", "gu", "hi", "ml", "mr", "or", "pa", "ta", "te"]);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for writer in &writers {
            for words in [1, 100, 1000, 3000] {
                let story = writer.story(&mut random, words);
                assert_eq!(story.words().count(), words, "{}", writer.lang);
                assert_eq!(story.text().split_whitespace().count(), words, "{}", writer.lang);
                assert!(story.paragraphs.iter().all(|words| (1..=200).contains(&words.len())));
            }
        }
    }

    #[test]
    fn a_seed_gives_the_same_story_and_another_one_another() {
        let writer = &Writer::all().unwrap()[1];
        let story = |seed| writer.story(&mut Xoshiro256PlusPlus::seed_from_u64(seed), 200);
        assert_eq!(story(5), story(5));
        assert_ne!(story(5), story(6));
    }
}
