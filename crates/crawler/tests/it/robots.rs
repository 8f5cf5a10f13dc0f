//! Tests of robots.txt: golden cases, delays, lines, sitemaps, limits, and a comparison with a naive implementation.

use std::time::{Duration, Instant};

use huntsman_crawler::robots::{Group, MAX_BYTES, RequestRate, Robots, RobotsAgent};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use url::Url;

#[derive(Deserialize)]
struct Golden {
    why: String,
    file: String,
    #[serde(default = "huntsman")]
    agent: String,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

fn huntsman() -> String {
    "huntsman".into()
}

fn rules(file: &str) -> RobotsAgent {
    Robots::parse(file.as_bytes()).agent("huntsman")
}

#[test]
fn golden_table() {
    let cases: Vec<Golden> = serde_json::from_str(include_str!("../data/robots.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let rules = Robots::parse(case.file.as_bytes()).agent(&case.agent);
        for (paths, expected) in [(&case.allow, true), (&case.deny, false)] {
            for path in paths {
                if rules.decide(path).allowed != expected {
                    wrong.push(format!(
                        "{}: {path} should be allowed={expected} under\n{}",
                        case.why, case.file
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_deciding_line_is_named() {
    let rules =
        rules("# file\r\nUser-agent: *\r\n\r\nDisallow: /a%2a # why\r\nALLOW:/ab*c$\r\nDisallow: /a%2A\r\n");
    let line = |path: &str| rules.decide(path).line.map(|line| (line.number, line.to_string()));
    assert_eq!(line("/a*"), Some((4, "Disallow: /a%2a".into())), "of equal rules the first");
    assert_eq!(line("/abbc"), Some((5, "Allow: /ab*c$".into())));
    assert_eq!(line("/x"), None);
    assert_eq!(line("/robots.txt"), None);
}

#[test]
fn the_group_is_named() {
    let file = Robots::parse(b"User-agent: Huntsman\nDisallow: /\nUser-agent: *\nDisallow: /");
    assert_eq!(file.agent("HUNTSMAN/2").group(), Group::Named);
    assert_eq!(file.agent("other").group(), Group::Any);
    assert_eq!(Robots::parse(b"").agent("other").group(), Group::None);
    assert_eq!(file.agents().collect::<Vec<_>>(), ["Huntsman", "*"]);
}

#[test]
fn delays() {
    let delay = |lines: &str| rules(&format!("User-agent: huntsman\n{lines}\nDisallow: /x")).crawl_delay();
    assert_eq!(delay("Crawl-delay: 2.5"), Some(Duration::from_millis(2500)));
    assert_eq!(delay("crawl-delay: 10 # slow"), Some(Duration::from_secs(10)));
    assert_eq!(delay("Crawl-delay: 3\nCrawl-delay: 7\nCrawl-delay: 5"), Some(Duration::from_secs(7)));
    assert_eq!(delay("Crawl-delay: 0"), Some(Duration::ZERO));
    for nonsense in ["abc", "-1", "inf", "nan", "", ".", "1.2.3"] {
        assert_eq!(delay(&format!("Crawl-delay: {nonsense}")), None, "{nonsense}");
    }
    let huge = delay(&format!("Crawl-delay: {}", "9".repeat(400))).unwrap();
    assert!(huge >= Duration::from_secs(3600 * 24 * 365));

    assert_eq!(
        rules("Crawl-delay: 5\nUser-agent: *\nDisallow: /").crawl_delay(),
        None,
        "above the first agent"
    );
    let named = "User-agent: *\nCrawl-delay: 5\nDisallow:\nUser-agent: huntsman\nDisallow:";
    assert_eq!(rules(named).crawl_delay(), None, "of another group");
    let stacked = Robots::parse(b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x");
    assert_eq!(stacked.agent("a").crawl_delay(), Some(Duration::from_secs(5)));
    assert_eq!(stacked.agent("b").crawl_delay(), None, "the delay stands above this agent");
    assert!(!stacked.agent("a").decide("/x").allowed, "the rule stands below both");
}

#[test]
fn request_rates() {
    let rate = |value: &str| rules(&format!("User-agent: *\nRequest-rate: {value}")).request_rate();
    let of = |requests, seconds| Some(RequestRate { requests, per: Duration::from_secs(seconds) });
    assert_eq!(rate("1/10"), of(1, 10));
    assert_eq!(rate("3 / 1m"), of(3, 60));
    assert_eq!(rate("1/10s 1800-1900"), of(1, 10));
    assert_eq!(rate("100/24h"), of(100, 86_400));
    for nonsense in ["", "1", "0/5", "1/0", "-1/5", "a/b", "1/x"] {
        assert_eq!(rate(nonsense), None, "{nonsense}");
    }
    let both = rules("User-agent: *\nCrawl-delay: 2.5\nRequest-rate: 1/10\nRequest-rate: 5/10");
    assert_eq!(both.request_rate(), of(1, 10), "the slowest");
    assert_eq!(both.crawl_delay(), Some(Duration::from_millis(2500)));
    assert_eq!(both.delay(), Some(Duration::from_secs(10)));
}

#[test]
fn sitemaps_are_resolved() {
    let file = Robots::parse(
        b"Sitemap: https://a.example/s.xml\nUser-agent: x\nDisallow: /\nsitemap: /rel.xml # c\n\
          Sitemap:\nSite-map: s.xml\nSitemap: https://a.example/s.xml\nSitemap: ftp://a.example/x\nSitemap: http://[\n",
    );
    let base = Url::parse("https://h.example/robots.txt").unwrap();
    let found: Vec<String> = file.sitemaps(&base).into_iter().map(String::from).collect();
    assert_eq!(found, ["https://a.example/s.xml", "https://h.example/rel.xml", "https://h.example/s.xml"]);
}

#[test]
fn constructed_answers() {
    assert!(RobotsAgent::allow_all().decide("/x").allowed);
    assert!(!RobotsAgent::deny_all().decide("/x").allowed);
    assert!(RobotsAgent::deny_all().decide("/robots.txt").allowed);
    assert_eq!(RobotsAgent::allow_all().heap_bytes(), 0);
}

#[test]
fn only_the_first_part_of_a_long_file_counts() {
    let mut file = b"User-agent: *\nDisallow: /first\n".to_vec();
    let last = b"Disallow: /cut-off\n";
    file.resize(MAX_BYTES - 14, b'#');
    file.push(b'\n');
    file.extend_from_slice(last); // the limit falls into this line, behind "/cu"
    file.extend_from_slice(b"Disallow: /beyond\n");
    let rules = Robots::parse(&file).agent("huntsman");
    assert!(!rules.decide("/first").allowed);
    assert!(rules.decide("/cut-off").allowed);
    assert!(rules.decide("/cu").allowed);
    assert!(rules.decide("/beyond").allowed);
}

#[test]
fn a_line_that_ends_at_the_limit_counts() {
    let line = b"\nDisallow: /whole\n";
    let mut file = b"User-agent: *\n".to_vec();
    file.resize(MAX_BYTES - line.len(), b'#');
    file.extend_from_slice(line);
    file.extend_from_slice(b"Disallow: /beyond\n");
    let rules = Robots::parse(&file).agent("huntsman");
    assert!(!rules.decide("/whole").allowed);
    assert!(rules.decide("/beyond").allowed);
}

#[test]
fn utf16_and_broken_utf8_are_read() {
    let text = "User-agent: *\r\nDisallow: /a\r\n";
    let mut utf16: Vec<u8> = vec![0xff, 0xfe];
    utf16.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    assert!(!Robots::parse(&utf16).agent("huntsman").decide("/a").allowed);

    let broken = Robots::parse(b"\xffUser-agent: *\n\xc3Disallow: /caf\xe9\nDisallow: /b\xff\xfe*\n")
        .agent("huntsman");
    assert!(!broken.decide("/caf%E9").allowed);
    assert!(broken.decide("/caf").allowed);
    assert!(!broken.decide("/b%FF%FEx").allowed);
    assert_eq!(broken.decide("/caf%E9").line.unwrap().value, "/caf\u{fffd}");
}

#[test]
fn many_stars_cost_linear_time() {
    let file = format!("User-agent: *\nDisallow: /{}b\n", "a*".repeat(60));
    let rules = rules(&file);
    let path = format!("/{}", "a".repeat(2000));
    let start = Instant::now();
    for _ in 0..100 {
        assert!(rules.decide(&path).allowed);
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?} for 100 questions", start.elapsed());
    assert!(!rules.decide(&format!("{path}b")).allowed);
}

#[test]
fn hostile_files_stay_cheap() {
    // A case that is not handled efficiently takes minutes, and is ended by the test runner.
    for unit in
        ["User-agent: a\nCrawl-delay: 1\n", "Disallow: /*a\n", "*\n", ":\n", "Disallow: /\u{fc}*", "\r", "#"]
    {
        let mut file = "User-agent: *\nUser-agent: a\nDisallow: /x\n".to_owned();
        file.push_str(&unit.repeat(MAX_BYTES / unit.len()));
        let rules = Robots::parse(file.as_bytes()).agent("a");
        assert!(!rules.decide("/x").allowed);
    }
    let mut nested = "User-agent: *\n".to_owned();
    for depth in 1..1000 {
        nested.push_str(&format!("Disallow: /{}\n", "a".repeat(depth)));
    }
    assert!(!rules(&nested).decide(&format!("/{}", "a".repeat(2000))).allowed);
}

/// The rules evaluated one by one, patterns by recursion: slow but obviously correct.
mod naive {
    pub(super) fn matches(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => true,
            [b'$'] => path.is_empty(),
            [b'*', rest @ ..] => (0..=path.len()).any(|skipped| matches(rest, &path[skipped..])),
            [first, rest @ ..] => path.first() == Some(first) && matches(rest, &path[1..]),
        }
    }

    pub(super) fn allowed(rules: &[(bool, String)], path: &str) -> bool {
        rules
            .iter()
            .filter(|(_, pattern)| matches(pattern.as_bytes(), path.as_bytes()))
            .map(|(allow, pattern)| (pattern.len(), *allow))
            .max()
            .is_none_or(|(_, allow)| allow)
    }
}

#[test]
fn the_index_agrees_with_a_naive_matcher() {
    let seed = 0x5eed_0001;
    println!("seed {seed:#x}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut word = |alphabet: &[char], longest: usize| -> String {
        let length = rng.random_range(0..=longest);
        (0..length).map(|_| alphabet[rng.random_range(0..alphabet.len())]).collect()
    };
    for round in 0..1500 {
        let count = 1 + round % 30;
        let made: Vec<(bool, String)> = (0..count)
            .map(|_| {
                let end = if word(&['x'], 3).is_empty() { "$" } else { "" };
                (word(&['x'], 2).is_empty(), format!("/{}{end}", word(&['a', 'b', '/', '*', '?'], 6)))
            })
            .collect();
        let mut file = "User-agent: *\n".to_owned();
        for (allow, pattern) in &made {
            file.push_str(&format!("{}: {pattern}\n", if *allow { "Allow" } else { "Disallow" }));
        }
        let rules = rules(&file);
        for _ in 0..40 {
            let path = format!("/{}", word(&['a', 'b', '/', '?'], 8));
            assert_eq!(rules.decide(&path).allowed, naive::allowed(&made, &path), "{path} under\n{file}");
        }
    }
}

#[test]
fn any_bytes_parse() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let pieces: [&[u8]; 16] = [
        b"User-agent: *",
        b"Disallow: /",
        b"Allow: *",
        b"\n",
        b"\r",
        b"%",
        b"%2",
        b"$",
        b"*",
        b"\xff",
        b"\0",
        b"#",
        b":",
        b"\xc3\xa9",
        b"Crawl-delay: 1",
        b"a",
    ];
    for _ in 0..5000 {
        let mut file = b"User-agent: *\n".to_vec();
        for _ in 0..rng.random_range(0..30) {
            file.extend_from_slice(pieces[rng.random_range(0..pieces.len())]);
        }
        let robots = Robots::parse(&file);
        let rules = robots.agent("huntsman");
        let path = String::from_utf8_lossy(&file);
        for path in ["", "/", "x", "%", &path] {
            let decision = rules.decide(path);
            assert_eq!(decision.allowed, decision.line.is_none_or(|line| line.allow));
        }
    }
}
