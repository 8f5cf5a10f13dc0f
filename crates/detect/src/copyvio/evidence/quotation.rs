//! Finds quotations in a text by quotation marks, and citations near a passage.

use std::ops::Range;

/// The longest quotation in bytes. Without a limit, an opening mark without a closing one would take the rest of the text.
const MAX_QUOTATION: usize = 4000;
/// Bytes around a passage in which a citation is searched for.
const NEAR: usize = 120;

/// Pairs of marks that open and close quotations. German closes with the mark that opens in English.
const PAIRS: [(char, &[char]); 8] = [
    ('\u{201C}', &['\u{201D}']),
    ('\u{201E}', &['\u{201C}', '\u{201D}']),
    ('\u{AB}', &['\u{BB}']),
    ('\u{BB}', &['\u{AB}']),
    ('\u{300C}', &['\u{300D}']),
    ('\u{300E}', &['\u{300F}']),
    ('\u{2018}', &['\u{2019}']),
    ('"', &['"']),
];

/// Byte ranges between quotation marks, ascending and not nested. A quotation is at most 4,000 bytes long.
pub(super) fn quotations(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(usize, &[char])> = None;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, c)| *c);
        if let Some((start, closing)) = open {
            // An apostrophe within a word does not close a quotation.
            let ends = closing.contains(&c) && !(next.is_alphanumeric() && before.is_alphanumeric());
            if ends {
                found.push(start..at);
            }
            if ends || at - start > MAX_QUOTATION {
                open = None;
            }
        } else if !before.is_alphanumeric()
            && !next.is_whitespace()
            && let Some((_, closing)) = PAIRS.iter().find(|(mark, _)| *mark == c)
        {
            open = Some((at + c.len_utf8(), closing));
        }
        before = c;
    }
    found
}

/// Whether a citation is in or right after a passage, or announced before it: `[12]`, a year in brackets, `cf.`, "according to", "quoted",
/// an address.
pub(super) fn is_cited(text: &str, passage: Range<usize>) -> bool {
    let start = text.floor_char_boundary(passage.start.saturating_sub(NEAR));
    let end = text.ceil_char_boundary((passage.end + NEAR).min(text.len()));
    let behind = &text[passage.end..end];
    // Only the text up to the next paragraph belongs to the passage.
    let behind = &behind[..behind.find("\n\n").unwrap_or(behind.len())];
    let before = text[start..passage.start].to_lowercase();
    let before = &before[before.rfind("\n\n").unwrap_or(0)..];
    let announced = [
        "according to",
        "as quoted",
        "quoted in",
        "quoting",
        "in the words of",
        "wrote:",
        "writes:",
        "states:",
        "cited in",
    ];
    announced.iter().any(|words| before.contains(words)) || has_reference(behind)
}

/// Whether the text contains a reference: `[12]`, `[a]`, `(Smith, 1998)`, `(1998)`, `(p. 12)`, an address.
fn has_reference(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['[', '(']) {
        let closing = if rest.as_bytes()[at] == b'[' { ']' } else { ')' };
        let inner = &rest[at + 1..];
        let Some(end) = inner.find(closing) else { break };
        let inner = &inner[..end];
        let digits = inner.bytes().filter(u8::is_ascii_digit).count();
        let is_number = closing == ']' && inner.len() <= 12 && (digits > 0 || inner.len() == 1);
        let is_year = digits >= 4 && years(inner);
        let is_page = ["p. ", "pp. ", "S. ", "vol. "].iter().any(|mark| inner.contains(mark)) && digits > 0;
        if is_number || is_year || is_page {
            return true;
        }
        rest = &rest[at + 1..];
    }
    text.contains("http://") || text.contains("https://")
}

/// Whether the text contains a year from 1500 to 2099.
fn years(text: &str) -> bool {
    let is_year = |run: &str| run.len() == 4 && matches!(run.parse::<u32>(), Ok(1500..=2099));
    text.split(|c: char| !c.is_ascii_digit()).any(is_year)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> Vec<&str> {
        quotations(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn marks_of_many_languages_quote() {
        assert_eq!(
            quoted(
                "a \"b c\" d \u{201C}it\u{2019}s\u{201D} \u{AB}f\u{BB} \u{201E}g\u{201C} \u{300C}h\u{300D}."
            ),
            ["b c", "it\u{2019}s", "f", "g", "h"]
        );
        assert!(quoted("5\" of rain and 6\" more, don't").is_empty());
    }

    #[test]
    fn a_mark_that_is_not_closed_quotes_nothing() {
        assert!(quoted(&format!("\u{201C}{}\u{201D}", "word ".repeat(2000))).is_empty());
    }

    #[test]
    fn citations_stand_near() {
        let cited = |text: &str| {
            let start = text.find("old mill").unwrap();
            is_cited(text, start..start + 8)
        };
        assert!(cited("the old mill [12] of"));
        assert!(cited("the old mill (Smith, 1998) of"));
        assert!(cited("According to Smith the old mill"));
        assert!(!cited("the old mill (near the river) of 1998"));
        assert!(!cited("the old mill\n\nSmith [1]"));
    }
}
