//! Pieces of hand-written answers.

use bytes::Bytes;

use crate::answer::{Answer, Part};

const KIB: usize = 1 << 10;

/// `HTTP/1.1 200 OK`, HTML, these header lines, and the body as it is; then the connection is closed.
pub(super) fn page_with(lines: &[&str], body: impl AsRef<[u8]>) -> Answer {
    Answer::raw([&head(lines)[..], body.as_ref()].concat())
}

/// A head of an HTML page with these header lines, up to its empty line.
pub(super) fn head(lines: &[&str]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n".to_vec();
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// A beginning, and then the same bytes without an end.
pub(super) fn endless(start: impl Into<Bytes>, block: impl Into<Bytes>) -> Answer {
    Answer::parts([Part::Bytes(start.into()), Part::Repeat(block.into(), Part::FOREVER)])
}

/// About 32 KiB of a repeated text, so that endless answers are fast.
pub(super) fn block_of(text: &str) -> Bytes {
    text.repeat((32 * KIB).div_ceil(text.len())).into()
}
