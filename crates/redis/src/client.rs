//! Sends batches of commands to a server or to the nodes of a cluster, and retries each command until it has a reply.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use crate::error::{Error, ErrorKind};
use crate::link::{self, Link, Unconnected};
use crate::refusal;
use crate::resp::{Reply, Shape, encode};
use crate::settings::Settings;
use crate::slots::{self, Slots};

/// Commands that are sent together. Each of them has the same effect if it is sent twice.
#[derive(Clone, Debug)]
pub struct Batch {
    bytes: Vec<u8>,
    /// The end of each command.
    ends: Vec<usize>,
    slots: Vec<u16>,
    shape: Shape,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// A batch without commands, whose replies may have any shape.
    pub fn new() -> Self {
        Self::of(Shape::Any)
    }

    /// A batch whose replies all have this shape.
    pub fn of(shape: Shape) -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), slots: Vec::new(), shape }
    }

    /// Adds a command: its name, its key, further arguments.
    ///
    /// # Panics
    /// If there is no key.
    pub fn push(&mut self, parts: &[&[u8]]) {
        self.push_keyed(parts, parts[1]);
    }

    /// Adds a command whose key is not its first argument.
    pub fn push_keyed(&mut self, parts: &[&[u8]], key: &[u8]) {
        encode(&mut self.bytes, parts);
        self.ends.push(self.bytes.len());
        self.slots.push(slots::slot(key));
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The length of the batch on the wire, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the commands of another batch of the same shape.
    pub fn append(&mut self, other: &Batch) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
        self.slots.extend_from_slice(&other.slots);
    }

    fn command(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }
}

/// A client of the server: a connection to each node that it needed.
#[derive(Debug)]
pub struct Client {
    settings: Arc<Settings>,
    tls: Option<Arc<ClientConfig>>,
    slots: Slots,
    links: HashMap<u16, Link>,
    /// The server's ids of connections that were lost. Commands that were sent on them may still arrive; they must not be carried out after
    /// the same commands were sent again.
    lost: Vec<(u16, i64)>,
}

/// The reason why commands have no reply yet.
#[derive(Debug)]
enum Retry {
    /// Other nodes serve their keys.
    Redirected,
    /// The server will accept them later.
    Temporary(String),
    ConnectionLost(io::Error),
}

const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The number of consecutive redirections that are followed without a pause.
const REDIRECTIONS_WITHOUT_PAUSE: u32 = 5;

impl Client {
    /// Connects, and finds out whether the server is part of a cluster.
    ///
    /// # Errors
    /// The server cannot be reached, which is not retried, or it refuses.
    pub fn connect(settings: Arc<Settings>) -> Result<Self, Error> {
        let tls = link::tls(&settings)?;
        let slots = Slots::single((settings.host.clone(), settings.port));
        let mut client = Self { settings, tls, slots, links: HashMap::new(), lost: Vec::new() };
        let (since, patience) = (Instant::now(), client.settings.patience);
        let mut pause = MIN_PAUSE;
        loop {
            match client.link(0) {
                Ok(_) => break,
                Err(Unconnected::Never(error)) => return Err(error),
                // A server that is starting is waited for, but not one that does not answer at all.
                Err(Unconnected::Lost(error))
                    if error.kind() == io::ErrorKind::Other && since.elapsed() < patience =>
                {
                    thread::sleep(pause);
                    pause = (pause * 2).min(MAX_PAUSE);
                }
                Err(Unconnected::Lost(error)) => {
                    let message = format!("no connection: {error}; start the server, or mend the address");
                    let error = Error::new(ErrorKind::Unavailable, message).with_source(error);
                    return Err(error.at(client.settings.address()));
                }
            }
        }
        // A single server refuses this command, because it has no slots.
        client.learn_from(0)?;
        if client.slots.is_cluster() && client.settings.database != 0 {
            let refusal = refusal::of("ERR SELECT is not allowed in cluster mode");
            return Err(refusal.at(client.settings.address()));
        }
        Ok(client)
    }

    /// Another client of the same server.
    pub fn sibling(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            tls: self.tls.clone(),
            slots: self.slots.clone(),
            links: HashMap::new(),
            lost: Vec::new(),
        }
    }

    /// Whether the server is part of a cluster.
    pub fn is_cluster(&self) -> bool {
        self.slots.is_cluster()
    }

    /// Runs all commands and returns the replies in their order.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings, or one of the replies is a refusal; the other commands were carried out.
    pub fn run(&mut self, batch: &Batch) -> Result<Vec<Reply>, Error> {
        let replies = self.answers(batch)?;
        match replies
            .iter()
            .find_map(|reply| if let Reply::Error(error) = reply { Some(error) } else { None })
        {
            Some(error) => Err(self.refused(error)),
            None => Ok(replies),
        }
    }

    /// Runs batches one after another. With a single server, which keeps the order, they are sent in one go.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings, or the server refuses.
    pub fn run_in_order(&mut self, batches: Vec<Batch>) -> Result<(), Error> {
        let mut batches = batches.into_iter().filter(|batch| !batch.is_empty());
        if self.is_cluster() {
            return batches.try_for_each(|batch| self.run(&batch).map(drop));
        }
        let Some(mut first) = batches.next() else { return Ok(()) };
        batches.for_each(|batch| first.append(&batch));
        self.run(&first).map(drop)
    }

    /// Runs one command and returns its reply.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings, or the server refuses.
    pub fn call(&mut self, parts: &[&[u8]]) -> Result<Reply, Error> {
        let mut batch = Batch::new();
        batch.push(parts);
        Ok(self.run(&batch)?.remove(0))
    }

    /// The error for an error reply of the server, with advice.
    pub fn refused(&self, error: &str) -> Error {
        refusal::of(error).at(self.settings.address())
    }

    /// Runs all commands and returns the replies in their order, refusals included.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings.
    pub fn answers(&mut self, batch: &Batch) -> Result<Vec<Reply>, Error> {
        let mut replies: Vec<Option<Reply>> = (0..batch.len()).map(|_| None).collect();
        let mut open: Vec<usize> = (0..batch.len()).collect();
        let mut asked: HashMap<usize, u16> = HashMap::new();
        let mut window = usize::MAX;
        let mut since: Option<Instant> = None;
        let mut pause = MIN_PAUSE;
        let mut moves = 0;
        while !open.is_empty() {
            let now = &open[..open.len().min(window)];
            let sent = now.len();
            let retry = self.round(batch, now, &mut asked, &mut replies)?;
            let before = open.len();
            open.retain(|at| replies[*at].is_none());
            if open.len() < before {
                (since, pause, moves) = (None, MIN_PAUSE, 0);
            }
            let Some(retry) = retry else { continue };
            let started = *since.get_or_insert_with(Instant::now);
            if started.elapsed() >= self.settings.patience {
                return Err(self.error_of_retry(retry));
            }
            match &retry {
                Retry::Redirected if moves < REDIRECTIONS_WITHOUT_PAUSE => {
                    moves += 1;
                    self.learn();
                    continue;
                }
                // The network may not bear so much data in one go: fewer commands at a time get through and make progress.
                Retry::ConnectionLost(_) => window = (sent / 4).max(1),
                _ => {}
            }
            tracing::debug!(?retry, open = open.len(), "redis: trying again");
            if open.len() == before {
                thread::sleep(pause);
                pause = (pause * 2).min(MAX_PAUSE);
            }
            if self.slots.is_cluster() {
                self.learn();
            }
        }
        Ok(replies.into_iter().map(|reply| reply.expect("no command is open")).collect())
    }

    /// Sends a command without a key to all nodes that have keys, and returns their replies.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings.
    pub fn each_node(&mut self, parts: &[&[u8]]) -> Result<Vec<(u16, Reply)>, Error> {
        let masters = self.slots.masters();
        masters.into_iter().map(|node| Ok((node, self.on_node(node, parts)?))).collect()
    }

    /// Sends a command to a node and returns its reply, which may be a refusal.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings.
    pub fn on_node(&mut self, node: u16, parts: &[&[u8]]) -> Result<Reply, Error> {
        let mut command = Vec::new();
        encode(&mut command, parts);
        let since = Instant::now();
        let mut pause = MIN_PAUSE;
        loop {
            let answer = match self.link(node) {
                Ok(link) => link.send(&command).and_then(|()| link.reply(Shape::Any)),
                Err(Unconnected::Never(error)) => return Err(error),
                Err(Unconnected::Lost(error)) => Err(error),
            };
            let retry = match answer {
                Ok(Reply::Error(error)) if refusal::is_temporary(&error) => Retry::Temporary(error),
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    self.drop_link(node);
                    if link::is_permanent(&error) {
                        return Err(link::permanent(&self.settings, error));
                    }
                    Retry::ConnectionLost(error)
                }
            };
            if since.elapsed() >= self.settings.patience {
                return Err(self.error_of_retry(retry));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Runs a command that must not be carried out twice. An inner error means that the connection was lost before the reply, so it is
    /// unknown whether the command was carried out. If it is, that happens before anything that this client sends next.
    ///
    /// # Errors
    /// There was no reply within the patience of the settings, or the server refuses.
    pub fn run_at_most_once(&mut self, parts: &[&[u8]]) -> Result<Result<Reply, Error>, Error> {
        let since = Instant::now();
        let mut command = Batch::new();
        command.push(parts);
        let mut pause = MIN_PAUSE;
        loop {
            // First sends a command without effect, which finds the node, and connects if there is no connection.
            let mut probe = Batch::new();
            probe.push(&[b"EXISTS", parts[1]]);
            self.run(&probe)?;
            let Some(node) = self.slots.owner(command.slots[0]) else { continue };
            let Some(link) = self.links.get_mut(&node) else { continue };
            let refusal = match link.send(&command.bytes).and_then(|()| link.reply(Shape::Any)) {
                Ok(Reply::Error(error)) => error,
                Ok(reply) => return Ok(Ok(reply)),
                Err(error) => {
                    self.drop_link(node);
                    if link::is_permanent(&error) {
                        return Err(link::permanent(&self.settings, error));
                    }
                    return Ok(Err(self.error_of_retry(Retry::ConnectionLost(error))));
                }
            };
            let is_moving = refusal.starts_with("MOVED ") || refusal.starts_with("ASK ");
            if !is_moving && !refusal::is_temporary(&refusal) || since.elapsed() >= self.settings.patience {
                return Err(self.refused(&refusal));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(MAX_PAUSE);
            self.learn();
        }
    }

    fn error_of_retry(&self, retry: Retry) -> Error {
        let seconds = self.settings.patience.as_secs_f64();
        let error = match retry {
            Retry::Redirected => self.refused("MOVED again and again"),
            Retry::Temporary(error) => refusal::of(&error),
            Retry::ConnectionLost(error) => {
                let message = format!(
                    "connection lost: {error}; tried again for {seconds} s; see whether the server runs and has room, then run the \
                     same again: what was done is not done twice"
                );
                Error::new(ErrorKind::Unavailable, message).with_source(error)
            }
        };
        error.at(self.settings.address())
    }

    /// Sends commands to their nodes, all before the first reply is read, and then reads the replies that arrive.
    fn round(
        &mut self,
        batch: &Batch,
        open: &[usize],
        asked: &mut HashMap<usize, u16>,
        replies: &mut [Option<Reply>],
    ) -> Result<Option<Retry>, Error> {
        let mut retry = None;
        let mut groups: Vec<Vec<(usize, bool)>> = vec![Vec::new(); usize::from(self.slots.len())];
        for at in open {
            match (asked.remove(at), self.slots.owner(batch.slots[*at])) {
                (Some(node), _) => groups[usize::from(node)].push((*at, true)),
                (None, Some(node)) => groups[usize::from(node)].push((*at, false)),
                (None, None) => {
                    retry = Some(Retry::Temporary("CLUSTERDOWN no node serves the slot".to_owned()))
                }
            }
        }
        let mut sent = Vec::new();
        for (node, group) in groups.into_iter().enumerate().filter(|(_, group)| !group.is_empty()) {
            let node = node as u16;
            let gathered;
            let commands = if group.len() == batch.len() && group.iter().all(|(_, asks)| !asks) {
                &batch.bytes
            } else {
                let mut bytes = Vec::new();
                for (at, asks) in &group {
                    if *asks {
                        encode(&mut bytes, &[b"ASKING"]);
                    }
                    bytes.extend_from_slice(batch.command(*at));
                }
                gathered = bytes;
                &gathered
            };
            let result = match self.link(node) {
                Ok(link) => link.send(commands),
                Err(Unconnected::Never(error)) => return Err(error),
                Err(Unconnected::Lost(error)) => Err(error),
            };
            match result {
                Ok(()) => sent.push((node, group)),
                Err(error) => {
                    self.record_failure(node, error, &mut retry)?;
                }
            }
        }
        for (node, group) in sent {
            match self.read(node, batch, &group, asked, replies) {
                Ok(None) => {}
                Ok(Some(Retry::Temporary(error))) if error.starts_with("READONLY") => {
                    // Its name may lead to another server by now.
                    self.drop_link(node);
                    retry = Some(Retry::Temporary(error));
                }
                Ok(Some(Retry::Redirected)) => {
                    retry.get_or_insert(Retry::Redirected);
                }
                Ok(Some(other)) => retry = Some(other),
                Err(error) => self.record_failure(node, error, &mut retry)?,
            }
        }
        Ok(retry)
    }

    /// Reads the replies of a node; returns why some commands have to be sent again.
    fn read(
        &mut self,
        node: u16,
        batch: &Batch,
        group: &[(usize, bool)],
        asked: &mut HashMap<usize, u16>,
        replies: &mut [Option<Reply>],
    ) -> io::Result<Option<Retry>> {
        let mut retry = None;
        for (at, asks) in group {
            let link = self.links.get_mut(&node).expect("what was sent to has a link");
            if *asks {
                link.reply(Shape::Any)?;
            }
            let reply = link.reply(batch.shape)?;
            let Reply::Error(error) = &reply else {
                replies[*at] = Some(reply);
                continue;
            };
            let redirection = slots::redirection(error, self.slots.node(node));
            match (error.split(' ').next(), redirection) {
                (Some("MOVED"), Some((slot, to))) => {
                    self.slots.moved(slot, to);
                    retry.get_or_insert(Retry::Redirected);
                }
                (Some("ASK"), Some((_, to))) => {
                    asked.insert(*at, self.slots.number(to));
                    retry.get_or_insert(Retry::Redirected);
                }
                _ if refusal::is_temporary(error) => retry = Some(Retry::Temporary(error.clone())),
                // The node was a master until now, or is about to be one: another node serves the keys, or this one does soon.
                (Some("READONLY"), _) => retry = Some(Retry::Temporary(error.clone())),
                _ => replies[*at] = Some(reply),
            }
        }
        Ok(retry)
    }

    fn record_failure(
        &mut self,
        node: u16,
        error: io::Error,
        retry: &mut Option<Retry>,
    ) -> Result<(), Error> {
        self.drop_link(node);
        if link::is_permanent(&error) {
            return Err(link::permanent(&self.settings, error));
        }
        *retry = Some(Retry::ConnectionLost(error));
        Ok(())
    }

    fn drop_link(&mut self, node: u16) {
        if let Some(Link { id: Some(id), .. }) = self.links.remove(&node) {
            self.lost.push((node, id));
        }
    }

    /// The connection to a node; connects if there is none.
    fn link(&mut self, node: u16) -> Result<&mut Link, Unconnected> {
        if !self.links.contains_key(&node) {
            let address = self.slots.node(node);
            let mut link =
                Link::connect(&self.settings, self.tls.as_ref(), address, self.slots.is_cluster())?;
            for (_, id) in self.lost.iter().filter(|(of, _)| *of == node) {
                let mut command = Vec::new();
                encode(&mut command, &[b"CLIENT", b"KILL", b"ID", id.to_string().as_bytes()]);
                // The reply does not matter: the connection may be gone already, or the user may lack the right to end it.
                let answer = link.send(&command).and_then(|()| link.reply(Shape::Any));
                answer.map_err(Unconnected::Lost)?;
            }
            self.lost.retain(|(of, _)| *of != node);
            self.links.insert(node, link);
        }
        Ok(self.links.get_mut(&node).expect("it was just made"))
    }

    /// Asks the cluster which node serves which slots. Any node may reply; if none does, the known slots stay.
    fn learn(&mut self) {
        for node in 0..self.slots.len() {
            if self.learn_from(node).is_ok_and(|learnt| learnt) {
                return;
            }
        }
    }

    fn learn_from(&mut self, node: u16) -> Result<bool, Error> {
        let mut command = Vec::new();
        encode(&mut command, &[b"CLUSTER", b"SLOTS"]);
        let answer = match self.link(node) {
            Ok(link) => link.send(&command).and_then(|()| link.reply(Shape::Any)),
            Err(Unconnected::Never(error)) => return Err(error),
            Err(Unconnected::Lost(error)) => Err(error),
        };
        match answer {
            Ok(reply) => {
                let from = self.slots.node(node).clone();
                Ok(self.slots.learn(&from, reply))
            }
            Err(error) => {
                self.drop_link(node);
                if link::is_permanent(&error) {
                    return Err(link::permanent(&self.settings, error));
                }
                Ok(false)
            }
        }
    }
}
