//! Time and memory of robots.txt files. `cargo bench -p huntsman-crawler --bench robots`.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use huntsman_crawler::robots::Robots;

fn main() {
    let typical = "User-agent: *\nDisallow: /admin/\nDisallow: /*?sid=\nDisallow: /*.pdf$\nAllow: /admin/public\n\
                   Disallow: /cart\nDisallow: /search\n\nSitemap: https://example.com/sitemap.xml\n";
    let mut prefixes = "User-agent: *\n".to_owned();
    let mut starred = prefixes.clone();
    for n in 0..20_000 {
        writeln!(prefixes, "Disallow: /shop/{}/item{n}", n % 97).unwrap();
        writeln!(starred, "Disallow: /*/{n}/print$").unwrap();
    }
    let same = format!("User-agent: *\n{}", (0..37_000).map(|_| "Disallow: /*x\n").collect::<String>());
    let stars = format!("User-agent: *\nDisallow: /{}b\n", "a*".repeat(60));
    let path = "/shop/42/item10042?colour=red&size=xl";
    let long = format!("/{}", "a".repeat(2000));
    for (what, file, path) in [
        ("typical file", typical, path),
        ("20,000 prefixes", &prefixes, path),
        ("20,000 prefixes, 2 kB path", &prefixes, &long),
        ("20,000 starred", &starred, path),
        ("20,000 starred, 2 kB path", &starred, &long),
        ("37,000 equal starred", &same, path),
        ("60 stars, 2 kB path", &stars, &long),
    ] {
        let parse = best_of(3, || drop(black_box(Robots::parse(black_box(file.as_bytes())))));
        let robots = Robots::parse(file.as_bytes());
        let compile = best_of(3, || drop(black_box(robots.agent("huntsman"))));
        let rules = robots.agent("huntsman");
        let rounds = 1000;
        let decide = best_of(5, || {
            for _ in 0..rounds {
                black_box(rules.decide(black_box(path)));
            }
        }) / rounds as f64;
        println!(
            "{what}: parse {:.2} ms, compile {:.2} ms, {} bytes, decide {:.2} us",
            parse * 1e3,
            compile * 1e3,
            rules.heap_bytes(),
            decide * 1e6
        );
    }
}

fn best_of(rounds: usize, mut work: impl FnMut()) -> f64 {
    (0..rounds).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        work();
        best.min(start.elapsed().as_secs_f64())
    })
}
