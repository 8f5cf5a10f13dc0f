//! A Prometheus server for tests: a real process on a free port, which ends with the test.
//!
//! It needs the programs `prometheus` and `promtool`; without them a test fails with a message that says how to get
//! them.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::redis::free_port;

const MISSING: &str = "this test needs the programs prometheus and promtool: apt-get install prometheus";
/// Time limit for a response, on a machine that is busy with other work as well.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server on a free loopback port that scrapes some addresses every second. The process ends when this value is
/// dropped.
#[derive(Debug)]
pub struct Prometheus {
    directory: TempDir,
    port: u16,
    child: Child,
}

impl Prometheus {
    /// Starts the server for jobs with one address each, and waits until it is ready.
    ///
    /// # Panics
    /// If there is no `prometheus`, or it is not ready within two minutes.
    pub fn start(jobs: &[(&str, &str)]) -> Self {
        let mut config = "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n".to_owned();
        for (job, address) in jobs {
            config += &format!("- job_name: '{job}'\n  static_configs: [{{targets: ['{address}']}}]\n");
        }
        // Another process may take the port before the server does.
        for _ in 0..20 {
            if let Some(server) = Self::spawn(&config) {
                return server;
            }
        }
        panic!("no prometheus could be started");
    }

    fn spawn(config: &str) -> Option<Self> {
        let (directory, port) = (tempfile::tempdir().expect("a directory for temporary files"), free_port());
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("prometheus.yml"), config).expect("a file in an own directory");
        let log = File::create(at("server.log")).expect("a file in an own directory");
        let mut command = Command::new("prometheus");
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        command
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .current_dir(directory.path());
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("an open file")).stdout(log);
        let child = command.spawn().unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let mut server = Self { directory, port, child };
        let start = Instant::now();
        // Another server may respond at this port: only ours writes this into its log.
        while !server.log().contains("ready to receive web requests") || server.get("/-/ready").is_none() {
            if server.child.try_wait().expect("an own child can be asked").is_some() {
                return None;
            }
            assert!(start.elapsed() < PATIENCE, "prometheus is not ready: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Evaluates an expression now; each result has `metric` and `value`.
    ///
    /// # Errors
    /// The server's error message.
    pub fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}")).ok_or("no answer")?;
        match &answer["data"]["result"] {
            Value::Array(results) if answer["status"] == "success" => Ok(results.clone()),
            _ => Err(answer.to_string()),
        }
    }

    /// The `data` of an API path, such as `/api/v1/targets`.
    ///
    /// # Panics
    /// If the server does not respond.
    pub fn api(&self, path: &str) -> Value {
        self.get(path).unwrap_or_else(|| panic!("{path}: {}", self.log()))["data"].take()
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("server.log")).unwrap_or_default()
    }

    /// The JSON body of a response, or its text as a JSON string.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        // A response to HTTP/1.0 is never chunked.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\n\r\n", self.port).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let is_json = head.contains("application/json");
        if is_json { serde_json::from_str(body).ok() } else { Some(body.into()) }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // This also runs during a panic and must not turn it into an abort.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The messages of `promtool check metrics` for a text with metrics; empty if there are none.
///
/// # Panics
/// If there is no `promtool`.
pub fn check_metrics(text: &str) -> String {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{MISSING} ({error})"));
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads all of its input");
    let output = child.wait_with_output().expect("an own child can be waited for");
    let found = [output.stdout, output.stderr].concat();
    let found = String::from_utf8_lossy(&found).into_owned();
    if found.is_empty() && !output.status.success() { output.status.to_string() } else { found }
}
