//! The HTTP/1.1 server of the test sites: one thread with its own runtime and limits on everything.
//!
//! It runs in real time whatever the test does with its own clock, and it can send data that no HTTP library would
//! send.

use std::any::Any;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::answer::{After, Answer, Part};
use crate::record::{Log, Outcome, Running, SiteRequest};

/// Maximum size of the head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum size of the body of a request.
const MAX_BODY: usize = 8 * 1024 * 1024;
/// How long an idle connection, or one with half a request, is kept open.
const IDLE: Duration = Duration::from_secs(30);
/// Maximum number of connections served at once; further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 4_096;
/// The send buffer is small, so that "bytes sent" counts what the client received and not what the kernel buffered.
const SEND_BUFFER: u32 = 128 * 1024;
const BACKLOG: u32 = 1_024;
/// Number of attempts to find a port that is free on every address.
const PORT_TRIES: usize = 50;
/// Maximum number of bytes that a client may send while a response is being sent, pipelining included.
const MAX_EARLY: usize = 256 * 1024;

/// Limits of one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) hold: Duration,
    pub(crate) bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { hold: Duration::from_secs(20), bytes: 64 << 20 }
    }
}

/// Decides which host a request is for, and responds to it.
pub(crate) trait Service: Send + Sync + 'static {
    /// The host under which a request is recorded: a host name that the site knows, or else the listener's address.
    fn host_of(&self, listener: &str, authority: Option<&str>) -> String;
    fn answer(&self, request: &SiteRequest) -> Answer;
}

/// Everything that the thread of a server needs.
pub(crate) struct Plan {
    pub(crate) addresses: Vec<Ipv4Addr>,
    pub(crate) limits: Limits,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) log: Arc<Log>,
}

/// Serves until `stop` fires or is dropped. The port, which is the same on every address, is sent through `ready`.
pub(crate) fn run(plan: Plan, ready: oneshot::Sender<io::Result<u16>>, stop: oneshot::Receiver<()>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(cause) => {
            let _ = ready.send(Err(cause));
            return;
        }
    };
    runtime.block_on(async {
        let listeners = match listen(&plan.addresses) {
            Ok((port, listeners)) => {
                let _ = ready.send(Ok(port));
                listeners
            }
            Err(cause) => {
                let _ = ready.send(Err(cause));
                return;
            }
        };
        let plan = Arc::new(plan);
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let numbers = Arc::new(std::sync::atomic::AtomicU64::new(0));
        for (address, listener) in listeners {
            tokio::spawn(accept(
                address,
                listener,
                Arc::clone(&plan),
                Arc::clone(&room),
                Arc::clone(&numbers),
            ));
        }
        let _ = stop.await;
    });
    // Every task ends with the runtime: responses that are still being sent are recorded as cut off.
}

fn listen(addresses: &[Ipv4Addr]) -> io::Result<(u16, Vec<(Ipv4Addr, TcpListener)>)> {
    let mut last = io::Error::other("no address to listen on");
    'tries: for _ in 0..PORT_TRIES {
        let mut port = 0;
        let mut listeners = Vec::with_capacity(addresses.len());
        for &address in addresses {
            match listen_on(SocketAddr::from((address, port))) {
                Ok(listener) => {
                    port = listener.local_addr()?.port();
                    listeners.push((address, listener));
                }
                Err(cause) if port != 0 && cause.kind() == io::ErrorKind::AddrInUse => {
                    last = cause;
                    continue 'tries;
                }
                Err(cause) => return Err(cause),
            }
        }
        if !listeners.is_empty() {
            return Ok((port, listeners));
        }
    }
    Err(last)
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn accept(
    address: Ipv4Addr,
    listener: TcpListener,
    plan: Arc<Plan>,
    room: Arc<Semaphore>,
    numbers: Arc<std::sync::atomic::AtomicU64>,
) {
    let name = address.to_string();
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            // Usually the process is out of file descriptors; the client side of the same process may free some.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        plan.log.connected(&name);
        let number = numbers.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (plan, name) = (Arc::clone(&plan), name.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut connection = Connection { stream, inbox: BytesMut::new(), number, listener: name };
            connection.serve(&plan).await;
            drop(permit);
        });
    }
}

/// The client closed the connection, or the connection broke.
struct Gone;

struct Connection {
    stream: TcpStream,
    /// Bytes that were received and not used yet.
    inbox: BytesMut,
    number: u64,
    listener: String,
}

impl Connection {
    async fn serve(&mut self, plan: &Plan) {
        loop {
            let head = match timeout(IDLE, self.read_head()).await {
                Ok(Ok(Some(head))) => head,
                Ok(Ok(None)) => {
                    plan.log.malformed(&self.inbox);
                    let _ =
                        self.stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
                    return;
                }
                Ok(Err(Gone)) | Err(_) => return,
            };
            let Some(head) = Head::parse(&head) else {
                plan.log.malformed(&head);
                let _ = self.stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n").await;
                return;
            };
            let Ok(Ok(body)) = timeout(IDLE, self.read_body(&head)).await else { return };
            let closes = head.closes();
            let (target, authority) = head.split_target();
            let mut request = SiteRequest {
                host: plan.service.host_of(&self.listener, authority.as_deref()),
                method: head.method,
                target,
                headers: head.headers,
                body,
                connection: self.number,
                nth: 0,
            };
            let mut running = plan.log.begin(&mut request);
            let answer =
                catch_unwind(AssertUnwindSafe(|| plan.service.answer(&request))).unwrap_or_else(|panic| {
                    let what = format!(
                        "handler of {}{} panicked: {}",
                        request.host,
                        request.target,
                        text_of(&*panic)
                    );
                    plan.log.panicked(what);
                    Answer::status(500).after(After::Close)
                });
            let (parts, after) = answer.into_wire(&request.method, closes);
            running.outcome = self.send(parts, plan.limits, &mut running).await;
            let complete = running.outcome == Outcome::Sent;
            drop(running);
            match after {
                After::KeepAlive if complete => {}
                After::Reset => {
                    let _ = self.stream.set_zero_linger();
                    return;
                }
                _ => {
                    // The connection is shut down in order, so that the client can read everything before the socket
                    // is closed.
                    let _ = self.stream.shutdown().await;
                    if complete {
                        self.linger().await;
                    }
                    return;
                }
            }
        }
    }

    /// Reads for a moment what the client still sends: closing a socket with unread bytes resets the connection, and
    /// a reset may destroy the end of the response at the client.
    async fn linger(&mut self) {
        let drain = async {
            let mut scratch = [0; 4_096];
            while matches!(self.stream.read(&mut scratch).await, Ok(1..)) {}
        };
        let _ = timeout(Duration::from_secs(1), drain).await;
    }

    /// The bytes of a head, including its empty line; `None` if it is too long.
    async fn read_head(&mut self) -> Result<Option<Bytes>, Gone> {
        let mut from = 0;
        loop {
            if let Some(at) = find(&self.inbox[from..], b"\r\n\r\n") {
                return Ok(Some(self.inbox.split_to(from + at + 4).freeze()));
            }
            from = self.inbox.len().saturating_sub(3);
            if self.inbox.len() > MAX_HEAD {
                return Ok(None);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), Gone> {
        match self.stream.read_buf(&mut self.inbox).await {
            Ok(1..) => Ok(()),
            _ => Err(Gone),
        }
    }

    async fn read_body(&mut self, head: &Head) -> Result<Bytes, Gone> {
        if head.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.map_err(|_| Gone)?;
        }
        if head
            .header("transfer-encoding")
            .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
        {
            return self.read_chunks().await;
        }
        let Some(length) = head.header("content-length") else { return Ok(Bytes::new()) };
        let length: usize = length.trim().parse().map_err(|_| Gone)?;
        if length > MAX_BODY {
            return Err(Gone);
        }
        self.take(length).await
    }

    async fn take(&mut self, length: usize) -> Result<Bytes, Gone> {
        while self.inbox.len() < length {
            self.receive().await?;
        }
        Ok(self.inbox.split_to(length).freeze())
    }

    async fn read_chunks(&mut self) -> Result<Bytes, Gone> {
        let mut body = BytesMut::new();
        loop {
            let line = loop {
                match find(&self.inbox, b"\r\n") {
                    Some(at) => break self.inbox.split_to(at + 2),
                    None if self.inbox.len() > MAX_HEAD => return Err(Gone),
                    None => self.receive().await?,
                }
            };
            let line = String::from_utf8_lossy(&line);
            let size = line.split(';').next().unwrap_or_default().trim().to_owned();
            let size = usize::from_str_radix(&size, 16).map_err(|_| Gone)?;
            if body.len().saturating_add(size) > MAX_BODY {
                return Err(Gone);
            }
            body.extend_from_slice(&self.take(size).await?);
            let end = self.take(2).await?;
            if end[..] != b"\r\n"[..] {
                return Err(Gone);
            }
            if size == 0 {
                return Ok(body.freeze());
            }
        }
    }

    /// Sends the parts in order, and notices when the client leaves even while there is nothing to send.
    async fn send(&mut self, parts: Vec<Part>, limits: Limits, running: &mut Running) -> Outcome {
        let deadline = Instant::now() + limits.hold;
        let mut parts = VecDeque::from(parts);
        while let Some(part) = parts.pop_front() {
            let outcome = match part {
                Part::Bytes(bytes) => self.write(bytes, deadline, limits.bytes, running).await,
                Part::Repeat(bytes, times) => {
                    let mut outcome = Outcome::Sent;
                    let mut left = if bytes.is_empty() { 0 } else { times };
                    while left > 0 && outcome == Outcome::Sent {
                        left -= 1;
                        outcome = self.write(bytes.clone(), deadline, limits.bytes, running).await;
                    }
                    outcome
                }
                Part::Wait(pause) => self.wait(sleep(pause), deadline).await,
                Part::Gate(gate) => self.wait(gate.opened(), deadline).await,
                Part::Stall => self.wait(std::future::pending(), deadline).await,
            };
            if outcome != Outcome::Sent {
                return outcome;
            }
        }
        Outcome::Sent
    }

    async fn write(
        &mut self,
        mut bytes: Bytes,
        deadline: Instant,
        cap: u64,
        running: &mut Running,
    ) -> Outcome {
        while bytes.has_remaining() {
            let room = cap.saturating_sub(running.sent);
            if room == 0 {
                return Outcome::CutOff;
            }
            let piece = bytes.slice(..bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            match timeout_at(deadline, self.stream.write(&piece)).await {
                Ok(Ok(count @ 1..)) => {
                    running.sent += count as u64;
                    bytes.advance(count);
                }
                Ok(_) => return Outcome::ClientLeft,
                Err(_) => return Outcome::CutOff,
            }
            // A fast client must not keep the other connections of this thread waiting.
            tokio::task::consume_budget().await;
        }
        Outcome::Sent
    }

    async fn wait(&mut self, event: impl Future<Output = ()>, deadline: Instant) -> Outcome {
        let mut event = pin!(timeout_at(deadline, event));
        loop {
            let has_room = self.inbox.len() <= MAX_EARLY;
            tokio::select! {
                ended = &mut event => return if ended.is_ok() { Outcome::Sent } else { Outcome::CutOff },
                // This is cancel-safe: bytes that were read are in the inbox.
                read = self.stream.read_buf(&mut self.inbox), if has_room => {
                    if !matches!(read, Ok(1..)) {
                        return Outcome::ClientLeft;
                    }
                }
            }
        }
    }
}

/// The head of a request.
struct Head {
    method: Method,
    target: String,
    is_old: bool,
    headers: HeaderMap,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.strip_suffix(b"\r\n\r\n")?.split(|&byte| byte == b'\n');
        let first = std::str::from_utf8(lines.next()?.trim_ascii_end()).ok()?;
        let mut words = first.split(' ');
        let method = Method::from_bytes(words.next()?.as_bytes()).ok()?;
        let target = words.next()?;
        let version = words.next()?;
        if words.next().is_some() || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let is_old = match version {
            "HTTP/1.1" => false,
            "HTTP/1.0" => true,
            _ => return None,
        };
        let mut headers = HeaderMap::new();
        for line in lines {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let colon = line.iter().position(|&byte| byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
            headers.append(name, value);
        }
        Some(Self { method, target: target.to_owned(), is_old, headers })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn closes(&self) -> bool {
        match self.header("connection").map(str::to_ascii_lowercase) {
            Some(value) if value.contains("close") => true,
            Some(value) if value.contains("keep-alive") => false,
            _ => self.is_old,
        }
    }

    /// The path with query, and the authority: from an absolute target, as proxies receive it, or from the Host
    /// header.
    fn split_target(&self) -> (String, Option<String>) {
        let absolute = self.target.strip_prefix("http://");
        if let Some(rest) = absolute {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
            return (path, Some(authority.to_owned()));
        }
        (self.target.clone(), self.header("host").map(str::to_owned))
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
