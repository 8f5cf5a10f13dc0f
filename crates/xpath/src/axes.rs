//! The axes (section 2.2 of the recommendation) as walks over the array of nodes.

use std::ops::ControlFlow;

use crate::document::{Document, Kind, Node};
use crate::expression::Axis;

/// Visits the nodes of an axis, in its direction, until the visitor breaks off, and returns the number of nodes that were looked at.
pub(crate) fn walk(
    document: &Document,
    axis: Axis,
    origin: Node,
    mut visit: impl FnMut(Node) -> ControlFlow<()>,
) -> u64 {
    let end = document.entry(origin).end;
    match axis {
        Axis::Itself => _ = visit(origin),
        Axis::Parent => _ = document.parent(origin).map(visit),
        Axis::Ancestor | Axis::AncestorOrSelf => {
            let mut next = if axis == Axis::Ancestor { document.parent(origin) } else { Some(origin) };
            let mut seen = 1;
            while let Some(node) = next {
                seen += 1;
                if visit(node).is_break() {
                    break;
                }
                next = document.parent(node);
            }
            return seen;
        }
        Axis::Attribute => {
            let mut next = origin.0 + 1;
            while next < end {
                match document.kind(Node(next)) {
                    Kind::Attribute if visit(Node(next)).is_break() => break,
                    Kind::Attribute | Kind::Namespace => next += 1,
                    _ => break,
                }
            }
            return u64::from(next - origin.0);
        }
        Axis::Namespace => return namespaces(document, origin, visit),
        Axis::Child => {
            let mut next = document.first_inside(origin);
            let mut seen = u64::from(next - origin.0);
            while next < end {
                seen += 1;
                if visit(Node(next)).is_break() {
                    break;
                }
                next = document.entry(Node(next)).end;
            }
            return seen;
        }
        Axis::Descendant | Axis::ChildOfAny => return range(document, origin.0 + 1, end, visit),
        Axis::DescendantOrSelf => {
            if visit(origin).is_continue() {
                return 1 + range(document, origin.0 + 1, end, visit);
            }
        }
        Axis::AttributeOfAny => {
            for next in origin.0 + 1..end {
                if document.kind(Node(next)) == Kind::Attribute && visit(Node(next)).is_break() {
                    return u64::from(next - origin.0);
                }
            }
            return u64::from(end - origin.0);
        }
        Axis::Following => return range(document, end, document.len() as u32, visit),
        Axis::Preceding => {
            for next in (1..origin.0).rev() {
                let is_before = is_inside(document, Node(next)) && document.entry(Node(next)).end <= origin.0;
                if is_before && visit(Node(next)).is_break() {
                    return u64::from(origin.0 - next);
                }
            }
            return u64::from(origin.0);
        }
        Axis::FollowingSibling | Axis::PrecedingSibling => {
            return match document.parent(origin).filter(|_| is_inside(document, origin)) {
                Some(parent) => siblings(document, axis, origin, parent, visit),
                None => 1,
            };
        }
    }
    1
}

/// Whether a node lies inside an element, and does not belong to its tag.
fn is_inside(document: &Document, node: Node) -> bool {
    !matches!(document.kind(node), Kind::Attribute | Kind::Namespace)
}

fn range(document: &Document, from: u32, to: u32, mut visit: impl FnMut(Node) -> ControlFlow<()>) -> u64 {
    for next in from..to {
        if is_inside(document, Node(next)) && visit(Node(next)).is_break() {
            return u64::from(next + 1 - from);
        }
    }
    u64::from(to.saturating_sub(from))
}

fn siblings(
    document: &Document,
    axis: Axis,
    origin: Node,
    parent: Node,
    mut visit: impl FnMut(Node) -> ControlFlow<()>,
) -> u64 {
    if axis == Axis::PrecedingSibling {
        let mut seen = 1 + u64::from(document.first_inside(parent) - parent.0);
        let before: Vec<Node> = document.children(parent).take_while(|child| *child < origin).collect();
        seen += before.len() as u64;
        let _ = before.into_iter().rev().try_for_each(visit);
        return seen;
    }
    let (mut seen, mut next, end) = (1, document.entry(origin).end, document.entry(parent).end);
    while next < end {
        seen += 1;
        if visit(Node(next)).is_break() {
            break;
        }
        next = document.entry(Node(next)).end;
    }
    seen
}

/// The namespaces in scope: of each prefix the innermost declaration, unless it takes the default namespace away.
fn namespaces(document: &Document, origin: Node, visit: impl FnMut(Node) -> ControlFlow<()>) -> u64 {
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
    let _ = found.into_iter().try_for_each(visit);
    seen
}
