//! Replays recorded crawls through the model, for quick work on it: `replay FOLDER [--order bfs,random,dfs] [--in-flight 1,4,16,32] [--seeds
//! N] [--sites a,b] [--causes] [--lost] [--duplicates CAUSE]`. The folder has files `NAME.jsonl` and `NAME.tsv`, unpacked.

use std::fs::File;
use std::io::BufReader;

use huntsman_detect::avoid::Options;
use huntsman_detect::avoid::evaluation::{Cause, Order, Recording, Replay, Replayed, Truth, View};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value =
        |flag: &str| words.iter().position(|word| word == flag).and_then(|at| words.get(at + 1)).cloned();
    let has = |flag: &str| words.iter().any(|word| word == flag);
    let folder = words.first().expect("a folder");
    let list = |flag: &str, default: &str| -> Vec<String> {
        value(flag).unwrap_or_else(|| default.to_owned()).split(',').map(str::to_owned).collect()
    };
    let sites = list("--sites", "mediawiki,cgit,fossil,trac,dokuwiki,gitweb,forum,python3-doc");
    let orders = list("--order", "bfs");
    let flights = list("--in-flight", "16");
    let seeds: u64 = value("--seeds").map_or(Ok(4), |seeds| seeds.parse())?;
    let first: u64 = value("--first").map_or(Ok(0), |seeds| seeds.parse())?;
    for site in &sites {
        let truth = Truth::read(BufReader::new(File::open(format!("{folder}/{site}.tsv"))?))?;
        let text = BufReader::with_capacity(1 << 20, File::open(format!("{folder}/{site}.jsonl"))?);
        let recording = Recording::read(text, truth)?;
        for order in Order::ALL.into_iter().filter(|order| orders.iter().any(|name| name == order.name())) {
            for in_flight in &flights {
                let in_flight: usize = in_flight.parse()?;
                let runs: Vec<Replayed> = (first..first + seeds)
                    .map(|seed| {
                        let options = Options { seed, ..Options::default() };
                        Replay { order, in_flight, options }.run(&recording)
                    })
                    .collect();
                print(site, order, in_flight, &runs);
                if has("--causes") {
                    causes(&runs);
                }
                if has("--lost") {
                    for (seed, run) in runs.iter().enumerate() {
                        for loss in &run.lost {
                            println!("  lost {seed} {} {:?}", loss.url, loss.rule);
                        }
                    }
                }
                if let Some(file) = value("--requests") {
                    std::fs::write(file, runs[0].requests.join("\n"))?;
                }
                if let Some(cause) = value("--duplicates") {
                    for duplicate in runs[0].duplicates.iter().filter(|one| one.cause.name() == cause) {
                        println!("  {} = {} {}", duplicate.url, duplicate.like, duplicate.rule);
                    }
                }
            }
        }
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
}

fn print(site: &str, order: Order, in_flight: usize, runs: &[Replayed]) {
    let area = |run: &Replayed| run.score.view(View::Area);
    let saved: Vec<f64> = runs.iter().map(|run| area(run).saved() * 100.0).collect();
    let lost: Vec<f64> = runs.iter().map(|run| area(run).lost_share() * 100.0).collect();
    let most = lost.iter().copied().fold(0.0, f64::max);
    let page = median(runs.iter().map(|run| run.score.view(View::Page).lost_share() * 100.0).collect());
    let each: Vec<String> = saved.iter().map(|saved| format!("{saved:.1}")).collect();
    let losses: Vec<String> = lost.iter().map(|lost| format!("{lost:.2}")).collect();
    let estimates: Vec<String> = runs
        .iter()
        .map(|run| {
            run.estimated_loss
                .map_or("-".to_owned(), |(loss, most)| format!("{:.2}<{:.2}", loss * 100.0, most * 100.0))
        })
        .collect();
    println!(
        "{site:12} {:6} {in_flight:2}  saved {:5.1} ({})  lost {most:.2} ({})  page view lost {page:.1}  own {}  explored {}",
        order.name(),
        median(saved.clone()),
        each.join(" "),
        losses.join(" "),
        estimates.join(" "),
        runs[0].explored,
    );
}

fn causes(runs: &[Replayed]) {
    let of = |cause: Cause| median(runs.iter().map(|run| run.count(cause) as f64).collect());
    let cells: Vec<String> =
        Cause::ALL.iter().map(|cause| format!("{} {:.0}", cause.name(), of(*cause))).collect();
    println!("    {}", cells.join(", "));
}
