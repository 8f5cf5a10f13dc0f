//! Runs the fuzz targets with inputs that a fuzzer found or that are worth keeping, and with as many damaged copies
//! of them as time allows.

#[path = "../fuzz/mod.rs"]
mod targets;

use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/inputs").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("every target has inputs")
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn every_input_is_borne_by_its_target() {
    for (name, target) in targets::TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "{name} has inputs");
        inputs.iter().for_each(|input| target(input));
    }
}

#[test]
fn damaged_inputs_are_borne_too() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let given = |name: &str| std::env::var(name).ok();
    let rounds = given("HUNTSMAN_FUZZ_ROUNDS").and_then(|rounds| rounds.parse().ok()).unwrap_or(2_000);
    let wanted = given("HUNTSMAN_FUZZ_TARGETS");
    for (name, target) in targets::TARGETS {
        if wanted.as_deref().is_some_and(|wanted| !wanted.split(',').any(|wanted| wanted == *name)) {
            continue;
        }
        let inputs = inputs(name);
        for _ in 0..rounds {
            let mut input = inputs[rng.random_range(0..inputs.len())].clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..=input.len());
                match rng.random_range(0..4) {
                    0 if at < input.len() => input[at] = rng.random(),
                    1 => input.truncate(at),
                    2 => input.insert(at, rng.random()),
                    _ => {
                        let other = &inputs[rng.random_range(0..inputs.len())];
                        let piece = other[rng.random_range(0..=other.len())..].iter().take(40).copied();
                        let piece: Vec<u8> = piece.collect();
                        input.splice(at..at, piece);
                    }
                }
            }
            let caught = std::panic::catch_unwind(|| target(&input));
            if let Err(panic) = caught {
                println!("{name}: {}", input.escape_ascii());
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Strings that open and close constructs in wiki pages.
const MARKUP: [&str; 34] = [
    "{{",
    "}}",
    "{{{",
    "}}}",
    "[[",
    "]]",
    "[",
    "]",
    "|",
    "||",
    "=",
    "==",
    "\'\'",
    "\'\'\'",
    "<ref>",
    "<ref name=a/>",
    "</ref>",
    "<!--",
    "-->",
    "<nowiki>",
    "</nowiki>",
    "<math>",
    "{|",
    "|}",
    "|-",
    "!",
    "\n",
    "\n\n",
    "<br/",
    "&amp",
    "[[File:",
    "http://",
    "<div",
    ">",
];

#[test]
fn ten_thousand_wiki_pages_with_markup_in_the_wrong_places_are_read() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let inputs: Vec<String> =
        inputs("wikitext").iter().map(|input| String::from_utf8_lossy(input).into_owned()).collect();
    for _ in 0..10_000 {
        let mut input = inputs[rng.random_range(0..inputs.len())].clone();
        for _ in 0..rng.random_range(1..8) {
            let from = input.floor_char_boundary(rng.random_range(0..=input.len()));
            let to = input.ceil_char_boundary((from + rng.random_range(0..12)).min(input.len()));
            let markup = MARKUP[rng.random_range(0..MARKUP.len())];
            match rng.random_range(0..3) {
                0 => input.replace_range(from..to, ""),
                1 => input.replace_range(from..to, markup),
                _ => input.insert_str(from, &markup.repeat(rng.random_range(1..20))),
            }
        }
        targets::wikitext(input.as_bytes());
    }
}

/// Writes an input for the target `store` from a queue: run it by hand when the format changes.
#[test]
#[ignore = "writes a file"]
fn write_the_input_of_a_queue() {
    use huntsman::store::{MemoryStore, Store};
    use huntsman::{DiskFrontier, DiskLimits, Frontier, Order, Request, Timestamp};
    let store = std::sync::Arc::new(MemoryStore::new());
    let limits = DiskLimits { requests: 4, seen: 4, uncommitted: 1_000 };
    let frontier = DiskFrontier::open(store.clone(), Order::Bfs, limits).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    runtime.block_on(async {
        let requests = (0..20).map(|n| Request::parse(&format!("http://h{}.example/{n}", n % 2)).unwrap());
        frontier.push(requests.collect()).await.unwrap();
        let host = Request::parse("http://h1.example/").unwrap().host();
        frontier.lease(&host, 7, Timestamp(0)).await.unwrap();
        frontier.sync().await.unwrap();
    });
    let mut input = Vec::new();
    store
        .scan(b"f/", &mut |key, value| {
            let kind = match &key[..4] {
                b"f/j/" => 0,
                b"f/s/" => 1 + 3 * key[11],
                _ => 2 + 3 * key[11],
            };
            input.push(kind);
            input.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
            input.extend_from_slice(value);
            true
        })
        .unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/inputs/store/queue");
    std::fs::write(path, input).unwrap();
}
