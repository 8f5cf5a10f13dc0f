//! The axes (section 2.2 of the recommendation) as walks over the array of nodes.

use crate::document::{Document, Kind, Node};
use crate::expression::Axis;

/// Visits the nodes of an axis, in its direction, and returns the number of nodes that were looked at.
pub(crate) fn walk(document: &Document, axis: Axis, origin: Node, mut visit: impl FnMut(Node)) -> u64 {
    let entry = document.entry(origin);
    let is_inside = |node: Node| !matches!(document.kind(node), Kind::Attribute | Kind::Namespace);
    let range = |from: u32, to: u32, visit: &mut dyn FnMut(Node)| {
        (from..to).map(Node).filter(|node| is_inside(*node)).for_each(visit);
        u64::from(to.saturating_sub(from))
    };
    match axis {
        Axis::Itself => visit(origin),
        Axis::Parent => document.parent(origin).into_iter().for_each(visit),
        Axis::Ancestor | Axis::AncestorOrSelf => {
            let mut next = if axis == Axis::Ancestor { document.parent(origin) } else { Some(origin) };
            let mut seen = 1;
            while let Some(node) = next {
                visit(node);
                seen += 1;
                next = document.parent(node);
            }
            return seen;
        }
        Axis::Attribute => {
            document.attributes(origin).for_each(visit);
            return tag(document, origin);
        }
        Axis::Namespace => return namespaces(document, origin, visit),
        Axis::Child => {
            let mut seen = tag(document, origin);
            for child in document.children(origin) {
                visit(child);
                seen += 1;
            }
            return seen;
        }
        Axis::Descendant => return range(origin.0 + 1, entry.end, &mut visit),
        Axis::DescendantOrSelf => {
            visit(origin);
            return 1 + range(origin.0 + 1, entry.end, &mut visit);
        }
        Axis::Following => return range(entry.end, document.len() as u32, &mut visit),
        Axis::Preceding => {
            let before = (1..origin.0).rev().map(Node);
            before.filter(|node| is_inside(*node) && document.entry(*node).end <= origin.0).for_each(visit);
            return u64::from(origin.0);
        }
        Axis::FollowingSibling | Axis::PrecedingSibling => {
            return match document.parent(origin).filter(|_| is_inside(origin)) {
                Some(parent) => siblings(document, axis, origin, parent, visit),
                None => 1,
            };
        }
    }
    1
}

/// The nodes that are looked at to find the attributes of an element, or what comes after them.
fn tag(document: &Document, element: Node) -> u64 {
    u64::from(document.first_inside(element) - element.0)
}

fn siblings(document: &Document, axis: Axis, origin: Node, parent: Node, mut visit: impl FnMut(Node)) -> u64 {
    let mut seen = 1;
    if axis == Axis::PrecedingSibling {
        seen += tag(document, parent);
        let before: Vec<Node> = document.children(parent).take_while(|child| *child < origin).collect();
        seen += before.len() as u64;
        before.into_iter().rev().for_each(visit);
        return seen;
    }
    let (mut next, end) = (document.entry(origin).end, document.entry(parent).end);
    while next < end {
        visit(Node(next));
        seen += 1;
        next = document.entry(Node(next)).end;
    }
    seen
}

/// The namespaces in scope: of each prefix the innermost declaration, unless it takes the default namespace away.
fn namespaces(document: &Document, origin: Node, mut visit: impl FnMut(Node)) -> u64 {
    if document.kind(origin) != Kind::Element {
        return 1;
    }
    let (mut seen, mut prefixes, mut found) = (1, Vec::new(), Vec::new());
    let mut next = Some(origin);
    while let Some(element) = next {
        for node in document.declared(element).filter(|node| document.kind(*node) == Kind::Namespace) {
            seen += 1;
            let prefix = document.local_name(node);
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
                found.extend((!document.value(node).is_empty()).then_some(node));
            }
        }
        next = document.parent(element);
    }
    found.sort_unstable();
    found.into_iter().for_each(&mut visit);
    seen
}
