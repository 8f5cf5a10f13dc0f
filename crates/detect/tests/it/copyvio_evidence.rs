//! Tests of passages, excuses and verdicts on texts that were written for them.

use huntsman_detect::copyvio::{Article, Boilerplate, Document, Evidence, Verdict};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const STORY: &str = "The ferry at the lower bend was run by one family for four generations. They kept a log of every crossing, \
    with the weather, the height of the water and the name of whoever paid. When the bridge was opened the last of them \
    put the log into a tin box and buried it under the landing stage, where two boys found it half a century later.";

fn compare(article: &str, source: &str) -> Evidence {
    Article::new(Document::new(article)).compare(&Document::new(source))
}

/// Meaningless words, all different.
fn noise(from: usize, words: usize) -> String {
    (from..from + words).map(|n| format!("w{n} ")).collect()
}

#[test]
fn spans_are_places_in_both_original_texts() {
    let article = format!("Früher — so heißt’s — war’s so: {STORY} Ende ½.");
    let source = format!("古い話. {STORY}");
    let evidence = compare(&article, &source);
    assert_eq!(evidence.passages.len(), 1);
    let passage = &evidence.passages[0];
    for (text, span) in [(&article, &passage.article), (&source, &passage.source)] {
        let bytes = &text[span.bytes.clone()];
        assert_eq!(bytes, STORY.trim_end_matches('.'));
        let chars: String = text.chars().skip(span.chars.start).take(span.chars.len()).collect();
        assert_eq!(chars, bytes);
    }
    assert_eq!(evidence.matched, passage.words);
    assert_eq!(evidence.verdict, Verdict::Suspected);
}

#[test]
fn every_fifth_word_changed_is_still_one_passage() {
    let words: Vec<&str> = STORY.split_whitespace().collect();
    let changed: Vec<String> = words
        .iter()
        .enumerate()
        .map(|(at, word)| if at % 5 == 2 { format!("x{at}") } else { (*word).to_owned() })
        .collect();
    let evidence = compare(&changed.join(" "), STORY);
    assert_eq!(evidence.passages.len(), 1);
    assert!(evidence.coverage > 0.75, "{}", evidence.coverage);
    assert_eq!(evidence.passages[0].longest, 4.0);
    assert_eq!(evidence.verdict, Verdict::Suspected);
}

#[test]
fn words_put_in_and_left_out_break_no_passage() {
    let words: Vec<&str> = STORY.split_whitespace().collect();
    let longer: Vec<String> =
        words.chunks(6).map(|chunk| format!("{} extra words here", chunk.join(" "))).collect();
    let shorter: Vec<String> = words.chunks(8).map(|chunk| chunk[..6.min(chunk.len())].join(" ")).collect();
    for text in [longer.join(" "), shorter.join(" ")] {
        let evidence = compare(&text, STORY);
        assert_eq!(evidence.passages.len(), 1, "{text}");
    }
}

#[test]
fn moved_sentences_are_passages_of_their_own() {
    let mut sentences: Vec<&str> = STORY.split(". ").collect();
    sentences.reverse();
    let article = sentences.join(". ");
    let evidence = compare(&article, STORY);
    assert_eq!(evidence.passages.len(), 3);
    assert!(evidence.coverage > 0.95);
    assert!(evidence.passages.is_sorted_by_key(|passage| passage.article.bytes.start));
    assert!(!evidence.passages.is_sorted_by_key(|passage| passage.source.bytes.start));
}

#[test]
fn no_word_of_the_article_counts_twice() {
    let article = format!("{STORY} {}", noise(0, 50));
    let source = format!("{STORY} {STORY} {} {STORY}", noise(100, 20));
    let evidence = compare(&article, &source);
    assert_eq!(evidence.matched, Document::new(STORY).words());
    assert!(evidence.passages.windows(2).all(|two| two[0].article.bytes.end <= two[1].article.bytes.start));
}

#[test]
fn common_turns_of_phrase_are_no_evidence() {
    let article =
        format!("{} at the end of the {} one of the most {}", noise(0, 60), noise(60, 60), noise(120, 60));
    let source =
        format!("{} one of the most {} at the end of the {}", noise(200, 60), noise(260, 60), noise(320, 60));
    let evidence = compare(&article, &source);
    assert_eq!((evidence.verdict, evidence.score.value() < 0.1), (Verdict::None, true));
}

#[test]
fn a_quotation_that_names_its_source_excuses() {
    let (quoted, cited) = (format!("\u{201C}{STORY}\u{201D}"), "[12]");
    for (text, is_excused) in [
        (format!("{} {quoted}{cited} {}", noise(0, 100), noise(100, 100)), true),
        (format!("{} {STORY}{cited} {}", noise(0, 100), noise(100, 100)), false),
        (format!("{} {quoted} {}", noise(0, 100), noise(100, 100)), false),
    ] {
        let evidence = compare(&text, STORY);
        assert_eq!(evidence.passages.len(), 1);
        assert_eq!(evidence.passages[0].is_excused(), is_excused, "{text}");
        assert_eq!(evidence.verdict == Verdict::None, is_excused);
        assert!(evidence.score_with_excused.value() > 0.9);
        assert_eq!(evidence.coverage_counted == 0.0, is_excused);
    }
}

#[test]
fn ranges_that_the_caller_knows_to_be_quotations_or_boilerplate_excuse() {
    let text = format!("{} {STORY} (Miller, 1998) {}", noise(0, 50), noise(50, 50));
    let start = text.find(STORY).unwrap();
    let range = start..start + STORY.len();
    let source = Document::new(STORY);
    let quoted = Article::new(Document::new(&text).quotations([range.clone()])).compare(&source);
    assert!(quoted.passages[0].is_quoted && quoted.passages[0].is_cited && quoted.passages[0].is_excused());
    let menu = Article::new(Document::new(&text).boilerplate([range])).compare(&source);
    assert!(menu.passages[0].is_boilerplate && menu.passages[0].is_excused());
}

#[test]
fn what_stands_on_many_sites_excuses() {
    let mut boilerplate = Boilerplate::new(3, 10_000);
    for host in ["a", "b", "c"] {
        boilerplate.observe(host, &Document::new(STORY));
    }
    let article = Article::new(Document::new(STORY));
    let source = Document::new(STORY);
    assert_eq!(article.compare(&source).verdict, Verdict::Suspected);
    let known = article.compare_knowing(&source, &boilerplate);
    assert_eq!((known.verdict, known.passages[0].is_boilerplate), (Verdict::None, true));
}

#[test]
fn disguised_words_are_matched_and_reported() {
    let tricked = STORY.replace('e', "\u{435}").replace(" the ", " t\u{200B}he ");
    let evidence = compare(STORY, &tricked);
    assert!(evidence.coverage > 0.99, "{}", evidence.coverage);
    assert!(evidence.is_manipulated && evidence.source_disguise.words() > 10);
    assert_eq!(evidence.article_disguise.words(), 0);
    assert!(!compare(STORY, STORY).is_manipulated);
}

#[test]
fn scripts_without_spaces_have_passages() {
    let chinese = "古老的磨坊自十八世纪以来一直矗立在河边，当地居民建造它是为了在冬天和夏天磨粮食。";
    let thai = "โรงสีเก่าตั้งอยู่ริมแม่น้ำมาตั้งแต่ศตวรรษที่สิบแปดชาวบ้านสร้างขึ้นเพื่อสีข้าว";
    for text in [chinese, thai] {
        let evidence = compare(&format!("前言 {text}"), &format!("别的话，{text}"));
        assert!(evidence.coverage > 0.8, "{text}: {}", evidence.coverage);
        assert_eq!(evidence.passages.len(), 1);
    }
    assert!(compare(chinese, "今天天气很好，我们去公园散步，看见很多花。").passages.is_empty());
}

#[test]
fn evidence_never_needs_more_than_its_budget() {
    // One repeated word matches everywhere.
    let text = "tick ".repeat(60_000);
    let evidence = compare(&text, &text);
    assert_eq!(evidence.verdict, Verdict::Suspected);
    let periodic = "one two three four ".repeat(15_000);
    assert_eq!(compare(&periodic, &periodic).verdict, Verdict::Suspected);
    // In a random text of three words every seed occurs everywhere, and only its first places are examined; the longest blocks are kept.
    let mut state = 7_u64;
    let mut noise = |words: usize| -> String {
        (0..words)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ["na ", "no ", "nu "][(state >> 33) as usize % 3]
            })
            .collect()
    };
    let copied = noise(300);
    let (article, source) = (format!("{copied}{}", noise(60_000)), format!("{}{copied}", noise(60_000)));
    let evidence = compare(&article, &source);
    let longest = evidence.passages.iter().map(|passage| passage.longest).fold(0.0, f64::max);
    assert!(longest >= 300.0, "{longest}");
}

#[test]
fn any_two_texts_can_be_compared() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let words = [
        "a", "b", "c", "d.", "\"", "[1]", "\u{201C}", "\u{201D}", "文", "字", "ไ", "\u{301}", "'", "x'y",
        "\u{200B}", "пaп", "\n\n",
    ];
    for round in 0..500 {
        let mut text = || -> String {
            let different = rng.random_range(1..=words.len());
            let glue = ["", " "][rng.random_range(0..2)];
            let count = rng.random_range(0..150);
            (0..count).map(|_| format!("{}{glue}", words[rng.random_range(0..different)])).collect()
        };
        let (article, source) = (text(), text());
        let at = format!("seed {seed}, round {round}: {article:?}, {source:?}");
        let evidence = compare(&article, &source);
        assert!((0.0..=1.0).contains(&evidence.coverage), "{at}");
        assert!((0.0..=1.0).contains(&evidence.score.value()), "{at}");
        assert!(evidence.score <= evidence.score_with_excused, "{at}");
        let mut end = 0;
        for passage in &evidence.passages {
            assert!(
                passage.article.bytes.start >= end
                    && passage.words >= 5.0
                    && passage.longest <= passage.words,
                "{at}"
            );
            end = passage.article.bytes.end;
            for (text, span) in [(&article, &passage.article), (&source, &passage.source)] {
                assert_eq!(text[..span.bytes.start].chars().count(), span.chars.start, "{at}");
                assert_eq!(text[span.bytes.clone()].chars().count(), span.chars.len(), "{at}");
            }
        }
        let whole = compare(&article, &article);
        assert!(whole.matched <= whole.words, "{at}");
    }
}

#[test]
fn what_is_marked_twice_counts_once() {
    // Only half of the passage is in quotation marks, in a quotation element and in a menu, which is less than four fifths.
    let half = STORY[..STORY.len() / 2].rfind(' ').unwrap();
    let article = format!("According to Ives \u{201C}{}\u{201D}{} [1].", &STORY[..half], &STORY[half..]);
    let quoted = article.find(STORY.split(' ').next().unwrap()).unwrap();
    let ranges = [quoted..quoted + half, quoted..quoted + half - 3, quoted + 3..quoted + half];
    let document = || Document::new(&article);
    for article in [document().quotations(ranges.clone()), document().boilerplate(ranges)] {
        let evidence = Article::new(article).compare(&Document::new(STORY));
        assert!(!evidence.passages[0].is_excused(), "{:?}", evidence.passages[0]);
        assert_eq!(evidence.verdict, Verdict::Suspected);
    }
}
