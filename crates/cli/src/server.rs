//! A tiny HTTP/1.1 server on loopback: for metrics, the demo forum and the bench site.
//!
//! GET and HEAD without bodies, keep-alive, and limits on everything that a client decides. No TLS, no chunks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Bytes of a request head; a longer one ends the connection.
const MAX_HEAD: usize = 16 << 10;

/// A connection that asks nothing for so long is closed.
const IDLE: Duration = Duration::from_secs(30);

/// Connections at once; more wait in the backlog.
const CONNECTIONS: usize = 256;

/// A request, borrowed from the connection's buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    /// Path and query as sent.
    pub(crate) target: &'a str,
    keeps_alive: bool,
}

impl<'a> Asked<'a> {
    /// A GET of a target, for tests of what answers.
    #[cfg(test)]
    pub(crate) fn of(target: &'a str) -> Self {
        Self { method: "GET", target, keeps_alive: true }
    }

    /// Path without the query.
    pub(crate) fn path(&self) -> &'a str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The first value of a query parameter, as sent.
    pub(crate) fn query(&self, name: &str) -> Option<&'a str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// What the server sends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Value of the Location header.
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Status 200 with a page.
    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, content_type: "text/html; charset=utf-8", location: None, body: body.into() }
    }

    /// A status with a text.
    pub(crate) fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", location: None, body: body.into() }
    }

    /// A permanent redirect.
    pub(crate) fn redirect(to: impl Into<String>) -> Self {
        Self { location: Some(to.into()), ..Self::text(301, "moved\n") }
    }
}

/// Answers connections until it is dropped. `answer` must be quick: it runs on the network task.
pub(crate) async fn serve<F>(listener: TcpListener, answer: impl Fn(&Asked<'_>) -> F + Send + Sync + 'static)
where
    F: Future<Output = Answer> + Send + 'static,
{
    let answer = Arc::new(answer);
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    // Dropped with this future, which ends all connections.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = Arc::clone(&answer);
                connections.spawn(async move {
                    // A client that breaks off is its own affair.
                    let _ = converse(stream, &*answer).await;
                    drop(permit);
                });
            }
            // Out of file descriptors, or the client is gone already: later, without spinning.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn converse<F>(mut stream: TcpStream, answer: &impl Fn(&Asked<'_>) -> F) -> io::Result<()>
where
    F: Future<Output = Answer> + Send,
{
    stream.set_nodelay(true)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(2_048);
    let mut out: Vec<u8> = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = head_end(&buffer) {
                break end;
            }
            if buffer.len() > MAX_HEAD {
                return send(&mut stream, &mut out, "GET", &Answer::text(431, "head too long\n"), false)
                    .await;
            }
            let read = tokio::time::timeout(IDLE, stream.read_buf(&mut buffer)).await;
            if read.unwrap_or(Ok(0))? == 0 {
                return Ok(());
            }
        };
        let keeps_alive = match parse(&buffer[..end]) {
            Some(asked) if matches!(asked.method, "GET" | "HEAD") => {
                let answer = answer(&asked).await;
                send(&mut stream, &mut out, asked.method, &answer, asked.keeps_alive).await?;
                asked.keeps_alive
            }
            Some(_) => {
                let refusal = Answer::text(405, "GET and HEAD only\n");
                return send(&mut stream, &mut out, "GET", &refusal, false).await;
            }
            None => {
                let refusal = Answer::text(400, "not understood\n");
                return send(&mut stream, &mut out, "GET", &refusal, false).await;
            }
        };
        if !keeps_alive {
            return Ok(());
        }
        buffer.drain(..end);
    }
}

fn head_end(buffer: &[u8]) -> Option<usize> {
    buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4)
}

/// Nothing is what this server does not serve: other versions, bodies, targets that are no path.
fn parse(head: &[u8]) -> Option<Asked<'_>> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !target.starts_with('/') || !version.starts_with("HTTP/1.") {
        return None;
    }
    let mut keeps_alive = version == "HTTP/1.1";
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        if name.eq_ignore_ascii_case("connection") {
            keeps_alive = keeps_alive && !value.eq_ignore_ascii_case("close");
        } else if name.eq_ignore_ascii_case("transfer-encoding")
            || name.eq_ignore_ascii_case("content-length") && value != "0"
        {
            return None;
        }
    }
    Some(Asked { method, target, keeps_alive })
}

async fn send(
    stream: &mut TcpStream,
    out: &mut Vec<u8>,
    method: &str,
    answer: &Answer,
    keeps_alive: bool,
) -> io::Result<()> {
    let reason = match answer.status {
        200 => "OK",
        301 => "Moved Permanently",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Status",
    };
    out.clear();
    let connection = if keeps_alive { "keep-alive" } else { "close" };
    out.extend_from_slice(
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {connection}\r\n",
            answer.status,
            answer.content_type,
            answer.body.len()
        )
        .as_bytes(),
    );
    if let Some(location) = &answer.location {
        out.extend_from_slice(format!("Location: {location}\r\n").as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    if method != "HEAD" {
        out.extend_from_slice(&answer.body);
    }
    stream.write_all(out).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_and_what_we_do_not_serve_is_not() {
        let asked = parse(b"GET /a?b=1&c=&d HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!((asked.method, asked.path(), asked.keeps_alive), ("GET", "/a", true));
        assert_eq!((asked.query("b"), asked.query("c"), asked.query("d")), (Some("1"), Some(""), None));
        assert!(!parse(b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").unwrap().keeps_alive);
        for bad in [
            &b"GET / HTTP/2\r\n\r\n"[..],
            b"GET http://a/ HTTP/1.1\r\n\r\n",
            b"GET / x HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"\xff\xfe\r\n\r\n",
        ] {
            assert_eq!(parse(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    async fn exchange(requests: &[u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, |asked| {
            std::future::ready(Answer::text(200, asked.target.to_owned()))
        }));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(requests).await.unwrap();
        let mut got = String::new();
        stream.read_to_string(&mut got).await.unwrap();
        server.abort();
        got
    }

    #[tokio::test]
    async fn requests_in_a_row_are_answered_in_order() {
        let got = exchange(b"GET /1 HTTP/1.1\r\n\r\nHEAD /22 HTTP/1.1\r\n\r\nGET /3 HTTP/1.0\r\n\r\n").await;
        let bodies: Vec<&str> = got.split("\r\n\r\n").collect();
        assert!(bodies[1].starts_with("/1HTTP/1.1 200"), "{got}");
        assert!(bodies[1].contains("Content-Length: 3") && bodies[2].starts_with("HTTP/1.1 200"), "{got}");
        assert_eq!(bodies[3], "/3");
    }

    #[tokio::test]
    async fn an_endless_head_is_refused() {
        let mut request = b"GET / HTTP/1.1\r\nX: ".to_vec();
        request.resize(MAX_HEAD + 1, b'a');
        assert!(exchange(&request).await.starts_with("HTTP/1.1 431"));
    }

    #[tokio::test]
    async fn other_methods_are_refused() {
        assert!(exchange(b"DELETE / HTTP/1.1\r\n\r\n").await.starts_with("HTTP/1.1 405"));
    }
}
