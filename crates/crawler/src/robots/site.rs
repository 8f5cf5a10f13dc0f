//! The robots.txt of a site as a whole: what the status of its response means, and its verdicts on paths.

use url::{Position, Url};

use super::{Robots, RobotsAgent};

/// What a response to a request for robots.txt means for the whole site (RFC 9309, 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// 2xx: the rules in the file apply.
    Parsed,
    /// 4xx: there are no rules.
    AllowAll,
    /// 429, 5xx or any other status: everything is forbidden for now.
    DisallowAll,
}

impl Meaning {
    /// The meaning of a status.
    pub fn of_status(status: http::StatusCode) -> Self {
        match status {
            _ if status.is_success() => Self::Parsed,
            http::StatusCode::TOO_MANY_REQUESTS => Self::DisallowAll,
            _ if status.is_client_error() => Self::AllowAll,
            _ => Self::DisallowAll,
        }
    }

    /// The name in snake case: `parsed`, `allow_all` or `disallow_all`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parsed => "parsed",
            Self::AllowAll => "allow_all",
            Self::DisallowAll => "disallow_all",
        }
    }

    /// The rules of a crawler, by this meaning and the file.
    pub fn rules(self, robots: &Robots, agent: &str) -> RobotsAgent {
        match self {
            Self::Parsed => robots.agent(agent),
            Self::AllowAll => RobotsAgent::allow_all(),
            Self::DisallowAll => RobotsAgent::deny_all(),
        }
    }
}

/// Whether a path may be fetched, and the line that decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathVerdict {
    /// The path or URL as it was given.
    pub path: String,
    /// Whether it may be fetched.
    pub is_allowed: bool,
    /// Number and text of the deciding line; `None` if no rule matches.
    pub line: Option<(u32, String)>,
}

impl PathVerdict {
    /// The verdict on a path, with or without the slash at its beginning, or on a URL of the site.
    pub fn of(path: &str, rules: &RobotsAgent) -> Self {
        let target = match Url::parse(path) {
            Ok(url) if url.has_host() => url[Position::BeforePath..Position::AfterQuery].to_owned(),
            _ if path.starts_with('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        let decision = rules.decide(&target);
        let line = decision.line.map(|line| (line.number, line.to_string()));
        Self { path: path.to_owned(), is_allowed: decision.allowed, line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_decides_for_the_whole_site() {
        let robots = Robots::parse(b"User-agent: *\nDisallow: /a\n");
        for (status, path, is_allowed) in [
            (200, "a/b", false),
            (204, "/", true),
            (404, "/a", true),
            (429, "/", false),
            (503, "/", false),
            (302, "/", false),
        ] {
            let meaning = Meaning::of_status(http::StatusCode::from_u16(status).unwrap());
            let rules = meaning.rules(&robots, "bot");
            assert_eq!(PathVerdict::of(path, &rules).is_allowed, is_allowed, "{status} {path}");
        }
    }

    #[test]
    fn a_verdict_names_the_line() {
        let rules = Robots::parse(b"User-agent: *\nDisallow: /a\n").agent("bot");
        let verdict = PathVerdict::of("https://example.org/a?x=1#y", &rules);
        assert_eq!((verdict.is_allowed, verdict.line), (false, Some((2, "Disallow: /a".to_owned()))));
    }
}
