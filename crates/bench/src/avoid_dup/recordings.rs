//! Recorded crawls of sites, crawled again without a network.

use std::error::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use huntsman::detect::avoid::Options;
use huntsman::detect::avoid::evaluation::{Cause, Order, Recording, Replay, Replayed, View};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::progress::Screen;
use huntsman_cli::render::escape;
use serde_json::{Map, Value, json};

use super::args::{AvoidDupArgs, Mode};
use super::{Marked, Spread, estimate, number, percent, score_json, truth};
use crate::BUILD;

/// zstd's window of the recordings, as the exponent of 2: 128 MiB, so that equal texts of a whole crawl are packed once.
const WINDOW: u32 = 27;
/// The most losses of a line that are shown.
const SHOWN: usize = 20;

/// One recording in one order with one number of requests in flight, crawled by one model with every seed.
struct Runs {
    name: String,
    order: Order,
    in_flight: usize,
    mode: Mode,
    runs: Vec<(u64, Replayed)>,
}

pub(super) fn run(path: &Path, args: &AvoidDupArgs) -> Outcome {
    let files = match path.is_dir() {
        true => recordings_in(path)?,
        false => vec![path.to_owned()],
    };
    if files.len() > 1 && args.truth.is_some() {
        return Err(Failure::usage("--truth belongs to one recording: leave it out for a directory"));
    }
    let orders: Vec<Order> = match args.order.is_empty() {
        true => vec![Order::Breadth],
        false => args.order.iter().map(|order| Order::from(*order)).collect(),
    };
    let in_flight = if args.in_flight.is_empty() { &[16][..] } else { &args.in_flight[..] };
    let screen = Screen::with_progress();
    let mut rows = Vec::new();
    for file in &files {
        let name = name_of(file);
        let recording = read(file, args)?;
        for order in &orders {
            for in_flight in in_flight {
                let in_flight = usize::try_from(*in_flight).unwrap_or(usize::MAX);
                for mode in args.mode.each() {
                    let (name, mode) = (name.clone(), *mode);
                    screen.status(&format!(
                        "{name}, {}, {in_flight} in flight, {}",
                        order.name(),
                        mode.name()
                    ));
                    let crawl = |seed: u64| {
                        let options = Options { seed, ..Options::default() };
                        let replay = Replay { order: *order, in_flight, options };
                        let run = match mode {
                            Mode::Default => replay.run(&recording),
                            Mode::Reference => replay.run_reference(&recording),
                        };
                        (seed, run)
                    };
                    let runs = args.seeds().into_iter().map(crawl).collect();
                    rows.push(Runs { name, order: *order, in_flight, mode, runs });
                }
            }
        }
    }
    screen.clear();
    let view = View::from(args.view);
    let mut stdout = io::stdout().lock();
    if args.json {
        let rows: Vec<Value> = rows.iter().map(|row| row.json(view)).collect();
        let out = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build": BUILD,
            "view": view.name(),
            "seeds": args.seeds(),
            "recordings": rows,
        });
        writeln!(stdout, "{out}")?;
        return Ok(Exit::Done);
    }
    quality(&rows, view).print(&mut stdout)?;
    writeln!(stdout)?;
    if rows.iter().any(|row| row.mode == Mode::Default) {
        causes(&rows).print(&mut stdout)?;
    }
    for row in &rows {
        row.print_losses(&mut stdout)?;
    }
    let seeds: Vec<String> = args.seeds().iter().map(u64::to_string).collect();
    writeln!(stdout, "\nseeds {}; medians over the seeds; {BUILD} build", seeds.join(", "))?;
    Ok(Exit::Done)
}

/// The recordings in a directory, by name.
fn recordings_in(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let is_recording = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        [".jsonl", ".jsonl.gz", ".jsonl.zst"].iter().any(|end| name.ends_with(end))
    };
    let entries = std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let mut files: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    files.retain(is_recording);
    files.sort();
    if files.is_empty() {
        let shown = escape(&directory.to_string_lossy()).into_owned();
        return Err(Failure::usage(format!(
            "--recording {shown}: no file ends in .jsonl, .jsonl.gz or .jsonl.zst"
        )));
    }
    Ok(files)
}

/// The name of a file up to its first dot after the directory: `wiki` of `wiki.jsonl.zst`.
fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.strip_suffix(".jsonl").unwrap_or(name).to_owned()
}

fn read(file: &Path, args: &AvoidDupArgs) -> Outcome<Recording> {
    let beside = |extension: &str| file.with_file_name(format!("{}.{extension}", name_of(file)));
    let truth = match &args.truth {
        Some(truth) => truth.clone(),
        None if beside("tsv").exists() => beside("tsv"),
        None => beside("tsv.gz"),
    };
    let truth = truth::read(&truth)?;
    let recording = match args.mode.each().contains(&Mode::Reference) {
        true => Recording::read_with_texts(open(file)?, truth),
        false => Recording::read(open(file)?, truth),
    };
    recording.map_err(|error| wrong(file, &error))
}

/// Opens a recorded crawl; `.gz` and `.zst` are unpacked.
pub(super) fn open(file: &Path) -> Outcome<Box<dyn BufRead>> {
    let opened = File::open(file).map_err(|error| wrong(file, &error))?;
    Ok(match file.extension().and_then(|extension| extension.to_str()) {
        Some("gz") => Box::new(BufReader::new(MultiGzDecoder::new(opened))),
        Some("zst") => {
            let mut unpacked =
                zstd::stream::read::Decoder::new(opened).map_err(|error| wrong(file, &error))?;
            unpacked.window_log_max(WINDOW).map_err(|error| wrong(file, &error))?;
            Box::new(BufReader::new(unpacked))
        }
        _ => Box::new(BufReader::new(opened)),
    })
}

/// What is wrong with a recorded crawl.
pub(super) fn wrong(file: &Path, error: &dyn Error) -> Failure {
    let shown = escape(&file.to_string_lossy()).into_owned();
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    Failure::usage(format!("{shown}: {error}{cause}"))
}

impl Runs {
    fn spread(&self, number: impl Fn(&Replayed) -> Option<f64>) -> Spread {
        Spread::of(self.runs.iter().map(|(_, run)| number(run)))
    }

    fn cells(&self) -> [String; 4] {
        [
            self.name.clone(),
            self.order.name().to_owned(),
            self.in_flight.to_string(),
            self.mode.name().to_owned(),
        ]
    }

    fn json(&self, view: View) -> Value {
        let runs: Vec<Value> = self.runs.iter().map(|(seed, run)| run_json(*seed, run)).collect();
        let of = |number: &dyn Fn(&Replayed) -> Option<f64>| self.spread(number).json();
        json!({
            "recording": self.name,
            "order": self.order.name(),
            "in_flight": self.in_flight,
            "mode": self.mode.name(),
            "possible": of(&|run| Some(run.score.view(view).possible())),
            "saved": of(&|run| Some(run.score.view(view).saved())),
            "lost_share": of(&|run| Some(run.score.view(view).lost_share())),
            "lost_share_most": self.spread(|run| Some(run.score.view(view).lost_share())).0.last(),
            "runs": runs,
        })
    }

    fn print_losses(&self, stdout: &mut impl Write) -> io::Result<()> {
        for (seed, run) in self.runs.iter().filter(|(_, run)| !run.lost.is_empty()) {
            let [name, order, in_flight, mode] = self.cells();
            let about = format!("{name}, {order}, {in_flight} in flight, {mode}, seed {seed}");
            writeln!(stdout, "\n{about}: {} contents lost", run.lost.len())?;
            for loss in run.lost.iter().take(SHOWN) {
                let why = match (&loss.rule, &loss.through) {
                    (Some(rule), _) => rule.clone(),
                    (None, Some((url, rule))) => format!("only skipped pages lead to it, as {url}  {rule}"),
                    (None, None) => "no page that was found leads to it".to_owned(),
                };
                let taken = loss.taken_for.iter().map(|page| format!("; the model takes it for {page}"));
                let why = why + &taken.collect::<String>();
                writeln!(stdout, "  {}  {}", escape(&loss.url), escape(&why))?;
            }
            if run.lost.len() > SHOWN {
                writeln!(stdout, "  and {} more: see --json", run.lost.len() - SHOWN)?;
            }
        }
        Ok(())
    }
}

fn run_json(seed: u64, run: &Replayed) -> Value {
    let causes: Map<String, Value> =
        Cause::ALL.iter().map(|cause| (cause.name().to_owned(), json!(run.count(*cause)))).collect();
    let duplicates: Vec<Value> = run
        .duplicates
        .iter()
        .map(|one| json!({ "url": one.url, "like": one.like, "cause": one.cause.name(), "rule": one.rule }))
        .collect();
    let lost: Vec<Value> = run
        .lost
        .iter()
        .map(|loss| json!({ "url": loss.url, "rule": loss.rule, "through": loss.through, "taken_for": loss.taken_for }))
        .collect();
    let mut out = json!({
        "seed": seed,
        "requests": run.requests.len(),
        "skipped": run.skipped,
        "explored": run.explored,
        "estimated_loss": run.estimated_loss.map(|(share, _)| share),
        "estimated_loss_most": run.estimated_loss.map(|(_, most)| most),
        "causes": causes,
        "duplicates": duplicates,
        "lost": lost,
    });
    for view in View::ALL {
        out[view.name()] = score_json(run.score.view(view));
    }
    out
}

/// What was saved and lost. A line is marked if more than one content in 200 was lost.
fn quality(rows: &[Runs], view: View) -> Marked {
    let head = [
        "recording",
        "order",
        "in flight",
        "model",
        "possible",
        "saved",
        "range",
        "lost",
        "most",
        "explored",
        "own estimate of the loss",
    ];
    let mut table = Marked::new(&[2, 4, 5, 6, 7, 8, 9, 10], &[&head]);
    for row in rows {
        let two = |share: f64| format!("{:.2} %", share * 100.0);
        let lost = row.spread(|run| Some(run.score.view(view).lost_share()));
        let saved = row.spread(|run| Some(run.score.view(view).saved()));
        let most = lost.0.last().copied().unwrap_or_default();
        let mut cells = row.cells().to_vec();
        cells.extend([
            row.spread(|run| Some(run.score.view(view).possible())).middle(percent),
            saved.middle(percent),
            saved.range(|share| format!("{:.1}", share * 100.0)),
            lost.middle(two),
            two(most),
            row.spread(|run| Some(run.explored as f64)).middle(number),
            estimate(
                row.spread(|run| run.estimated_loss.map(|(share, _)| share)).median(),
                row.spread(|run| run.estimated_loss.map(|(_, most)| most)).median(),
            ),
        ]);
        table.row(cells, most > 0.005);
    }
    table
}

/// The causes of the duplicates that our own model fetched.
fn causes(rows: &[Runs]) -> Marked {
    let mut head = vec!["duplicates fetched", "order", "in flight"];
    head.extend(Cause::ALL.map(Cause::name));
    let right: Vec<usize> = (2..head.len()).collect();
    let mut table = Marked::new(&right, &[&head]);
    for row in rows.iter().filter(|row| row.mode == Mode::Default) {
        let mut cells = row.cells()[..3].to_vec();
        cells.extend(Cause::ALL.map(|cause| row.spread(|run| Some(run.count(cause) as f64)).middle(number)));
        table.row(cells, false);
    }
    table
}
