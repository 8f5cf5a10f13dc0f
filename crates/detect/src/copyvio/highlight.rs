//! Marks the words that two texts share, in the way of the reference's page.

use super::chain::{Chain, Roller, end_mark, start_mark, word_hash};
use super::words::{normalised, pieces};

/// Consecutive paragraphs of at most this many words are joined.
const SHORT_PARAGRAPH: usize = 3;
/// The number of characters at each end of a run that fade.
const FADE: usize = 4;

/// Returns `text` as HTML in which the windows that `other` has too are marked.
///
/// All k words of a window that `other` has are marked, regardless of the counts. Lines are paragraphs, joined by `<br /><br />`;
/// consecutive lines of at most three words are put together. Runs are `<span class="cv-hl">`; the first four characters of a run are in a
/// `cv-hl-in` and the last four in a `cv-hl-out`, except at the beginning and the end of the text. Everything is escaped, so the result
/// contains no markup from the text.
///
/// As in the reference, a piece of which no word is left (a dash by itself) breaks a run, because no window contains it.
pub fn highlight_html(text: &str, other: &Chain) -> String {
    let degree = other.degree().get();
    let words: Vec<&str> = pieces(text).collect();
    // The marks before and after the words show whether a run touches the beginning or the end.
    let mut shared = vec![false; words.len() + 2];
    let mut roller = Roller::new(other.degree());
    let hashes = words.iter().map(|word| word_hash(&normalised(word)));
    let ends = std::iter::repeat_n(end_mark(), degree - 1);
    (1..degree).for_each(|_| {
        roller.push(start_mark());
    });
    // Each position is set only once: from `marked` on, none is set yet. Position 0 is the mark before the text.
    let mut marked = 0;
    for (index, hash) in hashes.chain(ends).enumerate() {
        if other.count(roller.push(hash)) > 0 {
            let place = (index + 1).min(words.len() + 1);
            let from = (index + 2).saturating_sub(degree).max(marked);
            shared[from..=place].fill(true);
            marked = place;
        }
    }
    let mut html = String::with_capacity(text.len() + text.len() / 4);
    let mut at = 0;
    let mut first_paragraph = true;
    for paragraph in paragraphs(text) {
        if !std::mem::take(&mut first_paragraph) {
            html.push_str("<br /><br />");
        }
        for index in 0..paragraph {
            if index > 0 {
                html.push(' ');
            }
            let word = words[at];
            at += 1;
            if shared[at] {
                push_shared(&mut html, word, shared[at - 1], shared[at + 1], at == 1, at == words.len());
            } else {
                push_escaped(&mut html, word);
            }
        }
    }
    html
}

/// The number of words of each paragraph.
fn paragraphs(text: &str) -> Vec<usize> {
    let mut lengths: Vec<usize> = Vec::new();
    let mut was_short = false;
    for words in text.split('\n').map(|line| pieces(line).count()).filter(|words| *words > 0) {
        let is_short = words <= SHORT_PARAGRAPH;
        match lengths.last_mut() {
            Some(last) if is_short && was_short => *last += words,
            _ => lengths.push(words),
        }
        was_short = is_short;
    }
    lengths
}

fn push_shared(html: &mut String, word: &str, before: bool, after: bool, first: bool, last: bool) {
    if !before || first {
        html.push_str(r#"<span class="cv-hl">"#);
    }
    match (before, after) {
        (false, true) => {
            let cut = word.char_indices().nth(FADE).map_or(word.len(), |(at, _)| at);
            push_faded(html, "in", &word[..cut]);
            push_escaped(html, &word[cut..]);
        }
        (true, false) => {
            let cut = word.char_indices().rev().nth(FADE - 1).map_or(0, |(at, _)| at);
            push_escaped(html, &word[..cut]);
            push_faded(html, "out", &word[cut..]);
        }
        _ => push_escaped(html, word),
    }
    if !after || last {
        html.push_str("</span>");
    }
}

fn push_faded(html: &mut String, way: &str, text: &str) {
    html.push_str(r#"<span class="cv-hl-"#);
    html.push_str(way);
    html.push_str("\">");
    push_escaped(html, text);
    html.push_str("</span>");
}

fn push_escaped(html: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&#34;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
}
