//! A cluster of Redis servers.

use std::time::{Duration, Instant};

use super::process::Server;
use super::proxy::Proxy;

/// A Redis cluster of masters, which share the slots evenly.
#[derive(Debug)]
pub struct Cluster {
    /// The masters, and then their replicas in the same order, if there are any.
    nodes: Vec<Server>,
    masters: usize,
}

const SLOTS: usize = 16384;
const PATIENCE: Duration = Duration::from_secs(120);

impl Cluster {
    /// Starts `nodes` masters without replicas, and waits until they know each other.
    ///
    /// # Panics
    /// If there is no `redis-server`, or the cluster is not ready within two minutes.
    pub fn start(nodes: usize) -> Self {
        Self::with(nodes, 0)
    }

    /// Starts masters with a replica each, which takes over some seconds after its master was killed. It takes three masters or more.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    pub fn replicated(masters: usize) -> Self {
        let cluster = Self::with(masters, masters);
        for (master, replica) in cluster.nodes.iter().zip(&cluster.nodes[masters..]) {
            replica.cli(&["CLUSTER", "REPLICATE", master.cli(&["CLUSTER", "MYID"]).trim()]);
        }
        cluster.wait_until("the replicas follow", |node| {
            let info = node.cli(&["INFO", "replication"]);
            info.contains("master_link_status:up") || info.contains("connected_slaves:1")
        });
        cluster
    }

    fn with(masters: usize, replicas: usize) -> Self {
        let start = |_| {
            let server = Server::builder()
                .of_cluster()
                .setting("cluster-node-timeout", "2000")
                .setting("cluster-require-full-coverage", "no");
            server.start()
        };
        let nodes: Vec<Server> = (0..masters + replicas).map(start).collect();
        let cluster = Self { nodes, masters };
        for (at, node) in cluster.nodes.iter().enumerate() {
            // Nodes that find out that they have the same epoch raise it one after the other, for some seconds. A replica whose master dies
            // meanwhile is not elected, or loses to its master when that one is started again without its data.
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
            if at < cluster.masters {
                let of = |node: usize| (node * SLOTS / cluster.masters).to_string();
                let (first, next) = (of(at), (at + 1) * SLOTS / cluster.masters - 1);
                node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first, &next.to_string()]);
            }
            let (port, bus) = (node.port().to_string(), node.bus().expect("a node of a cluster has one"));
            cluster.nodes[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus.to_string()]);
        }
        cluster.wait_until("all nodes know all slots", |node| {
            let info = node.cli(&["CLUSTER", "INFO"]);
            let known = format!("cluster_known_nodes:{}", cluster.nodes.len());
            ["cluster_state:ok", "cluster_slots_ok:16384", &known].iter().all(|line| info.contains(line))
        });
        cluster
    }

    /// The servers.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The address of the first node.
    pub fn url(&self) -> String {
        self.nodes[0].url()
    }

    /// Puts a proxy before each node. The nodes tell clients the ports of the proxies from now on, and use their own among themselves.
    ///
    /// # Panics
    /// If the nodes have not told each other within two minutes.
    pub fn behind_proxies(&self) -> Vec<Proxy> {
        let proxies: Vec<Proxy> = self.nodes.iter().map(|node| Proxy::start(node.port())).collect();
        let ports: Vec<String> = proxies.iter().map(|proxy| proxy.port().to_string()).collect();
        for (node, port) in self.nodes.iter().zip(&ports) {
            node.cli(&["CONFIG", "SET", "cluster-announce-port", port]);
        }
        self.wait_until("all nodes know the proxies", |node| {
            let slots = node.cli(&["CLUSTER", "SLOTS"]);
            ports[..self.masters].iter().all(|port| slots.lines().any(|line| line == port))
        });
        proxies
    }

    /// Kills a node.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].kill();
    }

    /// Waits until all other nodes know that its replica has replaced a master that was killed.
    ///
    /// # Panics
    /// If they do not within two minutes.
    pub fn wait_until_replaced(&self, master: usize) {
        let replica = self.nodes[self.masters + master].cli(&["CLUSTER", "MYID"]);
        let first = (master * SLOTS / self.masters).to_string();
        let others = self.nodes.iter().enumerate().filter(|(at, _)| *at != master).map(|(_, node)| node);
        wait_until("the replica is a master", others, |node| {
            let slots = node.cli(&["CLUSTER", "SLOTS"]);
            // First and last slot of a range, address, port and name of its master.
            slots
                .lines()
                .collect::<Vec<_>>()
                .windows(5)
                .any(|lines| lines[0] == first && lines[4] == replica.trim())
        });
    }

    /// Starts a node again that was killed. A master that its replica has replaced becomes the replica of that one.
    pub fn start_again(&mut self, node: usize) {
        self.nodes[node].start_again();
    }

    /// Moves a slot with its keys from its present node to another one.
    ///
    /// `between` is called while the old node redirects requests for keys that have already moved to the new one
    /// (`ASK`).
    pub fn move_slot(&self, slot: u16, to: usize, between: impl FnOnce()) {
        let id = |node: &Server| node.cli(&["CLUSTER", "MYID"]).trim().to_owned();
        let slot = slot.to_string();
        let nodes_of = self.nodes[0].cli(&["CLUSTER", "SLOTS"]);
        let owns = |node: &&Server| {
            let first_and_last =
                |lines: &[&str]| Some((lines[0].parse::<u32>().ok()?, lines[1].parse::<u32>().ok()?));
            let lines: Vec<&str> = nodes_of.lines().collect();
            let number: u32 = slot.parse().expect("a number");
            lines.windows(4).any(|lines| {
                let range =
                    first_and_last(lines).is_some_and(|(first, last)| (first..=last).contains(&number));
                range && lines[2] == "127.0.0.1" && lines[3] == node.port().to_string()
            })
        };
        let old = self.nodes.iter().find(owns).expect("a node has the slot");
        let new = &self.nodes[to];
        assert_ne!(old.port(), new.port(), "it is there already");
        new.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(old)]);
        old.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(new)]);
        let keys = |node: &Server| -> Vec<String> {
            let keys = node.cli(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000000"]);
            keys.lines().filter(|key| !key.is_empty()).map(str::to_owned).collect()
        };
        let migrate = |keys: &[String]| {
            for key in keys {
                old.cli(&["MIGRATE", "127.0.0.1", &new.port().to_string(), key, "0", "10000"]);
            }
        };
        let all = keys(old);
        migrate(&all[..all.len() / 2]);
        between();
        migrate(&keys(old));
        for node in [new, old] {
            node.cli(&["CLUSTER", "SETSLOT", &slot, "NODE", &id(new)]);
        }
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Server) -> bool) {
        wait_until(what, self.nodes.iter(), holds);
    }
}

fn wait_until<'a>(what: &str, nodes: impl Iterator<Item = &'a Server>, holds: impl Fn(&Server) -> bool) {
    let start = Instant::now();
    for node in nodes {
        while !holds(node) {
            assert!(start.elapsed() < PATIENCE, "{what}: {}", node.cli(&["CLUSTER", "NODES"]));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
