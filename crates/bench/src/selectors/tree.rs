//! The tree of a page as XML without namespaces, which any XML parser reads as the same tree.

use std::fmt::Write as _;

use huntsman::{Page, PageNode, Result};

use super::values::{clean, comment, is};

/// The tree of a page. What XML does not have, or understands otherwise, is replaced: other characters in names and the first one of `xmlns` by
/// `_xHEX_`, control characters, and hyphens in comments.
pub(super) fn xml(page: &Page) -> Result<String> {
    let mut out = String::new();
    // What is still to be written, the next last: a node, or an end tag.
    let mut left: Vec<Part<'_>> = page.nodes("/node()")?.into_iter().rev().map(Part::Node).collect();
    while let Some(part) = left.pop() {
        match part {
            Part::End(name) => _ = write!(out, "</{name}>"),
            Part::Node(node) if is(node, "self::*")? => {
                let name = named(&node.name());
                _ = write!(out, "<{name}");
                for attribute in node.nodes("@*")? {
                    let value = escaped(&attribute.markup());
                    _ = write!(out, " {}=\"{value}\"", named(&attribute.name()));
                }
                out.push('>');
                left.push(Part::End(name));
                left.extend(node.nodes("node()")?.into_iter().rev().map(Part::Node));
            }
            Part::Node(node) if is(node, "self::comment()")? => {
                out.push_str(&clean(&comment(&node.markup())));
            }
            Part::Node(node) => out.push_str(&escaped(&node.markup())),
        }
    }
    Ok(out)
}

enum Part<'a> {
    Node(PageNode<'a>),
    End(String),
}

fn named(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.chars().enumerate() {
        let is_name =
            c.is_ascii_alphabetic() || c == '_' || (at > 0 && (c.is_ascii_digit() || "-.".contains(c)));
        if is_name && !(at == 0 && name == "xmlns") {
            out.push(c);
        } else {
            _ = write!(out, "_x{:X}_", u32::from(c));
        }
    }
    out
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text).chars() {
        match c {
            '&' | '<' | '>' | '"' | '\t' | '\n' | '\r' => _ = write!(out, "&#{};", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}
