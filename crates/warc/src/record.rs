//! A record that is to be written, and the gzip member that it becomes.

use sha1::{Digest as _, Sha1};

use crate::digest::{Digest, DigestKind};
use crate::member::Member;

/// Records up to this length are compressed at level 1 at most. With its head a request has 600 bytes: level 6 takes 20 us for them and leaves 355,
/// level 1 takes 5 us and leaves 414.
const SHORT: usize = 2 << 10;

/// How records are written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Level of the compression, 0 to 9; 6 by default. Records of less than two kilobytes are compressed at level 1 at most.
    pub level: u32,
    /// The algorithm of the digests.
    pub digest: DigestKind,
}

impl Default for Options {
    fn default() -> Self {
        Self { level: 6, digest: DigestKind::default() }
    }
}

/// The types of records that are written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// About the file.
    Info,
    /// A request as it was sent.
    Request,
    /// A response as it was received.
    Response,
    /// A response whose body is that of an earlier record.
    Revisit,
    /// About another record.
    Metadata,
    /// Something that was made of a response, or that did not come over HTTP.
    Resource,
}

impl RecordKind {
    /// The name in the field `WARC-Type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "warcinfo",
            Self::Request => "request",
            Self::Response => "response",
            Self::Revisit => "revisit",
            Self::Metadata => "metadata",
            Self::Resource => "resource",
        }
    }
}

/// A record: its fields, and its block in two parts, the head of a message and its body.
///
/// The digests and the length of the block are added when it is written. A record of the kinds request, response and resource has a digest of
/// its payload if that is known; a request without a body has none.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    kind: RecordKind,
    id: Option<String>,
    date: String,
    fields: Vec<(&'a str, String)>,
    head: &'a [u8],
    body: std::borrow::Cow<'a, [u8]>,
    /// The digest of the body, if it is known.
    body_digest: Option<Digest>,
    is_packed: bool,
}

impl<'a> Record<'a> {
    /// An empty record. The date is one of RFC 3339 in UTC, such as `2026-01-31T12:00:00Z`, with fractions of a second or without.
    pub fn new(kind: RecordKind, date: impl Into<String>) -> Self {
        Self {
            kind,
            id: None,
            date: date.into(),
            fields: Vec::new(),
            head: b"",
            body: Default::default(),
            body_digest: None,
            is_packed: false,
        }
    }

    /// The record at the beginning of a file, with fields by name, such as `software`.
    pub fn info(file_name: &str, date: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let block = Self::named_fields(fields);
        let mut record = Self::new(RecordKind::Info, date).field("WARC-Filename", file_name);
        record.fields.push(("Content-Type", "application/warc-fields".to_owned()));
        record.body = block.into();
        record
    }

    /// What is told of another record, with fields by name, such as `via`.
    pub fn metadata(date: impl Into<String>, fields: &[(&str, &str)]) -> Self {
        let block = Self::named_fields(fields);
        let mut record = Self::new(RecordKind::Metadata, date);
        record.fields.push(("Content-Type", "application/warc-fields".to_owned()));
        record.body = block.into();
        record
    }

    fn named_fields(fields: &[(&str, &str)]) -> Vec<u8> {
        let lines = fields.iter().map(|(name, value)| format!("{name}: {}\r\n", one_line(value)));
        lines.collect::<String>().into_bytes()
    }

    /// Sets the id, with its angle brackets. Without it one is made of the fields and the block, which is the same for the same record.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Adds a field. Line breaks in its value become spaces.
    pub fn field(mut self, name: &'a str, value: &str) -> Self {
        self.fields.push((name, one_line(value)));
        self
    }

    /// Sets the block of a request, response or revisit: the head of the HTTP message with its empty line, and the body.
    pub fn http(mut self, head: &'a [u8], body: &'a [u8]) -> Self {
        let which = if self.kind == RecordKind::Request { "request" } else { "response" };
        self.fields.push(("Content-Type", format!("application/http;msgtype={which}")));
        (self.head, self.body) = (head, body.into());
        self
    }

    /// Tells the digest of the body, if it is known already, so that it is not computed again.
    pub fn body_digest(mut self, digest: &Digest) -> Self {
        self.body_digest = Some(digest.clone());
        self
    }

    /// Tells that the body is compressed already, as by its content coding or its media type ([`is_packed`](crate::is_packed)): it stands in the
    /// member as it is.
    pub fn packed(mut self, is_packed: bool) -> Self {
        self.is_packed = is_packed;
        self
    }

    /// Sets the block of another record.
    pub fn block(mut self, content_type: &str, body: &'a [u8]) -> Self {
        self.fields.push(("Content-Type", one_line(content_type)));
        self.body = body.into();
        self
    }

    /// The record as it stands in a file without compression.
    pub fn to_bytes(&self, digest: DigestKind) -> Vec<u8> {
        let mut out = self.head_lines(digest).into_bytes();
        for part in [self.head, &self.body, b"\r\n\r\n"] {
            out.extend_from_slice(part);
        }
        out
    }

    /// The record as a gzip member.
    pub fn to_member(&self, options: Options) -> Vec<u8> {
        let head = self.head_lines(options.digest);
        let is_short = head.len() + self.head.len() + self.body.len() <= SHORT;
        let level = options.level.min(if is_short { 1 } else { 9 });
        let (heads, body): ([&[u8]; 2], [&[u8]; 2]) =
            ([head.as_bytes(), self.head], [&self.body, b"\r\n\r\n"]);
        if self.is_packed {
            Member::stored(&heads, &body, level)
        } else {
            Member::of(&[heads, body].concat(), level)
        }
    }

    /// The kind of the record.
    pub fn kind(&self) -> RecordKind {
        self.kind
    }

    /// The id that was set, or the one that is made.
    pub(crate) fn id_or_made(&self) -> String {
        if let Some(id) = &self.id {
            return id.clone();
        }
        let fields: Vec<_> = self.fields.iter().map(|(_, value)| value.as_bytes()).collect();
        let fields = fields.join(&b'\n');
        record_id(&[self.kind.name().as_bytes(), self.date.as_bytes(), &fields, self.head, &self.body])
    }

    fn head_lines(&self, digest: DigestKind) -> String {
        let id = self.id_or_made();
        let mut head = format!(
            "WARC/1.1\r\nWARC-Type: {}\r\nWARC-Record-ID: {id}\r\nWARC-Date: {}\r\n",
            self.kind.name(),
            self.date
        );
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let block = {
            let mut hasher = crate::digest::Hasher::new(digest);
            hasher.update(self.head);
            hasher.update(&self.body);
            hasher.finish()
        };
        head.push_str(&format!("WARC-Block-Digest: {block}\r\n"));
        if let Some(payload) = self.payload_digest(digest) {
            head.push_str(&format!("WARC-Payload-Digest: {payload}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.head.len() + self.body.len()));
        head
    }

    fn payload_digest(&self, digest: DigestKind) -> Option<Digest> {
        let of_body = || {
            let known = self.body_digest.clone().filter(|known| known.kind() == digest);
            known.unwrap_or_else(|| digest.of(&self.body))
        };
        match self.kind {
            RecordKind::Response | RecordKind::Resource => Some(of_body()),
            RecordKind::Request if !self.body.is_empty() => Some(of_body()),
            _ => None,
        }
    }
}

/// An id made of parts: the same for the same parts. It is a UUID of version 8 (RFC 9562).
pub fn record_id(parts: &[&[u8]]) -> String {
    let mut hasher = Sha1::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let hash = hasher.finalize();
    let mut bytes: [u8; 16] = *hash.first_chunk().expect("SHA-1 has 20 bytes");
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let [a, b, c, d, e] = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("<urn:uuid:{a}-{b}-{c}-{d}-{e}>")
}

/// Replaces line breaks, which a field value cannot contain.
fn one_line(value: &str) -> String {
    value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_and_differ() {
        let (a, b) = (record_id(&[b"ab", b"c"]), record_id(&[b"a", b"bc"]));
        assert_ne!(a, b);
        for id in [a, b] {
            let digits = id.strip_prefix("<urn:uuid:").unwrap().strip_suffix('>').unwrap();
            let lengths: Vec<usize> = digits.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&digits[14..15], "8", "{id}");
            assert!("89ab".contains(&digits[19..20]), "{id}");
        }
    }

    #[test]
    fn a_value_with_line_breaks_forges_no_field() {
        let info = Record::info("a.warc.gz", "2026-01-01T00:00:00Z", &[("software", "test\r\nforged: 1")]);
        let text = String::from_utf8(info.to_bytes(DigestKind::Sha1)).unwrap();
        assert!(text.ends_with("\r\n\r\nsoftware: test  forged: 1\r\n\r\n\r\n"), "{text}");
        assert!(!text.contains("Payload-Digest"), "{text}");
    }
}
