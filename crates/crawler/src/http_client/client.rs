//! Clients of the HTTP library: one per way to the web, for addresses with and without TLS, built when first needed.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect, retry, tls};
use tower::util::MapFutureLayer;

use super::attempt::watched;
use super::deadline::Deadlines;
use super::network::{Names, Network};
use super::proxy::{Proxy, Scheme};
use crate::error::{Error, Result};
use crate::fetch::{FetchError, FetchErrorKind};
use crate::settings::Settings;

/// Connections that stay open without work, per host.
pub(crate) const MOST_IDLE: usize = 8;
/// Time that they stay so. Longer than the usual delay of a polite crawl, shorter than most servers' patience.
const IDLE: Duration = Duration::from_secs(15);
/// Bytes under way that a stream and a connection of HTTP/2 may have: they count against what a refused body costs.
const STREAM_WINDOW: u32 = 512 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;

/// What the settings say about every client.
#[derive(Debug)]
pub(crate) struct Recipe {
    network: Arc<Network>,
    connect_timeout: Duration,
    local_address: Option<IpAddr>,
    min_tls: tls::Version,
    verify: bool,
    http2: bool,
    header_lines: usize,
    header_bytes: usize,
}

impl Recipe {
    /// By the settings `bind_address`, `tls_min_version`, `download_verify_certificates`, `http2`, `max_header_lines`
    /// and `max_header_bytes`.
    pub(crate) fn new(settings: &Settings, network: Arc<Network>, deadlines: &Deadlines) -> Result<Self> {
        let local_address = match settings.bind_address.as_deref() {
            None => None,
            Some(text) => Some(text.trim().parse().map_err(|_| {
                let shown = text.escape_debug();
                Error::usage(format!("bind_address: \"{shown}\" is no IP address"))
            })?),
        };
        let min_tls = match settings.tls_min_version.as_str() {
            "1.2" => tls::Version::TLS_1_2,
            "1.3" => tls::Version::TLS_1_3,
            other => {
                let shown = other.escape_debug();
                return Err(Error::usage(format!("tls_min_version: \"{shown}\" is neither 1.2 nor 1.3")));
            }
        };
        Ok(Self {
            network,
            connect_timeout: deadlines.connect,
            local_address,
            min_tls,
            verify: settings.download_verify_certificates,
            http2: settings.http2,
            header_lines: settings.max_header_lines,
            header_bytes: settings.max_header_bytes,
        })
    }

    /// A client with its own connections. Without TLS it trusts no authority: reading the certificate store takes
    /// milliseconds, and many crawls never meet https.
    fn client(&self, proxy: Option<&Arc<Proxy>>, tls: bool) -> Result<Client, FetchError> {
        let build = |authorities: bool| self.builder(proxy, authorities)?.build();
        let mut built = build(tls);
        if tls && let Err(error) = &built {
            tracing::error!(%error, "no certificate authorities found: every https address will fail");
            built = build(false);
        }
        built.map_err(|error| {
            let message = "the HTTP client cannot be made";
            FetchError::new(FetchErrorKind::InvalidRequest, message).with_source(error)
        })
    }

    fn builder(&self, proxy: Option<&Arc<Proxy>>, authorities: bool) -> reqwest::Result<ClientBuilder> {
        let names = Names { network: Arc::clone(&self.network), proxy: proxy.cloned() };
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .dns_resolver(names)
            .connector_layer(MapFutureLayer::new(watched))
            .connect_timeout(self.connect_timeout)
            .local_address(self.local_address)
            .tcp_nodelay(true)
            .tcp_keepalive(None)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_max_headers(self.header_lines.max(1))
            .http2_max_header_list_size(u32::try_from(self.header_bytes).unwrap_or(u32::MAX))
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .tls_version_min(self.min_tls)
            .tls_danger_accept_invalid_certs(!self.verify)
            .tls_info(true);
        if !self.http2 {
            builder = builder.http1_only();
        }
        if !authorities {
            builder = builder.tls_certs_only([]);
        }
        if let Some(proxy) = proxy {
            builder = builder.proxy(proxy.for_client()?);
        }
        Ok(builder)
    }
}

/// A way to the web: directly, or through one proxy.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) proxy: Option<Arc<Proxy>>,
    plain: OnceLock<Client>,
    tls: OnceLock<Client>,
}

impl Route {
    pub(crate) fn new(proxy: Option<Proxy>) -> Self {
        Self { proxy: proxy.map(Arc::new), plain: OnceLock::new(), tls: OnceLock::new() }
    }

    /// The client for targets with or without TLS.
    pub(crate) fn client(&self, recipe: &Recipe, https: bool) -> Result<&Client, FetchError> {
        let proxy = self.proxy.as_ref();
        let tls = https || proxy.is_some_and(|proxy| proxy.scheme == Scheme::Http { tls: true });
        let place = if tls { &self.tls } else { &self.plain };
        match place.get() {
            Some(client) => Ok(client),
            None => {
                let client = recipe.client(proxy, tls)?;
                Ok(place.get_or_init(|| client))
            }
        }
    }
}
