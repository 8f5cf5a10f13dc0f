//! Whether a server may hold a queue.

use huntsman_redis::{Client, Error, ErrorKind, Reply};

use crate::settings::Durability;

/// The oldest version that is known to run the scripts.
const OLDEST: u32 = 7;

/// What a server says about itself.
#[derive(Debug, Default)]
struct Facts {
    version: Option<String>,
    policy: Option<String>,
    has_log: Option<bool>,
    writes_log_first: Option<bool>,
    is_replica: bool,
    has_replica: bool,
}

/// Refuses a server that would lose the queue.
///
/// # Errors
/// A server is too old, evicts keys, or keeps less than `durability` asks for.
pub(crate) fn check(client: &mut Client, address: &str, durability: Durability) -> Result<(), Error> {
    for (_, info) in client.each_node(&[b"INFO", b"everything"])? {
        let Reply::Bytes(text) = info else { continue };
        Facts::of(&String::from_utf8_lossy(&text))
            .check(durability)
            .map_err(|why| Error::new(ErrorKind::Refused, why).at(address))?;
    }
    if durability == Durability::Fsync {
        for (_, reply) in client.each_node(&[b"CONFIG", b"GET", b"appendfsync"])? {
            // Without the right to ask, the settings of the server are taken on trust: its operator has set them.
            let Some(values) = reply.into_values() else { continue };
            let facts = Facts {
                writes_log_first: Some(values.last() == Some(&Some(b"always".to_vec()))),
                has_replica: true,
                ..Facts::default()
            };
            facts.check(durability).map_err(|why| Error::new(ErrorKind::Refused, why).at(address))?;
        }
    }
    Ok(())
}

impl Facts {
    fn of(info: &str) -> Self {
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        Self {
            // Valkey tells the version of Redis whose commands it has, too.
            version: field("redis_version"),
            policy: field("maxmemory_policy"),
            has_log: field("aof_enabled").map(|enabled| enabled != "0"),
            writes_log_first: None,
            is_replica: field("role").as_deref() == Some("slave"),
            has_replica: field("connected_slaves").as_deref() != Some("0"),
        }
    }

    fn check(&self, durability: Durability) -> Result<(), String> {
        if let Some(version) = &self.version
            && version
                .split('.')
                .next()
                .and_then(|major| major.parse::<u32>().ok())
                .is_some_and(|major| major < OLDEST)
        {
            return Err(format!(
                "the server is Redis {version}, and a shared queue needs {OLDEST}.0 or later, or Valkey"
            ));
        }
        if self.is_replica {
            return Err("the server is a replica: give the address of its master, or promote it".to_owned());
        }
        if let Some(policy) = self.policy.as_deref().filter(|policy| *policy != "noeviction") {
            return Err(format!(
                "the server evicts keys when its memory is full ({policy}), which would lose parts of the queue: set \
                 maxmemory-policy noeviction there"
            ));
        }
        let weaker =
            "or make the job with --durability ack, with which a server that dies loses the last changes";
        match (durability, self.has_log, self.writes_log_first) {
            (Durability::Fsync, Some(false), _) => Err(format!(
                "the server keeps no log on its disk, as --durability fsync asks for: set appendonly yes and appendfsync always there, {weaker}"
            )),
            (Durability::Fsync, _, Some(false)) => Err(format!(
                "the server replies before its log is on the disk, unlike --durability fsync asks for: set appendfsync always there, {weaker}"
            )),
            (Durability::Replica, ..) if !self.has_replica => Err(format!(
                "the server has no replica, as --durability replica asks for: start one, {weaker}"
            )),
            (_, Some(false), _) => {
                tracing::warn!(
                    "the server keeps no log on its disk (appendonly no): when it ends, the queue is lost"
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_would_lose_the_queue_is_refused_with_advice() {
        let good = "redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\nrole:master\r\nconnected_slaves:1\r\n";
        for level in Durability::ALL {
            assert_eq!(Facts::of(good).check(level), Ok(()));
        }
        for (from, to, level, advice) in [
            ("7.0.15", "6.2.1", Durability::Ack, "7.0"),
            ("noeviction", "allkeys-lru", Durability::Ack, "maxmemory-policy noeviction"),
            ("aof_enabled:1", "aof_enabled:0", Durability::Fsync, "appendonly yes"),
            ("slaves:1", "slaves:0", Durability::Replica, "start one"),
            ("role:master", "role:slave", Durability::Ack, "its master"),
        ] {
            let refused = Facts::of(&good.replace(from, to)).check(level);
            assert!(refused.as_ref().is_err_and(|why| why.contains(advice)), "{to}: {refused:?}");
        }
        let no_log = good.replace("aof_enabled:1", "aof_enabled:0");
        assert_eq!(Facts::of(&no_log).check(Durability::Ack), Ok(()), "a warning is enough");
        let late = Facts { writes_log_first: Some(false), ..Facts::default() };
        assert!(late.check(Durability::Fsync).is_err_and(|why| why.contains("appendfsync always")));
    }

    #[test]
    fn a_server_that_tells_nothing_is_taken() {
        assert_eq!(Facts::of("").check(Durability::Fsync), Ok(()));
    }
}
