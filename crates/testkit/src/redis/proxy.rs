//! A TCP proxy that breaks connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Forwards bytes between its port and another one on 127.0.0.1, and cuts connections after a number of bytes.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// Where connections are cut: after a random number of bytes, from a generator with this seed.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// The seed of the generator. A test should print it.
    pub seed: u64,
    /// Maximum number of bytes on a connection before it is cut.
    pub max_bytes: u64,
    /// The direction whose bytes count.
    pub counted: Counted,
}

/// The direction whose bytes count towards a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Both directions: commands are cut more often than responses.
    All,
    /// Responses only: the server has executed commands whose responses the client does not receive.
    Answers,
}

#[derive(Debug)]
struct Shared {
    cuts: Mutex<Option<(Xoshiro256PlusPlus, Cuts)>>,
    target: AtomicU16,
    count: AtomicU64,
    is_over: AtomicBool,
    loses_answers: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts to forward to the port `target`, without cuts.
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let port = listener.local_addr().expect("a bound address").port();
        let shared = Arc::new(Shared {
            cuts: Mutex::new(None),
            target: AtomicU16::new(target),
            count: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            loses_answers: AtomicBool::new(false),
            open: Mutex::new(Vec::new()),
        });
        let acceptor = thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        });
        Self { port, shared, acceptor: Some(acceptor) }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts new connections from now on; with `None`, no longer.
    pub fn cut(&self, cuts: Option<Cuts>) {
        let cuts = cuts.map(|cuts| (Xoshiro256PlusPlus::seed_from_u64(cuts.seed), cuts));
        *self.shared.cuts.lock().expect("no panic") = cuts;
    }

    /// Forwards to another port from now on, and cuts all open connections: the server of this address is another one.
    pub fn forward_to(&self, target: u16) {
        self.shared.target.store(target, Ordering::SeqCst);
        self.cut_now();
    }

    /// Cuts all open connections.
    pub fn cut_now(&self) {
        for stream in self.shared.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Forwards no response from now on, or again all of them: the server executes commands on connections that stay open, and the client
    /// is not told.
    pub fn lose_answers(&self, lose: bool) {
        self.shared.loses_answers.store(lose, Ordering::SeqCst);
    }

    /// Number of connections that were cut after their number of bytes.
    pub fn count(&self) -> u64 {
        self.shared.count.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // This wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.cut_now();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.is_over.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        // If the server is down, the client sees its connection closed.
        let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::SeqCst))) else {
            continue;
        };
        let (budget, counted) = match shared.cuts.lock().expect("no panic").as_mut() {
            None => (None, Counted::All),
            Some((rng, cuts)) => (Some(rng.next_u64() % cuts.max_bytes), cuts.counted),
        };
        let budget = Arc::new(Mutex::new(budget));
        // A budget that is never used up.
        let commands = if counted == Counted::All { budget.clone() } else { Arc::default() };
        let copy = |stream: &TcpStream| stream.try_clone().expect("a socket has a copy");
        shared.open.lock().expect("no panic").extend([copy(&client), copy(&server)]);
        for (from, to, budget, are_answers) in
            [(copy(&client), copy(&server), commands, false), (server, client, budget, true)]
        {
            let shared = shared.clone();
            thread::spawn(move || pump(from, to, &shared, &budget, are_answers));
        }
    }
}

/// Forwards bytes in one direction until either side closes or the budget of both directions is used up.
fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    shared: &Shared,
    budget: &Mutex<Option<u64>>,
    are_answers: bool,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if are_answers && shared.loses_answers.load(Ordering::SeqCst) {
            continue;
        }
        let (pass, is_cut) = match budget.lock().expect("no panic").as_mut() {
            None => (read, false),
            Some(left) => {
                let pass = read.min(*left as usize);
                *left -= pass as u64;
                (pass, *left == 0)
            }
        };
        if to.write_all(&buffer[..pass]).is_err() {
            break;
        }
        if is_cut {
            shared.count.fetch_add(1, Ordering::SeqCst);
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
