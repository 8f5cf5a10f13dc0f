//! Reads XML into a document.

use quick_xml::NsReader;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

use crate::document::{Builder, Document};
use crate::error::Error;

impl Document {
    /// Reads XML. What is not well-formed is read as far as it goes: an end tag without a start is passed over, and at an error of another
    /// kind the document ends.
    ///
    /// Entities are not expanded, but the five of XML and those of characters: others stay in the text as they are written. A document type
    /// declaration is passed over.
    ///
    /// # Errors
    /// There is no element at all; the message says at which byte reading ended. Or a limit of [`Builder`] is exceeded.
    pub fn read_xml(xml: &str) -> Result<Self, Error> {
        let mut reader = NsReader::from_str(xml);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.expand_empty_elements = true;
        let mut reading = Reading { builder: Document::builder(false), depth: 0, elements: 0 };
        let mut problem = None;
        loop {
            match reader.read_event() {
                Ok(Event::Eof) => break,
                Ok(Event::Start(start)) => reading.start(&reader, &start)?,
                Ok(event) => reading.event(event)?,
                Err(error) => {
                    problem = Some(error.to_string());
                    break;
                }
            }
        }
        if reading.elements == 0 {
            let reason = problem.unwrap_or_else(|| "the document ends".to_owned());
            return Err(Error::new(format!(
                "no XML: {reason} at byte {}, before any element",
                reader.buffer_position()
            )));
        }
        Ok(reading.builder.finish())
    }
}

struct Reading {
    builder: Builder,
    depth: usize,
    elements: usize,
}

impl Reading {
    fn start(&mut self, reader: &NsReader<&[u8]>, start: &BytesStart<'_>) -> Result<(), Error> {
        let namespace = resolved(&reader.resolver().resolve_element(start.name()).0);
        self.builder.open(&namespace, start.name().into_inner())?;
        self.depth += 1;
        self.elements += 1;
        for attribute in start.attributes().with_checks(false).flatten() {
            let key = attribute.key.into_inner();
            // Line ends and tabs of an attribute are blanks.
            let value = unescaped(&attribute.value.replace(['\n', '\t', '\r'], " "));
            match (key, key.strip_prefix("xmlns:")) {
                ("xmlns", _) => self.builder.namespace("", &value)?,
                (_, Some(prefix)) => self.builder.namespace(prefix, &value)?,
                _ => {
                    let namespace = resolved(&reader.resolver().resolve_attribute(attribute.key).0);
                    self.builder.attribute(&namespace, key, &value)?;
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>) -> Result<(), Error> {
        match event {
            Event::End(_) if self.depth > 0 => {
                self.depth -= 1;
                self.builder.close();
            }
            // Text beside the outermost element is white space, or a mistake.
            Event::Text(text) if self.depth > 0 => {
                self.builder.text(&text.replace("\r\n", "\n"))?;
            }
            Event::GeneralRef(entity) if self.depth > 0 => {
                let written = format!("&{};", &*entity);
                self.builder.text(&unescaped(&written))?;
            }
            Event::CData(data) if self.depth > 0 => self.builder.text(&data)?,
            Event::Comment(text) => self.builder.comment(&text)?,
            Event::PI(instruction) => {
                let (target, text) =
                    instruction.split_once(char::is_whitespace).unwrap_or((&instruction, ""));
                self.builder.instruction(target, text.trim_start())?;
            }
            _ => {}
        }
        Ok(())
    }
}

fn resolved(result: &ResolveResult<'_>) -> String {
    match result {
        ResolveResult::Bound(namespace) => namespace.into_inner().to_owned(),
        ResolveResult::Unbound | ResolveResult::Unknown(_) => String::new(),
    }
}

/// The text with its references to characters and the five entities of XML replaced; others stay.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        // No reference is longer; to look farther would take quadratic time.
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let reference = end.map(|end| (&rest[1..end], end));
        match reference.and_then(|(name, end)| Some((character(name)?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    let number = |digits: &str, base| u32::from_str_radix(digits, base).ok().and_then(char::from_u32);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix('#')? {
            hex if hex.starts_with(['x', 'X']) => number(&hex[1..], 16),
            decimal => number(decimal, 10),
        }
        .filter(|c| *c != '\0'),
    }
}
