//! `huntsman audit codes`: the catalogue of codes, on a terminal, as JSON, and as the page of the guide.

use std::fmt::Write as _;
use std::io::Write;

use huntsman::audit::Code;

use crate::exit::{Exit, Failure, Outcome};
use crate::render::escape;

/// What the guide says of each family.
const FAMILIES: [(&str, &str); 12] = [
    ("status", "What URLs answer: errors, redirects, and what robots.txt forbids."),
    ("index", "What search engines may index, and what sitemaps and canonical URLs say."),
    ("content", "Titles, descriptions, headings, texts and languages."),
    ("url", "How URLs are written."),
    ("hreflang", "Pages in several languages."),
    ("links", "Links: where they lead, and what they say."),
    ("images", "Images: whether they load, and what they say to those who do not see them."),
    ("security", "Encryption, headers that protect readers, and what servers tell about themselves."),
    ("performance", "Sizes, compression, and what browsers may keep."),
    ("access", "What people with other ways of reading need."),
    ("data", "What pages tell programs that show them elsewhere."),
    ("rendered", "What scripts change of pages, and what fails in them; judged with `--render`."),
];

pub(super) fn run(name: Option<&str>, json: bool) -> Outcome {
    let all = huntsman::audit::codes();
    let chosen: Vec<&Code> = all.iter().filter(|code| name.is_none_or(|name| name == code.name)).collect();
    if chosen.is_empty() {
        let name = escape(name.unwrap_or_default()).into_owned();
        return Err(Failure::usage(format!(
            "there is no code \"{name}\"; `huntsman audit codes` lists them"
        )));
    }
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &chosen)?;
        writeln!(out)?;
    } else if name.is_some() {
        for code in chosen {
            writeln!(out, "{}\n{} ({}, {})\n", code.headline, code.name, code.family, code.severity.name())?;
            writeln!(
                out,
                "When:   {}\nWhy:    {}\nFix:    {}\nSource: {}\n",
                code.when, code.why, code.fix, code.source
            )?;
            writeln!(out, "Wrong:  {}\nRight:  {}", code.wrong, code.right)?;
        }
    } else {
        for code in chosen {
            writeln!(out, "{:<12} {:<26} {:<8} {}", code.family, code.name, code.severity.name(), code.when)?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the page of the guide.
pub(super) fn markdown() -> Outcome {
    std::io::stdout().lock().write_all(page().as_bytes())?;
    Ok(Exit::Done)
}

fn page() -> String {
    let mut text = String::from(
        "# Codes of audits\n\n\
         <!-- Generated. After a change of codes: cargo run -- audit codes --markdown > docs/guide/audit-codes.md -->\n\n\
         What [an audit](auditing.md) tells. A name in brackets is a limit: `[title_min]` is the setting `audit_title_min`, or `title_min` in the table \
         `[audit]` of a settings file. Severities are changed in `[audit.severity]`.\n",
    );
    let all = huntsman::audit::codes();
    for (family, about) in FAMILIES {
        let _ = write!(text, "\n## {family}\n\n{about}\n");
        for code in all.iter().filter(|code| code.family == family) {
            let _ = write!(
                text,
                "\n### {}\n\n{} (`{}`). {}\n\n{} **{}**\n\n```text\nwrong  {}\nright  {}\n```\n\nSource: {}.\n",
                code.headline,
                capital(code.severity.name()),
                code.name,
                code.when,
                code.why,
                code.fix,
                code.wrong,
                code.right,
                code.source
            );
        }
    }
    text
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_guide_has_every_code_as_it_is() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/audit-codes.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let command = "cargo run -- audit codes --markdown > docs/guide/audit-codes.md";
        let page = page();
        assert!(written == page, "docs/guide/audit-codes.md is out of date; run: {command}");
        for code in huntsman::audit::codes() {
            assert!(
                page.contains(&format!("(`{}`)", code.name)),
                "{} is of no family that is listed",
                code.name
            );
        }
    }
}
