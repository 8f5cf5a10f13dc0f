//! The distribution of keys over the nodes of a cluster.
//!
//! By the Redis cluster specification: a key belongs to the slot CRC-16 (XMODEM) modulo 16,384 of its name, or of the first part of the
//! name in braces.

use crate::link::Node;
use crate::resp::Reply;

const SLOTS: usize = 16384;
const NO_OWNER: u16 = u16::MAX;

/// The known nodes, and which of them serves which slot. Without a cluster there is one node, which serves all.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    nodes: Vec<Node>,
    /// By slot, the number of its node; empty without a cluster.
    owners: Vec<u16>,
}

impl Slots {
    /// A single server.
    pub(crate) fn single(node: Node) -> Self {
        Self { nodes: vec![node], owners: Vec::new() }
    }

    pub(crate) fn is_cluster(&self) -> bool {
        !self.owners.is_empty()
    }

    pub(crate) fn node(&self, number: u16) -> &Node {
        &self.nodes[usize::from(number)]
    }

    /// The number of known nodes. Their numbers are less than this.
    pub(crate) fn len(&self) -> u16 {
        self.nodes.len() as u16
    }

    /// The nodes that serve at least one slot.
    pub(crate) fn masters(&self) -> Vec<u16> {
        if !self.is_cluster() {
            return vec![0];
        }
        let mut masters: Vec<u16> = self.owners.iter().copied().filter(|owner| *owner != NO_OWNER).collect();
        masters.sort_unstable();
        masters.dedup();
        masters
    }

    /// The node that serves a slot, if it is known.
    pub(crate) fn owner(&self, slot: u16) -> Option<u16> {
        if !self.is_cluster() {
            return Some(0);
        }
        Some(self.owners[usize::from(slot) % SLOTS]).filter(|owner| *owner != NO_OWNER)
    }

    /// The number of a node, which is added if it is new.
    pub(crate) fn number(&mut self, node: Node) -> u16 {
        let known = self.nodes.iter().position(|other| *other == node);
        // Clusters have at most 1000 nodes; if a server names more and more of them, the further ones are ignored.
        let number = known.unwrap_or_else(|| {
            if self.nodes.len() == usize::from(NO_OWNER) {
                return 0;
            }
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        number as u16
    }

    /// Records that another node serves a slot now.
    pub(crate) fn moved(&mut self, slot: u16, node: Node) {
        if !self.is_cluster() {
            self.owners = vec![0; SLOTS];
        }
        let number = self.number(node);
        self.owners[usize::from(slot) % SLOTS] = number;
    }

    /// Applies a node's reply to `CLUSTER SLOTS`; returns whether the reply was valid.
    pub(crate) fn learn(&mut self, from: &Node, reply: Reply) -> bool {
        let Some(ranges) = reply.into_list() else { return false };
        let mut owners = vec![NO_OWNER; SLOTS];
        for range in ranges {
            let Some((start, end, node)) = self.range(from, range) else { return false };
            owners[start..=end].fill(node);
        }
        self.owners = owners;
        true
    }

    fn range(&mut self, from: &Node, range: Reply) -> Option<(usize, usize, u16)> {
        let mut parts = range.into_list()?.into_iter();
        let mut slot = || usize::try_from(parts.next()?.number()?).ok().filter(|slot| *slot < SLOTS);
        let (start, end) = (slot()?, slot()?);
        let mut master = parts.next()?.into_list()?.into_iter();
        let host = match master.next()? {
            Reply::Bytes(host) => String::from_utf8(host).ok()?,
            _ => String::new(),
        };
        let port = u16::try_from(master.next()?.number()?).ok()?;
        // A node that does not know its own address leaves it out; then it is the node that was asked.
        let host = if host.is_empty() || host == "?" { from.0.clone() } else { host };
        (start <= end).then(|| (start, end, self.number((host, port))))
    }
}

/// The target of a redirection `MOVED SLOT HOST:PORT` or `ASK SLOT HOST:PORT`.
pub(crate) fn redirection(refusal: &str, from: &Node) -> Option<(u16, Node)> {
    let mut words = refusal.split_ascii_whitespace().skip(1);
    let slot = words.next()?.parse().ok()?;
    let (host, port) = words.next()?.rsplit_once(':')?;
    let host = if host.is_empty() { &from.0 } else { host };
    Some((slot, (host.to_owned(), port.parse().ok()?)))
}

/// The slot of a key.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let tagged = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let length = rest.iter().position(|byte| *byte == b'}')?;
        (length > 0).then(|| &rest[..length])
    });
    let name = tagged.unwrap_or(key);
    let crc = name.iter().fold(0_u16, |crc, byte| (crc << 8) ^ CRC[usize::from((crc >> 8) as u8 ^ byte)]);
    crc % SLOTS as u16
}

static CRC: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // CRC-16/XMODEM of "123456789" is 0x31C3; the other values are replies of CLUSTER KEYSLOT.
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!((slot(b""), slot(b"foo"), slot(b"somekey")), (0, 12182, 11058));
        assert_eq!(slot(b"foo{hash_tag}"), 2515);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
        assert_ne!(slot(b"foo{bar"), slot(b"bar"));
    }

    #[test]
    fn an_answer_of_the_cluster_is_learnt() {
        let node = |host: &str, port| {
            Reply::List(vec![Reply::Bytes(host.into()), Reply::Number(port), Reply::Bytes(b"id".to_vec())])
        };
        let range = |start, end, node| Reply::List(vec![Reply::Number(start), Reply::Number(end), node]);
        let mut slots = Slots::single(("seed".to_owned(), 1));
        let from = slots.node(0).clone();
        assert!(!slots.is_cluster() && slots.owner(5) == Some(0));
        let answer = vec![range(0, 99, node("", 1)), range(100, 16382, node("b", 2))];
        assert!(slots.learn(&from, Reply::List(answer)));
        assert_eq!((slots.owner(99), slots.owner(100), slots.owner(16383)), (Some(0), Some(1), None));
        assert_eq!(slots.masters(), [0, 1]);
        let (slot, node) = redirection("MOVED 16383 [::1]:7003", &from).expect("a redirection");
        slots.moved(slot, node);
        assert_eq!(slots.node(slots.owner(16383).expect("an owner")), &("[::1]".to_owned(), 7003));
        for wrong in [Reply::Nil, Reply::List(vec![range(5, 4, Reply::Nil)])] {
            assert!(!slots.learn(&from, wrong));
        }
        let wide = Reply::List(vec![range(0, 16384, Reply::List(vec![]))]);
        assert!(!slots.learn(&from, wide) && slots.owner(0) == Some(0));
        assert_eq!(redirection("MOVED x y", &from), None);
    }
}
