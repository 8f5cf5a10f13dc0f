//! The requests of a page in the browser as requests of the crawl.

use std::sync::Arc;

use http::{HeaderName, HeaderValue, Method, header};
use huntsman_browser::{Asked, Kind, Refused};
use huntsman_crawler::{Request, meta};
use serde_json::{Map, Value};
use url::Url;

use super::SUBRESOURCE;
use super::network::refused;
use crate::cookies::jar_name;
use crate::proxy_pool::BoundProxy;

/// Headers that the crawl sets itself.
const OF_CRAWL: [HeaderName; 7] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::COOKIE,
    header::HOST,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
];

/// What the requests of a page have from the request of the page.
pub(super) struct SubRequests {
    page: Arc<str>,
    depth: u16,
    jar: String,
    user_agent: Option<HeaderValue>,
    meta: Map<String, Value>,
    proxy: Option<BoundProxy>,
}

impl SubRequests {
    pub(super) fn of(request: &Request, url: &Url) -> Self {
        let inherited = [
            meta::COOKIEJAR.name(),
            meta::DONT_CACHE.name(),
            meta::DONT_MERGE_COOKIES.name(),
            meta::DONT_OBEY_ROBOTSTXT.name(),
            meta::HTTP_AUTH_DOMAIN.name(),
            meta::HTTP_PASS.name(),
            meta::HTTP_USER.name(),
            meta::PROXY.name(),
        ];
        let mut meta: Map<String, Value> = inherited
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), request.meta.get(name)?.clone())))
            .collect();
        // Credentials are for the host of the page, not for each host that the page asks.
        if meta.contains_key(meta::HTTP_USER.name())
            && let Some(host) = url.host_str()
        {
            meta.entry(meta::HTTP_AUTH_DOMAIN.name()).or_insert_with(|| host.into());
        }
        // What is decided about pages is not decided about these: the browser takes each redirect itself, and sees what failed.
        for name in [
            meta::ALLOW_OFFSITE.name(),
            meta::DONT_AVOID_DUP_CONTENT.name(),
            meta::DONT_METAREFRESH.name(),
            meta::DONT_REDIRECT.name(),
            meta::DONT_RETRY.name(),
            // The session of the page has given it its cookies and its proxy.
            meta::DONT_USE_SESSION.name(),
            // A script is a script whatever its server calls it.
            meta::DOWNLOAD_BINARY.name(),
            SUBRESOURCE.name(),
        ] {
            meta.insert(name.to_owned(), true.into());
        }
        Self {
            page: url.as_str().into(),
            depth: request.depth.saturating_add(1),
            jar: jar_name(request),
            user_agent: request.headers.get(header::USER_AGENT).cloned(),
            meta,
            proxy: request.extensions.get::<BoundProxy>().copied(),
        }
    }

    /// The name of the cookie jar.
    pub(super) fn jar(&self) -> &str {
        &self.jar
    }

    /// The request of the crawl for what the page asks.
    pub(super) fn request(&self, url: Url, asked: Asked) -> Result<Request, Refused> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("scheme"));
        }
        let method = Method::from_bytes(asked.method.as_bytes()).map_err(|_| refused("invalid_request"))?;
        let mut request = Request::get(url).method(method).body(asked.body.unwrap_or_default());
        for (name, value) in asked.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) else { continue };
            if !OF_CRAWL.contains(&name) {
                request.headers.append(name, value);
            }
        }
        if let Some(user_agent) = &self.user_agent {
            request.headers.insert(header::USER_AGENT, user_agent.clone());
        }
        request.meta = self.meta.clone();
        request.depth = self.depth;
        request.referer = Some(Arc::clone(&self.page));
        if let Some(proxy) = self.proxy {
            request.extensions.insert(proxy);
        }
        Ok(request)
    }
}

/// The name of a kind, in stats.
pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "document",
        Kind::Script => "script",
        Kind::Stylesheet => "stylesheet",
        Kind::Xhr => "xhr",
        Kind::Fetch => "fetch",
    }
}
