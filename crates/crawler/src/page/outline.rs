//! The nodes of a page's tree in document order, and lists of them by what selectors ask for.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use foldhash::fast::RandomState;
use html5ever::tree_builder::TreeSink;
use html5ever::{local_name, ns};
use huntsman_css::Key;
use huntsman_xpath::Postings;
use scraper::node::Element;
use scraper::{ElementRef, Html, HtmlTreeSink, Node};

/// The type of ids of nodes in the HTML tree, which the crate `scraper` does not export.
type NodeId = <HtmlTreeSink as TreeSink>::Handle;

/// The nodes of a tree by their places: the numbers of nodes in document order. What lies inside an element is a range of places.
///
/// It is made when something is first selected on a page, and each of its lists when a selector first needs it: 24 bytes per node, and 4 for each node of
/// a list.
pub(super) struct Outline {
    nodes: Vec<Placed>,
    elements: Vec<u32>,
    texts: Vec<u32>,
    names: OnceCell<Named>,
    attributes: OnceCell<Named>,
    classes: OnceCell<Named>,
}

struct Placed {
    id: NodeId,
    /// The place after all that is inside.
    end: u32,
}

/// Places by names.
struct Named {
    /// The names in their order, with their keys.
    keys: Vec<(Box<str>, u32)>,
    places: Postings,
}

impl Named {
    /// Lists pairs of a name and a place in the order of the places. A pair that is there twice is listed once.
    fn of<'a>(pairs: impl Iterator<Item = (&'a str, u32)>) -> Self {
        // By a name, its key and its last place.
        let mut numbers: HashMap<&str, (u32, u32), RandomState> = HashMap::default();
        let mut numbered = Vec::new();
        for (name, place) in pairs {
            let next = numbers.len() as u32;
            match numbers.entry(name) {
                Entry::Occupied(mut known) => {
                    let (key, last) = known.get_mut();
                    if *last != place {
                        *last = place;
                        numbered.push((*key, place));
                    }
                }
                Entry::Vacant(new) => {
                    new.insert((next, place));
                    numbered.push((next, place));
                }
            }
        }
        let mut keys: Vec<_> = numbers.iter().map(|(name, (key, _))| (Box::from(*name), *key)).collect();
        keys.sort_unstable();
        Self { places: Postings::of(keys.len(), numbered.iter().copied()), keys }
    }

    fn within(&self, name: &str, range: Range<u32>) -> &[u32] {
        match self.keys.binary_search_by(|(known, _)| (**known).cmp(name)) {
            Ok(at) => self.places.within(self.keys[at].1 as usize, range),
            Err(_) => &[],
        }
    }
}

impl Outline {
    pub(super) fn of(html: &Html) -> Self {
        let (mut nodes, mut elements, mut texts): (Vec<Placed>, _, _) = (Vec::new(), Vec::new(), Vec::new());
        let mut open: Vec<u32> = Vec::new();
        let mut next = html.tree.root().first_child();
        while let Some(node) = next {
            let place = nodes.len() as u32;
            nodes.push(Placed { id: node.id(), end: place + 1 });
            match node.value() {
                Node::Element(_) => elements.push(place),
                Node::Text(_) => texts.push(place),
                _ => {}
            }
            next = node.first_child();
            if next.is_some() {
                open.push(place);
                continue;
            }
            let mut last = Some(node);
            while let Some(ended) = last {
                next = ended.next_sibling();
                if next.is_some() {
                    break;
                }
                // Of the document itself, the last of the nodes above, there is no place.
                last = ended.parent();
                if let Some(above) = open.pop() {
                    nodes[above as usize].end = nodes.len() as u32;
                } else {
                    last = None;
                }
            }
        }
        Self {
            nodes,
            elements,
            texts,
            names: OnceCell::new(),
            attributes: OnceCell::new(),
            classes: OnceCell::new(),
        }
    }

    /// The places of all elements; the first is that of the outermost one.
    pub(super) fn elements(&self) -> &[u32] {
        &self.elements
    }

    /// An element and all that is inside it.
    pub(super) fn range(&self, place: u32) -> Range<u32> {
        place..self.end(place)
    }

    /// The place after all that is inside a node.
    pub(super) fn end(&self, place: u32) -> u32 {
        self.nodes[place as usize].end
    }

    /// The places of the nodes right inside an element.
    pub(super) fn children(&self, place: u32) -> impl Iterator<Item = u32> + '_ {
        let (mut next, end) = (place + 1, self.end(place));
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.end(child);
            Some(child)
        })
    }

    pub(super) fn node<'a>(&self, html: &'a Html, place: u32) -> Option<&'a Node> {
        Some(html.tree.get(self.nodes.get(place as usize)?.id)?.value())
    }

    pub(super) fn element<'a>(&self, html: &'a Html, place: u32) -> Option<ElementRef<'a>> {
        ElementRef::wrap(html.tree.get(self.nodes.get(place as usize)?.id)?)
    }

    /// The texts in a range.
    pub(super) fn texts(&self, range: Range<u32>) -> &[u32] {
        within(&self.texts, range)
    }

    /// The elements in a range that have an attribute without a namespace.
    pub(super) fn with_attribute(&self, html: &Html, name: &str, range: Range<u32>) -> &[u32] {
        let attributes = self.attributes.get_or_init(|| {
            Named::of(self.values(html).flat_map(|(place, element)| {
                let own = element.attrs.iter().filter(|(name, _)| name.ns == ns!());
                own.map(move |(name, _)| (&*name.local, place))
            }))
        });
        attributes.within(name, range)
    }

    /// The elements in a range that may have what a selector asks for.
    pub(super) fn candidates(&self, html: &Html, key: &Key, range: Range<u32>) -> &[u32] {
        match key {
            Key::Any => within(&self.elements, range),
            Key::Name(name) => {
                let names = self.names.get_or_init(|| {
                    Named::of(self.values(html).map(|(place, element)| (&*element.name.local, place)))
                });
                names.within(name.as_str(), range)
            }
            Key::Class(class) => {
                let classes = self.classes.get_or_init(|| self.by_class(html));
                classes.within(class.as_str(), range)
            }
            Key::Id => self.with_attribute(html, "id", range),
            Key::Attribute(name) => self.with_attribute(html, name.as_str(), range),
        }
    }

    fn by_class(&self, html: &Html) -> Named {
        Named::of(self.values(html).flat_map(|(place, element)| {
            let own = element.attrs.iter().filter(|(name, _)| name.local == local_name!("class"));
            own.flat_map(move |(_, given)| given.split_ascii_whitespace().map(move |class| (class, place)))
        }))
    }

    fn values<'a>(&'a self, html: &'a Html) -> impl Iterator<Item = (u32, &'a Element)> + 'a {
        let element = |place: &u32| Some((*place, self.node(html, *place)?.as_element()?));
        self.elements.iter().filter_map(element)
    }

    /// The markup of an element with all inside it, as browsers write it. It is written to `buffer`, so that each result is allocated only once, in its
    /// final size.
    pub(super) fn markup(&self, html: &Html, place: u32, buffer: &mut String) -> String {
        buffer.clear();
        let (mut open, mut next, end): (Vec<(u32, &Element)>, _, _) = (Vec::new(), place, self.end(place));
        while next < end {
            while let Some((_, ended)) = open.pop_if(|(end, _)| *end <= next) {
                write_end(ended, buffer);
            }
            let inside = next;
            next += 1;
            match self.node(html, inside) {
                Some(Node::Element(element)) => {
                    write_start(element, buffer);
                    match is_void(element) {
                        true => next = self.end(inside),
                        false => open.push((self.end(inside), element)),
                    }
                }
                Some(Node::Text(text)) => match open.last() {
                    Some((_, parent)) if is_raw(parent) => buffer.push_str(text),
                    _ => escape(text, false, buffer),
                },
                Some(Node::Comment(comment)) => {
                    buffer.push_str("<!--");
                    buffer.push_str(comment);
                    buffer.push_str("-->");
                }
                _ => {}
            }
        }
        while let Some((_, ended)) = open.pop() {
            write_end(ended, buffer);
        }
        buffer.as_str().to_owned()
    }
}

/// Those of ascending places that are in a range.
fn within(places: &[u32], range: Range<u32>) -> &[u32] {
    let from = places.partition_point(|place| *place < range.start);
    let to = places.partition_point(|place| *place < range.end);
    &places[from..to.max(from)]
}

/// Whether an element has no content and no end tag.
fn is_void(element: &Element) -> bool {
    element.name.ns == ns!(html)
        && matches!(
            element.name.local,
            local_name!("area")
                | local_name!("base")
                | local_name!("basefont")
                | local_name!("bgsound")
                | local_name!("br")
                | local_name!("col")
                | local_name!("embed")
                | local_name!("frame")
                | local_name!("hr")
                | local_name!("img")
                | local_name!("input")
                | local_name!("keygen")
                | local_name!("link")
                | local_name!("meta")
                | local_name!("param")
                | local_name!("source")
                | local_name!("track")
                | local_name!("wbr")
        )
}

/// Whether the text of an element is written as it is.
fn is_raw(element: &Element) -> bool {
    element.name.ns == ns!(html)
        && matches!(
            element.name.local,
            local_name!("style")
                | local_name!("script")
                | local_name!("xmp")
                | local_name!("iframe")
                | local_name!("noembed")
                | local_name!("noframes")
                | local_name!("plaintext")
        )
}

fn write_start(element: &Element, out: &mut String) {
    out.push('<');
    out.push_str(&element.name.local);
    for (name, value) in &element.attrs {
        out.push_str(match name.ns {
            ns!() => " ",
            ns!(xml) => " xml:",
            ns!(xmlns) if name.local == local_name!("xmlns") => " ",
            ns!(xmlns) => " xmlns:",
            ns!(xlink) => " xlink:",
            _ => " unknown_namespace:",
        });
        out.push_str(&name.local);
        out.push_str("=\"");
        escape(value, true, out);
        out.push('"');
    }
    out.push('>');
}

fn write_end(element: &Element, out: &mut String) {
    out.push_str("</");
    out.push_str(&element.name.local);
    out.push('>');
}

fn escape(text: &str, is_attribute: bool, out: &mut String) {
    let mut rest = text;
    let mut from = 0;
    // The first byte of a no-break space is that of other characters as well.
    let is_special = |byte: &u8| match byte {
        b'&' | b'<' | b'>' | 0xC2 => true,
        byte => *byte == b'"' && is_attribute,
    };
    while let Some(at) = rest.as_bytes()[from..].iter().position(is_special).map(|at| from + at) {
        let (escaped, length) = match rest.as_bytes()[at] {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' => ("&quot;", 1),
            _ if rest.as_bytes().get(at + 1) == Some(&0xA0) => ("&nbsp;", 2),
            _ => {
                from = at + 2;
                continue;
            }
        };
        out.push_str(&rest[..at]);
        out.push_str(escaped);
        rest = &rest[at + length..];
        from = 0;
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests;
