//! Scope: which URLs belong to a crawl, judged by the settings and by the seeds.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError, RwLock};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use huntsman_crawler::{Error, Result, Settings, registrable_domain, settings};
use regex::RegexSet;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::origin;

settings! {
    /// Which URLs belong to the crawl: settings of [`Offsite`](crate::Offsite).
    pub struct OffsiteSettings {
        /// Which links are followed: host, origin, domain, prefix or all.
        scope: Scope = Scope::All;
        /// Hosts (`name` or `name:port`) that are in scope in addition to those of the seeds.
        allow_hosts: Vec<String> = Vec::new();
        /// Patterns on the URL, globs or `re:` and a regular expression: if any are given, a URL must match one.
        include: Vec<String> = Vec::new();
        /// Patterns as in include: a URL that matches one of them is not followed, even if it matches include.
        exclude: Vec<String> = Vec::new();
        /// What happens to a redirect that leaves the scope: drop, record or follow.
        redirect_out_of_scope: OutOfScope = OutOfScope::Drop;
    }
}

/// Which links are followed (`scope`), judged against the seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// URLs with the scheme, host and port of a seed.
    Origin,
    /// URLs on the host of a seed, with any port and scheme.
    Host,
    /// URLs in the registrable domain of a seed.
    Domain,
    /// URLs on the host of a seed whose path is below the folder of the seed's path.
    Prefix,
    /// All URLs.
    #[default]
    All,
}

/// What happens to a redirect that leaves the scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutOfScope {
    /// The request is dropped.
    #[default]
    Drop,
    /// The redirect response itself is recorded as the result: dropped, with its target as detail.
    Record,
    /// It is followed; links of the target are judged as usual.
    Follow,
}

/// Why a URL is not in the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// It is neither in the scope of a seed nor on an allowed host.
    Scope,
    /// It matches an `exclude` pattern.
    Excluded,
    /// There are `include` patterns and it matches none.
    NotIncluded,
}

impl RejectReason {
    /// The reason in drop records.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Scope => "offsite",
            Self::Excluded => "excluded",
            Self::NotIncluded => "not_included",
        }
    }
}

/// The rules of `scope`, `allow_hosts`, `include` and `exclude`, together with the seeds.
///
/// Patterns are globs on the whole URL without its fragment, in which `*` also matches slashes; a pattern that begins
/// with `re:` is a regular expression that is searched for in it. Memory is a few bytes per distinct host of the seeds.
#[derive(Debug)]
pub struct ScopeRules {
    scope: Scope,
    hosts: Vec<AllowedHost>,
    include: Option<Patterns>,
    exclude: Option<Patterns>,
    seeds: RwLock<Seeds>,
}

/// `name`, `name:port` or `*.name` of `allow_hosts`.
#[derive(Debug, PartialEq, Eq)]
struct AllowedHost {
    host: String,
    subdomains: bool,
    port: Option<u16>,
}

/// The seeds, reduced to the part that the scope compares.
#[derive(Debug, Default)]
struct Seeds {
    keys: HashSet<String>,
}

#[derive(Debug)]
struct Patterns {
    globs: GlobSet,
    expressions: RegexSet,
}

impl ScopeRules {
    /// Creates the rules from the settings, without any seeds.
    ///
    /// # Errors
    /// A pattern or a host of the settings is not valid; the error names it.
    pub fn from_settings(settings: &Settings) -> Result<Self> {
        let own: OffsiteSettings = settings.of()?;
        Ok(Self {
            scope: own.scope,
            hosts: own.allow_hosts.iter().map(|host| AllowedHost::parse(host)).collect::<Result<_>>()?,
            include: Patterns::parse("setting include", &own.include)?,
            exclude: Patterns::parse("setting exclude", &own.exclude)?,
            seeds: RwLock::default(),
        })
    }

    /// Whether every URL belongs to the crawl, because there is neither a scope nor a pattern.
    pub fn is_open(&self) -> bool {
        self.scope == Scope::All && self.include.is_none() && self.exclude.is_none()
    }

    /// Adds a seed.
    pub fn add_seed(&self, url: &Url) {
        if self.scope == Scope::All {
            return;
        }
        let key = self.seed_key(url);
        if !self.seeds.read().unwrap_or_else(PoisonError::into_inner).keys.contains(&key) {
            let host = host_of(self.scope, &key).map(str::to_owned);
            self.seeds
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .keys
                .extend(host.into_iter().chain([key]));
        }
    }

    /// The number of distinct keys of the seeds, such as hosts or folders.
    pub(crate) fn seed_count(&self) -> usize {
        self.seeds.read().unwrap_or_else(PoisonError::into_inner).keys.len()
    }

    /// The keys of the seeds, for [`ScopeRules::restore`].
    pub(crate) fn seeds(&self) -> Vec<String> {
        let mut keys: Vec<String> =
            self.seeds.read().unwrap_or_else(PoisonError::into_inner).keys.iter().cloned().collect();
        keys.sort_unstable();
        keys
    }

    /// Adds the seeds of an earlier run with the same scope.
    pub(crate) fn restore(&self, seeds: Vec<String>) {
        // A version that did not store hosts may have written these seeds.
        let hosts: Vec<String> =
            seeds.iter().filter_map(|key| host_of(self.scope, key)).map(str::to_owned).collect();
        self.seeds
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .keys
            .extend(hosts.into_iter().chain(seeds));
    }

    /// Why a URL is not in the crawl; `None` if it is.
    pub fn check(&self, url: &Url) -> Option<RejectReason> {
        if self.exclude.as_ref().is_some_and(|exclude| exclude.matches(url)) {
            return Some(RejectReason::Excluded);
        }
        if !self.in_scope(url) {
            return Some(RejectReason::Scope);
        }
        if self.include.as_ref().is_some_and(|include| !include.matches(url)) {
            return Some(RejectReason::NotIncluded);
        }
        None
    }

    /// Like [`ScopeRules::check`], for a sitemap. A sitemap is not a page but a list of pages, so with scope `prefix`
    /// only the host of a seed is compared, and `include` is ignored.
    pub fn check_sitemap(&self, url: &Url) -> Option<RejectReason> {
        let is_on_host = || {
            let seeds = self.seeds.read().unwrap_or_else(PoisonError::into_inner);
            self.scope == Scope::Prefix && seeds.keys.contains(origin::host(url))
        };
        match self.check(url) {
            Some(RejectReason::NotIncluded) => None,
            Some(RejectReason::Scope) if is_on_host() => None,
            judged => judged,
        }
    }

    /// Whether a URL is in the scope of a seed, or on an allowed host.
    pub fn in_scope(&self, url: &Url) -> bool {
        if self.scope == Scope::All || self.hosts.iter().any(|allowed| allowed.matches(url)) {
            return true;
        }
        let seeds = self.seeds.read().unwrap_or_else(PoisonError::into_inner);
        match self.scope {
            Scope::Prefix => {
                // Each folder above the URL may be the folder of a seed; the guards on paths bound the number of
                // folders.
                let mut key = format!("{}{}", origin::host(url), folder(url.path()));
                let root = origin::host(url).len() + 1;
                loop {
                    if seeds.keys.contains(&key) {
                        return true;
                    }
                    if key.len() <= root {
                        return false;
                    }
                    key.pop();
                    let parent = key.rfind('/').map_or(root, |slash| slash + 1);
                    key.truncate(parent.max(root));
                }
            }
            _ => seeds.keys.contains(&self.seed_key(url)),
        }
    }

    fn seed_key(&self, url: &Url) -> String {
        match self.scope {
            Scope::All => String::new(),
            Scope::Origin => url.origin().ascii_serialization(),
            Scope::Host => origin::host(url).to_owned(),
            // IP addresses and single labels have no registrable domain: the host is used instead.
            Scope::Domain => registrable_domain(url).unwrap_or(origin::host(url)).to_owned(),
            Scope::Prefix => format!("{}{}", origin::host(url), folder(url.path())),
        }
    }
}

/// The host in the key of a seed, if the key is longer than that; it is stored separately.
fn host_of(scope: Scope, key: &str) -> Option<&str> {
    if scope == Scope::Prefix { key.split_once('/').map(|(host, _)| host) } else { None }
}

/// The path up to and including its last slash.
fn folder(path: &str) -> &str {
    path.rfind('/').map_or("/", |slash| &path[..=slash])
}

impl AllowedHost {
    fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            let shown = text.escape_debug();
            Error::usage(format!(
                "setting allow_hosts: \"{shown}\" is not a host: expected name, name:port, [IPv6]:port or *.name"
            ))
        };
        let (subdomains, rest) = match text.trim().strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        // The URL parser normalises names and addresses to the form that they have in URLs.
        let url = Url::parse(&format!("http://{rest}/")).map_err(|_| wrong())?;
        if url.path() != "/"
            || url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
        {
            return Err(wrong());
        }
        // `:80` is the default of http and therefore not in the URL.
        let port = url.port().or_else(|| rest.ends_with(":80").then_some(80));
        let host = origin::host(&url).to_owned();
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self { host, subdomains, port })
    }

    fn matches(&self, url: &Url) -> bool {
        let host = origin::host(url);
        let name = if self.subdomains { origin::is_within(host, &self.host) } else { host == self.host };
        name && (self.port.is_none() || self.port == url.port_or_known_default())
    }
}

impl Patterns {
    /// Parses patterns; `whose` begins the error message for an invalid one.
    fn parse(whose: &str, patterns: &[String]) -> Result<Option<Self>> {
        if patterns.is_empty() {
            return Ok(None);
        }
        let wrong = |pattern: &str, cause: &dyn std::fmt::Display| {
            Error::usage(format!("{whose}: pattern \"{}\": {cause}", pattern.escape_debug()))
        };
        let mut globs = GlobSetBuilder::new();
        let mut expressions = Vec::new();
        for pattern in patterns {
            if let Some(expression) = pattern.strip_prefix("re:") {
                regex::Regex::new(expression).map_err(|cause| wrong(pattern, &cause))?;
                expressions.push(expression);
            } else {
                globs.add(GlobBuilder::new(pattern).build().map_err(|cause| wrong(pattern, &cause))?);
            }
        }
        let globs = globs.build().map_err(|cause| wrong("(all)", &cause))?;
        let expressions = RegexSet::new(expressions).map_err(|cause| wrong("(all)", &cause))?;
        Ok(Some(Self { globs, expressions }))
    }

    fn matches(&self, url: &Url) -> bool {
        let address = &url[..url::Position::AfterQuery];
        self.globs.is_match(address) || self.expressions.is_match(address)
    }
}

/// A pattern on URLs, as in the settings `include` and `exclude`: a glob on the whole URL without its fragment, or a
/// regular expression after `re:`.
#[derive(Debug)]
pub struct UrlPattern(Patterns);

impl UrlPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// The text is not a valid pattern.
    pub fn parse(pattern: &str) -> Result<Self> {
        let patterns = Patterns::parse("URL", &[pattern.to_owned()])?;
        Ok(Self(patterns.expect("one pattern was given")))
    }

    /// Whether a URL matches.
    pub fn matches(&self, url: &Url) -> bool {
        self.0.matches(url)
    }
}

/// Remembers the hosts for which a message was logged, so that it is logged once; bounded, so it may be logged again.
#[derive(Debug, Default)]
pub(crate) struct LogOnce(Mutex<HashSet<String>>);

/// Maximum number of names kept, so that a site with made-up hosts cannot fill the memory.
const MAX_LOG_ONCE: usize = 100_000;

impl LogOnce {
    /// Whether this is the first time for a name.
    pub(crate) fn first(&self, name: &str) -> bool {
        let mut log_once = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log_once.contains(name) {
            return false;
        }
        if log_once.len() >= MAX_LOG_ONCE {
            log_once.clear();
        }
        log_once.insert(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(change: impl FnOnce(&mut Settings), seeds: &[&str]) -> ScopeRules {
        let mut settings = Settings::default();
        change(&mut settings);
        let rules = ScopeRules::from_settings(&settings).unwrap();
        for seed in seeds {
            rules.add_seed(&Url::parse(seed).unwrap());
        }
        rules
    }

    fn check(rules: &ScopeRules, url: &str) -> &'static str {
        rules.check(&Url::parse(url).unwrap()).map_or("in", RejectReason::reason)
    }

    #[test]
    fn each_scope_compares_its_part_of_the_seed() {
        let seed = "https://www.example.co.uk:8443/docs/start.html";
        let cases = [
            ("https://www.example.co.uk:8443/docs/a/b", ["in", "in", "in", "in", "in"]),
            ("https://www.example.co.uk:8443/docs", ["in", "in", "in", "offsite", "in"]),
            ("https://www.example.co.uk:8443/docsx/a", ["in", "in", "in", "offsite", "in"]),
            ("https://www.example.co.uk:8443/", ["in", "in", "in", "offsite", "in"]),
            ("http://WWW.example.co.uk./x", ["offsite", "in", "in", "offsite", "in"]),
            ("https://example.co.uk/docs/", ["offsite", "offsite", "in", "offsite", "in"]),
            ("https://other.co.uk/docs/", ["offsite", "offsite", "offsite", "offsite", "in"]),
        ];
        let scopes = [Scope::Origin, Scope::Host, Scope::Domain, Scope::Prefix, Scope::All];
        for (index, scope) in scopes.into_iter().enumerate() {
            let rules =
                rules(|settings| settings.change(|own: &mut OffsiteSettings| own.scope = scope), &[seed]);
            for (url, expected) in &cases {
                assert_eq!(check(&rules, url), expected[index], "{scope:?} {url}");
            }
        }
    }

    #[test]
    fn addresses_and_single_labels_are_their_own_domain() {
        let rules = rules(
            |settings| settings.change(|own: &mut OffsiteSettings| own.scope = Scope::Domain),
            &["http://127.0.0.1:8000/", "http://localhost/"],
        );
        assert_eq!(check(&rules, "http://127.0.0.1/"), "in");
        assert_eq!(check(&rules, "http://127.0.0.2/"), "offsite");
        assert_eq!(check(&rules, "http://localhost:1/"), "in");
    }

    #[test]
    fn allowed_hosts_have_ports_subdomains_and_addresses() {
        let rules = rules(
            |settings| {
                settings.change(|own: &mut OffsiteSettings| own.scope = Scope::Host);
                settings.change(|own: &mut OffsiteSettings| {
                    own.allow_hosts =
                        ["cdn.example", "api.example:8080", "*.wild.example", "[::1]:9", "plain.example:80"]
                            .map(str::to_owned)
                            .to_vec();
                });
            },
            &["http://seed.example/"],
        );
        for (url, expected) in [
            ("https://CDN.example:1234/", "in"),
            ("http://a.cdn.example/", "offsite"),
            ("http://api.example:8080/", "in"),
            ("http://api.example/", "offsite"),
            ("http://a.b.wild.example/", "in"),
            ("http://notwild.example/", "offsite"),
            ("http://[::1]:9/", "in"),
            ("http://[::1]/", "offsite"),
            ("http://plain.example/", "in"),
            ("https://plain.example/", "offsite"),
        ] {
            assert_eq!(check(&rules, url), expected, "{url}");
        }
    }

    #[test]
    fn exclude_wins_over_include() {
        let rules = rules(
            |settings| {
                settings.change(|own: &mut OffsiteSettings| {
                    own.include = vec!["*/docs/*".to_owned(), "re:id=\\d+$".to_owned()]
                });
                settings
                    .change(|own: &mut OffsiteSettings| own.exclude = vec!["*/docs/private/*".to_owned()]);
            },
            &[],
        );
        assert_eq!(check(&rules, "http://h/docs/a/b?c"), "in");
        assert_eq!(check(&rules, "http://h/p?id=12#x"), "in");
        assert_eq!(check(&rules, "http://h/p?id=x"), "not_included");
        assert_eq!(check(&rules, "http://h/docs/private/x"), "excluded");
    }

    #[test]
    fn a_sitemap_needs_neither_the_folder_of_a_seed_nor_to_be_included() {
        let narrow = |settings: &mut Settings| {
            settings.change(|own: &mut OffsiteSettings| own.scope = Scope::Prefix);
            settings.change(|own: &mut OffsiteSettings| own.include = vec!["*/docs/*".to_owned()]);
            settings.change(|own: &mut OffsiteSettings| own.exclude = vec!["*/old.xml".to_owned()]);
        };
        let rules = rules(narrow, &["http://h/docs/a"]);
        let again = ScopeRules { seeds: RwLock::default(), ..self::rules(narrow, &[]) };
        // In the form written by a version that did not store hosts.
        again.restore(vec!["h/docs/".to_owned()]);
        for rules in [rules, again] {
            let check = |url: &str| rules.check_sitemap(&Url::parse(url).unwrap()).map(RejectReason::reason);
            assert_eq!(check("http://h/sitemap.xml"), None);
            assert_eq!(check("http://h/old.xml"), Some("excluded"));
            assert_eq!(check("http://other/docs/sitemap.xml"), Some("offsite"));
            assert_eq!(super::tests::check(&rules, "http://h/sitemap.xml"), "offsite", "a page needs both");
        }
    }

    #[test]
    fn wrong_patterns_and_hosts_are_named() {
        for (setting, value) in
            [("exclude", "[a"), ("include", "re:("), ("allow_hosts", "a b"), ("allow_hosts", "h/x")]
        {
            let mut settings = Settings::default();
            let list = vec![value.to_owned()];
            match setting {
                "exclude" => settings.change(|own: &mut OffsiteSettings| own.exclude = list),
                "include" => settings.change(|own: &mut OffsiteSettings| own.include = list),
                _ => settings.change(|own: &mut OffsiteSettings| own.allow_hosts = list),
            }
            let error = ScopeRules::from_settings(&settings).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(value), "{error}");
        }
    }
}
