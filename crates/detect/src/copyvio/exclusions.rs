//! Rules for sources that are known copies of the article's site and need not be checked.

use std::fmt;
use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// Rules that match sources: known mirrors, forks, blacklisted sites.
///
/// There are three forms, all without regard to case:
/// - `example.com/path`: a prefix of the URL without its `http(s)://` and `www.`. So `example.com` also matches `example.com.evil.test`,
///   and does not match `sub.example.com`.
/// - `*.example.com`, `*.example.com/path`: the host and all its subdomains, and paths that begin so.
/// - `re:PATTERN`: a regular expression, anchored at the beginning of the URL without its prefix.
///
/// Deliberately different from the reference: the form `*.host/path` works (there it matches only URLs with an empty path); a URL with a
/// port is still matched by `*.host`; a pattern is matched without regard to case instead of being lower-cased itself, which would turn
/// `\W` into `\w`; and an invalid rule is reported instead of being ignored silently.
///
/// ```
/// use huntsman_detect::copyvio::Exclusions;
///
/// let (exclusions, invalid) = Exclusions::new(["*.mirror.example", "re:(bad"]);
/// assert_eq!(exclusions.rule_for("https://en.mirror.example/wiki/Mill"), Some("*.mirror.example"));
/// assert_eq!(invalid[0].rule, "re:(bad");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    rules: Vec<(String, Rule)>,
}

#[derive(Clone, Debug)]
enum Rule {
    Prefix(String),
    Host { host: String, path: String },
    Pattern(Regex),
}

/// A rule that is invalid.
#[derive(Clone, Debug)]
pub struct InvalidRule {
    /// The rule as given.
    pub rule: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exclusion `{}`: {}", self.rule, self.reason)
    }
}

/// The most bytes of a compiled pattern. There is a limit because lists are pages that anybody may edit.
const MAX_PATTERN: usize = 1 << 20;

impl Exclusions {
    /// Parses rules; returns the valid ones and the invalid ones. Empty rules are dropped.
    pub fn new<S: AsRef<str>>(rules: impl IntoIterator<Item = S>) -> (Self, Vec<InvalidRule>) {
        let mut exclusions = Self::default();
        let mut invalid = Vec::new();
        for rule in rules {
            let rule = rule.as_ref().trim();
            match Rule::parse(rule) {
                Ok(Some(parsed)) => exclusions.rules.push((rule.to_owned(), parsed)),
                Ok(None) => {}
                Err(reason) => invalid.push(InvalidRule { rule: rule.to_owned(), reason }),
            }
        }
        (exclusions, invalid)
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The valid rules, as they were given.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|(text, _)| &**text)
    }

    /// The first rule that matches a URL, as it was given. Costs one comparison per rule.
    pub fn rule_for(&self, url: &str) -> Option<&str> {
        let url = url.to_lowercase();
        let stripped = without_prefix(&url);
        let (host, path) = host_and_path(&url);
        let hit = |rule: &Rule| match rule {
            Rule::Prefix(prefix) => stripped.starts_with(&**prefix),
            Rule::Host { host: rule, path: start } => {
                let under = host.strip_suffix(&**rule);
                under.is_some_and(|under| under.is_empty() || under.ends_with('.'))
                    && path.starts_with(&**start)
            }
            Rule::Pattern(pattern) => pattern.is_match(stripped),
        };
        self.rules.iter().find(|(_, rule)| hit(rule)).map(|(text, _)| &**text)
    }
}

impl Rule {
    fn parse(rule: &str) -> Result<Option<Self>, String> {
        if let Some(pattern) = rule.strip_prefix("re:") {
            let compile = |pattern: &str| {
                RegexBuilder::new(pattern).case_insensitive(true).size_limit(MAX_PATTERN).build()
            };
            // The pattern is first compiled by itself, because the group that is put around it must not make an invalid pattern valid.
            compile(pattern).map_err(|error| error.to_string())?;
            let anchored = compile(&format!(r"\A(?:{pattern})")).map_err(|error| error.to_string())?;
            return Ok(Some(Rule::Pattern(anchored)));
        }
        let rule = rule.to_lowercase();
        if let Some(rule) = rule.strip_prefix("*.") {
            let (host, path) = rule.split_at(rule.find('/').unwrap_or(rule.len()));
            if host.is_empty() {
                return Err("no host behind `*.`".to_owned());
            }
            return Ok(Some(Rule::Host { host: host.to_owned(), path: path.to_owned() }));
        }
        let prefix = without_prefix(&rule);
        // An empty prefix would match every URL.
        Ok((!prefix.is_empty()).then(|| Rule::Prefix(prefix.to_owned())))
    }
}

/// A lower-case URL without `http(s)://` and then `www.`. Other schemes stay, so `ftp://` is never matched by a prefix.
fn without_prefix(url: &str) -> &str {
    match url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) {
        Some(rest) => rest.strip_prefix("www.").unwrap_or(rest),
        None => url,
    }
}

/// The host (without user and port), and the rest from the first slash on; an absent path is empty.
fn host_and_path(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = host.rfind(':').filter(|at| host[at + 1..].bytes().all(|byte| byte.is_ascii_digit()));
    (port.map_or(host, |at| &host[..at]), path)
}

/// The wiki pages that hold such lists, each with a syntax of its own. They are those of the English Wikipedia.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExclusionList {
    /// `User:EarwigBot/Copyvios/Exclusions`: lines `url = VALUE`, optionally in `<nowiki>` or with a `# comment`.
    Exclusions,
    /// `User:EranBot/Copyright/Blacklist`: one regular expression per line, from the second line on; `#` or `==` ends it.
    Blacklist,
    /// `Wikipedia:Mirrors and forks/...`: every http(s) URL in lines that begin with `url=`, `|url=`, `Site:` or `* Site:`.
    Mirrors,
}

static EXCLUSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*url\s*=\s*(?:<nowiki>\s*)?(.+?)\s*(?:</nowiki>\s*)?(?:#.*?)?$").expect("a valid pattern")
});
static SITE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:\s*\|?\s*url\s*=|\*?\s*Site:)").expect("a valid pattern"));
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(https?://.+?)(?:[ \[\]<>{}()]|$)").expect("a valid pattern"));

impl ExclusionList {
    /// The kind of list on a page with this title; any other title is a list of mirrors, as in the reference.
    pub fn of_page(title: &str) -> Self {
        match title {
            "User:EarwigBot/Copyvios/Exclusions" => Self::Exclusions,
            "User:EranBot/Copyright/Blacklist" => Self::Blacklist,
            _ => Self::Mirrors,
        }
    }

    /// The rules on the page, sorted, without repetitions.
    pub fn rules(self, wikitext: &str) -> Vec<String> {
        // The line ends of Python's `splitlines`.
        let is_end = |c| {
            matches!(c, '\n' | '\r' | '\x0B' | '\x0C' | '\x1C'..='\x1E' | '\u{85}' | '\u{2028}' | '\u{2029}')
        };
        let lines = wikitext.split(is_end);
        let mut rules: Vec<String> = match self {
            Self::Exclusions => {
                lines.filter_map(|line| Some(bare(EXCLUSION.captures(line)?.get(1)?.as_str()))).collect()
            }
            Self::Blacklist => lines
                .skip(1)
                .map(|line| {
                    line[..line.find('#').into_iter().chain(line.find("==")).min().unwrap_or(line.len())]
                        .trim()
                })
                .filter(|pattern| !pattern.is_empty())
                .map(|pattern| format!("re:{pattern}"))
                .collect(),
            Self::Mirrors => lines
                .filter(|line| SITE.is_match(line))
                .flat_map(|line| {
                    ADDRESS.captures_iter(line).filter_map(|found| Some(bare(found.get(1)?.as_str())))
                })
                .collect(),
        };
        rules.retain(|rule| !rule.is_empty());
        rules.sort();
        rules.dedup();
        rules
    }
}

fn bare(url: &str) -> String {
    without_prefix(url).to_owned()
}

/// The hints that the HTML of a mirror of a wiki page contains in a link or a source: `<host><script path>/{index,load,api}.php` and
/// `<host><page path>`, for the host and its mobile form (`en.wikipedia.org`, `en.m.wikipedia.org`).
///
/// Deliberately different: only hosts of three labels get a mobile form, and labels may have hyphens. The reference's pattern has an
/// unescaped dot and mangles `abc.example`.
pub fn mirror_hints(host: &str, script_path: &str, page_path: &str) -> Vec<String> {
    let mut roots = vec![host.to_owned()];
    if let [first, rest @ ..] = &*host.split('.').collect::<Vec<_>>()
        && rest.len() == 2
        && !first.is_empty()
        && rest.iter().all(|label| !label.is_empty())
    {
        roots.push(format!("{first}.m.{}.{}", rest[0], rest[1]));
    }
    let scripts = ["index.php", "load.php", "api.php"];
    let mut hints: Vec<String> = Vec::new();
    for root in &roots {
        hints.extend(scripts.map(|script| format!("{root}{script_path}/{script}")));
    }
    hints.extend(roots.iter().map(|root| format!("{root}{page_path}")));
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_for(rule: &str, url: &str) -> bool {
        let (exclusions, invalid) = Exclusions::new([rule]);
        assert!(invalid.is_empty(), "{invalid:?}");
        exclusions.rule_for(url).is_some()
    }

    #[test]
    fn a_rule_for_a_host_and_path_hits_that_path_there_and_below() {
        for url in [
            "http://site.example/path",
            "https://x.site.example:8080/path/deeper",
            "http://SITE.example/PATH?q",
        ] {
            assert!(rule_for("*.site.example/path", url), "{url}");
        }
        for url in [
            "http://site.example",
            "http://site.example/",
            "http://notsite.example/path",
            "http://site.example/a/path",
        ] {
            assert!(!rule_for("*.site.example/path", url), "{url}");
        }
    }

    #[test]
    fn an_empty_rule_excludes_nothing() {
        let (exclusions, _) = Exclusions::new(["", "  ", "http://", "https://www."]);
        assert!(exclusions.is_empty());
    }

    #[test]
    fn a_rule_that_cannot_be_used_is_reported() {
        let (exclusions, invalid) =
            Exclusions::new(["re:(bad", "re:a)(b", "*.", "re:(?:x{1000}){1000}", "good.example"]);
        assert_eq!(exclusions.len(), 1);
        assert_eq!(
            invalid.iter().map(|rule| &*rule.rule).collect::<Vec<_>>(),
            ["re:(bad", "re:a)(b", "*.", "re:(?:x{1000}){1000}"]
        );
        assert!(invalid.iter().all(|rule| !rule.reason.is_empty()));
    }

    #[test]
    fn a_host_without_three_labels_has_no_mobile_form() {
        assert_eq!(mirror_hints("abc.example", "/w", "/wiki/Mill").len(), 4);
        assert_eq!(mirror_hints("zh-yue.wikipedia.org", "/w", "/wiki/Mill").len(), 8);
    }
}
