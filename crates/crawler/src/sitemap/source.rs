//! The text of a document, piece by piece: unpacked, decoded, and limited in length.

use std::io::Read;

use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use flate2::bufread::MultiGzDecoder;

/// Size of the window of text in memory; longer markup counts as damage.
pub(super) const WINDOW: usize = 64 << 10;
/// Number of bytes that are unpacked at once.
const PIECE: usize = 16 << 10;

/// The source of the text.
pub(super) struct Source<'a> {
    bytes: Box<dyn Read + Send + 'a>,
    /// Number of bytes that may still be read.
    left: u64,
    /// `None` until the first bytes were seen.
    decoder: Option<Decoder>,
    is_ended: bool,
    is_cut: bool,
    is_torn: bool,
}

impl<'a> Source<'a> {
    /// The text of a body. At most `max_bytes` of the unpacked body are read; 0 means no limit.
    pub(super) fn new(body: &'a [u8], max_bytes: u64) -> Self {
        let bytes: Box<dyn Read + Send + 'a> = if body.starts_with(&[0x1f, 0x8b]) {
            Box::new(MultiGzDecoder::new(body))
        } else {
            Box::new(body)
        };
        let left = if max_bytes == 0 { u64::MAX } else { max_bytes };
        Self { bytes, left, decoder: None, is_ended: false, is_cut: false, is_torn: false }
    }

    /// Adds text until the window is full or the text ends.
    pub(super) fn fill(&mut self, window: &mut String) {
        let mut piece = [0; PIECE];
        while window.len() < WINDOW && !self.is_ended {
            let size = self.read(&mut piece);
            let bytes = &piece[..size];
            let decoder = self.decoder.get_or_insert_with(|| encoding_of(bytes).new_decoder());
            // Reserve the greatest possible size of the decoded text; a decoder stops only if it lacks room.
            window.reserve(decoder.max_utf8_buffer_length(size).unwrap_or(PIECE * 4));
            let _ = decoder.decode_to_string(bytes, window, self.is_ended);
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
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether the limit was reached.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether the gzip file is damaged.
    pub(super) fn is_torn(&self) -> bool {
        self.is_torn
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
