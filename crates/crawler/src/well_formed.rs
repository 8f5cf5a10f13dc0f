//! Whether a document is well-formed XML, as the programs demand that read sitemaps and feeds strictly.

use std::io::{BufReader, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::text_source::{TextSource, WINDOW};

/// Attributes of one tag that are looked at: each is compared with those before it.
const MAX_ATTRIBUTES: usize = 100;

/// Why a document is no well-formed XML 1.0, with the line; `None` if it is, as far as it is read.
///
/// The document may be packed with gzip. At most `max_bytes` of it are read, unpacked; 0 means no limit. It is read piece by piece: memory stays at the
/// size of the longest tag or text. Entities of HTML are none of XML unless the document declares entities, which are not read.
///
/// ```
/// use huntsman_crawler::xml_fault;
///
/// assert_eq!(xml_fault(b"<?xml version='1.0'?>\n<urlset/>", 0), None);
/// let blank = xml_fault(b"\n<?xml version='1.0'?>\n<urlset/>", 0);
/// assert_eq!(blank.as_deref(), Some("line 2: the XML declaration is not at the very beginning"));
/// ```
pub fn xml_fault(body: &[u8], max_bytes: u64) -> Option<String> {
    let text = Text { source: TextSource::new(body, max_bytes), window: String::new(), at: 0 };
    let mut reader = Reader::from_reader(BufReader::with_capacity(WINDOW, text));
    let mut buffer = Vec::new();
    let mut document = Structure::default();
    let mut line = 1;
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        if matches!(event, Ok(Event::Eof) | Err(_)) {
            let source = &reader.get_ref().get_ref().source;
            // What is wrong at the end of a part is wrong because the rest is missing.
            if source.is_cut() || source.is_torn() {
                return None;
            }
        }
        let fault = match event {
            Ok(Event::Eof) => return document.end().map(str::to_owned),
            Ok(event) => {
                let fault = document.fault(&event);
                if fault.is_none() {
                    line += event.bytes().filter(|byte| *byte == b'\n').count();
                }
                fault
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            return Some(format!("line {line}: {fault}"));
        }
    }
}

/// What was seen of a document.
#[derive(Debug, Default)]
struct Structure {
    depth: usize,
    has_begun: bool,
    has_root: bool,
    declares_entities: bool,
}

impl Structure {
    /// What is wrong with the next part, if anything is.
    fn fault(&mut self, event: &Event<'_>) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        let is_outside = self.depth == 0;
        if let Some(wrong) = event.chars().find(|c| !is_character(*c)) {
            return Some(format!("a character that XML does not have: U+{:04X}", u32::from(wrong)));
        }
        match event {
            Event::Decl(_) if !is_first => {
                Some("the XML declaration is not at the very beginning".to_owned())
            }
            Event::Start(_) | Event::Empty(_) if is_outside && self.has_root => {
                Some("an element behind the end of the document".to_owned())
            }
            Event::Start(tag) => {
                (self.has_root, self.depth) = (true, self.depth + 1);
                self.fault_of_attributes(tag)
            }
            Event::Empty(tag) => {
                self.has_root = true;
                self.fault_of_attributes(tag)
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                None
            }
            Event::Text(text) if is_outside && !text.trim_ascii().is_empty() => {
                Some("text outside of the document".to_owned())
            }
            Event::CData(_) | Event::GeneralRef(_) if is_outside => {
                Some("text outside of the document".to_owned())
            }
            Event::DocType(_) => {
                self.declares_entities = true;
                None
            }
            Event::GeneralRef(name) => self.fault_of_reference(name),
            _ => None,
        }
    }

    fn fault_of_attributes(&self, tag: &BytesStart<'_>) -> Option<String> {
        tag.attributes().take(MAX_ATTRIBUTES).find_map(|attribute| {
            let Ok(attribute) = attribute else { return Some("an attribute that is none".to_owned()) };
            let value = &*attribute.value;
            value.match_indices('&').find_map(|(at, _)| {
                let rest = &value[at + 1..];
                let is_name = |c: char| c.is_alphanumeric() || "#_.:-".contains(c);
                let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                if end == 0 || !rest[end..].starts_with(';') {
                    return Some("an ampersand that is not written as &amp;".to_owned());
                }
                self.fault_of_reference(&rest[..end])
            })
        })
    }

    fn fault_of_reference(&self, name: &str) -> Option<String> {
        let is_known = name.starts_with('#') || ["amp", "lt", "gt", "quot", "apos"].contains(&name);
        (!is_known && !self.declares_entities).then(|| format!("an entity that XML does not have: &{name};"))
    }

    /// What is wrong with the end of the document.
    fn end(&self) -> Option<&'static str> {
        if self.depth > 0 {
            return Some("it ends within an element");
        }
        (!self.has_root).then_some("it has no element")
    }
}

/// Whether XML 1.0 has a character (section 2.2).
fn is_character(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// The text of a document in UTF-8.
struct Text<'a> {
    source: TextSource<'a>,
    window: String,
    at: usize,
}

impl Read for Text<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.window.len() && !self.source.is_ended() {
            self.window.clear();
            self.at = 0;
            self.source.fill(&mut self.window, WINDOW);
        }
        let mut rest = &self.window.as_bytes()[self.at..];
        let read = rest.read(buffer)?;
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_strict_programs_read_have_no_fault() {
        for text in [
            "<urlset/>",
            "\u{feff}<?xml version=\"1.0\" encoding=\"UTF-8\"?>\r\n<!-- x --><urlset>\n</urlset>\n<!-- end -->\n",
            "<rss><channel><title>Moths &amp; more &#233;</title><d><![CDATA[<p>a & b]]></d></channel></rss>",
            "<!DOCTYPE rss [<!ENTITY uuml '&#252;'>]><rss>M&uuml;hle</rss>",
            "<u><l href=\"/?a=1&amp;b=2&#38;c\" x='é'/></u>",
        ] {
            assert_eq!(xml_fault(text.as_bytes(), 0), None, "{text}");
        }
        let utf16: Vec<u8> = "\u{feff}<?xml version='1.0' encoding='UTF-16'?><u>é</u>"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(xml_fault(&utf16, 0), None);
        let long = format!("<u>{}</u>", "<l>é\n</l>".repeat(50_000));
        assert_eq!(xml_fault(long.as_bytes(), 0), None);
        assert_eq!(xml_fault(long.as_bytes(), 100_000), None, "the end is not read");
    }

    #[test]
    fn each_fault_is_told_with_its_line() {
        for (text, expected) in [
            ("\n\n<?xml version='1.0'?><u/>", "line 3: the XML declaration"),
            ("<u>\n<l>/?a=1&b=2</l></u>", "line 2: "),
            ("<u>\n<l href='/?a=1&b=2'/></u>", "line 2: an ampersand"),
            ("<u>\n<l>a&nbsp;b</l></u>", "line 2: an entity that XML does not have: &nbsp;"),
            ("<u>\n<l h='&nbsp;'/></u>", "line 2: an entity"),
            ("<u>\n\n<l>\u{1}</l></u>", "line 3: a character that XML does not have: U+0001"),
            ("<u><l></u>", "line 1: "),
            ("<u>\n<l a=1/></u>", "line 2: an attribute"),
            ("<u/>\n<br>PHP Notice", "line 2: an element behind the end"),
            ("<u/>\n\nPHP Notice", "line 1: text outside"),
            ("PHP Notice\n<u/>", "line 1: text outside"),
            ("<u><l>", "it ends within an element"),
            ("<!-- nothing -->", "it has no element"),
        ] {
            let fault = xml_fault(text.as_bytes(), 0).unwrap_or_default();
            assert!(fault.starts_with(expected), "{text}: {fault}");
        }
        let long = format!("<u>{}<l>a & b</l></u>", "<l>é\n</l>".repeat(50_000));
        assert!(xml_fault(long.as_bytes(), 0).unwrap().starts_with("line 50001: "));
    }
}
