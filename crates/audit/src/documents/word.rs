//! Word files (.docx): XML files in a ZIP file, as ECMA-376 (Office Open XML) describes them.

use std::collections::HashMap;
use std::io::{Cursor, Read};

use huntsman_text::words;
use huntsman_xpath::{Document, Kind, Node};
use zip::ZipArchive;
use zip::result::ZipError;

use super::{Found, Link, MAX_LINKS};

/// How ZIP files begin.
const ZIP: &[u8] = b"PK\x03\x04";
/// The media type of Word files.
pub(super) const MEDIA_TYPE: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
/// Bytes of a part after unpacking. A small file may unpack to gigabytes.
const MAX_PART: u64 = 16 << 20;

/// Whether a body is such a file, by its beginning, and its media type or its name.
pub(super) fn is_word(body: &[u8], media_type: &str, path: &str) -> bool {
    body.starts_with(ZIP) && (media_type == MEDIA_TYPE || path.ends_with(".docx"))
}

/// Reads a file: the title in its data, the words of its text, and where its links lead.
pub(super) fn read(body: &[u8]) -> Result<Found, String> {
    let mut archive = ZipArchive::new(Cursor::new(body)).map_err(|error| format!("ZIP: {error}"))?;
    let main = part(&mut archive, "word/document.xml")?.ok_or("it has no word/document.xml")?;
    let targets =
        part(&mut archive, "word/_rels/document.xml.rels")?.map_or_else(HashMap::new, |part| targets(&part));
    let mut found = of_main(&main, &targets);
    found.title = part(&mut archive, "docProps/core.xml")?.and_then(|core| {
        let title = elements(&core).find(|&node| core.local_name(node) == "title")?;
        Some(text_of(&core, title))
    });
    Ok(found)
}

/// A part, or `None` if the file does not have it.
fn part(archive: &mut ZipArchive<Cursor<&[u8]>>, name: &str) -> Result<Option<Document>, String> {
    let file = match archive.by_name(name) {
        Ok(file) => file,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let mut xml = Vec::new();
    file.take(MAX_PART + 1).read_to_end(&mut xml).map_err(|error| format!("{name}: {error}"))?;
    if xml.len() as u64 > MAX_PART {
        return Err(format!("{name} has more than {MAX_PART} bytes"));
    }
    Document::read_xml(&String::from_utf8_lossy(&xml)).map(Some).map_err(|error| format!("{name}: {error}"))
}

fn elements(document: &Document) -> impl Iterator<Item = Node> + '_ {
    document.descendants(document.root()).filter(|&node| document.kind(node) == Kind::Element)
}

/// The value of an attribute by its name without a prefix.
fn attribute<'a>(document: &'a Document, node: Node, name: &str) -> Option<&'a str> {
    let mut attributes = document.attributes(node);
    attributes.find(|&found| document.local_name(found) == name).map(|found| document.value(found))
}

fn text_of(document: &Document, node: Node) -> String {
    let texts = document.descendants(node).filter(|&inner| document.kind(inner) == Kind::Text);
    texts.map(|text| document.value(text)).collect()
}

/// The addresses outside of the file, by the ids that its text uses.
fn targets(relations: &Document) -> HashMap<String, String> {
    let external = elements(relations).filter(|&node| {
        relations.local_name(node) == "Relationship"
            && attribute(relations, node, "TargetMode") == Some("External")
    });
    let pairs = external.filter_map(|node| {
        Some((attribute(relations, node, "Id")?.to_owned(), attribute(relations, node, "Target")?.to_owned()))
    });
    pairs.collect()
}

fn of_main(main: &Document, targets: &HashMap<String, String>) -> Found {
    let mut found = Found::default();
    let mut said = String::new();
    for node in elements(main) {
        match main.local_name(node) {
            "t" => said.push_str(&text_of(main, node)),
            // A word may be in several runs, so only these end it.
            "p" | "tab" | "br" | "cr" => said.push('\n'),
            "hyperlink" if found.links.len() < MAX_LINKS => {
                let target = attribute(main, node, "id").and_then(|id| targets.get(id));
                let link =
                    target.map(|href| Link { href: href.clone(), name: text_of(main, node), at: None });
                found.links.extend(link);
            }
            _ => {}
        }
    }
    found.words = words::count(&said);
    found
}
