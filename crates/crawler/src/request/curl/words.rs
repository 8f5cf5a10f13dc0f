//! The words of a command as bash splits and quotes them: `'..'`, `".."`, `$'..'` and backslashes.
//!
//! Variables, substitutions and patterns are not expanded: browsers write none.

use crate::error::{Error, Result};

/// Splits a command into its words.
///
/// # Errors
/// A quote is not closed, a backslash is the last character, or the command is for another shell or has a second command behind it.
pub(super) fn split(command: &str) -> Result<Vec<Vec<u8>>> {
    let bytes = command.trim().as_bytes();
    if command.contains("^\"") || command.contains("^\n") || command.contains("^\r\n") {
        return Err(Error::usage("this curl command is for cmd of Windows; copy it as cURL (bash)"));
    }
    let (mut words, mut word, mut at) = (Vec::new(), None::<Vec<u8>>, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => words.extend(word.take()),
            b'\\' => match bytes[at..] {
                [] => {
                    return Err(Error::usage("the curl command ends with a backslash; its rest is missing"));
                }
                [b'\r', b'\n', ..] => at += 2,
                [b'\n', ..] => at += 1,
                [next, ..] => {
                    word.get_or_insert_default().push(next);
                    at += 1;
                }
            },
            b'\'' => {
                let end = closing(command.trim(), at, b'\'')?;
                word.get_or_insert_default().extend_from_slice(&bytes[at..end]);
                at = end + 1;
            }
            b'"' => at = double_quoted(command.trim(), at, word.get_or_insert_default())?,
            b'$' if bytes.get(at) == Some(&b'\'') => {
                at = ansi_quoted(command.trim(), at + 1, word.get_or_insert_default())?;
            }
            b'|' | b';' | b'>' | b'<' | b'&' if word.is_none() => {
                let shown = char::from(byte);
                return Err(Error::usage(format!(
                    "behind the curl command follows \"{shown}\"; only the command itself is read"
                )));
            }
            byte => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The position of the closing quote.
fn closing(command: &str, from: usize, quote: u8) -> Result<usize> {
    let found = command.as_bytes()[from..].iter().position(|byte| *byte == quote);
    found.map(|length| from + length).ok_or_else(|| unclosed(command, from))
}

fn unclosed(command: &str, from: usize) -> Error {
    let character = String::from_utf8_lossy(&command.as_bytes()[..from]).chars().count();
    Error::usage(format!("the quote at character {character} of the curl command is not closed"))
}

/// Reads what follows a double quote; returns the position behind the closing one.
fn double_quoted(command: &str, from: usize, word: &mut Vec<u8>) -> Result<usize> {
    let (bytes, mut at) = (command.as_bytes(), from);
    loop {
        match bytes[at..] {
            [] => return Err(unclosed(command, from)),
            [b'"', ..] => return Ok(at + 1),
            [b'\\', b'\n', ..] => at += 2,
            [b'\\', next @ (b'"' | b'\\' | b'$' | b'`'), ..] => {
                word.push(next);
                at += 2;
            }
            [byte, ..] => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads what follows `$'`; returns the position behind the closing quote.
fn ansi_quoted(command: &str, from: usize, word: &mut Vec<u8>) -> Result<usize> {
    let (bytes, mut at) = (command.as_bytes(), from);
    loop {
        match bytes[at..] {
            [] | [b'\\'] => return Err(unclosed(command, from)),
            [b'\'', ..] => return Ok(at + 1),
            [b'\\', letter, ..] => {
                at += 2;
                match letter {
                    b'a' => word.push(7),
                    b'b' => word.push(8),
                    b'e' | b'E' => word.push(27),
                    b'f' => word.push(12),
                    b'n' => word.push(b'\n'),
                    b'r' => word.push(b'\r'),
                    b't' => word.push(b'\t'),
                    b'v' => word.push(11),
                    b'x' => match digits(bytes, &mut at, 2, 16) {
                        // Two digits are at most 255.
                        Some(code) => word.push(code.to_le_bytes()[0]),
                        None => word.extend_from_slice(b"\\x"),
                    },
                    b'0'..=b'7' => {
                        at -= 1;
                        let code = digits(bytes, &mut at, 3, 8).unwrap_or(0);
                        word.push(code.to_le_bytes()[0]);
                    }
                    b'u' | b'U' => {
                        let most = if letter == b'u' { 4 } else { 8 };
                        match digits(bytes, &mut at, most, 16) {
                            // Half of a pair of surrogates is no character.
                            Some(code) => {
                                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                                word.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                            }
                            None => word.extend_from_slice(&[b'\\', letter]),
                        }
                    }
                    b'\\' | b'\'' | b'"' | b'?' => word.push(letter),
                    other => word.extend_from_slice(&[b'\\', other]),
                }
            }
            [byte, ..] => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Reads at most this number of digits; `None` if there is none.
fn digits(bytes: &[u8], at: &mut usize, most: usize, radix: u32) -> Option<u32> {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let count = bytes[*at..].iter().take(most).take_while(is_digit).count();
    let text = str::from_utf8(&bytes[*at..*at + count]).ok()?;
    *at += count;
    u32::from_str_radix(text, radix).ok()
}

/// A word that bash reads as these bytes, which contain no zero.
pub(super) fn quote(bytes: &[u8]) -> String {
    let readable = |text: &str| !text.chars().any(|c| c.is_control() || c == '\'');
    if let Ok(text) = str::from_utf8(bytes)
        && readable(text)
    {
        return format!("'{text}'");
    }
    let mut quoted = String::from("$'");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' => quoted.push_str("\\'"),
                '\\' => quoted.push_str("\\\\"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                control if control.is_control() => {
                    for byte in control.encode_utf8(&mut [0; 4]).bytes() {
                        quoted.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                other => quoted.push(other),
            }
        }
        for byte in chunk.invalid() {
            quoted.push_str(&format!("\\x{byte:02x}"));
        }
    }
    quoted.push('\'');
    quoted
}
