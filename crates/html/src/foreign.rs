//! Tracks SVG and MathML as far as needed: which elements are foreign, and which text is not shown.

/// An element in foreign content that changes how the following markup is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Svg,
    Math,
    /// `script` in SVG: its content is tokenized as markup and is not text.
    Script,
    /// `style` in SVG, likewise.
    Style,
    /// The first of the integration points: HTML begins again inside.
    ForeignObject,
    Desc,
    Title,
    AnnotationXml,
    /// `mi`, `mo`, `mn`, `ms`, `mtext`.
    MathText,
}

const KINDS: usize = 9;
/// Deeper elements are only counted.
const DEPTH: usize = 512;

/// The open elements of these kinds. The counts avoid searching the stack for an end tag without its element.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    stack: Vec<Element>,
    counts: [u16; KINDS],
    deeper: u32,
}

impl Foreign {
    pub(crate) fn clear(&mut self) {
        self.stack.clear();
        self.counts = [0; KINDS];
        self.deeper = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// Whether the current element is foreign, so that its children are too.
    pub(crate) fn is_inside(&self) -> bool {
        self.stack.last().is_some_and(|&top| (top as usize) < Element::ForeignObject as usize)
    }

    pub(crate) fn is_svg(&self) -> bool {
        matches!(self.stack.last(), Some(Element::Svg | Element::Script | Element::Style))
    }

    /// Whether text here is not shown.
    pub(crate) fn is_muted(&self) -> bool {
        [Element::Script, Element::Style, Element::Title, Element::Desc]
            .into_iter()
            .any(|kind| self.counts[kind as usize] > 0)
    }

    pub(crate) fn push(&mut self, element: Element) {
        if self.stack.len() == DEPTH {
            self.deeper += 1;
        } else {
            self.stack.push(element);
            self.counts[element as usize] += 1;
        }
    }

    /// Handles an end tag: closes everything down to the nearest such element, or nothing if there is none.
    pub(crate) fn close(&mut self, element: Element) {
        if self.counts[element as usize] == 0 {
            return;
        }
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        while let Some(top) = self.pop() {
            if top == element {
                break;
            }
        }
    }

    /// Handles an HTML tag that foreign content cannot contain: closes up to the nearest integration point, or leaves
    /// foreign content.
    pub(crate) fn leave(&mut self) {
        self.deeper = 0;
        while self.is_inside() {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Element> {
        let top = self.stack.pop()?;
        self.counts[top as usize] -= 1;
        Some(top)
    }
}
