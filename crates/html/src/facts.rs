//! Facts about a page that audits judge: headings, images, fields of forms, ids, names of links, all with their places.
//!
//! They come from the same pass as the links: [`FactSink`] passes every token on to the page sink and notes what it needs besides. What is in
//! a template, a comment, a script or a style gives no facts, and `noscript` gives none but its links.

mod semantics;
mod structure;

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memmem;

use crate::references::{Context, decode, decode_into};
use crate::sink::PageSink;
use crate::tokenizer::{Attributes, Name, Sink, Span, State, TextKind};

use self::semantics::Meaning;
use self::structure::Structure;

pub use self::semantics::{AttributeFact, ButtonFact, Semantics};

/// Facts of each kind that are kept; further ones are only counted.
const MAX_FACTS: usize = 20_000;
/// Bytes of a name or heading that are kept. An element that is never closed would collect the rest of the page.
const MAX_NAME: usize = 1_000;
/// Attributes of one tag that are looked at.
const MAX_ATTRIBUTES: usize = 64;

/// A text with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextFact {
    /// The text; white space is collapsed.
    pub text: String,
    /// Offset in bytes of the tag's name in the document.
    pub offset: u32,
}

/// A heading: `h1` to `h6`, or an element with `role=heading`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heading {
    /// Its level, from 1.
    pub level: u8,
    /// Its text, with the `alt` of images in it; white space is collapsed.
    pub text: String,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
    /// Whether it is hidden by `hidden` or `aria-hidden`, itself or with an element around it.
    pub is_hidden: bool,
    /// Whether `aria-label`, `aria-labelledby` or a `title` names it, or an element in it.
    pub is_named_otherwise: bool,
}

/// An `img` element outside of `noscript`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageFact {
    /// The `alt`, also if it is empty.
    pub alt: Option<String>,
    /// Whether something other than `alt` names it or says that it needs no name: `aria-label`, `aria-labelledby`, `title`, a role of
    /// `none` or `presentation`, `aria-hidden`, `hidden`.
    pub is_named_otherwise: bool,
    /// Whether its place is known before it is loaded: width and height, or an aspect ratio.
    pub has_size: bool,
    /// Whether it is at most one pixel wide and high.
    pub is_pixel: bool,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
}

/// A field of a form that a reader fills in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldFact {
    /// Whether a label, `aria-label`, `aria-labelledby` or `title` names it.
    pub is_labelled: bool,
    /// Whether it has a placeholder, which is no label.
    pub has_placeholder: bool,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
}

/// A form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormFact {
    /// The `action` as written, stripped; `None` if there is none.
    pub action: Option<String>,
    /// Whether it is sent with POST.
    pub is_post: bool,
    /// Whether it has a field for a password.
    pub has_password: bool,
    /// Offset in bytes of the tag's name.
    pub offset: u32,
}

/// What a reader hears of a link, in the order of [`Scan::links`](crate::Scan::links).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkFact {
    /// Its text with the `alt` of images in it, or its `aria-label`; white space is collapsed.
    pub name: String,
    /// Whether something else names it that is not part of `name`: `aria-labelledby`, a `title`, a label of an element in it.
    pub is_named_otherwise: bool,
    /// Whether it is hidden from readers.
    pub is_hidden: bool,
}

/// The facts of a page; only with [`ScanOptions::audit`](crate::ScanOptions::audit).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PageFacts {
    /// Number of elements with a start tag.
    pub elements: usize,
    /// Number of `script` elements.
    pub scripts: usize,
    /// Number of `main` elements and of elements with `role=main`.
    pub mains: usize,
    /// The titles outside of SVG and templates.
    pub titles: Vec<TextFact>,
    /// The headings.
    pub headings: Vec<Heading>,
    /// The images.
    pub images: Vec<ImageFact>,
    /// The fields of forms.
    pub fields: Vec<FieldFact>,
    /// The forms.
    pub forms: Vec<FormFact>,
    /// All ids.
    pub ids: Vec<TextFact>,
    /// The names of `a` elements, to which fragments may lead.
    pub names: Vec<TextFact>,
    /// What links are called, one for each link.
    pub links: Vec<LinkFact>,
    /// The `xml:lang` of the `html` element, which counts only where the page was sent as XML.
    pub xml_lang: Option<String>,
    /// Offsets of `picture` elements without an `img` among their children.
    pub empty_pictures: Vec<u32>,
    /// Offsets of `meta` elements with `name` or `http-equiv` after the end of the head.
    pub metas_in_body: Vec<u32>,
    /// Offset of the first element or text of the body.
    pub body: Option<u32>,
    /// Offsets of filler text ("lorem ipsum dolor sit amet") outside of code and quotations.
    pub fillers: Vec<u32>,
    /// What elements mean: roles, names of buttons, lists, tables, data for machines.
    pub semantics: Semantics,
    /// Number of facts that were left out, because there were more than 20,000 of one kind.
    pub cut: usize,
}

/// Adds a fact, or counts it if there are too many.
fn keep<T>(list: &mut Vec<T>, fact: T, cut: &mut usize) -> bool {
    let has_room = list.len() < MAX_FACTS;
    if has_room {
        list.push(fact);
    } else {
        *cut += 1;
    }
    has_room
}

/// Which text is collected until an element ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Collected {
    Link(usize),
    Heading(usize),
    Button(usize),
}

/// An element whose text is collected.
#[derive(Clone, Copy, Debug)]
struct Open {
    what: Collected,
    /// Packed name of its tag; 0 for long names.
    tag: u64,
    /// Elements of the same name that are open in it.
    nested: u32,
}

/// An element that hides what is in it.
#[derive(Clone, Copy, Debug)]
struct Hidden {
    tag: u64,
    nested: u32,
}

/// Notes facts, and passes all tokens on.
pub(crate) struct FactSink<'d, 's, 'o> {
    page: PageSink<'d, 's, 'o>,
    doc: &'d str,
    facts: PageFacts,
    attributes: Vec<(Name, Span)>,
    open: Vec<Open>,
    hidden: Option<Hidden>,
    labels_open: u32,
    /// What labels say they are for.
    label_targets: HashSet<String>,
    /// Index of each field that has an id, with the id.
    field_ids: Vec<(usize, String)>,
    form: Option<usize>,
    picture: Option<Picture>,
    filler: Filler,
    /// Open elements whose text is a quotation or code.
    quotations: u32,
    meaning: Meaning,
    structure: Structure,
    is_in_title: bool,
    is_in_raw: bool,
}

macro_rules! names {
    ($($name:ident = $text:literal),+ $(,)?) => { $( const $name: u64 = Name::pack($text); )+ };
}

names! {
    A = "a", AREA = "area", BASE = "base", CODE = "code", FORM = "form", H1 = "h1", H6 = "h6",
    HEAD = "head", HTML = "html", IMG = "img", INPUT = "input", LABEL = "label", LINK = "link", MAIN = "main", META = "meta",
    NOFRAMES = "noframes", NOSCRIPT = "noscript", PICTURE = "picture", PRE = "pre", Q = "q", SCRIPT = "script",
    SELECT = "select", STYLE = "style", TEMPLATE = "template", TEXTAREA = "textarea", TITLE = "title",
}

impl<'d, 's, 'o> FactSink<'d, 's, 'o> {
    pub(crate) fn new(doc: &'d str, page: PageSink<'d, 's, 'o>) -> Self {
        Self {
            page,
            doc,
            facts: PageFacts::default(),
            attributes: Vec::new(),
            open: Vec::new(),
            hidden: None,
            labels_open: 0,
            label_targets: HashSet::new(),
            field_ids: Vec::new(),
            form: None,
            picture: None,
            filler: Filler::default(),
            quotations: 0,
            meaning: Meaning::default(),
            structure: Structure::default(),
            is_in_title: false,
            is_in_raw: false,
        }
    }

    /// Must be called after the last token.
    pub(crate) fn finish(mut self) -> PageFacts {
        self.page.finish();
        self.end_picture();
        self.finish_meaning();
        for (index, id) in &self.field_ids {
            if self.label_targets.contains(id) {
                self.facts.fields[*index].is_labelled = true;
            }
        }
        let texts = self.facts.headings.iter_mut().map(|heading| &mut heading.text);
        let buttons = self.facts.semantics.buttons.iter_mut().map(|button| &mut button.name);
        for text in texts.chain(self.facts.links.iter_mut().map(|link| &mut link.name)).chain(buttons) {
            collapse(text);
        }
        self.facts
    }

    fn attribute(&self, name: &str) -> Option<Cow<'d, str>> {
        let wanted = |found: &Name| match found.key() {
            0 => found.span().of(self.doc).eq_ignore_ascii_case(name),
            key => name.len() <= 8 && key == Name::pack(name),
        };
        let (_, value) = self.attributes.iter().find(|(found, _)| wanted(found))?;
        Some(decode(value.of(self.doc), Context::Attribute))
    }

    fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// Whether an attribute has a value other than white space.
    fn says(&self, name: &str) -> bool {
        self.attribute(name).is_some_and(|value| !value.trim().is_empty())
    }

    fn is(&self, name: &str, wanted: &str) -> bool {
        self.attribute(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(wanted))
    }

    /// The tag itself is hidden.
    fn hides(&self) -> bool {
        self.has("hidden") || self.is("aria-hidden", "true") || self.has("inert")
    }

    fn is_named(&self) -> bool {
        self.says("aria-label") || self.says("aria-labelledby") || self.says("title")
    }

    fn push_text(&mut self, text: &str) {
        for open in &self.open {
            let to = match open.what {
                Collected::Link(index) => &mut self.facts.links[index].name,
                Collected::Heading(index) => &mut self.facts.headings[index].text,
                Collected::Button(index) => &mut self.facts.semantics.buttons[index].name,
            };
            if to.len() < MAX_NAME {
                let room = MAX_NAME - to.len();
                let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                to.push_str(&text[..end]);
            }
        }
    }

    fn name_otherwise(&mut self) {
        for open in &self.open {
            match open.what {
                Collected::Link(index) => self.facts.links[index].is_named_otherwise = true,
                Collected::Button(index) => self.facts.semantics.buttons[index].is_named_otherwise = true,
                Collected::Heading(index) => self.facts.headings[index].is_named_otherwise = true,
            }
        }
    }

    fn end_head(&mut self, offset: u32) {
        self.facts.body.get_or_insert(offset);
    }

    fn end_picture(&mut self) {
        if let Some(picture) = self.picture.take().filter(|picture| !picture.has_image) {
            keep(&mut self.facts.empty_pictures, picture.offset, &mut self.facts.cut);
        }
    }

    fn collect(&mut self, what: Collected, tag: u64) {
        self.open.push(Open { what, tag, nested: 0 });
    }

    fn heading(&mut self, level: u8, tag: u64, offset: u32, is_hidden: bool) {
        self.open.retain(|open| !matches!(open.what, Collected::Heading(_)));
        let is_named_otherwise = self.is_named();
        let heading = Heading { level, text: String::new(), offset, is_hidden, is_named_otherwise };
        let index = self.facts.headings.len();
        if keep(&mut self.facts.headings, heading, &mut self.facts.cut) {
            self.collect(Collected::Heading(index), tag);
        }
    }

    fn image(&mut self, offset: u32, is_hidden: bool) {
        if let Some(picture) = self.picture.as_mut().filter(|picture| picture.nested == 0) {
            picture.has_image = true;
        }
        let alt = self.attribute("alt").map(|alt| {
            let mut alt = alt.into_owned();
            collapse(&mut alt);
            alt
        });
        if self.is_named() {
            self.name_otherwise();
        }
        if let Some(alt) = &alt {
            self.push_text(&format!(" {alt} "));
        }
        let style = self.attribute("style").unwrap_or_default().to_ascii_lowercase();
        let has = |name: &str| {
            self.says(name)
                || style.split(';').any(|rule| rule.split(':').next().is_some_and(|key| key.trim() == name))
        };
        let is_small = |value: &str| matches!(value.trim(), "0" | "1" | "0px" | "1px");
        let is_tiny = |name: &str| {
            let mut rules = style.split(';').filter_map(|rule| rule.split_once(':'));
            self.attribute(name).is_some_and(|value| is_small(&value))
                || rules.any(|(key, value)| key.trim() == name && is_small(value))
        };
        let fact = ImageFact {
            is_named_otherwise: self.is_named()
                || is_hidden
                || self.is("role", "none")
                || self.is("role", "presentation"),
            has_size: (has("width") && has("height")) || style.contains("aspect-ratio"),
            is_pixel: is_tiny("width") && is_tiny("height"),
            alt,
            offset,
        };
        keep(&mut self.facts.images, fact, &mut self.facts.cut);
    }

    fn field(&mut self, tag: u64, offset: u32, is_hidden: bool) {
        let kind = self.attribute("type").unwrap_or_default().trim().to_ascii_lowercase();
        if tag == INPUT {
            if kind == "password"
                && let Some(form) = self.form
            {
                self.facts.forms[form].has_password = true;
            }
            if matches!(&*kind, "hidden" | "submit" | "reset" | "button" | "image") {
                return;
            }
        }
        let fact = FieldFact {
            is_labelled: self.labels_open > 0 || self.is_named() || is_hidden,
            has_placeholder: self.says("placeholder"),
            offset,
        };
        let index = self.facts.fields.len();
        if keep(&mut self.facts.fields, fact, &mut self.facts.cut)
            && let Some(id) = self.attribute("id")
        {
            self.field_ids.push((index, id.into_owned()));
        }
    }

    /// Notes the facts of an HTML start tag.
    fn note(&mut self, name: Name, self_closing: bool) {
        let (tag, offset) = (name.key(), name.span().start);
        let hides = self.hides();
        let is_hidden = hides || self.hidden.is_some();
        match &mut self.hidden {
            Some(hidden) if hidden.tag == tag && !name.is_void() => hidden.nested += 1,
            Some(_) => {}
            None if hides && tag != 0 && !name.is_void() && !(self_closing && self.page.is_foreign()) => {
                self.hidden = Some(Hidden { tag, nested: 0 });
            }
            None => {}
        }
        for open in self.open.iter_mut().filter(|open| open.tag == tag && tag != 0) {
            open.nested += 1;
        }
        if let Some(picture) = &mut self.picture
            && !name.is_void()
            && !(self_closing && self.page.is_foreign())
        {
            picture.nested += 1;
        }
        if let Some(id) = self.attribute("id").filter(|id| !id.is_empty()) {
            keep(&mut self.facts.ids, TextFact { text: id.into_owned(), offset }, &mut self.facts.cut);
        }
        if !self.open.is_empty() && tag != IMG && self.is_named() {
            self.name_otherwise();
        }
        let is_main = tag == MAIN || self.is("role", "main");
        self.facts.mains += usize::from(is_main);
        self.facts.semantics.shown_mains += usize::from(is_main && !is_hidden);
        self.note_meaning(name, is_hidden);
        if self.page.is_foreign() {
            return;
        }
        match tag {
            H1..=H6 => self.heading((tag - H1 + 1) as u8, tag, offset, is_hidden),
            IMG => self.image(offset, is_hidden),
            INPUT | SELECT | TEXTAREA => self.field(tag, offset, is_hidden),
            LABEL => {
                self.labels_open += 1;
                self.label_targets.extend(self.attribute("for").map(Cow::into_owned));
            }
            FORM => {
                let action = self.attribute("action").map(|action| action.trim().to_owned());
                let form =
                    FormFact { action, is_post: self.is("method", "post"), has_password: false, offset };
                self.form = Some(self.facts.forms.len());
                if !keep(&mut self.facts.forms, form, &mut self.facts.cut) {
                    self.form = None;
                }
            }
            PICTURE => {
                self.end_picture();
                self.picture = Some(Picture { offset, nested: 0, has_image: false });
            }
            SCRIPT => self.facts.scripts += 1,
            HTML if self.facts.xml_lang.is_none() => {
                self.facts.xml_lang = self.attribute("xml:lang").map(Cow::into_owned);
            }
            META => {
                let is_named = self.has("name") || self.has("http-equiv");
                let is_body = self.has("itemprop") || self.has("property");
                if self.facts.body.is_some() && is_named && !is_body {
                    keep(&mut self.facts.metas_in_body, offset, &mut self.facts.cut);
                }
            }
            A => {
                if let Some(name) = self.attribute("name").filter(|name| !name.is_empty()) {
                    keep(
                        &mut self.facts.names,
                        TextFact { text: name.into_owned(), offset },
                        &mut self.facts.cut,
                    );
                }
            }
            PRE | CODE | Q => self.quotations += 1,
            0 if is_blockquote(name, self.doc) => self.quotations += 1,
            _ if self.is("role", "heading") => {
                let level =
                    self.attribute("aria-level").and_then(|level| level.trim().parse().ok()).unwrap_or(2);
                self.heading(level, tag, offset, is_hidden);
            }
            _ => {}
        }
    }

    /// Adds the facts of a link that the page sink has just found.
    fn link(&mut self, name: Name, is_hidden: bool) {
        self.open.retain(|open| !matches!(open.what, Collected::Link(_)));
        let label = self.attribute("aria-label").filter(|label| !label.trim().is_empty());
        let has_label = label.is_some();
        let text = label.map(Cow::into_owned).or_else(|| {
            let alt = if name.key() == AREA { self.attribute("alt") } else { None };
            alt.map(Cow::into_owned)
        });
        let fact = LinkFact {
            name: text.unwrap_or_default(),
            is_named_otherwise: self.says("aria-labelledby") || self.says("title"),
            is_hidden,
        };
        let index = self.facts.links.len();
        self.facts.links.push(fact);
        if name.key() != AREA && !has_label {
            self.collect(Collected::Link(index), name.key());
        }
    }

    /// Follows filler text through the texts of a page, which inline elements cut into pieces.
    fn filler(&mut self, raw: Span) {
        if self.quotations > 0 {
            self.filler = Filler::default();
            return;
        }
        let text = raw.of(self.doc);
        let begins = |part: &[u8]| memmem::find(text.as_bytes(), part).is_some();
        if self.filler.matched == 0 && !begins(b"orem") && !begins(b"OREM") {
            return;
        }
        for word in decode(text, Context::Text).split(|c: char| !c.is_alphanumeric()) {
            if self.filler.ends_with(word, raw.start) {
                keep(&mut self.facts.fillers, self.filler.start, &mut self.facts.cut);
            }
        }
    }
}

/// The `picture` that is open.
#[derive(Clone, Copy, Debug)]
struct Picture {
    offset: u32,
    /// Elements that are open in it: an image in one of them is no child of the picture.
    nested: u32,
    has_image: bool,
}

/// How much of the filler text was read.
#[derive(Clone, Copy, Debug, Default)]
struct Filler {
    /// The offset of the text in which it begins.
    start: u32,
    matched: usize,
}

impl Filler {
    const WORDS: [&str; 5] = ["lorem", "ipsum", "dolor", "sit", "amet"];

    /// Reads a word of the text at an offset. Returns whether the filler text ends with it.
    fn ends_with(&mut self, word: &str, offset: u32) -> bool {
        if word.is_empty() {
            return false;
        }
        if !word.eq_ignore_ascii_case(Self::WORDS[self.matched]) {
            self.matched = 0;
        }
        if self.matched == 0 {
            self.start = offset;
        }
        self.matched += usize::from(word.eq_ignore_ascii_case(Self::WORDS[self.matched]));
        let is_end = self.matched == Self::WORDS.len();
        self.matched %= Self::WORDS.len();
        is_end
    }
}

fn is_blockquote(name: Name, doc: &str) -> bool {
    name.span().of(doc).eq_ignore_ascii_case("blockquote")
}

/// Whether a start tag leaves the parser in the head.
fn stays_in_head(tag: u64) -> bool {
    matches!(tag, HTML | HEAD | TITLE | META | LINK | BASE | SCRIPT | STYLE | NOSCRIPT | TEMPLATE | NOFRAMES)
}

/// Collapses white space, and takes it off both ends.
fn collapse(text: &mut String) {
    let is_tidy = !text.starts_with(char::is_whitespace)
        && !text.ends_with(char::is_whitespace)
        && !text.contains(['\n', '\t', '\r'])
        && !text.contains("  ");
    if !is_tidy {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

impl Sink for FactSink<'_, '_, '_> {
    fn text(&mut self, raw: Span, kind: TextKind) {
        self.page.text(raw, kind);
        if self.page.is_in_template() {
            return;
        }
        if kind == TextKind::Rcdata && self.is_in_title {
            if let Some(title) = self.facts.titles.last_mut() {
                title.text.clear();
                decode_into(raw.of(self.doc), Context::Text, &mut title.text);
                collapse(&mut title.text);
            }
            return;
        }
        if kind == TextKind::Script && !self.page.is_in_noscript() {
            self.script_text(raw);
        }
        if !matches!(kind, TextKind::Data | TextKind::Cdata) || self.page.is_in_noscript() {
            return;
        }
        let text = raw.of(self.doc);
        if self.facts.body.is_none() && !self.page.is_foreign() && !text.trim_ascii().is_empty() {
            self.end_head(raw.start);
        }
        if !self.open.is_empty() {
            let text = if kind == TextKind::Data { decode(text, Context::Text) } else { Cow::Borrowed(text) };
            self.push_text(&text);
        }
        self.filler(raw);
    }

    fn open(&mut self, name: Name) -> Attributes {
        self.attributes.clear();
        self.page.open(name);
        Attributes::Wanted
    }

    fn attr(&mut self, name: Name, value: Span) {
        self.page.attr(name, value);
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push((name, value));
        }
    }

    fn opened(&mut self, name: Name, self_closing: bool) -> State {
        let (links, was_foreign) = (self.page.links(), self.page.is_foreign());
        let counts = !self.page.is_in_template() && !self.page.is_in_noscript();
        let state = self.page.opened(name, self_closing);
        let tag = name.key();
        self.is_in_raw = state != State::Data;
        self.is_in_title = false;
        if counts {
            self.facts.elements += 1;
            let is_foreign = was_foreign && self.page.is_foreign();
            if !is_foreign && !stays_in_head(tag) {
                self.end_head(name.span().start);
            }
            if tag == TITLE && state == State::Rcdata {
                self.is_in_title = keep(
                    &mut self.facts.titles,
                    TextFact { text: String::new(), offset: name.span().start },
                    &mut self.facts.cut,
                );
            }
            let is_hidden = self.hidden.is_some() || self.hides();
            if tag == A && !is_foreign {
                self.open.retain(|open| !matches!(open.what, Collected::Link(_)));
            }
            self.note(name, self_closing);
            if !is_foreign {
                self.note_structure(name, self_closing, state);
            }
            if self.page.links() > links {
                self.link(name, is_hidden);
            }
        } else if self.page.links() > links {
            // The lists of links and of their facts have the same order.
            self.facts.links.push(LinkFact { is_hidden: true, ..LinkFact::default() });
        }
        state
    }

    fn close(&mut self, name: Name) {
        self.page.close(name);
        if std::mem::take(&mut self.is_in_raw) {
            self.is_in_title = false;
            if name.key() != TEXTAREA {
                return;
            }
        }
        if self.page.is_in_template() || self.page.is_in_noscript() {
            return;
        }
        self.end_meaning(name);
        let tag = name.key();
        if let Some(hidden) = &mut self.hidden
            && hidden.tag == tag
        {
            if hidden.nested == 0 {
                self.hidden = None;
            } else {
                hidden.nested -= 1;
            }
        }
        self.open.retain_mut(|open| {
            let is_heading = matches!(open.what, Collected::Heading(_)) && (H1..=H6).contains(&open.tag);
            if (is_heading && (H1..=H6).contains(&tag)) || (open.tag == tag && open.nested == 0) {
                return false;
            }
            if open.tag == tag {
                open.nested -= 1;
            }
            true
        });
        if let Some(picture) = &mut self.picture {
            picture.nested = picture.nested.saturating_sub(1);
        }
        match tag {
            LABEL => self.labels_open = self.labels_open.saturating_sub(1),
            FORM => self.form = None,
            PICTURE => self.end_picture(),
            PRE | CODE | Q => self.quotations = self.quotations.saturating_sub(1),
            0 if is_blockquote(name, self.doc) => self.quotations = self.quotations.saturating_sub(1),
            _ => {}
        }
    }

    fn is_foreign(&self) -> bool {
        Sink::is_foreign(&self.page)
    }
}
