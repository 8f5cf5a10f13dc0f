//! Resolves names to addresses: first fixed ones, then a bounded cache, then the system's hosts file and DNS servers.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hashbrown::HashMap;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use tokio::time::Instant;
use url::Host;

use super::deadline::limit;
use super::failure::{Failure, OUT_OF_FILES_WAIT, describe, is_out_of_files};
use crate::error::{Error, Result};
use crate::fetch::FetchErrorKind;
use crate::log;
use crate::settings::EngineSettings;

/// Shortest time that an answer is cached, whatever its TTL.
const MIN_TTL: Duration = Duration::from_secs(60);
/// Longest time that an answer is cached.
const MAX_TTL: Duration = Duration::from_secs(86_400);
/// Time that a failed look-up is cached.
const NEGATIVE_TTL: Duration = Duration::from_secs(30);
/// Number of addresses cached per name: happy eyeballs needs two of each family, and a hostile answer has thousands.
const MAX_ADDRESSES: usize = 16;

/// The addresses of a name, or the reason why there are none.
type LookupResult = Result<Arc<[IpAddr]>, Arc<str>>;

/// The result of one question.
enum Outcome {
    Found(Vec<IpAddr>, Duration),
    /// A server answered that the name does not exist.
    Missing(String),
    Failed(String),
    OutOfFiles,
}

/// Resolves names for all clients of a downloader.
pub(crate) struct Resolver {
    system: Option<TokioResolver>,
    fixed: Vec<Override>,
    cache: Mutex<Cache>,
    timeout: Duration,
}

/// One entry of `resolve`.
#[derive(Debug)]
struct Override {
    host: String,
    port: u16,
    ip: IpAddr,
}

impl Resolver {
    /// Reads the settings `resolve`, `dnscache_size` and `dns_timeout`. If there is no system configuration
    /// (`/etc/resolv.conf`), the C library resolves names; it blocks a thread per look-up and returns no TTL.
    pub(crate) fn new(settings: &EngineSettings) -> Result<Self> {
        let fixed = settings.resolve.iter().map(|entry| Override::parse(entry)).collect::<Result<_>>()?;
        let timeout = limit(settings.dns_timeout);
        let cache = Mutex::new(Cache::new(settings.dnscache_size));
        Ok(Self { system: system(timeout), fixed, cache, timeout })
    }

    /// The addresses of a host for a port. Fixed addresses apply only to their port.
    pub(crate) async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let fixed: Vec<SocketAddr> = self
            .fixed
            .iter()
            .filter(|f| f.port == port && f.host.eq_ignore_ascii_case(host))
            .map(|f| SocketAddr::new(f.ip, port))
            .collect();
        if !fixed.is_empty() {
            return Ok(fixed);
        }
        let found = self.look_up(host).await?;
        Ok(found.iter().map(|ip| SocketAddr::new(*ip, port)).collect())
    }

    /// The first address of a host, whatever the port.
    pub(crate) async fn address(&self, host: &str) -> Option<IpAddr> {
        if let Some(ip) = super::guard::literal(host) {
            return Some(ip);
        }
        let host = host.strip_suffix('.').unwrap_or(host);
        if let Some(fixed) = self.fixed.iter().find(|f| f.host.eq_ignore_ascii_case(host)) {
            return Some(fixed.ip);
        }
        // Hosts of URLs are in lower case already.
        self.look_up(&host.to_ascii_lowercase()).await.ok()?.first().copied()
    }

    async fn look_up(&self, host: &str) -> Result<Arc<[IpAddr]>, Failure> {
        let failure = |why: &str| Failure::new(FetchErrorKind::Dns, format!("resolving {host}: {why}"));
        if let Some(answer) = self.cache().get(host, Instant::now()) {
            return answer.map_err(|why| failure(&why));
        }
        let asked = tokio::time::timeout(self.timeout, async {
            loop {
                match self.ask(host).await {
                    Outcome::OutOfFiles => tokio::time::sleep(OUT_OF_FILES_WAIT).await,
                    outcome => break outcome,
                }
            }
        });
        let (answer, ttl): (LookupResult, _) = match asked.await {
            Ok(Outcome::Found(found, ttl)) => (Ok(found.into()), ttl.clamp(MIN_TTL, MAX_TTL)),
            Ok(Outcome::Missing(why)) => (Err(why.into()), NEGATIVE_TTL),
            // A temporary failure is not cached: the next question may be answered.
            Ok(Outcome::Failed(why)) => return Err(failure(&why)),
            Ok(Outcome::OutOfFiles) | Err(_) => return Err(failure("no answer in time")),
        };
        self.cache().put(host, answer.clone(), Instant::now() + ttl);
        answer.map_err(|why| failure(&why))
    }

    async fn ask(&self, host: &str) -> Outcome {
        let (found, ttl) = match &self.system {
            Some(system) => {
                // The trailing dot makes the name absolute, so that no search list can turn a name of the web into an
                // internal one.
                let name = if host.contains('.') { format!("{host}.") } else { host.to_owned() };
                match system.lookup_ip(name).await {
                    Ok(found) => {
                        let left = found.valid_until().saturating_duration_since(std::time::Instant::now());
                        (found.iter().take(MAX_ADDRESSES).collect::<Vec<_>>(), left)
                    }
                    Err(error) if is_out_of_files(&error) => return Outcome::OutOfFiles,
                    Err(error) if error.is_no_records_found() => {
                        return Outcome::Missing("there is no such name, or it has no address".to_owned());
                    }
                    Err(error) => return Outcome::Failed(describe(&error)),
                }
            }
            None => match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => (found.map(|a| a.ip()).take(MAX_ADDRESSES).collect(), MIN_TTL),
                Err(error) if is_out_of_files(&error) => return Outcome::OutOfFiles,
                // The C library does not distinguish a missing name from a network failure.
                Err(error) => return Outcome::Failed(error.to_string()),
            },
        };
        match found.is_empty() {
            true => Outcome::Missing("the name has no address".to_owned()),
            false => Outcome::Found(found, ttl),
        }
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("fixed", &self.fixed)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn system(timeout: Duration) -> Option<TokioResolver> {
    let builder = TokioResolver::builder_tokio()
        .inspect_err(|error| log::debug!(%error, "no DNS configuration, asking the C library"))
        .ok()?;
    configured(builder, timeout)
}

fn configured(
    mut builder: ResolverBuilder<TokioRuntimeProvider>,
    timeout: Duration,
) -> Option<TokioResolver> {
    let options = builder.options_mut();
    options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
    options.use_hosts_file = ResolveHosts::Always;
    options.cache_size = 0;
    // Several tries fit into the total time, which the caller enforces.
    options.timeout = (timeout / 3).clamp(Duration::from_millis(100), Duration::from_secs(5));
    builder.build().inspect_err(|error| log::warn!(%error, "no DNS resolver, asking the C library")).ok()
}

impl Override {
    fn parse(entry: &str) -> Result<Self> {
        let invalid = || {
            Error::usage(format!(
                "resolve: \"{}\" is not host:port:address; expected example.org:443:192.0.2.1 or example.org:443:[2001:db8::1]",
                entry.escape_debug()
            ))
        };
        // The host has no colon unless it is an address, and an address is never resolved.
        let mut parts = entry.trim().splitn(3, ':');
        let (Some(host), Some(port), Some(ip)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(invalid());
        };
        let Ok(Host::Domain(host)) = Host::parse(host) else { return Err(invalid()) };
        let port = port.parse().map_err(|_| invalid())?;
        let ip = ip.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).unwrap_or(ip);
        let ip = ip.parse().map_err(|_| invalid())?;
        Ok(Self { host: host.trim_end_matches('.').to_owned(), port, ip })
    }
}

/// Two generations: when the young one has half of the entries, it becomes the old one, and the former old one is
/// dropped. The cache is bounded, names in use stay in it, and no ordering is needed.
struct Cache {
    young: HashMap<Box<str>, Entry>,
    old: HashMap<Box<str>, Entry>,
    half: usize,
}

#[derive(Clone)]
struct Entry {
    answer: LookupResult,
    until: Instant,
}

impl Cache {
    fn new(size: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: size.div_ceil(2) }
    }

    fn get(&mut self, host: &str, now: Instant) -> Option<LookupResult> {
        if let Some(entry) = self.young.get(host) {
            return (entry.until > now).then(|| entry.answer.clone());
        }
        let (host, entry) = self.old.remove_entry(host)?;
        if entry.until <= now {
            return None;
        }
        let answer = entry.answer.clone();
        self.insert(host, entry);
        Some(answer)
    }

    fn put(&mut self, host: &str, answer: LookupResult, until: Instant) {
        self.insert(host.into(), Entry { answer, until });
    }

    fn insert(&mut self, host: Box<str>, entry: Entry) {
        if self.half == 0 {
            return;
        }
        if self.young.len() >= self.half && !self.young.contains_key(&host) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(host, entry);
    }
}

#[cfg(test)]
pub(crate) mod tests;
