//! An S3-compatible server for tests: a real process on a free port, which ends with the test.
//!
//! It needs the program `moto_server`; without it a test fails with a message that says how to get it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::redis::free_port;

const MISSING: &str = "this test needs the program moto_server in PATH: python3 -m venv moto && \
                       moto/bin/pip install 'moto[s3]==5.2.5' flask flask-cors && PATH=\"$PATH:$PWD/moto/bin\"";
/// Time limit for a response, on a machine that is busy with other work as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// The server only checks that there is a signature, unless it is locked.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// A server with buckets on a free loopback port. The process ends when this value is dropped.
///
/// ```no_run
/// let server = huntsman_testkit::moto::Server::start();
/// server.make_bucket("stories");
/// server.put("stories", "day/1.txt", b"a story");
/// ```
#[derive(Debug)]
pub struct Server {
    directory: TempDir,
    port: u16,
    child: Child,
}

impl Server {
    /// Starts the server, and waits until it responds.
    ///
    /// # Panics
    /// If there is no `moto_server`, or it does not respond within two minutes.
    pub fn start() -> Self {
        // Another process may take the port before the server does.
        for _ in 0..20 {
            if let Some(server) = Self::spawn() {
                return server;
            }
        }
        panic!("no moto_server could be started");
    }

    fn spawn() -> Option<Self> {
        let (directory, port) = (tempfile::tempdir().expect("a directory for temporary files"), free_port());
        let log = File::create(directory.path().join("server.log")).expect("a file in an own directory");
        let mut command = Command::new("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).current_dir(directory.path());
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("an open file")).stdout(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let mut server = Self { directory, port, child };
        let start = Instant::now();
        // Another server may respond at this port: only ours writes this into its log.
        while !server.log().contains("Running on") || server.ask("GET", "/moto-api/", &[], b"") != Some(200) {
            if server.child.try_wait().expect("an own child can be asked").is_some() {
                return None;
            }
            assert!(start.elapsed() < PATIENCE, "moto_server does not answer: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Creates an empty bucket.
    ///
    /// # Panics
    /// If the server refuses the request.
    pub fn make_bucket(&self, bucket: &str) {
        self.done("PUT", &format!("/{bucket}"), &[], b"");
    }

    /// Puts an object.
    ///
    /// # Panics
    /// If the server refuses the request.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) {
        self.done("PUT", &path(bucket, key), &[], bytes);
    }

    /// Puts an object that can be read without credentials.
    ///
    /// # Panics
    /// If the server refuses the request.
    pub fn put_public(&self, bucket: &str, key: &str, bytes: &[u8]) {
        self.done("PUT", &path(bucket, key), &["x-amz-acl: public-read"], bytes);
    }

    /// Deletes an object.
    ///
    /// # Panics
    /// If the server refuses the request.
    pub fn delete(&self, bucket: &str, key: &str) {
        self.done("DELETE", &path(bucket, key), &[], b"");
    }

    /// Returns the bytes of an object, or `None` if there is none.
    ///
    /// # Panics
    /// If the server does not answer.
    pub fn get(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        let answer = self.exchange("GET", &path(bucket, key), &[], b"").expect("an answer of the server");
        let body = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
        (status(&answer) == Some(200)).then(|| answer[body..].to_vec())
    }

    /// Makes the server check credentials from now on; none are valid.
    ///
    /// # Panics
    /// If the server refuses the request.
    pub fn lock(&self) {
        self.done("POST", "/moto-api/reset-auth", &[], b"0");
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.child.kill().expect("an own child can be ended");
        self.child.wait().expect("an own child can be waited for");
    }

    /// The log of the server: a line for each request.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.directory.path().join("server.log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    fn done(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) {
        let status = self.ask(method, path, headers, body);
        assert!(
            status.is_some_and(|status| status / 100 == 2),
            "{method} {path}: {status:?}: {}",
            self.log()
        );
    }

    /// Sends a request; returns the status of the response, or `None` without one.
    fn ask(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Option<u16> {
        status(&self.exchange(method, path, headers, body)?)
    }

    fn exchange(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Option<Vec<u8>> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/octet-stream\r\n{SIGNED}\r\n",
            self.port,
            body.len()
        );
        headers.iter().for_each(|header| head.extend([header, "\r\n"]));
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.write_all(&[head.as_bytes(), b"\r\n", body].concat()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(answer)
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

impl Drop for Server {
    fn drop(&mut self) {
        // This also runs during a panic and must not turn it into an abort.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn path(bucket: &str, key: &str) -> String {
    let mut path = format!("/{bucket}/");
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(byte.into())
            }
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path
}
