//! Reads XML sitemaps and feeds: turns parser events into entries, without a tree and without a stack.

use std::collections::VecDeque;

use quick_xml::events::{BytesStart, Event};
use url::Url;

use super::{Alternate, MAX_VALUE, SitemapEntry, SitemapKind, address};
use crate::lenient_xml;
use crate::text_source::WINDOW;

/// Elements that nest deeper than this are skipped.
const MAX_DEPTH: u64 = 100;
/// Number of damaged places after which the rest is ignored: after each of them up to a window of text is scanned
/// again.
const MAX_DAMAGES: usize = 1_000;
/// Greatest number of alternates of one entry.
const MAX_ALTERNATES: usize = 1_000;

/// The state of a document that is being read.
#[derive(Default)]
pub(super) struct Document {
    kind: Option<SitemapKind>,
    /// Number of open elements.
    depth: u64,
    entry: Option<Draft>,
    field: Option<OpenField>,
    damages: usize,
    invalid: usize,
    relative: usize,
    is_too_deep: bool,
    is_damaged: bool,
    is_done: bool,
}

/// An entry that is not closed yet.
#[derive(Default)]
struct Draft {
    /// Depth of its element.
    depth: u64,
    values: [Option<String>; 4],
    alternates: Vec<Alternate>,
}

/// The kind of an element within an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Loc,
    LastMod,
    ChangeFreq,
    Priority,
}

/// A field that is not closed yet.
struct OpenField {
    field: Field,
    depth: u64,
    text: String,
    /// The value is complete: only white space may follow.
    is_full: bool,
    /// The value is invalid: it is too long, or has an entity that the document declares.
    is_bad: bool,
}

/// The meaning of `&name;`.
enum Reference {
    Char(char),
    /// Not a reference: an ampersand that was not escaped.
    Text,
    /// An entity that the document declares, which is never resolved, or an invalid character.
    Unknown,
}

impl Document {
    pub(super) fn kind(&self) -> Option<SitemapKind> {
        self.kind
    }

    pub(super) fn invalid(&self) -> usize {
        self.invalid
    }

    /// Number of entries with a URL that is not absolute, which feeds may have and sitemaps may not.
    pub(super) fn relative(&self) -> usize {
        self.relative
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.is_too_deep
    }

    /// Whether the rest of the document can be ignored.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Reads the complete parts of a piece of text. Returns the number of bytes read; the caller must put the rest at
    /// the front of the next piece.
    pub(super) fn read(
        &mut self,
        window: &str,
        is_last: bool,
        base: &Url,
        found: &mut VecDeque<SitemapEntry>,
    ) -> usize {
        let mut reader = lenient_xml::reader(window);
        loop {
            let before = window.len() - reader.get_ref().len();
            // If the unread text starts at the front of a full window, waiting for more text cannot help.
            let may_wait = !is_last && before > 0;
            match reader.read_event() {
                Ok(Event::Eof) => return window.len(),
                Ok(event) => {
                    // Text that touches the end may continue after it.
                    if reader.get_ref().is_empty() && may_wait && matches!(event, Event::Text(_)) {
                        return before;
                    }
                    self.event(&event, base, found);
                }
                Err(_) if may_wait => return before,
                Err(_) => {
                    self.is_damaged = true;
                    self.damages += 1;
                    if self.damages > MAX_DAMAGES {
                        self.is_done = true;
                    }
                    return lenient_xml::behind_damage(window, before);
                }
            }
            if self.is_done {
                return window.len();
            }
        }
    }

    /// Handles the end of the document.
    pub(super) fn finish(&mut self, base: &Url, found: &mut VecDeque<SitemapEntry>) {
        if let Some(draft) = self.entry.take() {
            // A value that is cut off is dropped; an entry whose URL is complete is kept.
            self.is_damaged = true;
            self.field = None;
            self.close(draft, base, found);
        }
        self.is_damaged |= self.depth > 0 && !self.is_done;
    }

    fn event(&mut self, event: &Event<'_>, base: &Url, found: &mut VecDeque<SitemapEntry>) {
        match event {
            Event::Start(start) => {
                self.depth = self.depth.saturating_add(1);
                self.start(start, base, found);
            }
            Event::Empty(start) => {
                if self.depth < MAX_DEPTH {
                    self.empty(start, base);
                }
            }
            Event::End(end) => self.end(end.local_name().into_inner(), base, found),
            Event::Text(text) => self.text(text),
            Event::CData(text) => self.text(text),
            Event::GeneralRef(name) => match reference(name) {
                Reference::Char(c) => self.text(c.encode_utf8(&mut [0; 4])),
                Reference::Text => {
                    self.text("&");
                    self.text(name);
                    self.text(";");
                }
                Reference::Unknown => {
                    if let Some(open) = self.open_field() {
                        open.is_bad = true;
                    }
                }
            },
            Event::Comment(_) | Event::PI(_) | Event::Decl(_) | Event::DocType(_) | Event::Eof => {}
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, base: &Url, found: &mut VecDeque<SitemapEntry>) {
        if self.depth > MAX_DEPTH {
            self.is_too_deep = true;
            return;
        }
        let local = start.local_name();
        let name = local.into_inner();
        if self.kind.is_none() {
            self.root(name);
        }
        if self.kind.and_then(container).is_some_and(|container| is(name, container)) {
            // An entry within an entry means that the end of the first one is missing.
            if let Some(draft) = self.entry.take() {
                self.is_damaged = true;
                self.depth = draft.depth;
                self.field = None;
                self.close(draft, base, found);
            }
            self.entry = Some(Draft { depth: self.depth, ..Draft::default() });
            return;
        }
        let Some(draft) = &self.entry else { return };
        let (draft_depth, kind) = (draft.depth, self.kind);
        let Some(field) = kind.and_then(|kind| field(kind, name)) else {
            if self.depth == draft_depth + 1 {
                self.link(start, base);
            }
            return;
        };
        // A field within a field means that the end of the first one is missing.
        if self.field.as_ref().is_some_and(|open| self.depth == open.depth + 1) {
            self.is_damaged = true;
            self.close_field();
            self.depth = draft_depth + 1;
        }
        // Deeper elements belong to an extension, such as the `loc` of an image.
        if self.depth == draft_depth + 1 {
            self.field = Some(OpenField {
                field,
                depth: self.depth,
                text: String::new(),
                is_full: false,
                is_bad: false,
            });
        }
    }

    /// Handles the element that determines the kind of the document.
    fn root(&mut self, name: &str) {
        const KINDS: [(&str, SitemapKind); 9] = [
            ("urlset", SitemapKind::UrlSet),
            ("sitemapindex", SitemapKind::Index),
            ("rss", SitemapKind::Rss),
            ("RDF", SitemapKind::Rss),
            ("feed", SitemapKind::Atom),
            // Documents whose root element is missing.
            ("url", SitemapKind::UrlSet),
            ("sitemap", SitemapKind::Index),
            ("item", SitemapKind::Rss),
            ("entry", SitemapKind::Atom),
        ];
        self.kind = KINDS.iter().find(|(root, _)| is(name, root)).map(|(_, kind)| *kind);
        // A page, such as an error page with status 200.
        self.is_done |= is(name, "html");
    }

    /// Handles an element without content.
    fn empty(&mut self, start: &BytesStart<'_>, base: &Url) {
        if self.kind.is_none() {
            self.root(start.local_name().into_inner());
        }
        if self.entry.as_ref().is_some_and(|draft| self.depth == draft.depth) {
            self.link(start, base);
        }
    }

    /// Handles a link whose URL is in an attribute: alternates of a sitemap, the URL of an Atom entry.
    fn link(&mut self, start: &BytesStart<'_>, base: &Url) {
        let Some(draft) = &mut self.entry else { return };
        if !is(start.local_name().into_inner(), "link") {
            return;
        }
        let (mut rel, mut href, mut hreflang) = (None, None, None);
        for attribute in start.html_attributes().with_checks(false).flatten() {
            let name = attribute.key.local_name();
            let place = match name.into_inner() {
                name if is(name, "rel") => &mut rel,
                name if is(name, "href") => &mut href,
                name if is(name, "hreflang") => &mut hreflang,
                _ => continue,
            };
            *place = unescaped(&attribute.value);
        }
        let Some(href) = href else { return };
        let rel = rel.as_deref().map(str::trim);
        match self.kind {
            Some(SitemapKind::UrlSet) if rel.is_some_and(|rel| is(rel, "alternate")) => {
                if draft.alternates.len() < MAX_ALTERNATES
                    && let Some(href) = address(href.trim(), base)
                {
                    let hreflang =
                        hreflang.map(|lang| lang.trim().to_owned()).filter(|lang| !lang.is_empty());
                    draft.alternates.push(Alternate { hreflang, href });
                }
            }
            Some(SitemapKind::Atom) if rel.is_none_or(|rel| is(rel, "alternate")) => {
                draft.values[Field::Loc as usize].get_or_insert(href);
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &str, base: &Url, found: &mut VecDeque<SitemapEntry>) {
        if self.depth > MAX_DEPTH {
            self.depth -= 1;
            return;
        }
        if let (Some(open), Some(kind)) = (&self.field, self.kind)
            && (self.depth <= open.depth || field(kind, name) == Some(open.field))
        {
            self.depth = open.depth;
            self.close_field();
        }
        if self.kind.and_then(container).is_some_and(|container| is(name, container))
            && let Some(draft) = self.entry.take()
        {
            self.depth = draft.depth;
            self.close(draft, base, found);
        }
        self.depth = self.depth.saturating_sub(1);
    }

    /// The open field, if the current text belongs to it directly.
    fn open_field(&mut self) -> Option<&mut OpenField> {
        let depth = self.depth;
        self.field.as_mut().filter(|open| open.depth == depth)
    }

    fn text(&mut self, text: &str) {
        let Some(open) = self.open_field() else { return };
        // White space around a value may have any length.
        let text = if open.text.is_empty() { text.trim_start() } else { text };
        if open.is_full || open.text.len() + text.len() > MAX_VALUE {
            let value = text.trim_end();
            if open.is_full || open.text.len() + value.len() > MAX_VALUE {
                open.is_bad |= !value.trim_start().is_empty();
            } else {
                open.text.push_str(value);
            }
            open.is_full = true;
            return;
        }
        open.text.push_str(text);
    }

    fn close_field(&mut self) {
        let Some(open) = self.field.take() else { return };
        if let Some(draft) = &mut self.entry
            && !open.is_bad
        {
            let text = open.text.trim();
            if !text.is_empty() {
                draft.values[open.field as usize].get_or_insert_with(|| text.to_owned());
            }
        }
    }

    fn close(&mut self, draft: Draft, base: &Url, found: &mut VecDeque<SitemapEntry>) {
        let [loc, lastmod, changefreq, priority] = draft.values;
        let is_relative = loc.as_deref().is_some_and(|loc| !loc.contains("://"));
        match loc.and_then(|loc| address(loc.trim(), base)) {
            Some(loc) => {
                let is_of_sitemap = matches!(self.kind, Some(SitemapKind::UrlSet | SitemapKind::Index));
                self.relative += usize::from(is_relative && is_of_sitemap);
                found.push_back(SitemapEntry {
                    loc,
                    lastmod,
                    changefreq,
                    priority: priority.and_then(|text| text.parse().ok()).filter(|p| (0.0..=1.0).contains(p)),
                    alternates: draft.alternates,
                });
            }
            None => self.invalid += 1,
        }
    }
}

/// The name of the entry element.
fn container(kind: SitemapKind) -> Option<&'static str> {
    match kind {
        SitemapKind::UrlSet => Some("url"),
        SitemapKind::Index => Some("sitemap"),
        SitemapKind::Rss => Some("item"),
        SitemapKind::Atom => Some("entry"),
        SitemapKind::Text => None,
    }
}

/// The field that an element of an entry stands for.
fn field(kind: SitemapKind, name: &str) -> Option<Field> {
    const SITEMAP: [(&str, Field); 4] = [
        ("loc", Field::Loc),
        ("lastmod", Field::LastMod),
        ("changefreq", Field::ChangeFreq),
        ("priority", Field::Priority),
    ];
    const RSS: [(&str, Field); 3] =
        [("link", Field::Loc), ("pubDate", Field::LastMod), ("date", Field::LastMod)];
    const ATOM: [(&str, Field); 1] = [("updated", Field::LastMod)];
    let fields: &[(&str, Field)] = match kind {
        SitemapKind::UrlSet | SitemapKind::Index => &SITEMAP,
        SitemapKind::Rss => &RSS,
        SitemapKind::Atom => &ATOM,
        SitemapKind::Text => &[],
    };
    fields.iter().find(|(known, _)| is(name, known)).map(|(_, field)| *field)
}

/// Compares names without regard to case.
fn is(name: &str, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
}

fn reference(name: &str) -> Reference {
    match name {
        "amp" => return Reference::Char('&'),
        "lt" => return Reference::Char('<'),
        "gt" => return Reference::Char('>'),
        "quot" => return Reference::Char('"'),
        "apos" => return Reference::Char('\''),
        _ => {}
    }
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        let char = code.ok().and_then(char::from_u32).filter(|c| !c.is_control() || c.is_ascii_whitespace());
        return char.map_or(Reference::Unknown, Reference::Char);
    }
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == ':')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '-' | '.'));
    if is_name { Reference::Unknown } else { Reference::Text }
}

/// The value of an attribute; `None` if it is too long or has an entity that the document declares.
fn unescaped(value: &str) -> Option<String> {
    if value.len() > MAX_VALUE {
        return None;
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let known = rest.find(['&', ';']).filter(|end| rest[*end..].starts_with(';'));
        let known = known.map(|end| (reference(&rest[..end]), end));
        match known {
            Some((Reference::Char(c), end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            Some((Reference::Unknown, _)) => return None,
            Some((Reference::Text, _)) | None => out.push('&'),
        }
    }
    out.push_str(rest);
    Some(out)
}

/// A window must be able to hold the longest value with its markup.
const _: () = assert!(WINDOW > 2 * MAX_VALUE);
