//! Replays a recorded crawl against the predictor.
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::io::BufRead;
use huntsman_detect::avoid::{LinkContext, Options, PageText, Site};
use huntsman_html::{Scan, ScanOptions};
use url::Url;

struct Rec { url: Url, status: u16, html: bool, location: Option<String>, body: String }
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let file = &args[1];
    let truth = &args[2];
    let seed: u64 = args.get(3).map_or(1, |s| s.parse().unwrap());
    let warmup: usize = std::env::var("WARMUP").map_or(300, |s| s.parse().unwrap());
    let thr: f64 = std::env::var("THR").map_or(0.98, |s| s.parse().unwrap());
    let explore: f64 = std::env::var("EXPLORE").map_or(0.05, |s| s.parse().unwrap());
    let min_evidence: f64 = std::env::var("MINEV").map_or(10.0, |s| s.parse().unwrap());
    let keep: f64 = std::env::var("KEEP").map_or(0.9, |s| s.parse().unwrap());
    let invest = std::env::var("NOINVEST").is_err();
    let verbose = std::env::var("V").is_ok();
    let mut recs: HashMap<String, Rec> = HashMap::new();
    let mut order = Vec::new();
    for line in std::io::BufReader::new(std::fs::File::open(file).unwrap()).lines() {
        let v: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let url = Url::parse(v["url"].as_str().unwrap()).unwrap();
        order.push(url.to_string());
        recs.insert(url.to_string(), Rec { status: v["status"].as_u64().unwrap() as u16, html: v["type"].as_str().unwrap().contains("html"), location: v["location"].as_str().map(str::to_owned), body: v["body"].as_str().unwrap().to_owned(), url });
    }
    let mut area: HashMap<String, (i64, String)> = HashMap::new();
    for line in std::io::BufReader::new(std::fs::File::open(truth).unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with('#') { continue; }
        let f: Vec<&str> = line.split('\t').collect();
        area.insert(f[3].to_owned(), (f[0].parse().unwrap(), f[2].to_owned()));
    }
    let key = |u: &Url| match u.query() { Some(q) => format!("{}?{q}", u.path()), None => u.path().to_owned() };
    let mut site = Site::new(Options { min_evidence });
    let mut queue: BTreeMap<(i64, u64), String> = BTreeMap::new();
    let mut seq = 0u64;
    let mut known: HashSet<String> = HashSet::new();
    let mut links_of: HashMap<String, Vec<LinkContext>> = HashMap::new();
    let start = order[0].clone();
    known.insert(start.clone());
    site.discover(&recs[&start].url);
    queue.insert((0, 0), start);
    let mut flying: VecDeque<String> = VecDeque::new();
    let (mut downloaded, mut skipped, mut explored) = (Vec::new(), Vec::new(), 0);
    let options = ScanOptions { blocks: true, ..ScanOptions::default() };
    let mut scan = Scan::new();
    let mut wrong: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    let mut waste: BTreeMap<String, u32> = BTreeMap::new();
    let mut have: HashSet<i64> = HashSet::new();
    let mut wait = false;
    let mut learned: Vec<(u32, String)> = Vec::new();
    let began = std::time::Instant::now();
    loop {
        let mut landed = None;
        if flying.len() >= 16 || queue.is_empty() || wait {
            wait = false;
            match flying.pop_front() { Some(u) => landed = Some(u), None => if queue.is_empty() { break } }
        }
        if let Some(name) = landed {
            let rec = &recs[&name];
            site.flies(&rec.url, false);
            let mut found: Vec<(Url, u64)> = Vec::new();
            if let Some(location) = &rec.location { if let Ok(u) = rec.url.join(location) { found.push((u, 0)); } }
            else if rec.status == 200 && rec.html {
                scan.run(&rec.body, &options);
                if std::env::var("POS").is_ok() && learned.len() % 50 == 0 { for b in scan.blocks() { println!("POS {} {} {:?}", (b.path ^ (b.path >> 32)) as u32, name, b.text.chars().take(60).collect::<String>()); } }
                let text = PageText::of(scan.blocks().map(|b| (b.path, b.text)));
                let empty = Vec::new();
                let ctx = links_of.get(&name).unwrap_or(&empty).clone();
                let page = site.learn(&rec.url, text, &ctx);
                learned.push((page, name.clone()));
                for link in scan.links(&rec.body) {
                    if let Ok(mut u) = rec.url.join(link.href) { u.set_fragment(None);
                        let name = u.to_string();
                        if recs.contains_key(&name) {
                            let entry = links_of.entry(name).or_default();
                            let position = link.path;
                            if entry.len() < 2 && !entry.iter().any(|l| l.position == position) { entry.push(LinkContext { page, position }); }
                            found.push((u, 0));
                        }
                    }
                }
            }
            for (u, _) in found {
                let name = u.to_string();
                if recs.contains_key(&name) && known.insert(name.clone()) {
                    site.discover(&u);
                    seq += 1;
                    queue.insert((0, seq), name);
                }
            }
            continue;
        }
        let Some(((prio, s), name)) = queue.pop_first() else { continue };
        if prio >= 5000 && !flying.is_empty() { queue.insert((prio, s), name); wait = true; continue; }
        let rec = &recs[&name];
        let empty = Vec::new();
        let links = links_of.get(&name).unwrap_or(&empty);
        let truth = area.get(&key(&rec.url));
        let verdict = site.judge(&rec.url, links);
        let p = verdict.probability;
        let mut why = "fetch".to_owned();
        if site.pages() >= warmup && !(prio >= 5000 && site.is_reopened(&rec.url)) {
            if p > thr {
                let coin = xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), seed) as f64 / u64::MAX as f64;
                if coin >= explore && prio < 5000 { site.skip(&rec.url, &verdict); queue.insert((5000, s), name); continue; }
                if prio >= 5000 {
                    if let Some((c, k)) = truth { if k == "page" { let e = wrong.entry(format!("{:?}", verdict.kinship)).or_default(); e.0 += 1; if !have.contains(c) { e.1 += 1; if verbose { println!("LOSS? {name} {verdict:?} {links:?}"); } } } }
                    skipped.push(name.clone());
                    continue;
                }
                explored += 1;
                why = "explored".into();
            } else if prio >= 5000 && p > keep { skipped.push(name.clone()); continue;
            } else if p > 0.5 && (verdict.row.total() >= min_evidence || !invest) {
                let want = (p * 50.0) as i64;
                if prio < want { queue.insert((want, s), name); continue; }
                if verdict.hold && !flying.is_empty() && prio < 1000 { queue.insert((prio + 1000, s), name); 
                    // wait for a landing
                    continue; }
            } else if verdict.hold && prio < 500 && !flying.is_empty() { queue.insert((500, s), name); continue; }
        } else { why = "warmup".into(); }
        if let Some((c, k)) = truth { if k == "page" && !have.insert(*c) { 
            let b = if why != "fetch" { why.clone() } else if p >= 0.6 { format!("earning {:?}", verdict.kinship) } else if p > 0.0 { "p<.6".into() } else { "no row".into() };
            *waste.entry(b.clone()).or_default() += 1; if verbose { println!("WASTE {b} {p:.3} {name} {:?} {:?} set {:b}", verdict.kinship, verdict.row, verdict.set); } } }
        if verbose { println!("FETCH {name}"); }
        site.flies(&rec.url, true);
        downloaded.push(name.clone());
        flying.push_back(name);
    }
    if verbose {
        let (mut by_truth, mut by_ours) = (HashMap::new(), HashMap::new());
        let (mut split, mut merged, mut none) = (0, 0, 0);
        for (page, name) in &learned {
            let Some((c, k)) = area.get(&key(&recs[name].url)) else { continue };
            if k != "page" { continue; }
            let Some(ours) = site.content(*page) else { none += 1; continue };
            let first = by_truth.entry(*c).or_insert((ours, name.clone())).clone();
            if first.0 != ours { split += 1; println!("SPLIT {name} from {}", first.1); }
            let first = by_ours.entry(ours).or_insert((*c, name.clone())).clone();
            if first.0 != *c { merged += 1; println!("MERGED {name} with {}", first.1); }
        }
        println!("split {split} merged {merged} none {none}");
    }
    let pages: HashMap<&String, i64> = area.iter().filter(|(_, v)| v.1 == "page").map(|(k, v)| (k, v.0)).collect();
    let clusters: HashSet<i64> = pages.values().copied().collect();
    let dl: HashSet<String> = downloaded.iter().map(|n| key(&recs[n].url)).filter(|k| pages.contains_key(k)).collect();
    let got: HashSet<i64> = dl.iter().map(|k| pages[k]).collect();
    println!("{file}: pages {} downloaded {} saved {:.1} % lost {} of {} = {:.2} % explored {explored} skipped {} seen {} in {:.1}s", pages.len(), dl.len(), 100.0 * (1.0 - dl.len() as f64 / pages.len() as f64), clusters.len() - got.len(), clusters.len(), 100.0 * (1.0 - got.len() as f64 / clusters.len() as f64), skipped.len(), known.len(), began.elapsed().as_secs_f64());
    println!("  skips by kinship (all, first of content): {wrong:?}\n  waste: {waste:?}\n  {}", site.describe());
}
