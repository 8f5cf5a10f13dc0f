//! The tree of a page. It is built when a spider first uses a selector, and cut off before it becomes too expensive.
//!
//! A standard tree builder takes quadratic time in the nesting depth, and repeats open formatting elements in all
//! following blocks; a page of a few kilobytes can cause millions of nodes. And it compares each attribute of a tag with all before it. A pass of the
//! tokenizer estimates all that first, and the document is cut where a limit is exceeded.

use std::cell::OnceCell;
use std::sync::Arc;

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::TendrilSink;
use html5ever::tree_builder::TreeBuilderOpts;
use huntsman_html::{Attributes, Name, Sink, Span, State, TextKind, tokenize};
use scraper::{ElementRef, Html, HtmlTreeSink};

use super::outline::Outline;
use super::selector::Place;
use super::xml_tree;
use super::xpath::Nodes;

/// Deepest nesting; browsers flatten deeper nesting, too.
const MAX_DEPTH: usize = 512;
/// Greatest number of nodes of a tree.
const MAX_NODES: usize = 500_000;
/// The most comparisons of names of attributes, as each is compared with those before it in its tag: 14,000 attributes of one tag.
const MAX_COMPARED: u64 = 100_000_000;

pub(super) struct Tree {
    pub(super) html: Html,
    pub(super) truncated: bool,
    outline: OnceCell<Outline>,
    /// The document that this tree is a copy of, if it is XML.
    xml: Option<Arc<Nodes>>,
}

impl Tree {
    pub(super) fn parse(document: &str) -> Self {
        let mut meter = Meter::default();
        tokenize(document, &mut meter);
        let end = meter.cut.map(|at| document.floor_char_boundary((at as usize).saturating_sub(1)));
        // Without scripts, what is in a `noscript` are elements and not text: pictures that are loaded late stand there, and links.
        let tree_builder = TreeBuilderOpts { scripting_enabled: false, ..TreeBuilderOpts::default() };
        let options = ParseOpts { tree_builder, ..ParseOpts::default() };
        let parser = parse_document(HtmlTreeSink::new(Html::new_document()), options);
        let mut html = parser.one(&document[..end.unwrap_or(document.len())]);
        open_templates(&mut html);
        Self { html, truncated: end.is_some(), outline: OnceCell::new(), xml: None }
    }

    /// The tree of a document of XML, whose depth has a limit of its own.
    pub(super) fn of_xml(nodes: &Arc<Nodes>) -> Self {
        let (html, truncated) = xml_tree::tree_of(&nodes.document, MAX_NODES);
        Self { html, truncated, outline: OnceCell::new(), xml: Some(Arc::clone(nodes)) }
    }

    /// The document of XML that CSS selects in.
    pub(super) fn xml(&self) -> Option<&Arc<Nodes>> {
        self.xml.as_ref()
    }

    /// The markup of an element with all inside it. It is written to `buffer`, so that each result is allocated only once, in its final size.
    pub(super) fn markup(&self, place: Place, buffer: &mut String) -> String {
        let in_xml = self.xml.as_ref().and_then(|nodes| Some((nodes, nodes.node(self.outline(), place)?)));
        match in_xml {
            Some((nodes, node)) => nodes.document.markup_with(node, buffer),
            None => self.outline().markup(&self.html, place, buffer),
        }
    }

    /// The nodes in document order, listed at the first call.
    pub(super) fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Outline::of(&self.html))
    }

    pub(super) fn element(&self, place: Place) -> Option<ElementRef<'_>> {
        self.outline().element(&self.html, place)
    }

    /// The place of the outermost element.
    pub(super) fn outermost(&self) -> Place {
        self.outline().elements().first().copied().unwrap_or_default()
    }
}

/// Puts what is in a `template` right into it. Browsers keep it in a document of its own, which selectors do not enter; lists that scripts fill are
/// written there.
fn open_templates(html: &mut Html) {
    let fragments = html.tree.nodes().filter(|node| node.value().is_fragment() && node.parent().is_some());
    for fragment in fragments.map(|node| node.id()).collect::<Vec<_>>() {
        let Some(mut node) = html.tree.get_mut(fragment) else { continue };
        if let Some(mut template) = node.parent() {
            template.reparent_from_id_append(fragment);
        }
        if let Some(mut node) = html.tree.get_mut(fragment) {
            node.detach();
        }
    }
}

/// Estimates depth and number of nodes; elements whose end tag is optional do not count for the depth.
#[derive(Default)]
struct Meter {
    depth: usize,
    nodes: usize,
    /// Number of open formatting elements, which the parser would reopen in each following block.
    formatting: usize,
    /// The offset after the `<` of the tag that is read, and the number of its attributes until now.
    tag: u32,
    attributes: u64,
    /// Comparisons of names of attributes.
    compared: u64,
    cut: Option<u32>,
}

/// Elements whose end tag is optional.
const OPTIONAL_END: [u64; 15] = [
    Name::pack("p"),
    Name::pack("li"),
    Name::pack("dt"),
    Name::pack("dd"),
    Name::pack("tr"),
    Name::pack("td"),
    Name::pack("th"),
    Name::pack("thead"),
    Name::pack("tbody"),
    Name::pack("tfoot"),
    Name::pack("option"),
    Name::pack("html"),
    Name::pack("head"),
    Name::pack("body"),
    Name::pack("rt"),
];

/// Whether the elements of a name can nest: they have an end tag that is not optional.
fn nests(name: Name) -> bool {
    !name.is_void() && !OPTIONAL_END.contains(&name.key())
}

const FORMATTING: [u64; 14] = [
    Name::pack("a"),
    Name::pack("b"),
    Name::pack("big"),
    Name::pack("code"),
    Name::pack("em"),
    Name::pack("font"),
    Name::pack("i"),
    Name::pack("nobr"),
    Name::pack("s"),
    Name::pack("small"),
    Name::pack("strike"),
    Name::pack("strong"),
    Name::pack("tt"),
    Name::pack("u"),
];

const RAW: [(u64, State); 4] = [
    (Name::pack("script"), State::Script),
    (Name::pack("style"), State::Rawtext),
    (Name::pack("textarea"), State::Rcdata),
    (Name::pack("title"), State::Rcdata),
];

impl Meter {
    fn add(&mut self, nodes: usize, at: u32) {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.cut.is_none() && (self.nodes > MAX_NODES || self.depth > MAX_DEPTH) {
            self.cut = Some(at);
        }
    }
}

impl Sink for Meter {
    fn text(&mut self, raw: Span, _: TextKind) {
        self.add(1, raw.start);
    }

    fn open(&mut self, name: Name) -> Attributes {
        (self.tag, self.attributes) = (name.span().start, 0);
        Attributes::Wanted
    }

    fn attr(&mut self, _: Name, _: Span) {
        self.compared += self.attributes;
        self.attributes += 1;
        if self.cut.is_none() && self.compared > MAX_COMPARED {
            self.cut = Some(self.tag);
        }
    }

    fn closing(&mut self, name: Name) -> Attributes {
        (self.tag, self.attributes) = (name.span().start.saturating_sub(1), 0);
        Attributes::Wanted
    }

    fn opened(&mut self, name: Name, self_closing: bool) -> State {
        let key = name.key();
        let at = name.span().start;
        if FORMATTING.contains(&key) {
            self.formatting += 1;
            self.depth += 1;
            self.add(1, at);
        } else {
            if nests(name) && !self_closing {
                self.depth += 1;
            }
            self.add(1 + self.formatting, at);
        }
        RAW.iter().find(|(raw, _)| *raw == key).map_or(State::Data, |(_, state)| *state)
    }

    fn close(&mut self, name: Name) {
        let key = name.key();
        if FORMATTING.contains(&key) {
            self.formatting = self.formatting.saturating_sub(1);
            self.depth = self.depth.saturating_sub(1);
        } else if nests(name) {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}
