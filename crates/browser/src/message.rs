//! Messages of the browser as JSON.

use serde_json::Value;

/// Reads a message. Texts of pages may have halves of characters, which are no Unicode; these are replaced.
pub(crate) fn parse(bytes: &[u8]) -> Option<Value> {
    match serde_json::from_slice(bytes) {
        Ok(message) => Some(message),
        Err(_) => {
            let message = serde_json::from_slice(&without_halves(bytes));
            message
                .inspect_err(|error| tracing::warn!(%error, "a message of the browser cannot be read"))
                .ok()
        }
    }
}

/// The same text of JSON, in which each half of a character is the replacement character.
fn without_halves(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_ref();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let length = match (half(escape), escape.get(6..).and_then(half)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                whole.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            (Some(_), _) => 6,
            // The backslash and what it stands before, which may be of several bytes.
            (None, _) => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole.push_str(rest);
    whole.into_bytes()
}

/// The number of an escape such as `\ud83d` at the begin of a text.
fn half(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_whole_ones_stay() {
        let text = |bytes: &str| parse(bytes.as_bytes()).expect("it is JSON");
        assert_eq!(text(r#"["a\ud800b"]"#)[0], "a\u{fffd}b");
        assert_eq!(text(r#"["\ud83d\ude00\udc00\\ud800\ud800\n"]"#)[0], "\u{1f600}\u{fffd}\\ud800\u{fffd}\n");
        assert_eq!(text("[\"\\ud800\\\"\u{e9}\"]")[0], "\u{fffd}\"\u{e9}");
        assert_eq!(parse(b"{\"a\": "), None);
    }
}
