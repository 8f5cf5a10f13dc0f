//! Replays a recorded crawl against the predictor.
use huntsman_detect::avoid::{Decision, LinkContext, Options, PageText, Predictor};
use huntsman_html::{Scan, ScanOptions};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::BufRead;
use url::Url;

struct Rec {
    url: Url,
    status: u16,
    html: bool,
    location: Option<String>,
    body: String,
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let file = &args[1];
    let truth = &args[2];
    let seed: u64 = args.get(3).map_or(1, |s| s.parse().unwrap());
    let warmup: usize = std::env::var("WARMUP").map_or(300, |s| s.parse().unwrap());
    let thr: f64 = std::env::var("THR").map_or(0.98, |s| s.parse().unwrap());
    let explore: f64 = std::env::var("EXPLORE").map_or(0.05, |s| s.parse().unwrap());
    let min_evidence: f64 = std::env::var("MINEV").map_or(10.0, |s| s.parse().unwrap());
    let verbose = std::env::var("V").is_ok();
    let mut recs: HashMap<String, Rec> = HashMap::new();
    let mut order = Vec::new();
    for line in std::io::BufReader::new(std::fs::File::open(file).unwrap()).lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let url = Url::parse(v["url"].as_str().unwrap()).unwrap();
        order.push(url.to_string());
        recs.insert(
            url.to_string(),
            Rec {
                status: v["status"].as_u64().unwrap() as u16,
                html: v["type"].as_str().unwrap().contains("html"),
                location: v["location"].as_str().map(str::to_owned),
                body: v["body"].as_str().unwrap().to_owned(),
                url,
            },
        );
    }
    let mut area: HashMap<String, (i64, String)> = HashMap::new();
    for line in std::io::BufReader::new(std::fs::File::open(truth).unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with('#') {
            continue;
        }
        let f: Vec<&str> = line.split('\t').collect();
        area.insert(f[3].to_owned(), (f[0].parse().unwrap(), f[2].to_owned()));
    }
    let key = |u: &Url| match u.query() {
        Some(q) => format!("{}?{q}", u.path()),
        None => u.path().to_owned(),
    };
    let mut predictor = Predictor::new(Options {
        exploration: explore,
        min_evidence,
        warmup: warmup as u32,
        threshold: thr,
        seed,
    });
    let site = "h";
    let mut queue: BTreeMap<(i64, u64), String> = BTreeMap::new();
    let mut seq = 0u64;
    let mut known: HashSet<String> = HashSet::new();
    let start = order[0].clone();
    known.insert(start.clone());
    predictor.discover(site, &recs[&start].url, None);
    queue.insert((0, 0), start);
    let mut flying: VecDeque<String> = VecDeque::new();
    let (mut downloaded, mut skipped) = (Vec::new(), Vec::new());
    let options = ScanOptions { blocks: true, ..ScanOptions::default() };
    let mut scan = Scan::new();
    let mut wait = false;
    let mut have: HashSet<i64> = HashSet::new();
    let began = std::time::Instant::now();
    let (mut learning, mut asking, mut asked) = (0.0, 0.0, 0);
    loop {
        let mut landed = None;
        if flying.len() >= 16 || queue.is_empty() || wait {
            wait = false;
            match flying.pop_front() {
                Some(u) => landed = Some(u),
                None => {
                    if queue.is_empty() {
                        break;
                    }
                }
            }
        }
        if let Some(name) = landed {
            let rec = &recs[&name];
            predictor.flies(site, &rec.url, false);
            let mut found: Vec<Url> = Vec::new();
            if let Some(location) = &rec.location {
                if let Ok(u) = rec.url.join(location) {
                    found.push(u);
                }
            } else if rec.status == 200 && rec.html {
                scan.run(&rec.body, &options);
                let t = std::time::Instant::now();
                let text = PageText::of(scan.blocks().map(|b| (b.path, b.text)));
                let page = predictor.learn(site, &rec.url, text);
                learning += t.elapsed().as_secs_f64();
                for link in scan.links(&rec.body) {
                    if let Ok(mut u) = rec.url.join(link.href) {
                        u.set_fragment(None);
                        if recs.contains_key(u.as_str()) {
                            if std::env::var("ALLLINKS").is_ok() || !known.contains(u.as_str()) {
                                predictor.discover(site, &u, Some(LinkContext { page, position: link.path }));
                            }
                            found.push(u);
                        }
                    }
                }
            }
            for u in found {
                let name = u.to_string();
                if recs.contains_key(&name) && known.insert(name.clone()) {
                    predictor.discover(site, &u, None);
                    seq += 1;
                    queue.insert((0, seq), name);
                }
            }
            continue;
        }
        let Some(((prio, s), name)) = queue.pop_first() else { continue };
        if prio >= 5000 && !flying.is_empty() {
            queue.insert((prio, s), name);
            wait = true;
            continue;
        }
        let rec = &recs[&name];
        let t = std::time::Instant::now();
        let decision = predictor.decide(site, &rec.url, prio >= 5000);
        asking += t.elapsed().as_secs_f64();
        asked += 1;
        match decision {
            Decision::Drop(reason) => {
                if let (true, Some((c, k))) = (verbose, area.get(&key(&rec.url))) {
                    if k == "page" && !have.contains(c) {
                        println!("LOSS? {name} {reason}");
                    }
                }
                skipped.push(name);
                continue;
            }
            Decision::Skip(_) => {
                queue.insert((5000, s), name);
                continue;
            }
            Decision::Delay { probability } if prio < (probability * 50.0) as i64 => {
                queue.insert(((probability * 50.0) as i64, s), name);
                continue;
            }
            Decision::Hold if prio < 1000 && !flying.is_empty() => {
                queue.insert((1000, s), name);
                continue;
            }
            _ => {}
        }
        if let Some((c, k)) = area.get(&key(&rec.url)) {
            if k == "page" && !have.insert(*c) && verbose {
                println!("WASTE {name} {:?}", predictor.explain(site, &rec.url).map(|r| r.to_string()));
            }
        }
        predictor.flies(site, &rec.url, true);
        downloaded.push(name.clone());
        flying.push_back(name);
    }
    let pages: HashMap<&String, i64> =
        area.iter().filter(|(_, v)| v.1 == "page").map(|(k, v)| (k, v.0)).collect();
    let clusters: HashSet<i64> = pages.values().copied().collect();
    let dl: HashSet<String> =
        downloaded.iter().map(|n| key(&recs[n].url)).filter(|k| pages.contains_key(k)).collect();
    let got: HashSet<i64> = dl.iter().map(|k| pages[k]).collect();
    let totals = predictor.totals();
    println!(
        "{file}: pages {} downloaded {} saved {:.1} % lost {} of {} = {:.2} % {totals:?} seen {} in {:.1}s, learn {:.3} ms, decide {:.1} us {:?}",
        pages.len(),
        dl.len(),
        100.0 * (1.0 - dl.len() as f64 / pages.len() as f64),
        clusters.len() - got.len(),
        clusters.len(),
        100.0 * (1.0 - got.len() as f64 / clusters.len() as f64),
        known.len(),
        began.elapsed().as_secs_f64(),
        learning * 1e3 / totals.learnt as f64,
        asking * 1e6 / asked as f64,
        predictor.sizes()
    );
    if verbose {
        for rule in predictor.rules().iter().take(12) {
            println!(
                "RULE {} {} {:?} skipped {} explored {} lost {} e.g. {}",
                rule.rule, rule.site, rule.evidence, rule.skipped, rule.explored, rule.lost, rule.example
            );
        }
    }
}
