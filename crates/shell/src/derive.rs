//! A struct with `#[derive(Item)]` for what was tried.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::tried::{Language, Tried};

/// Words that cannot be names of fields.
const KEYWORDS: [&str; 41] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "pub", "ref", "return", "self", "static", "struct", "trait",
    "type", "use", "where", "while",
];

/// The longest value that a comment shows.
const SHOWN: usize = 40;

/// The program text of an item with this name, which has a field for each query.
pub(crate) fn item(name: &str, tried: &[Tried]) -> String {
    let mut text = format!("#[derive(Debug, Item, Serialize)]\nstruct {name} {{\n");
    let mut taken = BTreeSet::new();
    for tried in tried {
        let field = free(tried.name.clone().unwrap_or_else(|| guessed(tried)), &mut taken);
        let re = tried.re.as_deref().map_or(String::new(), |re| format!(", re = {}", literal(re)));
        let _ = writeln!(text, "    // {}", comment(&tried.found));
        let _ = writeln!(text, "    #[item({} = {}{re})]", tried.language.name(), literal(&tried.query));
        let _ = writeln!(text, "    {field}: {},", kind(tried));
    }
    text.push('}');
    text
}

/// The type: how many values there are, and what all of them are.
fn kind(tried: &Tried) -> String {
    let values: Vec<&str> = tried.found.iter().map(|value| value.trim()).collect();
    let all = |is: fn(&str) -> bool| !values.is_empty() && values.iter().all(|value| is(value));
    let one = if tried.are_urls {
        "Url"
    } else if all(is_whole) {
        "u64"
    } else if all(is_number) {
        "f64"
    } else {
        "String"
    };
    match values.len() {
        0 => format!("Option<{one}>"),
        1 => one.to_owned(),
        _ => format!("Vec<{one}>"),
    }
}

/// Whether it is a number that counts; with a leading zero it is a code.
fn is_whole(value: &str) -> bool {
    (value == "0" || !value.starts_with('0'))
        && value.len() < 19
        && value.chars().all(|c| c.is_ascii_digit())
        && !value.is_empty()
}

fn is_number(value: &str) -> bool {
    let value = value.strip_prefix('-').unwrap_or(value);
    is_whole(value)
        || value.split_once('.').is_some_and(|(whole, part)| {
            is_whole(whole) && !part.is_empty() && part.chars().all(|c| c.is_ascii_digit())
        })
}

fn comment(values: &[String]) -> String {
    match values {
        [] => "nothing was found".to_owned(),
        [one] => format!("\"{}\"", shown(one)),
        [first, ..] => format!("{} values, the first \"{}\"", values.len(), shown(first)),
    }
}

/// A value in one line, without anything that could end the comment.
fn shown(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    let text = words.join(" ");
    let cut: String = text.chars().take(SHOWN).collect();
    let dots = if text.chars().count() > SHOWN { "…" } else { "" };
    format!("{}{dots}", huntsman_crawler::terminal::escape(&cut))
}

/// A name for the field, from the last part of the query that says something.
fn guessed(tried: &Tried) -> String {
    let query = match tried.language {
        Language::Css => {
            let first = tried.query.split(',').next().unwrap_or_default();
            first.split("::").next().unwrap_or_default()
        }
        Language::XPath => tried.query.trim_end_matches("/text()"),
        Language::Json => &tried.query,
    };
    // What stands in brackets says which element it is, if anything does: `meta[name=author]`, `//p[@class='price']`.
    let last =
        query.trim_end().rsplit([' ', '>', '/', '+', '~']).find(|part| !part.is_empty()).unwrap_or(query);
    let words = last.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-');
    let skipped = ["class", "id", "name", "property", "text", "has-class", "contains"];
    let words: Vec<&str> = words.filter(|word| word.chars().any(|c| c.is_ascii_alphabetic())).collect();
    let telling = words.iter().rev().find(|word| !skipped.contains(*word) && !word.is_empty());
    telling.or(words.last()).map_or_else(|| "field".to_owned(), |word| snake(word))
}

/// A word as the name of a field.
fn snake(word: &str) -> String {
    let mut name = String::new();
    for c in word.chars().take(60) {
        match c {
            c if c.is_ascii_uppercase() && name.ends_with(|last: char| last.is_ascii_lowercase()) => {
                name.push('_');
                name.push(c.to_ascii_lowercase());
            }
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            _ if !name.ends_with('_') => name.push('_'),
            _ => {}
        }
    }
    let name = name.trim_matches('_').trim_start_matches(|c: char| c.is_ascii_digit());
    if name.is_empty() { "field".to_owned() } else { name.to_owned() }
}

/// A name that no other field has and that is no word of Rust.
fn free(name: String, taken: &mut BTreeSet<String>) -> String {
    let name = if KEYWORDS.contains(&name.as_str()) { format!("{name}_") } else { name };
    let mut free = name.clone();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{name}_{number}");
        number += 1;
    }
    free
}

/// A text as a literal; raw if it would need escapes.
fn literal(text: &str) -> String {
    if text.chars().any(char::is_control) {
        return format!("{text:?}");
    }
    if !text.contains(['"', '\\']) {
        return format!("\"{text}\"");
    }
    let mut hashes = String::new();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(language: Language, query: &str, found: &[&str]) -> Tried {
        let found = found.iter().map(|value| (*value).to_owned()).collect();
        Tried { language, query: query.to_owned(), name: None, re: None, found, are_urls: false }
    }

    #[test]
    fn names_and_numbers_of_values_follow_from_what_was_found() {
        let price = Tried {
            re: Some(r"£([\d.]+)".to_owned()),
            ..tried(Language::Css, "p.price_color::text", &["51.77"])
        };
        let next =
            Tried { are_urls: true, ..tried(Language::Css, "li.next a.NextPage::attr(href)", &["/2"]) };
        let text = item(
            "Book",
            &[
                tried(Language::Css, "h1::text", &["A\nLight"]),
                price,
                tried(Language::XPath, "//div[@id=\"tags\"]/a/text()", &["a", "b"]),
                tried(Language::Json, "$.items[*].stock", &["1", "22"]),
                tried(Language::Css, ".type", &["x"]),
                tried(Language::Css, "h1", &[]),
                tried(Language::Css, ".zip", &["01234"]),
                next,
            ],
        );
        let expected = "#[derive(Debug, Item, Serialize)]
struct Book {
    // \"A Light\"
    #[item(css = \"h1::text\")]
    h1: String,
    // \"51.77\"
    #[item(css = \"p.price_color::text\", re = r\"£([\\d.]+)\")]
    price_color: f64,
    // 2 values, the first \"a\"
    #[item(xpath = r#\"//div[@id=\"tags\"]/a/text()\"#)]
    a: Vec<String>,
    // 2 values, the first \"1\"
    #[item(json = \"$.items[*].stock\")]
    stock: Vec<u64>,
    // \"x\"
    #[item(css = \".type\")]
    type_: String,
    // nothing was found
    #[item(css = \"h1\")]
    h1_2: Option<String>,
    // \"01234\"
    #[item(css = \".zip\")]
    zip: String,
    // \"/2\"
    #[item(css = \"li.next a.NextPage::attr(href)\")]
    next_page: Url,
}";
        assert_eq!(text, expected);
    }

    #[test]
    fn nothing_of_a_page_ends_a_comment_or_a_literal() {
        let hostile =
            tried(Language::Css, "a[title='\"#']", &["x\n}\nfn main() {\u{2028}std::process::exit(1)}"]);
        let text = item("Page", &[hostile]);
        assert!(text.lines().all(|line| !line.trim_start().starts_with("fn")), "{text}");
        assert!(text.contains("r##\"a[title='\"#']\"##") && !text.contains('\u{2028}'), "{text}");
        assert_eq!(literal("a\u{85}b"), "\"a\\u{85}b\"");
    }
}
