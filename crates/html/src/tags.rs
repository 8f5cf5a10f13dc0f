//! The properties of each tag for the page sink: one table, looked up by the packed name.

use crate::tokenizer::Name;

/// Tags with a meaning of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Other,
    A,
    AnnotationXml,
    Area,
    Article,
    Aside,
    Base,
    Body,
    Br,
    Cell,
    DefinitionPart,
    Desc,
    Embed,
    Font,
    Footer,
    ForeignObject,
    Form,
    Frame,
    Header,
    Html,
    Iframe,
    Img,
    Input,
    Li,
    Link,
    List,
    Main,
    Math,
    MathText,
    Media,
    Meta,
    Nav,
    Noscript,
    Object,
    P,
    Plaintext,
    Rawtext,
    Row,
    Rows,
    Script,
    Section,
    Source,
    Svg,
    Table,
    Template,
    Textarea,
    Title,
    Xmp,
}

/// Begins and ends a line of text, and a block.
pub(crate) const BLOCK: u16 = 1;
/// Ends foreign content when it begins there.
pub(crate) const BREAKOUT: u16 = 2;
/// Has attributes that the scan always reads.
pub(crate) const READ: u16 = 4;
/// Has attributes that the scan reads when resources are asked for.
pub(crate) const RESOURCE: u16 = 8;
/// Changes the sink's state when it begins or ends.
pub(crate) const ACTS: u16 = 16;
/// Its id, not its class, names it in a tag path.
pub(crate) const CONTAINER: u16 = 32;
/// Has no content and no end tag.
pub(crate) const VOID: u16 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TagInfo {
    pub(crate) tag: Tag,
    pub(crate) flags: u16,
    index: u8,
}

impl TagInfo {
    /// The tag's name in lower case; empty for a tag that is not in the table.
    pub(crate) fn name(self) -> &'static str {
        name_of(self.index)
    }

    pub(crate) fn index(self) -> u8 {
        self.index
    }
}

/// The name behind [`TagInfo::index`].
pub(crate) fn name_of(index: u8) -> &'static str {
    KNOWN.get(usize::from(index)).map_or("", |known| known.0)
}

pub(crate) const OTHER: TagInfo = TagInfo { tag: Tag::Other, flags: 0, index: u8::MAX };

const KNOWN: &[(&str, Tag, u16)] = &[
    ("a", Tag::A, READ | ACTS),
    ("address", Tag::Other, BLOCK),
    ("annotation-xml", Tag::AnnotationXml, READ | ACTS),
    ("area", Tag::Area, READ | ACTS),
    ("article", Tag::Article, BLOCK | ACTS | CONTAINER),
    ("aside", Tag::Aside, BLOCK | ACTS | CONTAINER),
    ("audio", Tag::Media, RESOURCE),
    ("b", Tag::Other, BREAKOUT),
    ("base", Tag::Base, READ | ACTS),
    ("big", Tag::Other, BREAKOUT),
    ("blockquote", Tag::Other, BLOCK | BREAKOUT),
    ("body", Tag::Body, BLOCK | BREAKOUT | ACTS),
    ("br", Tag::Br, BREAKOUT | ACTS),
    ("caption", Tag::Cell, BLOCK | ACTS),
    ("center", Tag::Other, BLOCK | BREAKOUT),
    ("code", Tag::Other, BREAKOUT),
    ("dd", Tag::DefinitionPart, BLOCK | BREAKOUT),
    ("desc", Tag::Desc, ACTS),
    ("details", Tag::Other, BLOCK),
    ("dialog", Tag::Other, BLOCK),
    ("dir", Tag::List, BLOCK),
    ("div", Tag::Other, BLOCK | BREAKOUT | CONTAINER),
    ("dl", Tag::List, BLOCK | BREAKOUT),
    ("dt", Tag::DefinitionPart, BLOCK | BREAKOUT),
    ("em", Tag::Other, BREAKOUT),
    ("embed", Tag::Embed, BREAKOUT | RESOURCE),
    ("fieldset", Tag::Other, BLOCK),
    ("figcaption", Tag::Other, BLOCK),
    ("figure", Tag::Other, BLOCK),
    ("font", Tag::Font, READ),
    ("footer", Tag::Footer, BLOCK | ACTS | CONTAINER),
    ("foreignobject", Tag::ForeignObject, ACTS),
    ("form", Tag::Form, BLOCK | RESOURCE | CONTAINER),
    ("frame", Tag::Frame, RESOURCE),
    ("frameset", Tag::Other, BLOCK),
    ("h1", Tag::Other, BLOCK | BREAKOUT),
    ("h2", Tag::Other, BLOCK | BREAKOUT),
    ("h3", Tag::Other, BLOCK | BREAKOUT),
    ("h4", Tag::Other, BLOCK | BREAKOUT),
    ("h5", Tag::Other, BLOCK | BREAKOUT),
    ("h6", Tag::Other, BLOCK | BREAKOUT),
    ("head", Tag::Other, BLOCK | BREAKOUT),
    ("header", Tag::Header, BLOCK | ACTS | CONTAINER),
    ("hgroup", Tag::Other, BLOCK),
    ("hr", Tag::Other, BLOCK | BREAKOUT | VOID),
    ("html", Tag::Html, BLOCK | READ | ACTS),
    ("i", Tag::Other, BREAKOUT),
    ("iframe", Tag::Iframe, RESOURCE | ACTS),
    ("img", Tag::Img, BREAKOUT | RESOURCE),
    ("input", Tag::Input, RESOURCE),
    ("legend", Tag::Other, BLOCK),
    ("li", Tag::Li, BLOCK | BREAKOUT),
    ("link", Tag::Link, READ | ACTS),
    ("listing", Tag::Other, BLOCK | BREAKOUT),
    ("main", Tag::Main, BLOCK | ACTS | CONTAINER),
    ("math", Tag::Math, ACTS),
    ("menu", Tag::List, BLOCK | BREAKOUT),
    ("meta", Tag::Meta, BREAKOUT | READ | ACTS),
    ("mi", Tag::MathText, ACTS),
    ("mn", Tag::MathText, ACTS),
    ("mo", Tag::MathText, ACTS),
    ("ms", Tag::MathText, ACTS),
    ("mtext", Tag::MathText, ACTS),
    ("nav", Tag::Nav, BLOCK | ACTS | CONTAINER),
    ("nobr", Tag::Other, BREAKOUT),
    ("noembed", Tag::Rawtext, ACTS),
    ("noframes", Tag::Rawtext, ACTS),
    ("noscript", Tag::Noscript, ACTS),
    ("object", Tag::Object, RESOURCE),
    ("ol", Tag::List, BLOCK | BREAKOUT),
    ("optgroup", Tag::Other, BLOCK),
    ("option", Tag::Other, BLOCK),
    ("p", Tag::P, BLOCK | BREAKOUT),
    ("plaintext", Tag::Plaintext, BLOCK | ACTS),
    ("pre", Tag::Other, BLOCK | BREAKOUT),
    ("ruby", Tag::Other, BREAKOUT),
    ("s", Tag::Other, BREAKOUT),
    ("script", Tag::Script, RESOURCE | ACTS),
    ("search", Tag::Other, BLOCK),
    ("section", Tag::Section, BLOCK | ACTS | CONTAINER),
    ("small", Tag::Other, BREAKOUT),
    ("source", Tag::Source, RESOURCE),
    ("span", Tag::Other, BREAKOUT),
    ("strike", Tag::Other, BREAKOUT),
    ("strong", Tag::Other, BREAKOUT),
    ("style", Tag::Rawtext, ACTS),
    ("sub", Tag::Other, BREAKOUT),
    ("summary", Tag::Other, BLOCK),
    ("sup", Tag::Other, BREAKOUT),
    ("svg", Tag::Svg, ACTS),
    ("table", Tag::Table, BLOCK | BREAKOUT | CONTAINER | ACTS),
    ("tbody", Tag::Rows, BLOCK),
    ("td", Tag::Cell, BLOCK | ACTS),
    ("template", Tag::Template, ACTS),
    ("textarea", Tag::Textarea, ACTS),
    ("tfoot", Tag::Rows, BLOCK),
    ("th", Tag::Cell, BLOCK | ACTS),
    ("thead", Tag::Rows, BLOCK),
    ("title", Tag::Title, ACTS),
    ("tr", Tag::Row, BLOCK),
    ("track", Tag::Media, RESOURCE),
    ("tt", Tag::Other, BREAKOUT),
    ("u", Tag::Other, BREAKOUT),
    ("ul", Tag::List, BLOCK | BREAKOUT | CONTAINER),
    ("var", Tag::Other, BREAKOUT),
    ("video", Tag::Media, RESOURCE),
    ("xmp", Tag::Xmp, BLOCK | ACTS),
];

/// More than there are tags in the table, and more than there are values of [`Tag`]: the size of arrays per tag.
pub(crate) const TAGS: usize = 128;
const _: () = assert!(KNOWN.len() <= TAGS);

const SLOTS: usize = 512;

const fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 55) as usize
}

/// Open addressing; a key of 0 is a free slot.
static TABLE: [(u64, TagInfo); SLOTS] = {
    let mut table = [(0, OTHER); SLOTS];
    let mut at = 0;
    while at < KNOWN.len() {
        let (name, tag, flags) = KNOWN[at];
        if name.len() <= 8 {
            let key = Name::pack(name);
            let mut place = slot(key);
            while table[place].0 != 0 {
                place = (place + 1) % SLOTS;
            }
            table[place] = (key, TagInfo { tag, flags, index: at as u8 });
        }
        at += 1;
    }
    table
};

/// Looks a tag up; `doc` is asked only for names of more than eight bytes.
pub(crate) fn lookup(name: Name, doc: &[u8]) -> TagInfo {
    let key = name.key();
    if key == 0 {
        return lookup_long(name.span().bytes(doc));
    }
    let mut place = slot(key);
    loop {
        let (known, info) = TABLE[place % SLOTS];
        if known == key {
            return info;
        }
        if known == 0 {
            return OTHER;
        }
        place += 1;
    }
}

#[cold]
fn lookup_long(name: &[u8]) -> TagInfo {
    let long = |known: &(&str, Tag, u16)| known.0.len() > 8 && name.eq_ignore_ascii_case(known.0.as_bytes());
    match KNOWN.iter().position(long) {
        Some(at) => TagInfo { tag: KNOWN[at].1, flags: KNOWN[at].2, index: at as u8 },
        None => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_short_probe_chains() {
        let longest = KNOWN
            .iter()
            .filter(|known| known.0.len() <= 8)
            .map(|&(name, ..)| {
                let key = Name::pack(name);
                (0..).find(|step| TABLE[(slot(key) + step) % SLOTS].0 == key).unwrap_or(SLOTS)
            })
            .max();
        assert!(longest <= Some(3), "{longest:?}");
    }
}
