//! A Redis server process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// A Redis server on a free loopback port, with its data in a directory of its own. The process ends when this value
/// is dropped.
///
/// ```no_run
/// let server = huntsman_testkit::redis::Server::start();
/// assert_eq!(server.cli(&["PING"]), "PONG\n");
/// ```
#[derive(Debug)]
pub struct Server {
    arguments: Vec<String>,
    directory: TempDir,
    port: u16,
    bus: Option<u16>,
    password: Option<String>,
    is_secure: bool,
    child: Option<Child>,
}

/// The configuration of a server.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ServerBuilder {
    arguments: Vec<String>,
    password: Option<String>,
    is_secure: bool,
    is_of_cluster: bool,
}

const MISSING: &str = "this test needs the programs redis-server and redis-cli: apt-get install redis-server";
/// Time limit for a response, on a machine that is busy with other work as well.
const PATIENCE: Duration = Duration::from_secs(60);

impl ServerBuilder {
    /// Sets a password for the default user.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.setting("requirepass", password)
    }

    /// Writes every command to a log before the server responds, so that a killed server still has all data after a
    /// restart.
    pub fn durable(self) -> Self {
        self.setting("appendonly", "yes").setting("appendfsync", "always")
    }

    /// Makes it a node of a cluster, whose bus has a free port, too: the default, its port plus 10,000, may not be a valid one.
    pub fn of_cluster(mut self) -> Self {
        self.is_of_cluster = true;
        self
    }

    /// Accepts only TLS connections. The certificate for `localhost` and 127.0.0.1 is signed by an authority of its
    /// own: [`Server::ca`].
    pub fn tls(mut self) -> Self {
        self.is_secure = true;
        self
    }

    /// Sets any setting of `redis.conf`.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.arguments.extend([format!("--{name}"), value.to_owned()]);
        self
    }

    /// Starts the server, and waits until it responds.
    ///
    /// # Panics
    /// If there is no `redis-server`, or it does not respond within a minute.
    pub fn start(self) -> Server {
        // Another process may take the port before the server does.
        for _ in 0..20 {
            let mut server = Server {
                arguments: self.arguments.clone(),
                directory: tempfile::tempdir().expect("a directory for temporary files"),
                port: free_port(),
                bus: self.is_of_cluster.then(free_port),
                password: self.password.clone(),
                is_secure: self.is_secure,
                child: None,
            };
            if self.is_secure {
                write_certificates(server.directory());
            }
            if server.spawn() {
                return server;
            }
        }
        panic!("no redis-server could be started: {}", self.arguments.join(" "));
    }
}

impl Server {
    /// A server without a password that stores nothing on disk.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// Configures a server.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of the bus of a cluster.
    pub(super) fn bus(&self) -> Option<u16> {
        self.bus
    }

    /// `redis://127.0.0.1:PORT` or `rediss://127.0.0.1:PORT`, without a password.
    pub fn url(&self) -> String {
        let scheme = if self.is_secure { "rediss" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// The certificate, in PEM, of the authority that signed the certificate of a server with TLS.
    pub fn ca(&self) -> PathBuf {
        self.directory().join("ca.pem")
    }

    /// The directory of its data and its log.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills the server, as a loss of power would; data that it had not written is lost.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("an own child can be ended");
            child.wait().expect("an own child can be waited for");
        }
    }

    /// Starts the server again on its port, with the data that it finds.
    ///
    /// # Panics
    /// If it is running, or does not start within a minute.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let start = Instant::now();
        while !self.spawn() {
            assert!(start.elapsed() < PATIENCE, "no start at port {}: {}", self.port, self.log());
        }
    }

    /// Runs a command with `redis-cli` and returns its output.
    ///
    /// # Panics
    /// If `redis-cli` cannot be run or reports an error.
    pub fn cli(&self, arguments: &[&str]) -> String {
        self.cli_with_input(arguments, "")
    }

    /// Runs `redis-cli` with commands on its standard input, one a line, and returns its output.
    ///
    /// # Panics
    /// If `redis-cli` cannot be run or reports an error.
    pub fn cli_with_input(&self, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-h", "127.0.0.1", "-e", "-p", &self.port.to_string()]);
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        if self.is_secure {
            command.arg("--tls").arg("--cacert").arg(self.ca());
        }
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output().expect("an own child can be waited for");
        // If the command is given as arguments, `redis-cli` does not read its input.
        let _ = writer.join().expect("a writer does not panic");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory().join("server.log")).unwrap_or_default()
    }

    /// Starts the process; returns whether it responds, since another process may have its port.
    fn spawn(&mut self) -> bool {
        let log = File::options().append(true).create(true).open(self.directory().join("server.log"));
        let log = log.expect("a file in an own directory");
        let mut command = Command::new("redis-server");
        let port = self.port.to_string();
        if self.is_secure {
            let file = |name: &str| self.directory().join(name).display().to_string();
            command.args(["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"]);
            command.args(["--tls-cert-file", &file("server.pem"), "--tls-key-file", &file("server.key")]);
            command.args(["--tls-ca-cert-file", &file("ca.pem")]);
        } else {
            command.args(["--port", &port]);
        }
        command.args(["--bind", "127.0.0.1", "--save", "", "--daemonize", "no"]);
        // A replica need not wait for others that may come.
        command.args(["--repl-diskless-sync-delay", "0"]);
        if let Some(bus) = self.bus {
            command.args(["--cluster-enabled", "yes", "--cluster-port", &bus.to_string()]);
        }
        command.args(&self.arguments).current_dir(self.directory());
        command.stdin(Stdio::null()).stderr(log.try_clone().expect("an open file")).stdout(log);
        let starts = self.starts();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{MISSING} ({error})"));
        let start = Instant::now();
        loop {
            if child.try_wait().expect("an own child can be asked").is_some() {
                return false;
            }
            // Its log says that it listens: while it has not yet ended for want of the port, the other process answers there.
            if self.starts() > starts && self.answers() {
                self.child = Some(child);
                return true;
            }
            if start.elapsed() > PATIENCE {
                child.kill().expect("an own child can be ended");
                child.wait().expect("an own child can be waited for");
                panic!("redis-server does not answer: {}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// How often it has listened so far.
    fn starts(&self) -> usize {
        self.log().matches("Ready to accept connections").count()
    }

    /// Whether it serves requests: the process runs and has loaded its data.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        if self.is_secure {
            return true;
        }
        let mut answer = [0; 8];
        let asked = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.write_all(b"PING\r\n"));
        let read = asked.and_then(|()| stream.read(&mut answer)).unwrap_or(0);
        answer[..read].starts_with(b"+PONG") || answer[..read].starts_with(b"-NOAUTH")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This also runs during a panic and must not turn it into an abort.
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn write_certificates(directory: &Path) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("a certificate");
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let server = CertificateParams::new(names).expect("names").signed_by(&key, &authority);
    let write = |name: &str, text: String| {
        std::fs::write(directory.join(name), text).expect("a file in an own directory");
    };
    write("ca.pem", authority.pem());
    write("server.pem", server.expect("a certificate").pem());
    write("server.key", key.serialize_pem());
}

/// A port that no process uses at the moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.local_addr().expect("a bound address").port()
}
