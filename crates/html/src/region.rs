//! The part of a page that a link is in: menu, header, footer, main content.

/// A landmark of the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Region {
    /// Outside all landmarks.
    #[default]
    None,
    /// In a `nav`.
    Nav,
    /// In a `header` of the page.
    Header,
    /// In a `footer` of the page.
    Footer,
    /// In the `main` content.
    Main,
    /// In an `aside`.
    Aside,
}

/// Elements that begin a region or end its effect. A `header` or `footer` counts only for the whole page: inside an
/// article, a section or another region it belongs to that element (the landmark rule of HTML-AAM).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sectioning {
    Nav,
    Header,
    Footer,
    Main,
    Aside,
    Article,
    Section,
}

const KINDS: usize = 7;
const DEPTH: usize = 512;

/// The open sectioning elements with the region that each gives.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    stack: Vec<(Sectioning, Region)>,
    counts: [u32; KINDS],
    /// Number of elements of each kind that were opened when the stack was full.
    deeper: [u32; KINDS],
}

impl Regions {
    pub(crate) fn clear(&mut self) {
        self.stack.clear();
        self.counts = [0; KINDS];
        self.deeper = [0; KINDS];
    }

    pub(crate) fn current(&self) -> Region {
        self.stack.last().map_or(Region::None, |top| top.1)
    }

    pub(crate) fn open(&mut self, element: Sectioning) {
        if self.stack.len() == DEPTH {
            self.deeper[element as usize] += 1;
            return;
        }
        let outer = self.stack.last();
        let region = match (element, outer) {
            (Sectioning::Header, None) => Region::Header,
            (Sectioning::Footer, None) => Region::Footer,
            (Sectioning::Nav, _) => Region::Nav,
            (Sectioning::Main, _) => Region::Main,
            (Sectioning::Aside, _) => Region::Aside,
            (_, outer) => outer.map_or(Region::None, |outer| outer.1),
        };
        self.stack.push((element, region));
        self.counts[element as usize] += 1;
    }

    pub(crate) fn close(&mut self, element: Sectioning) {
        let kind = element as usize;
        if self.deeper[kind] > 0 {
            self.deeper[kind] -= 1;
        } else if self.counts[kind] > 0 {
            while let Some((top, _)) = self.stack.pop() {
                self.counts[top as usize] -= 1;
                if top == element {
                    break;
                }
            }
        }
    }
}
