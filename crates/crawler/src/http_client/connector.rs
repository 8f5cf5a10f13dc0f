//! Opens connections: resolve, judge the addresses, connect, speak to a proxy, shake hands.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Uri, uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::attempt::ATTEMPT;
use super::failure::{Failure, OUT_OF_FILES_WAIT, describe, is_out_of_files};
use super::guard::{Guard, is_public, literal};
use super::open::Open;
use super::proxy::{Proxy, Scheme};
use super::resolver::Resolver;
use super::tls::Tls;
use super::wire::{ConnectTimes, Peer, Stream, Wire};
use crate::fetch::FetchErrorKind;

/// Receive buffer of a socket: what a server can send beyond what we read, so a body that is refused costs no
/// more. Linux doubles it; at 100 ms round trip it still allows 5-10 MB/s.
const RECEIVE_BUFFER: usize = 512 << 10;

/// Idle connections that are closed when the process may open no more files.
const RETIRED_AT_ONCE: usize = 8;

/// What all connectors of a downloader share.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) guard: Guard,
    pub(crate) resolver: Resolver,
    pub(crate) tls: Tls,
    pub(crate) connect_timeout: Duration,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) open: Open,
}

/// Opens connections to sites, directly or through one proxy.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    pub(crate) network: Arc<Network>,
    pub(crate) proxy: Option<Arc<Proxy>>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = Failure;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Failure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let attempt = ATTEMPT.try_with(Arc::clone).ok();
        let this = self.clone();
        Box::pin(async move {
            let started = Instant::now();
            if let Some(attempt) = &attempt {
                attempt.connecting(started);
            }
            let limit = this.network.connect_timeout;
            let opened = match tokio::time::timeout(limit, this.open(&target)).await {
                Ok(opened) => opened?,
                Err(_) => {
                    let message = format!("no connection to {} within {limit:?}", authority(&target));
                    return Err(Failure::new(FetchErrorKind::ConnectTimeout, message));
                }
            };
            if let Some(attempt) = &attempt {
                attempt.connected(Instant::now());
            }
            this.network.open.add(opened.peer());
            Ok(TokioIo::new(opened))
        })
    }
}

impl Connector {
    async fn open(&self, target: &Uri) -> Result<Wire, Failure> {
        let (host, port) = host_and_port(target)?;
        let https = target.scheme() == Some(&uri::Scheme::HTTPS);
        let mut times = ConnectTimes::default();
        let (stream, ip, proxied) = match self.proxy.as_deref() {
            None => {
                let addresses = self.permitted(host, port, &mut times).await?;
                let (stream, ip) = self.dial(&addresses, host, &mut times).await?;
                (stream, Some(ip), false)
            }
            Some(proxy) => {
                let stream = self.through(proxy, target, https, &mut times).await?;
                (stream, None, matches!(proxy.scheme, Scheme::Http { .. }) && !https)
            }
        };
        if !https {
            return Ok(Wire::new(stream, Peer::new(ip, None, times, false), proxied));
        }
        let begun = Instant::now();
        let stream = handshake(stream, host, self.network.tls.for_site()).await?;
        let took = begun.elapsed();
        times.tls = Some(took);
        times.connect = times.connect.map(|tcp| tcp + took);
        let session = stream.get_ref().1;
        let h2 = session.alpn_protocol() == Some(b"h2");
        let certificate =
            session.peer_certificates().and_then(|chain| chain.first()).map(|c| Bytes::copy_from_slice(c));
        let peer = Peer::new(ip, certificate, times, h2);
        Ok(Wire::new(Stream::Tls(Box::new(stream)), peer, proxied))
    }

    /// Whether the target has an address that the guard lets pass.
    pub(crate) async fn check(&self, target: &Uri) -> Result<(), Failure> {
        let (host, port) = host_and_port(target)?;
        self.permitted(host, port, &mut ConnectTimes::default()).await.map(drop)
    }

    /// The addresses of the target that the guard lets pass.
    async fn permitted(
        &self,
        host: &str,
        port: u16,
        times: &mut ConnectTimes,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let Network { guard, .. } = &*self.network;
        let mut addresses = self.resolve(host, port, times).await?;
        if guard.exempts(host, port) {
            return Ok(addresses);
        }
        let first = addresses.first().copied();
        addresses.retain(|address| is_public(address.ip()));
        match first {
            Some(first) if addresses.is_empty() => {
                let message = format!("{host} is at {}, which is not on the public internet", first.ip());
                Err(Failure::new(FetchErrorKind::AddressRefused, message))
            }
            _ => Ok(addresses),
        }
    }

    async fn resolve(
        &self,
        host: &str,
        port: u16,
        times: &mut ConnectTimes,
    ) -> Result<Vec<SocketAddr>, Failure> {
        if let Some(ip) = literal(host) {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        let begun = Instant::now();
        let addresses = self.network.resolver.addresses(host, port).await?;
        times.dns = Some(begun.elapsed());
        Ok(addresses)
    }

    /// Connects to the first address that answers, both families at once after 300 ms (happy eyeballs).
    async fn dial(
        &self,
        addresses: &[SocketAddr],
        host: &str,
        times: &mut ConnectTimes,
    ) -> Result<(Stream, IpAddr), Failure> {
        // The addresses are fixed by the resolver below, so that nothing but them can be connected to.
        let mut connector = HttpConnector::new_with_resolver(Resolved(addresses.to_vec()));
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(self.network.connect_timeout));
        connector.set_recv_buffer_size(Some(RECEIVE_BUFFER));
        connector.set_local_address(self.network.local_address);
        let begun = Instant::now();
        let stream = loop {
            match connector.call(Uri::from_static("http://resolved/")).await {
                Ok(stream) => break stream,
                Err(error) if is_out_of_files(&error) => {
                    // Not the host's fault: room is made, and the connect timeout bounds the waiting.
                    self.network.open.retire(RETIRED_AT_ONCE);
                    tokio::time::sleep(OUT_OF_FILES_WAIT).await;
                }
                Err(error) => {
                    let message =
                        format!("connecting to {host} at {}: {}", listed(addresses), describe(&error));
                    return Err(Failure::new(FetchErrorKind::Connect, message).with_source(error));
                }
            }
        };
        times.connect = Some(begun.elapsed());
        let stream = stream.into_inner();
        let peer = stream.peer_addr().map_err(|error| {
            let message = format!("connecting to {host}: {error}");
            Failure::new(FetchErrorKind::Connect, message).with_source(error)
        })?;
        Ok((Stream::Tcp(stream), peer.ip()))
    }

    /// Connects through a proxy. The proxy itself comes from the user and is not judged by the guard.
    async fn through(
        &self,
        proxy: &Proxy,
        target: &Uri,
        https: bool,
        times: &mut ConnectTimes,
    ) -> Result<Stream, Failure> {
        let (host, port) = host_and_port(target)?;
        let local_dns = proxy.scheme == Scheme::Socks5 { remote_dns: false };
        let target_address = match local_dns {
            true => Some(self.permitted(host, port, times).await?),
            false if self.network.guard.allows_by_name(host, port) => None,
            false => {
                let message = format!("{host} is not on the public internet");
                return Err(Failure::new(FetchErrorKind::AddressRefused, message));
            }
        };
        let addresses = self.resolve(&proxy.host, proxy.port, times).await.map_err(Failure::of_proxy)?;
        let (mut stream, _) = self.dial(&addresses, &proxy.host, times).await.map_err(Failure::of_proxy)?;
        if proxy.scheme == (Scheme::Http { tls: true }) {
            let config = self.network.tls.for_proxy();
            let secured = handshake(stream, &proxy.host, config).await.map_err(Failure::of_proxy)?;
            stream = Stream::Tls(Box::new(secured));
        }
        let failed = |error: &(dyn std::error::Error + 'static)| {
            Failure::new(FetchErrorKind::Proxy, format!("proxy {}: {}", proxy.host, describe(error)))
        };
        let proxy_uri = proxy.uri().map_err(|error| failed(&error))?;
        let opened = Opened(Some(TokioIo::new(stream)));
        let stream = match proxy.scheme {
            Scheme::Http { .. } if https => {
                let mut tunnel = Tunnel::new(proxy_uri, opened);
                if let Some(value) = proxy.authorization() {
                    tunnel = tunnel.with_auth(value);
                }
                tunnel.call(target.clone()).await.map_err(|error| failed(&error))?
            }
            Scheme::Http { .. } => opened.0.expect("just opened"),
            Scheme::Socks5 { .. } => {
                let mut socks = SocksV5::new(proxy_uri, opened);
                if let Some((user, password)) = proxy.credentials.clone() {
                    socks = socks.with_auth(user, password);
                }
                let authority = match target_address.as_deref().and_then(<[_]>::first) {
                    Some(address) => address.to_string(),
                    None => format!("{host}:{port}"),
                };
                let target = Uri::builder().scheme("http").authority(authority).path_and_query("/").build();
                let target = target.map_err(|error| failed(&error))?;
                socks.call(target).await.map_err(|error| failed(&error))?
            }
        };
        Ok(stream.into_inner())
    }
}

async fn handshake(
    stream: Stream,
    host: &str,
    config: Arc<ClientConfig>,
) -> Result<tokio_rustls::client::TlsStream<Stream>, Failure> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    let failed = |message: String| Failure::new(FetchErrorKind::Tls, message);
    let name = ServerName::try_from(bare.to_owned())
        .map_err(|_| failed(format!("{host} is no name for a certificate")))?;
    TlsConnector::from(config)
        .connect(name, stream)
        .await
        .map_err(|error| failed(format!("TLS with {host}: {}", describe(&error))).with_source(error))
}

fn host_and_port(target: &Uri) -> Result<(&str, u16), Failure> {
    let invalid = || Failure::new(FetchErrorKind::InvalidRequest, "the address has no host");
    let host = target.host().filter(|host| !host.is_empty()).ok_or_else(invalid)?;
    let default = if target.scheme() == Some(&uri::Scheme::HTTPS) { 443 } else { 80 };
    Ok((host, target.port_u16().unwrap_or(default)))
}

fn authority(target: &Uri) -> &str {
    target.authority().map_or("", uri::Authority::as_str)
}

fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A resolver that knows its answer.
#[derive(Clone, Debug)]
struct Resolved(Vec<SocketAddr>);

impl Service<Name> for Resolved {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        std::future::ready(Ok(self.0.clone().into_iter()))
    }
}

/// A connector that gives away a connection that is open already: the tunnel makers want a connector.
struct Opened(Option<TokioIo<Stream>>);

impl Service<Uri> for Opened {
    type Response = TokioIo<Stream>;
    type Error = std::io::Error;
    type Future = std::future::Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        std::future::ready(self.0.take().ok_or_else(|| std::io::ErrorKind::NotConnected.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolver::tests::{NameServer, Says};
    use super::*;
    use crate::settings::Settings;

    async fn judged(addresses: &[&str], host: &str) -> Result<Vec<SocketAddr>, Failure> {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let server = NameServer::start(Says::Addresses(addresses, 60)).await;
        let network = Network {
            guard: Guard::new(false, &["listed.example:80".to_owned()]).expect("valid"),
            resolver: server.resolver(Duration::from_secs(10), 10),
            tls: Tls::new(&Settings::default()).expect("valid"),
            connect_timeout: Duration::from_secs(10),
            local_address: None,
            open: Open::default(),
        };
        let connector = Connector { network: Arc::new(network), proxy: None };
        connector.permitted(host, 80, &mut ConnectTimes::default()).await
    }

    #[tokio::test]
    async fn names_are_judged_by_what_they_resolve_to() {
        let refused = [
            &["127.0.0.1"][..],
            &["10.1.2.3", "192.168.1.1"],
            &["::1", "fd00::1"],
            &["::ffff:169.254.169.254"],
        ];
        for addresses in refused {
            let failure = judged(addresses, "rebound.example").await.expect_err("inside");
            assert_eq!(failure.kind(), FetchErrorKind::AddressRefused, "{addresses:?}");
        }
        let kept =
            judged(&["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1"], "mixed.example").await.expect("some");
        assert_eq!(
            kept,
            ["[2606:4700::1]:80", "8.8.8.8:80"].map(|a| a.parse().unwrap()),
            "the rest is dropped"
        );
        assert_eq!(judged(&["127.0.0.1"], "listed.example").await.expect("listed").len(), 1);
    }
}
