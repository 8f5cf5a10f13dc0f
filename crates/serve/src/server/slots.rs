//! Open connections: the limit on their number, and the memory for the bodies of their requests.
//!
//! A client that has not been admitted never keeps another client out. If all slots are taken, a new connection gets
//! the slot of another one: of all connections without a request that was admitted, the oldest one of the address that
//! has most of them. So no address holds more than its share while others wait, and a client that knows the token
//! gets through a crowd of others, even from its own address. In the same way, bodies that clients are still sending
//! without having been admitted are given up for others, the oldest first.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Limits on what all clients of a server together may use. By default 256 connections, 32 of them reserved, and 48 MiB of bodies.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of open connections.
    pub connections: usize,
    /// Number of connections that are kept for clients that have not been admitted yet.
    pub reserved: usize,
    /// Maximum size of all bodies together, in bytes.
    pub bodies: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 256, reserved: 32, bodies: 48 << 20 }
    }
}

impl Limits {
    /// Limits for a benchmark site, whose only client may open as many connections as it likes.
    pub fn of_bench() -> Self {
        Self { connections: 1 << 16, ..Self::default() }
    }
}

/// The connections of a server; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: Limits,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    /// Open connections by number, so the oldest is the first.
    open: BTreeMap<u64, Entry>,
    /// Bytes of all bodies.
    bytes: usize,
    /// Connections with a request that was admitted.
    admitted: usize,
}

#[derive(Debug)]
struct Entry {
    from: IpAddr,
    is_admitted: bool,
    bytes: usize,
    end: Arc<Notify>,
}

/// The slot of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    shared: Arc<Shared>,
    end: Arc<Notify>,
}

impl ConnectionSlots {
    pub(super) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared { limits, table: Mutex::default() }))
    }

    /// Takes a slot for a connection from an address.
    pub(super) fn acquire(&self, from: IpAddr) -> ConnectionSlot {
        let mut table = self.0.table();
        // Fewer connections than this limit can be admitted, so at least one is not.
        while table.open.len() >= self.0.limits.connections
            && table.evict(None, |entry| usize::from(!entry.is_admitted))
        {}
        table.last += 1;
        let (number, end) = (table.last, Arc::<Notify>::default());
        let entry = Entry { from: holder(from), is_admitted: false, bytes: 0, end: Arc::clone(&end) };
        table.open.insert(number, entry);
        ConnectionSlot { number, shared: Arc::clone(&self.0), end }
    }
}

impl ConnectionSlot {
    /// Completes when the slot is given to another connection.
    pub(super) async fn evicted(&self) {
        self.end.notified().await;
    }

    /// Number of connections that have a slot.
    pub(super) fn connections(&self) -> usize {
        self.shared.table().open.len()
    }

    /// Marks that the request of this connection was admitted: it keeps its slot and the memory of its body until
    /// [`begin`](Self::begin). Returns false if there are too many such requests.
    pub(super) fn admit(&self) -> bool {
        let most = self.shared.limits.connections - self.shared.limits.reserved;
        let mut table = self.shared.table();
        let has_room = table.admitted < most;
        let Some(entry) = table.open.get_mut(&self.number) else { return false };
        if !entry.is_admitted {
            if !has_room {
                return false;
            }
            entry.is_admitted = true;
            table.admitted += 1;
        }
        true
    }

    /// Begins the next request: it is not admitted yet, and the body of the last one is freed.
    pub(super) fn begin(&self) {
        let mut table = self.shared.table();
        if let Some(entry) = table.open.remove(&self.number) {
            let fresh = Entry { is_admitted: false, bytes: 0, ..table.forget(entry) };
            table.open.insert(self.number, fresh);
        }
    }

    /// Reserves memory for more bytes of this request's body. Returns false if there is no room for them.
    pub(super) fn grow(&self, bytes: usize) -> bool {
        let mut table = self.shared.table();
        while table.bytes + bytes > self.shared.limits.bodies {
            if !table.evict(Some(self.number), |entry| if entry.is_admitted { 0 } else { entry.bytes }) {
                return false;
            }
        }
        let Some(entry) = table.open.get_mut(&self.number) else { return false };
        entry.bytes += bytes;
        table.bytes += bytes;
        true
    }

    /// Frees the memory of the body.
    pub(super) fn shrink(&self) {
        let mut table = self.shared.table();
        let bytes = table.open.get_mut(&self.number).map_or(0, |entry| std::mem::take(&mut entry.bytes));
        table.bytes -= bytes;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        if let Some(entry) = table.open.remove(&self.number) {
            table.forget(entry);
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the oldest connection with a cost above 0, of the address whose connections cost most in total. Returns
    /// false if there is none.
    fn evict(&mut self, except: Option<u64>, cost: impl Fn(&Entry) -> usize) -> bool {
        let mut costs: HashMap<IpAddr, usize> = HashMap::new();
        let is_other = |number: &u64| Some(*number) != except;
        for (_, entry) in self.open.iter().filter(|(number, _)| is_other(number)) {
            *costs.entry(entry.from).or_default() += cost(entry);
        }
        let most = costs.values().copied().max().unwrap_or(0);
        let oldest = self.open.iter().find(|(number, entry)| {
            is_other(number) && cost(entry) > 0 && costs.get(&entry.from) == Some(&most)
        });
        let Some(number) = oldest.map(|(number, _)| *number) else { return false };
        if let Some(entry) = self.open.remove(&number) {
            self.forget(entry).end.notify_one();
        }
        true
    }

    /// Releases everything that an entry took.
    fn forget(&mut self, entry: Entry) -> Entry {
        self.bytes -= entry.bytes;
        self.admitted -= usize::from(entry.is_admitted);
        entry
    }
}

/// The unit to which an address is counted: in IPv6, a customer of a provider has 2^64 addresses.
fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn slots(connections: usize, reserved: usize, bodies: usize) -> ConnectionSlots {
        ConnectionSlots::new(Limits { connections, reserved, bodies })
    }

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    /// The numbers of the connections that have lost their slots.
    async fn lost(slots: &[ConnectionSlot]) -> Vec<usize> {
        let mut lost = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            if tokio::time::timeout(Duration::ZERO, slot.evicted()).await.is_ok() {
                lost.push(at);
            }
        }
        lost
    }

    #[tokio::test(start_paused = true)]
    async fn a_newcomer_gets_the_place_of_the_oldest_of_the_address_with_the_most() {
        let all = slots(4, 1, 0);
        let enter = |address: &str| all.acquire(ip(address));
        let mut open = vec![enter("10.0.0.1"), enter("10.0.0.2"), enter("10.0.0.2"), enter("10.0.0.2")];
        open.push(enter("10.0.0.3"));
        assert_eq!(lost(&open).await, [1]);
        // Two addresses of one IPv6 network count as one.
        let all = slots(3, 1, 0);
        let enter = |address: &str| all.acquire(ip(address));
        let open = [enter("10.0.0.1"), enter("2001:db8::1"), enter("2001:db8::2"), enter("::ffff:10.0.0.9")];
        assert_eq!(lost(&open).await, [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_admitted_request_keeps_its_connection_and_some_connections_are_reserved_for_new_clients() {
        let all = slots(4, 1, 0);
        let mut open: Vec<ConnectionSlot> = (0..4).map(|_| all.acquire(ip("127.0.0.1"))).collect();
        assert_eq!([0, 1, 2, 3].map(|at: usize| open[at].admit()), [true, true, true, false]);
        open.extend((0..3).map(|_| all.acquire(ip("127.0.0.1"))));
        assert_eq!(lost(&open).await, [3, 4, 5]);
        // A connection that lost its slot cannot be admitted any more.
        assert!(!open[3].admit() && !open[3].grow(0));
        // The next request has to be admitted again.
        open[1].begin();
        assert!(open[6].admit());
        open.push(all.acquire(ip("127.0.0.1")));
        assert_eq!(lost(&open).await, [1]);
        // A dropped slot is free.
        open.clear();
        let open: Vec<ConnectionSlot> = (0..4).map(|_| all.acquire(ip("127.0.0.1"))).collect();
        assert_eq!(lost(&open).await, [0_usize; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_were_not_let_in_make_room_and_others_do_not() {
        let all = slots(9, 1, 100);
        let open: Vec<ConnectionSlot> = (0..5).map(|_| all.acquire(ip("127.0.0.1"))).collect();
        assert!(open[0].grow(40) && open[1].grow(40) && open[2].grow(20));
        assert!(open[0].admit());
        assert!(open[3].grow(50), "the oldest that was not admitted goes, and one more");
        assert_eq!(lost(&open).await, [1, 2]);
        assert!(!open[4].grow(61), "a body of that size has no room even if the others go");
        assert!(open[4].grow(60) && !open[4].grow(1));
        assert_eq!(lost(&open).await, [3]);
        open[0].shrink();
        assert!(open[4].grow(40));
    }
}
