//! Made-up sites: their requests in order, and which content each brings.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use xxhash_rust::xxh3::xxh3_64;

/// Requests with the number of the content that they bring.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) requests: Vec<(String, u64)>,
}

/// Blocks of a page: its chrome, and twelve lines that only its content has.
pub(crate) fn text(content: u64) -> Vec<(u64, String)> {
    let word = |n: u64| {
        let hash = xxh3_64(&[content.to_le_bytes(), n.to_le_bytes()].concat());
        format!("w{:x}", hash % 50_000)
    };
    let line = |line: u64| (0..12).map(|n| word(line * 100 + n)).collect::<Vec<_>>().join(" ");
    let mut blocks = vec![
        (1, "The site of examples with a long name".to_owned()),
        (2, "Home About Contact Search Register Login Members Help".to_owned()),
    ];
    blocks.extend((0..12).map(|n| (3, line(n))));
    blocks.push((4, "Copyright by the owner all rights reserved powered by software".to_owned()));
    blocks
}

fn random(seed: u64) -> StdRng {
    StdRng::seed_from_u64(seed)
}

fn session(rng: &mut StdRng) -> String {
    format!("{:016x}", rng.random::<u64>())
}

fn shuffled(name: &'static str, mut requests: Vec<(String, u64)>, rng: &mut StdRng) -> Case {
    requests.shuffle(rng);
    Case { name, requests }
}

/// Topics, some of several pages, with a session id, `start=0`, highlighted words and a print view; copies side by side, or
/// all in random order.
pub(crate) fn forum(seed: u64, adjacent: bool) -> Case {
    let mut rng = random(seed);
    let mut groups: Vec<Vec<(String, u64)>> = Vec::new();
    for topic in 0..700 {
        let pages = if topic % 5 < 4 { 1 } else { 5 };
        for page in 0..pages {
            let content = groups.len() as u64;
            let mut base = format!("http://f.example/viewtopic.php?t={topic}");
            if page > 0 {
                base += &format!("&start={}", 15 * page);
            }
            let mut group = vec![(base.clone(), content)];
            if page == 0 && rng.random_bool(0.6) {
                group.push((format!("{base}&start=0"), content));
            }
            if rng.random_bool(0.7) {
                group.push((format!("{base}&sid={}", session(&mut rng)), content));
            }
            if rng.random_bool(0.4) {
                group.push((format!("{base}&highlight=w{}", rng.random_range(0..300)), content));
            }
            if rng.random_bool(0.3) {
                group.push((format!("{base}&view=print"), content));
            }
            groups.push(group);
        }
    }
    if adjacent {
        groups.shuffle(&mut rng);
        Case { name: "forum, copies side by side", requests: groups.concat() }
    } else {
        shuffled("forum, random order", groups.concat(), &mut rng)
    }
}

/// One or two more sessions for each of 700 pages, in the path.
pub(crate) fn path_sessions(seed: u64) -> Case {
    let mut rng = random(seed);
    let mut requests = Vec::new();
    for n in 0..700 {
        for _ in 0..rng.random_range(2..=3) {
            requests.push((format!("http://s.example/s/{}/item/{n}", session(&mut rng)), n));
        }
    }
    shuffled("session in the path", requests, &mut rng)
}

/// Each page four times.
pub(crate) fn print_www_slash(seed: u64) -> Case {
    let of = |n: u64| {
        [
            (format!("http://p.example/article/{n}"), n),
            (format!("http://p.example/print/{n}"), n),
            (format!("http://www.p.example/article/{n}"), n),
            (format!("http://p.example/article/{n}/"), n),
        ]
    };
    shuffled("print, www, slash", (0..700).flat_map(of).collect(), &mut random(seed))
}

/// Four parameters that change together.
pub(crate) fn tracking(seed: u64) -> Case {
    let mut rng = random(seed);
    let mut requests = Vec::new();
    for n in 0..700 {
        requests.push((format!("http://t.example/a/{n}"), n));
        for _ in 0..rng.random_range(1..=3) {
            let (source, medium) = (rng.random_range(0..9), rng.random_range(0..5));
            let (campaign, click) = (session(&mut rng), session(&mut rng));
            requests.push((
                format!("http://t.example/a/{n}?utm_source={source}&utm_medium={medium}&utm_campaign={campaign}&gclid={click}"),
                n,
            ));
        }
    }
    shuffled("tracking parameters", requests, &mut rng)
}

/// `page` is ignored by 350 documents, and decides on one list.
pub(crate) fn decisive_on_one_list(seed: u64) -> Case {
    let mut rng = random(seed);
    let mut requests = Vec::new();
    for n in 0..350 {
        for page in 1..=rng.random_range(3..=5) {
            requests.push((format!("http://d.example/doc/{n}?page={page}"), n));
        }
    }
    requests.extend((0..600).map(|page| (format!("http://d.example/list?page={page}"), 10_000 + page)));
    shuffled("decisive on one list", requests, &mut rng)
}

/// `page` is ignored by one host, and decides on the next one.
pub(crate) fn two_hosts(seed: u64) -> Case {
    let of = |n: u64| (1..=6).map(move |page| (format!("http://one.example/doc/{n}?page={page}"), n));
    let mut case = shuffled("two hosts", (0..150).flat_map(of).collect(), &mut random(seed));
    let second = (0..240).map(|page| (format!("http://two.example/list?page={page}"), 10_000 + page));
    case.requests.extend(second);
    case
}

/// `view` is ignored, and then it decides.
pub(crate) fn site_change(seed: u64) -> Case {
    let mut rng = random(seed);
    let of = |n: u64| ["a", "b", "c"].map(|view| (format!("http://v.example/x/{n}?view={view}"), n));
    let mut case = shuffled("site change", (0..450).flat_map(of).collect(), &mut rng);
    let mut later: Vec<(String, u64)> = (450..900)
        .flat_map(|n| {
            let views = ["a", "b", "c"].into_iter().enumerate();
            views.map(move |(at, view)| {
                (format!("http://v.example/x/{n}?view={view}"), 10_000 + 3 * n + at as u64)
            })
        })
        .collect();
    later.shuffle(&mut rng);
    case.requests.extend(later);
    case
}

const WALL: u64 = 999_999;

/// The first 300 answers are one log-in page, then all are different.
pub(crate) fn login_wall(_: u64) -> Case {
    let requests = (0..1_500).map(|n| (format!("http://w.example/p/{n}"), if n < 300 { WALL } else { n }));
    Case { name: "log-in wall first", requests: requests.collect() }
}

/// All pages are different, but for 300 in the middle.
pub(crate) fn wall_in_the_middle(_: u64) -> Case {
    let content = |n: u64| if (400..700).contains(&n) { WALL } else { n };
    let requests = (0..1_800).map(|n| (format!("http://m.example/p/{}?n={}", n % 600, n / 600), content(n)));
    Case { name: "wall in the middle", requests: requests.collect() }
}

/// The first 300 pages are 15 topics in 20 sessions each, then all are different.
pub(crate) fn warm_up_of_copies(seed: u64) -> Case {
    let mut rng = random(seed);
    let mut requests = Vec::new();
    for n in 0..15 {
        for _ in 0..20 {
            requests.push((format!("http://u.example/t/{n}?sid={}", session(&mut rng)), n));
        }
    }
    requests.shuffle(&mut rng);
    requests.extend((15..1_215).map(|n| (format!("http://u.example/t/{n}?sid={}", session(&mut rng)), n)));
    Case { name: "warm-up of copies", requests }
}

/// No two are the same.
pub(crate) fn all_different(seed: u64) -> Case {
    let requests = (0..1_500).map(|n| (format!("http://a.example/{}/x?id={n}&v={}", n % 7, n % 11), n));
    shuffled("all different", requests.collect(), &mut random(seed))
}

/// Eight pages, in a new session with every link.
pub(crate) fn endless_sessions(seed: u64) -> Case {
    let mut rng = random(seed);
    let requests = (0..3_000)
        .map(|n| (format!("http://i.example/in;jsessionid={}/p{}", session(&mut rng), n % 8), n % 8));
    Case { name: "endless sessions", requests: requests.collect() }
}
