//! Parses the bytes of a robots.txt into groups of lines.

use std::time::Duration;

use url::Url;

use super::rules::{Group, RobotsAgent, RuleSource};

/// Number of bytes of a file that are read. RFC 9309 (section 2.5) requires at least 500 KiB.
pub const MAX_BYTES: usize = 512 * 1024;

/// A parsed robots.txt, with the groups of all crawlers.
///
/// It stores the whole file (at most [`MAX_BYTES`]); a crawl should keep the [`RobotsAgent`] and drop this value.
#[derive(Clone, Default)]
pub struct Robots {
    /// The file without byte order mark and NULs; all positions refer to it.
    text: Box<[u8]>,
    groups: Vec<ParsedGroup>,
    sitemaps: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start as usize..self.end as usize]
    }
}

#[derive(Clone, Default)]
struct ParsedGroup {
    agents: Vec<Span>,
    rules: Vec<ParsedRule>,
    delays: Vec<ParsedDelay>,
}

#[derive(Clone, Copy)]
struct ParsedRule {
    line: u32,
    allow: bool,
    value: Span,
}

/// A `Crawl-delay` or `Request-rate`. It applies to the agents named above it: such a line does not end the list of
/// agents (RFC 9309, section 2.2.4), but authors do not mean the agents below it.
#[derive(Clone, Copy)]
struct ParsedDelay {
    agents_before: usize,
    delay: Delay,
}

#[derive(Clone, Copy)]
enum Delay {
    Crawl(Duration),
    Rate(RequestRate),
}

/// `Request-rate: 1/10`: a number of requests per time. A following window of the day (`1/10 0600-0845`) is ignored:
/// the rate applies all day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRate {
    /// Number of requests, at least 1.
    pub requests: u32,
    /// The length of the interval.
    pub per: Duration,
}

impl RequestRate {
    /// The time from one request to the next.
    pub fn interval(self) -> Duration {
        self.per / self.requests
    }
}

/// The longest delay that a file can ask for; a longer one means "never".
const MAX_DELAY: Duration = Duration::from_secs(u32::MAX as u64);

enum Line {
    Agent(Span),
    Rule { allow: bool, value: Span },
    Delay(Delay),
    Sitemap(Span),
}

impl Robots {
    /// Parses a file. There are no errors: lines that are not understood are ignored.
    ///
    /// If the body exceeds [`MAX_BYTES`], only its first part is used, without the line that the limit cuts. Lines
    /// end with CR, LF or both. A byte order mark and NULs are dropped (so UTF-16 files of ASCII text can be read,
    /// too), and invalid UTF-8 is compared byte by byte. A body that begins like HTML or XML has no rules.
    pub fn parse(body: &[u8]) -> Robots {
        let text = readable_part(body);
        if text.trim_ascii_start().first() == Some(&b'<') {
            return Robots::default();
        }
        let mut robots = Robots { text: text.into(), ..Robots::default() };
        let mut open = ParsedGroup::default();
        for (number, span) in lines(&robots.text) {
            match parse_line(&robots.text, span) {
                None => {}
                Some(Line::Agent(token)) => {
                    if !open.rules.is_empty() {
                        robots.groups.push(std::mem::take(&mut open));
                    }
                    open.agents.push(token);
                }
                Some(Line::Sitemap(value)) if value.start == value.end => {}
                Some(Line::Sitemap(value)) => robots.sitemaps.push(value),
                // Rules above the first agent apply to no agent.
                Some(_) if open.agents.is_empty() => {}
                Some(Line::Rule { allow, value }) => {
                    open.rules.push(ParsedRule { line: number, allow, value })
                }
                Some(Line::Delay(delay)) => {
                    open.delays.push(ParsedDelay { agents_before: open.agents.len(), delay });
                }
            }
        }
        if !open.agents.is_empty() {
            robots.groups.push(open);
        }
        robots
    }

    /// The rules for one crawler, given by its product token or its whole `User-Agent` (see [`product_token`]).
    ///
    /// All groups that name the token are merged. If there are none, the groups of `*` apply; if there are none of
    /// them either, everything is allowed (RFC 9309, section 2.2.1). A group that names the token but has no rules
    /// allows everything.
    pub fn agent(&self, user_agent: &str) -> RobotsAgent {
        let token = product_token(user_agent);
        let named = |agent: &[u8]| !token.is_empty() && agent.eq_ignore_ascii_case(token.as_bytes());
        let any = |agent: &[u8]| agent == b"*";
        let (group, chosen) = match self.groups_of(&named) {
            groups if !groups.is_empty() => (Group::Named, groups),
            _ => match self.groups_of(&any) {
                groups if !groups.is_empty() => (Group::Any, groups),
                _ => (Group::None, Vec::new()),
            },
        };
        let sources = chosen.iter().flat_map(|(group, _)| &group.rules).map(|rule| RuleSource {
            line: rule.line,
            allow: rule.allow,
            value: self.bytes(rule.value),
        });
        let mut agent = RobotsAgent::compile(group, sources);
        for (parsed, position) in chosen {
            for delay in parsed.delays.iter().filter(|delay| position < delay.agents_before) {
                match delay.delay {
                    Delay::Crawl(delay) => agent.slow_to(delay),
                    Delay::Rate(rate) => agent.limit_to(rate),
                }
            }
        }
        agent
    }

    /// The URLs of all `Sitemap:` lines in their order, without repetitions; relative ones are resolved against
    /// `base` (the URL of the robots.txt). They belong to no group. Lines without an HTTP URL are left out.
    pub fn sitemaps(&self, base: &Url) -> Vec<Url> {
        let mut seen = std::collections::HashSet::new();
        self.sitemaps
            .iter()
            .filter_map(|&span| base.join(&String::from_utf8_lossy(self.bytes(span))).ok())
            .filter(|url| matches!(url.scheme(), "http" | "https") && seen.insert(url.clone()))
            .collect()
    }

    /// The product tokens that the file names, as written, including `*`; for reports.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.groups
            .iter()
            .flat_map(|group| &group.agents)
            .filter_map(|&span| std::str::from_utf8(self.bytes(span)).ok())
            .filter(|agent| !agent.is_empty())
    }

    /// The groups with an agent that `wanted` accepts, each with the position of its first such agent.
    fn groups_of(&self, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<(&ParsedGroup, usize)> {
        let position = |group: &ParsedGroup| group.agents.iter().position(|&span| wanted(self.bytes(span)));
        self.groups.iter().filter_map(|group| Some((group, position(group)?))).collect()
    }

    fn bytes(&self, span: Span) -> &[u8] {
        span.of(&self.text)
    }
}

impl std::fmt::Debug for Robots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Robots")
            .field("bytes", &self.text.len())
            .field("groups", &self.groups.len())
            .field("rules", &self.groups.iter().map(|group| group.rules.len()).sum::<usize>())
            .field("sitemaps", &self.sitemaps.len())
            .finish()
    }
}

/// The name by which a robots.txt addresses a crawler: `huntsman` of `Huntsman/1.0 (+https://example.com)`.
///
/// It is the run of letters, digits, `-` and `_` at the start. (RFC 9309 does not allow digits, but real crawlers
/// have them, and cutting `bot2` to `bot` would apply another crawler's rules.) In a browser-like `Mozilla/5.0
/// (compatible; name/1.0; ...)` it is the name after `compatible;`.
///
/// ```
/// use huntsman_crawler::robots::product_token;
///
/// assert_eq!(product_token("huntsman/0.1 (+https://example.com)"), "huntsman");
/// assert_eq!(product_token("Mozilla/5.0 (compatible; huntsman/0.1)"), "huntsman");
/// ```
pub fn product_token(user_agent: &str) -> &str {
    let user_agent = user_agent.trim();
    let token = leading_token(user_agent);
    if token.eq_ignore_ascii_case("mozilla")
        && let Some(at) = user_agent.find("(compatible;")
    {
        let inner = leading_token(user_agent[at + "(compatible;".len()..].trim_start());
        if !inner.is_empty() {
            return inner;
        }
    }
    token
}

fn leading_token(text: &str) -> &str {
    &text[..token_length(text.as_bytes())]
}

fn token_length(text: &[u8]) -> usize {
    text.iter().position(|&b| !is_token_byte(b)).unwrap_or(text.len())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The bytes that are parsed: up to the limit, without byte order mark and NULs.
pub(super) fn readable_part(body: &[u8]) -> Vec<u8> {
    let cut = if body.len() > MAX_BYTES {
        let kept = &body[..MAX_BYTES];
        // The limit may be right after the end of a line; then nothing is lost.
        let end = kept.iter().rposition(|&b| matches!(b, b'\n' | b'\r')).map_or(0, |end| end + 1);
        &kept[..end]
    } else {
        body
    };
    let text = [&b"\xEF\xBB\xBF"[..], b"\xFF\xFE", b"\xFE\xFF"]
        .iter()
        .find_map(|mark| cut.strip_prefix(*mark))
        .unwrap_or(cut);
    text.iter().copied().filter(|&b| b != 0).collect()
}

/// The lines of the text with their numbers from 1.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = (u32, Span)> {
    let mut start = 0;
    let mut number = 0;
    std::iter::from_fn(move || {
        if start > text.len() {
            return None;
        }
        let end = memchr::memchr2(b'\n', b'\r', &text[start..]).map_or(text.len(), |length| start + length);
        let span = Span { start: start as u32, end: end as u32 };
        start = if text[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        number += 1;
        Some((number, span))
    })
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    Agent,
    Disallow,
    Allow,
    Sitemap,
    Delay,
    Rate,
}

impl Meant {
    /// What a key in lower case means, and whether it is spelled as the standards do. Google's documentation of its parser calls the other
    /// spellings frequent, and accepts the lines.
    pub(super) fn of(key: &[u8]) -> Option<(Self, bool)> {
        Some(match key {
            b"user-agent" => (Self::Agent, true),
            b"useragent" | b"user agent" => (Self::Agent, false),
            b"disallow" => (Self::Disallow, true),
            b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw" => (Self::Disallow, false),
            b"allow" => (Self::Allow, true),
            b"sitemap" => (Self::Sitemap, true),
            b"site-map" | b"sitemaps" => (Self::Sitemap, false),
            b"crawl-delay" => (Self::Delay, true),
            b"crawldelay" | b"crawl delay" => (Self::Delay, false),
            b"request-rate" => (Self::Rate, true),
            b"request rate" => (Self::Rate, false),
            _ => return None,
        })
    }
}

/// A line without the comment at its end.
pub(super) fn without_comment(line: &[u8]) -> &[u8] {
    &line[..memchr::memchr(b'#', line).unwrap_or(line.len())]
}

/// Whether the value of a `User-agent` names a robot, or all of them.
pub(super) fn is_agent(value: &[u8]) -> bool {
    !agent_of(value).is_empty()
}

fn parse_line(text: &[u8], span: Span) -> Option<Line> {
    let (key, value) = key_and_value(without_comment(span.of(text)))?;
    // The value is a part of the text, so its position is kept instead of a copy.
    let span_of = |part: &[u8]| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        Span { start: start as u32, end: (start + part.len()) as u32 }
    };
    let (meant, _) = Meant::of(clean_key(key, &mut [0; MAX_KEY])?)?;
    Some(match meant {
        Meant::Agent => Line::Agent(span_of(agent_of(value))),
        Meant::Disallow => Line::Rule { allow: false, value: span_of(value) },
        Meant::Allow => Line::Rule { allow: true, value: span_of(value) },
        Meant::Sitemap => Line::Sitemap(span_of(value)),
        Meant::Delay => Line::Delay(Delay::Crawl(seconds(value)?)),
        Meant::Rate => Line::Delay(Delay::Rate(request_rate(value)?)),
    })
}

/// Splits a line at its colon. Without a colon two words are taken as a key and a value (`Disallow /x`), as Google
/// does.
pub(super) fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(colon) = memchr::memchr(b':', line) {
        return Some((&line[..colon], trim(&line[colon + 1..])));
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    match (words.next(), words.next(), words.next()) {
        (Some(key), Some(value), None) => Some((key, value)),
        _ => None,
    }
}

pub(super) const MAX_KEY: usize = 16;

/// The key in lower case, without characters other than printable ASCII: a stray byte order mark or no-break space
/// before a key should not lose the line. `None` if it is longer than all known keys.
pub(super) fn clean_key<'a>(key: &[u8], buffer: &'a mut [u8; MAX_KEY]) -> Option<&'a [u8]> {
    let mut length = 0;
    for &byte in key.trim_ascii().iter().filter(|b| b.is_ascii_graphic() || **b == b' ') {
        *buffer.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
    }
    Some(buffer[..length].trim_ascii())
}

/// The value without white space at both ends, including white space outside ASCII.
fn trim(value: &[u8]) -> &[u8] {
    // No-break space, ideographic space, zero-width space, byte order mark: characters that text editors and web
    // pages leave behind.
    const WIDE: [&[u8]; 4] = [b"\xC2\xA0", b"\xE3\x80\x80", b"\xE2\x80\x8B", b"\xEF\xBB\xBF"];
    let mut value = value.trim_ascii();
    while let Some(shorter) =
        WIDE.iter().find_map(|wide| value.strip_prefix(*wide).or_else(|| value.strip_suffix(*wide)))
    {
        value = shorter.trim_ascii();
    }
    value
}

/// The product token of a `User-agent` value: versions and other text after it are ignored (`bot/1.0`, `bot*`). A
/// star means "any" only if no token byte follows: `*bot` matches no crawler, as for Google.
fn agent_of(value: &[u8]) -> &[u8] {
    match value {
        [b'*', next, ..] if is_token_byte(*next) => &value[..0],
        [b'*', ..] => &value[..1],
        _ => &value[..token_length(value)],
    }
}

/// The number at the start of the value, in seconds. `None` if there is no number; a number that is too large becomes
/// [`MAX_DELAY`].
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let length = value.iter().position(|b| !(b.is_ascii_digit() || *b == b'.')).unwrap_or(value.len());
    let number: f64 = std::str::from_utf8(&value[..length]).ok()?.parse().ok()?;
    Some(Duration::try_from_secs_f64(number).map_or(MAX_DELAY, |delay| delay.min(MAX_DELAY)))
}

fn request_rate(value: &[u8]) -> Option<RequestRate> {
    let value = std::str::from_utf8(value).ok()?;
    let (requests, per) = value.split_once('/')?;
    let requests: u32 = requests.trim().parse().ok().filter(|&n| n > 0)?;
    let per = per.trim_start();
    let digits = per.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(per.len());
    let number: u64 = per[..digits].parse().ok().filter(|&n| n > 0)?;
    let unit = match per[digits..].bytes().next().map(|b| b.to_ascii_lowercase()) {
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 86_400,
        _ => 1,
    };
    Some(RequestRate { requests, per: Duration::from_secs(number.saturating_mul(unit)).min(MAX_DELAY) })
}
