//! How much of the tree SVG and MathML need: which element is foreign, and which text is not shown.

/// An element in foreign content that changes how what follows is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    Svg,
    Math,
    /// `script` in SVG: markup for the tokenizer, no text.
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

/// The open elements of that sort. The counts keep an end tag without its element from searching the stack.
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

    /// An end tag: everything down to the nearest such element is closed; nothing, if there is none.
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

    /// An HTML tag that foreign content cannot hold: back to the nearest integration point or out of it.
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
