//! How the source of a page is made: its declarations, and what a program left in it.

use huntsman_html::{CharsetSource, content_charset, decode_body};
use huntsman_text::lang::{self, Lang};

use crate::code::Code;
use crate::code::PageClass::Indexable;
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;
use crate::rule::Rule;

const fn code(name: &'static str) -> Code {
    Code::new("content", name)
}

const CODES: &[Code] = &[
    code("doctype-missing")
        .headline("Pages without a doctype")
        .text("The source of a page does not begin with a doctype.", "Browsers lay it out in quirks mode, by the rules of old browsers.", "Begin with `<!doctype html>`.")
        .source("HTML: the doctype").example("<html><head>", "<!doctype html><html><head>"),
    code("charset-late")
        .headline("Pages that state their encoding too late or not at all")
        .text("Neither `Content-Type` nor the first 1,024 bytes state the encoding of a page.", "Browsers guess it, and letters go wrong.", "Put `<meta charset=utf-8>` first in the head, or state it in the header.")
        .source("HTML: specifying the character encoding").example("Content-Type: text/html, and no meta", "<head><meta charset=utf-8>"),
    code("template-leftover")
        .headline("Parts of templates that were not filled in").judges(Indexable)
        .text("The title, the first main heading or the description has a field such as `{{name}}`, `[object Object]`, or an `undefined` that stands alone or where a name is expected (\"Welcome to undefined\").", "Readers see the inside of a program.", "Fill the field in where the page is made.")
        .source("editorial practice").example("<title>{{page.title}}</title>", "<title>Hawk moths</title>"),
    code("garbled-text")
        .headline("Text with broken letters").judges(Indexable)
        .text("The own text has three or more replacement characters, or letters of UTF-8 that were read in another encoding (`Ã©` for é); of the title one is enough. Pages that write of encodings are not told.", "Words cannot be read or found.", "State the encoding that the text has, and store it once.")
        .source("HTML: specifying the character encoding").example("CafÃ© and crÃªpes, naÃ¯ve", "Café and crêpes, naïve"),
    code("lang-content-mismatch")
        .headline("Pages in another language than they state").judges(Indexable)
        .text("The own text of 100 words or more is in another language than the html element states, as its first and its second half show with a certainty of 95 %. Related languages are not told apart.", "Screen readers use a wrong voice, and search engines a wrong audience.", "State the language of the text.")
        .source("WCAG 3.1.1").example("<html lang=en> and a text in French", "<html lang=fr>"),
];

pub(super) struct DocumentRules;

impl Rule for DocumentRules {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        // XML needs neither.
        if !page.is_xml() && !has_doctype(page.page().scanned().1) {
            findings.add(Finding::of("doctype-missing"));
        }
        if !page.is_xml() && is_charset_late(page) {
            findings.add(Finding::of("charset-late"));
        }
        let heading = page.facts().headings.iter().find(|heading| heading.level == 1);
        let description = page.descriptions().map(|(text, _)| text).next();
        let heads = [page.title(), heading.map(|heading| heading.text.as_str()), description.as_deref()];
        for text in heads.into_iter().flatten() {
            if let Some(left) = leftover(text, page.own_text()) {
                findings.add(Finding::of("template-leftover").value(left));
                break;
            }
        }
        if let Some(found) = garbled(page.title().unwrap_or_default(), page.own_text()) {
            findings.add(Finding::of("garbled-text").value(found));
        }
        let declared = page.lang();
        let mismatch = declared.as_deref().and_then(|lang| other_language(lang, page));
        if let Some(found) = mismatch {
            findings.add(Finding::of("lang-content-mismatch").value(found).limit(declared));
        }
    }
}

/// Whether a doctype stands before the first tag; comments and processing instructions may stand before it.
fn has_doctype(source: &str) -> bool {
    let mut rest = source.trim_start_matches('\u{FEFF}').trim_start();
    loop {
        let end = match rest {
            _ if rest.starts_with("<!--") => rest.find("-->").map(|at| at + 3),
            _ if rest.starts_with("<?") => rest.find('>').map(|at| at + 1),
            _ => return rest.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!doctype")),
        };
        let Some(end) = end else { return false };
        rest = rest[end..].trim_start();
    }
}

/// Whether neither the header nor the first bytes state an encoding.
fn is_charset_late(page: &AuditedPage<'_>) -> bool {
    const EARLY: usize = 1_024;
    let body = &page.page().response().body;
    let header = page.header("content-type").find_map(content_charset);
    let source = decode_body(&body[..body.len().min(EARLY)], header, None).source;
    matches!(source, CharsetSource::ValidUtf8 | CharsetSource::Detection)
}

/// What a template left in a text. A page whose own text is about such a word may have it.
fn leftover(text: &str, own_text: &str) -> Option<String> {
    const OBJECT: &str = "[object Object]";
    const WORD: &str = "undefined";
    const ENOUGH: usize = 3;
    let is_subject = |what: &str| own_text.matches(what).nth(ENOUGH - 1).is_some();
    if text.contains(OBJECT) && !is_subject(OBJECT) {
        return Some(OBJECT.to_owned());
    }
    let is_name = |name: &str| {
        let name = name.trim();
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.$|[]()'\" ".contains(c))
    };
    let field = text.split("{{").skip(1).find_map(|rest| {
        let (name, _) = rest.split_once("}}")?;
        is_name(name).then(|| format!("{{{{{name}}}}}"))
    });
    if let Some(field) = field.filter(|field| !is_subject(field)) {
        return Some(field);
    }
    let mut parts = text.split(['|', '-', '–', '—', '·', ':', ',']).map(str::trim);
    let is_apart = parts.any(|part| part == WORD || lacks_name(part, WORD));
    (is_apart && !is_subject(WORD)).then(|| WORD.to_owned())
}

/// Whether a text ends in this word behind one that a name follows: `Welcome to undefined`, `Posts by undefined`.
fn lacks_name(text: &str, word: &str) -> bool {
    const BEFORE: [&str; 9] = ["by", "dear", "for", "from", "hello", "hi", "of", "to", "welcome"];
    let mut words = text.trim_end_matches(['!', '.', '?']).split_whitespace().rev();
    words.next() == Some(word)
        && words.next().is_some_and(|before| BEFORE.iter().any(|known| before.eq_ignore_ascii_case(known)))
}

/// The first broken letters of a text; `None` if there are too few, or the page is about such letters.
fn garbled(title: &str, text: &str) -> Option<String> {
    const ENOUGH: usize = 3;
    const SUBJECT: [&str; 6] = ["mojibake", "utf-8", "utf8", "unicode", "encoding", "charset"];
    let of_title = broken_letters(title).next();
    let found = of_title.or_else(|| {
        let first = broken_letters(text).next()?;
        broken_letters(text).nth(ENOUGH - 1).map(|_| first)
    })?;
    let folded = format!("{title} {text}").to_lowercase();
    (!SUBJECT.iter().any(|word| folded.contains(word))).then(|| found.to_owned())
}

/// The places of a text with replacement characters, and with letters of UTF-8 that were read as Windows-1252. `Ã` and `â` are letters themselves,
/// so what follows must be a sign that stands in no word.
fn broken_letters(text: &str) -> impl Iterator<Item = &str> {
    const AFTER_A: [char; 16] =
        ['©', '¨', '¤', '¶', '¼', 'Ÿ', '¡', '³', '±', '§', '¢', '¥', '¦', '¯', '´', '®'];
    const AFTER_QUOTE: [char; 7] = ['™', 'œ', '“', '”', '¦', '˜', '¢'];
    // The first bytes of the three letters in UTF-8: most texts have none of them.
    memchr::memchr3_iter(0xC3, 0xE2, 0xEF, text.as_bytes()).filter_map(move |at| {
        let mut next = text[at..].chars();
        let is_broken = match next.next()? {
            '\u{FFFD}' => true,
            'Ã' => next.next().is_some_and(|c| AFTER_A.contains(&c)),
            'â' => next.next() == Some('€') && next.next().is_some_and(|c| AFTER_QUOTE.contains(&c)),
            _ => false,
        };
        is_broken.then(|| &text[at..text.len() - next.as_str().len()])
    })
}

/// Languages that the guesser knows, related ones in one row: within a row it may take one for another.
const FAMILIES: [&str; 21] = [
    "es pt ca it fr ro",
    "nl af de",
    "da nb no nn sv",
    "en",
    "ru uk be bg mk sr hr bs sl",
    "cs sk pl",
    "id ms jv",
    "hi mr ne",
    "fa ar ur",
    "tr az uz tk",
    "zh ja",
    "ko",
    "el",
    "he yi",
    "hu",
    "fi et",
    "lt lv",
    "vi",
    "th",
    "ka",
    "hy",
];

/// The language of the own text, if it is surely another one than the page states.
fn other_language(declared: &str, page: &AuditedPage<'_>) -> Option<String> {
    const MIN_WORDS: usize = 100;
    const SURE: f64 = 0.95;
    /// Bytes by which most pages show that they are in the language that they state. The guesser takes a quarter of its time for them.
    const FIRST_LOOK: usize = 512;
    let family = |lang: Lang| {
        let code = lang.two_letters()?;
        FAMILIES.iter().position(|row| row.split(' ').any(|known| known == code))
    };
    let stated = family(Lang::parse(declared)?)?;
    let text = page.own_text();
    if page.words() < MIN_WORDS {
        return None;
    }
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let glance = lang::detect(&second[..second.floor_char_boundary(FIRST_LOOK)], None);
    if family(glance.lang) == Some(stated) {
        return None;
    }
    let (first, second) = (lang::detect(first, None), lang::detect(second, None));
    let is_sure = first.lang == second.lang && first.confidence >= SURE && second.confidence >= SURE;
    let found = family(first.lang).filter(|_| is_sure)?;
    (found != stated).then(|| first.lang.two_letters().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doctype_may_stand_behind_comments() {
        for source in [
            "<!doctype html>",
            "\u{FEFF}\n<!DOCTYPE html PUBLIC \"x\">",
            "<?xml version=\"1.0\"?><!-- a --><!doctype html>",
        ] {
            assert!(has_doctype(source), "{source}");
        }
        for source in ["", "<html>", "<!-- <!doctype html> --><html>", "<!-- <!doctype html>"] {
            assert!(!has_doctype(source), "{source}");
        }
    }

    #[test]
    fn fields_of_templates_are_told_from_words_about_them() {
        for text in [
            "{{ page.title }}",
            "Boats [object Object]",
            "undefined | Shop",
            "Shop - undefined",
            "Welcome to undefined!",
        ] {
            assert!(leftover(text, "a text").is_some(), "{text}");
        }
        for text in [
            "Undefined behaviour",
            "undefined behaviour in C",
            "Why is my variable undefined?",
            "The sets {{1, 2}, {3}}",
            "{name}",
            "object Object",
        ] {
            assert_eq!(leftover(text, "a text"), None, "{text}");
        }
        assert_eq!(leftover("undefined - a value", "undefined is a value; undefined or undefined"), None);
    }

    #[test]
    fn broken_letters_are_told_from_those_of_portuguese() {
        assert_eq!(garbled("CafÃ©", ""), Some("Ã©".to_owned()));
        assert_eq!(garbled("", "\u{FFFD} itâ€™s crÃ¨me"), Some("\u{FFFD}".to_owned()));
        for (title, text) in
            [("IRMÃ E IRMÃO", "«IRMû IRMÃ, â € pâté"), ("", "CafÃ© once"), ("", "Mojibake is Ã© Ã© Ã© for é")]
        {
            assert_eq!(garbled(title, text), None, "{title} {text}");
        }
    }
}
