//! Which codes need facts that an audit may lack. A code without its facts is not judged, which is another thing than finding nothing.

/// Need links to other sites.
pub(crate) const OF_EXTERNAL: &[&str] =
    &["dns-failure", "external-broken", "external-redirect", "external-unverified"];

/// Need images, scripts and styles.
pub(crate) const OF_RESOURCES: &[&str] = &[
    "blocked-resource",
    "css-large",
    "img-broken",
    "img-heavy",
    "js-large",
    "no-cache",
    "og-image-broken",
    "page-weight",
    "resource-broken",
    "resource-redirect",
];

/// Need sitemaps.
pub(crate) const OF_SITEMAPS: &[&str] = &[
    "blocked-in-sitemap",
    "noindex-in-sitemap",
    "non200-in-sitemap",
    "noncanonical-in-sitemap",
    "not-in-sitemap",
    "sitemap-invalid",
    "sitemap-lastmod-invalid",
    "sitemap-missing",
    "sitemap-too-large",
];

/// Need sitemaps, or logs of servers.
pub(crate) const OF_LISTS: &[&str] = &["orphan"];

/// Need a crawl that ended by itself: they are about what is nowhere.
pub(crate) const OF_ABSENCE: &[&str] = &["not-in-sitemap", "only-nofollow-inlinks", "orphan"];

/// Need certificates, which a proxy hides.
pub(crate) const OF_TLS: &[&str] =
    &["certificate-expiring", "certificate-invalid", "certificate-weak", "http1-only", "tls-old"];

/// Need pages that were rendered.
pub(crate) const OF_RENDERING: &[&str] = &[
    "console-error",
    "render-canonical-differs",
    "render-links-only",
    "render-noindex-differs",
    "render-title-differs",
];

/// Need the page as its server sent it. Of one that was rendered the tree is judged, which is in UTF-8 whatever its source says.
pub(crate) const OF_SOURCE: &[&str] = &["charset-late"];

/// Need that links are followed.
pub(crate) const OF_FOLLOWING: &[&str] =
    &["feed-invalid", "https-not-forced", "icon-missing", "og-image-broken", "robots-invalid"];

/// Need requests, which pages that are given as a file did not come with. What such a file shows of them is told.
pub(crate) const OF_REQUESTS: &[&str] = &[
    "blocked-by-robots",
    "broken-internal-link",
    "canonical-chain",
    "canonical-to-blocked",
    "canonical-to-error",
    "canonical-to-noindex",
    "canonical-to-redirect",
    "feed-invalid",
    "fragment-broken",
    "hreflang-blocked",
    "hreflang-no-return",
    "hreflang-non200",
    "hreflang-noindex",
    "hreflang-noncanonical",
    "http1-only",
    "https-not-forced",
    "icon-missing",
    "link-forbidden",
    "link-to-redirect",
    "not-found-200",
    "only-nofollow-inlinks",
    "pagination-rel",
    "redirect-chain",
    "redirect-loop",
    "redirect-to-error",
    "robots-invalid",
    "robots-unreachable",
    "server-error",
    "temporary-redirect",
    "timeout",
    "too-deep",
    "truncated-body",
    "ttfb-slow",
];

/// Need the headers of answers, and tell something wrong without them.
pub(crate) const OF_HEADERS: &[&str] = &[
    "canonical-missing",
    "charset-late",
    "content-type-wrong",
    "cookie-flags",
    "cors-any-credentials",
    "csp-missing",
    "csp-report-only",
    "csp-weak",
    "frame-options-missing",
    "hreflang-sources-differ",
    "hsts-missing",
    "hsts-short",
    "nosniff-missing",
    "referrer-policy-missing",
    "server-version",
];

/// Need the number of bytes on the wire, and tell something wrong without it.
pub(crate) const OF_WIRE: &[&str] = &["no-compression"];

/// Whether a code tells something wrong without its facts.
pub(crate) fn misleads(code: &str) -> bool {
    OF_HEADERS.contains(&code) || OF_WIRE.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_code() {
        let codes = crate::codes();
        let lists = [OF_EXTERNAL, OF_RESOURCES, OF_SITEMAPS, OF_ABSENCE, OF_REQUESTS, OF_HEADERS, OF_WIRE];
        for name in lists.into_iter().chain([OF_TLS, OF_FOLLOWING, OF_LISTS]).flatten() {
            assert!(codes.iter().any(|code| code.name == *name), "{name}");
        }
    }
}
