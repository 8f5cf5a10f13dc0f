//! JSON as it is defined: read whole, within limits of depth and number of values.

use serde_json::Value;

use crate::error::Error;

/// Deepest nesting of arrays and objects in JSON that is read.
pub const MAX_DEPTH: usize = 127; // serde_json refuses the level after it.

/// Greatest number of values in JSON that is read. In memory a value takes some 32 bytes, an entry of an object about 100.
pub const MAX_VALUES: usize = 4_000_000;

/// Reads a document of JSON. A byte order mark at its beginning is passed over.
///
/// # Errors
/// It is not JSON (the message has line and column), nests deeper than [`MAX_DEPTH`], or has more than [`MAX_VALUES`] values.
pub fn read_json(text: &str) -> Result<Value, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_size(text)?;
    serde_json::from_str(text).map_err(|cause| {
        let what = cause.to_string();
        match what.strip_prefix("recursion limit exceeded") {
            Some(place) => Error::new(format!("it nests deeper than {MAX_DEPTH} levels{place}")),
            None => Error::new(what),
        }
    })
}

/// Refuses a text with too many values. They are counted by the commas outside of strings, which costs a pass over a large text only.
fn check_size(text: &str) -> Result<(), Error> {
    // A value and its comma take two bytes.
    if text.len() / 2 <= MAX_VALUES {
        return Ok(());
    }
    let (mut values, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    match values > MAX_VALUES {
        true => Err(Error::new(format!("it has more than {MAX_VALUES} values"))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_no_part_of_json() {
        assert_eq!(read_json("\u{feff}[1]").unwrap(), serde_json::json!([1]));
    }

    #[test]
    fn errors_name_the_place_or_the_limit() {
        let message = |text: &str| read_json(text).unwrap_err().to_string();
        assert_eq!(message("{\n \"a\": }"), "expected value at line 2 column 7");
        let deep = message(&"[".repeat(100_000));
        assert_eq!(deep, "it nests deeper than 127 levels at line 1 column 128");
        assert!(read_json(&format!("{}{}", "[".repeat(127), "]".repeat(127))).is_ok());
        assert_eq!(message(&"[],".repeat(4_000_001)), "it has more than 4000000 values");
    }

    #[test]
    fn commas_in_texts_are_no_values() {
        let text = format!("[\"{}\\\",\"]", ",".repeat(9_000_000));
        assert!(read_json(&text).is_ok());
    }
}
