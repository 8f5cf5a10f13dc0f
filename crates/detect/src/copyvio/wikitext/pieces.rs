//! The pieces of a page: markup, and the text between it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Template,
    /// `{{{name|default}}}`.
    Argument,
    /// `[[title|text]]`.
    Link,
    /// `[address text]`.
    ExternalLink,
    Heading,
    Style,
    Tag,
    Table,
    Cell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Entity,
    /// Markup without visible content: comments, list marks, tags without content, separators of tables.
    Markup,
    /// The address of a bracketed link and the space after it; outside such a link it is text.
    Address,
    Bar,
    Equals,
    /// The beginning of a construct; its partner is the end. Without a partner it is text.
    Open(Frame),
    /// The end of a construct; its partner is the beginning.
    Close(Frame),
}

/// The value for "no partner".
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) kind: Kind,
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) partner: u32,
    /// For the start of a cell: the bar after its attributes.
    pub(super) attributes: u32,
}

#[derive(Debug)]
pub(super) struct Pieces<'t> {
    pub(super) text: &'t str,
    pub(super) list: Vec<Piece>,
    pub(super) links: Vec<&'t str>,
}

impl<'t> Pieces<'t> {
    pub(super) fn source(&self, piece: Piece) -> &'t str {
        &self.text[piece.start as usize..piece.end as usize]
    }
}
