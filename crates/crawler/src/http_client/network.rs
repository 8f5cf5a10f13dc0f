//! Resolves a name to the addresses that may be connected to: the resolver and the guard, in the form that the HTTP
//! library needs.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::time::Instant;

use super::attempt::{ATTEMPT, Attempt};
use super::failure::Failure;
use super::guard::{Guard, is_public, literal};
use super::proxy::{Proxy, Scheme};
use super::resolver::Resolver;
use crate::fetch::FetchErrorKind;

/// State shared by all clients of a downloader.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) guard: Guard,
    pub(crate) resolver: Resolver,
}

impl Network {
    /// The addresses of a target that the guard accepts.
    pub(crate) async fn permitted(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        let mut addresses = self.addresses(host, port).await?;
        if self.guard.exempts(host, port) {
            return Ok(addresses);
        }
        let first = addresses.first().copied();
        addresses.retain(|address| is_public(address.ip()));
        match first {
            Some(first) if addresses.is_empty() => Err(refused(host, first.ip())),
            _ => Ok(addresses),
        }
    }

    /// Judges a target before anything is sent, as far as its host name allows: an IP literal is never passed to the
    /// resolver, and a proxy that resolves names itself does not report the address.
    pub(crate) fn check_host(&self, host: &str, port: u16, proxy: Option<&Proxy>) -> Result<(), Failure> {
        match literal(host) {
            Some(ip) if !is_public(ip) && !self.guard.exempts(host, port) => Err(refused(host, ip)),
            // If the target has the same name as the proxy, the resolver would take it for the proxy, which is not
            // judged.
            None if proxy.is_some_and(|proxy| proxy.resolves_here() && proxy.host == host)
                && !self.guard.exempts(host, port) =>
            {
                let message = format!("{host} is the proxy itself");
                Err(Failure::new(FetchErrorKind::AddressRefused, message))
            }
            None if proxy.is_some_and(|proxy| !proxy.resolves_here())
                && !self.guard.allows_by_name(host, port) =>
            {
                let message = format!("{host} is not on the public internet");
                Err(Failure::new(FetchErrorKind::AddressRefused, message))
            }
            _ => Ok(()),
        }
    }

    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
        match literal(host) {
            Some(ip) => Ok(vec![SocketAddr::new(ip, port)]),
            None => self.resolver.addresses(host, port).await,
        }
    }
}

fn refused(host: &str, ip: IpAddr) -> Failure {
    let message = format!("{host} is at {ip}, which is not on the public internet");
    Failure::new(FetchErrorKind::AddressRefused, message)
}

/// The resolver of one client. It is only asked for names that will be connected to, or passed to a proxy, and always
/// in the scope of the attempt that needs them.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) network: Arc<Network>,
    pub(crate) proxy: Option<Arc<Proxy>>,
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let (network, proxy) = (Arc::clone(&self.network), self.proxy.clone());
        let attempt = ATTEMPT.try_with(Arc::clone).ok();
        Box::pin(async move {
            // Without the attempt the port is unknown, and so the guard cannot decide.
            let attempt = attempt.ok_or_else(|| {
                Failure::new(FetchErrorKind::AddressRefused, "a name was asked for outside of a request")
            })?;
            let addresses = resolve(&network, proxy.as_deref(), name.as_str(), &attempt).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

async fn resolve(
    network: &Network,
    proxy: Option<&Proxy>,
    name: &str,
    attempt: &Attempt,
) -> Result<Vec<SocketAddr>, Failure> {
    let begun = Instant::now();
    let addresses = match proxy {
        // The address of the proxy itself was configured by the user and is not judged.
        Some(proxy) if proxy.host == name => {
            network.addresses(name, proxy.port).await.map_err(Failure::of_proxy)?
        }
        Some(proxy) if !proxy.resolves_here() => {
            let message = format!("{name} is resolved by the proxy");
            return Err(Failure::new(FetchErrorKind::Proxy, message));
        }
        _ => network.permitted(name, attempt.port).await?,
    };
    attempt.resolved(begun.elapsed());
    Ok(addresses)
}

impl Proxy {
    /// Whether the names of targets are resolved by this process.
    pub(crate) fn resolves_here(&self) -> bool {
        self.scheme == Scheme::Socks5 { remote_dns: false }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::resolver::tests::{NameServer, Says};
    use super::*;

    /// A network in which all names resolve to these addresses, while the server exists.
    async fn network(addresses: &[&str]) -> (Network, NameServer) {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let server = NameServer::start(Says::Addresses(addresses, 60)).await;
        let network = Network {
            guard: Guard::new(false, &["listed.example:80".to_owned()]).expect("valid"),
            resolver: server.resolver(Duration::from_secs(10), 10),
        };
        (network, server)
    }

    async fn judged(addresses: &[&str], host: &str) -> Result<Vec<SocketAddr>, Failure> {
        let (network, _server) = network(addresses).await;
        network.permitted(host, 80).await
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

    /// The result that the HTTP library gets for a name, in the scope of an attempt with this port, or outside of any
    /// attempt.
    async fn told(names: &Names, name: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, FetchErrorKind> {
        let asked = |name: &str| names.resolve(name.parse().expect("a name"));
        let answer = match port {
            Some(port) => ATTEMPT.scope(Arc::new(Attempt::new(port)), async { asked(name).await }).await,
            None => asked(name).await,
        };
        answer
            .map(Iterator::collect)
            .map_err(|error| error.downcast_ref::<Failure>().expect("all failures are ours").kind())
    }

    #[tokio::test]
    async fn a_name_is_judged_with_the_port_of_its_request_and_not_resolved_without_one() {
        let (network, _server) = network(&["127.0.0.1"]).await;
        let names = Names { network: Arc::new(network), proxy: None };
        assert!(told(&names, "listed.example", Some(80)).await.is_ok());
        for (name, port) in
            [("listed.example", Some(81)), ("other.example", Some(80)), ("listed.example", None)]
        {
            assert_eq!(
                told(&names, name, port).await,
                Err(FetchErrorKind::AddressRefused),
                "{name} {port:?}"
            );
        }
    }

    #[tokio::test]
    async fn the_name_of_a_proxy_is_resolved_and_other_names_are_not_connected_to() {
        for (address, other) in [
            ("http://proxy.example:1", FetchErrorKind::Proxy),
            ("socks5h://proxy.example:1", FetchErrorKind::Proxy),
            ("socks5://proxy.example:1", FetchErrorKind::AddressRefused),
        ] {
            let proxy = Some(Arc::new(Proxy::parse(address).expect("valid")));
            let (network, _server) = network(&["10.0.0.1"]).await;
            let names = Names { network: Arc::new(network), proxy };
            assert!(told(&names, "proxy.example", Some(80)).await.is_ok(), "{address}");
            assert_eq!(told(&names, "site.example", Some(80)).await, Err(other), "{address}");
        }
    }
}
