//! The nodes of a document by name.

use crate::document::{Document, Kind};
use crate::postings::Postings;

/// Where the nodes of a document are: elements and attributes by the numbers of their names, texts, and comments; and the numbers of names by their
/// local parts.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    nodes: Postings,
    /// The numbers of all names, in the order of their local parts.
    names: Vec<u32>,
}

/// What nodes are listed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Text,
    Comment,
    /// Elements by the number of their name.
    Element(u32),
    /// Attributes by the number of their name.
    Attribute(u32),
}

impl Key {
    fn number(self) -> u32 {
        match self {
            Self::Text => 0,
            Self::Comment => 1,
            Self::Element(name) => 2 + 2 * name,
            Self::Attribute(name) => 3 + 2 * name,
        }
    }
}

impl Index {
    pub(crate) fn of(document: &Document) -> Self {
        let pairs = (0..).zip(&document.nodes).filter_map(|(place, entry)| {
            let key = match entry.kind {
                Kind::Text => Key::Text,
                Kind::Comment => Key::Comment,
                Kind::Element => Key::Element(entry.name),
                Kind::Attribute => Key::Attribute(entry.name),
                Kind::Root | Kind::Namespace | Kind::Instruction => return None,
            };
            Some((key.number(), place))
        });
        let mut names: Vec<u32> = (0..document.names.len() as u32).collect();
        names.sort_by_key(|number| &*document.names[*number as usize].local);
        Self { nodes: Postings::of(2 + 2 * document.names.len(), pairs), names }
    }

    /// The nodes of a key with numbers in a range.
    pub(crate) fn within(&self, key: Key, range: std::ops::Range<u32>) -> &[u32] {
        self.nodes.within(key.number() as usize, range)
    }

    /// The numbers of the names with this local part.
    pub(crate) fn named<'a>(&'a self, document: &'a Document, local: &'a str) -> &'a [u32] {
        let own = |number: &u32| &*document.names[*number as usize].local;
        let from = self.names.partition_point(|number| own(number) < local);
        let count = self.names[from..].iter().take_while(|number| own(number) == local).count();
        &self.names[from..from + count]
    }
}
