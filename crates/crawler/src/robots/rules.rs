//! The indexed rules of one crawler: they decide about a path, and name the deciding line.
//!
//! Each pattern has a literal prefix, up to its first `*`. Rules are sorted by prefix, and each distinct prefix
//! stores the longest other one that it begins with. For a path, one binary search and a walk up that chain find all
//! prefixes that it begins with; 20,000 rules cost as much as 15. After the prefix a pattern is matched piece by
//! piece, each at its first position after the previous one, without ever going back in the path: linear for any
//! number of stars.

use std::fmt;
use std::time::Duration;

use memchr::memmem;
use url::{Position, Url};

use super::normal::{Side, forms_differ, normal};
use super::parse::RequestRate;

/// The groups of a file that apply to a crawler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Group {
    /// No group applies: there is no file, or it names only other crawlers.
    #[default]
    None,
    /// The groups of `*`.
    Any,
    /// The groups that name the crawler.
    Named,
}

/// The decision about one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether the path may be requested.
    pub allowed: bool,
    /// The line that decided; `None` if no line matched, or if the path is `/robots.txt`.
    pub line: Option<RuleLine<'a>>,
}

/// A line of the file. It is displayed as `Disallow: /private`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleLine<'a> {
    /// Its number in the file, from 1.
    pub number: u32,
    /// Whether it is an `Allow`.
    pub allow: bool,
    /// Its value as written, without comment and white space; about the first 1,000 bytes of a very long one.
    pub value: &'a str,
}

impl fmt::Display for RuleLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.allow { "Allow" } else { "Disallow" }, self.value)
    }
}

/// The rules of one file for one crawler.
///
/// It stores nothing of the other groups: about 32 bytes per rule and the text of the values. The default has no
/// rules and allows everything, as for a missing file.
#[derive(Clone, Default)]
pub struct RobotsAgent {
    group: Group,
    deny_all: bool,
    crawl_delay: Option<Duration>,
    request_rate: Option<RequestRate>,
    /// The values, and those patterns that are not a prefix of their value.
    text: Box<str>,
    /// Sorted by prefix, then the most specific first.
    rules: Box<[Rule]>,
    prefixes: Box<[Prefix]>,
}

/// One rule, 32 bytes. A pattern in normal form has at most `u16::MAX` bytes; longer patterns match no realistic URL
/// and are left out.
#[derive(Clone, Copy)]
struct Rule {
    /// The pairs of neighbouring bytes that a path must contain; see [`pairs_of`]. 0 if the pattern has no star.
    pairs: u64,
    value_start: u32,
    pattern_start: u32,
    line: u32,
    value_length: u16,
    pattern_length: u16,
    prefix_length: u16,
    /// Number of octets of the pattern in normal form, including stars and `$`.
    specificity: u16,
    allow: bool,
    /// Whether the pattern ends with `$`.
    anchored: bool,
    /// Whether the pattern contains a `?`; it is then compared with another form of the path, see `normal`.
    query: bool,
}

/// A distinct literal prefix: where its rules begin (they end where those of the next prefix begin), and the longest
/// prefix that this one begins with.
#[derive(Clone, Copy)]
struct Prefix {
    first_rule: u32,
    parent: u32,
}

const NO_PARENT: u32 = u32::MAX;

/// Longer values are cut to this length for reports.
const MAX_REPORTED_VALUE: usize = 1000;

/// A rule as the parser returns it.
pub(super) struct RuleSource<'a> {
    pub(super) line: u32,
    pub(super) allow: bool,
    pub(super) value: &'a [u8],
}

impl RobotsAgent {
    /// Rules that allow everything; for a robots.txt with a 4xx status.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Rules that allow only `/robots.txt`; for a robots.txt that cannot be fetched.
    pub fn deny_all() -> Self {
        RobotsAgent { deny_all: true, ..Self::default() }
    }

    /// The groups of the file that these rules come from.
    pub fn group(&self) -> Group {
        self.group
    }

    /// Number of rules.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The `Crawl-delay`: finite, but not limited to a practical value. If groups differ, it is the longest one.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The `Request-rate`; if groups differ, it is the slowest one.
    pub fn request_rate(&self) -> Option<RequestRate> {
        self.request_rate
    }

    /// The time between two requests that the file asks for: the longer one of `Crawl-delay` and the interval of
    /// `Request-rate`.
    pub fn delay(&self) -> Option<Duration> {
        self.crawl_delay.max(self.request_rate.map(RequestRate::interval))
    }

    /// Bytes on the heap, for the memory accounting of a cache.
    pub fn heap_bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.rules) + size_of_val(&*self.prefixes)
    }

    /// [`decide`](Self::decide) about the path and query of `url`.
    pub fn decide_url(&self, url: &Url) -> Decision<'_> {
        self.decide(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Whether a path with its query (`/a/b?c=d`) may be requested, and which line decides.
    ///
    /// The matching pattern with the most octets decides; of two equally long ones the `Allow`. Matching is
    /// case-sensitive. Escapes are compared in normal form. `/robots.txt` itself is always allowed.
    pub fn decide(&self, path_and_query: &str) -> Decision<'_> {
        let path = if path_and_query.is_empty() { "/" } else { path_and_query };
        let path = normal(path.as_bytes(), Side::Path);
        if &*path == b"/robots.txt" {
            return Decision { allowed: true, line: None };
        }
        let mut best = None;
        if !self.rules.is_empty() {
            if forms_differ(&path) {
                let for_queries = normal(path_and_query.as_bytes(), Side::PathForQueries);
                self.find(&path, Some(false), &mut best);
                self.find(&for_queries, Some(true), &mut best);
            } else {
                self.find(&path, None, &mut best);
            }
        }
        match best {
            Some(rule) => Decision { allowed: rule.allow, line: Some(self.line(rule)) },
            None => Decision { allowed: !self.deny_all, line: None },
        }
    }

    pub(super) fn compile<'a>(group: Group, sources: impl Iterator<Item = RuleSource<'a>>) -> Self {
        let mut text = String::new();
        let mut rules: Vec<Rule> = sources.filter_map(|source| compile_rule(&source, &mut text)).collect();
        let pattern = |rule: &Rule| &text[rule.pattern_start as usize..][..rule.pattern_length as usize];
        let prefix = |rule: &Rule| &text[rule.pattern_start as usize..][..rule.prefix_length as usize];
        rules.sort_unstable_by(|a, b| {
            prefix(a)
                .cmp(prefix(b))
                .then(b.rank().cmp(&a.rank()))
                .then_with(|| (pattern(a), a.anchored, a.line).cmp(&(pattern(b), b.anchored, b.line)))
        });
        // Of equal rules the first line is kept.
        rules.dedup_by(|later, first| {
            (later.rank(), later.anchored) == (first.rank(), first.anchored)
                && pattern(later) == pattern(first)
        });
        let mut prefixes: Vec<Prefix> = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let first_of = |at: u32| prefix(&rules[prefixes[at as usize].first_rule as usize]);
            let last = prefixes.len() as u32;
            if last > 0 && first_of(last - 1) == prefix(rule) {
                continue;
            }
            // The parent is the previous prefix or one of its parents: in sorted order, everything that begins with a
            // prefix follows it directly.
            let mut parent = last.checked_sub(1).unwrap_or(NO_PARENT);
            while parent != NO_PARENT && !prefix(rule).starts_with(first_of(parent)) {
                parent = prefixes[parent as usize].parent;
            }
            prefixes.push(Prefix { first_rule: index as u32, parent });
        }
        RobotsAgent {
            group,
            text: text.into(),
            rules: rules.into(),
            prefixes: prefixes.into(),
            ..Self::default()
        }
    }

    pub(super) fn slow_to(&mut self, delay: Duration) {
        self.crawl_delay = self.crawl_delay.max(Some(delay));
    }

    pub(super) fn limit_to(&mut self, rate: RequestRate) {
        if self.request_rate.is_none_or(|known| rate.interval() > known.interval()) {
            self.request_rate = Some(rate);
        }
    }

    /// Stores the most specific rule that matches `path` in `best`, if it ranks above the current one. `query`
    /// restricts the search to rules with a `?`, or to rules without.
    fn find<'a>(&'a self, path: &[u8], query: Option<bool>, best: &mut Option<&'a Rule>) {
        let at_most_path = self.prefixes.partition_point(|prefix| self.prefix(prefix) <= path);
        let mut at = (at_most_path as u32).checked_sub(1).unwrap_or(NO_PARENT);
        let mut pairs = None;
        while at != NO_PARENT {
            let prefix = &self.prefixes[at as usize];
            if path.starts_with(self.prefix(prefix)) {
                for rule in self.rules_of(at) {
                    if best.is_some_and(|best| best.rank() >= rule.rank()) {
                        break;
                    }
                    if query.is_none_or(|query| query == rule.query) && self.matches(rule, path, &mut pairs) {
                        *best = Some(rule);
                        break;
                    }
                }
            }
            at = prefix.parent;
        }
    }

    /// Whether a rule matches a path that begins with its prefix. `pairs` is computed at first use.
    fn matches(&self, rule: &Rule, path: &[u8], pairs: &mut Option<u64>) -> bool {
        let pattern = self.pattern(rule);
        let prefix_length = rule.prefix_length as usize;
        if pattern.len() == prefix_length {
            return !rule.anchored || path.len() == prefix_length;
        }
        if rule.pairs & !*pairs.get_or_insert_with(|| pairs_of(path)) != 0 {
            return false;
        }
        // The rest after the prefix begins with a star and does not end with one.
        let mut pieces = pattern[prefix_length + 1..].split(|&b| b == b'*');
        let last = pieces.next_back().unwrap_or_default();
        let mut rest = &path[prefix_length..];
        for piece in pieces {
            match memmem::find(rest, piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        if rule.anchored { rest.ends_with(last) } else { memmem::find(rest, last).is_some() }
    }

    fn rules_of(&self, prefix: u32) -> &[Rule] {
        let start = self.prefixes[prefix as usize].first_rule as usize;
        let end =
            self.prefixes.get(prefix as usize + 1).map_or(self.rules.len(), |next| next.first_rule as usize);
        &self.rules[start..end]
    }

    fn prefix(&self, prefix: &Prefix) -> &[u8] {
        let rule = &self.rules[prefix.first_rule as usize];
        &self.pattern(rule)[..rule.prefix_length as usize]
    }

    fn pattern(&self, rule: &Rule) -> &[u8] {
        &self.text.as_bytes()[rule.pattern_start as usize..][..rule.pattern_length as usize]
    }

    fn line(&self, rule: &Rule) -> RuleLine<'_> {
        let value = &self.text[rule.value_start as usize..][..rule.value_length as usize];
        RuleLine { number: rule.line, allow: rule.allow, value }
    }
}

impl fmt::Debug for RobotsAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsAgent")
            .field("group", &self.group)
            .field("deny_all", &self.deny_all)
            .field("rules", &self.rules.len())
            .field("crawl_delay", &self.crawl_delay)
            .field("request_rate", &self.request_rate)
            .finish_non_exhaustive()
    }
}

impl Rule {
    /// Of two matching rules, the one with the greater rank decides.
    fn rank(&self) -> (u16, bool) {
        (self.specificity, self.allow)
    }
}

/// `None` for a value that cannot match: an empty one, or one that begins neither with `/` nor with `*`.
fn compile_rule(source: &RuleSource<'_>, text: &mut String) -> Option<Rule> {
    if !matches!(source.value.first(), Some(b'/' | b'*')) {
        return None;
    }
    let (value, mut anchored) = match source.value.strip_suffix(b"$") {
        Some(value) => (value, true),
        None => (source.value, false),
    };
    let normal = normal(value, Side::Pattern);
    let specificity = (normal.len() + usize::from(anchored)).min(u16::MAX as usize) as u16;
    let mut pattern = normal.into_owned();
    pattern.dedup_by(|later, first| *later == b'*' && *first == b'*');
    if pattern.last() == Some(&b'*') {
        // A star at the end has no effect, and makes a following `$` meaningless.
        pattern.pop();
        anchored = false;
    }
    let pattern = String::from_utf8(pattern).expect("the normal form is ASCII");
    let pattern_length = u16::try_from(pattern.len()).ok()?;
    let prefix_length = pattern.find('*').map_or(pattern_length, |star| star as u16);

    let reported = String::from_utf8_lossy(source.value);
    let reported = &reported[..reported.floor_char_boundary(MAX_REPORTED_VALUE)];
    let value_start = text.len() as u32;
    text.push_str(reported);
    let pattern_start = if reported.starts_with(&pattern) {
        value_start
    } else {
        let start = text.len() as u32;
        text.push_str(&pattern);
        start
    };
    let starred = prefix_length < pattern_length;
    Some(Rule {
        pairs: if starred {
            pattern.split('*').fold(0, |pairs, piece| pairs | pairs_of(piece.as_bytes()))
        } else {
            0
        },
        value_start,
        pattern_start,
        line: source.line,
        value_length: reported.len() as u16,
        pattern_length,
        prefix_length,
        specificity,
        allow: source.allow,
        anchored,
        query: pattern.contains('?'),
    })
}

/// The set of pairs of neighbouring bytes, each hashed to one of 64 bits. A path that lacks a pair of the pattern is
/// rejected at once, which keeps a file of 20,000 starred patterns cheap.
fn pairs_of(text: &[u8]) -> u64 {
    text.windows(2).fold(0, |pairs, pair| {
        let both = u32::from(pair[0]) << 8 | u32::from(pair[1]);
        pairs | 1 << (both.wrapping_mul(0x9E37_79B1) >> 26)
    })
}
