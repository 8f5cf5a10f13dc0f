//! HTTP messages as blocks of records.

use http::{HeaderMap, HeaderName, Method, StatusCode, Version, header};

/// The head of a response as it could have been sent over HTTP/1.1, whatever the protocol was, with its empty line.
///
/// The body of the record is without transfer codings. So `Transfer-Encoding`, and a `Content-Length` that differs from the length of the body, are
/// written under the names that archives use for such headers, `X-Archive-Orig-...`.
pub fn response_head(status: StatusCode, version: Version, headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    let version = if version == Version::HTTP_10 { "1.0" } else { "1.1" };
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/{version} {} {reason}\r\n", status.as_u16()).into_bytes();
    let length = body.len().to_string();
    for (name, value) in headers {
        let is_of_transfer = name == header::TRANSFER_ENCODING
            || (name == header::CONTENT_LENGTH && value.as_bytes() != length.as_bytes());
        if is_of_transfer {
            head.extend_from_slice(b"X-Archive-Orig-");
        }
        push_header(&mut head, name, value.as_bytes());
    }
    let is_told = |value: &http::HeaderValue| value.as_bytes() == length.as_bytes();
    if !headers.get_all(header::CONTENT_LENGTH).iter().any(is_told) {
        head.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of a request as it is sent over HTTP/1.1, with its empty line. `target` is path and query; headers for which `keeps` is false are left out.
pub fn request_head(
    method: &Method,
    target: &str,
    host: &str,
    headers: &HeaderMap,
    body: &[u8],
    keeps: impl Fn(&HeaderName, &http::HeaderValue) -> bool,
) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
    if !headers.contains_key(header::HOST) {
        push_header(&mut head, &header::HOST, host.as_bytes());
    }
    let is_framing = |name: &HeaderName| name == header::CONTENT_LENGTH || name == header::TRANSFER_ENCODING;
    for (name, value) in headers {
        if !is_framing(name) && keeps(name, value) {
            push_header(&mut head, name, value.as_bytes());
        }
    }
    if !body.is_empty() {
        push_header(&mut head, &header::CONTENT_LENGTH, body.len().to_string().as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn push_header(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// The head of an HTTP message in a block, read as leniently as old archives need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// The status line or the request line.
    pub start_line: String,
    headers: Vec<(String, String)>,
    /// Length in bytes; the body follows.
    pub length: usize,
}

impl HttpHead {
    /// Reads the head at the beginning of a block; `None` if no message begins there. A head that does not end takes the whole block.
    pub fn parse(block: &[u8]) -> Option<Self> {
        let (start_line, mut at) = line_at(block, 0)?;
        let is_message = start_line.starts_with("HTTP/") || start_line.contains(" HTTP/");
        if !is_message {
            return None;
        }
        let mut headers: Vec<(String, String)> = Vec::new();
        while let Some((line, next)) = line_at(block, at) {
            at = next;
            if line.is_empty() {
                break;
            }
            match (line.split_once(':'), headers.last_mut()) {
                (_, Some((_, value))) if line.starts_with([' ', '\t']) => {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                (Some((name, value)), _) => headers.push((name.trim().to_owned(), value.trim().to_owned())),
                (None, _) => {}
            }
        }
        Some(Self { start_line, headers, length: at })
    }

    /// The status of a response.
    pub fn status(&self) -> Option<u16> {
        let status = self.start_line.strip_prefix("HTTP/")?.split_ascii_whitespace().nth(1)?;
        status.parse().ok()
    }

    /// The method of a request.
    pub fn method(&self) -> Option<&str> {
        let method = self.start_line.split_ascii_whitespace().next()?;
        (!method.starts_with("HTTP/")).then_some(method)
    }

    /// The first header of a name, in whatever case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers().find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All headers in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (&**name, &**value))
    }
}

/// The line that begins at an index, without its end, and the index of the next line.
fn line_at(block: &[u8], at: usize) -> Option<(String, usize)> {
    let rest = block.get(at..).filter(|rest| !rest.is_empty())?;
    let end = rest.iter().position(|b| *b == b'\n');
    let line = &rest[..end.unwrap_or(rest.len())];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    Some((String::from_utf8_lossy(line).into_owned(), at + end.map_or(rest.len(), |end| end + 1)))
}

/// A body without its chunks; `None` if it does not consist of chunks, as in archives that keep the header and store the body without them.
pub fn unchunked(body: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let end = rest.iter().take(1024).position(|b| *b == b'\n')?;
        let size = std::str::from_utf8(&rest[..end]).ok()?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let is_hex = !size.is_empty() && size.bytes().all(|b| b.is_ascii_hexdigit());
        let size = is_hex.then(|| usize::from_str_radix(size, 16).ok()).flatten()?;
        rest = &rest[end + 1..];
        if size == 0 {
            return Some(out);
        }
        let chunk = rest.get(..size)?;
        out.extend_from_slice(chunk);
        rest = &rest[size..];
        rest = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_transfer_added_is_renamed_and_the_length_is_told() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("transfer-encoding", "chunked"), ("content-length", "99"), ("x-a", "1"), ("x-a", "2")]
        {
            headers.append(name, value.parse().unwrap());
        }
        let head = response_head(StatusCode::OK, Version::HTTP_2, &headers, b"body");
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "HTTP/1.1 200 OK\r\nX-Archive-Orig-transfer-encoding: chunked\r\n\
             X-Archive-Orig-content-length: 99\r\nx-a: 1\r\nx-a: 2\r\ncontent-length: 4\r\n\r\n"
        );
    }

    #[test]
    fn a_head_is_read_with_folded_lines_and_bare_line_ends() {
        let head = HttpHead::parse(b"HTTP/1.0 404 Not Found\nA: b\n  c\nno header\nD:e\n\nbody").unwrap();
        assert_eq!(head.status(), Some(404));
        assert_eq!((head.get("a"), head.get("d"), head.length), (Some("b c"), Some("e"), 47));
        assert_eq!(HttpHead::parse(b"<html>"), None);
        assert_eq!(HttpHead::parse(b""), None);
        assert_eq!(HttpHead::parse(b"GET / HTTP/1.1").unwrap().method(), Some("GET"));
    }

    #[test]
    fn a_body_that_only_claims_to_be_chunked_stays_as_it_is() {
        assert_eq!(unchunked(b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\n\r\n").as_deref(), Some(&b"abcde"[..]));
        for body in [
            &b""[..],
            b"<html>\n",
            b"3\r\nab",
            b"5\r\nabc\r\n0\r\n\r\n",
            b"3\r\nabcde\r\n0\r\n",
            b"+3\r\nabc\r\n0\r\n",
        ] {
            assert_eq!(unchunked(body), None, "{body:?}");
        }
    }
}
