//! The response of a test server: well-formed HTTP, or any bytes at any pace.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Method;

use crate::gate::Gate;

/// One step of what is sent on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Sends these bytes.
    Bytes(Bytes),
    /// Sends these bytes this many times; [`Part::FOREVER`] repeats them until a limit of the server ends the
    /// response.
    Repeat(Bytes, u64),
    /// Sends nothing for this time. The server notices if the client leaves meanwhile.
    Wait(Duration),
    /// Sends nothing until the gate is open. The server notices if the client leaves meanwhile.
    Gate(Gate),
    /// Sends nothing until a limit of the server ends the response, or until the client leaves.
    Stall,
}

impl Part {
    /// The count for [`Part::Repeat`] that never ends.
    pub const FOREVER: u64 = u64::MAX;
}

/// What happens to the connection after a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum After {
    /// It waits for the next request, unless the client asked to close it (default for HTTP responses).
    #[default]
    KeepAlive,
    /// It is closed in order (default for raw responses).
    Close,
    /// It is torn down with a TCP reset.
    Reset,
}

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked(usize),
    UntilClose,
}

/// The response of a route.
///
/// ```
/// use huntsman_testkit::Answer;
/// let busy = Answer::status(503).header("Retry-After", "1").body("later");
/// let page = Answer::html("<p>hello</p>").chunked(4);
/// let nonsense = Answer::raw("HTTP/1.1 what\r\n\r\n");
/// ```
#[derive(Clone, Debug)]
pub struct Answer {
    shape: Shape,
    delay: Duration,
    gate: Option<Gate>,
    after: After,
}

#[derive(Clone, Debug)]
enum Shape {
    Http {
        status: u16,
        headers: Vec<(String, Vec<u8>)>,
        body: Bytes,
        framing: Framing,
        pace: Option<(usize, Duration)>,
    },
    Raw(Vec<Part>),
}

/// Status, headers and body of a well-formed response.
pub(crate) struct Message<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a [(String, Vec<u8>)],
    pub(crate) body: &'a Bytes,
}

impl Answer {
    /// A response with a status and an empty body.
    pub fn status(status: u16) -> Self {
        let shape = Shape::Http {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            framing: Framing::Length,
            pace: None,
        };
        Self { shape, delay: Duration::ZERO, gate: None, after: After::KeepAlive }
    }

    /// An HTML page with status 200.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("Content-Type", "text/html; charset=utf-8").body(body)
    }

    /// Plain text with status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::status(200).header("Content-Type", "text/plain; charset=utf-8").body(body)
    }

    /// A redirect to a location, which is sent unchanged.
    pub fn redirect(status: u16, location: impl AsRef<[u8]>) -> Self {
        Self::status(status).header("Location", location)
    }

    /// Sends exactly these bytes, then closes the connection.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::parts([Part::Bytes(bytes.into())])
    }

    /// Performs exactly these steps, then closes the connection.
    pub fn parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let shape = Shape::Raw(parts.into_iter().collect());
        Self { shape, delay: Duration::ZERO, gate: None, after: After::Close }
    }

    /// Adds a header line; the value is sent unchanged. Raw responses have no header lines and stay as they are.
    ///
    /// A `Content-Length`, `Transfer-Encoding` or `Connection` given here replaces the one that would be sent.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        if let Shape::Http { headers, .. } = &mut self.shape {
            headers.push((name.to_owned(), value.as_ref().to_vec()));
        }
        self
    }

    /// Sets the body of an HTTP response.
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Shape::Http { body, .. } = &mut self.shape {
            *body = bytes.into();
        }
        self
    }

    /// Sends the body in chunks of this size instead of with a length.
    pub fn chunked(mut self, size: usize) -> Self {
        if let Shape::Http { framing, .. } = &mut self.shape {
            *framing = Framing::Chunked(size.max(1));
        }
        self
    }

    /// Sends the body without a length; it ends when the connection is closed.
    pub fn until_close(mut self) -> Self {
        if let Shape::Http { framing, .. } = &mut self.shape {
            *framing = Framing::UntilClose;
        }
        self.after = After::Close;
        self
    }

    /// Waits before the first byte.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits before the first byte until the gate is open. A scripted downloader does not wait.
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Sends the body of an HTTP response in pieces of `bytes` bytes, with a pause before each.
    pub fn slow(mut self, bytes: usize, pause: Duration) -> Self {
        if let Shape::Http { pace, .. } = &mut self.shape {
            *pace = Some((bytes.max(1), pause));
        }
        self
    }

    /// Sets what happens to the connection after the response.
    pub fn after(mut self, after: After) -> Self {
        self.after = after;
        self
    }

    /// The content of a well-formed response; `None` for a raw one.
    pub(crate) fn message(&self) -> Option<Message<'_>> {
        match &self.shape {
            Shape::Http { status, headers, body, .. } => Some(Message { status: *status, headers, body }),
            Shape::Raw(_) => None,
        }
    }

    pub(crate) fn latency(&self) -> Duration {
        self.delay
    }

    /// The steps on the wire for a request with this method, and what happens to the connection after them.
    pub(crate) fn into_wire(self, method: &Method, client_closes: bool) -> (Vec<Part>, After) {
        // If the client asked to close the connection, it is closed, whatever the response says.
        let after = if client_closes && self.after == After::KeepAlive { After::Close } else { self.after };
        let mut parts = Vec::with_capacity(3);
        if !self.delay.is_zero() {
            parts.push(Part::Wait(self.delay));
        }
        parts.extend(self.gate.map(Part::Gate));
        match self.shape {
            Shape::Raw(raw) => parts.extend(raw),
            Shape::Http { status, headers, body, framing, pace } => {
                let mut head = BytesMut::with_capacity(256 + body.len().min(64 * 1024));
                write_head(&mut head, status, &headers, &body, framing, after);
                let bodiless = *method == Method::HEAD || status == 204 || status == 304 || status < 200;
                match pace.filter(|_| !bodiless) {
                    Some((size, pause)) => {
                        parts.push(Part::Bytes(head.freeze()));
                        for piece in pieces(&body, size) {
                            let mut framed = BytesMut::new();
                            frame(&mut framed, &piece, framing);
                            parts.extend([Part::Wait(pause), Part::Bytes(framed.freeze())]);
                        }
                        if matches!(framing, Framing::Chunked(_)) {
                            parts.push(Part::Bytes(Bytes::from_static(b"0\r\n\r\n")));
                        }
                    }
                    None => {
                        if !bodiless {
                            frame(&mut head, &body, framing);
                            if matches!(framing, Framing::Chunked(_)) {
                                head.extend_from_slice(b"0\r\n\r\n");
                            }
                        }
                        parts.push(Part::Bytes(head.freeze()));
                    }
                }
            }
        }
        (parts, after)
    }
}

impl From<&'static str> for Answer {
    fn from(html: &'static str) -> Self {
        Self::html(html)
    }
}

impl From<String> for Answer {
    fn from(html: String) -> Self {
        Self::html(html)
    }
}

fn pieces(body: &Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    (0..body.len()).step_by(size).map(move |at| body.slice(at..(at + size).min(body.len())))
}

fn frame(out: &mut BytesMut, body: &Bytes, framing: Framing) {
    let Framing::Chunked(size) = framing else {
        out.extend_from_slice(body);
        return;
    };
    for chunk in body.chunks(size) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
}

fn write_head(
    out: &mut BytesMut,
    status: u16,
    headers: &[(String, Vec<u8>)],
    body: &Bytes,
    framing: Framing,
    after: After,
) {
    let reason = http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason());
    out.extend_from_slice(format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or("Unnamed")).as_bytes());
    let given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
    if !given("content-length") && !given("transfer-encoding") && status != 204 && status >= 200 {
        match framing {
            Framing::Length => {
                out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
            }
            Framing::Chunked(_) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose => {}
        }
    }
    if after == After::Close && !given("connection") {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(answer: Answer) -> String {
        let (parts, _) = answer.into_wire(&Method::GET, false);
        let mut out = String::new();
        for part in parts {
            match part {
                Part::Bytes(bytes) => {
                    out.push_str(std::str::from_utf8(&bytes).expect("test answers are text"))
                }
                Part::Wait(pause) => out.push_str(&format!("<{}ms>", pause.as_millis())),
                Part::Repeat(..) | Part::Gate(_) | Part::Stall => out.push_str("<...>"),
            }
        }
        out
    }

    #[test]
    fn a_page_has_a_length() {
        assert_eq!(
            wire(Answer::text("hello")),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello"
        );
    }

    #[test]
    fn chunks_are_framed_and_ended() {
        assert_eq!(
            wire(Answer::status(200).body("hello").chunked(2)),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n"
        );
    }

    #[test]
    fn a_slow_body_pauses_before_each_piece() {
        let slow = Answer::status(200).body("hello").slow(3, Duration::from_millis(7));
        assert_eq!(wire(slow), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n<7ms>hel<7ms>lo");
    }

    #[test]
    fn head_and_304_have_no_body() {
        let (parts, _) = Answer::text("hello").into_wire(&Method::HEAD, false);
        let Part::Bytes(bytes) = &parts[0] else { panic!("a head only") };
        assert!(bytes.ends_with(b"Content-Length: 5\r\n\r\n"));
        assert!(wire(Answer::status(304).body("hello")).ends_with("\r\n\r\n"));
    }

    #[test]
    fn a_given_length_replaces_the_true_one() {
        let lie = wire(Answer::status(200).body("hello").header("content-length", "9"));
        assert_eq!(lie, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello");
    }

    #[test]
    fn a_request_to_close_is_answered_with_close() {
        let (parts, after) = Answer::text("x").into_wire(&Method::GET, true);
        assert_eq!(after, After::Close);
        let Part::Bytes(bytes) = &parts[0] else { panic!("one part") };
        assert!(bytes.windows(17).any(|window| window == b"Connection: close"));
    }
}
