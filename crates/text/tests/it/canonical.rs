//! The canonical form against tables, against w3lib, and against itself.

use huntsman_text::urlparts::{CanonicalOptions, Parts, Separator, canonical, canonical_into, guard};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use url::Url;

fn rows(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.is_empty())
        .map(|line| line.split('\t').collect())
}

#[test]
fn golden_pairs() {
    let parse = |text: &str| {
        let text = if text.starts_with('/') { format!("http://h.example{text}") } else { text.to_owned() };
        Url::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"))
    };
    for row in rows(include_str!("../data/canonical.tsv")) {
        let [relation, left, right] = row[..] else { panic!("{row:?}") };
        let (a, b) = (canonical(&parse(left)), canonical(&parse(right)));
        assert_eq!(a == b, relation == "=", "{left} {relation} {right}: {a} and {b}");
    }
}

#[test]
fn w3lib_gives_the_same_form() {
    for row in rows(include_str!("../data/w3lib-2.5.0.tsv")) {
        let [given, expected] = row[..] else { panic!("{row:?}") };
        assert_eq!(canonical(&Url::parse(given).unwrap()), expected, "{given}");
    }
}

/// Addresses made of all kinds of strange pieces.
fn addresses(seed: u64, count: usize) -> impl Iterator<Item = Url> {
    const PIECES: [&str; 48] = [
        "a",
        "B",
        "1",
        "/",
        "/",
        "//",
        "..",
        ".",
        "?",
        "&",
        "&",
        "=",
        "=",
        "#",
        ";",
        "%",
        "%2",
        "%2f",
        "%2F",
        "%7e",
        "%41",
        "%e2%82%ac",
        "%E9",
        "%20",
        "%25",
        "%26",
        "%3D",
        "%3B",
        "%00",
        "%2e",
        "%2E%2e",
        "+",
        " ",
        "é",
        "€",
        "\u{301}",
        "|",
        "\\",
        "^",
        "{",
        "'",
        "\"",
        "*",
        ":",
        "@",
        "[",
        "~",
        "utm_x=1",
    ];
    const STARTS: [&str; 12] = [
        "http://h/",
        "https://Example.com",
        "http://h.:80/",
        "http://u:p@h:8080/",
        "ftp://h/",
        "file:///",
        "file:///C|/",
        "foo://h/",
        "foo:/",
        "mailto:",
        "data:,",
        "http://1.2.3.4./",
    ];
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    std::iter::repeat_with(move || {
        let mut text = STARTS[rng.random_range(0..STARTS.len())].to_owned();
        for _ in 0..rng.random_range(0..14) {
            text.push_str(PIECES[rng.random_range(0..PIECES.len())]);
        }
        Url::parse(&text).ok()
    })
    .flatten()
    .take(count)
}

#[test]
fn the_form_of_a_form_is_itself() {
    let keeping = CanonicalOptions { keep_fragment: true, ..CanonicalOptions::default() };
    let stripping = CanonicalOptions {
        strip_params: vec!["utm_*".into(), "a".into()],
        strip_path_params: true,
        ..CanonicalOptions::default()
    };
    for url in addresses(0x5eed_0003, 50_000) {
        for options in [&CanonicalOptions::default(), &keeping, &stripping] {
            let once = options.canonical(&url);
            let again = Url::parse(&once).unwrap_or_else(|e| panic!("{url} -> {once}: {e}"));
            assert_eq!(options.canonical(&again), once, "{url}");
        }
    }
}

#[test]
fn forms_append_and_agree() {
    for url in addresses(0x5eed_0004, 5_000) {
        let mut out = "before ".to_owned();
        canonical_into(&url, &mut out);
        CanonicalOptions::default().canonical_into(&url, &mut out);
        let form = canonical(&url);
        assert_eq!(out, format!("before {form}{form}"));
        let mut bare = url.clone();
        bare.set_fragment(None);
        assert_eq!(canonical(&bare), form, "the fragment is nothing");
    }
}

/// Compares with the rule for queries, implemented directly: decode names and values, sort, encode.
#[test]
fn queries_agree_with_a_naive_model() {
    fn decode(part: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = part.as_bytes();
        while let [first, tail @ ..] = rest {
            let escape = part_of(tail).filter(|_| *first == b'%');
            out.push(escape.unwrap_or(if *first == b'+' { b' ' } else { *first }));
            rest = if escape.is_some() { &tail[2..] } else { tail };
        }
        out
    }
    fn part_of(tail: &[u8]) -> Option<u8> {
        let pair = tail
            .get(..2)?
            .iter()
            .all(u8::is_ascii_hexdigit)
            .then(|| std::str::from_utf8(&tail[..2]).unwrap())?;
        u8::from_str_radix(pair, 16).ok()
    }
    fn encode(bytes: &[u8]) -> String {
        let one = |&b: &u8| match b {
            b' ' => "+".to_owned(),
            b if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => (b as char).to_string(),
            b => format!("%{b:02X}"),
        };
        bytes.iter().map(one).collect()
    }
    for url in addresses(0x5eed_0005, 20_000).filter(|url| !url.cannot_be_a_base()) {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = url
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(name, value)| (decode(name), decode(value)))
            .collect();
        pairs.sort();
        let query: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        let expected = Some(query.join("&")).filter(|query| !query.is_empty());
        let form = canonical(&url);
        assert_eq!(form.split_once('?').map(|(_, query)| query.to_owned()), expected, "{url}");
    }
}

#[test]
fn parts_and_guards_take_any_address() {
    for url in addresses(0x5eed_0006, 20_000) {
        let parts = Parts::of(&url);
        let joined: Vec<&str> = parts.segments().map(|segment| segment.raw).collect();
        assert_eq!(joined.join("/"), parts.path().strip_prefix('/').unwrap_or(parts.path()));
        for segment in parts.segments() {
            let _ = (segment.decoded(), segment.param_pairs().count());
        }
        for pair in parts.pairs().chain(parts.pairs_at(Separator::AmpersandOrSemicolon)) {
            let _ = (pair.name(), pair.value());
        }
        let path = url.path();
        let most = guard::most_repeated_segment(path);
        assert!(most <= guard::segment_count(path).max(1));
        let _ = guard::repeated_sequence(path);
        guard::template_into(path, &mut String::new());
        let _ = guard::years(url.as_str()).count();
    }
}
