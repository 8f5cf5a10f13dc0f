//! Splits a text into sentences, and selects a few of them as search queries.

use super::words::{is_space, pieces, trim};

/// Limits of a search query, in characters (the reference's defaults).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Shorter queries are dropped. Default 8.
    pub min_chars: usize,
    /// Longer sentences are cut. Default 128.
    pub max_chars: usize,
    /// A piece cut from a long sentence is kept only if it is at least this long. Default 32.
    pub min_cut: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { min_chars: 8, max_chars: 128, min_cut: 32 }
    }
}

/// Abbreviations whose full stop ends no sentence, in lower case and without the full stop. They come from the grammars of the languages
/// for which the reference has a splitter. They are far fewer than a trained splitter knows, which only changes where a query is cut.
const ABBREVIATIONS: [&str; 95] = [
    "a", "abb", "abs", "adj", "al", "anm", "apr", "art", "aug", "av", "bd", "bl", "bzw", "c", "ca", "cap",
    "capt", "cf", "ch", "chr", "co", "col", "corp", "d", "dec", "dept", "dir", "dr", "ed", "eds", "eg",
    "e.g", "est", "etc", "evtl", "feb", "fig", "figs", "fr", "g", "geb", "gen", "ggf", "gov", "hon", "hr",
    "i.e", "ibid", "inc", "ing", "jan", "jr", "kap", "lt", "ltd", "m", "mag", "maj", "mar", "max", "min",
    "mln", "mme", "mr", "mrs", "ms", "mt", "mio", "n", "no", "nos", "nov", "nr", "oct", "op", "p", "pag",
    "pp", "prof", "red", "rep", "rev", "s", "sen", "sep", "sept", "sgt", "sr", "sra", "st", "tel", "u.a",
    "usw", "vol", "vs",
];

/// The sentences of `text` in order, trimmed. A sentence ends after `.`, `!`, `?` or `…` and closing quotes or brackets before white space,
/// unless the full stop ends a known abbreviation or a single letter, or the following text begins with a small letter. After the full
/// stops of Chinese and Japanese it always ends. A line break alone does not end a sentence.
///
/// Deliberately different: the reference uses NLTK's trained Punkt models of 17 languages. This implementation needs no data, and its
/// sentences are cut into queries in the same way ([`cut_sentences`]).
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut word_start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_space(c) {
            word_start = at + c.len_utf8();
            continue;
        }
        let end = match c {
            '。' | '！' | '？' | '｡' => at + c.len_utf8(),
            '.' | '!' | '?' | '…' | '।' => {
                let stops = at;
                let mut end = at + c.len_utf8();
                while let Some((next, c)) = chars.next_if(|(_, c)| closes(*c)) {
                    end = next + c.len_utf8();
                }
                let ends_word = chars.peek().is_none_or(|(_, next)| is_space(*next));
                let is_single = end == stops + 1 && c == '.';
                if !ends_word || is_single && is_abbreviation(&text[word_start..stops]) {
                    continue;
                }
                let next = text[end..].chars().find(|c| !is_space(*c));
                if next.is_some_and(char::is_lowercase) {
                    continue;
                }
                end
            }
            _ => continue,
        };
        keep(&text[start..end], &mut found);
        start = end;
        word_start = end;
    }
    keep(&text[start..], &mut found);
    found
}

fn keep<'t>(sentence: &'t str, found: &mut Vec<&'t str>) {
    let sentence = trim(sentence);
    if !sentence.is_empty() {
        found.push(sentence);
    }
}

/// Whether a character may stand between the end of a sentence and the white space after it.
fn closes(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '"' | '\'' | ')' | ']' | '”' | '’' | '»' | '“' | '›')
}

fn is_abbreviation(word: &str) -> bool {
    let word = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut chars = word.chars();
    let is_initial = chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none();
    // The longest abbreviation has five letters.
    is_initial || word.len() <= 6 && ABBREVIATIONS.contains(&&*word.to_lowercase())
}

/// Turns sentences into queries: those of at most `max_chars` are kept as they are, longer ones are cut at white space into the longest
/// runs of words that fit. The word after a cut is dropped, as in the reference; so are a run below `min_cut`, a word that does not fit,
/// and in the end every query below `min_chars`.
///
/// The reference calls itself once per cut and fails on extreme input; this is a loop. Linear in the length.
pub fn cut_sentences<'t>(sentences: impl IntoIterator<Item = &'t str>, limits: QueryLimits) -> Vec<String> {
    let mut queries = Vec::new();
    for sentence in sentences {
        if fits(sentence, limits.max_chars) {
            queries.push(sentence.to_owned());
            continue;
        }
        let mut run = String::new();
        let mut length = 0;
        let mut end_run = |run: &mut String, length: &mut usize| {
            if *length >= limits.min_cut && !run.is_empty() {
                queries.push(std::mem::take(run));
            }
            run.clear();
            *length = 0;
        };
        for word in pieces(sentence) {
            let with_word = length + usize::from(!run.is_empty()) + word.chars().count();
            if with_word > limits.max_chars {
                end_run(&mut run, &mut length);
                continue;
            }
            if !run.is_empty() {
                run.push(' ');
            }
            run.push_str(word);
            length = with_word;
        }
        end_run(&mut run, &mut length);
    }
    queries.retain(|query| query.chars().take(limits.min_chars).count() == limits.min_chars);
    queries
}

fn fits(text: &str, max_chars: usize) -> bool {
    text.len() <= max_chars || text.chars().nth(max_chars).is_none()
}

/// Picks at most `max` of the queries. If there are no more, it keeps all in order; otherwise it takes in turn the first, the last, and
/// those at one half, one quarter and three quarters of the remaining ones.
///
/// (`earwigbot`, `ArticleParser.chunk`.) Costs `max` times the number of queries; a check uses 8 to 15.
pub fn pick_queries(mut queries: Vec<String>, max: usize) -> Vec<String> {
    if queries.len() <= max {
        return queries;
    }
    let mut picked = Vec::with_capacity(max);
    for turn in 0..max {
        let len = queries.len();
        let at = match turn % 5 {
            0 => 0,
            1 => len - 1,
            2 => len / 2,
            3 => len / 4,
            _ => 3 * len / 4,
        };
        // There are more queries than turns, and 3 * len / 4 < len.
        picked.push(queries.remove(at));
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_at_its_stop_and_not_at_an_abbreviation() {
        let text = "Dr. Smith came, e.g. by train. \"Why?\" He left\nlate in vol. 3 of it! So J. Doe said. 3.5 is it.";
        assert_eq!(
            sentences(text),
            [
                "Dr. Smith came, e.g. by train.",
                "\"Why?\"",
                "He left\nlate in vol. 3 of it!",
                "So J. Doe said.",
                "3.5 is it."
            ]
        );
        assert_eq!(sentences("古老的磨坊。今天那里！好"), ["古老的磨坊。", "今天那里！", "好"]);
        assert!(sentences(" \n ").is_empty());
    }

    #[test]
    fn the_word_behind_a_cut_is_dropped() {
        let limits = QueryLimits { min_chars: 2, max_chars: 9, min_cut: 3 };
        let cut = |text| cut_sentences([text], limits);
        assert_eq!(cut("aa bb cc dd ee ff g"), ["aa bb cc", "ee ff g"]);
        assert_eq!(cut("aa bb ccc"), ["aa bb ccc"]);
        assert_eq!(cut("aaaaaaaaaaaaaaa bb cc"), ["bb cc"]);
        assert_eq!(cut("aaaaaaaaaaaaaaa bb"), Vec::<String>::new());
        assert_eq!(cut("aaaaaaaaaaaaaaa"), Vec::<String>::new());
    }

    #[test]
    fn queries_are_picked_from_all_over_the_text() {
        let queries: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(pick_queries(queries.clone(), 6), ["0", "9", "5", "2", "7", "1"]);
        assert_eq!(pick_queries(queries.clone(), 10), queries);
        assert!(pick_queries(queries, 0).is_empty());
    }

    #[test]
    fn a_million_cuts_are_a_loop() {
        let text = "word ".repeat(1_000_000);
        assert!(cut_sentences([&*text], QueryLimits::default()).len() > 30_000);
    }
}
