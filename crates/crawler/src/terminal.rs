//! Text for terminals and logs: text from the web is escaped before it is shown.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::IsTerminal;

/// Escapes characters that could control a terminal or reorder a line: both ranges of control characters, line and
/// paragraph separators, and the marks that change the direction of writing.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_but(text, |_| false)
}

/// Like [`escape`], for whole documents: line feeds and tabs are kept.
pub fn escape_document(text: &str) -> Cow<'_, str> {
    escape_but(text, |c| c == '\n' || c == '\t')
}

/// Like [`escape`], for JSON: the value stays the same, because JSON's own escapes are used. JSON itself requires
/// escapes for the lower control characters only.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let steers = |c: char| needs_escape(c) && !c.is_ascii_control();
    if !json.chars().any(steers) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // All these characters are below U+10000, so one escape each is enough.
        if steers(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn escape_but(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let steers = |c: char| needs_escape(c) && !stays(c);
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !steers(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(out)
}

fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Whether colours may be used on a stream: it is a terminal that supports them, and `NO_COLOR` is not set.
pub fn wants_color(stream: &impl IsTerminal) -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !no_color && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_and_direction_marks_are_escaped() {
        assert_eq!(escape("a\u{1b}[31mb\nc\r\u{9b}2J\u{202e}x"), "a\\u{1b}[31mb\\nc\\r\\u{9b}2J\\u{202e}x");
        assert!(matches!(escape("plain – Grüße 漢字"), Cow::Borrowed(_)));
        assert_eq!(escape_document("a\tb\n\u{7}"), "a\tb\n\\u{7}");
    }

    #[test]
    fn escaped_json_is_the_same_value() {
        let value = serde_json::json!({"title": "a\u{9b}2J\u{202e}\n\u{1b}ü"});
        let text = value.to_string();
        let escaped = escape_json(&text);
        assert!(escaped.chars().all(|c| !needs_escape(c)), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
