//! The HTML tokenizer: one pass over a complete document, without allocation or copying.
//!
//! It follows the tokenization stage of the HTML standard for every state that affects the tokens. It does not decode
//! character references (the [`Sink`] does, for the values it keeps), report parse errors, or read the fields of a
//! doctype.

use memchr::{memchr, memchr2, memmem};

/// A byte range of the document: `start` inclusive, `end` exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte of the range.
    pub start: u32,
    /// First byte after the range.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        // `tokenize` cuts documents at `MAX_DOCUMENT`, so no offset is above u32::MAX.
        Self { start: start as u32, end: end as u32 }
    }

    /// The piece of `doc` that the range covers; empty if `doc` is not the document that was scanned.
    pub fn of(self, doc: &str) -> &str {
        doc.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// Whether the range covers nothing.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) fn bytes(self, doc: &[u8]) -> &[u8] {
        doc.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The name of a tag or an attribute: its place, and its lower-cased bytes packed into an integer.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    key: u64,
    span: Span,
}

impl Name {
    /// The packed name: see [`Name::pack`]. 0 for names of more than eight bytes, which must be compared in full.
    pub fn key(self) -> u64 {
        self.key
    }

    /// Where the name stands, as written (upper case and NUL bytes are still there).
    pub fn span(self) -> Span {
        self.span
    }

    /// Whether elements of this name are void: they have no content and no end tag (HTML standard, 13.1.2, and the
    /// obsolete `param`).
    pub fn is_void(self) -> bool {
        const VOID: [u64; 14] = [
            Name::pack("area"),
            Name::pack("base"),
            Name::pack("br"),
            Name::pack("col"),
            Name::pack("embed"),
            Name::pack("hr"),
            Name::pack("img"),
            Name::pack("input"),
            Name::pack("link"),
            Name::pack("meta"),
            Name::pack("param"),
            Name::pack("source"),
            Name::pack("track"),
            Name::pack("wbr"),
        ];
        VOID.contains(&self.key)
    }

    /// Packs a lower-case name of at most eight bytes for comparison with [`Name::key`].
    ///
    /// # Panics
    ///
    /// If the name is longer; in a constant this is a compile error.
    pub const fn pack(name: &str) -> u64 {
        let bytes = name.as_bytes();
        assert!(bytes.len() <= 8, "only names of up to eight bytes have a key");
        let mut key = 0;
        let mut at = 0;
        while at < bytes.len() {
            key = key << 8 | bytes[at] as u64;
            at += 1;
        }
        key
    }
}

/// What kind of text a [`Sink::text`] call carries; it decides how references and NUL bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Normal content: references count.
    Data,
    /// `title` and `textarea`: references count, NUL becomes U+FFFD.
    Rcdata,
    /// `style`, `xmp`, `iframe` and the like: no references, NUL becomes U+FFFD.
    Rawtext,
    /// `script`: as raw text.
    Script,
    /// Everything after `<plaintext>`: as raw text.
    Plaintext,
    /// A CDATA section in foreign content: no references.
    Cdata,
}

/// The state in which the tokenizer reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Normal content.
    Data,
    /// Text with references up to the matching end tag.
    Rcdata,
    /// Text without references up to the matching end tag.
    Rawtext,
    /// Script text, with its comment-like escapes, up to `</script>`.
    Script,
    /// Text to the end of the document.
    Plaintext,
    /// Text up to `]]>`.
    Cdata,
}

/// Whether a sink wants to see the attributes of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// [`Sink::attr`] is called for each.
    Wanted,
    /// They are walked without a call, which is faster.
    Skipped,
}

/// The receiver of the tokens.
///
/// A tag counts only at its `>`: after `open` and `attr` there may be no further call if the document ends inside the
/// tag, so a sink should change its state in `opened`. Spans never cut a character in two.
pub trait Sink {
    /// A run of text, references not decoded. Raw text elements give one call for their whole content.
    fn text(&mut self, raw: Span, kind: TextKind);

    /// A start tag begins.
    fn open(&mut self, name: Name) -> Attributes;

    /// An attribute of the tag that began, in order, repeated names included. A missing value is an empty span.
    fn attr(&mut self, name: Name, value: Span);

    /// The start tag is complete. Returns the state for what follows; the raw text states end at the end tag of the
    /// same name.
    fn opened(&mut self, name: Name, self_closing: bool) -> State;

    /// An end tag begins. Its attributes mean nothing; a sink that counts them gets them by [`attr`](Self::attr).
    fn closing(&mut self, _name: Name) -> Attributes {
        Attributes::Skipped
    }

    /// An end tag, complete.
    fn close(&mut self, name: Name);

    /// The content of a comment or of what the standard reads as one. `_start` is the offset of its `<`.
    fn comment(&mut self, _content: Span, _start: u32) {}

    /// A doctype: what stands between `<!` and `>`.
    fn doctype(&mut self, _content: Span) {}

    /// Whether the current element is foreign (SVG, MathML), so that `<![CDATA[` opens a section.
    fn is_foreign(&self) -> bool {
        false
    }
}

/// Documents are read up to this many bytes, since offsets are `u32`.
pub const MAX_DOCUMENT: usize = u32::MAX as usize - 1;

/// Feeds all tokens of `doc` to `sink`, beginning in the data state.
///
/// Time is linear in the length of the document, whatever it contains; there is no recursion.
///
/// ```
/// use huntsman_html::{Attributes, Name, Sink, Span, State, TextKind, tokenize};
///
/// /// Counts images.
/// #[derive(Default)]
/// struct Images(usize);
///
/// impl Sink for Images {
///     fn text(&mut self, _raw: Span, _kind: TextKind) {}
///     fn open(&mut self, _name: Name) -> Attributes {
///         Attributes::Skipped
///     }
///     fn attr(&mut self, _name: Name, _value: Span) {}
///     fn opened(&mut self, name: Name, _self_closing: bool) -> State {
///         const IMG: u64 = Name::pack("img");
///         const SCRIPT: u64 = Name::pack("script");
///         self.0 += usize::from(name.key() == IMG);
///         if name.key() == SCRIPT { State::Script } else { State::Data }
///     }
///     fn close(&mut self, _name: Name) {}
/// }
///
/// let mut images = Images::default();
/// tokenize("<img src=a><script>'<img>'</script><IMG>", &mut images);
/// assert_eq!(images.0, 2);
/// ```
pub fn tokenize<S: Sink>(doc: &str, sink: &mut S) {
    tokenize_from(doc, State::Data, "", sink);
}

/// As [`tokenize`], beginning in any state; `last_start_tag` (lower case) is the tag whose end tag ends a raw text
/// state.
pub fn tokenize_from<S: Sink>(doc: &str, start: State, last_start_tag: &str, sink: &mut S) {
    let doc = &doc[..doc.floor_char_boundary(MAX_DOCUMENT)];
    tokenize_bytes(doc.as_bytes(), start, last_start_tag.as_bytes(), sink);
}

/// As [`tokenize_from`] for bytes in any superset of ASCII; the charset prescan uses it.
pub(crate) fn tokenize_bytes<S: Sink>(doc: &[u8], start: State, last_start_tag: &[u8], sink: &mut S) {
    let tokenizer = Tokenizer { doc, sink };
    tokenizer.run(start, last_start_tag);
}

const fn names(terminators: &[u8]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).to_ascii_lowercase();
        byte += 1;
    }
    table[0] = 0xFF; // NUL is part of a name (as U+FFFD); 0xFF occurs in no UTF-8, so it aliases nothing
    let mut at = 0;
    while at < terminators.len() {
        table[terminators[at] as usize] = 0;
        at += 1;
    }
    table
}

/// Byte to lower-cased byte inside a tag name; 0 ends the name.
static TAG_NAME: [u8; 256] = names(b"\t\n\x0C\r />");
/// The same for attribute names.
static ATTR_NAME: [u8; 256] = names(b"\t\n\x0C\r />=");

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | b'\x0C')
}

fn ends_tag_name(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&byte| TAG_NAME[byte as usize] == 0)
}

struct Tokenizer<'a, 's, S> {
    doc: &'a [u8],
    sink: &'s mut S,
}

impl<S: Sink> Tokenizer<'_, '_, S> {
    fn run(mut self, start: State, last_start_tag: &[u8]) {
        let doc = self.doc;
        let mut at = match start {
            State::Data => 0,
            other => self.raw(other, 0, last_start_tag),
        };
        let mut text = at; // start of the text that was not passed to the sink yet
        while let Some(found) = memchr(b'<', &doc[at..]) {
            let lt = at + found;
            let Some(&next) = doc.get(lt + 1) else { break };
            if next.is_ascii_alphabetic() {
                self.flush(text, lt);
                let Some((after, state, name)) = self.start_tag(lt + 1) else { return };
                at = after;
                if state != State::Data {
                    at = self.raw(state, at, name.span.bytes(doc));
                }
            } else if next == b'/' {
                let Some(&first) = doc.get(lt + 2) else { break };
                self.flush(text, lt);
                if first.is_ascii_alphabetic() {
                    let Some(after) = self.end_tag(lt + 2) else { return };
                    at = after;
                } else if first == b'>' {
                    at = lt + 3;
                } else {
                    at = self.bogus_comment(lt, lt + 2);
                }
            } else if next == b'!' {
                self.flush(text, lt);
                at = self.declaration(lt);
            } else if next == b'?' {
                self.flush(text, lt);
                at = self.bogus_comment(lt, lt + 1);
            } else {
                at = lt + 1; // an ordinary '<': the text goes on
                continue;
            }
            text = at;
        }
        self.flush(text, doc.len());
    }

    fn flush(&mut self, start: usize, end: usize) {
        if start < end {
            self.sink.text(Span::new(start, end), TextKind::Data);
        }
    }

    fn name(&self, start: usize, table: &[u8; 256]) -> Option<Name> {
        // A first byte that ends other names can only be the '=' that begins an attribute name.
        let first = table[*self.doc.get(start)? as usize];
        let mut key = u64::from(if first == 0 { b'=' } else { first });
        let mut end = start + 1;
        loop {
            let lower = table[*self.doc.get(end)? as usize];
            if lower == 0 {
                break;
            }
            key = key << 8 | u64::from(lower);
            end += 1;
        }
        Some(Name { key: if end - start > 8 { 0 } else { key }, span: Span::new(start, end) })
    }

    /// Reads the start tag whose name begins at `start`; `None` at the end of the document.
    fn start_tag(&mut self, start: usize) -> Option<(usize, State, Name)> {
        let name = self.name(start, &TAG_NAME)?;
        let wanted = self.sink.open(name);
        let end = name.span.end as usize;
        let (after, self_closing) = if self.doc[end] == b'>' {
            (end + 1, false)
        } else if wanted == Attributes::Wanted {
            self.attributes::<true>(end)?
        } else {
            self.attributes::<false>(end)?
        };
        Some((after, self.sink.opened(name, self_closing), name))
    }

    fn end_tag(&mut self, start: usize) -> Option<usize> {
        let name = self.name(start, &TAG_NAME)?;
        let wanted = self.sink.closing(name);
        let end = name.span.end as usize;
        let after = if self.doc[end] == b'>' {
            end + 1
        } else if wanted == Attributes::Wanted {
            self.attributes::<true>(end)?.0
        } else {
            self.attributes::<false>(end)?.0
        };
        self.sink.close(name);
        Some(after)
    }

    /// Reads the attributes from `at` to after the `>`, and passes them to the sink if `WANTED`.
    ///
    /// The shortcut "next `>` outside quotes" would be wrong: a quote opens a value only directly after `=`.
    fn attributes<const WANTED: bool>(&mut self, mut at: usize) -> Option<(usize, bool)> {
        let doc = self.doc;
        loop {
            match *doc.get(at)? {
                b'>' => return Some((at + 1, false)),
                b'/' if *doc.get(at + 1)? == b'>' => return Some((at + 2, true)),
                b' ' | b'\n' | b'\t' | b'\r' | b'\x0C' | b'/' => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let name = self.name(at, &ATTR_NAME)?;
            let name_end = name.span.end as usize;
            at = self.skip_space(name_end)?;
            let value = if doc[at] != b'=' {
                Span::new(name_end, name_end)
            } else {
                at = self.skip_space(at + 1)?;
                match doc[at] {
                    quote @ (b'"' | b'\'') => {
                        let start = at + 1;
                        let end = start + memchr(quote, &doc[start..])?;
                        at = end + 1;
                        Span::new(start, end)
                    }
                    b'>' => Span::new(at, at),
                    _ => {
                        let start = at;
                        while !matches!(*doc.get(at)?, b'>' | b' ' | b'\n' | b'\t' | b'\r' | b'\x0C') {
                            at += 1;
                        }
                        Span::new(start, at)
                    }
                }
            };
            if WANTED {
                self.sink.attr(name, value);
            }
        }
    }

    fn skip_space(&self, mut at: usize) -> Option<usize> {
        while is_space(*self.doc.get(at)?) {
            at += 1;
        }
        Some(at)
    }

    /// `<!`: comment, doctype, CDATA section or bogus comment.
    fn declaration(&mut self, lt: usize) -> usize {
        let rest = &self.doc[lt + 2..];
        if rest.starts_with(b"--") {
            return self.comment(lt);
        }
        if rest.len() >= 7 && rest[..7].eq_ignore_ascii_case(b"doctype") {
            let end = memchr(b'>', rest).map_or(self.doc.len(), |found| lt + 2 + found);
            self.sink.doctype(Span::new(lt + 2, end));
            return (end + 1).min(self.doc.len());
        }
        if rest.starts_with(b"[CDATA[") && self.sink.is_foreign() {
            return self.raw(State::Cdata, lt + 9, b"");
        }
        self.bogus_comment(lt, lt + 2)
    }

    fn comment(&mut self, lt: usize) -> usize {
        let doc = self.doc;
        let start = lt + 4;
        let mut at = start;
        while let Some(found) = memchr(b'>', &doc[at..]) {
            let gt = at + found;
            let content = &doc[start..gt];
            // `<!-->` and `<!--->` are complete: their own dashes count for the end.
            let end = if content.is_empty() || content == b"-" {
                Some(start)
            } else if content.ends_with(b"--") {
                Some(gt - 2)
            } else if content.ends_with(b"--!") {
                Some(gt - 3)
            } else {
                None
            };
            if let Some(end) = end {
                self.sink.comment(Span::new(start, end), lt as u32);
                return gt + 1;
            }
            at = gt + 1;
        }
        let content = &doc[start..];
        let cut =
            [&b"--!"[..], b"--", b"-"].into_iter().find(|end| content.ends_with(end)).map_or(0, <[u8]>::len);
        self.sink.comment(Span::new(start, doc.len() - cut), lt as u32);
        doc.len()
    }

    fn bogus_comment(&mut self, lt: usize, start: usize) -> usize {
        let end = memchr(b'>', &self.doc[start..]).map_or(self.doc.len(), |found| start + found);
        self.sink.comment(Span::new(start, end), lt as u32);
        (end + 1).min(self.doc.len())
    }

    /// Reads raw text from `start` and the end tag behind it; returns where normal content goes on.
    fn raw(&mut self, state: State, start: usize, element: &[u8]) -> usize {
        let doc = self.doc;
        let (kind, end) = match state {
            State::Data => return start,
            State::Rcdata => (TextKind::Rcdata, self.raw_end(start, element)),
            State::Rawtext => (TextKind::Rawtext, self.raw_end(start, element)),
            State::Script => (TextKind::Script, self.script_end(start, element)),
            State::Plaintext => (TextKind::Plaintext, None),
            State::Cdata => (TextKind::Cdata, memmem::find(&doc[start..], b"]]>").map(|found| start + found)),
        };
        let text = Span::new(start, end.unwrap_or(doc.len()));
        if !text.is_empty() {
            self.sink.text(text, kind);
        }
        match end {
            None => doc.len(),
            Some(end) if state == State::Cdata => end + 3,
            Some(end) => self.end_tag(end + 2).unwrap_or(doc.len()),
        }
    }

    /// Whether `</element` and the end of a name stand at `lt`.
    fn is_end_of(&self, lt: usize, element: &[u8]) -> bool {
        let rest = &self.doc[lt..];
        let name = rest.get(2..2 + element.len());
        rest.get(1) == Some(&b'/')
            && !element.is_empty()
            && name.is_some_and(|name| name.eq_ignore_ascii_case(element))
            && ends_tag_name(rest.get(2 + element.len()))
    }

    /// Offset of the `</element` that ends raw text.
    fn raw_end(&self, start: usize, element: &[u8]) -> Option<usize> {
        let mut at = start;
        loop {
            let lt = at + memchr(b'<', &self.doc[at..])?;
            if self.is_end_of(lt, element) {
                return Some(lt);
            }
            at = lt + 1;
        }
    }

    /// Offset of the `</script` that ends a script: not the one that closes a `<script` after `<!--`.
    fn script_end(&self, start: usize, element: &[u8]) -> Option<usize> {
        let doc = self.doc;
        let mut at = start;
        loop {
            let lt = at + memchr(b'<', &doc[at..])?;
            if self.is_end_of(lt, element) {
                return Some(lt);
            }
            at = lt + 1;
            if !doc[at..].starts_with(b"!--") {
                continue;
            }
            let dashes = at + 1; // the dashes of `<!--` count for `-->`
            at += 3;
            let mut double = false;
            loop {
                let found = at + memchr2(b'<', b'>', &doc[at..])?;
                if doc[found] == b'>' {
                    at = found + 1;
                    if found >= dashes + 2 && doc[..found].ends_with(b"--") {
                        break;
                    }
                } else if double {
                    double = !self.is_end_of(found, b"script");
                    at = found + 1;
                } else if self.is_end_of(found, element) {
                    return Some(found);
                } else {
                    let name = doc.get(found + 1..found + 7);
                    double = name.is_some_and(|name| name.eq_ignore_ascii_case(b"script"))
                        && ends_tag_name(doc.get(found + 7));
                    at = found + 1;
                }
            }
        }
    }
}
