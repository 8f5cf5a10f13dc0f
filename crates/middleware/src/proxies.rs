//! What proxies have in common, wherever they are named: how their addresses are read and shown, and which hosts are reached without any.

use std::net::IpAddr;

use huntsman_crawler::{Error, Result, Settings};
use url::{Host, Url};

use crate::{HttpProxySettings, origin};

/// Checks that an address can be a proxy and returns its URL; a bare `host:port` is an http proxy.
pub(crate) fn check(address: &str, source: &str) -> Result<String> {
    let address = address.trim();
    let with_scheme = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let fits = |url: &Url| {
        matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h")
            && url.host_str().is_some_and(|host| !host.is_empty())
    };
    match Url::parse(&with_scheme) {
        Ok(url) if fits(&url) => Ok(with_scheme),
        _ => Err(Error::usage(format!(
            "{source}: expected http, https, socks5 or socks5h://[user:password@]host[:port]"
        ))),
    }
}

/// The hosts that are reached without a proxy: the setting `no_proxy`, and the variable of that name if `proxy_from_env` is on.
#[derive(Debug)]
pub(crate) struct NoProxy(Vec<Exception>);

impl NoProxy {
    pub(crate) fn from_settings(settings: &Settings, variable: impl Fn(&str) -> Option<String>) -> Self {
        let own: HttpProxySettings = settings.of_or_default();
        let mut entries = own.no_proxy.clone();
        if own.proxy_from_env {
            let found = ["no_proxy", "NO_PROXY"]
                .iter()
                .find_map(|name| variable(name).filter(|list| !list.trim().is_empty()));
            entries.extend(found.iter().flat_map(|list| list.split([',', ' '])).map(str::to_owned));
        }
        Self(entries.iter().filter_map(|entry| Exception::parse(entry)).collect())
    }

    /// Whether a URL is reached without a proxy.
    pub(crate) fn matches(&self, url: &Url) -> bool {
        self.0.iter().any(|exception| exception.matches(url))
    }
}

/// An entry of `no_proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// A domain with its subdomains, optionally on one port only.
    Domain(String, Option<u16>),
    /// An address, or a range of addresses with the length of its prefix.
    Addresses(IpAddr, u8),
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim();
        if entry == "*" {
            return Some(Self::All);
        }
        let bare = entry.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self::Addresses(address, if address.is_ipv4() { 32 } else { 128 }));
        }
        if let Some((address, length)) = entry.split_once('/')
            && let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u8>())
        {
            return Some(Self::Addresses(address, length));
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().ok()?)),
            None => (entry, None),
        };
        let name = name.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Domain(name, port))
    }

    fn matches(&self, url: &Url) -> bool {
        match self {
            Self::All => true,
            Self::Domain(name, port) => {
                origin::is_within(origin::host(url), name)
                    && (port.is_none() || *port == url.port_or_known_default())
            }
            Self::Addresses(range, length) => match (url.host(), range) {
                (Some(Host::Ipv4(own)), IpAddr::V4(range)) => {
                    same_prefix(own.to_bits().into(), range.to_bits().into(), 32, *length)
                }
                (Some(Host::Ipv6(own)), IpAddr::V6(range)) => {
                    same_prefix(own.to_bits(), range.to_bits(), 128, *length)
                }
                _ => false,
            },
        }
    }
}

fn same_prefix(a: u128, b: u128, bits: u8, length: u8) -> bool {
    let differing = a ^ b;
    let shift = u32::from(bits.saturating_sub(length));
    // A prefix of length 0 means a shift by all 128 bits, which overflows: then every address matches.
    differing.checked_shr(shift).unwrap_or(0) == 0
}
