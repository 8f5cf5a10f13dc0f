//! Synthetic failure cases.
use huntsman_detect::avoid::{Decision, Options, PageText, Predictor};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use std::collections::{BTreeMap, HashSet, VecDeque};
use url::Url;

type Case = (String, Vec<(String, u64)>, usize); // requests (url, content), in flight
fn text(content: u64, chrome: &str) -> PageText {
    let word = |n: u64| {
        format!(
            "w{:x}",
            xxhash_rust::xxh3::xxh3_64(&[content.to_le_bytes(), n.to_le_bytes()].concat()) % 50_000
        )
    };
    let lines: Vec<String> =
        (0..12).map(|l| (0..12).map(|w| word(l * 100 + w)).collect::<Vec<_>>().join(" ")).collect();
    let mut blocks: Vec<(u64, &str)> =
        vec![(1, chrome), (2, "Home About Contact Search Register Login Members Help")];
    blocks.extend(lines.iter().map(|l| (3u64, l.as_str())));
    blocks.push((4, "Copyright by the owner all rights reserved powered by software"));
    PageText::of(blocks)
}
fn sid(r: &mut StdRng) -> String {
    format!("{:016x}", r.random::<u64>())
}
fn forum(seed: u64, adjacent: bool) -> Vec<(String, u64)> {
    let mut r = StdRng::seed_from_u64(seed);
    let mut groups: Vec<Vec<(String, u64)>> = Vec::new();
    let mut content = 0;
    for t in 0..700 {
        let pages = if t % 5 < 4 { 1 } else { 5 };
        for page in 0..pages {
            content += 1;
            let base = if page == 0 {
                format!("http://f.example/viewtopic.php?t={t}")
            } else {
                format!("http://f.example/viewtopic.php?t={t}&start={}", 15 * page)
            };
            let mut g = vec![(base.clone(), content)];
            if page == 0 && r.random_bool(0.6) {
                g.push((format!("{base}&start=0"), content));
            }
            if r.random_bool(0.7) {
                g.push((format!("{base}&sid={}", sid(&mut r)), content));
            }
            if r.random_bool(0.4) {
                g.push((format!("{base}&highlight=w{}", r.random_range(0..300)), content));
            }
            if r.random_bool(0.3) {
                g.push((format!("{base}&view=print"), content));
            }
            groups.push(g);
        }
    }
    groups.truncate(1263);
    let mut all: Vec<(String, u64)>;
    if adjacent {
        groups.shuffle(&mut r);
        all = groups.concat();
    } else {
        all = groups.concat();
        all.shuffle(&mut r);
    }
    all
}
fn main() {
    let seeds: Vec<u64> = std::env::args().skip(1).map(|s| s.parse().unwrap()).collect();
    for seed in if seeds.is_empty() { vec![1, 2] } else { seeds } {
        let mut cases: Vec<Case> = Vec::new();
        for f in [0usize, 16] {
            cases.push((format!("forum random, {f} in flight"), forum(seed, false), f));
        }
        for f in [0usize, 1, 4, 16] {
            cases.push((format!("forum adjacent, {f} in flight"), forum(seed, true), f));
        }
        let mut r = StdRng::seed_from_u64(seed + 100);
        let mut c: Vec<(String, u64)> = (0..700)
            .flat_map(|n| {
                let k = 1 + r.random_range(1..=2) + usize::from(r.random_bool(0.01));
                (0..k)
                    .map(|_| (format!("http://s.example/s/{}/item/{n}", sid(&mut r)), n))
                    .collect::<Vec<_>>()
            })
            .collect();
        c.shuffle(&mut r);
        cases.push(("session in the path".into(), c, 16));
        let mut c: Vec<(String, u64)> = (0..700)
            .flat_map(|n| {
                [
                    (format!("http://p.example/article/{n}"), n),
                    (format!("http://p.example/print/{n}"), n),
                    (format!("http://www.p.example/article/{n}"), n),
                    (format!("http://p.example/article/{n}/"), n),
                ]
            })
            .collect();
        c.shuffle(&mut r);
        cases.push(("print, www, slash".into(), c, 16));
        let mut c: Vec<(String, u64)> = (0..700)
            .flat_map(|n| {
                let k = r.random_range(1..=3);
                let mut v = vec![(format!("http://t.example/a/{n}"), n)];
                for _ in 0..k {
                    v.push((
                        format!(
                            "http://t.example/a/{n}?utm_source={}&utm_medium={}&utm_campaign={}&gclid={}",
                            r.random_range(0..9),
                            r.random_range(0..5),
                            sid(&mut r),
                            sid(&mut r)
                        ),
                        n,
                    ));
                }
                v
            })
            .collect();
        c.shuffle(&mut r);
        c.truncate(2010);
        cases.push(("four tracking parameters".into(), c, 16));
        let mut c: Vec<(String, u64)> = Vec::new();
        for n in 0..350u64 {
            for p in 1..=r.random_range(3..=5) {
                c.push((format!("http://d.example/doc/{n}?page={p}"), n));
            }
        }
        for p in 0..600u64 {
            c.push((format!("http://d.example/list?page={p}"), 10_000 + p));
        }
        c.shuffle(&mut r);
        cases.push(("page decisive on one list".into(), c, 16));
        let mut c: Vec<(String, u64)> = Vec::new();
        for n in 0..150u64 {
            for p in 1..=6 {
                c.push((format!("http://one.example/doc/{n}?page={p}"), n));
            }
        }
        c.shuffle(&mut r);
        for p in 0..240u64 {
            c.push((format!("http://two.example/list?page={p}"), 10_000 + p));
        }
        cases.push(("two hosts disagree".into(), c, 16));
        let mut c: Vec<(String, u64)> = Vec::new();
        for n in 0..450u64 {
            for v in ["a", "b", "c"] {
                c.push((format!("http://v.example/x/{n}?view={v}"), n));
            }
        }
        c.shuffle(&mut r);
        let mut d: Vec<(String, u64)> = Vec::new();
        for n in 450..900u64 {
            for (i, v) in ["a", "b", "c"].iter().enumerate() {
                d.push((format!("http://v.example/x/{n}?view={v}"), 10_000 + n * 3 + i as u64));
            }
        }
        d.shuffle(&mut r);
        c.extend(d);
        cases.push(("site change".into(), c, 16));
        let mut c: Vec<(String, u64)> =
            (0..300u64).map(|n| (format!("http://w.example/p/{n}"), 999_999)).collect();
        c.extend((300..1500u64).map(|n| (format!("http://w.example/p/{n}"), n)));
        cases.push(("login wall first".into(), c, 16));
        let mut c: Vec<(String, u64)> = Vec::new();
        for n in 0..15u64 {
            for _ in 0..20 {
                c.push((format!("http://u.example/t/{n}?sid={}", sid(&mut r)), n));
            }
        }
        c.shuffle(&mut r);
        c.extend((15..1215u64).map(|n| (format!("http://u.example/t/{n}?sid={}", sid(&mut r)), n)));
        cases.push(("warm-up of copies".into(), c, 16));
        let mut c: Vec<(String, u64)> = (0..1800u64)
            .map(|n| {
                (
                    format!("http://m.example/p/{}?n={}", n % 600, n / 600),
                    if (400..700).contains(&n) { 999_999 } else { n },
                )
            })
            .collect();
        let _ = &mut c;
        cases.push(("wall in the middle".into(), c, 16));
        let c: Vec<(String, u64)> = (0..3000u64)
            .map(|n| (format!("http://i.example/in;jsessionid={}/p{}", sid(&mut r), n % 8), n % 8))
            .collect();
        cases.push(("trap: 8 pages, endless session ids".into(), c, 16));
        for (name, requests, flight) in cases {
            run(&format!("{name} ({seed})"), &requests, flight, seed);
        }
    }
}
fn run(name: &str, requests: &[(String, u64)], flight: usize, seed: u64) {
    let site_of = |u: &Url| {
        let h = u.host_str().unwrap();
        h.strip_prefix("www.").unwrap_or(h).to_owned()
    };
    let var = |name: &str, or: f64| std::env::var(name).map_or(or, |s| s.parse().unwrap());
    let mut predictor = Predictor::new(Options {
        exploration: var("EXPLORE", 0.05),
        min_evidence: var("MINEV", 10.0),
        warmup: var("WARMUP", 300.0) as u32,
        threshold: var("THR", 0.98),
        seed,
    });
    let mut queue: BTreeMap<(i64, usize), usize> =
        requests.iter().enumerate().map(|(n, _)| ((0, n), n)).collect();
    let urls: Vec<Url> = requests.iter().map(|(u, _)| Url::parse(u).unwrap()).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for (n, (u, _)) in requests.iter().enumerate() {
        if !seen.insert(u) {
            queue.remove(&(0, n));
        }
    }
    let total = queue.len();
    let mut discovered = 0;
    let mut flying: VecDeque<usize> = VecDeque::new();
    let mut got: HashSet<u64> = HashSet::new();
    let mut fetched = 0;
    let mut wait = false;
    loop {
        let landing =
            if flying.len() > flight || queue.is_empty() || wait { flying.pop_front() } else { None };
        wait = false;
        if let Some(n) = landing {
            let site = site_of(&urls[n]);
            predictor.flies(&site, &urls[n], false);
            predictor.learn(&site, &urls[n], text(requests[n].1, "The site of examples with a long name"));
            continue;
        }
        if queue.is_empty() {
            break;
        }
        while discovered < requests.len() && discovered < fetched + 200 + (total - queue.len()) {
            let u = &urls[discovered];
            predictor.discover(&site_of(u), u, None);
            discovered += 1;
        }
        let ((prio, s), n) = queue.pop_first().unwrap();
        if prio >= 5000 && !flying.is_empty() {
            queue.insert((prio, s), n);
            wait = true;
            continue;
        }
        let site = site_of(&urls[n]);
        match predictor.decide(&site, &urls[n], prio >= 5000) {
            Decision::Drop(_) => continue,
            Decision::Skip(_) => {
                queue.insert((5000, s), n);
                continue;
            }
            Decision::Delay { probability } if prio < (probability * 50.0) as i64 => {
                queue.insert(((probability * 50.0) as i64, s), n);
                continue;
            }
            Decision::Hold if prio < 1000 && !flying.is_empty() => {
                queue.insert((1000, s), n);
                continue;
            }
            _ => {}
        }
        fetched += 1;
        if !got.insert(requests[n].1) && std::env::var("V").is_ok() {
            println!(
                "WASTE {} {:?}",
                requests[n].0,
                predictor.explain(&site, &urls[n]).map(|r| r.to_string())
            );
        }
        predictor.flies(&site, &urls[n], true);
        flying.push_back(n);
    }
    let distinct: HashSet<u64> = requests.iter().map(|r| r.1).collect();
    let dups = total - distinct.len();
    let waste = fetched - got.len();
    let t = predictor.totals();
    println!(
        "{name:44} {total:5} / {:5} recall {:.2} lost {:3} = {:.2} %   explored {} new {}",
        distinct.len(),
        if dups == 0 { 1.0 } else { 1.0 - waste as f64 / dups as f64 },
        distinct.len() - got.len(),
        100.0 * (1.0 - got.len() as f64 / distinct.len() as f64),
        t.explored,
        t.lost
    );
}
