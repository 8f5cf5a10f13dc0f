//! The text of a document, piece by piece: unpacked, decoded, and limited in length.

use std::io::Read;

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::MultiGzDecoder;

/// Usual size of the window of text that a reader keeps in memory.
pub(crate) const WINDOW: usize = 64 << 10;
/// Number of bytes that are unpacked at once.
const PIECE: usize = 16 << 10;

/// Number of bytes that tell the encoding of a document that does not declare it.
const BEGINNING: u64 = 256 << 10;

/// The source of the text.
pub(crate) struct TextSource<'a> {
    body: &'a [u8],
    bytes: Box<dyn Read + Send + 'a>,
    /// Number of bytes that may still be read.
    left: u64,
    /// `None` until the first bytes were seen.
    decoder: Option<Decoder>,
    is_ended: bool,
    is_cut: bool,
    is_torn: bool,
    has_replaced: bool,
}

impl<'a> TextSource<'a> {
    /// The text of a body. At most `max_bytes` of the unpacked body are read; 0 means no limit.
    pub(crate) fn new(body: &'a [u8], max_bytes: u64) -> Self {
        let bytes = unpacked(body);
        let left = if max_bytes == 0 { u64::MAX } else { max_bytes };
        Self {
            body,
            bytes,
            left,
            decoder: None,
            is_ended: false,
            is_cut: false,
            is_torn: false,
            has_replaced: false,
        }
    }

    /// Sets the encoding, in place of the declared one. A byte order mark has precedence even so.
    pub(crate) fn encoded_in(mut self, encoding: &'static Encoding) -> Self {
        self.decoder = Some(encoding.new_decoder());
        self
    }

    /// The first bytes, unpacked, up to 256 KiB.
    pub(crate) fn beginning(&self) -> Vec<u8> {
        let mut beginning = Vec::new();
        // What was unpacked before the damage is enough here.
        let _ = unpacked(self.body).take(BEGINNING).read_to_end(&mut beginning);
        beginning
    }

    /// Adds text until the window has this size or the text ends.
    pub(crate) fn fill(&mut self, window: &mut String, size: usize) {
        let mut piece = [0; PIECE];
        while window.len() < size && !self.is_ended {
            let read = self.read(&mut piece);
            let bytes = &piece[..read];
            let decoder = self.decoder.get_or_insert_with(|| encoding_of(bytes).new_decoder());
            // Reserve the greatest possible size of the decoded text; a decoder stops only if it lacks room.
            window.reserve(decoder.max_utf8_buffer_length(read).unwrap_or(PIECE * 4));
            let (_, _, has_replaced) = decoder.decode_to_string(bytes, window, self.is_ended);
            self.has_replaced |= has_replaced;
        }
    }

    /// Fills the piece with the bytes that are left; a piece that is not full is the last one.
    fn read(&mut self, piece: &mut [u8; PIECE]) -> usize {
        let mut size = 0;
        while size < PIECE {
            let room = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE - size);
            if room == 0 {
                self.is_cut = matches!(self.bytes.read(&mut [0]), Ok(1));
                self.is_ended = true;
                break;
            }
            match self.bytes.read(&mut piece[size..size + room]) {
                Ok(0) => {
                    self.is_ended = true;
                    break;
                }
                Ok(read) => {
                    size += read;
                    self.left -= read as u64;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // The bytes that were unpacked before the damage are used.
                Err(_) => {
                    self.is_torn = true;
                    self.is_ended = true;
                    break;
                }
            }
        }
        size
    }

    /// Whether all text is in the window.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether the limit was reached.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether bytes that are invalid in the encoding were replaced.
    pub(crate) fn has_replaced(&self) -> bool {
        self.has_replaced
    }

    /// Whether the gzip file is damaged.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }
}

/// A body, unpacked if it is packed with gzip, whatever its name is.
fn unpacked<'a>(body: &'a [u8]) -> Box<dyn Read + Send + 'a> {
    match body.starts_with(&[0x1f, 0x8b]) {
        true => Box::new(MultiGzDecoder::new(body)),
        false => Box::new(body),
    }
}

/// The encoding of the XML declaration, else UTF-8. A byte order mark, which the decoder reads, has precedence.
fn encoding_of(bytes: &[u8]) -> &'static Encoding {
    match bytes {
        [b'<', 0, ..] => return UTF_16LE,
        [0, b'<', ..] => return UTF_16BE,
        _ => {}
    }
    let declaration = bytes.trim_ascii_start();
    let end = declaration.iter().take(256).position(|byte| *byte == b'>');
    let declared = end.filter(|_| declaration.starts_with(b"<?xml")).and_then(|end| {
        let text = std::str::from_utf8(&declaration[..end]).ok()?;
        let value = text.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        Encoding::for_label(value[1..].split(quote).next()?.as_bytes())
    });
    // A declaration that can be read byte by byte is not in UTF-16, even if it claims to be.
    declared.filter(|encoding| encoding.is_ascii_compatible()).unwrap_or(UTF_8)
}
