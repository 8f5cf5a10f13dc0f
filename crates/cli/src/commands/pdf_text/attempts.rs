//! `pdf-text --attempts`: attempts operations that a reader of PDF files must not be able to do, for tests.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::process::Command;

/// Attempts to use a file, a directory, a program and an address (one a line) and returns the results, one a line.
pub(super) fn tell(names: &str) -> String {
    let mut names = names.lines();
    let mut next = || names.next().unwrap_or_default();
    let (file, directory, program, address) = (next(), next(), next(), next());
    let variables: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let mut out = format!("environment: {}\n", variables.join(" "));
    let mut told = |what: &str, done: io::Result<()>| {
        let _ = writeln!(out, "{what}: {}", if done.is_ok() { "done" } else { "refused" });
    };
    told("read", File::open(file).map(drop));
    told("write", fs::write(format!("{directory}/made"), "x"));
    told("list", fs::read_dir(directory).map(drop));
    told("remove", fs::remove_file(file));
    told("run", Command::new(program).status().map(drop));
    told("connect", TcpStream::connect(address).map(drop));
    told("bind", UdpSocket::bind("127.0.0.1:0").map(drop));
    told("thread", std::thread::Builder::new().spawn(|| {}).map(drop));
    out
}
