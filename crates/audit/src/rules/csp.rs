//! Content-Security-Policies, as far as they limit scripts (CSP Level 3).

use crate::page::AuditedPage;

/// The policies of a page that are enforced, in headers and `meta` elements, in lower case. All of them hold at once.
pub(super) fn policies(page: &AuditedPage<'_>) -> Vec<String> {
    let metas = page.metas().filter(|meta| {
        meta.http_equiv.is_some_and(|name| name.trim().eq_ignore_ascii_case("content-security-policy"))
    });
    let lists = page.header("content-security-policy").chain(metas.filter_map(|meta| meta.content));
    let policies = lists.flat_map(|list| list.split(',')).map(|policy| policy.trim().to_ascii_lowercase());
    policies.filter(|policy| !policy.is_empty()).collect()
}

/// Whether a policy keeps scripts from running that the site did not name.
pub(super) fn limits_scripts(policy: &str) -> bool {
    let directive = |name: &str| {
        policy.split(';').find_map(|directive| {
            let mut words = directive.split_ascii_whitespace();
            (words.next() == Some(name)).then(|| words.collect::<Vec<_>>())
        })
    };
    if directive("sandbox").is_some_and(|words| !words.contains(&"allow-scripts")) {
        return true;
    }
    let sources = ["script-src-elem", "script-src", "default-src"].into_iter().find_map(directive);
    let Some(sources) = sources else { return false };
    let has = |wanted: &[&str]| sources.iter().any(|source| wanted.contains(source));
    let is_marked = sources.iter().any(|source| {
        ["'nonce-", "'sha256-", "'sha384-", "'sha512-"].iter().any(|start| source.starts_with(start))
    });
    // With strict-dynamic browsers ignore sources by host and scheme, and with any mark 'unsafe-inline'.
    let is_strict = has(&["'strict-dynamic'"]);
    (is_strict || !has(&["*", "http:", "https:", "data:"]))
        && (is_strict || is_marked || !has(&["'unsafe-inline'"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_limits_scripts_unless_it_lets_all_run() {
        for policy in [
            "default-src 'self'",
            "script-src 'none'; style-src 'unsafe-inline'",
            "script-src 'nonce-a' 'unsafe-inline'",
            "script-src 'strict-dynamic' 'nonce-a' https: 'unsafe-inline'",
            "default-src *; script-src 'self' https://cdn.example",
            "sandbox",
            "default-src 'unsafe-inline'; script-src 'self'",
        ] {
            assert!(limits_scripts(policy), "{policy}");
        }
        for policy in [
            "upgrade-insecure-requests",
            "frame-ancestors 'none'",
            "default-src * 'unsafe-inline'",
            "script-src https:",
            "default-src 'self'; script-src 'self' 'unsafe-inline'",
            "sandbox allow-scripts",
        ] {
            assert!(!limits_scripts(policy), "{policy}");
        }
    }
}
