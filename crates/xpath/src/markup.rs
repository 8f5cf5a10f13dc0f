//! A node as HTML or XML.

use crate::document::{Document, Kind, Node};

/// HTML elements without content and end tag.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
/// HTML elements whose text is written as it is.
const RAW: [&str; 7] = ["script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"];

impl Document {
    /// A node with all that is inside it as HTML, or as XML if the document is none of HTML. Of an attribute or text, its value as it is.
    pub fn markup(&self, node: Node) -> String {
        match self.kind(node) {
            Kind::Attribute | Kind::Namespace | Kind::Text => self.value(node).to_owned(),
            _ => {
                let mut out = String::new();
                self.write(node, &mut out);
                out
            }
        }
    }

    /// Like [`markup`](Self::markup), for callers who want that of many nodes: `buffer` is where it is written, so that each result is allocated only
    /// once, in its final size.
    pub fn markup_with(&self, node: Node, buffer: &mut String) -> String {
        match self.kind(node) {
            Kind::Attribute | Kind::Namespace | Kind::Text => self.value(node).to_owned(),
            _ => {
                buffer.clear();
                self.write(node, buffer);
                buffer.as_str().to_owned()
            }
        }
    }

    /// Writes a node. Documents are nested at most 1,024 deep, but the walk needs no stack for it anyway.
    fn write(&self, top: Node, out: &mut String) {
        let end = self.entry(top).end;
        let mut open: Vec<Node> = Vec::new();
        let mut next = top.0;
        while next < end {
            let node = Node(next);
            while let Some(innermost) = open.pop_if(|innermost| self.entry(*innermost).end <= next) {
                self.write_end(innermost, out);
            }
            next += 1;
            match self.kind(node) {
                Kind::Root => open.push(node),
                Kind::Element => {
                    self.write_start(node, out);
                    next = self.first_inside(node);
                    open.push(node);
                }
                Kind::Text => {
                    let parent = self.parent(node).map_or("", |parent| self.local_name(parent));
                    if self.is_html() && RAW.contains(&parent) {
                        out.push_str(self.value(node));
                    } else {
                        escape(self.value(node), false, out);
                    }
                }
                Kind::Comment => {
                    out.push_str("<!--");
                    out.push_str(self.value(node));
                    out.push_str("-->");
                }
                Kind::Instruction => {
                    out.push_str("<?");
                    out.push_str(self.local_name(node));
                    out.push(' ');
                    out.push_str(self.value(node));
                    out.push_str(if self.is_html() { ">" } else { "?>" });
                }
                // They are written with their element.
                Kind::Attribute | Kind::Namespace => {}
            }
        }
        while let Some(innermost) = open.pop() {
            self.write_end(innermost, out);
        }
    }

    fn write_start(&self, node: Node, out: &mut String) {
        out.push('<');
        self.write_name(node, out);
        for declared in self.declared(node) {
            out.push(' ');
            match (self.kind(declared), self.local_name(declared)) {
                (Kind::Namespace, "") => out.push_str("xmlns"),
                (Kind::Namespace, prefix) => {
                    out.push_str("xmlns:");
                    out.push_str(prefix);
                }
                _ => self.write_name(declared, out),
            }
            out.push_str("=\"");
            escape(self.value(declared), true, out);
            out.push('"');
        }
        let is_empty = !self.is_html() && self.children(node).next().is_none();
        out.push_str(if is_empty { "/>" } else { ">" });
    }

    fn write_end(&self, node: Node, out: &mut String) {
        let is_left_out = match self.is_html() {
            true => VOID.contains(&self.local_name(node)),
            false => self.children(node).next().is_none(),
        };
        if self.kind(node) == Kind::Element && !is_left_out {
            out.push_str("</");
            self.write_name(node, out);
            out.push('>');
        }
    }

    fn write_name(&self, node: Node, out: &mut String) {
        let name = self.name_of(node);
        if !name.prefix.is_empty() {
            out.push_str(&name.prefix);
            out.push(':');
        }
        out.push_str(&name.local);
    }
}

fn escape(text: &str, is_attribute: bool, out: &mut String) {
    let mut rest = text;
    let is_special = |byte: &u8| matches!(byte, b'&' | b'<' | b'>') || (is_attribute && *byte == b'"');
    while let Some(at) = rest.as_bytes().iter().position(is_special) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            _ => "&quot;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
