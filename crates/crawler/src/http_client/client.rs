//! The clients of the HTTP library. There is one for each route (direct or through a proxy), for targets with and
//! without TLS, and each is built when it is first needed.
//!
//! The library limits idle connections per host and in time, but a broad crawl visits hundreds of hosts a second.
//! Clients therefore come in two generations: each serves a limited number of hosts, then a new one begins, and the
//! oldest is dropped together with its idle connections. Requests in flight are not affected.

use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use reqwest::{Client, ClientBuilder, redirect, retry, tls};
use rustls::version::{TLS12, TLS13};
use tower::util::MapFutureLayer;

use super::attempt::{Handshake, watched};
use super::certificates::{Authorities, BadCertificates, Trust};
use super::deadline::Deadlines;
use super::failure::describe;
use super::network::{Names, Network};
use super::proxy::{Proxy, Scheme};
use crate::error::{Error, Result};
use crate::fetch::{FetchError, FetchErrorKind};
use crate::settings::{Settings, VerifyCertificates, seconds};

/// Number of idle connections per host: as many as may be in flight, but at least this many. With fewer, responses
/// that end together would close all connections but these, and the next requests would have to open new ones.
const MIN_IDLE: usize = 8;
/// How long connections stay idle: longer than the gap between two requests of a polite crawl, within these bounds.
/// Every host of a broad crawl leaves an idle connection, so the time should not be longer than necessary.
const MIN_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of hosts per generation of clients, with [`MIN_IDLE`] connections each; fewer if each host may keep more.
/// Most hosts leave one or two idle connections, so two generations stay below the usual limit of 1,024 files, with
/// room for a store and for name resolution.
const MAX_HOSTS: usize = 128;
/// Number of hosts per generation behind a proxy; it is smaller because there may be many proxies.
const MAX_HOSTS_PROXIED: usize = 16;
/// Least number of hosts per generation, however many connections each may keep.
const MIN_HOSTS: usize = 4;
/// Window of an HTTP/2 stream and of a connection, in bytes. Bytes in flight add to the cost of a refused body.
const STREAM_WINDOW: u32 = 512 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;

/// The configuration that all clients share.
#[derive(Debug)]
pub(crate) struct ClientConfig {
    network: Arc<Network>,
    connect_timeout: Duration,
    pub(super) local_address: Option<IpAddr>,
    min_tls: tls::Version,
    max_tls: tls::Version,
    verify: VerifyCertificates,
    authorities: Authorities,
    pub(crate) bad_certificates: Arc<BadCertificates>,
    http2: bool,
    header_lines: usize,
    header_bytes: usize,
    idle: Duration,
    /// Number of idle connections per host.
    max_idle: usize,
}

impl ClientConfig {
    /// Reads the settings `bind_address`, `tls_min_version`, `tls_max_version`, `download_verify_certificates`,
    /// `tls_ca_file`, `http2`, `max_header_lines`, `max_header_bytes`, `download_delay`, `concurrent_requests` and those per slot.
    pub(crate) fn new(settings: &Settings, network: Arc<Network>, deadlines: &Deadlines) -> Result<Self> {
        let local_address = match settings.bind_address.as_deref() {
            None => None,
            Some(text) => Some(text.trim().parse().map_err(|_| {
                let shown = text.escape_debug();
                Error::usage(format!("bind_address: \"{shown}\" is not an IP address"))
            })?),
        };
        let min_tls = tls_version("tls_min_version", &settings.tls_min_version)?;
        let max_tls = tls_version("tls_max_version", &settings.tls_max_version)?;
        if min_tls > max_tls {
            return Err(Error::usage("tls_max_version is below tls_min_version"));
        }
        Ok(Self {
            network,
            connect_timeout: deadlines.connect,
            local_address,
            min_tls,
            max_tls,
            verify: settings.download_verify_certificates,
            authorities: Authorities::of(settings)?,
            bad_certificates: Arc::default(),
            http2: settings.http2,
            header_lines: settings.max_header_lines,
            header_bytes: settings.max_header_bytes,
            idle: (seconds(settings.download_delay) * 3).clamp(MIN_IDLE_TIMEOUT, MAX_IDLE_TIMEOUT),
            max_idle: most_in_flight(settings).max(MIN_IDLE),
        })
    }

    /// A client with its own connections. A client without TLS trusts no authority: reading the certificate store
    /// takes milliseconds, and many crawls use no https.
    fn client(&self, proxy: Option<&Arc<Proxy>>, tls: bool, max_idle: usize) -> Result<Client, FetchError> {
        let trust = match self.verify {
            VerifyCertificates::No => Trust::All,
            _ if !tls => Trust::None,
            VerifyCertificates::Record => Trust::Recorded(Arc::clone(&self.bad_certificates)),
            VerifyCertificates::Yes => Trust::System,
        };
        let versions: Vec<_> = [(tls::Version::TLS_1_2, &TLS12), (tls::Version::TLS_1_3, &TLS13)]
            .into_iter()
            .filter(|(version, _)| (self.min_tls..=self.max_tls).contains(version))
            .map(|(_, supported)| supported)
            .collect();
        let config = trust.config(&self.authorities, &versions, self.http2).map_err(|error| {
            let message = format!("certificates cannot be verified: {error}");
            FetchError::new(FetchErrorKind::Tls, message).with_source(error.into_boxed())
        })?;
        let builder = self.builder(proxy, max_idle);
        builder.and_then(|builder| builder.tls_backend_preconfigured(config).build()).map_err(|error| {
            let kind = if tls { FetchErrorKind::Tls } else { FetchErrorKind::InvalidRequest };
            let message = format!("the HTTP client cannot be made: {}", describe(&error));
            FetchError::new(kind, message).with_source(error)
        })
    }

    fn builder(&self, proxy: Option<&Arc<Proxy>>, max_idle: usize) -> reqwest::Result<ClientBuilder> {
        let names = Names { network: Arc::clone(&self.network), proxy: proxy.cloned() };
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            // Bodies are decoded by this crate, with limits, even if another crate of the program enabled features of
            // the library.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .dns_resolver(names)
            .connector_layer(MapFutureLayer::new(watched))
            .connect_timeout(self.connect_timeout)
            .local_address(self.local_address)
            .tcp_nodelay(true)
            .tcp_keepalive(None)
            .pool_idle_timeout(self.idle)
            .pool_max_idle_per_host(max_idle)
            .http1_max_headers(self.header_lines.max(1))
            .http2_max_header_list_size(u32::try_from(self.header_bytes).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .tls_info(true);
        if !self.http2 {
            builder = builder.http1_only();
        }
        if let Some(proxy) = proxy {
            builder = builder.proxy(proxy.for_client()?);
        }
        Ok(builder)
    }
}

fn tls_version(setting: &str, value: &str) -> Result<tls::Version> {
    match value {
        "1.2" => Ok(tls::Version::TLS_1_2),
        "1.3" => Ok(tls::Version::TLS_1_3),
        other => Err(Error::usage(format!("{setting}: \"{}\" is neither 1.2 nor 1.3", other.escape_debug()))),
    }
}

/// Greatest number of requests that one host may have in flight.
fn most_in_flight(settings: &Settings) -> usize {
    let slots = settings.download_slots.values().filter_map(|slot| slot.concurrency);
    slots
        .chain([settings.concurrent_requests_per_domain])
        .max()
        .unwrap_or_default()
        .min(settings.concurrent_requests)
}

/// A route to the web: direct, or through one proxy.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) proxy: Option<Arc<Proxy>>,
    clients: Mutex<Generations>,
}

/// A client for a target, and what is known of that target.
#[derive(Clone, Debug)]
pub(crate) struct Pooled {
    pub(crate) client: Client,
    target: Arc<Target>,
}

/// What is known of a host and port.
#[derive(Debug, Default)]
struct Target {
    /// Number of responses that were read.
    served: AtomicU64,
    /// What the last handshake showed.
    handshake: Mutex<Handshake>,
}

impl Pooled {
    /// Number of responses that were read. If it changed while a connection was being made, the request may have used
    /// one that became free meanwhile: the library takes the first connection that is ready and does not say which.
    pub(crate) fn served(&self) -> u64 {
        self.target.served.load(Ordering::Acquire)
    }

    /// Records that a response was read, which may have freed a connection.
    pub(crate) fn serve(&self) {
        self.target.served.fetch_add(1, Ordering::AcqRel);
    }

    /// The handshake of the connection of a response, whose attempt made this one or none. The library does not say of
    /// which connection a response is, so without a handshake it is the last one with the same target.
    pub(crate) fn handshake(&self, made: Handshake) -> Handshake {
        let mut last = self.target.handshake.lock().unwrap_or_else(PoisonError::into_inner);
        if made.version.is_some() {
            *last = made;
        }
        last.clone()
    }
}

#[derive(Debug, Default)]
struct Generations {
    young: Generation,
    old: Generation,
    /// A client that keeps no idle connections.
    fresh_plain: Option<Client>,
    fresh_tls: Option<Client>,
    hashes: RandomState,
}

/// Clients and the hosts that they serve, as hashes. Two hosts with the same hash merely share one entry.
#[derive(Debug, Default)]
struct Generation {
    /// The number of responses that were read from each host.
    hosts: HashMap<u64, Arc<Target>, RandomState>,
    plain: Option<Client>,
    tls: Option<Client>,
}

impl Route {
    pub(crate) fn new(proxy: Option<Proxy>) -> Self {
        Self { proxy: proxy.map(Arc::new), clients: Mutex::default() }
    }

    /// The client for a target with or without TLS: the one that may have a connection to it.
    pub(crate) fn client(
        &self,
        config: &ClientConfig,
        host: &str,
        port: u16,
        https: bool,
    ) -> Result<Pooled, FetchError> {
        let proxy = self.proxy.as_ref();
        let tls = https || proxy.is_some_and(|proxy| proxy.scheme == Scheme::Http { tls: true });
        let most = if proxy.is_some() { MAX_HOSTS_PROXIED } else { MAX_HOSTS };
        let most = (most * MIN_IDLE / config.max_idle).max(MIN_HOSTS);
        let mut clients = self.lock();
        let (generation, target) = clients.serving((host, port), most);
        let place = if tls { &mut generation.tls } else { &mut generation.plain };
        let client = match place {
            Some(client) => client.clone(),
            None => place.insert(config.client(proxy, tls, config.max_idle)?).clone(),
        };
        Ok(Pooled { client, target })
    }

    /// A client that keeps no connections, so that each request uses a new one.
    pub(crate) fn fresh(&self, config: &ClientConfig, https: bool) -> Result<Client, FetchError> {
        let proxy = self.proxy.as_ref();
        let tls = https || proxy.is_some_and(|proxy| proxy.scheme == Scheme::Http { tls: true });
        let mut clients = self.lock();
        let place = if tls { &mut clients.fresh_tls } else { &mut clients.fresh_plain };
        match place {
            Some(client) => Ok(client.clone()),
            None => Ok(place.insert(config.client(proxy, tls, 0)?).clone()),
        }
    }

    /// Drops all idle connections.
    pub(crate) fn forget(&self) {
        *self.lock() = Generations::default();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generations> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    /// The generation that serves a target, and the number of responses that were read from the target.
    fn serving(&mut self, of: impl Hash, most: usize) -> (&mut Generation, Arc<Target>) {
        let hash = self.hashes.hash_one(of);
        if let Some(target) = self.young.hosts.get(&hash).map(Arc::clone) {
            return (&mut self.young, target);
        }
        if let Some(target) = self.old.hosts.get(&hash).map(Arc::clone) {
            return (&mut self.old, target);
        }
        if self.young.hosts.len() >= most {
            self.old = std::mem::take(&mut self.young);
        }
        let target = Arc::clone(self.young.hosts.entry(hash).or_default());
        (&mut self.young, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_keeps_its_client_for_two_generations() {
        let mut clients = Generations::default();
        clients.serving("a", 2).0.hosts.insert(0, Arc::default());
        let holds_a = |(generation, _): (&mut Generation, _)| generation.hosts.contains_key(&0);
        assert!(holds_a(clients.serving("a", 2)));
        assert!(!holds_a(clients.serving("b", 2)), "the first generation is full");
        assert!(holds_a(clients.serving("a", 2)), "it still serves its hosts");
        clients.serving("c", 2);
        assert!(!holds_a(clients.serving("d", 2)));
        assert!(!holds_a(clients.serving("a", 2)), "and is dropped with the next one");
    }
}
