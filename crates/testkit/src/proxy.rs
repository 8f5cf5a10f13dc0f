//! A forward proxy for tests: absolute addresses and CONNECT, with credentials, and with the failures that proxies have.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Maximum size of the head of a request.
const MAX_HEAD: usize = 64 * 1024;
/// How long a connection may be silent.
const IDLE: Duration = Duration::from_secs(30);

/// What a [`ForwardProxy`] does with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyBehaviour {
    /// It forwards them.
    #[default]
    Forward,
    /// It answers 407, as a proxy that does not know the user.
    Refuse,
    /// It answers 502, as a proxy that cannot reach the site.
    NoSite,
    /// It closes the connection without an answer.
    Close,
    /// It answers nothing and keeps the connection open.
    Silent,
}

/// A proxy on a loopback port that sends everything to one address, whatever host is asked for, until it is dropped.
///
/// It speaks HTTP/1.1, one request a connection, and runs on threads of its own.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use huntsman_testkit::{ForwardProxy, Site};
///
/// let site = Site::builder().host("site.test").page("/", "<p>by proxy").start().await;
/// let proxy = ForwardProxy::start(site.port());
/// assert!(proxy.url("ann:secret").starts_with("http://ann:secret@127.0.0.1:"));
/// assert!(proxy.requests().is_empty(), "nothing has asked for anything yet");
/// # }
/// ```
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    site: SocketAddr,
    behaviour: Mutex<ProxyBehaviour>,
    /// The value of Proxy-Authorization without which requests get 407.
    credentials: Mutex<Option<String>>,
    requests: Mutex<Vec<String>>,
    open: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

impl ForwardProxy {
    /// Starts a proxy whose requests all go to this port of 127.0.0.1.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(site: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("a bound address");
        let shared = Arc::new(Shared {
            site: SocketAddr::from(([127, 0, 0, 1], site)),
            behaviour: Mutex::default(),
            credentials: Mutex::default(),
            requests: Mutex::default(),
            open: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// Requests must have this value of `Proxy-Authorization` from now on, such as `Basic dTpw`; others get 407.
    pub fn require(self, authorization: &str) -> Self {
        *lock(&self.shared.credentials) = Some(authorization.to_owned());
        self
    }

    /// Changes what it does with requests from now on.
    pub fn behave(&self, behaviour: ProxyBehaviour) {
        *lock(&self.shared.behaviour) = behaviour;
    }

    /// Host and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as a URL with these credentials (`user:password`); none if the text is empty.
    pub fn url(&self, credentials: &str) -> String {
        let at = if credentials.is_empty() { "" } else { "@" };
        format!("http://{credentials}{at}{}", self.address)
    }

    /// Method and target of all requests so far, in the order in which they came: `GET http://site.test/a`, `CONNECT site.test:443`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        // This wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for stream in lock(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.is_over.load(Ordering::Acquire) {
            return;
        }
        if let Ok(other) = stream.try_clone() {
            lock(&shared.open).push(other);
        }
        let shared = Arc::clone(shared);
        // The thread ends with its connection, which is shut down with the proxy.
        thread::spawn(move || {
            let _ = serve(&stream, &shared);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// Serves one request.
fn serve(mut client: &TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_read_timeout(Some(IDLE))?;
    let mut received = Vec::new();
    let end = loop {
        if let Some(at) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let mut part = [0; 4_096];
        match client.read(&mut part)? {
            0 => return Ok(()),
            _ if received.len() > MAX_HEAD => return Ok(()),
            count => received.extend_from_slice(&part[..count]),
        }
    };
    let rest = received.split_off(end);
    let head = String::from_utf8_lossy(&received).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    lock(&shared.requests).push(format!("{method} {target}"));
    let headers: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let authorization = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("proxy-authorization").then(|| value.trim())
    });
    let is_unknown =
        lock(&shared.credentials).as_deref().is_some_and(|required| authorization != Some(required));
    let behaviour = *lock(&shared.behaviour);
    let answer = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
    };
    match behaviour {
        ProxyBehaviour::Close => return Ok(()),
        ProxyBehaviour::Silent => {
            // This returns when the client leaves.
            let _ = client.read(&mut [0; 1]);
            return Ok(());
        }
        ProxyBehaviour::Refuse => return client.write_all(&answer("407 Proxy Authentication Required")),
        _ if is_unknown => return client.write_all(&answer("407 Proxy Authentication Required")),
        ProxyBehaviour::NoSite => return client.write_all(&answer("502 Bad Gateway")),
        ProxyBehaviour::Forward => {}
    }
    let mut site = TcpStream::connect(shared.site)?;
    if let Ok(other) = site.try_clone() {
        lock(&shared.open).push(other);
    }
    if method == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        let path = target.splitn(4, '/').nth(3).unwrap_or_default();
        let mut forwarded = format!("{method} /{path} HTTP/1.1\r\n");
        let is_for_the_proxy = |line: &str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            name.starts_with("proxy-") || name == "connection"
        };
        for line in headers.iter().filter(|line| !is_for_the_proxy(line)) {
            forwarded += line;
            forwarded += "\r\n";
        }
        forwarded += "Connection: close\r\n\r\n";
        site.write_all(forwarded.as_bytes())?;
    }
    site.write_all(&rest)?;
    relay(client, &site)
}

/// Copies in both directions until the site closes the connection.
fn relay(client: &TcpStream, site: &TcpStream) -> io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, site.try_clone()?);
    let sending = thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let copied = io::copy(&mut &*site, &mut &*client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = sending.join();
    copied.map(drop)
}
