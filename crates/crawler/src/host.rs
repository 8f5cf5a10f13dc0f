//! The key of a politeness slot: the unit that delays and concurrency apply to.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// The name of a slot: a host, a registrable domain or an IP address, lower-cased, without a port.
///
/// Cheap to clone. Different ports and schemes of one host share a key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// A key of any name, such as the value of a request's `download_slot`.
    pub fn new(name: &str) -> Self {
        if name.bytes().any(|b| b.is_ascii_uppercase()) {
            Self(name.to_ascii_lowercase().into())
        } else {
            Self(name.into())
        }
    }

    /// The key of a URL: its host, or its registrable domain. [`SlotBy::Ip`] needs a resolver and is treated as host
    /// here; the engine later replaces the host by the address.
    pub fn of(url: &Url, by: SlotBy) -> Self {
        let host = url.host_str().unwrap_or("").trim_end_matches('.');
        match by {
            SlotBy::Host | SlotBy::Ip => Self::new(host),
            SlotBy::RegistrableDomain => Self::new(registrable_domain(url).unwrap_or(host)),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for HostKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What identifies a politeness slot (`slot_by`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotBy {
    /// The host name (default).
    #[default]
    Host,
    /// The registrable domain according to the public suffix list: `a.example.co.uk` and `b.example.co.uk` share a
    /// slot.
    RegistrableDomain,
    /// The address that the host resolves to.
    Ip,
}

/// The registrable domain of a URL's host (public suffix plus one label); `None` for IP addresses, bare suffixes and
/// single-label names.
pub fn registrable_domain(url: &Url) -> Option<&str> {
    let Some(Host::Domain(host)) = url.host() else { return None };
    registrable_part(host)
}

/// The registrable domain of a host name in the form of the URL parser, as [`registrable_domain`]; the name must not be an IP address.
// The table of the public suffix list is code of 0.7 MB in each crate that calls it, so all calls go through here.
pub fn registrable_part(host: &str) -> Option<&str> {
    psl::domain_str(host.trim_end_matches('.'))
}
