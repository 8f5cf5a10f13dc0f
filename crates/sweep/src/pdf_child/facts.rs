//! The title of a PDF file, and the addresses of its links.

use pdf_extract::{Document, Object, decode_text_string};

/// Characters of a title or an address.
const MAX_LINE: usize = 2_000;
/// Links that are written.
const MAX_LINKS: usize = 10_000;

/// The lines that tell them.
pub(super) fn of(document: &Document) -> Vec<String> {
    let links = document.get_pages().into_values().flat_map(|page| {
        let annotations = document.get_dictionary(page).and_then(|page| page.get_deref(b"Annots", document));
        let annotations = annotations.and_then(Object::as_array).map_or(&[][..], Vec::as_slice);
        annotations.iter().filter_map(|annotation| link(annotation, document)).collect::<Vec<_>>()
    });
    let lines = title(document).map(|title| ("Title", title)).into_iter();
    let lines = lines.chain(links.take(MAX_LINKS).map(|link| ("Link", link)));
    lines.map(|(name, text)| format!("{name}: {}", one_line(&text))).collect()
}

fn title(document: &Document) -> Option<String> {
    let info = document.trailer.get_deref(b"Info", document).and_then(Object::as_dict).ok()?;
    decode_text_string(info.get_deref(b"Title", document).ok()?).ok()
}

fn link(annotation: &Object, document: &Document) -> Option<String> {
    let annotation = document.dereference(annotation).and_then(|(_, found)| found.as_dict()).ok()?;
    let action = annotation.get_deref(b"A", document).and_then(Object::as_dict).ok()?;
    let address = action.get_deref(b"URI", document).and_then(Object::as_str).ok()?;
    Some(String::from_utf8_lossy(address).into_owned())
}

fn one_line(text: &str) -> String {
    text.chars().take(MAX_LINE).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
