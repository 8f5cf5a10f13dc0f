//! JSON as a query: the values under the nearest name, as Python writes them.
//!
//! It is read as Python's `json` reads it, with `NaN` and numbers of any length, which other readers of JSON do not keep as they are written.

use std::collections::HashMap;

use super::push_pair;

/// Depth at which Python's recursion ends, about.
const MAX_DEPTH: usize = 960;
/// Digits of a whole number that Python makes of a text at most.
const MAX_DIGITS: usize = 4300;

enum Value {
    Object(Vec<(String, Value)>),
    Array(Vec<Value>),
    /// As Python shows it.
    Plain(String),
}

/// Why a text is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It is no JSON; its lines may be.
    Syntax,
    /// It is JSON that Python cannot take, or cannot write as a query.
    Other,
}

/// The values of a text, or those of each of its lines; `None` if neither is JSON.
pub(super) fn query(body: &[u8]) -> Option<String> {
    let mut fields = Fields::default();
    match read(body) {
        Ok(value) => fields.add(&value, ""),
        Err(Refused::Syntax) if body.contains(&b'\n') => {
            for line in body.split(|byte| *byte == b'\n') {
                fields.add(&read(line).ok()?, "");
            }
        }
        Err(_) => return None,
    }
    let mut query = String::new();
    for (name, value) in &fields.pairs {
        push_pair(&mut query, name, value.as_bytes());
    }
    Some(query)
}

/// Names and values in their order. A name that comes again is numbered.
#[derive(Default)]
struct Fields {
    pairs: Vec<(String, String)>,
    places: HashMap<String, usize>,
    repeated: HashMap<String, u32>,
}

impl Fields {
    fn add(&mut self, value: &Value, name: &str) {
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| self.add(value, name)),
            Value::Array(values) => values.iter().for_each(|value| self.add(value, name)),
            Value::Plain(_) if name.is_empty() => {}
            Value::Plain(text) => {
                let name = self.free(name);
                match self.places.get(&name) {
                    Some(at) => self.pairs[*at].1.clone_from(text),
                    None => {
                        self.places.insert(name.clone(), self.pairs.len());
                        self.pairs.push((name, text.clone()));
                    }
                }
            }
        }
    }

    fn free(&mut self, name: &str) -> String {
        if !self.places.contains_key(name) {
            return name.to_owned();
        }
        let number = self.repeated.entry(name.to_owned()).or_insert(1);
        *number += 1;
        format!("{name}.{number}_")
    }
}

fn read(bytes: &[u8]) -> Result<Value, Refused> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refused::Other)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.spaces();
    if reader.at == text.len() { Ok(value) } else { Err(Refused::Syntax) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn spaces(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let is_there = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn value(&mut self, depth: usize) -> Result<Value, Refused> {
        if depth > MAX_DEPTH {
            return Err(Refused::Other);
        }
        self.spaces();
        match self.next().ok_or(Refused::Syntax)? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => Ok(Value::Plain(self.string()?)),
            b'-' | b'0'..=b'9' if !self.text[self.at..].starts_with("-Infinity") => self.number(),
            _ => {
                let words = [
                    ("null", "None"),
                    ("true", "True"),
                    ("false", "False"),
                    ("NaN", "nan"),
                    ("Infinity", "inf"),
                    ("-Infinity", "-inf"),
                ];
                let shown = words.into_iter().find_map(|(word, shown)| self.takes(word).then_some(shown));
                shown.map(|shown| Value::Plain(shown.to_owned())).ok_or(Refused::Syntax)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Refused> {
        self.at += 1;
        let mut members: Vec<(String, Value)> = Vec::new();
        // A name that comes again keeps its place and gets the later value.
        let mut places: HashMap<String, usize> = HashMap::new();
        self.spaces();
        if self.takes("}") {
            return Ok(Value::Object(members));
        }
        loop {
            self.spaces();
            if self.next() != Some(b'"') {
                return Err(Refused::Syntax);
            }
            let name = self.string()?;
            self.spaces();
            if !self.takes(":") {
                return Err(Refused::Syntax);
            }
            let value = self.value(depth + 1)?;
            match places.get(&name) {
                Some(at) => members[*at].1 = value,
                None => {
                    places.insert(name.clone(), members.len());
                    members.push((name, value));
                }
            }
            self.spaces();
            if self.takes("}") {
                return Ok(Value::Object(members));
            }
            if !self.takes(",") {
                return Err(Refused::Syntax);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Refused> {
        self.at += 1;
        let mut values = Vec::new();
        self.spaces();
        if self.takes("]") {
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.spaces();
            if self.takes("]") {
                return Ok(Value::Array(values));
            }
            if !self.takes(",") {
                return Err(Refused::Syntax);
            }
        }
    }

    fn string(&mut self) -> Result<String, Refused> {
        self.at += 1;
        let mut out = String::new();
        // Half of a pair of surrogates can be read, and not be written. What follows may still be no JSON.
        let mut has_half = false;
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').ok_or(Refused::Syntax)?;
            out.push_str(&rest[..end]);
            self.at += end;
            if self.takes("\"") {
                return if has_half { Err(Refused::Other) } else { Ok(out) };
            }
            if !self.takes("\\") {
                return Err(Refused::Syntax);
            }
            let escape = self.next().ok_or(Refused::Syntax)?;
            self.at += 1;
            out.push(match escape {
                b'"' | b'\\' | b'/' => char::from(escape),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => {
                    let mut code = self.unit()?;
                    if (0xd800..0xdc00).contains(&code) {
                        let before = self.at;
                        let low = if self.takes("\\u") { self.unit().ok() } else { None };
                        match low.filter(|low| (0xdc00..0xe000).contains(low)) {
                            Some(low) => code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00),
                            None => self.at = before,
                        }
                    }
                    char::from_u32(code).unwrap_or_else(|| {
                        has_half = true;
                        char::REPLACEMENT_CHARACTER
                    })
                }
                _ => return Err(Refused::Syntax),
            });
        }
    }

    fn unit(&mut self) -> Result<u32, Refused> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(Refused::Syntax)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex).ok_or(Refused::Syntax)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| Refused::Syntax)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.next().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Value, Refused> {
        let start = self.at;
        self.takes("-");
        let digits = if self.takes("0") { 1 } else { self.digits() };
        if digits == 0 {
            return Err(Refused::Syntax);
        }
        let whole = self.at;
        if !(self.takes(".") && self.digits() > 0) {
            self.at = whole;
        }
        let fraction = self.at;
        if self.takes("e") || self.takes("E") {
            let _sign = self.takes("+") || self.takes("-");
            if self.digits() == 0 {
                self.at = fraction;
            }
        }
        let text = &self.text[start..self.at];
        if self.at > whole {
            return Ok(Value::Plain(shown_float(text.parse().map_err(|_| Refused::Syntax)?)));
        }
        if digits > MAX_DIGITS {
            return Err(Refused::Other);
        }
        Ok(Value::Plain(if text == "-0" { "0".to_owned() } else { text.to_owned() }))
    }
}

/// A number as `repr` of Python writes it.
fn shown_float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').expect("the form has an exponent");
    let exponent: i32 = exponent.parse().expect("it is a number");
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-300, "1.5e-300"),
            (f64::INFINITY, "inf"),
        ];
        for (number, shown) in cases {
            assert_eq!(shown_float(number), shown);
        }
    }

    #[test]
    fn deep_texts_and_damaged_ones_end() {
        assert_eq!(query("[".repeat(1_000_000).as_bytes()), None);
        let deep = format!("{}1{}", "{\"a\":".repeat(900), "}".repeat(900));
        assert_eq!(query(deep.as_bytes()).as_deref(), Some("a=1"));
        let whole = br#"{"a": [1, -2.5e3, "\u00e9\ud83d\ude00\n", null], "b": {"c": true}}"#;
        for end in 0..whole.len() {
            assert_eq!(query(&whole[..end]), None, "{end}");
        }
    }
}
