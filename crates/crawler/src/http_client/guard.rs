//! The address guard: decides which addresses may be connected to. It is pure; the connector calls it with exactly
//! the address it will use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::error::{Error, Result};
use crate::settings::Settings;

/// Refuses addresses that are not part of the public internet, except for listed targets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    open: bool,
    allowed: Vec<Target>,
}

/// The hosts that `allow_addresses` names, although they are not on the public internet.
#[derive(Clone, Debug)]
pub struct AllowedAddresses(Guard);

impl AllowedAddresses {
    /// Reads the setting.
    ///
    /// # Errors
    /// An entry is not `host:port`.
    pub fn of(settings: &Settings) -> Result<Self> {
        Guard::new(false, &settings.allow_addresses).map(Self)
    }

    /// Whether host and port of a URL are named.
    pub fn contains(&self, url: &Url) -> bool {
        let port = url.port_or_known_default().unwrap_or_default();
        url.host_str().is_some_and(|host| self.0.exempts(host, port))
    }
}

/// A `host:port` entry in the list of exceptions; without a port it applies to every port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    host: String,
    port: Option<u16>,
}

impl Guard {
    /// A guard that accepts everything if `open` is set, and otherwise public addresses and the exceptions
    /// (`host:port`, `host:*`, `[v6]:port`).
    pub(crate) fn new(open: bool, allowed: &[String]) -> Result<Self> {
        let allowed = allowed.iter().map(|entry| Target::parse(entry)).collect::<Result<_>>()?;
        Ok(Self { open, allowed })
    }

    /// Whether a target is an exception; every address that it resolves to is then accepted.
    pub(crate) fn exempts(&self, host: &str, port: u16) -> bool {
        if self.open || self.allowed.is_empty() {
            return self.open;
        }
        let host = bare(host);
        self.allowed.iter().any(|t| t.port.is_none_or(|p| p == port) && t.host.eq_ignore_ascii_case(host))
    }

    /// Whether a proxy may be asked for the target. The proxy resolves the name, so only the name itself and IP
    /// literals can be judged.
    pub(crate) fn allows_by_name(&self, host: &str, port: u16) -> bool {
        if self.exempts(host, port) {
            return true;
        }
        match literal(host) {
            Some(ip) => is_public(ip),
            None => !is_local_name(bare(host)),
        }
    }
}

impl Target {
    fn parse(entry: &str) -> Result<Self> {
        let invalid = || {
            Error::usage(format!(
                "allow_addresses: \"{}\" is not host:port; expected 127.0.0.1:8080, [::1]:8080 or intranet.example:*",
                entry.escape_debug()
            ))
        };
        let (host, port) = entry.trim().rsplit_once(':').ok_or_else(invalid)?;
        let port = match port {
            "*" => None,
            port => Some(port.parse().map_err(|_| invalid())?),
        };
        let host = Host::parse(host).map_err(|_| invalid())?;
        Ok(Self { host: bare(&host.to_string()).to_owned(), port })
    }
}

/// A host without the brackets of IPv6 and without a trailing dot.
fn bare(host: &str) -> &str {
    let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

/// The address of a host that is an IP literal. Unusual notations were normalised when the URL was parsed.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    bare(host).parse().ok()
}

/// Whether a name denotes this machine or this network by standard (RFC 6761, 6762, 8375, 9476).
fn is_local_name(host: &str) -> bool {
    let ends_with = |name: &&str| {
        let Some(rest) = host.len().checked_sub(name.len()).and_then(|at| host.split_at_checked(at)) else {
            return false;
        };
        rest.1.eq_ignore_ascii_case(name) && (rest.0.is_empty() || rest.0.ends_with('.'))
    };
    ["localhost", "local", "internal", "home.arpa"].iter().any(ends_with)
}

/// Whether an address is part of the public internet, according to the special-purpose registries (RFC 6890 and its
/// updates). For an address that embeds another one, the embedded address is judged.
pub(crate) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    !(matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, ..)    // this network, private, loopback, multicast, reserved, broadcast
            | (100, 64..=127, _)          // shared by carriers (RFC 6598)
            | (169, 254, _)               // link-local, cloud metadata
            | (172, 16..=31, _)           // private
            | (192, 168, _)               // private
            | (192, 0, 0 | 2)             // protocol assignments, documentation
            | (192, 88, 99)               // relays of 6to4, withdrawn
            | (198, 18 | 19, _)           // benchmarks
            | (198, 51, 100)              // documentation
            | (203, 0, 113) // documentation
    ) || ip == Ipv4Addr::new(168, 63, 129, 16)) // a large cloud's internal service with a public-looking number
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let s = ip.segments();
    match s {
        // Unspecified, loopback, v4-compatible and everything else below ::/96, and v4-mapped.
        [0, 0, 0, 0, 0, 0, _, _] => false,
        [0, 0, 0, 0, 0, 0xffff, hi, lo] | [0, 0, 0, 0, 0xffff, 0, hi, lo] => is_public_v4(embedded(hi, lo)),
        // NAT64, well-known prefix and the local-use one (RFC 8215).
        [0x64, 0xff9b, 0, 0, 0, 0, hi, lo] => is_public_v4(embedded(hi, lo)),
        [0x64, 0xff9b, ..] => false,
        // 6to4 carries the address in clear, Teredo the server in clear and the client inverted.
        [0x2002, hi, lo, ..] => is_public_v4(embedded(hi, lo)),
        [0x2001, 0, hi, lo, _, _, client_hi, client_lo] => {
            is_public_v4(embedded(hi, lo)) && is_public_v4(embedded(!client_hi, !client_lo))
        }
        // The rest of the protocol assignments in 2001::/23, documentation, and 3fff::/20 (RFC 9637).
        [0x2001, b, ..] if b < 0x200 || b == 0xdb8 => false,
        [0x3fff, b, ..] if b < 0x1000 => false,
        // Only 2000::/3 is allocated. ISATAP embeds an address in its last half.
        [first, _, _, _, 0 | 0x200, 0x5efe, hi, lo] => {
            first & 0xe000 == 0x2000 && is_public_v4(embedded(hi, lo))
        }
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn embedded(hi: u16, lo: u16) -> Ipv4Addr {
    let ([a, b], [c, d]) = (hi.to_be_bytes(), lo.to_be_bytes());
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn host_of(url: &str) -> String {
        Url::parse(url).unwrap_or_else(|e| panic!("{url}: {e}")).host_str().expect("has a host").to_owned()
    }

    #[test]
    fn inside_addresses_are_refused_in_every_spelling() {
        let spellings = [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "1\u{FF12}7.0.0.1",
            "\u{FF11}\u{FF12}\u{FF17}.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "0",
            "0.0.0.0",
            "0x0",
            "10.0.0.1",
            "012.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "3232235777",
            "169.254.169.254",
            "0xa9fea9fe",
            "2852039166",
            "100.64.0.1",
            "100.127.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "192.88.99.1",
            "168.63.129.16",
            "[::]",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::127.0.0.1]",
            "[::8.8.8.8]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:0:127.0.0.1]",
            "[64:ff9b::10.0.0.1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2002:c0a8:101::1]",
            "[2001:0:808:808::f5ff:fffe]",
            "[2001:0:7f00:1::f7f7:f7f7]",
            "[fe80::1]",
            "[fec0::1]",
            "[fc00::1]",
            "[fd12:3456:789a::1]",
            "[ff02::1]",
            "[2001:db8::1]",
            "[2001:2::1]",
            "[2001:10::1]",
            "[100::1]",
            "[3fff:1::1]",
            "[5f00::1]",
            "[2606:4700::5efe:10.0.0.1]",
            "[4000::1]",
        ];
        for spelling in spellings {
            let host = host_of(&format!("http://{spelling}/"));
            let ip = literal(&host).unwrap_or_else(|| panic!("{spelling} parsed to the name {host}"));
            assert!(!is_public(ip), "{spelling} ({ip}) passed");
            assert!(!Guard::default().allows_by_name(&host, 80), "{spelling} passed by name");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for spelling in [
            "8.8.8.8",
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.1.1",
            "169.253.1.1",
            "198.17.1.1",
            "198.20.1.1",
            "223.255.255.255",
            "192.0.1.1",
            "[2606:4700::1]",
            "[2a00:1450:4001::1]",
            "[2001:4860:4860::8888]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::8.8.8.8]",
            "[2002:808:808::1]",
            "[2001:200::1]",
        ] {
            let host = host_of(&format!("http://{spelling}/"));
            assert!(is_public(literal(&host).expect("an address")), "{spelling}");
        }
    }

    #[test]
    fn names_of_this_machine_are_refused_through_a_proxy() {
        let guard = Guard::default();
        for name in ["localhost", "LOCALHOST.", "a.localhost", "printer.local", "x.internal", "nas.home.arpa"]
        {
            assert!(!guard.allows_by_name(name, 80), "{name}");
        }
        for name in ["example.org", "localhost.example.org", "notlocalhost", "arpa", "myhome.arpa"] {
            assert!(guard.allows_by_name(name, 80), "{name}");
        }
    }

    #[test]
    fn exceptions_are_exact_in_host_and_port() {
        let listed = ["127.0.0.1:8080", "[::1]:9", "Intranet.example:*", "localhost:80", "127.1:7"];
        let guard = Guard::new(false, &listed.map(String::from)).expect("valid");
        for (host, port) in [
            ("127.0.0.1", 8080),
            ("127.0.0.1", 7),
            ("[::1]", 9),
            ("intranet.example", 1),
            ("intranet.example.", 65535),
            ("localhost", 80),
        ] {
            assert!(guard.exempts(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("127.0.0.1", 80),
            ("127.0.0.2", 8080),
            ("[::1]", 8080),
            ("a.intranet.example", 1),
            ("localhost", 81),
            ("example.org", 80),
        ] {
            assert!(!guard.exempts(host, port), "{host}:{port}");
        }
        assert!(Guard::new(true, &[]).expect("valid").exempts("10.0.0.1", 1));
    }

    #[test]
    fn a_bad_exception_is_an_error_that_names_it() {
        for entry in ["127.0.0.1", "host:", "host:99999", ":80", "a b:80", "::1:80"] {
            let error = Guard::new(false, &[entry.to_owned()]).expect_err(entry).to_string();
            assert!(error.contains("allow_addresses"), "{error}");
        }
    }
}
