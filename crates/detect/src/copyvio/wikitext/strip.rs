//! Extracts the text of a page from its pieces.

use huntsman_html::{Context, decode};

use super::super::words::trim;
use super::pieces::{Frame, Kind, NONE, Piece, Pieces};
use super::tags::INVISIBLE;

/// The least number of characters of wikitext in a template's value that is kept.
const LONG_VALUE: usize = 35;
/// Links that show no text, by their lower-cased title.
const HIDDEN_LINKS: [&str; 3] = ["file:", "image:", "category:"];

pub(super) fn text(pieces: &Pieces<'_>) -> String {
    let facts = Facts::of(pieces);
    let mut writer = Writer { out: String::new(), muted: 0, starts: Vec::new() };
    let mut open: Vec<Construct> = Vec::new();
    let mut at = 0;
    while let Some(piece) = pieces.list.get(at).copied() {
        let source = pieces.source(piece);
        let mut next = at + 1;
        match piece.kind {
            Kind::Text => writer.push(source),
            Kind::Entity => writer.push(&decode(source, Context::Text)),
            Kind::Markup => {}
            Kind::Address => {
                if open.last().is_none_or(|context| context.frame != Frame::ExternalLink) {
                    writer.push(source);
                }
            }
            Kind::Open(_) if piece.partner == NONE => writer.push(source),
            Kind::Open(_) if facts.skipped[at] => next = piece.partner as usize + 1,
            Kind::Open(frame) => {
                let mut context =
                    Construct { frame, bars: 0, in_key: false, is_muted: false, has_long: false };
                match frame {
                    Frame::Template | Frame::Argument => context.is_muted = true,
                    Frame::Link => context.is_muted = facts.has_bar[at],
                    Frame::Cell if piece.attributes != NONE => next = piece.attributes as usize + 1,
                    _ => {}
                }
                writer.muted += usize::from(context.is_muted);
                if frame != Frame::Template {
                    writer.starts.push(writer.out.len());
                }
                if frame == Frame::Heading {
                    writer.push(surplus(pieces, piece));
                }
                open.push(context);
            }
            Kind::Close(frame) => {
                let context = open.pop().expect("every end has a beginning");
                if frame == Frame::Heading {
                    let level = pieces.list[piece.partner as usize];
                    writer.push(&source[source.len().min((level.end - level.start) as usize).min(6)..]);
                }
                writer.muted -= usize::from(context.is_muted);
                if frame == Frame::Template {
                    if context.has_long {
                        writer.push(" ");
                    }
                } else {
                    writer.end();
                }
            }
            Kind::Bar | Kind::Equals => {
                let context = open.last_mut();
                match context.and_then(|context| context.separates(piece.kind).then_some(context)) {
                    Some(context) => {
                        let mute = context.frame == Frame::Template && !facts.is_long[at];
                        writer.muted = writer.muted + usize::from(mute) - usize::from(context.is_muted);
                        context.is_muted = mute;
                        if context.frame == Frame::Template && !mute {
                            context.has_long = true;
                            writer.push(" ");
                        }
                    }
                    None => writer.push(source),
                }
            }
        }
        at = next;
    }
    let mut text = String::with_capacity(writer.out.len());
    for c in trim(&writer.out).chars() {
        if c != '\n' || !text.ends_with('\n') {
            text.push(c);
        }
    }
    text
}

/// The equals signs at the start of a heading that exceed those at its end.
fn surplus<'t>(pieces: &Pieces<'t>, open: Piece) -> &'t str {
    let close = pieces.list[open.partner as usize];
    let source = pieces.source(open);
    let level = source.len().min((close.end - close.start) as usize).min(6);
    &source[level..]
}

/// A construct whose output is being written.
struct Construct {
    frame: Frame,
    bars: usize,
    in_key: bool,
    is_muted: bool,
    has_long: bool,
}

impl Construct {
    /// Whether a bar or an equals sign is a separator here; if so, the construct records it.
    fn separates(&mut self, kind: Kind) -> bool {
        match (self.frame, kind) {
            (Frame::Template, Kind::Bar) => {
                self.in_key = true;
                true
            }
            (Frame::Template, Kind::Equals) => std::mem::take(&mut self.in_key),
            (Frame::Link | Frame::Argument, Kind::Bar) => {
                self.bars += 1;
                self.bars == 1
            }
            _ => false,
        }
    }
}

/// The text so far. Line breaks at the ends of a construct's content are dropped.
struct Writer {
    out: String,
    /// The number of open constructs that are silent here.
    muted: usize,
    /// The start of the output of each open construct.
    starts: Vec<usize>,
}

impl Writer {
    fn push(&mut self, text: &str) {
        if self.muted > 0 {
            return;
        }
        let at_start = self.starts.last().is_some_and(|start| *start == self.out.len());
        self.out.push_str(if at_start { text.trim_start_matches('\n') } else { text });
    }

    fn end(&mut self) {
        let start = self.starts.pop().expect("it was begun");
        let kept = self.out[start..].trim_end_matches('\n').len();
        self.out.truncate(start + kept);
    }
}

/// Facts about pieces that must be known before their ends are reached.
struct Facts {
    /// For starts: whether the construct shows no text at all.
    skipped: Vec<bool>,
    /// For starts of links: whether there is a label.
    has_bar: Vec<bool>,
    /// For the bar or equals sign before a value: whether the value is kept.
    is_long: Vec<bool>,
}

/// A construct whose facts are being gathered.
struct OpenFacts {
    at: usize,
    construct: Construct,
    /// For a template: the piece before the value, and the number of characters up to there.
    value: Option<(usize, usize)>,
}

impl Facts {
    fn of(pieces: &Pieces<'_>) -> Self {
        let list = &pieces.list;
        let mut facts = Self {
            skipped: vec![false; list.len()],
            has_bar: vec![false; list.len()],
            is_long: vec![false; list.len()],
        };
        let mut open: Vec<OpenFacts> = Vec::new();
        // The number of characters so far, without text that is dropped before templates are handled.
        let mut length = 0;
        let mut at = 0;
        while let Some(piece) = list.get(at).copied() {
            let source = pieces.source(piece);
            match piece.kind {
                Kind::Open(frame) if piece.partner != NONE => {
                    let is_dropped = match frame {
                        Frame::Tag => tag_name(source) == "ref",
                        Frame::Link => is_hidden_link(pieces, at),
                        _ => false,
                    };
                    facts.skipped[at] = is_dropped;
                    if is_dropped {
                        at = piece.partner as usize + 1;
                        continue;
                    }
                    if frame == Frame::Tag {
                        facts.skipped[at] =
                            INVISIBLE.iter().any(|name| name.eq_ignore_ascii_case(tag_name(source)));
                    }
                    let context =
                        Construct { frame, bars: 0, in_key: false, is_muted: false, has_long: false };
                    open.push(OpenFacts { at, construct: context, value: None });
                }
                Kind::Close(_) => {
                    let ended = open.pop().expect("every end has a beginning");
                    if let Some((start, before)) = ended.value {
                        facts.is_long[start] = length - before >= LONG_VALUE;
                    }
                }
                Kind::Bar | Kind::Equals => {
                    if let Some(OpenFacts { at: place, construct, value }) = open.last_mut()
                        && construct.separates(piece.kind)
                    {
                        match construct.frame {
                            Frame::Template => {
                                if let Some((start, before)) = value.filter(|_| piece.kind == Kind::Bar) {
                                    facts.is_long[start] = length - before >= LONG_VALUE;
                                }
                                *value = Some((at, length + 1));
                            }
                            _ => facts.has_bar[*place] = true,
                        }
                    }
                }
                // A reference without content is dropped as well.
                Kind::Markup if source.starts_with('<') && tag_name(source) == "ref" => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            length += source.chars().count();
            at += 1;
        }
        facts
    }
}

fn tag_name(tag: &str) -> &str {
    let name = tag.trim_start_matches('<');
    &name[..name.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(name.len())]
}

/// Whether the link that begins at a piece leads to a file or a category.
fn is_hidden_link(pieces: &Pieces<'_>, at: usize) -> bool {
    let rest = &pieces.text[pieces.list[at].end as usize..];
    let rest = rest.trim_start_matches(super::super::words::is_space);
    // All three names are ASCII, and no other letter becomes one of theirs in lower case (the Kelvin sign becomes a k, which none of them
    // has).
    HIDDEN_LINKS
        .iter()
        .any(|prefix| rest.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)))
}
