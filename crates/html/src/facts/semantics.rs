//! What elements mean to readers and to programs: their roles and states, names of buttons, frames and drawings, files that are loaded, lists,
//! tables, videos, and data for machines.

use super::structure::StartTag;
use super::{A, Collected, FactSink, INPUT, SCRIPT, TITLE, keep};
use crate::tokenizer::{Name, Sink, Span, State};

/// An attribute that is judged by itself: a role, a state of ARIA, `tabindex`, `autocomplete`, or the `for` of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeFact {
    /// Its name in the document, as written.
    pub name: Span,
    /// Its value in the document, with references that are not decoded.
    pub value: Span,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
}

/// A button.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ButtonFact {
    /// Its text with the `alt` of images in it; white space is collapsed.
    pub name: String,
    /// Whether something else names it: `aria-label`, `aria-labelledby`, a `title`, a label of an element in it.
    pub is_named_otherwise: bool,
    /// Whether it is hidden from readers.
    pub is_hidden: bool,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
}

/// What the elements of a page mean. Numbers in lists are offsets in bytes of names of tags.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Semantics {
    /// Roles, states of ARIA, `tabindex`, `autocomplete` of fields and forms, and `for` of labels.
    pub attributes: Vec<AttributeFact>,
    /// Buttons, also those by their role.
    pub buttons: Vec<ButtonFact>,
    /// Buttons that are images (`input type=image`) without a name.
    pub nameless_image_buttons: Vec<u32>,
    /// Frames that readers meet, without a name.
    pub nameless_frames: Vec<u32>,
    /// Drawings (`svg role=img`) without a name.
    pub nameless_drawings: Vec<u32>,
    /// `a` elements without an address that a script acts on.
    pub scripted_links: Vec<u32>,
    /// Scripts of the head that the page waits for.
    pub blocking_scripts: Vec<u32>,
    /// Scripts and style sheets whose content browsers check (`integrity`).
    pub checked_files: Vec<u32>,
    /// The contents of scripts with JSON-LD, in the document.
    pub json_ld: Vec<Span>,
    /// Videos with sound and without captions or subtitles.
    pub uncaptioned_videos: Vec<u32>,
    /// Tables of plain text with rows and columns, without a header.
    pub headless_tables: Vec<u32>,
    /// Items outside of lists, and what is no item in a list.
    pub broken_lists: Vec<u32>,
    /// Number of `main` elements and of elements with `role=main` that are not hidden.
    pub shown_mains: usize,
    /// How many elements are open at once, from the body on, where there are most.
    pub depth: usize,
    /// Number of facts that were left out, because there were more than 20,000 of one kind.
    pub cut: usize,
}

/// What is open while the facts are noted.
#[derive(Debug, Default)]
pub(super) struct Meaning {
    /// A drawing that needs a name, and has none so far.
    drawing: Option<u32>,
    /// Where the name of the tag of its title ends, while that is open.
    title: Option<u32>,
    video: Option<Video>,
    is_json_ld: bool,
}

#[derive(Clone, Copy, Debug)]
struct Video {
    offset: u32,
    has_source: bool,
    needs_captions: bool,
}

macro_rules! names {
    ($($name:ident = $text:literal),+ $(,)?) => { $( const $name: u64 = Name::pack($text); )+ };
}

names! {
    BUTTON = "button", FOR = "for", FORM = "form", FRAME = "frame", IFRAME = "iframe", LABEL = "label", LINK = "link", ROLE = "role",
    SELECT = "select", SOURCE = "source", SVG = "svg", TABINDEX = "tabindex", TEXTAREA = "textarea", TRACK = "track", VIDEO = "video",
}

impl FactSink<'_, '_, '_> {
    /// Notes what a start tag means, also one of SVG.
    pub(super) fn note_meaning(&mut self, name: Name, is_hidden: bool) {
        let (tag, offset) = (name.key(), name.span().start);
        self.note_attributes(tag, offset);
        if tag == TITLE {
            // The content of a title of SVG is HTML.
            self.meaning.title = self.meaning.drawing.map(|_| name.span().end);
        } else if self.page.is_foreign() {
            if tag == SVG && self.is("role", "img") && !self.is_named() && !is_hidden {
                self.meaning.drawing = Some(offset);
            }
            return;
        }
        match tag {
            A if !self.has("href") && self.has("onclick") && self.is_link() && !is_hidden => {
                keep(&mut self.facts.semantics.scripted_links, offset, &mut self.facts.semantics.cut);
            }
            BUTTON => self.button(tag, offset, is_hidden),
            INPUT => self.input_button(offset, is_hidden),
            IFRAME | FRAME => self.frame(offset, is_hidden),
            SCRIPT | LINK => self.file(tag, offset),
            VIDEO => {
                self.end_video();
                let is_silent = self.has("muted") || is_hidden;
                self.meaning.video =
                    Some(Video { offset, has_source: self.says("src"), needs_captions: !is_silent });
            }
            SOURCE | TRACK => self.part_of_video(tag),
            _ if tag != 0 && tag != A && self.is("role", "button") => self.button(tag, offset, is_hidden),
            _ => {}
        }
    }

    /// Whether an `a` element is a link for readers: its role, if it has one, is that of a link.
    fn is_link(&self) -> bool {
        !self.has("role") || self.is("role", "link")
    }

    fn note_attributes(&mut self, tag: u64, offset: u32) {
        let is_field = matches!(tag, INPUT | SELECT | TEXTAREA | FORM);
        for (name, value) in &self.attributes {
            let is_judged = match name.key() {
                ROLE | TABINDEX => true,
                FOR => tag == LABEL,
                _ => {
                    let name = name.span().of(self.doc);
                    let is_aria = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("aria-"));
                    is_aria || (is_field && name.eq_ignore_ascii_case("autocomplete"))
                }
            };
            if is_judged {
                let fact = AttributeFact { name: name.span(), value: *value, offset };
                keep(&mut self.facts.semantics.attributes, fact, &mut self.facts.semantics.cut);
            }
        }
    }

    fn button(&mut self, tag: u64, offset: u32, is_hidden: bool) {
        self.open.retain(|open| !matches!(open.what, Collected::Button(_)));
        let fact =
            ButtonFact { is_named_otherwise: self.is_named(), is_hidden, offset, ..ButtonFact::default() };
        let index = self.facts.semantics.buttons.len();
        if keep(&mut self.facts.semantics.buttons, fact, &mut self.facts.semantics.cut) {
            self.collect(Collected::Button(index), tag);
        }
    }

    fn input_button(&mut self, offset: u32, is_hidden: bool) {
        if self.is("type", "image") {
            if !self.says("alt") && !self.is_named() && !is_hidden {
                keep(&mut self.facts.semantics.nameless_image_buttons, offset, &mut self.facts.semantics.cut);
            }
        } else if self.is("type", "button") {
            let is_named_otherwise = self.is_named() || self.labels_open > 0 || self.has("id");
            let name = self.attribute("value").unwrap_or_default().trim().to_owned();
            let fact = ButtonFact { name, is_named_otherwise, is_hidden, offset };
            keep(&mut self.facts.semantics.buttons, fact, &mut self.facts.semantics.cut);
        }
    }

    fn frame(&mut self, offset: u32, is_hidden: bool) {
        let style = self.attribute("style").unwrap_or_default().to_ascii_lowercase().replace(' ', "");
        let is_unseen = style.contains("display:none") || style.contains("visibility:hidden");
        let is_tiny = ["width", "height"].iter().any(|name| {
            self.attribute(name).is_some_and(|size| matches!(size.trim(), "0" | "1" | "0px" | "1px"))
        });
        let is_met = !is_hidden && !is_unseen && !is_tiny && !self.is("tabindex", "-1");
        let is_decoration = self.is("role", "none") || self.is("role", "presentation");
        if is_met && !is_decoration && !self.is_named() && (self.says("src") || self.says("srcdoc")) {
            keep(&mut self.facts.semantics.nameless_frames, offset, &mut self.facts.semantics.cut);
        }
    }

    fn file(&mut self, tag: u64, offset: u32) {
        if self.says("integrity") {
            keep(&mut self.facts.semantics.checked_files, offset, &mut self.facts.semantics.cut);
        }
        if tag == LINK {
            return;
        }
        let kind = self.attribute("type").unwrap_or_default().trim().to_ascii_lowercase();
        self.meaning.is_json_ld =
            kind.split(';').next().is_some_and(|kind| kind.trim() == "application/ld+json");
        let is_classic = kind.is_empty() || kind.ends_with("javascript") || kind.ends_with("ecmascript");
        let waits = ["async", "defer", "nomodule"].iter().all(|name| !self.has(name));
        if is_classic && waits && self.says("src") && self.facts.body.is_none() {
            keep(&mut self.facts.semantics.blocking_scripts, offset, &mut self.facts.semantics.cut);
        }
    }

    /// Takes the text of a script.
    pub(super) fn script_text(&mut self, raw: Span) {
        if std::mem::take(&mut self.meaning.is_json_ld) {
            keep(&mut self.facts.semantics.json_ld, raw, &mut self.facts.semantics.cut);
        }
    }

    fn part_of_video(&mut self, tag: u64) {
        let (has_source, has_kind) = (self.says("src"), self.has("kind"));
        let is_text = !has_kind || self.is("kind", "captions") || self.is("kind", "subtitles");
        if let Some(video) = &mut self.meaning.video {
            video.has_source |= tag == SOURCE && has_source;
            video.needs_captions &= !(tag == TRACK && is_text);
        }
    }

    fn end_video(&mut self) {
        if let Some(video) =
            self.meaning.video.take().filter(|video| video.has_source && video.needs_captions)
        {
            keep(&mut self.facts.semantics.uncaptioned_videos, video.offset, &mut self.facts.semantics.cut);
        }
    }

    /// A title names its drawing if it has a text.
    fn end_title(&mut self, end: u32) {
        let Some(start) = self.meaning.title.take() else { return };
        // From behind the start tag to the start of the end tag, which are both of the title.
        let inside = Span { start, end }.of(self.doc).split_once('>').map_or("", |(_, inside)| inside);
        if inside.trim_end_matches("</").chars().any(|c| !c.is_whitespace()) {
            self.meaning.drawing = None;
        }
    }

    fn end_drawing(&mut self) {
        if let Some(offset) = self.meaning.drawing.take() {
            keep(&mut self.facts.semantics.nameless_drawings, offset, &mut self.facts.semantics.cut);
        }
    }

    /// Notes where the element of a start tag stands.
    pub(super) fn note_structure(&mut self, name: Name, self_closing: bool, state: State) {
        let span = |name: &str| self.attribute(name).is_some_and(|value| value.trim() != "1");
        let tag = StartTag {
            name,
            has_role: self.has("role"),
            is_hidden: self.hidden.is_some() || self.hides(),
            is_leaf: state != State::Data || (self_closing && self.page.is_foreign()),
            is_wide: span("colspan") || span("rowspan"),
            is_header: self.has("scope") || self.has("headers"),
        };
        self.structure.opened(self.doc, tag, &mut self.facts.semantics);
    }

    /// Notes the end of an element.
    pub(super) fn end_meaning(&mut self, name: Name) {
        match name.key() {
            VIDEO => self.end_video(),
            TITLE => self.end_title(name.span().start),
            SVG => self.end_drawing(),
            _ => {}
        }
        if !self.page.is_foreign() {
            self.structure.closed(self.doc, name, &mut self.facts.semantics);
        }
    }

    /// Ends what is still open.
    pub(super) fn finish_meaning(&mut self) {
        self.end_video();
        self.end_drawing();
    }
}
