//! Tests of the window index against comparing all texts, of its memory, and with hostile input.

use std::collections::HashSet;

use huntsman_detect::copyvio::{Candidate, Degree, Document, WindowIndex};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A text of random words from a vocabulary, with pieces of other texts.
fn text(
    rng: &mut Xoshiro256PlusPlus,
    vocabulary: usize,
    words: usize,
    others: &[Vec<String>],
) -> Vec<String> {
    let mut text = Vec::with_capacity(words);
    while text.len() < words {
        let piece = rng.random_range(1..=30);
        if !others.is_empty() && rng.random_bool(0.5) {
            let other = &others[rng.random_range(0..others.len())];
            let start = rng.random_range(0..=other.len());
            text.extend(other[start..].iter().take(piece).cloned());
        } else {
            text.extend((0..piece).map(|_| format!("w{}", rng.random_range(0..vocabulary))));
        }
        text.push(format!("w{}", rng.random_range(0..vocabulary)));
    }
    text.truncate(words);
    text
}

fn runs(text: &[String], length: usize) -> HashSet<&[String]> {
    text.windows(length).collect()
}

#[test]
fn every_text_with_a_common_run_of_w_plus_k_minus_one_words_is_found_and_none_without_a_window() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = random(seed);
    let (mut long, mut short) = (0, 0);
    for round in 0..150 {
        let degree = rng.random_range(1..=8);
        let winnow = [1, 2, 5, 12, 30][rng.random_range(0..5)];
        let vocabulary = [1, 2, 5, 50, 5_000][rng.random_range(0..5)];
        let mut texts: Vec<Vec<String>> = Vec::new();
        for _ in 0..20 {
            let words = [0, 1, degree, winnow + degree - 2, winnow + degree - 1, 40, 200];
            let words = words[rng.random_range(0..words.len())];
            let text = text(&mut rng, vocabulary, words, &texts);
            texts.push(text);
        }
        let spelt: Vec<String> = texts.iter().map(|text| text.join(" ")).collect();
        let mut index = WindowIndex::new(Degree::new(degree).unwrap(), winnow);
        for (id, text) in spelt.iter().enumerate() {
            index.add(id as u32, &Document::new(text));
        }
        if round % 2 == 0 {
            index.compact();
        }
        assert_eq!((index.len(), index.run()), (20, winnow + degree - 1));
        for (query, words) in texts.iter().enumerate() {
            let found = index.candidates(&Document::new(&spelt[query]), 1);
            assert_eq!(found.common, 0);
            for (id, other) in texts.iter().enumerate() {
                let at = format!(
                    "seed {seed}, round {round}, degree {degree}, winnow {winnow}\n{}\n{}",
                    spelt[query], spelt[id]
                );
                let shared: HashSet<_> =
                    runs(words, degree).intersection(&runs(other, degree)).copied().collect();
                let has =
                    |length: usize| runs(words, length).intersection(&runs(other, length)).next().is_some();
                let candidate = found.texts.iter().find(|candidate| candidate.id as usize == id);
                if has(index.run()) {
                    long += 1;
                    assert!(candidate.is_some(), "a run of {} words: {at}", index.run());
                }
                if other.len() < index.run() && !shared.is_empty() {
                    short += 1;
                    assert_eq!(
                        candidate.map(|candidate| candidate.shared),
                        Some(shared.len()),
                        "all windows of a short text: {at}"
                    );
                }
                let counted = candidate.map_or(0, |candidate| candidate.shared);
                assert!(counted <= shared.len(), "{counted} of {}: {at}", shared.len());
            }
        }
    }
    assert!(long > 1_000 && short > 1_000, "{long} long runs, {short} short texts");
}

#[test]
fn of_two_texts_that_share_a_run_one_finds_the_other_through_all_merges() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = random(seed);
    let mut index = WindowIndex::default();
    let texts: Vec<String> = (0..1_500).map(|_| text(&mut rng, 5_000, 300, &[]).join(" ")).collect();
    for (id, text) in texts.iter().enumerate() {
        index.add(id as u32, &Document::new(text));
    }
    assert!(index.windows() > 65_536, "{} make a part", index.windows());
    let before: Vec<Vec<Candidate>> =
        texts.iter().step_by(10).map(|text| index.candidates(&Document::new(text), 1).texts).collect();
    index.compact();
    for (at, (text, before)) in texts.iter().step_by(10).zip(before).enumerate() {
        let words: Vec<&str> = text.split(' ').collect();
        let start = rng.random_range(0..words.len() - index.run());
        let quoted = words[start..start + index.run()].join(" ");
        let around = format!("so {quoted} it says");
        let found = index.candidates(&Document::new(&around), 1);
        assert!(found.texts.iter().any(|candidate| candidate.id == 10 * at as u32), "seed {seed}: {quoted}");
        assert_eq!(index.candidates(&Document::new(text), 1).texts, before, "seed {seed}, text {at}");
        assert_eq!(before[0].id, 10 * at as u32, "it finds itself first");
    }
    let windows = index.windows();
    index.add(3, &Document::new(&texts[3]));
    index.compact();
    assert_eq!(index.windows(), windows, "it is there already");
}

#[test]
fn a_text_of_1000_words_takes_less_than_1500_bytes() {
    let mut rng = random(1);
    let mut index = WindowIndex::default();
    for id in 0..1_000 {
        index.add(id, &Document::new(&text(&mut rng, 5_000, 1_000, &[]).join(" ")));
    }
    // Of 13 windows, 2 are kept.
    let kept = index.windows() as f64 / 1_000.0;
    assert!((145.0..165.0).contains(&kept), "{kept}");
    let most = index.bytes();
    index.compact();
    let (bytes, windows) = (index.bytes(), index.windows());
    println!("{most} bytes as it came, {bytes} compact, {windows} windows");
    assert!(bytes < 1_000 * 1_500 && bytes < 10 * windows);
    assert!(most < 1_000 * 1_500 + (2 << 20), "{most}");
}

#[test]
fn one_word_a_million_times_is_one_window() {
    let text = "again ".repeat(1_000_000);
    let document = Document::new(&text);
    let mut index = WindowIndex::default();
    (0..3).for_each(|id| index.add(id, &document));
    assert_eq!(index.windows(), 3);
    assert!(index.bytes() < 1_000);
    let found = index.candidates(&document, 1);
    assert_eq!(found.texts, [0, 1, 2].map(|id| Candidate { id, shared: 1 }));
}

#[test]
fn windows_of_many_texts_are_left_out_and_counted() {
    let menu: String = (0..40).map(|n| format!("menu{n} ")).collect();
    let mut index = WindowIndex::default();
    let own = |id: u32| -> String { (0..60).map(|n| format!("w{id}x{n} ")).collect() };
    for id in 0..100 {
        index.add(id, &Document::new(&format!("{menu}{}", own(id))));
    }
    index.add(100, &Document::new(&own(7)));
    let query = format!("{menu}{}", own(7));
    let query = Document::new(&query);
    let all = index.candidates(&query, 1);
    assert_eq!((all.texts.len(), all.common), (101, 0));
    // The windows at the end of the menu are kept in some texts only, because the words after it differ.
    let few = index.candidates_within(&query, 4, 50);
    assert_eq!(few.texts.iter().map(|text| text.id).collect::<Vec<_>>(), [7, 100]);
    assert!(few.common >= 3, "{}", few.common);
    let none = index.candidates_within(&query, 1, 0);
    assert!(none.texts.is_empty() && none.common > few.common);
    index.compact();
    assert_eq!(index.candidates_within(&query, 4, 50), few);
    assert_eq!(index.candidates(&query, 1), all);
}

#[test]
fn nothing_is_shared_but_words() {
    let mut index = WindowIndex::new(Degree::default(), 4);
    for (id, text) in ["", "one two", "one two three four", "!!!"].iter().enumerate() {
        index.add(id as u32, &Document::new(text));
    }
    assert_eq!((index.len(), index.windows()), (4, 0), "none has five words");
    index.add(4, &Document::new("one two three four five"));
    for text in ["", "one two", "one two three four", "two three four five"] {
        assert!(index.candidates(&Document::new(text), 0).texts.is_empty(), "{text}");
    }
    let found = index.candidates(&Document::new("zero One, two; three four-five six"), 0);
    assert_eq!(found.texts, [Candidate { id: 4, shared: 1 }]);
}

#[test]
fn boilerplate_makes_no_texts_meet_and_parts_what_stands_around_it() {
    let words = |from: usize, to: usize| (from..to).map(|n| format!("w{n} ")).collect::<String>();
    let (before, menu, behind) = (words(0, 30), words(100, 140), words(200, 230));
    let page = format!("{before}{menu}{behind}");
    let boilerplate = before.len()..before.len() + menu.len();
    let document =
        Document::new(&page).boilerplate([boilerplate.clone(), before.len() + 9..before.len() + 12]);
    let mut index = WindowIndex::default();
    index.add(1, &document);
    for (text, count) in
        [(&menu, 0), (&before, 1), (&behind, 1), (&format!("{}{}", words(26, 30), words(200, 204)), 0)]
    {
        assert_eq!(index.candidates(&Document::new(text), 1).texts.len(), count, "{text}");
    }
    let mut whole = WindowIndex::default();
    whole.add(1, &Document::new(&page));
    assert_eq!(whole.candidates(&Document::new(&menu), 1).texts.len(), 1);
    let menu = Document::new(&menu).boilerplate(std::iter::once(0..menu.len()));
    assert!(whole.candidates(&menu, 1).texts.is_empty());
}

#[test]
fn any_text_can_be_added_and_asked_for() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = random(seed);
    let letters: Vec<char> =
        "aZ9 \n-'\u{200B}\u{AD}éе\u{301}磨坊あโรงक्ष\u{202E}\u{1F600}½.\u{0}".chars().collect();
    let mut index = WindowIndex::new(Degree::new(2).unwrap(), 3);
    for round in 0..300 {
        let length = rng.random_range(0..200);
        let text: String = (0..length).map(|_| letters[rng.random_range(0..letters.len())]).collect();
        let end = rng.random_range(0..=text.len());
        let odd = Document::new(&text).boilerplate([end / 2..end, 0..end / 3, usize::MAX - 1..usize::MAX]);
        index.add(round, &odd);
        let has_windows =
            index.candidates_within(&odd, 1, usize::MAX).texts.iter().any(|text| text.id == round);
        let others = index.candidates(&Document::new(&text), 1);
        assert!(!has_windows || others.texts.iter().any(|text| text.id == round), "seed {seed}: {text:?}");
    }
    assert!(WindowIndex::new(Degree::default(), 0).run() == 5 && WindowIndex::default().run() == 16);
}
