//! The text of a document that is plain text.

use super::words::trim;

/// The text of a plain text document: decoded by the charset of its header, a byte order mark, or its looks, and trimmed.
///
/// Deliberately different: the reference guesses from the bytes alone and ignores the header.
pub fn plain_text(body: &[u8], header_charset: Option<&str>) -> String {
    trim(&huntsman_html::decode_body(body, header_charset, None).text).to_owned()
}
