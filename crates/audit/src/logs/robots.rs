//! Robots by the names that they give in their User-Agent, and the addresses that their operators publish.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use huntsman_crawler::{Error, Result, nearest};
use serde_json::Value;

/// What a robot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Search,
    Model,
    Tool,
    Preview,
    Archive,
    Monitor,
    Other,
}

impl Purpose {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Model => "language models",
            Self::Tool => "tools for sites",
            Self::Preview => "previews",
            Self::Archive => "archives",
            Self::Monitor => "monitoring",
            Self::Other => "other",
        }
    }
}

/// A robot: what its User-Agent contains, without regard to case, and what it is for. Of several that are contained the first one counts.
///
/// The names are those that the operators publish (2026-11).
const ROBOTS: &[(&str, Purpose)] = {
    use Purpose::{Archive, Model, Monitor, Other, Preview, Search, Tool};
    &[
        ("Googlebot-Image", Search),
        ("Googlebot-Video", Search),
        ("Googlebot-News", Search),
        ("Google-InspectionTool", Tool),
        ("Googlebot", Search),
        ("GoogleOther", Other),
        ("Storebot-Google", Search),
        ("AdsBot-Google", Search),
        ("Mediapartners-Google", Search),
        ("APIs-Google", Other),
        ("FeedFetcher-Google", Search),
        ("BingPreview", Preview),
        ("adidxbot", Search),
        ("bingbot", Search),
        ("DuckDuckBot", Search),
        ("DuckAssistBot", Model),
        ("Slurp", Search),
        ("YandexBot", Search),
        ("Yandex", Search),
        ("Baiduspider", Search),
        ("Sogou", Search),
        ("360Spider", Search),
        ("PetalBot", Search),
        ("SeznamBot", Search),
        ("Qwantbot", Search),
        ("MojeekBot", Search),
        ("Yeti", Search),
        ("coccocbot", Search),
        ("Applebot", Search),
        ("Amazonbot", Search),
        ("GPTBot", Model),
        ("ChatGPT-User", Model),
        ("OAI-SearchBot", Model),
        ("ClaudeBot", Model),
        ("Claude-User", Model),
        ("Claude-SearchBot", Model),
        ("anthropic-ai", Model),
        ("PerplexityBot", Model),
        ("Perplexity-User", Model),
        ("meta-externalagent", Model),
        ("Bytespider", Model),
        ("cohere-ai", Model),
        ("MistralAI-User", Model),
        ("YouBot", Model),
        ("Diffbot", Model),
        ("CCBot", Archive),
        ("archive.org_bot", Archive),
        ("ia_archiver", Archive),
        ("heritrix", Archive),
        ("AhrefsSiteAudit", Tool),
        ("AhrefsBot", Tool),
        ("SemrushBot", Tool),
        ("SiteAuditBot", Tool),
        ("MJ12bot", Tool),
        ("DotBot", Tool),
        ("rogerbot", Tool),
        ("BLEXBot", Tool),
        ("DataForSeoBot", Tool),
        ("serpstatbot", Tool),
        ("Barkrowler", Tool),
        ("SISTRIX", Tool),
        ("Screaming Frog", Tool),
        ("Huntsman", Tool),
        ("facebookexternalhit", Preview),
        ("Twitterbot", Preview),
        ("LinkedInBot", Preview),
        ("Pinterestbot", Preview),
        ("Slackbot", Preview),
        ("Discordbot", Preview),
        ("TelegramBot", Preview),
        ("WhatsApp", Preview),
        ("redditbot", Preview),
        ("UptimeRobot", Monitor),
        ("Pingdom", Monitor),
        ("StatusCake", Monitor),
        ("BetterStack", Monitor),
    ]
};

/// Parts of User-Agents of robots that are in no list.
const MARKS: [&str; 4] = ["bot", "crawl", "spider", "+http"];
/// User-Agents whose robots are remembered.
const MAX_KNOWN: usize = 10_000;

/// What a request is from: a robot of the list, another robot, a browser or program, or a line that does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Agent(pub(super) u16);

impl Agent {
    /// The line has no User-Agent.
    pub(crate) const UNKNOWN: Self = Self(0);
    /// A browser, or a program that does not say that it is a robot.
    pub(crate) const READER: Self = Self(1);
    /// A robot that is not in the list.
    pub(crate) const OTHER: Self = Self(2);
    const FIRST: u16 = 3;

    fn listed(self) -> Option<&'static (&'static str, Purpose)> {
        ROBOTS.get(usize::from(self.0.checked_sub(Self::FIRST)?))
    }

    pub(crate) fn is_robot(self) -> bool {
        self.0 >= Self::OTHER.0
    }

    pub(crate) fn name(self) -> &'static str {
        match (self, self.listed()) {
            (_, Some((name, _))) => name,
            (Self::UNKNOWN, _) => "no User-Agent",
            (Self::READER, _) => "browsers and programs",
            _ => "other robots",
        }
    }

    pub(crate) fn purpose(self) -> Option<Purpose> {
        self.listed().map(|(_, purpose)| *purpose).or_else(|| (self == Self::OTHER).then_some(Purpose::Other))
    }

    /// The robot of the list with this name.
    fn named(name: &str) -> Result<Self> {
        let at = ROBOTS.iter().position(|(known, _)| known.eq_ignore_ascii_case(name));
        at.and_then(|at| u16::try_from(at).ok()).map(|at| Self(at + Self::FIRST)).ok_or_else(|| {
            let shown = name.escape_debug();
            let near = nearest(name, ROBOTS.iter().map(|(known, _)| *known));
            let advice = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            Error::usage(format!("there is no robot \"{shown}\" in the list{advice}"))
        })
    }

    fn of(agent: &str) -> Self {
        let agent = agent.to_ascii_lowercase();
        let listed = ROBOTS.iter().position(|(name, _)| agent.contains(&name.to_ascii_lowercase()));
        match listed.and_then(|at| u16::try_from(at).ok()) {
            Some(at) => Self(at + Self::FIRST),
            None if MARKS.iter().any(|mark| agent.contains(mark)) => Self::OTHER,
            None => Self::READER,
        }
    }
}

/// Recognises robots.
#[derive(Debug, Default)]
pub(super) struct Robots {
    known: HashMap<Box<str>, Agent>,
    ranges: HashMap<Agent, Ranges>,
}

impl Robots {
    /// Takes the addresses of a robot from a file of its operator.
    pub(super) fn add_ranges(&mut self, name: &str, file: &Path) -> Result<()> {
        let ranges = Ranges::load(file)?;
        self.ranges.entry(Agent::named(name)?).or_default().add(ranges);
        Ok(())
    }

    pub(super) fn agent(&mut self, text: Option<&str>) -> Agent {
        let Some(text) = text else { return Agent::UNKNOWN };
        if let Some(agent) = self.known.get(text) {
            return *agent;
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let agent = Agent::of(text);
        self.known.insert(text.into(), agent);
        agent
    }

    /// Whether the address is one that the operator of the robot publishes; `None` if these are not known, or the line has no address.
    pub(super) fn is_confirmed(&self, agent: Agent, address: Option<IpAddr>) -> Option<bool> {
        let ranges = self.ranges.get(&agent)?;
        Some(ranges.has(address?))
    }

    /// The robots whose addresses are known.
    pub(super) fn with_ranges(&self) -> impl Iterator<Item = Agent> {
        self.ranges.keys().copied()
    }
}

/// Ranges of addresses, each with the number of bits that count.
#[derive(Debug, Default)]
struct Ranges {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u32)>,
}

impl Ranges {
    /// Reads a file as operators publish it: `{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}]}`.
    fn load(path: &Path) -> Result<Self> {
        let shown = path.display();
        let wrong = |what: String| Error::usage(format!("{shown}: {what}"));
        let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let file: Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
        let form = "use a file such as {\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}, as operators of robots publish it";
        let prefixes = file["prefixes"].as_array().filter(|found| !found.is_empty());
        let mut ranges = Self::default();
        for prefix in prefixes.ok_or_else(|| wrong(format!("it has no prefixes; {form}")))? {
            let text = prefix["ipv4Prefix"].as_str().or_else(|| prefix["ipv6Prefix"].as_str());
            let text = text.ok_or_else(|| wrong(format!("{prefix} is no prefix; {form}")))?;
            ranges.add_prefix(text).ok_or_else(|| {
                wrong(format!("\"{}\" is no range of addresses; {form}", text.escape_debug()))
            })?;
        }
        Ok(ranges)
    }

    fn add_prefix(&mut self, text: &str) -> Option<()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        match address.parse().ok()? {
            IpAddr::V4(address) => {
                let bits = bits.unwrap_or(32);
                self.v4.push((u32::from(address).checked_shr(32_u32.checked_sub(bits)?).unwrap_or(0), bits));
            }
            IpAddr::V6(address) => {
                let bits = bits.unwrap_or(128);
                let shift = 128_u32.checked_sub(bits)?;
                self.v6.push((u128::from(address).checked_shr(shift).unwrap_or(0), bits));
            }
        }
        Some(())
    }

    fn add(&mut self, other: Self) {
        self.v4.extend(other.v4);
        self.v6.extend(other.v6);
    }

    fn has(&self, address: IpAddr) -> bool {
        let of_v4 = |address: Ipv4Addr| {
            let number = u32::from(address);
            self.v4.iter().any(|(range, bits)| number.checked_shr(32 - bits).unwrap_or(0) == *range)
        };
        let of_v6 = |address: Ipv6Addr| {
            let number = u128::from(address);
            self.v6.iter().any(|(range, bits)| number.checked_shr(128 - bits).unwrap_or(0) == *range)
        };
        match address.to_canonical() {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_are_recognised_by_what_they_say_of_themselves() {
        let mut robots = Robots::default();
        for (agent, name) in [
            (Some("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"), "Googlebot"),
            (Some("Googlebot-Image/1.0"), "Googlebot-Image"),
            (Some("Mozilla/5.0 (compatible; BINGBOT/2.0)"), "bingbot"),
            (Some("GPTBot/1.2"), "GPTBot"),
            (Some("SomeCrawler/1.0"), "other robots"),
            (Some("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"), "browsers and programs"),
            (None, "no User-Agent"),
        ] {
            for _ in 0..2 {
                let found = robots.agent(agent);
                assert_eq!(found.name(), name, "{agent:?}");
                assert_eq!(found.is_robot(), found.purpose().is_some(), "{agent:?}");
            }
        }
        // A name that is part of another one stands behind it, or it would hide it.
        for (at, (name, _)) in ROBOTS.iter().enumerate() {
            assert_eq!(Agent::of(name), Agent(at as u16 + Agent::FIRST), "{name}");
        }
    }

    #[test]
    fn addresses_are_those_of_the_file_of_the_operator_or_they_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = dir.path().join("ranges.json");
            std::fs::write(&path, text).unwrap();
            path
        };
        let mut robots = Robots::default();
        let path = file(
            r#"{"prefixes": [{"ipv4Prefix": "192.0.2.0/25"}, {"ipv6Prefix": "2001:db8::/32"}, {"ipv4Prefix": "0.0.0.1/32"}]}"#,
        );
        robots.add_ranges("googlebot", &path).unwrap();
        let google = robots.agent(Some("Googlebot/2.1"));
        for (address, expected) in [
            (Some("192.0.2.1"), Some(true)),
            (Some("192.0.2.127"), Some(true)),
            (Some("192.0.2.128"), Some(false)),
            (Some("2001:db8:1::1"), Some(true)),
            (Some("2001:db9::1"), Some(false)),
            (Some("::ffff:192.0.2.1"), Some(true)),
            (None, None),
        ] {
            let address = address.map(|address| address.parse().unwrap());
            assert_eq!(robots.is_confirmed(google, address), expected, "{address:?}");
        }
        let bing = robots.agent(Some("bingbot"));
        assert_eq!(robots.is_confirmed(bing, Some("192.0.2.1".parse().unwrap())), None);
        for (name, text, said) in [
            (
                "Googlebt",
                "{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}",
                "did you mean \"Googlebot\"?",
            ),
            ("Googlebot", "{}", "it has no prefixes"),
            (
                "Googlebot",
                "{\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/33\"}]}",
                "\"192.0.2.0/33\" is no range",
            ),
            ("Googlebot", "{\"prefixes\": [7]}", "7 is no prefix"),
            ("Googlebot", "{", "EOF"),
        ] {
            let error = robots.add_ranges(name, &file(text)).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(said), "{error}");
        }
    }
}
