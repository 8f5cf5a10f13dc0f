//! Decodes the bytes of a file as text.

use std::borrow::Cow;

/// Decodes a plain text: UTF-8, or UTF-16 with a byte order mark.
///
/// No encoding is guessed, because a wrong guess would give the fingerprint of another text.
pub(crate) fn plain(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(body) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) => {
            Ok(huntsman_html::decode_body(bytes, None, None).text)
        }
        Err(error) => Err(not_utf8(bytes.len() - body.len() + error.valid_up_to())),
    }
}

/// The error message for bytes that are not UTF-8.
pub(crate) fn not_utf8(at: usize) -> String {
    format!("byte {} is not UTF-8; convert it, as with iconv -f WINDOWS-1252 -t UTF-8", at + 1)
}
