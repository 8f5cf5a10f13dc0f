//! Generated sites, crawled without a network with both models.

use std::io::{self, Write};

use huntsman::detect::avoid::Options;
use huntsman::detect::avoid::evaluation::{Case, CaseRequest, Outcome as Crawled, Simulation};
use huntsman::detect::maybedont::GateSettings;
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::process::thread_clock;
use huntsman_cli::progress::Screen;
use serde_json::{Map, Value, json};

use super::args::{AvoidDupArgs, Mode};
use super::{Marked, Spread, estimate, number, ratio, title};
use crate::BUILD;

/// Numbers of requests in flight for the forums: copies stand side by side there, so this number matters most.
const FORUM_IN_FLIGHT: [u64; 4] = [0, 1, 4, 16];
/// Numbers of requests in flight for all other sites: that of MaybeDont's measurements, and that of usual crawls.
const IN_FLIGHT: [u64; 2] = [0, 16];

/// One case with one number of requests in flight, crawled with one model and every seed.
struct Runs {
    mode: Mode,
    runs: Vec<(u64, Crawled)>,
}

pub(super) fn run(args: &AvoidDupArgs) -> Outcome {
    let named: Vec<Case> = args.case.iter().filter_map(|name| Case::of_name(name)).collect();
    let cases = if named.is_empty() { Case::ALL.to_vec() } else { named };
    let (seeds, modes) = (args.seeds(), args.mode.each());
    let screen = Screen::with_progress();
    let mut rows: Vec<(Case, u64, Vec<Runs>)> = Vec::new();
    for case in cases {
        let sites: Vec<(u64, Vec<CaseRequest>)> =
            seeds.iter().map(|seed| (*seed, case.requests(*seed))).collect();
        let in_flight = match (&args.in_flight[..], case) {
            ([], Case::ForumRandom | Case::ForumAdjacent) => &FORUM_IN_FLIGHT[..],
            ([], _) => &IN_FLIGHT[..],
            (given, _) => given,
        };
        for in_flight in in_flight {
            let mut of_modes = Vec::new();
            for mode in modes {
                screen.status(&format!("{}, {in_flight} in flight, {}", case.name(), mode.name()));
                let runs =
                    sites.iter().map(|(seed, site)| Ok((*seed, crawl(site, *mode, *in_flight, *seed)?)));
                of_modes.push(Runs { mode: *mode, runs: runs.collect::<Outcome<_>>()? });
            }
            rows.push((case, *in_flight, of_modes));
        }
    }
    screen.clear();
    let mut stdout = io::stdout().lock();
    if args.json {
        let cases: Vec<Value> =
            rows.iter().map(|(case, in_flight, modes)| row_json(*case, *in_flight, modes)).collect();
        let out = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build": BUILD,
            "seeds": seeds,
            "cases": cases,
        });
        writeln!(stdout, "{out}")?;
        return Ok(Exit::Done);
    }
    quality(modes, &rows).print(&mut stdout)?;
    writeln!(stdout)?;
    cost(modes, &rows).print(&mut stdout)?;
    let range = if seeds.len() > 1 { "; ranges are over the seeds" } else { "" };
    let shown: Vec<String> = seeds.iter().take(10).map(u64::to_string).collect();
    let more = if seeds.len() > 10 { ", ..." } else { "" };
    writeln!(stdout, "\nseeds {}{more}{range}; {BUILD} build", shown.join(", "))?;
    Ok(Exit::Done)
}

fn crawl(site: &[CaseRequest], mode: Mode, in_flight: u64, seed: u64) -> Outcome<Crawled> {
    let in_flight = usize::try_from(in_flight).unwrap_or(usize::MAX);
    let simulation = Simulation::in_flight(in_flight).clock(thread_clock);
    match mode {
        Mode::Default => Ok(simulation.with_default(site, Options { seed, ..Options::default() })),
        Mode::Reference => simulation
            .with_reference(site, GateSettings { seed, ..GateSettings::default() })
            .map_err(|error| Failure::usage(error.to_string())),
    }
}

impl Runs {
    fn spread(&self, number: impl Fn(&Crawled) -> Option<f64>) -> Spread {
        Spread::of(self.runs.iter().map(|(_, crawled)| number(crawled)))
    }

    fn count(&self, count: impl Fn(&Crawled) -> usize) -> Spread {
        self.spread(|crawled| Some(count(crawled) as f64))
    }

    fn micros(&self, time: impl Fn(&Crawled) -> std::time::Duration) -> Spread {
        self.spread(|crawled| Some(time(crawled).as_secs_f64() * 1e6))
    }

    fn estimate(&self) -> (Spread, Spread) {
        (
            self.spread(|crawled| crawled.estimated_loss.map(|(share, _)| share)),
            self.spread(|crawled| crawled.estimated_loss.map(|(_, most)| most)),
        )
    }

    fn json(&self) -> Value {
        let (loss, most) = self.estimate();
        let lost = self.count(|crawled| crawled.lost);
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|(seed, crawled)| {
                json!({
                    "seed": seed,
                    "requests": crawled.requests,
                    "contents": crawled.contents,
                    "copies": crawled.copies,
                    "recall": crawled.recall(),
                    "lost": crawled.lost,
                    "lost_share": crawled.lost_share(),
                    "fetched": crawled.fetched,
                    "skipped": crawled.skipped,
                    "explored": crawled.explored,
                    "estimated_loss": crawled.estimated_loss.map(|(share, _)| share),
                    "estimated_loss_most": crawled.estimated_loss.map(|(_, most)| most),
                })
            })
            .collect();
        json!({
            "recall": self.spread(Crawled::recall).json(),
            "lost": lost.json(),
            "lost_most": lost.0.last(),
            "lost_share": self.spread(|crawled| Some(crawled.lost_share())).json(),
            "fetched": self.count(|crawled| crawled.fetched).json(),
            "skipped": self.count(|crawled| crawled.skipped).json(),
            "explored": self.count(|crawled| crawled.explored).json(),
            "estimated_loss": loss.json(),
            "estimated_loss_most": most.json(),
            "learn_us": {
                "median": self.micros(|crawled| crawled.learning.median).json(),
                "p99": self.micros(|crawled| crawled.learning.p99).json(),
                "total": self.micros(|crawled| crawled.learning.total).json(),
            },
            "ask_us": {
                "median": self.micros(|crawled| crawled.asking.median).json(),
                "p99": self.micros(|crawled| crawled.asking.p99).json(),
                "total": self.micros(|crawled| crawled.asking.total).json(),
            },
            "runs": runs,
        })
    }
}

fn row_json(case: Case, in_flight: u64, modes: &[Runs]) -> Value {
    let mut row = Map::new();
    row.insert("case".to_owned(), json!(case.name()));
    row.insert("about".to_owned(), json!(case.about()));
    row.insert("in_flight".to_owned(), json!(in_flight));
    if let Some(any) = modes.first() {
        row.insert("requests".to_owned(), any.count(|crawled| crawled.requests).json());
        row.insert("contents".to_owned(), any.count(|crawled| crawled.contents).json());
        row.insert("copies".to_owned(), any.count(|crawled| crawled.copies).json());
    }
    for runs in modes {
        row.insert(runs.mode.name().to_owned(), runs.json());
    }
    Value::Object(row)
}

/// Pages found and lost. A line is marked if our model lost a page.
fn quality(modes: &[Mode], rows: &[(Case, u64, Vec<Runs>)]) -> Marked {
    let mut groups = vec!["", "", "", ""];
    let mut head = vec!["case", "in flight", "requests", "contents"];
    for mode in modes {
        groups.extend([title(*mode), "", ""]);
        head.extend(["recall", "lost", "skipped"]);
        if *mode == Mode::Default {
            groups.push("");
            head.push("own estimate of the loss");
        }
    }
    let right: Vec<usize> = (1..head.len()).collect();
    let mut table = Marked::new(&right, &[&groups, &head]);
    for (case, in_flight, modes) in rows {
        let mut cells = vec![case.name().to_owned(), in_flight.to_string()];
        if let Some(any) = modes.first() {
            cells.push(any.count(|crawled| crawled.requests).middle(number));
            cells.push(any.count(|crawled| crawled.contents).middle(number));
        }
        let mut is_lossy = false;
        for runs in modes {
            let lost = runs.count(|crawled| crawled.lost);
            cells.push(runs.spread(Crawled::recall).range(ratio));
            cells.push(lost.range(number));
            cells.push(runs.count(|crawled| crawled.skipped).range(number));
            if runs.mode == Mode::Default {
                is_lossy = lost.0.last().is_some_and(|most| *most > 0.0);
                let (loss, most) = runs.estimate();
                cells.push(estimate(loss.median(), most.median()));
            }
        }
        table.row(cells, is_lossy);
    }
    table
}

/// The cost: medians over the seeds.
fn cost(modes: &[Mode], rows: &[(Case, u64, Vec<Runs>)]) -> Marked {
    let mut groups = vec!["CPU time in us", ""];
    let mut head = vec!["case", "in flight"];
    for mode in modes {
        groups.extend([title(*mode), "", "", ""]);
        head.extend(["a page", "99th %", "a question", "99th %"]);
    }
    let right: Vec<usize> = (1..head.len()).collect();
    let mut table = Marked::new(&right, &[&groups, &head]);
    for (case, in_flight, modes) in rows {
        let mut cells = vec![case.name().to_owned(), in_flight.to_string()];
        for runs in modes {
            let one = |value: f64| format!("{value:.1}");
            cells.push(runs.micros(|crawled| crawled.learning.median).middle(number));
            cells.push(runs.micros(|crawled| crawled.learning.p99).middle(number));
            cells.push(runs.micros(|crawled| crawled.asking.median).middle(one));
            cells.push(runs.micros(|crawled| crawled.asking.p99).middle(one));
        }
        table.row(cells, false);
    }
    table
}
