//! Forms of several parts (RFC 7578) as a query.

use std::collections::HashMap;

use super::push_pair;

/// Limits of the parser that `cdxj-indexer` uses.
const MAX_PARTS: usize = 128;
const MAX_HEADERS: usize = 8;
const MAX_HEADER: usize = 4096 + 128;

/// The fields of a form and the contents of its files; `None` if it is no whole form.
pub(super) fn query(content_type: &str, body: &[u8]) -> Option<String> {
    let boundary = content_type.split("boundary=").nth(1)?;
    let boundary = boundary.split(';').next().unwrap_or_default().trim().trim_matches('"');
    if boundary.is_empty() {
        return None;
    }
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let first = &delimiter[2..];
    let start = find(body, first)?;
    if start > 0 && !body[..start].ends_with(b"\r\n") {
        return None;
    }
    let (mut query, mut parts) = (String::new(), 0);
    let mut rest = &body[start + first.len()..];
    loop {
        if rest.starts_with(b"--") {
            return Some(query);
        }
        rest = rest.strip_prefix(b"\r\n")?;
        parts += 1;
        if parts > MAX_PARTS {
            return None;
        }
        let (part, content) = Part::read(rest)?;
        let end = find(content, &delimiter)?;
        part.push(&content[..end], &mut query)?;
        rest = &content[end + delimiter.len()..];
    }
}

/// The head of a part.
#[derive(Default)]
struct Part {
    is_of_form: bool,
    name: String,
    is_file: bool,
    charset: Option<String>,
    length: Option<usize>,
}

impl Part {
    /// Reads a head; returns what follows it, too.
    fn read(mut rest: &[u8]) -> Option<(Self, &[u8])> {
        let mut headers: Vec<String> = Vec::new();
        loop {
            let end = find(rest, b"\r\n").filter(|end| *end <= MAX_HEADER)?;
            let line = std::str::from_utf8(&rest[..end]).ok()?;
            rest = &rest[end + 2..];
            if line.is_empty() {
                break;
            }
            match line.strip_prefix([' ', '\t']) {
                Some(more) => {
                    let last = headers.last_mut()?;
                    last.push(' ');
                    last.push_str(more);
                }
                None => headers.push(line.to_owned()),
            }
            if headers.len() > MAX_HEADERS {
                return None;
            }
        }
        let mut part = Self::default();
        for header in &headers {
            let (name, value) = header.split_once(':')?;
            let value = value.trim_start_matches([' ', '\t']);
            match name.trim().to_ascii_lowercase().as_str() {
                "content-disposition" => part.disposition(value),
                "content-type" => part.charset = options(value, plain).remove("charset"),
                "content-length" => part.length = Some(value.parse().ok()?),
                _ => {}
            }
        }
        part.is_of_form.then_some((part, rest))
    }

    fn disposition(&mut self, value: &str) {
        let kind = value.split(';').next().unwrap_or_default();
        self.is_of_form = kind.trim().eq_ignore_ascii_case("form-data");
        let mut options = options(value, as_browsers_quote);
        self.name = options.remove("name").unwrap_or_default();
        self.is_file = options.get("filename").is_some_and(|name| !name.is_empty());
    }

    /// Adds the part to a query; `None` if its content is no text of its charset.
    fn push(&self, content: &[u8], query: &mut String) -> Option<()> {
        if self.length.is_some_and(|length| length != content.len()) {
            return None;
        }
        if self.is_file {
            push_pair(query, &self.name, content);
            return Some(());
        }
        let charset = self.charset.as_deref().unwrap_or("utf8").to_ascii_lowercase();
        match charset.as_str() {
            "utf8" | "utf-8" => push_pair(query, &self.name, std::str::from_utf8(content).ok()?.as_bytes()),
            "ascii" | "us-ascii" if content.is_ascii() => push_pair(query, &self.name, content),
            "latin1" | "latin-1" | "iso-8859-1" => {
                let text: String = content.iter().map(|byte| char::from(*byte)).collect();
                push_pair(query, &self.name, text.as_bytes());
            }
            _ => return None,
        }
        Some(())
    }
}

/// The options of a header, `; NAME=VALUE`, by their names in lower case; of several, the last.
fn options(header: &str, unquoted: fn(&str, bool) -> String) -> HashMap<String, String> {
    let mut options = HashMap::new();
    let mut rest = header;
    while let Some(at) = rest.find(';') {
        rest = &rest[at + 1..];
        let Some((name, after)) = rest.split_once('=') else { break };
        let name = name.trim_matches(' ');
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            continue;
        }
        let after = after.trim_start_matches(' ');
        let length = match after.strip_prefix('"') {
            Some(quoted) => {
                let mut is_escaped = false;
                let end = quoted.find(|c: char| {
                    let is_end = c == '"' && !is_escaped;
                    is_escaped = c == '\\' && !is_escaped;
                    is_end
                });
                end.map_or(0, |end| end + 2)
            }
            None => after
                .find(|c: char| !(c.is_ascii_alphanumeric() || "!#$%&'*+.^_`|~-".contains(c)))
                .unwrap_or(after.len()),
        };
        if length > 0 {
            let name = name.to_ascii_lowercase();
            let value = unquoted(&after[..length], name == "filename");
            options.insert(name, value);
        }
        rest = &after[length..];
    }
    options
}

fn plain(value: &str, _: bool) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    inner.map_or_else(|| value.to_owned(), |inner| inner.replace("\\\\", "\\").replace("\\\"", "\""))
}

/// A value in the form of browsers, which escape three characters with `%`, or in the older one with backslashes.
fn as_browsers_quote(value: &str, is_file_name: bool) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let mut text = inner.unwrap_or(value).to_owned();
    if inner.is_some() && text.contains("\\\"") {
        text = text.replace("\\\\", "\\").replace("\\\"", "\"");
    } else if text.contains('%') {
        text = text.replace("%0D", "\r").replace("%0A", "\n").replace("%22", "\"");
    }
    if is_file_name && (text.get(1..3) == Some(":\\") || text.starts_with("\\\\")) {
        text = text.rsplit('\\').next().unwrap_or_default().to_owned();
    }
    text
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
