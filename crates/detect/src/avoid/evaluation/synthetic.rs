//! Generates the sites: their requests in order, and the content of each.

use super::case::CaseRequest;
use super::seeded_random::SeededRandom;

/// The content of a wall, which no page has.
const WALL: u64 = 999_999;

fn shuffled(mut requests: Vec<CaseRequest>, dice: &mut SeededRandom) -> Vec<CaseRequest> {
    dice.shuffle(&mut requests);
    requests
}

fn wall(url: &str) -> CaseRequest {
    CaseRequest { is_wall: true, ..CaseRequest::new(url, WALL) }
}

pub(super) fn forum(seed: u64, adjacent: bool) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut groups: Vec<Vec<CaseRequest>> = Vec::new();
    for topic in 0..700 {
        let pages = if topic % 5 < 4 { 1 } else { 5 };
        for page in 0..pages {
            let content = groups.len() as u64;
            let mut base = format!("http://f.example/viewtopic.php?t={topic}");
            if page > 0 {
                base += &format!("&start={}", 15 * page);
            }
            let mut group = vec![CaseRequest::new(&base, content)];
            let mut copy = |more: String| group.push(CaseRequest::new(&(base.clone() + &more), content));
            if page == 0 && dice.is_under(60) {
                copy("&start=0".to_owned());
            }
            if dice.is_under(70) {
                copy(format!("&sid={}", dice.session()));
            }
            if dice.is_under(40) {
                copy(format!("&highlight=w{}", dice.below(300)));
            }
            if dice.is_under(30) {
                copy("&view=print".to_owned());
            }
            groups.push(group);
        }
    }
    if adjacent {
        dice.shuffle(&mut groups);
        groups.concat()
    } else {
        shuffled(groups.concat(), &mut dice)
    }
}

pub(super) fn path_sessions(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for n in 0..700 {
        for _ in 0..dice.within(2, 3) {
            requests.push(CaseRequest::new(&format!("http://s.example/s/{}/item/{n}", dice.session()), n));
        }
    }
    shuffled(requests, &mut dice)
}

pub(super) fn copies(seed: u64) -> Vec<CaseRequest> {
    let of = |n: u64| {
        [
            CaseRequest::new(&format!("http://p.example/article/{n}"), n),
            CaseRequest::new(&format!("http://p.example/print/{n}"), n),
            CaseRequest::new(&format!("http://www.p.example/article/{n}"), n),
            CaseRequest::new(&format!("http://p.example/article/{n}/"), n),
        ]
    };
    shuffled((0..700).flat_map(of).collect(), &mut SeededRandom::new(seed))
}

pub(super) fn tracking(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for n in 0..700 {
        requests.push(CaseRequest::new(&format!("http://t.example/a/{n}"), n));
        for _ in 0..dice.within(1, 3) {
            let (source, medium) = (dice.below(9), dice.below(5));
            let (campaign, click) = (dice.session(), dice.session());
            let url = format!(
                "http://t.example/a/{n}?utm_source={source}&utm_medium={medium}&utm_campaign={campaign}&gclid={click}"
            );
            requests.push(CaseRequest::new(&url, n));
        }
    }
    shuffled(requests, &mut dice)
}

pub(super) fn decisive_path(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for n in 0..350 {
        for page in 1..=dice.within(3, 5) {
            requests.push(CaseRequest::new(&format!("http://d.example/doc/{n}?page={page}"), n));
        }
    }
    let list = |page: u64| CaseRequest::new(&format!("http://d.example/list?page={page}"), 10_000 + page);
    requests.extend((0..600).map(list));
    shuffled(requests, &mut dice)
}

pub(super) fn two_hosts(seed: u64, first: &str, second: &str) -> Vec<CaseRequest> {
    let of =
        |n: u64| (1..=6).map(move |page| CaseRequest::new(&format!("http://{first}/doc/{n}?page={page}"), n));
    let mut requests = shuffled((0..150).flat_map(of).collect(), &mut SeededRandom::new(seed));
    let list = |page: u64| CaseRequest::new(&format!("http://{second}/list?page={page}"), 10_000 + page);
    requests.extend((0..240).map(list));
    requests
}

pub(super) fn site_change(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let views = |n: u64, contents: [u64; 3]| {
        ["a", "b", "c"].into_iter().zip(contents).map(move |(view, content)| {
            CaseRequest::new(&format!("http://v.example/x/{n}?view={view}"), content)
        })
    };
    let mut requests = shuffled((0..450).flat_map(|n| views(n, [n; 3])).collect(), &mut dice);
    let own = |n: u64| views(n, [0, 1, 2].map(|at| 10_000 + 3 * n + at));
    requests.extend(shuffled((450..900).flat_map(own).collect(), &mut dice));
    requests
}

pub(super) fn login_wall() -> Vec<CaseRequest> {
    let of = |n: u64| {
        let url = format!("http://w.example/page?id={n}");
        if n < 300 { wall(&url) } else { CaseRequest::new(&url, n) }
    };
    (0..1_500).map(of).collect()
}

pub(super) fn wall_in_the_middle() -> Vec<CaseRequest> {
    let of = |n: u64| {
        let url = format!("http://m.example/p/{}?n={}", n % 600, n / 600);
        if (400..700).contains(&n) { wall(&url) } else { CaseRequest::new(&url, n) }
    };
    (0..1_800).map(of).collect()
}

pub(super) fn warm_up_copies(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut topic =
        |n: u64| CaseRequest::new(&format!("http://u.example/topic?t={n}&sid={}", dice.session()), n);
    let first: Vec<CaseRequest> = (0..300).map(|at| topic(at / 20)).collect();
    let then: Vec<CaseRequest> = (15..1_215).map(topic).collect();
    let mut requests = shuffled(first, &mut dice);
    requests.extend(then);
    requests
}

pub(super) fn all_different(seed: u64) -> Vec<CaseRequest> {
    let of = |n: u64| CaseRequest::new(&format!("http://a.example/{}/x?id={n}&v={}", n % 7, n % 11), n);
    shuffled((0..1_500).map(of).collect(), &mut SeededRandom::new(seed))
}

pub(super) fn endless_sessions(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut of = |n: u64| {
        let url = format!("http://i.example/in;jsessionid={}/p{}", dice.session(), n % 8);
        CaseRequest::new(&url, n % 8)
    };
    (0..3_000).map(&mut of).collect()
}

pub(super) fn login_return(seed: u64) -> Vec<CaseRequest> {
    let of = |n: u64| {
        let url = format!("http://l.example/accounts/login/?next=%2Fentry%2F{n}%2Fedit");
        [CaseRequest::new(&format!("http://l.example/entry/{n}"), n), CaseRequest::new(&url, 10_000).short()]
    };
    shuffled((0..600).flat_map(of).collect(), &mut SeededRandom::new(seed))
}

pub(super) fn sort_segment(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for author in 0..300 {
        let has_one_book = dice.is_under(45);
        for (at, order) in ["new", "old", "abc", "zyx"].into_iter().enumerate() {
            let content = 4 * author + if has_one_book { 0 } else { at as u64 };
            requests.push(CaseRequest::new(&format!("http://k.example/author/{order}/{author}"), content));
        }
    }
    shuffled(requests, &mut dice)
}

pub(super) fn manual_versions(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for page in 0..150 {
        let mut content = 10 * page;
        for version in 0..8 {
            content += u64::from(version > 0 && dice.below(12) == 0);
            let url = format!("http://n.example/3.{version}/library/module{page}.html");
            requests.push(CaseRequest::new(&url, content));
        }
        for alias in ["stable", "latest"] {
            requests.push(CaseRequest::new(
                &format!("http://n.example/{alias}/library/module{page}.html"),
                content,
            ));
        }
    }
    shuffled(requests, &mut dice)
}

pub(super) fn facets(seed: u64) -> Vec<CaseRequest> {
    let mut requests = Vec::new();
    for kind in 0..5 {
        for year in 0..10 {
            for place in 0..7 {
                let content = kind * 100 + year * 10 + place;
                let facets = format!("kind=k{kind}&year={}&place=p{place}", 2_010 + year);
                for sort in ["name", "date", "size", "price"] {
                    for direction in ["asc", "desc"] {
                        let url = format!("http://e.example/data?{facets}&sort={sort}&dir={direction}");
                        requests.push(CaseRequest::new(&url, content));
                    }
                }
            }
        }
    }
    shuffled(requests, &mut SeededRandom::new(seed))
}

pub(super) fn filters(seed: u64, has_one_effect: bool) -> Vec<CaseRequest> {
    let of = |set: u64| {
        let filters: Vec<String> =
            (0..12).filter(|n| set & (1 << n) != 0).map(|n| format!("filter{n}=on")).collect();
        let content = if has_one_effect { (set >> 4) & 1 } else { 0 };
        CaseRequest::new(&format!("http://q.example/list?{}", filters.join("&")), content)
    };
    let mut sets: Vec<u64> = (0..4_096).collect();
    // Each page links to those with one filter more or less, so few filters are found first.
    SeededRandom::new(seed).shuffle(&mut sets);
    sets.sort_by_key(|set| set.count_ones());
    sets.into_iter().map(of).collect()
}

pub(super) fn spellings(seed: u64) -> Vec<CaseRequest> {
    let of = |n: u64| {
        [
            CaseRequest::new(&format!("http://y.example/wiki/Book_of_n{n},_part_{}", n % 9), n),
            CaseRequest::new(&format!("http://y.example/index.php?title=Book+of+n{n},+part+{}", n % 9), n),
        ]
    };
    shuffled((0..700).flat_map(of).collect(), &mut SeededRandom::new(seed))
}

pub(super) fn short_texts(seed: u64) -> Vec<CaseRequest> {
    let mut dice = SeededRandom::new(seed);
    let mut requests = Vec::new();
    for n in 0..500 {
        requests.push(CaseRequest::new(&format!("http://b.example/list?id={n}"), n).short());
        for _ in 0..dice.within(1, 3) {
            let url = format!("http://b.example/list?id={n}&sid={}", dice.session());
            requests.push(CaseRequest::new(&url, n).short());
        }
    }
    shuffled(requests, &mut dice)
}

pub(super) fn revisions(seed: u64) -> Vec<CaseRequest> {
    let of = |revision: u64| {
        (0..30).map(move |file| {
            // The files change at different revisions.
            let content = 5 * file + ((revision + 5 * file) % 60) / 12;
            CaseRequest::new(&format!("http://g.example/blob?f=file{file}.c&rev={revision}"), content)
        })
    };
    shuffled((0..60).flat_map(of).collect(), &mut SeededRandom::new(seed))
}

pub(super) fn one_end() -> Vec<CaseRequest> {
    let of = |n: u64| CaseRequest::new(&format!("http://o.example/log?before={n}"), n.saturating_sub(599));
    (0..900).map(of).collect()
}
