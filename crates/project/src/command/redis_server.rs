//! A Redis server for measurements.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::command::exit::{Failure, Outcome};
use crate::command::process::program;

/// A `redis-server` of its own on a free loopback port, which stores nothing on the disk. The process ends when this value is dropped.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
}

const NAME: &str = "redis-server";
/// The longest time for the server to start.
const START: Duration = Duration::from_secs(60);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(10);

impl RedisServer {
    /// Whether the program is installed.
    pub fn is_installed() -> bool {
        let version = program(NAME).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    }

    /// Starts the server, and waits until it takes connections.
    ///
    /// # Errors
    /// The program is not installed, or it does not answer within a minute.
    pub fn start() -> Outcome<Self> {
        let missing = |error: std::io::Error| {
            Failure::usage(format!(
                "starting {NAME}: {error}; install it (Redis 7.0 or later), for example with apt-get install redis-server"
            ))
        };
        // The port is free for the moment between the two.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = program(NAME);
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(std::env::temp_dir());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(missing)?;
        let mut server = Self { process, port };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let has_ended = server.process.try_wait()?.is_some();
            if has_ended || begun.elapsed() > START {
                return Err(Failure::crawl(format!("{NAME} does not answer at port {port}")));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(server)
    }

    /// Its address: `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
