//! The text of a document that is plain text.

use super::words::trim;

/// The text of a plain text document, trimmed. It is decoded by the charset of its header, by a byte order mark, or by a guess from its
/// bytes.
///
/// Deliberately different: the reference guesses from the bytes alone and ignores the header.
pub fn plain_text(body: &[u8], header_charset: Option<&str>) -> String {
    trim(&huntsman_html::decode_body(body, header_charset, None).text).to_owned()
}
