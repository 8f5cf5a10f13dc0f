//! The job in the server: what all of its nodes must agree on.

use std::collections::BTreeMap;

use huntsman_crawler::Order;
use huntsman_redis::{Error, ErrorKind};

use crate::convert::Items;
use crate::keys::Keys;
use crate::script::{CREATE, Call, Runner};
use crate::server;
use crate::settings::{ClusterSettings, Durability, PARTITIONS};

/// The version of the data that this program writes, and the only one that it reads.
const VERSION: &str = "1";
/// URLs in one set of known requests, at the size for which a job is made. A set of up to 512 is kept as a sorted array.
const IN_SET: u64 = 128;
/// The most bits of the number of such a set.
const MAX_SEEN_BITS: u32 = 24;

/// A job, as its nodes found it in the server.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) keys: Keys,
    pub(crate) partitions: u32,
    /// Bits of the number of a set of known requests.
    pub(crate) seen_bits: u32,
    pub(crate) order: Order,
    pub(crate) durability: Durability,
    /// What the operator wants: `pause`, `stop`, or nothing.
    pub(crate) control: String,
}

impl Job {
    /// Opens the job of the settings, which is made if there is none.
    ///
    /// # Errors
    /// The server would lose the queue, or the job was made otherwise.
    pub(crate) fn enter(
        settings: &ClusterSettings,
        order: Order,
        runner: &mut Runner,
    ) -> Result<Self, Error> {
        settings.check()?;
        let keys = Keys::new(&settings.job);
        let found = match Self::look(&keys, runner)? {
            Some(found) => found,
            None => {
                let durability = settings.durability.unwrap_or(Durability::Fsync);
                server::check(&mut runner.client, &settings.address(), durability)?;
                Self::make(settings, &keys, order, durability, runner)?
            }
        };
        let refused = |why: String| {
            let message = format!(
                "the job {:?} {why}; take another --job, or the same settings on all nodes",
                settings.job
            );
            Error::new(ErrorKind::Input, message).at(settings.address())
        };
        if found.order != order {
            return Err(refused(format!(
                "was made with scheduler_order {}, not {}",
                name_of(found.order),
                name_of(order)
            )));
        }
        if let Some(durability) = settings.durability.filter(|durability| *durability != found.durability) {
            return Err(refused(format!(
                "was made with --durability {}, not {}",
                found.durability.name(),
                durability.name()
            )));
        }
        if let Some(asked) = settings.partitions.filter(|asked| *asked != found.partitions) {
            return Err(refused(format!("was made with {} partitions, not {asked}", found.partitions)));
        }
        server::check(&mut runner.client, &settings.address(), found.durability)?;
        runner.set_durability(found.durability);
        Ok(found)
    }

    /// The job, if there is one.
    ///
    /// # Errors
    /// Another version of the program made it.
    pub(crate) fn look(keys: &Keys, runner: &mut Runner) -> Result<Option<Self>, Error> {
        let reply = runner.call(Call::new(&CREATE, keys.meta()))?;
        Self::of(keys, reply, runner)
    }

    fn make(
        settings: &ClusterSettings,
        keys: &Keys,
        order: Order,
        durability: Durability,
        runner: &mut Runner,
    ) -> Result<Self, Error> {
        let partitions = settings.partitions.unwrap_or(PARTITIONS);
        let sets = (settings.urls / u64::from(partitions) / IN_SET).max(1);
        let seen_bits = sets.ilog2().min(MAX_SEEN_BITS);
        let fields = [
            ("version", VERSION.to_owned()),
            ("partitions", partitions.to_string()),
            ("seen_bits", seen_bits.to_string()),
            ("order", name_of(order).to_owned()),
            ("durability", durability.name().to_owned()),
        ];
        let call = Call::new(&CREATE, keys.meta());
        let call = fields.into_iter().fold(call, |call, (name, value)| call.arg(name).arg(value));
        let reply = runner.call(call)?;
        Self::of(keys, reply, runner)?.ok_or_else(|| runner.damaged("the job"))
    }

    fn of(keys: &Keys, reply: huntsman_redis::Reply, runner: &Runner) -> Result<Option<Self>, Error> {
        let mut items = Items::of(reply, "the description of the job")?;
        let mut fields = BTreeMap::new();
        while !items.is_empty() {
            fields.insert(items.text()?, items.text()?);
        }
        let Some(version) = fields.get("version") else { return Ok(None) };
        if version != VERSION {
            let message = format!(
                "the job was made by another version of this program (form {version}): crawl on with that one"
            );
            return Err(Error::new(ErrorKind::Format, message));
        }
        let damaged = || runner.damaged("the description of the job");
        let field = |name: &str| fields.get(name).ok_or_else(damaged);
        let number = |name: &str| field(name)?.parse::<u32>().map_err(|_| damaged());
        Ok(Some(Self {
            keys: keys.clone(),
            partitions: number("partitions")?.max(1),
            seen_bits: number("seen_bits")?.min(MAX_SEEN_BITS),
            order: order_of(field("order")?).ok_or_else(damaged)?,
            durability: Durability::of(field("durability")?).ok_or_else(damaged)?,
            control: fields.get("control").cloned().unwrap_or_default(),
        }))
    }
}

const ORDERS: [(Order, &str); 3] =
    [(Order::Bfs, "bfs"), (Order::Dfs, "dfs"), (Order::BestFirst, "best_first")];

fn name_of(order: Order) -> &'static str {
    ORDERS.iter().find(|(known, _)| *known == order).expect("all orders are listed").1
}

fn order_of(name: &str) -> Option<Order> {
    ORDERS.iter().find(|(_, known)| *known == name).map(|(order, _)| *order)
}
