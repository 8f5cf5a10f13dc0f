//! The tree on which CSS selects in XML: a copy of the document that XPath reads, so both see the same elements.
//!
//! Elements and attributes have the names that are written in the document, with the prefix: `dc|creator` and `dc\:creator` select
//! `<dc:creator>`, and `creator` does not. Small and capital letters differ. This is what parsel does, except that an element without a
//! prefix is found whether or not the document declares a default namespace: the entries of an Atom feed are `entry`.

use html5ever::tree_builder::TreeSink;
use html5ever::{Attribute, LocalName, QualName, ns};
use huntsman_xpath::{Document, Kind, Node};
use scraper::node::{Comment, Element, ProcessingInstruction, Text};
use scraper::{Html, HtmlTreeSink};

/// The type of ids of nodes in the tree, which the crate `scraper` does not export.
type Id = <HtmlTreeSink as TreeSink>::Handle;

/// Copies a document of XML, at most so many nodes, attributes included; whether that was less than all.
pub(super) fn tree_of(document: &Document, most: usize) -> (Html, bool) {
    let mut html = Html::new_document();
    // The elements around the node that is copied.
    let mut open: Vec<(Node, Id)> = vec![(document.root(), html.tree.root().id())];
    for node in document.descendants(document.root()) {
        if node.index() > most {
            return (html, true);
        }
        let value = match document.kind(node) {
            Kind::Element => scraper::Node::Element(element(document, node)),
            Kind::Text => scraper::Node::Text(Text { text: document.value(node).into() }),
            Kind::Comment => scraper::Node::Comment(Comment { comment: document.value(node).into() }),
            Kind::Instruction => scraper::Node::ProcessingInstruction(ProcessingInstruction {
                target: document.name(node).into(),
                data: document.value(node).into(),
            }),
            Kind::Root | Kind::Attribute | Kind::Namespace => continue,
        };
        let is_element = value.is_element();
        let parent = document.parent(node);
        while open.len() > 1 && open.last().map(|(above, _)| *above) != parent {
            open.pop();
        }
        let above = open.last().and_then(|(_, id)| html.tree.get_mut(*id));
        let Some(mut above) = above else { continue };
        let id = above.append(value).id();
        if is_element {
            open.push((node, id));
        }
    }
    (html, false)
}

fn element(document: &Document, node: Node) -> Element {
    let name = |node| QualName::new(None, ns!(), LocalName::from(document.name(node)));
    let attributes = document.attributes(node);
    let attributes = attributes
        .map(|attribute| Attribute { name: name(attribute), value: document.value(attribute).into() });
    Element::new(name(node), attributes.collect())
}
