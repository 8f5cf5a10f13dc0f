//! JSON as pages have it: with comments, trailing commas, control characters, and literals of JavaScript.
//!
//! It takes what browsers' search engines and `extruct` take, and what `JSON.parse` of a script would not have to: names without quotes,
//! texts in single quotes, `undefined`. It is no JavaScript: expressions, calls and templates are errors.

use serde_json::{Map, Number, Value};

use crate::error::Error;
use crate::json::{MAX_DEPTH, MAX_VALUES, read_json};

/// Reads JSON as [`read_json`] does, and if that fails, with these liberties: comments of HTML and JavaScript and the marks of a CDATA
/// section around and between values; control characters in texts; commas before a closing bracket; a semicolon at the end; names without
/// quotes, texts in single quotes; `undefined`, `NaN` and `Infinity`, which become null.
///
/// # Errors
/// It is no JSON even so (the message has line and column), nests deeper than [`MAX_DEPTH`], or has more than [`MAX_VALUES`] values.
///
/// [`MAX_VALUES`]: crate::MAX_VALUES
pub fn read_lenient(text: &str) -> Result<Value, Error> {
    if let Ok(value) = read_json(text) {
        return Ok(value);
    }
    let mut reader = Reader::new(text);
    let value = reader.value(0)?;
    reader.skip();
    while reader.take(";") {
        reader.skip();
    }
    match reader.peek() {
        None => Ok(value),
        Some(found) => Err(reader.fault(format!("{found:?} after the end of the value"))),
    }
}

/// Reads the value at the beginning of a text; what follows it is not looked at.
pub(crate) fn read_prefix(text: &str) -> Result<Value, Error> {
    Reader::new(text).value(0)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0, values: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Whether the text goes on with this mark, which is passed over.
    fn take(&mut self, mark: &str) -> bool {
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len() } else { 0 };
        is_there
    }

    fn fault(&self, what: impl std::fmt::Display) -> Error {
        Error::at(self.text, self.at, what)
    }

    /// Passes over white space, comments, and the marks of comments and sections that hide a script from old browsers.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed =
                rest.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}');
            self.at += rest.len() - trimmed.len();
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map_or(trimmed.len(), |end| end + 2)
            } else if trimmed.starts_with("<!--") {
                // A comment ends before the value begins; else only its mark is passed over.
                let end = trimmed.find("-->").filter(|end| !trimmed[..*end].contains(['{', '[']));
                end.map_or(4, |end| end + 3)
            } else if trimmed.starts_with("-->") || trimmed.starts_with("]]>") {
                3
            } else if trimmed.starts_with("<![CDATA[") {
                9
            } else {
                return;
            };
            self.at += length;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        self.skip();
        self.values += 1;
        match self.peek() {
            Some(_) if self.values > MAX_VALUES => {
                Err(self.fault(format!("it has more than {MAX_VALUES} values")))
            }
            Some('{' | '[') if depth >= MAX_DEPTH => {
                Err(self.fault(format!("it nests deeper than {MAX_DEPTH} levels")))
            }
            Some('{') => self.object(depth + 1),
            Some('[') => self.array(depth + 1),
            Some('"' | '\'') => self.string().map(Value::String),
            Some('-' | '+' | '.' | '0'..='9') => self.number(),
            Some(c) if is_name(c) => self.word(),
            Some(found) => Err(self.fault(format!("{found:?} is not the beginning of a value"))),
            None => Err(self.fault("a value is missing")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Error> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.skip();
            if self.take(",") {
                continue;
            }
            if self.take("}") {
                return Ok(Value::Object(map));
            }
            let name = match self.peek() {
                Some('"' | '\'') => self.string()?,
                Some(c) if is_name(c) || c.is_ascii_digit() => self.name().to_owned(),
                Some(found) => return Err(self.fault(format!("{found:?} where a name or }} is expected"))),
                None => return Err(self.fault("an object is not closed")),
            };
            self.skip();
            if !self.take(":") {
                return Err(self.fault("a colon is missing after a name"));
            }
            let value = self.value(depth)?;
            map.insert(name, value);
            self.separated('}')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.skip();
            if self.take(",") {
                continue;
            }
            if self.take("]") {
                return Ok(Value::Array(list));
            }
            if self.peek().is_none() {
                return Err(self.fault("an array is not closed"));
            }
            list.push(self.value(depth)?);
            self.separated(']')?;
        }
    }

    /// Requires a comma or the end after a value.
    fn separated(&mut self, end: char) -> Result<(), Error> {
        // The mark that ends a CDATA section begins like the end of two arrays.
        let (at, text) = (self.at, self.rest());
        let spaces = text.len() - text.trim_start().len();
        if end == ']' && text[spaces..].starts_with(']') {
            self.at = at + spaces;
            return Ok(());
        }
        self.skip();
        match self.peek() {
            Some(found) if found == ',' || found == end => Ok(()),
            Some(found) => Err(self.fault(format!("{found:?} where a comma or {end:?} is expected"))),
            None => Err(self.fault(format!("{end:?} is missing"))),
        }
    }

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !(is_name(c) || c.is_ascii_digit())).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn word(&mut self) -> Result<Value, Error> {
        let at = self.at;
        Ok(match self.name() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "null" | "undefined" | "NaN" | "Infinity" => Value::Null,
            word => {
                let what = format!("\"{}\" is not a value", word.escape_debug());
                self.at = at;
                return Err(self.fault(what));
            }
        })
    }

    fn number(&mut self) -> Result<Value, Error> {
        let rest = self.rest();
        let end =
            rest.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')).unwrap_or(rest.len());
        let text = &rest[..end];
        if text == "-" && rest[1..].starts_with("Infinity") {
            self.at += "-Infinity".len();
            return Ok(Value::Null);
        }
        let number = text.parse::<Number>().ok().or_else(|| Number::from_f64(text.parse().ok()?));
        let number = number.ok_or_else(|| self.fault(format!("\"{text}\" is not a number")))?;
        self.at += end;
        Ok(Value::Number(number))
    }

    fn string(&mut self) -> Result<String, Error> {
        let start = self.at;
        let quote = self.next();
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(['"', '\'', '\\']).unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            self.at += plain;
            match self.next() {
                None => {
                    self.at = start;
                    return Err(self.fault("a text is not closed"));
                }
                Some('\\') => self.escaped(&mut text),
                found if found == quote => return Ok(text),
                Some(other) => text.push(other),
            }
        }
    }

    /// What follows a backslash. What is no known escape stands for itself, as in JavaScript.
    fn escaped(&mut self, text: &mut String) {
        match self.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('v') => text.push('\u{b}'),
            Some('u') => {
                let first = self.hexadecimal(4);
                let code = match first {
                    Some(high @ 0xd800..0xdc00) if self.rest().starts_with("\\u") => {
                        let at = self.at;
                        self.at += 2;
                        match self.hexadecimal(4) {
                            Some(low @ 0xdc00..0xe000) => {
                                Some(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00))
                            }
                            _ => {
                                self.at = at;
                                None
                            }
                        }
                    }
                    other => other,
                };
                text.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
            }
            Some('x') => text.push(self.hexadecimal(2).and_then(char::from_u32).unwrap_or('\u{fffd}')),
            // A line that goes on in the next one.
            Some('\n') | None => {}
            Some(other) => text.push(other),
        }
    }

    fn hexadecimal(&mut self, digits: usize) -> Option<u32> {
        let digits =
            self.rest().get(..digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at += digits.len();
        u32::from_str_radix(digits, 16).ok()
    }
}

fn is_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

/// Reads a text in quotes at the beginning of a script; `None` if there is none.
pub(crate) fn read_quoted(text: &str) -> Option<String> {
    text.starts_with(['"', '\'']).then(|| Reader::new(text).string().ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn liberties_of_pages_are_taken() {
        for (text, value) in [
            ("<!-- shop -->{\"a\":1}", json!({"a": 1})),
            ("<!--\n{\"a\":1}\n-->", json!({"a": 1})),
            ("//<![CDATA[\n{\"a\":[1,],}\n//]]>", json!({"a": [1]})),
            ("<![CDATA[[[1]]]]>", json!([[1]])),
            ("/* x */ [1, // one\n 2 /* two */ , ]", json!([1, 2])),
            ("{\"a\":\"line\nbreak\ttab\"};", json!({"a": "line\nbreak\ttab"})),
            ("{a:'it\\'s', $b: undefined, 3: NaN}", json!({"a": "it's", "$b": null, "3": null})),
            (r#"["\u00e9\ud83d\ude00\ud83d\x41\q\/"]"#, json!(["é😀\u{fffd}Aq/"])),
            ("[-1.5e3, .5, +2, -Infinity]", json!([-1500.0, 0.5, 2.0, null])),
            ("\u{feff}{}", json!({})),
        ] {
            assert_eq!(read_lenient(text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_told_with_its_place() {
        for (text, message) in [
            ("{\n  \"a\": b()\n}", "\"b\" is not a value, at line 2, column 8"),
            ("{\"a\": \"x", "a text is not closed, at line 1, column 7"),
            ("{\"a\" 1}", "a colon is missing after a name, at line 1, column 6"),
            ("[1 2]", "'2' where a comma or ']' is expected, at line 1, column 4"),
            ("[1", "']' is missing, at line 1, column 3"),
            ("", "a value is missing, at line 1, column 1"),
            ("{} {}", "'{' after the end of the value, at line 1, column 4"),
            ("[1-2]", "\"1-2\" is not a number, at line 1, column 2"),
        ] {
            assert_eq!(read_lenient(text).unwrap_err().to_string(), message, "{text}");
        }
    }

    #[test]
    fn deep_nesting_ends_at_the_limit() {
        let message = read_lenient(&"[".repeat(100_000)).unwrap_err().to_string();
        assert!(message.starts_with("it nests deeper than 127 levels, at line 1"), "{message}");
        assert!(read_lenient(&format!("{},{}", "[".repeat(127), "]".repeat(127))).is_ok());
        assert!(read_lenient(&"{\"a\":".repeat(100_000)).is_err());
    }
}
