//! Decodes bodies: finds the encoding of the bytes and converts them to text.

use std::borrow::Cow;
use std::fmt;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EncoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use memchr::memmem;

use crate::references::{Context, decode};
use crate::tokenizer::{Attributes, Name, Sink, Span, State, TextKind, tokenize_bytes};

/// Number of bytes that are searched for a declaration (browsers read 1 KiB, Scrapy 4).
const DECLARATION_LIMIT: usize = 4096;
/// Number of bytes that the detector reads; it costs about 5 us per KiB of text that is not ASCII.
const DETECTION_LIMIT: usize = 64 * 1024;
/// A body with stray bytes is still UTF-8 if it has this many good characters beyond ASCII for each.
const GOOD_PER_BAD: usize = 10;

/// The evidence that decided the encoding, in order of precedence: the first one with a known encoding is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CharsetSource {
    /// The caller gave it.
    Explicit,
    /// The `charset` of the Content-Type header.
    Header,
    /// A byte order mark.
    Bom,
    /// `meta charset`, `meta http-equiv=content-type` or an XML declaration in the first 4 KiB.
    Declaration,
    /// No label, and the body is valid UTF-8 (plain ASCII and empty bodies too).
    ValidUtf8,
    /// The detector's guess from the first 64 KiB.
    Detection,
}

/// Encodes a query in an encoding, as the URL standard requires for links of pages in that encoding: a character that
/// the encoding lacks becomes a percent-encoded reference (`%26%239786%3B`). `None` if the encoding is unknown.
///
/// The other bytes beyond ASCII are left for the URL parser to percent-encode.
pub fn encode_query<'a>(text: &'a str, label: &str) -> Option<Cow<'a, [u8]>> {
    let encoding = Encoding::for_label(label.as_bytes())?.output_encoding();
    if encoding == UTF_8 {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let mut encoder = encoding.new_encoder();
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        // With room for the whole rest, the encoder never reports a full buffer.
        let room = encoder.max_buffer_length_from_utf8_without_replacement(rest.len())?;
        out.reserve(room);
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut out, true);
        rest = &rest[read..];
        match result {
            EncoderResult::InputEmpty => return Some(Cow::Owned(out)),
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(c) => {
                out.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
            }
        }
    }
}

/// A decoded body.
#[derive(Clone)]
#[non_exhaustive]
pub struct Decoded<'a> {
    /// The text without a byte order mark. Borrowed if the body is UTF-8 without errors, or ASCII.
    pub text: Cow<'a, str>,
    /// The standard's name of the encoding, such as `UTF-8` or `windows-1252`.
    pub encoding: &'static str,
    /// The evidence that decided the encoding.
    pub source: CharsetSource,
    /// Whether some bytes were invalid and became U+FFFD.
    pub had_errors: bool,
}

impl fmt::Debug for Decoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded")
            .field("text_bytes", &self.text.len())
            .field("encoding", &self.encoding)
            .field("source", &self.source)
            .field("had_errors", &self.had_errors)
            .finish()
    }
}

/// Decodes a body.
///
/// `explicit` and `header_charset` are labels as the web uses them (`latin1` and `iso-8859-1` mean windows-1252);
/// unknown ones are passed over. The order is that of [`CharsetSource`]. A byte order mark is never part of the text;
/// if the label says UTF-16, it also decides the byte order.
///
/// Costs one validation pass for UTF-8, a copy for others. The detector runs only if nothing else decides.
///
/// ```
/// use huntsman_html::{CharsetSource, content_charset, decode_body};
///
/// let header = content_charset("text/html; charset=iso-8859-1");
/// let decoded = decode_body(b"caf\xE9 \x80", header, None);
/// assert_eq!(decoded.text, "caf\u{E9} \u{20AC}");
/// assert_eq!((decoded.encoding, decoded.source), ("windows-1252", CharsetSource::Header));
/// ```
pub fn decode_body<'a>(body: &'a [u8], header_charset: Option<&str>, explicit: Option<&str>) -> Decoded<'a> {
    let mark = Encoding::for_bom(body);
    let (bom, rest) = match mark {
        Some((encoding, length)) => (Some(encoding), &body[length..]),
        None => (None, body),
    };
    let labelled = |label: Option<&str>| {
        let found = label_encoding(label?.as_bytes())?;
        let is_utf_16 = found == UTF_16LE || found == UTF_16BE;
        Some(bom.filter(|&bom| is_utf_16 && bom != UTF_8).unwrap_or(found))
    };
    if let Some(encoding) = labelled(explicit) {
        return decode_as(rest, encoding, CharsetSource::Explicit);
    }
    if let Some(encoding) = labelled(header_charset) {
        return decode_as(rest, encoding, CharsetSource::Header);
    }
    if let Some(encoding) = bom {
        return decode_as(rest, encoding, CharsetSource::Bom);
    }
    if let Some(encoding) = declared(rest) {
        return decode_as(rest, encoding, CharsetSource::Declaration);
    }
    let start = &rest[..rest.len().min(DETECTION_LIMIT)];
    // ISO-2022-JP is ASCII with escapes, hence valid UTF-8.
    let has_escapes = memchr::memchr(0x1B, start).is_some()
        && [b"\x1B$B", b"\x1B$@", b"\x1B(J"].iter().any(|escape| memmem::find(start, *escape).is_some());
    if !has_escapes && let Ok(text) = simdutf8::basic::from_utf8(rest) {
        return Decoded {
            text: Cow::Borrowed(text),
            encoding: UTF_8.name(),
            source: CharsetSource::ValidUtf8,
            had_errors: false,
        };
    }
    decode_as(rest, detected(start), CharsetSource::Detection)
}

/// The encoding of a label; not the `replacement` encoding, which gives no text at all.
fn label_encoding(label: &[u8]) -> Option<&'static Encoding> {
    let label = label.trim_ascii();
    let quoted = |quote: &[u8]| label.strip_prefix(quote)?.strip_suffix(quote);
    let label = quoted(b"\"").or_else(|| quoted(b"'")).unwrap_or(label);
    Encoding::for_label_no_replacement(label)
}

fn decode_as<'a>(body: &'a [u8], encoding: &'static Encoding, source: CharsetSource) -> Decoded<'a> {
    let name = encoding.name();
    if encoding == UTF_8
        && let Ok(text) = simdutf8::basic::from_utf8(body)
    {
        return Decoded { text: Cow::Borrowed(text), encoding: name, source, had_errors: false };
    }
    let (text, had_errors) = encoding.decode_without_bom_handling(body);
    Decoded { text, encoding: name, source, had_errors }
}

fn detected(start: &[u8]) -> &'static Encoding {
    if is_mostly_utf8(start) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(start, true);
    detector.guess(None, Utf8Detection::Deny)
}

/// A truncated summary or an embedded snippet leaves a few bad bytes in a UTF-8 page, for which the detector would
/// reject UTF-8.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0_usize, 0_usize);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        let text = chunk.valid();
        // Counts bytes that begin a character of more than one byte.
        good += text.bytes().filter(|&byte| byte >= 0xC0).count();
        let Some(&first) = chunk.invalid().first() else { break };
        // The size limit, or the server, cut the last character in two.
        let is_cut_end = chunks.peek().is_none() && first >= 0xC2;
        bad += usize::from(!is_cut_end);
    }
    good >= GOOD_PER_BAD * bad && good > 0
}

/// The encoding that the document declares.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    // UTF-16 without a byte order mark: only an XML declaration shows it.
    if body.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if body.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let start = &body[..body.len().min(DECLARATION_LIMIT)];
    let mut declaration =
        Declaration { doc: start, is_html: false, is_meta: false, meta: Values::default(), found: None };
    tokenize_bytes(start, State::Data, b"", &mut declaration);
    let xml = || xml_declaration(start);
    let found =
        if declaration.is_html { declaration.found.or_else(xml) } else { xml().or(declaration.found) }?;
    // A document that can be read as ASCII is not UTF-16, whatever it declares (as in the HTML standard).
    Some(if found == UTF_16LE || found == UTF_16BE {
        UTF_8
    } else if found == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        found
    })
}

fn xml_declaration(start: &[u8]) -> Option<&'static Encoding> {
    let start = start.trim_ascii_start();
    if !start.starts_with(b"<?xml") {
        return None;
    }
    let declaration = &start[..memchr::memchr(b'>', start)?];
    let rest = declaration[memmem::find(declaration, b"encoding")? + 8..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, rest) = rest.split_first()?;
    if quote != b'"' && quote != b'\'' {
        return None;
    }
    label_encoding(&rest[..memchr::memchr(quote, rest)?])
}

#[derive(Default)]
struct Values {
    charset: Option<Span>,
    content: Option<Span>,
    http_equiv: Option<Span>,
}

/// Finds the first `meta` with a known encoding.
struct Declaration<'a> {
    doc: &'a [u8],
    /// A doctype or `html` tag was seen: a meta counts more than an XML declaration.
    is_html: bool,
    is_meta: bool,
    meta: Values,
    found: Option<&'static Encoding>,
}

impl Declaration<'_> {
    fn value(&self, span: Option<Span>) -> Option<Cow<'_, str>> {
        // References in a label are rare but legal, and ASCII; what else the bytes are does not matter.
        Some(decode(std::str::from_utf8(span?.bytes(self.doc)).ok()?, Context::Attribute))
    }

    fn encoding(&self) -> Option<&'static Encoding> {
        if let Some(label) = self.value(self.meta.charset) {
            return label_encoding(label.as_bytes());
        }
        if !self.value(self.meta.http_equiv)?.trim_ascii().eq_ignore_ascii_case("content-type") {
            return None;
        }
        content_charset(&self.value(self.meta.content)?).and_then(|label| label_encoding(label.as_bytes()))
    }
}

/// The charset in the value of a Content-Type header or meta: `text/html; charset="utf-8"`.
///
/// It follows the HTML standard's rule, which is more lenient than the grammar of the header. The label is not checked.
pub fn content_charset(content: &str) -> Option<&str> {
    let bytes = content.as_bytes();
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))? + 7;
        let rest = bytes.get(at..)?.trim_ascii_start();
        let Some(rest) = rest.strip_prefix(b"=") else { continue };
        let rest = rest.trim_ascii_start();
        let start = bytes.len() - rest.len();
        let (start, end) = match rest.first()? {
            quote @ (b'"' | b'\'') => (start + 1, start + 1 + memchr::memchr(*quote, &rest[1..])?),
            _ => {
                let length = rest.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';');
                (start, start + length.unwrap_or(rest.len()))
            }
        };
        return content.get(start..end).filter(|label| !label.is_empty());
    }
}

impl Sink for Declaration<'_> {
    fn text(&mut self, _raw: Span, _kind: TextKind) {}

    fn open(&mut self, name: Name) -> Attributes {
        self.is_html |= name.key() == const { Name::pack("html") };
        self.is_meta = name.key() == const { Name::pack("meta") } && self.found.is_none();
        self.meta = Values::default();
        if self.is_meta { Attributes::Wanted } else { Attributes::Skipped }
    }

    fn attr(&mut self, name: Name, value: Span) {
        let slot = if name.key() == const { Name::pack("charset") } {
            &mut self.meta.charset
        } else if name.key() == const { Name::pack("content") } {
            &mut self.meta.content
        } else if name.span().bytes(self.doc).eq_ignore_ascii_case(b"http-equiv") {
            &mut self.meta.http_equiv
        } else {
            return;
        };
        slot.get_or_insert(value);
    }

    fn opened(&mut self, name: Name, _self_closing: bool) -> State {
        if self.is_meta {
            self.found = self.encoding();
        }
        const TITLE: u64 = Name::pack("title");
        const TEXTAREA: u64 = Name::pack("textarea");
        const SCRIPT: u64 = Name::pack("script");
        const STYLE: u64 = Name::pack("style");
        match name.key() {
            TITLE | TEXTAREA => State::Rcdata,
            SCRIPT => State::Script,
            STYLE => State::Rawtext,
            _ => State::Data,
        }
    }

    fn close(&mut self, _name: Name) {}

    fn doctype(&mut self, _content: Span) {
        self.is_html = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(body: &[u8], header: Option<&str>, explicit: Option<&str>) -> (&'static str, CharsetSource) {
        let decoded = decode_body(body, header, explicit);
        (decoded.encoding, decoded.source)
    }

    /// Body, header, explicit label; encoding and what decided.
    type Case<'a> = (&'a [u8], Option<&'a str>, Option<&'a str>, &'a str, CharsetSource);

    #[test]
    fn the_first_source_that_knows_decides() {
        use CharsetSource::{Bom, Declaration, Detection, Explicit, Header, ValidUtf8};
        let meta = b"<meta charset=koi8-r>\xE4";
        let long = [&b" ".repeat(5000)[..], meta].concat();
        let cases: [Case; 27] = [
            (meta, Some("utf-8"), Some("latin1"), "windows-1252", Explicit),
            (meta, Some("utf-8"), Some("klingon"), "UTF-8", Header),
            (meta, Some("utf-8"), None, "UTF-8", Header),
            (meta, Some("\"UTF8\""), None, "UTF-8", Header),
            (meta, Some("iso-8859-1"), None, "windows-1252", Header),
            (meta, Some("shift_jis"), None, "Shift_JIS", Header),
            (meta, Some("gb2312"), None, "GBK", Header),
            (meta, Some("iso-2022-kr"), None, "KOI8-R", Declaration),
            (meta, None, None, "KOI8-R", Declaration),
            (b"\xEF\xBB\xBF<meta charset=koi8-r>", None, None, "UTF-8", Bom),
            (b"\xFF\xFEa\0", None, None, "UTF-16LE", Bom),
            (b"\xFE\xFF\0a", None, None, "UTF-16BE", Bom),
            (b"\xFE\xFF\0a", Some("utf-16"), None, "UTF-16BE", Header),
            (b"\xEF\xBB\xBFx", Some("iso-8859-1"), None, "windows-1252", Header),
            (
                b"<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
                None,
                None,
                "windows-1251",
                Declaration,
            ),
            (b"<meta content='text/html; charset=windows-1251'>", None, None, "UTF-8", ValidUtf8),
            (b"<!-- <meta charset=koi8-r> --><meta charset=euc-jp>", None, None, "EUC-JP", Declaration),
            (b"<script>'<meta charset=koi8-r>'</script>", None, None, "UTF-8", ValidUtf8),
            (b"<meta charset=nonsense><meta charset=big5>", None, None, "Big5", Declaration),
            (b"<meta charset=utf-16>", None, None, "UTF-8", Declaration),
            (b"<?xml version='1.0' encoding='iso-8859-2'?><rss>", None, None, "ISO-8859-2", Declaration),
            (
                b"<?xml version='1.0' encoding='iso-8859-2'?><!doctype html><meta charset=koi8-r>",
                None,
                None,
                "KOI8-R",
                Declaration,
            ),
            (b"<\0?\0x\0m\0", None, None, "UTF-16LE", Declaration),
            (&long, None, None, "windows-1252", Detection),
            (b"", None, None, "UTF-8", ValidUtf8),
            (b"plain", None, None, "UTF-8", ValidUtf8),
            ("gr\u{FC}n".as_bytes(), None, None, "UTF-8", ValidUtf8),
        ];
        for (body, header, explicit, encoding, source) in cases {
            let shown = String::from_utf8_lossy(body);
            assert_eq!(
                verdict(body, header, explicit),
                (encoding, source),
                "{shown:?} {header:?} {explicit:?}"
            );
        }
    }

    #[test]
    fn a_byte_order_mark_is_never_text() {
        for (body, header) in [
            (&b"\xEF\xBB\xBFx"[..], None),
            (b"\xEF\xBB\xBFx", Some("utf-8")),
            (b"\xEF\xBB\xBFx", Some("latin1")),
            (b"\xFF\xFEx\0", None),
            (b"\xFF\xFEx\0", Some("utf-16")),
            (b"\xFE\xFF\0x", Some("utf-16le")),
        ] {
            assert_eq!(decode_body(body, header, None).text, "x", "{body:?} {header:?}");
        }
    }

    #[test]
    fn valid_utf8_is_borrowed() {
        for header in [None, Some("utf-8")] {
            assert!(matches!(
                decode_body("gr\u{FC}n".as_bytes(), header, None).text,
                Cow::Borrowed("gr\u{FC}n")
            ));
        }
    }

    #[test]
    fn undecodable_bytes_become_replacement_characters() {
        let decoded = decode_body(b"a\xFFb", Some("utf-8"), None);
        assert_eq!((&*decoded.text, decoded.had_errors), ("a\u{FFFD}b", true));
    }

    #[test]
    fn detection_knows_old_encodings_by_their_looks() {
        let russian = "Привет, мир! Это текст.".repeat(5);
        for encoding in [encoding_rs::WINDOWS_1251, encoding_rs::KOI8_R] {
            let (bytes, ..) = encoding.encode(&russian);
            let decoded = decode_body(&bytes, None, None);
            assert_eq!(decoded.text, russian, "{}", encoding.name()); // koi8-u reads the same
            assert_eq!(decoded.source, CharsetSource::Detection);
        }
        let japanese = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記憶している。".repeat(5);
        for encoding in [encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP, encoding_rs::ISO_2022_JP] {
            let (bytes, ..) = encoding.encode(&japanese);
            let decoded = decode_body(&bytes, None, None);
            assert_eq!((decoded.encoding, &*decoded.text), (encoding.name(), &*japanese));
        }
    }

    #[test]
    fn a_few_bad_bytes_do_not_make_utf8_something_else() {
        let mut body = "\u{E4}\u{F6}\u{FC} ".repeat(20).into_bytes();
        body.extend(b"\xE4 and so on \xC3");
        let decoded = decode_body(&body, None, None);
        assert_eq!(
            (decoded.encoding, decoded.source, decoded.had_errors),
            ("UTF-8", CharsetSource::Detection, true)
        );
        assert_eq!(decode_body(b"na\xEFve caf\xE9", None, None).text, "na\u{EF}ve caf\u{E9}");
    }

    #[test]
    fn the_charset_of_a_content_type_is_found_in_any_spelling() {
        for (content, label) in [
            ("text/html; charset=utf-8", Some("utf-8")),
            ("text/html;CHARSET = \"utf-8\" ; x", Some("utf-8")),
            ("text/html; charset='latin1'", Some("latin1")),
            ("text/html; charset; charset=koi8-r;q", Some("koi8-r")),
            ("text/html; charset=\"open", None),
            ("text/html; charset=", None),
            ("text/html", None),
            ("charset\u{E4}charset=x", Some("x")),
        ] {
            assert_eq!(content_charset(content), label, "{content}");
        }
    }
}
