//! What is wrong with the lines of a robots.txt, for people who mend it. A crawl reads around these faults.

use url::Url;

use super::parse::{MAX_KEY, Meant};
use super::parse::{clean_key, is_agent, key_and_value, lines, readable_part, seconds, without_comment};

/// Characters of a line that a fault shows.
const MAX_SHOWN: usize = 160;

/// A line of a robots.txt that robots read in different ways, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobotsFault {
    /// The number of the line, from 1.
    pub line: u32,
    /// The line without its comment, at most 160 characters.
    pub text: String,
    /// What is wrong with it.
    pub kind: RobotsFaultKind,
}

/// What is wrong with a line of a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobotsFaultKind {
    /// The file is HTML or XML, and has no rules.
    Markup,
    /// The line is not in UTF-8 (RFC 9309, section 2.3).
    Encoding,
    /// The line has no colon, and is no comment.
    NoColon,
    /// The key is a frequent typing error of a known one, which only some robots forgive.
    Misspelled,
    /// A rule stands above the first `User-agent`, so it is for nobody.
    NoAgent,
    /// A `User-agent` names no robot.
    EmptyAgent,
    /// A path begins neither with a slash nor with a star.
    Path,
    /// A `Sitemap` has no absolute http or https URL.
    SitemapUrl,
    /// A `Crawl-delay` has no number.
    Delay,
}

impl RobotsFaultKind {
    /// What is wrong, in a few words after which the line can stand.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Markup => "it is HTML or XML",
            Self::Encoding => "no UTF-8",
            Self::NoColon => "no colon",
            Self::Misspelled => "misspelled key",
            Self::NoAgent => "no User-agent above",
            Self::EmptyAgent => "no name of a robot",
            Self::Path => "a path that does not begin with a slash",
            Self::SitemapUrl => "no absolute URL",
            Self::Delay => "no number",
        }
    }
}

/// The faults of a robots.txt, in the order of its lines. Keys that no standard knows are none: other records are allowed (RFC 9309, section
/// 2.2.4). What is beyond [`MAX_BYTES`](super::MAX_BYTES) is not looked at.
///
/// ```
/// use huntsman_crawler::robots::{RobotsFaultKind, faults};
///
/// let found = faults(b"User-agent: *\nDisallow: private\nClean-param: sid /\n");
/// assert_eq!((found[0].line, found[0].kind), (2, RobotsFaultKind::Path));
/// assert_eq!(found.len(), 1);
/// ```
pub fn faults(body: &[u8]) -> Vec<RobotsFault> {
    let text = readable_part(body);
    if text.trim_ascii_start().first() == Some(&b'<') {
        return vec![RobotsFault { line: 1, text: shown(first_line(&text)), kind: RobotsFaultKind::Markup }];
    }
    let mut has_agent = false;
    let mut found = Vec::new();
    for (number, span) in lines(&text) {
        let line = without_comment(span.of(&text)).trim_ascii();
        if line.is_empty() {
            continue;
        }
        if let Some(kind) = fault(line, &mut has_agent) {
            found.push(RobotsFault { line: number, text: shown(line), kind });
        }
    }
    found
}

fn first_line(text: &[u8]) -> &[u8] {
    text.trim_ascii_start().split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default()
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.trim_ascii()).chars().take(MAX_SHOWN).collect()
}

/// What is wrong with a line that is not empty. `has_agent` is whether a `User-agent` stands above it.
fn fault(line: &[u8], has_agent: &mut bool) -> Option<RobotsFaultKind> {
    use RobotsFaultKind as Fault;
    if std::str::from_utf8(line).is_err() {
        return Some(Fault::Encoding);
    }
    if !line.contains(&b':') {
        return Some(Fault::NoColon);
    }
    let (key, value) = key_and_value(line)?;
    let mut buffer = [0; MAX_KEY];
    let (meant, is_exact) = Meant::of(clean_key(key, &mut buffer)?)?;
    let fault = match meant {
        Meant::Agent => {
            *has_agent = true;
            (!is_agent(value)).then_some(Fault::EmptyAgent)
        }
        Meant::Disallow | Meant::Allow if !*has_agent => Some(Fault::NoAgent),
        Meant::Disallow | Meant::Allow => {
            let is_path = matches!(value.first(), None | Some(b'/' | b'*'));
            (!is_path).then_some(Fault::Path)
        }
        Meant::Sitemap => {
            let url = std::str::from_utf8(value).ok().and_then(|value| Url::parse(value).ok());
            let is_url = url.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
            (!is_url).then_some(Fault::SitemapUrl)
        }
        Meant::Delay => seconds(value).is_none().then_some(Fault::Delay),
        Meant::Rate => None,
    };
    fault.or((!is_exact).then_some(Fault::Misspelled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &[u8]) -> Vec<(u32, RobotsFaultKind)> {
        faults(text).into_iter().map(|fault| (fault.line, fault.kind)).collect()
    }

    #[test]
    fn each_fault_is_told_with_its_line() {
        use RobotsFaultKind as Fault;
        let text = b"Disallow: /a\nUser-agent:\nUser-agent: *\nDissallow: /b\nDisallow /c\nAllow: d\nCrawl-delay: soon\n\
            Sitemap: /sitemap.xml\nDisallow: /caf\xe9 # by hand\n";
        let expected = [
            (1, Fault::NoAgent),
            (2, Fault::EmptyAgent),
            (4, Fault::Misspelled),
            (5, Fault::NoColon),
            (6, Fault::Path),
            (7, Fault::Delay),
            (8, Fault::SitemapUrl),
            (9, Fault::Encoding),
        ];
        assert_eq!(kinds(text), expected);
        assert_eq!(faults(text)[7].text, "Disallow: /caf\u{fffd}", "without the comment");
        assert_eq!(kinds(b"\n <!doctype html>\n<p>gone"), [(1, Fault::Markup)]);
    }

    #[test]
    fn what_robots_agree_on_is_no_fault() {
        let text = "\u{feff}# Caf\u{e9}\r\nUser-agent: *\r\nUser-agent: bot/2\r\nDisallow:\r\nALLOW : *.css$\r\n\r\nCrawl-delay: 1.5\r\n\
            Request-rate: 1/10\r\nHost: example.org\r\nClean-param: sid /\r\nSitemap: https://example.org/a.xml\r\n";
        assert_eq!(kinds(text.as_bytes()), []);
        assert_eq!(kinds(b""), []);
        assert_eq!(kinds(b"Sitemap: https://example.org/a.xml"), []);
        // A comment may be in any encoding.
        assert_eq!(kinds(b"# caf\xe9\nUser-agent: *\nDisallow: /"), []);
    }

    #[test]
    fn long_lines_are_cut_for_people() {
        let found = faults(format!("User-agent: *\n{}", "x".repeat(10_000)).as_bytes());
        assert_eq!((found.len(), found[0].text.len()), (1, 160));
    }
}
