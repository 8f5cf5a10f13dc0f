//! Compares decisions with those of `texting_robots` 0.2.2 on generated files.

use huntsman_crawler::robots::Robots;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use texting_robots::Robot;

/// Files that both parsers interpret alike: ASCII, no percent signs (texting_robots does not normalise the case of
/// escapes), agents without versions, `$` only at the end.
fn file(rng: &mut Xoshiro256PlusPlus) -> String {
    let mut text = String::new();
    for _ in 0..rng.random_range(1..5) {
        for _ in 0..rng.random_range(1..3) {
            let agent = ["*", "huntsman", "Huntsman", "other", "huntsmanbot"][rng.random_range(0..5)];
            text.push_str(&format!("User-agent: {agent}\n"));
        }
        for _ in 0..rng.random_range(1..6) {
            let key = ["Disallow", "disallow", "Allow"][rng.random_range(0..3)];
            text.push_str(&format!(
                "{key}: {}{}\n",
                path(rng, true),
                ["", "", "$", "*"][rng.random_range(0..4)]
            ));
        }
        text.push_str(["", "\n", "# comment\n", "Sitemap: https://h/s\n"][rng.random_range(0..4)]);
    }
    text
}

fn path(rng: &mut Xoshiro256PlusPlus, stars: bool) -> String {
    let pieces = ["a", "b", "/", "?", "=", ".html", "dir/", "*"];
    let usable = if stars { pieces.len() } else { pieces.len() - 1 };
    let mut path = "/".to_owned();
    for _ in 0..rng.random_range(0..6) {
        path.push_str(pieces[rng.random_range(0..usable)]);
    }
    path
}

#[test]
fn texting_robots_agrees() {
    let seed = 0x5eed_0002;
    println!("seed {seed:#x}");
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    for _ in 0..2000 {
        let file = file(&mut rng);
        let theirs = Robot::new("huntsman", file.as_bytes()).unwrap();
        let ours = Robots::parse(file.as_bytes()).agent("huntsman");
        for _ in 0..10 {
            let path = path(&mut rng, false);
            let decision = ours.decide(&path);
            let url = format!("https://h.example{path}");
            assert_eq!(decision.allowed, theirs.allowed(&url), "{path} ({:?}) under\n{file}", decision.line);
        }
    }
}
