//! Pairs of an article and a source for which it is known whether one was copied from the other.

use std::sync::Arc;

use huntsman::detect::copyvio::Text;
use huntsman::sweep::PdfText;
use huntsman_cli::exit::{Failure, Outcome};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::pdf::two_columns;
use super::texts::TRIPLES;
use crate::stories::{Story, Writer};

/// A writer of English texts.
pub(super) fn english() -> Outcome<Writer> {
    let writer = Writer::all()?.into_iter().find(|writer| writer.lang == "en");
    writer.ok_or_else(|| Failure::crawl("the stories of this build have no English"))
}

/// An article, and the text that it may have been copied from.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) article: Text,
    pub(super) sources: Vec<Text>,
}

/// Pairs of one kind.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: String,
    /// Whether the pairs should be flagged.
    pub(super) is_copy: bool,
    pub(super) pairs: Vec<Pair>,
}

/// Generates texts.
struct Author<'a> {
    writer: &'a Writer,
    random: &'a mut Xoshiro256PlusPlus,
    pdf: Option<Arc<dyn PdfText>>,
}

/// A case that neither number can decide.
const NOTICE: &str = "a notice of 120 words, as of a licence, under two texts of 1,000";

type Make = fn(&mut Author<'_>) -> Option<(String, String)>;

/// Cases with plain texts: name, whether it is a copy, and a function that makes an article and its source.
const PLAIN: [(&str, bool, Make); 15] = [
    ("the same text", true, |author| author.changed(|words, _| words.join(" "))),
    ("every 8th word replaced", true, |author| author.changed(|words, random| every(8, words, random))),
    ("every 6th word replaced", true, |author| author.changed(|words, random| every(6, words, random))),
    ("every 5th word replaced", true, |author| author.changed(|words, random| every(5, words, random))),
    ("every 4th word replaced", true, |author| author.changed(|words, random| every(4, words, random))),
    ("sentences of 5 to 30 words in another order", true, |author| author.changed(shuffled)),
    ("NFD against NFC (every vowel has an accent)", true, |author| {
        let text = author.text(1_000);
        Some((accented(&text, "\u{301}"), accented(&text, "")))
    }),
    ("look-alikes of Cyrillic in every 3rd word", true, |author| {
        author.changed(|words, _| {
            each_third(words, |word| word.replace('a', "а").replace('e', "е").replace('o', "о"))
        })
    }),
    ("zero-width spaces in every 3rd word", true, |author| {
        author.changed(|words, _| {
            each_third(words, |word| word.chars().flat_map(|c| [c, '\u{200B}']).collect())
        })
    }),
    ("a quotation of 110 words with its source in 3,200", false, |author| author.quoting(true)),
    ("the same without quotation marks and source", true, |author| author.quoting(false)),
    ("25 words in a row of 1,000", true, |author| {
        let (article, source) = (author.text(1_000), author.text(1_000));
        let (article, source) = (split(&article), split(&source));
        Some(([&article[..600], &source[400..425], &article[600..]].concat().join(" "), source.join(" ")))
    }),
    ("a PDF of two columns", true, |author| author.in_columns()),
    (NOTICE, false, |author| {
        let notice = author.text(120);
        let mut text = || format!("{}\n\n{notice}", author.text(1_000));
        Some((text(), text()))
    }),
    ("unrelated, 1,000 words", false, |author| Some((author.text(1_000), author.text(1_000)))),
];

impl Author<'_> {
    fn text(&mut self, words: usize) -> String {
        self.writer.story(self.random, words).text()
    }

    /// A text of 1,000 words, and a changed version of it.
    fn changed(
        &mut self,
        change: impl Fn(&[&str], &mut (Story, &mut Xoshiro256PlusPlus)) -> String,
    ) -> Option<(String, String)> {
        let source = self.text(1_000);
        let other = self.writer.story(self.random, 1_000);
        let article = change(&split(&source), &mut (other, self.random));
        Some((article, source))
    }

    fn quoting(&mut self, is_cited: bool) -> Option<(String, String)> {
        // Random walks leave quotation marks without their other half.
        let marks = ['"', '\u{201C}', '\u{201D}'];
        let (article, source) = (self.text(3_200).replace(marks, ""), self.text(1_000).replace(marks, ""));
        let (before, behind) = article.split_at(article.find("\n\n").unwrap_or(0));
        let quotation = split(&source)[300..410].join(" ");
        let quotation = match is_cited {
            true => format!("As Harding wrote: \u{201C}{quotation}\u{201D} [12]"),
            false => quotation,
        };
        Some((format!("{before}\n\n{quotation}{behind}"), source))
    }

    fn in_columns(&mut self) -> Option<(String, String)> {
        let text = self.text(1_200);
        // Words that the file can represent.
        let words: Vec<&str> = split(&text).into_iter().filter(|word| word.is_ascii()).collect();
        let source = self.pdf.as_ref()?.text(&two_columns(&words)).unwrap_or_default();
        Some((words.join(" "), source))
    }

    /// Two unrelated pages with the same menu.
    fn with_menu(&mut self, element: &str) -> (Text, Text) {
        let menu = split(&self.text(120))
            .chunks(3)
            .map(|entry| format!("<li><a href=/>{}</a>", entry.join(" ")))
            .collect::<String>();
        let mut page = || {
            let text = self.text(1_000).replace("\n\n", "<p>");
            Text::html(
                format!("<body><{element}><ul>{menu}</ul></{element}><main><p>{text}</main>").as_bytes(),
                Some("utf-8"),
            )
        };
        (page(), page())
    }

    fn of_four_sources(&mut self) -> Pair {
        let sources: Vec<String> = (0..4).map(|_| self.text(1_000)).collect();
        let parts =
            sources.iter().enumerate().map(|(at, source)| split(source)[200 * at..200 * at + 250].join(" "));
        Pair {
            article: Text::new(parts.collect::<Vec<_>>().join("\n\n")),
            sources: sources.into_iter().map(Text::new).collect(),
        }
    }
}

/// All cases. A generated case has this number of pairs, a hand-written one has a single pair.
pub(super) fn all(
    random: &mut Xoshiro256PlusPlus,
    pairs: usize,
    pdf: Option<Arc<dyn PdfText>>,
) -> Outcome<Vec<Case>> {
    let mut author = Author { writer: &english()?, random, pdf };
    let mut cases = Vec::new();
    let pair = |article: Text, source: Text| Pair { article, sources: vec![source] };
    for (name, is_copy, make) in PLAIN {
        let made = (0..pairs).map_while(|_| make(&mut author));
        let pairs: Vec<Pair> =
            made.map(|(article, source)| pair(Text::new(article), Text::new(source))).collect();
        if !pairs.is_empty() {
            cases.push(Case { name: name.to_owned(), is_copy, pairs });
        }
    }
    for (name, element) in [
        ("a menu of 120 words (nav) on two pages of 1,000", "nav"),
        ("the same menu of links in no such element (div)", "div"),
    ] {
        let made =
            (0..pairs).map(|_| author.with_menu(element)).map(|(article, source)| pair(article, source));
        cases.push(Case { name: name.to_owned(), is_copy: false, pairs: made.collect() });
    }
    cases.push(Case {
        name: "250 words of each of four sources".to_owned(),
        is_copy: true,
        pairs: (0..pairs).map(|_| author.of_four_sources()).collect(),
    });
    for triple in TRIPLES {
        let of = |name: &str, is_copy, article: &str| Case {
            name: format!("{}: {name}", triple.language),
            is_copy,
            pairs: vec![pair(Text::new(article), Text::new(triple.text))],
        };
        cases.push(of("a light paraphrase", true, triple.paraphrase));
        cases.push(of("another text on the subject", false, triple.other));
    }
    Ok(cases)
}

fn split(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Replaces every n-th word by a word of another story.
fn every(n: usize, words: &[&str], (other, random): &mut (Story, &mut Xoshiro256PlusPlus)) -> String {
    let others: Vec<&String> = other.words().collect();
    let letters =
        |word: &str| -> String { word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect() };
    let mut another = |word: &str| {
        let from = random.random_range(0..others.len());
        let mut found = others.iter().cycle().skip(from).take(others.len());
        found.find(|other| letters(other) != letters(word)).map_or_else(String::new, |other| (*other).clone())
    };
    let word = |(at, word): (usize, &&str)| if at % n == n - 1 { another(word) } else { (*word).to_owned() };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

fn shuffled(words: &[&str], (_, random): &mut (Story, &mut Xoshiro256PlusPlus)) -> String {
    let (mut sentences, mut rest) = (Vec::new(), words);
    while !rest.is_empty() {
        let (sentence, behind) = rest.split_at(random.random_range(5..=30).min(rest.len()));
        sentences.push(sentence.join(" "));
        rest = behind;
    }
    sentences.shuffle(*random);
    sentences.join(" ")
}

fn each_third(words: &[&str], change: impl Fn(&str) -> String) -> String {
    let word = |(at, word): (usize, &&str)| if at % 3 == 0 { change(word) } else { (*word).to_owned() };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// Adds an acute accent to every vowel, as one character or with a combining mark.
fn accented(text: &str, mark: &str) -> String {
    let is_whole = mark.is_empty();
    let mut out = String::new();
    for c in text.chars() {
        let whole = match c {
            'a' => 'á',
            'e' => 'é',
            'i' => 'í',
            'o' => 'ó',
            'u' => 'ú',
            _ => c,
        };
        out.push(if is_whole { whole } else { c });
        if whole != c {
            out.push_str(mark);
        }
    }
    out
}
