//! Building blocks of hand-written responses.

use bytes::Bytes;

use crate::answer::{Answer, Part};

const KIB: usize = 1 << 10;

/// A response with `HTTP/1.1 200 OK`, an HTML content type, these header lines, and the body unchanged; then the
/// connection is closed.
pub(super) fn page_with(lines: &[&str], body: impl AsRef<[u8]>) -> Answer {
    Answer::raw([&head(lines)[..], body.as_ref()].concat())
}

/// The head of an HTML response with these header lines, including its empty line.
pub(super) fn head(lines: &[&str]) -> Vec<u8> {
    let mut out = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n".to_vec();
    for line in lines {
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

/// A response that begins with `start` and then repeats `block` without end.
pub(super) fn endless(start: impl Into<Bytes>, block: impl Into<Bytes>) -> Answer {
    Answer::parts([Part::Bytes(start.into()), Part::Repeat(block.into(), Part::FOREVER)])
}

/// A repeated text of about 32 KiB: large blocks make endless responses fast.
pub(super) fn block_of(text: &str) -> Bytes {
    text.repeat((32 * KIB).div_ceil(text.len())).into()
}
