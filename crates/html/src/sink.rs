//! The page sink: turns tokens into links, head values, text and blocks.

use crate::foreign::Element;
use crate::link::{LinkTag, ResourceKind, srcset};
use crate::references::{Context, decode, decode_into, is_plain};
use crate::region::{Region, Sectioning};
use crate::scan::{RawBlock, RawLink, RawLinkElement, RawMeta, RawResource, Scan, ScanOptions};
use crate::tags::{ACTS, BLOCK, BREAKOUT, OTHER, READ, RESOURCE, TAGS, Tag, TagInfo, lookup};
use crate::text::Reading;
use crate::tokenizer::{Attributes, Name, Sink, Span, State, TextKind};
use crate::value::Value;

const MAX_HEAD: usize = 4096;
const MAX_REGIONS: usize = 1 << 16;
const MAX_BLOCKS: usize = 200_000; // a block of two bytes of text costs twelve times that

/// The attributes that the scan reads. Each has a fixed slot, and the first of a name is used. There is no list, so
/// 50,000 attributes cost no memory and no search.
#[derive(Clone, Copy)]
enum Slot {
    Action,
    As,
    Charset,
    Class,
    Content,
    Data,
    Encoding,
    FontStyle,
    Href,
    Hreflang,
    HttpEquiv,
    Id,
    Lang,
    Media,
    Name,
    Poster,
    Property,
    Rel,
    Src,
    Srcset,
    Type,
    Xlink,
}

const SLOTS: usize = 22;

fn slot_of(name: Name, doc: &[u8]) -> Option<Slot> {
    const ACTION: u64 = Name::pack("action");
    const AS: u64 = Name::pack("as");
    const CHARSET: u64 = Name::pack("charset");
    const CLASS: u64 = Name::pack("class");
    const COLOR: u64 = Name::pack("color");
    const CONTENT: u64 = Name::pack("content");
    const DATA: u64 = Name::pack("data");
    const ENCODING: u64 = Name::pack("encoding");
    const FACE: u64 = Name::pack("face");
    const HREF: u64 = Name::pack("href");
    const HREFLANG: u64 = Name::pack("hreflang");
    const ID: u64 = Name::pack("id");
    const LANG: u64 = Name::pack("lang");
    const MEDIA: u64 = Name::pack("media");
    const NAME: u64 = Name::pack("name");
    const POSTER: u64 = Name::pack("poster");
    const PROPERTY: u64 = Name::pack("property");
    const REL: u64 = Name::pack("rel");
    const SIZE: u64 = Name::pack("size");
    const SRC: u64 = Name::pack("src");
    const SRCSET: u64 = Name::pack("srcset");
    const TYPE: u64 = Name::pack("type");
    Some(match name.key() {
        HREF => Slot::Href,
        CLASS => Slot::Class,
        REL => Slot::Rel,
        ID => Slot::Id,
        ACTION => Slot::Action,
        AS => Slot::As,
        CHARSET => Slot::Charset,
        COLOR | FACE | SIZE => Slot::FontStyle,
        CONTENT => Slot::Content,
        DATA => Slot::Data,
        ENCODING => Slot::Encoding,
        HREFLANG => Slot::Hreflang,
        LANG => Slot::Lang,
        MEDIA => Slot::Media,
        NAME => Slot::Name,
        POSTER => Slot::Poster,
        PROPERTY => Slot::Property,
        SRC => Slot::Src,
        SRCSET => Slot::Srcset,
        TYPE => Slot::Type,
        0 => {
            let name = name.span().bytes(doc);
            if name.eq_ignore_ascii_case(b"http-equiv") {
                Slot::HttpEquiv
            } else if name.eq_ignore_ascii_case(b"xlink:href") {
                Slot::Xlink
            } else {
                return None;
            }
        }
        _ => return None,
    })
}

/// An anchor whose text is being collected.
#[derive(Clone, Copy)]
struct Anchor {
    /// Its index in the list of links.
    link: usize,
    /// Length of the text buffer where it began.
    start: usize,
    /// How many tables were open where it began: the end of that cell ends the anchor, as in a tree.
    tables: u32,
    /// How many blocks were open where it began: the end of the surrounding block ends an anchor that was left open, so
    /// that its text does not extend over the rest of the page.
    depth: u32,
}

pub(crate) struct PageSink<'d, 's, 'o> {
    doc: &'d str,
    scan: &'s mut Scan,
    options: &'o ScanOptions,
    /// Flags of tags whose attributes are read.
    wanted: u16,
    /// The tag that is open between `open` and `opened`; after that, the raw text element.
    info: TagInfo,
    attributes: [Span; SLOTS],
    set: u32,
    has_text: bool,
    has_blocks: bool,
    anchor: Option<Anchor>,
    tables: u32,
    /// Block start tags less block end tags.
    depth: u32,
    templates: u32,
    noscripts: u32,
    /// Number of start tags without an end tag so far, per block tag; too high where end tags are omitted.
    open_blocks: [u32; TAGS],
    /// The tokenizer reads the content of a raw text element; the next end tag is its own.
    in_raw: bool,
    is_title: bool,
    is_muted: bool,
    is_foreign: bool,
    /// Length of the text where the current block began.
    block_start: usize,
}

impl<'d, 's, 'o> PageSink<'d, 's, 'o> {
    pub(crate) fn new(doc: &'d str, scan: &'s mut Scan, options: &'o ScanOptions) -> Self {
        let has_text = options.text || options.blocks;
        let mut wanted = READ;
        if options.blocks {
            wanted |= BLOCK;
        }
        if options.resources {
            wanted |= RESOURCE;
        }
        Self {
            doc,
            scan,
            options,
            wanted,
            info: OTHER,
            attributes: [Span::default(); SLOTS],
            set: 0,
            has_text,
            has_blocks: options.blocks,
            anchor: None,
            tables: 0,
            depth: 0,
            templates: 0,
            noscripts: 0,
            open_blocks: [0; TAGS],
            in_raw: false,
            is_title: false,
            is_muted: false,
            is_foreign: false,
            block_start: 0,
        }
    }

    /// Must be called after the last token.
    pub(crate) fn finish(&mut self) {
        self.end_anchor();
        self.end_block();
    }

    /// Number of links so far.
    pub(crate) fn links(&self) -> usize {
        self.scan.links.len()
    }

    pub(crate) fn is_in_template(&self) -> bool {
        self.templates > 0
    }

    pub(crate) fn is_in_noscript(&self) -> bool {
        self.noscripts > 0
    }

    fn attribute(&self, slot: Slot) -> Option<Span> {
        (self.set & 1 << slot as u32 != 0).then(|| self.attributes[slot as usize])
    }

    /// The attribute's bytes as written; empty if there is none.
    fn raw(&self, slot: Slot) -> &'d [u8] {
        self.attribute(slot).map_or(&[], |span| span.bytes(self.doc.as_bytes()))
    }

    fn kept(&mut self, slot: Slot) -> Value {
        self.attribute(slot).map_or(Value::NONE, |raw| Value::keep(raw, self.doc, &mut self.scan.arena))
    }

    fn kept_stripped(&mut self, slot: Slot) -> Value {
        self.attribute(slot)
            .map_or(Value::NONE, |raw| Value::keep_stripped(raw, self.doc, &mut self.scan.arena))
    }

    fn update(&mut self) {
        self.is_foreign = self.scan.foreign.is_inside();
        self.is_muted = self.templates > 0 || self.noscripts > 0 || self.scan.foreign.is_muted();
    }

    /// Notes that the following text is in the region that is open now.
    fn region_starts(&mut self) {
        if !self.has_text {
            return;
        }
        let (starts, region) = (&mut self.scan.region_starts, self.scan.regions.current());
        let at = self.scan.text.len() as u32; // texts are cut off at 4 GiB
        // Landmarks without text leave nothing behind.
        if starts.last().is_some_and(|last| last.0 == at) {
            starts.pop();
        }
        let before = starts.last().map_or(Region::None, |last| last.1);
        if region != before && starts.len() < MAX_REGIONS {
            starts.push((at, region));
        }
    }

    fn boundary(&mut self) {
        self.scan.text.line();
        if self.has_blocks {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let text = self.scan.text.since(self.block_start);
        if !self.has_blocks || text.is_empty() {
            return;
        }
        self.block_start = self.scan.text.len();
        if self.scan.blocks.len() == MAX_BLOCKS {
            self.scan.counts.blocks += 1;
        } else {
            let (path, index) = self.scan.path.current();
            self.scan.blocks.push(RawBlock { text, path, index });
        }
    }

    fn link(&mut self, tag: LinkTag, name: Name) {
        if tag != LinkTag::Area {
            self.end_anchor();
        }
        let href = self.attribute(Slot::Href);
        let is_xlink = tag == LinkTag::SvgA && href.is_none();
        let Some(href) = (if is_xlink { self.attribute(Slot::Xlink) } else { href }) else { return };
        if self.templates > 0 || !self.options.links {
            return;
        }
        if self.scan.links.len() >= self.options.max_links {
            self.scan.counts.links += 1;
            return;
        }
        let href = Value::keep_stripped(href, self.doc, &mut self.scan.arena);
        let rel = self.kept(Slot::Rel);
        self.scan.links.push(RawLink {
            href,
            rel,
            text: Span::default(),
            offset: name.span().start,
            tag,
            is_xlink,
            in_noscript: self.noscripts > 0,
            region: self.scan.regions.current(),
        });
        if self.has_blocks {
            self.scan.link_paths.push(self.scan.path.current().0);
        }
        if tag != LinkTag::Area {
            if !self.has_text {
                self.scan.text.line(); // only anchor texts are in the buffer: keep them apart
            }
            let link = self.scan.links.len() - 1;
            let start = self.scan.text.len();
            self.anchor = Some(Anchor { link, start, tables: self.tables, depth: self.depth });
        }
    }

    fn end_anchor(&mut self) {
        if let Some(anchor) = self.anchor.take() {
            self.scan.links[anchor.link].text = self.scan.text.since(anchor.start);
        }
    }

    /// Handles the begin or end of a cell or table of the innermost table.
    fn table_part(&mut self) {
        if self.anchor.is_some_and(|anchor| anchor.tables >= self.tables && self.tables > 0) {
            self.end_anchor();
        }
    }

    fn meta(&mut self, name: Name) {
        let slots = [Slot::Name, Slot::HttpEquiv, Slot::Property, Slot::Charset, Slot::Content];
        if self.templates > 0 || slots.iter().all(|&slot| self.attribute(slot).is_none()) {
            return;
        }
        if self.scan.metas.len() == MAX_HEAD {
            self.scan.counts.head += 1;
            return;
        }
        let [name_value, http_equiv, property, charset, content] = slots.map(|slot| self.kept(slot));
        self.scan.metas.push(RawMeta {
            name: name_value,
            http_equiv,
            property,
            charset,
            content,
            offset: name.span().start,
            in_noscript: self.noscripts > 0,
        });
    }

    fn link_element(&mut self, name: Name) {
        let is_empty = self.attribute(Slot::Rel).is_none() && self.attribute(Slot::Href).is_none();
        if self.templates > 0 || is_empty {
            return;
        }
        if self.scan.link_elements.len() == MAX_HEAD {
            self.scan.counts.head += 1;
            return;
        }
        let slots = [Slot::Rel, Slot::Href, Slot::Hreflang, Slot::Type, Slot::Media, Slot::As];
        let [rel, href, hreflang, media_type, media, destination] =
            slots.map(|slot| self.kept_stripped(slot));
        self.scan.link_elements.push(RawLinkElement {
            rel,
            href,
            hreflang,
            media_type,
            media,
            destination,
            offset: name.span().start,
            in_noscript: self.noscripts > 0,
        });
    }

    /// Whether the `type` of a script element makes it a block of data, whose `src` no browser loads: it is neither `module` nor a media type of
    /// JavaScript (HTML Standard, "prepare the script element").
    fn is_data_block(&self) -> bool {
        let Some(kind) = self.attribute(Slot::Type) else { return false };
        let kind = decode(kind.of(self.doc), Context::Attribute);
        let kind = kind.trim().to_ascii_lowercase();
        let of_javascript = ["application/", "text/"].iter().find_map(|front| kind.strip_prefix(front));
        let is_javascript = of_javascript.is_some_and(|name| {
            let name = name.strip_prefix("x-").unwrap_or(name);
            matches!(name, "javascript" | "ecmascript" | "jscript" | "livescript")
                || name.starts_with("javascript1.")
        });
        !(kind.is_empty() || kind == "module" || is_javascript)
    }

    fn resource(&mut self, tag: Tag, name: Name) {
        let kinds: &[(Slot, ResourceKind)] = match tag {
            Tag::Img => &[(Slot::Src, ResourceKind::Image), (Slot::Srcset, ResourceKind::ImageCandidate)],
            // The value of the attribute is read as written: pages write it without references.
            Tag::Input if self.raw(Slot::Type).trim_ascii().eq_ignore_ascii_case(b"image") => {
                &[(Slot::Src, ResourceKind::Image)]
            }
            Tag::Source => &[(Slot::Src, ResourceKind::Media), (Slot::Srcset, ResourceKind::ImageCandidate)],
            Tag::Media => &[(Slot::Src, ResourceKind::Media), (Slot::Poster, ResourceKind::Poster)],
            Tag::Script => &[(Slot::Src, ResourceKind::Script)],
            Tag::Iframe => &[(Slot::Src, ResourceKind::Iframe)],
            Tag::Frame => &[(Slot::Src, ResourceKind::Frame)],
            Tag::Form => &[(Slot::Action, ResourceKind::Form)],
            Tag::Embed => &[(Slot::Src, ResourceKind::Embed)],
            Tag::Object => &[(Slot::Data, ResourceKind::Embed)],
            _ => &[],
        };
        if self.templates > 0 || (tag == Tag::Script && self.is_data_block()) {
            return;
        }
        for &(slot, kind) in kinds {
            let value = self.kept_stripped(slot);
            let (offset, in_noscript) = (name.span().start, self.noscripts > 0);
            let Scan { arena, resources, counts, .. } = &mut *self.scan;
            let Some(text) = value.get(self.doc, arena) else { continue };
            let mut push = |url| {
                if resources.len() < self.options.max_links {
                    resources.push(RawResource { url, kind, offset, in_noscript });
                } else {
                    counts.resources += 1;
                }
            };
            if kind == ResourceKind::ImageCandidate {
                srcset(text).for_each(|(start, end)| push(value.part(start, end)));
            } else {
                push(value);
            }
        }
    }

    fn title(&mut self, raw: Span) {
        let text = raw.of(self.doc);
        let trimmed = text.trim_ascii();
        let is_tidy = |text: &str| {
            !text.as_bytes().windows(2).any(|pair| pair == b"  ")
                && !text.contains(['\n', '\t', '\r', '\x0C'])
        };
        if is_plain(trimmed.as_bytes()) && is_tidy(trimmed) {
            let start = raw.start as usize + (text.len() - text.trim_ascii_start().len());
            self.scan.title =
                Value::keep(Span::new(start, start + trimmed.len()), self.doc, &mut self.scan.arena);
            return;
        }
        let mut decoded = String::new();
        decode_into(text, Context::Text, &mut decoded);
        let start = self.scan.arena.len();
        for word in decoded.split_ascii_whitespace() {
            if self.scan.arena.len() > start {
                self.scan.arena.push(' ');
            }
            self.scan.arena.push_str(word);
        }
        self.scan.title = Value::of_arena(start, &self.scan.arena);
    }

    /// Handles a start tag in foreign content; `None` if it ends foreign content and must be read as HTML.
    fn opened_foreign(&mut self, name: Name, self_closing: bool) -> Option<State> {
        let info = self.info;
        let is_breakout = info.flags & BREAKOUT != 0
            || (info.tag == Tag::Font && self.attribute(Slot::FontStyle).is_some());
        if is_breakout {
            self.scan.foreign.leave();
            self.update();
            return None;
        }
        let is_svg = self.scan.foreign.is_svg();
        let element = match info.tag {
            Tag::A => {
                self.link(LinkTag::SvgA, name);
                if self_closing {
                    self.end_anchor();
                }
                return Some(State::Data);
            }
            Tag::Svg => Element::Svg,
            Tag::Math => Element::Math,
            Tag::ForeignObject if is_svg => Element::ForeignObject,
            Tag::Desc if is_svg => Element::Desc,
            Tag::Title if is_svg => Element::Title,
            Tag::Script if is_svg => Element::Script,
            Tag::Rawtext if is_svg && info.name() == "style" => Element::Style,
            Tag::MathText if !is_svg => Element::MathText,
            Tag::AnnotationXml if !is_svg && self.is_html_annotation() => Element::AnnotationXml,
            _ => return Some(State::Data),
        };
        if !self_closing {
            self.scan.foreign.push(element);
            self.update();
        }
        Some(State::Data)
    }

    /// Whether a block or template of this name is open, as far as that is known without a tree.
    fn is_open(&self, info: TagInfo) -> bool {
        (info.tag == Tag::Template && self.templates > 0)
            || self.open_blocks[usize::from(info.index()) % TAGS] > 0
    }

    fn is_html_annotation(&self) -> bool {
        let encoding = self.raw(Slot::Encoding);
        encoding.eq_ignore_ascii_case(b"text/html") || encoding.eq_ignore_ascii_case(b"application/xhtml+xml")
    }

    fn close_foreign(&mut self, info: TagInfo, is_break: bool) {
        // `</p>` and `</br>` leave by the standard; so does the end of an element that is open around the foreign ones.
        if self.is_foreign && (is_break || info.tag == Tag::P || self.is_open(info)) {
            self.scan.foreign.leave();
        }
        let element = match info.tag {
            Tag::Svg => Some(Element::Svg),
            Tag::Math => Some(Element::Math),
            Tag::ForeignObject => Some(Element::ForeignObject),
            Tag::Desc => Some(Element::Desc),
            Tag::Title => Some(Element::Title),
            Tag::Script => Some(Element::Script),
            Tag::Rawtext if info.name() == "style" => Some(Element::Style),
            Tag::MathText => Some(Element::MathText),
            Tag::AnnotationXml => Some(Element::AnnotationXml),
            _ => None,
        };
        if let Some(element) = element {
            self.scan.foreign.close(element);
        }
        self.update();
    }

    fn enter_raw(&mut self, state: State) -> State {
        self.in_raw = true;
        state
    }

    /// Handles an HTML start tag that does more than begin a block.
    fn act(&mut self, name: Name, self_closing: bool) -> State {
        let tag = self.info.tag;
        if self.options.resources && self.info.flags & RESOURCE != 0 {
            self.resource(tag, name);
        }
        match tag {
            Tag::A => self.link(LinkTag::A, name),
            Tag::Area => self.link(LinkTag::Area, name),
            Tag::Base => {
                if self.scan.base.is_none() && self.templates == 0 && self.noscripts == 0 {
                    let href = self.kept_stripped(Slot::Href);
                    if href != Value::NONE {
                        self.scan.base = Some((href, name.span().start));
                    }
                }
            }
            Tag::Meta => self.meta(name),
            Tag::Link => self.link_element(name),
            Tag::Html if self.scan.lang == Value::NONE && self.templates == 0 => {
                self.scan.lang = self.kept_stripped(Slot::Lang);
            }
            Tag::Body if self.templates == 0 && self.noscripts > 0 => {
                self.noscripts = 0; // left open in the head
                self.update();
            }
            Tag::Br => self.scan.text.line(),
            Tag::Table => self.tables += 1,
            Tag::Cell => self.table_part(),
            Tag::Template => {
                self.templates += 1;
                self.update();
            }
            Tag::Title => {
                self.is_title = self.scan.title == Value::NONE && self.templates == 0 && self.noscripts == 0;
                if self.is_title {
                    self.scan.title = Value::of_arena(self.scan.arena.len(), &self.scan.arena);
                }
                return self.enter_raw(State::Rcdata);
            }
            Tag::Textarea => return self.enter_raw(State::Rcdata),
            Tag::Script => return self.enter_raw(State::Script),
            Tag::Rawtext | Tag::Iframe | Tag::Xmp => return self.enter_raw(State::Rawtext),
            Tag::Plaintext => return self.enter_raw(State::Plaintext),
            Tag::Noscript if self.options.scripting => return self.enter_raw(State::Rawtext),
            Tag::Noscript => {
                self.noscripts += 1;
                self.update();
            }
            Tag::Svg | Tag::Math if !self_closing => {
                self.scan.foreign.push(if tag == Tag::Svg { Element::Svg } else { Element::Math });
                self.update();
            }
            _ => {
                if let Some(element) = sectioning(tag) {
                    self.scan.regions.open(element);
                    self.region_starts();
                }
            }
        }
        State::Data
    }
}

fn sectioning(tag: Tag) -> Option<Sectioning> {
    Some(match tag {
        Tag::Nav => Sectioning::Nav,
        Tag::Header => Sectioning::Header,
        Tag::Footer => Sectioning::Footer,
        Tag::Main => Sectioning::Main,
        Tag::Aside => Sectioning::Aside,
        Tag::Article => Sectioning::Article,
        Tag::Section => Sectioning::Section,
        _ => return None,
    })
}

impl Sink for PageSink<'_, '_, '_> {
    fn text(&mut self, raw: Span, kind: TextKind) {
        if kind == TextKind::Rcdata && self.info.tag == Tag::Title {
            if self.is_title {
                self.title(raw);
            }
            return;
        }
        if self.is_muted || !(self.has_text || self.anchor.is_some()) {
            return;
        }
        let is_shown = match kind {
            TextKind::Script => false,
            TextKind::Rawtext => self.info.tag == Tag::Xmp,
            _ => true,
        };
        if is_shown {
            let references = matches!(kind, TextKind::Data | TextKind::Rcdata);
            let keep_nul = kind != TextKind::Data || self.is_foreign;
            self.scan.text.push(raw.of(self.doc), Reading { references, keep_nul });
        }
    }

    fn open(&mut self, name: Name) -> Attributes {
        self.info = lookup(name, self.doc.as_bytes());
        self.set = 0;
        if self.info.flags & self.wanted != 0 { Attributes::Wanted } else { Attributes::Skipped }
    }

    fn attr(&mut self, name: Name, value: Span) {
        if let Some(slot) = slot_of(name, self.doc.as_bytes()) {
            let bit = 1 << slot as u32;
            if self.set & bit == 0 {
                self.set |= bit;
                self.attributes[slot as usize] = value;
            }
        }
    }

    fn opened(&mut self, name: Name, self_closing: bool) -> State {
        let info = self.info;
        if self.is_foreign
            && let Some(state) = self.opened_foreign(name, self_closing)
        {
            return state;
        }
        if info.flags & BLOCK != 0 {
            self.boundary();
            self.open_blocks[usize::from(info.index()) % TAGS] += 1;
            self.depth += 1;
            if self.has_blocks {
                let (id, class) = (self.raw(Slot::Id), self.raw(Slot::Class));
                self.scan.path.open(info, id, class);
            }
        }
        if info.flags & (ACTS | RESOURCE) == 0 { State::Data } else { self.act(name, self_closing) }
    }

    fn close(&mut self, name: Name) {
        if self.in_raw {
            self.in_raw = false;
            if self.info.flags & BLOCK == 0 {
                return;
            }
        }
        let info = lookup(name, self.doc.as_bytes());
        if info.flags & (BLOCK | ACTS) == 0 {
            return;
        }
        if !self.scan.foreign.is_empty() {
            self.close_foreign(info, info.tag == Tag::Br);
        }
        if info.flags & BLOCK != 0 {
            self.boundary();
            let open = &mut self.open_blocks[usize::from(info.index()) % TAGS];
            if *open > 0 {
                *open -= 1;
                self.depth -= 1;
                if self.anchor.is_some_and(|anchor| anchor.depth > self.depth) {
                    self.end_anchor();
                }
            }
            if self.has_blocks {
                self.scan.path.close(info);
            }
        }
        match info.tag {
            Tag::A => self.end_anchor(),
            Tag::Br => self.scan.text.line(),
            Tag::Cell => self.table_part(),
            Tag::Table => {
                self.table_part();
                self.tables = self.tables.saturating_sub(1);
            }
            Tag::Template => {
                self.templates = self.templates.saturating_sub(1);
                self.update();
            }
            Tag::Noscript => {
                self.noscripts = self.noscripts.saturating_sub(1);
                self.update();
            }
            _ => {
                if let Some(element) = sectioning(info.tag) {
                    self.scan.regions.close(element);
                    self.region_starts();
                }
            }
        }
    }

    fn is_foreign(&self) -> bool {
        self.is_foreign
    }
}
