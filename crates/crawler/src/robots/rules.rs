//! The rules of one crawler, indexed: which line decides about a path.
//!
//! Each pattern has a literal prefix, up to its first `*`. Rules are sorted by prefix, and each distinct prefix knows
//! the longest other one that it begins with. A path then finds all prefixes that it begins with by one binary search
//! and a walk up that chain; 20,000 rules cost as much as 15. Behind the prefix a pattern is matched piece by piece,
//! each at its first place after the one before, which never goes back in the path: linear for any number of stars.

use std::fmt;
use std::time::Duration;

use memchr::memmem;
use url::{Position, Url};

use super::normal::{Side, forms_differ, normal};
use super::parse::RequestRate;

/// Which groups of a file a crawler obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Group {
    /// None: there is no file, or it speaks of others only.
    #[default]
    None,
    /// Those of `*`.
    Any,
    /// Those that name the crawler.
    Named,
}

/// The answer about one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether the path may be requested.
    pub allowed: bool,
    /// The line that decided; nothing when no line matched, or when the path is `/robots.txt`.
    pub line: Option<RuleLine<'a>>,
}

/// A line of the file. It displays as `Disallow: /private`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleLine<'a> {
    /// Its number in the file, from 1.
    pub number: u32,
    /// Whether it is an `Allow`.
    pub allow: bool,
    /// Its value as written, without comment and white space; the first 1,000 bytes or so of a very long one.
    pub value: &'a str,
}

impl fmt::Display for RuleLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.allow { "Allow" } else { "Disallow" }, self.value)
    }
}

/// The rules of one file for one crawler.
///
/// It holds nothing of the other groups: about 32 bytes per rule and the text of the values. The default has no rules
/// and allows everything, which is what a missing file means.
#[derive(Clone, Default)]
pub struct RobotsAgent {
    group: Group,
    deny_all: bool,
    crawl_delay: Option<Duration>,
    request_rate: Option<RequestRate>,
    /// Values, and patterns where they are not a prefix of their value.
    text: Box<str>,
    /// By prefix, then the most specific first.
    rules: Box<[Rule]>,
    prefixes: Box<[Prefix]>,
}

/// One rule, 32 bytes. A pattern in normal form has no more than `u16::MAX` bytes: longer ones match no address
/// that anybody follows, and are left out.
#[derive(Clone, Copy)]
struct Rule {
    /// The pairs of neighbouring bytes that a path must have, see [`pairs_of`]. 0 when there is no star.
    pairs: u64,
    value_start: u32,
    pattern_start: u32,
    line: u32,
    value_length: u16,
    pattern_length: u16,
    prefix_length: u16,
    /// Octets of the pattern in normal form, with stars and `$`.
    specificity: u16,
    allow: bool,
    /// Ends with `$`.
    anchored: bool,
    /// Has a `?`: is compared with another form of the path, see `normal`.
    query: bool,
}

/// A distinct literal prefix: where its rules begin (they end where the next prefix's begin), and the longest
/// prefix that this one begins with.
#[derive(Clone, Copy)]
struct Prefix {
    first_rule: u32,
    parent: u32,
}

const NO_PARENT: u32 = u32::MAX;

/// Of values longer than this only the beginning is kept for reports.
const MAX_REPORTED_VALUE: usize = 1000;

/// A rule as the parser found it.
pub(super) struct RuleSource<'a> {
    pub(super) line: u32,
    pub(super) allow: bool,
    pub(super) value: &'a [u8],
}

impl RobotsAgent {
    /// Allows everything, as for a file that answers with 4xx.
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Allows nothing but `/robots.txt`, as for a file that cannot be reached.
    pub fn deny_all() -> Self {
        RobotsAgent { deny_all: true, ..Self::default() }
    }

    /// Which groups of the file these rules come from.
    pub fn group(&self) -> Group {
        self.group
    }

    /// How many rules there are.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }

    /// The `Crawl-delay`: finite, but not clamped to what a crawler can stand. The longest one where groups differ.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The `Request-rate`, the slowest one where groups differ.
    pub fn request_rate(&self) -> Option<RequestRate> {
        self.request_rate
    }

    /// The time between two requests that the file asks for: the longer one of `Crawl-delay` and what follows from
    /// `Request-rate`.
    pub fn delay(&self) -> Option<Duration> {
        self.crawl_delay.max(self.request_rate.map(RequestRate::interval))
    }

    /// Bytes on the heap, for the accounts of a cache.
    pub fn heap_bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.rules) + size_of_val(&*self.prefixes)
    }

    /// [`decide`](Self::decide) about the path and query of `url`.
    pub fn decide_url(&self, url: &Url) -> Decision<'_> {
        self.decide(&url[Position::BeforePath..Position::AfterQuery])
    }

    /// Whether a path with its query (`/a/b?c=d`) may be requested, and by which line.
    ///
    /// The pattern with the most octets decides; of two equally long ones the `Allow`. Upper and lower case differ.
    /// Escapes are compared in normal form. `/robots.txt` itself is always allowed.
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
        // Of equal rules the first line is reported.
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
            // The parent is the one before, or one of its parents: sorted, everything that begins with a prefix
            // follows it directly.
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

    /// Puts the most specific rule that matches `path` into `best`, if it beats what is there. `query` restricts the
    /// search to the rules with a `?`, or to those without.
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

    /// Whether a rule matches a path that begins with its prefix. `pairs` is filled on first use.
    fn matches(&self, rule: &Rule, path: &[u8], pairs: &mut Option<u64>) -> bool {
        let pattern = self.pattern(rule);
        let prefix_length = rule.prefix_length as usize;
        if pattern.len() == prefix_length {
            return !rule.anchored || path.len() == prefix_length;
        }
        if rule.pairs & !*pairs.get_or_insert_with(|| pairs_of(path)) != 0 {
            return false;
        }
        // What follows the prefix begins with a star and does not end with one.
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
    /// Of two rules that match, the greater one decides.
    fn rank(&self) -> (u16, bool) {
        (self.specificity, self.allow)
    }
}

/// Nothing for a value that cannot match: an empty one, or one that begins neither with `/` nor with `*`.
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
        // A star at the end says nothing, and takes the meaning from a `$` behind it.
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

/// A set of the pairs of neighbouring bytes, each hashed to one of 64 bits. A path without a pair that a pattern
/// needs is refused at once; that keeps a file of 20,000 starred patterns cheap.
fn pairs_of(text: &[u8]) -> u64 {
    text.windows(2).fold(0, |pairs, pair| {
        let both = u32::from(pair[0]) << 8 | u32::from(pair[1]);
        pairs | 1 << (both.wrapping_mul(0x9E37_79B1) >> 26)
    })
}
