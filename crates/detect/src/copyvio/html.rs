//! Extracts the text of an HTML page as the reference does: one line per text node of the body.

use std::collections::HashMap;

use huntsman_html::{Attributes, Context, Name, Sink, Span, State, TextKind, decode, tokenize};

use super::words::trim;

/// The text of an HTML page: each text node in `body` is one line, trimmed, with line breaks as spaces. Empty without a body.
///
/// Text in `script`, `style`, `template`, `rt`, `rp` and comments does not count; `noscript`, `textarea`, `option`, `nav`, `footer`,
/// fallbacks of frames and hidden elements do. Attributes are not read. A text node is a line, so `W<i>o</i>rd` gives three words, as in
/// the reference; [`huntsman_html::Scan`] does better.
///
/// This is one pass over the tokens, without a tree. End tags without a start tag do not end a node, and everything after `</body>` or
/// `</html>` is dropped, as in the reference. Other tree repairs (text in tables that is moved before them) are not made, because they
/// change no word. If the reference's parser (libxml2) and the HTML standard differ, the standard is followed: a stray `</p>` or `</br>`
/// makes an element and ends a node, and an annotation needs a `ruby` around it.
pub fn html_text(html: &str) -> String {
    read(html, None).0
}

/// As [`html_text`], and also returns the addresses of the page.
pub fn html_text_and_addresses(html: &str) -> (String, Addresses) {
    read(html, Some(String::new()))
}

/// The values of all `href` and `src` attributes of a page, head included, unchanged; empty for a page without a body, as in the reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(Box<str>);

impl Addresses {
    /// The hint ([`super::mirror_hints`]) that one of the addresses contains, if any. Such a page is a mirror of the article's wiki and
    /// must be excluded.
    pub fn mirror(&self, hints: &[String]) -> Option<MirrorHint> {
        let hint = |address: &str| hints.iter().find(|hint| address.contains(&***hint));
        self.0.lines().find_map(hint).map(|hint| MirrorHint(hint.clone()))
    }

    /// Number of bytes of all addresses.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// The part of a link that shows that a page is a mirror of the article's wiki.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorHint(pub String);

impl std::fmt::Display for MirrorHint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "links to `{}`", self.0)
    }
}

fn read(html: &str, addresses: Option<String>) -> (String, Addresses) {
    let mut sink = TextNodes {
        html,
        addresses,
        text: String::new(),
        node: String::new(),
        body: Body::Before,
        open: HashMap::new(),
        muted: Vec::new(),
        raw: false,
    };
    tokenize(html, &mut sink);
    sink.end_node();
    match sink.body {
        Body::Before | Body::None => (String::new(), Addresses::default()),
        Body::Open | Body::Behind => (sink.text, Addresses(sink.addresses.unwrap_or_default().into())),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Before,
    Open,
    /// After `</body>` or `</html>`.
    Behind,
    /// The page has frames instead of a body.
    None,
}

struct TextNodes<'h> {
    html: &'h str,
    /// The addresses, one per line, if they are wanted.
    addresses: Option<String>,
    text: String,
    node: String,
    body: Body,
    /// The number of open elements by name; end tags of other names are ignored. Bounded by the names in the page.
    open: HashMap<Vec<u8>, u32>,
    /// The open elements whose content does not count, the innermost last.
    muted: Vec<u64>,
    /// Whether the tokenizer is in a raw text element, which only its own end tag ends.
    raw: bool,
}

const BODY: u64 = Name::pack("body");
const BR: u64 = Name::pack("br");
const FRAMESET: u64 = Name::pack("frameset");
const HTML: u64 = Name::pack("html");
const P: u64 = Name::pack("p");
const RP: u64 = Name::pack("rp");
const RT: u64 = Name::pack("rt");
const RUBY: u64 = Name::pack("ruby");
const SCRIPT: u64 = Name::pack("script");
const STYLE: u64 = Name::pack("style");
const TEMPLATE: u64 = Name::pack("template");
const TEXTAREA: u64 = Name::pack("textarea");
const TITLE: u64 = Name::pack("title");
const PLAIN: u64 = 0; // `plaintext` is longer than eight bytes
const IFRAME: u64 = Name::pack("iframe");
const NOEMBED: u64 = Name::pack("noembed");
const NOFRAMES: u64 = Name::pack("noframes");
const XMP: u64 = Name::pack("xmp");

/// Elements that belong to the head and do not open a body.
const HEAD: [u64; 11] = [
    Name::pack("head"),
    Name::pack("title"),
    Name::pack("meta"),
    Name::pack("link"),
    Name::pack("base"),
    Name::pack("basefont"),
    Name::pack("bgsound"),
    Name::pack("style"),
    Name::pack("script"),
    Name::pack("noscript"),
    Name::pack("template"),
];

impl TextNodes<'_> {
    fn name(&self, name: Name) -> Vec<u8> {
        name.span().of(self.html).to_ascii_lowercase().into_bytes()
    }

    fn end_node(&mut self) {
        let node = trim(&self.node);
        if !node.is_empty() {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.extend(node.chars().map(|c| if c == '\n' { ' ' } else { c }));
        }
        self.node.clear();
    }
}

impl Sink for TextNodes<'_> {
    fn text(&mut self, raw: Span, kind: TextKind) {
        let raw = raw.of(self.html);
        if !self.muted.is_empty() || self.raw && self.body == Body::Before {
            return;
        }
        match self.body {
            Body::Before if raw.bytes().all(|byte| byte.is_ascii_whitespace()) => return,
            Body::Before => self.body = Body::Open,
            Body::Behind | Body::None => return,
            Body::Open => {}
        }
        match kind {
            TextKind::Data | TextKind::Rcdata => self.node.push_str(&decode(raw, Context::Text)),
            _ => self.node.push_str(raw),
        }
    }

    fn open(&mut self, _name: Name) -> Attributes {
        if self.addresses.is_some() { Attributes::Wanted } else { Attributes::Skipped }
    }

    fn attr(&mut self, name: Name, value: Span) {
        const HREF: u64 = Name::pack("href");
        const SRC: u64 = Name::pack("src");
        if matches!(name.key(), HREF | SRC)
            && let Some(addresses) = &mut self.addresses
        {
            addresses.push_str(&decode(value.of(self.html), Context::Attribute));
            addresses.push('\n');
        }
    }

    fn opened(&mut self, name: Name, _self_closing: bool) -> State {
        self.end_node();
        let key = name.key();
        match self.body {
            Body::Before if key == FRAMESET => self.body = Body::None,
            Body::Before if key != HTML && !HEAD.contains(&key) => self.body = Body::Open,
            _ => {}
        }
        let muted = self.muted.last().copied();
        if matches!(key, RT | RP) && matches!(muted, Some(RT | RP)) {
            self.muted.pop();
        }
        if !name.is_void() {
            *self.open.entry(self.name(name)).or_default() += 1;
            // Within a template only templates count; an annotation needs something to annotate.
            let mutes = match key {
                TEMPLATE => true,
                SCRIPT | STYLE => muted != Some(TEMPLATE),
                RT | RP => {
                    muted != Some(TEMPLATE) && self.open.get(&b"ruby"[..]).is_some_and(|open| *open > 0)
                }
                _ => false,
            };
            if mutes {
                self.muted.push(key);
            }
        }
        self.raw = true;
        match key {
            TITLE | TEXTAREA => State::Rcdata,
            SCRIPT => State::Script,
            STYLE | XMP | IFRAME | NOEMBED | NOFRAMES => State::Rawtext,
            PLAIN if self.name(name) == b"plaintext" => State::Plaintext,
            _ => {
                self.raw = false;
                State::Data
            }
        }
    }

    fn close(&mut self, name: Name) {
        let key = name.key();
        self.raw = false;
        let name = self.name(name);
        let Some(open) = self.open.get_mut(&name).filter(|open| **open > 0) else {
            // A stray end tag of these two makes an element.
            if matches!(key, P | BR) {
                self.end_node();
            } else if matches!(key, BODY | HTML) && self.body == Body::Open {
                self.end_node();
                self.body = Body::Behind;
            }
            return;
        };
        *open -= 1;
        self.end_node();
        match key {
            BODY | HTML if self.body == Body::Open => self.body = Body::Behind,
            RUBY if matches!(self.muted.last(), Some(&RT | &RP)) => {
                self.muted.pop();
            }
            key if self.muted.last() == Some(&key) => {
                self.muted.pop();
            }
            _ => {}
        }
    }

    fn comment(&mut self, _content: Span, _start: u32) {
        self.end_node();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_node_is_a_line() {
        let html = "<title>T</title><body>a<b>b</b>c<!-- d -->e\nf</x>g<p> </p>h<br>i</body>lost<p>j";
        assert_eq!(html_text(html), "a\nb\nc\ne fg\nh\ni");
    }

    #[test]
    fn invisible_text_does_not_count() {
        let html = "<body>a<script>b</script><style>c</style><template>d<p>e</p></template>\
                    <ruby>f<rp>(</rp><rt>g<rt>h</ruby>i<textarea>j&amp;<b></textarea></body>";
        assert_eq!(html_text(html), "a\nf\ni\nj&<b>");
    }

    #[test]
    fn frames_have_no_text() {
        assert_eq!(html_text("<html><frameset><frame src=a><noframes>none</noframes></frameset>"), "");
        assert_eq!(html_text("<head><title>a</title><script>b</script></head> "), "");
    }

    #[test]
    fn a_link_to_the_wiki_makes_a_mirror() {
        let hints = ["en.wikipedia.org/wiki/Mill".to_owned()];
        let mirror = "<link href='//en.wikipedia.org/wiki/Mill?x=1&amp;y'><body>text";
        let (text, addresses) = html_text_and_addresses(mirror);
        assert_eq!((&*text, addresses.mirror(&hints)), ("text", Some(MirrorHint(hints[0].clone()))));
        let (text, addresses) = html_text_and_addresses("<a title='en.wikipedia.org/wiki/Mill'>a");
        assert_eq!((&*text, addresses.mirror(&hints)), ("a", None));
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let html = format!("<body>{}end", "<b>".repeat(200_000));
        assert_eq!(html_text(&html), "end");
    }
}
