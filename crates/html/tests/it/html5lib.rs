//! Replays the html5lib tokenizer suite, which is not part of the project: see the message of the ignored test.

use std::path::{Path, PathBuf};

use huntsman_html::{Attributes, Context, Name, Sink, Span, State, TextKind, decode, tokenize_from};
use serde_json::{Map, Value, json};

/// Collects tokens in the suite's form.
struct Tokens<'a> {
    doc: &'a str,
    attributes: Map<String, Value>,
    tokens: Vec<Value>,
}

impl Tokens<'_> {
    fn name(&self, name: Name) -> String {
        name.span().of(self.doc).to_ascii_lowercase().replace('\0', "\u{FFFD}")
    }

    fn text(&mut self, text: &str) {
        if let Some([kind, Value::String(last)]) =
            self.tokens.last_mut().and_then(Value::as_array_mut).map(Vec::as_mut_slice)
            && kind == "Character"
        {
            last.push_str(text);
        } else if !text.is_empty() {
            self.tokens.push(json!(["Character", text]));
        }
    }
}

fn unix_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

impl Sink for Tokens<'_> {
    fn text(&mut self, raw: Span, kind: TextKind) {
        let raw = raw.of(self.doc);
        let text = match kind {
            // In data the tokenizer passes NUL on; `decode` would replace it.
            TextKind::Data => {
                raw.split('\0').map(|part| decode(part, Context::Text)).collect::<Vec<_>>().join("\0")
            }
            TextKind::Rcdata => decode(raw, Context::Text).into_owned(),
            TextKind::Cdata => unix_lines(raw),
            TextKind::Rawtext | TextKind::Script | TextKind::Plaintext => {
                unix_lines(raw).replace('\0', "\u{FFFD}")
            }
        };
        self.text(&text);
    }

    fn open(&mut self, _name: Name) -> Attributes {
        self.attributes = Map::new();
        Attributes::Wanted
    }

    fn attr(&mut self, name: Name, value: Span) {
        let value = decode(value.of(self.doc), Context::Attribute).into_owned();
        self.attributes.entry(self.name(name)).or_insert(Value::String(value));
    }

    fn opened(&mut self, name: Name, self_closing: bool) -> State {
        let attributes = std::mem::take(&mut self.attributes);
        self.tokens.push(if self_closing {
            json!(["StartTag", self.name(name), attributes, true])
        } else {
            json!(["StartTag", self.name(name), attributes])
        });
        State::Data
    }

    fn close(&mut self, name: Name) {
        self.tokens.push(json!(["EndTag", self.name(name)]));
    }

    fn comment(&mut self, content: Span, _start: u32) {
        let text = unix_lines(content.of(self.doc)).replace('\0', "\u{FFFD}");
        self.tokens.push(json!(["Comment", text]));
    }

    fn doctype(&mut self, _content: Span) {
        self.tokens.push(json!(["DOCTYPE"]));
    }
}

/// Undoes the `\uXXXX` of a doubly escaped string; `None` for a lone surrogate, which UTF-8 cannot encode.
fn unescaped(text: &str) -> Option<String> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        units.extend(rest[..at].encode_utf16());
        units.push(u16::from_str_radix(rest.get(at + 2..at + 6)?, 16).ok()?);
        rest = &rest[at + 6..];
    }
    units.extend(rest.encode_utf16());
    String::from_utf16(&units).ok()
}

fn unescape_all(value: &mut Value) -> Option<()> {
    match value {
        Value::String(text) => *text = unescaped(text)?,
        Value::Array(list) => list.iter_mut().try_for_each(unescape_all)?,
        Value::Object(map) => {
            for (key, mut value) in std::mem::take(map) {
                unescape_all(&mut value)?;
                map.insert(unescaped(&key)?, value);
            }
        }
        _ => {}
    }
    Some(())
}

/// The expected tokens, with doctypes reduced to their position and neighbouring texts merged.
fn wanted(output: &Value) -> Vec<Value> {
    let mut sink = Tokens { doc: "", attributes: Map::new(), tokens: Vec::new() };
    for token in output.as_array().expect("a list of tokens") {
        match token[0].as_str().expect("the kind of a token") {
            "Character" => sink.text(token[1].as_str().expect("text")),
            "DOCTYPE" => sink.tokens.push(json!(["DOCTYPE"])),
            _ => sink.tokens.push(token.clone()),
        }
    }
    sink.tokens
}

fn state(name: &str) -> State {
    match name {
        "Data state" => State::Data,
        "RCDATA state" => State::Rcdata,
        "RAWTEXT state" => State::Rawtext,
        "Script data state" => State::Script,
        "PLAINTEXT state" => State::Plaintext,
        "CDATA section state" => State::Cdata,
        other => panic!("unknown state {other}"),
    }
}

fn test_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(test_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
#[ignore = "needs the html5lib tokenizer tests in $HUNTSMAN_ORACLES/html5lib"]
fn html5lib_oracle() {
    let folder = std::env::var_os("HUNTSMAN_ORACLES").expect("HUNTSMAN_ORACLES is set");
    let files = test_files(&Path::new(&folder).join("html5lib"));
    let (mut cases, mut skipped, mut doctypes) = (0, 0, 0);
    let mut failures = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable test file");
        // A JSON reader may refuse what UTF-8 cannot hold; the suite has such strings only doubly escaped.
        let suite: Value = serde_json::from_str(&text).expect("JSON");
        // `xmlViolationTests` belong to an optional mode that makes output fit for XML; it does not exist here.
        for test in suite["tests"].as_array().into_iter().flatten() {
            let mut test = test.clone();
            let is_escaped = test["doubleEscaped"] == true;
            let states: Vec<State> = match test["initialStates"].as_array() {
                Some(names) => names.iter().map(|name| state(name.as_str().expect("a name"))).collect(),
                None => vec![State::Data],
            };
            let is_sayable = !is_escaped
                || (unescape_all(&mut test["input"]).is_some()
                    && unescape_all(&mut test["output"]).is_some());
            if !is_sayable {
                skipped += states.len();
                continue;
            }
            let input = test["input"].as_str().expect("an input");
            let wanted = wanted(&test["output"]);
            doctypes += usize::from(wanted.iter().any(|token| token[0] == "DOCTYPE"));
            for state in states {
                cases += 1;
                let mut sink = Tokens { doc: input, attributes: Map::new(), tokens: Vec::new() };
                tokenize_from(input, state, test["lastStartTag"].as_str().unwrap_or_default(), &mut sink);
                if sink.tokens != wanted {
                    let name = file.file_name().unwrap_or_default();
                    failures.push(format!(
                        "{name:?} {state:?} {input:?}\n  got    {:?}\n  wanted {wanted:?}",
                        sink.tokens
                    ));
                }
            }
        }
    }
    println!(
        "html5lib: {} files, {cases} cases ({doctypes} inputs with a doctype, place only), {} failed, {skipped} skipped (lone surrogates)",
        files.len(),
        failures.len()
    );
    for failure in failures.iter().take(20) {
        println!("{failure}");
    }
    assert!(cases > 0, "no cases found");
    assert!(failures.is_empty(), "{} of {cases} cases failed", failures.len());
}
