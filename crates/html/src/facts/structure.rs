//! The elements that are open around a place, as far as lists, tables and the depth of a page need them.
//!
//! This is no tree: end tags that may be left out are implied as the standard says (13.2.6), and what is nested wrongly is only tidied.

use super::semantics::Semantics;
use super::{
    A, CODE, FORM, H1, H6, HEAD, HTML, MAIN, PRE, Q, SCRIPT, SELECT, STYLE, TEMPLATE, TEXTAREA, keep,
};
use crate::tokenizer::Name;

/// Elements that are open at once and remembered; deeper ones count for the depth alone.
const MAX_OPEN: usize = 512;

macro_rules! names {
    ($($name:ident = $text:literal),+ $(,)?) => { $( const $name: u64 = Name::pack($text); )+ };
}

names! {
    ABBR = "abbr", ADDRESS = "address", ARTICLE = "article", ASIDE = "aside", B = "b", BIG = "big", BODY = "body", BR = "br",
    BUTTON = "button", CAPTION = "caption", CENTER = "center", COL = "col", COLGROUP = "colgroup", DD = "dd", DETAILS = "details",
    DIALOG = "dialog", DIR = "dir", DIV = "div", DL = "dl", DT = "dt", EM = "em", FIELDSET = "fieldset", FIGURE = "figure",
    FONT = "font", FOOTER = "footer", HEADER = "header", HGROUP = "hgroup", HR = "hr", I = "i", LI = "li", LINK = "link", MENU = "menu",
    META = "meta", NAV = "nav", NOBR = "nobr", NOSCRIPT = "noscript", OBJECT = "object", OL = "ol", OPTGROUP = "optgroup",
    OPTION = "option", P = "p", S = "s", SEARCH = "search", SECTION = "section", SMALL = "small", SPAN = "span", STRIKE = "strike",
    STRONG = "strong", SUB = "sub", SUMMARY = "summary", SUP = "sup", TABLE = "table", TBODY = "tbody", TD = "td", TFOOT = "tfoot",
    TH = "th", THEAD = "thead", TIME = "time", TR = "tr", TT = "tt", U = "u", UL = "ul",
}

/// A start tag of HTML.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartTag {
    pub(super) name: Name,
    pub(super) has_role: bool,
    pub(super) is_hidden: bool,
    /// It has no content that is read as markup.
    pub(super) is_leaf: bool,
    /// A cell that takes the room of several.
    pub(super) is_wide: bool,
    /// A cell that says that it is the header of others, or which headers it has.
    pub(super) is_header: bool,
}

#[derive(Clone, Copy, Debug)]
struct Element {
    name: Name,
    has_role: bool,
}

impl Element {
    fn is(&self, tags: &[u64]) -> bool {
        tags.contains(&self.name.key())
    }
}

/// An open table.
#[derive(Clone, Copy, Debug)]
struct Table {
    /// Its place among the open elements.
    at: usize,
    offset: u32,
    /// Whether it may be one of data: it has text alone, and as many cells in each row.
    is_plain: bool,
    has_header: bool,
    rows: usize,
    cells: usize,
    columns: Option<usize>,
}

impl Table {
    fn end_row(&mut self) {
        if self.rows > 0 {
            self.is_plain &= self.columns.is_none_or(|columns| columns == self.cells);
            self.columns = Some(self.cells);
        }
        self.cells = 0;
    }
}

/// The open elements.
#[derive(Debug, Default)]
pub(super) struct Structure {
    open: Vec<Element>,
    tables: Vec<Table>,
    /// Elements that were too many to be remembered.
    deeper: usize,
}

impl Structure {
    pub(super) fn opened(&mut self, doc: &str, tag: StartTag, facts: &mut Semantics) {
        let key = tag.name.key();
        if matches!(key, HTML | HEAD | BODY) {
            return;
        }
        self.imply_ends(doc, key);
        if self.deeper == 0 && !tag.is_hidden && self.breaks_list(doc, tag) {
            keep(&mut facts.broken_lists, tag.name.span().start, &mut facts.cut);
        }
        self.table_part(tag);
        // The body is one, too.
        facts.depth = facts.depth.max(self.open.len() + self.deeper + 2);
        if tag.is_leaf || tag.name.is_void() {
            return;
        }
        if self.open.len() == MAX_OPEN {
            self.deeper += 1;
            return;
        }
        if key == TABLE {
            let is_plain = self.tables.is_empty() && !tag.has_role && !tag.is_hidden;
            let (at, offset) = (self.open.len(), tag.name.span().start);
            self.tables.push(Table {
                at,
                offset,
                is_plain,
                has_header: false,
                rows: 0,
                cells: 0,
                columns: None,
            });
        }
        self.open.push(Element { name: tag.name, has_role: tag.has_role });
    }

    pub(super) fn closed(&mut self, doc: &str, name: Name, facts: &mut Semantics) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let Some(at) = self.find_open(doc, name) else { return };
        let key = name.key();
        let has_blocks = self.open[at + 1..].iter().any(|element| is_special(doc, element.name));
        if has_blocks && !is_special(doc, name) {
            // Formatting ends, and the blocks in it stay open; the end of any other element is ignored.
            if is_formatting(key) {
                self.remove(at);
            }
            return;
        }
        if key == TABLE
            && let Some(mut table) = self.tables.pop_if(|table| table.at == at)
        {
            table.end_row();
            let is_wide = table.rows >= 2 && table.columns.is_some_and(|columns| columns >= 2);
            if table.is_plain && !table.has_header && is_wide {
                keep(&mut facts.headless_tables, table.offset, &mut facts.cut);
            }
        }
        self.truncate(at);
    }

    fn truncate(&mut self, at: usize) {
        self.open.truncate(at);
        while self.tables.pop_if(|table| table.at >= at).is_some() {}
    }

    fn remove(&mut self, at: usize) {
        self.open.remove(at);
        self.tables.iter_mut().filter(|table| table.at > at).for_each(|table| table.at -= 1);
    }

    /// The element that an end tag ends. Those outside of a cell are out of reach, but for parts of tables.
    fn find_open(&self, doc: &str, name: Name) -> Option<usize> {
        let key = name.key();
        let is_part = matches!(key, TABLE | TBODY | THEAD | TFOOT | TR | TD | TH | CAPTION);
        for (at, element) in self.open.iter().enumerate().rev() {
            if is_same(doc, element.name, name) {
                return Some(at);
            }
            if element.is(&[TABLE]) || (!is_part && element.is(&[TD, TH, CAPTION])) {
                return None;
            }
        }
        None
    }

    /// Ends what a start tag ends.
    fn imply_ends(&mut self, doc: &str, key: u64) {
        match key {
            LI => self.end_item(doc, &[LI]),
            DT | DD => self.end_item(doc, &[DT, DD]),
            OPTION | OPTGROUP if self.open.last().is_some_and(|last| last.is(&[OPTION])) => {
                self.truncate(self.open.len() - 1);
            }
            TBODY | THEAD | TFOOT => {
                self.end_part(&[TBODY, THEAD, TFOOT, TR, TD, TH, CAPTION, COLGROUP]);
            }
            TR => self.end_part(&[TR, TD, TH, CAPTION, COLGROUP]),
            TD | TH => self.end_part(&[TD, TH, CAPTION, COLGROUP]),
            A | BUTTON => {
                if let Some(at) = self.in_scope(key) {
                    if key == A { self.remove(at) } else { self.truncate(at) }
                }
            }
            H1..=H6 if self.open.last().is_some_and(|last| (H1..=H6).contains(&last.name.key())) => {
                self.truncate(self.open.len() - 1);
            }
            _ => {}
        }
        if closes_paragraph(key)
            && let Some(at) = self.in_scope(P)
        {
            self.truncate(at);
        }
    }

    fn end_item(&mut self, doc: &str, items: &[u64]) {
        for (at, element) in self.open.iter().enumerate().rev() {
            if element.is(items) {
                return self.truncate(at);
            }
            if is_special(doc, element.name) && !element.is(&[ADDRESS, DIV, P]) {
                return;
            }
        }
    }

    /// Ends the outermost of these parts of the innermost table.
    fn end_part(&mut self, parts: &[u64]) {
        let table = self.open.iter().rposition(|element| element.is(&[TABLE]));
        let from = table.map_or(self.open.len(), |at| at + 1);
        if let Some(at) = self.open[from..].iter().position(|element| element.is(parts)) {
            self.truncate(from + at);
        }
    }

    fn in_scope(&self, key: u64) -> Option<usize> {
        let found = self
            .open
            .iter()
            .rposition(|element| element.is(&[key, TD, TH, CAPTION, TABLE, BUTTON, OBJECT]))?;
        (self.open[found].name.key() == key).then_some(found)
    }

    /// Whether an element is an item outside of a list, or something else than an item in a list. Elements with a role mean what it says, and
    /// what is around parts of custom elements shows only in a browser.
    fn breaks_list(&self, doc: &str, tag: StartTag) -> bool {
        let key = tag.name.key();
        let Some(parent) = self.open.last() else { return matches!(key, LI | DT | DD) && !tag.has_role };
        let is_custom = |name: Name| name.span().of(doc).contains('-');
        let is_invisible = matches!(key, SCRIPT | TEMPLATE | STYLE | LINK | META | NOSCRIPT);
        if tag.has_role || parent.has_role || is_invisible || is_custom(tag.name) || is_custom(parent.name) {
            return false;
        }
        let around = self.open.len().checked_sub(2).map(|at| self.open[at]);
        match key {
            LI => !parent.is(&[UL, OL, MENU, DIR]),
            DT | DD => {
                let is_group =
                    parent.is(&[DIV]) && around.is_some_and(|element| element.is(&[DL]) || element.has_role);
                !parent.is(&[DL]) && !is_group
            }
            DIV => parent.is(&[UL, OL]),
            _ => parent.is(&[UL, OL, DL]),
        }
    }

    fn table_part(&mut self, tag: StartTag) {
        let Some(table) = self.tables.last_mut() else { return };
        match tag.name.key() {
            TR => {
                table.end_row();
                table.rows += 1;
            }
            TD | TH => {
                table.cells += 1;
                table.has_header |= tag.name.key() == TH || tag.is_header || tag.has_role;
                table.is_plain &= !tag.is_wide;
            }
            A | ABBR | B | BR | CAPTION | COL | COLGROUP | EM | I | P | Q | S | SMALL | SPAN | STRONG
            | SUB | SUP | TBODY | TFOOT | THEAD | TIME | U => {}
            _ => table.is_plain = false,
        }
    }
}

fn is_same(doc: &str, one: Name, other: Name) -> bool {
    let is_long = one.key() == 0 && other.key() == 0;
    if is_long {
        one.span().of(doc).eq_ignore_ascii_case(other.span().of(doc))
    } else {
        one.key() == other.key()
    }
}

fn is_formatting(key: u64) -> bool {
    matches!(key, A | B | BIG | CODE | EM | FONT | I | NOBR | S | SMALL | STRIKE | STRONG | TT | U)
}

/// Whether an element is a block or a container, which ends with its own end tag alone.
fn is_special(doc: &str, name: Name) -> bool {
    match name.key() {
        0 => {
            let name = name.span().of(doc);
            name.eq_ignore_ascii_case("blockquote") || name.eq_ignore_ascii_case("figcaption")
        }
        key => {
            closes_paragraph(key)
                || matches!(
                    key,
                    BUTTON
                        | CAPTION
                        | COLGROUP
                        | DD
                        | DT
                        | LI
                        | OBJECT
                        | SELECT
                        | TBODY
                        | TD
                        | TEMPLATE
                        | TEXTAREA
                        | TFOOT
                        | TH
                        | THEAD
                        | TR
                )
        }
    }
}

/// Whether a start tag ends an open paragraph.
fn closes_paragraph(key: u64) -> bool {
    matches!(
        key,
        ADDRESS
            | ARTICLE
            | ASIDE
            | CENTER
            | DETAILS
            | DIALOG
            | DIR
            | DIV
            | DL
            | FIELDSET
            | FIGURE
            | FOOTER
            | FORM
            | H1
            ..=H6
                | HEADER
                | HGROUP
                | HR
                | LI
                | DT
                | DD
                | MAIN
                | MENU
                | NAV
                | OL
                | P
                | PRE
                | SEARCH
                | SECTION
                | SUMMARY
                | TABLE
                | UL
    )
}
