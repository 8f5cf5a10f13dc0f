//! The host names under which a server on this machine may be addressed.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use http::header::HOST;
use http::{HeaderMap, StatusCode, Uri};

/// The host names under which a server may be addressed: those of loopback and its own address. A server that other machines can reach
/// accepts any name.
#[derive(Clone, Copy, Debug)]
pub struct HostNames(SocketAddr);

impl HostNames {
    /// The host names of a server that listens at an address.
    pub fn of(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Adds a layer that responds with 421 to requests for other host names.
    pub fn guard(self, routes: Router) -> Router {
        routes.layer(from_fn_with_state(self, Self::check))
    }

    async fn check(State(names): State<Self>, request: Request, next: Next) -> Response {
        if names.are_meant(request.uri(), request.headers()) {
            return next.run(request).await;
        }
        let text = "this server answers to localhost and its own address only\n";
        (StatusCode::MISDIRECTED_REQUEST, text).into_response()
    }

    /// Whether a request was meant for this server. In a DNS rebinding attack, a web page's own host name suddenly
    /// resolves to a loopback address, and the browser sends that name. A server that other machines can reach
    /// accepts any name.
    fn are_meant(self, uri: &Uri, headers: &HeaderMap) -> bool {
        if !self.0.ip().is_loopback() {
            return true;
        }
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let named = uri.authority().map(|authority| authority.as_str());
        host.to_str().is_ok_and(|host| self.has(host)) && named.is_none_or(|host| self.has(host))
    }

    fn has(self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let ip = self.0.ip();
        let own = if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        ["localhost", "127.0.0.1", "[::1]", &own].iter().any(|known| name.eq_ignore_ascii_case(known))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn host(host: &str) -> HeaderMap {
        HeaderMap::from_iter([(HOST, HeaderValue::from_str(host).unwrap())])
    }

    #[test]
    fn a_name_of_elsewhere_is_not_answered_on_loopback() {
        let names = HostNames::of("127.0.0.2:8765".parse().unwrap());
        for (name, is_meant) in [
            ("localhost:8765", true),
            ("LocalHost", true),
            ("127.0.0.1:8765", true),
            ("127.0.0.2", true),
            ("[::1]:8765", true),
            ("rebound.example:8765", false),
            ("127.0.0.1.example", false),
            ("localhost.example:1", false),
            ("", false),
        ] {
            assert_eq!(names.are_meant(&Uri::from_static("/"), &host(name)), is_meant, "{name}");
        }
        assert!(!names.are_meant(&Uri::from_static("http://rebound.example/"), &host("localhost")));
        assert!(!names.are_meant(&Uri::from_static("/"), &HeaderMap::new()));
        let public = HostNames::of("0.0.0.0:8765".parse().unwrap());
        assert!(public.are_meant(&Uri::from_static("/"), &host("copies.example")));
    }
}
