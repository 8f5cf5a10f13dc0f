//! A running site: it is crawled with `huntsman crawl`, and the result is scored with a list of the contents of its
//! URLs.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use huntsman::detect::avoid::evaluation::{Score, Truth, View};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::process::cpu_seconds;
use huntsman_cli::render::{count, escape, say};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use super::args::{AvoidDupArgs, Mode};
use super::{Marked, Spread, estimate, number, percent, score_json, title, truth};
use crate::BUILD;

/// The fields that are read from a line of `pages.jsonl`.
#[derive(Deserialize)]
struct PageLine {
    url: String,
    final_url: String,
}

/// A crawl and its score.
struct Run {
    mode: Mode,
    seed: u64,
    score: Score,
    requests: u64,
    skipped: u64,
    explored: u64,
    /// The model's own estimate: the share of its skips with new content, and the upper end of the interval.
    loss: Option<(f64, f64)>,
    elapsed_s: f64,
    cpu_s: Option<f64>,
}

pub(super) async fn run(url: Url, args: AvoidDupArgs) -> Outcome {
    let path = args.truth.as_deref().ok_or_else(|| Failure::usage("--site needs --truth FILE"))?;
    let truth = truth::read(path)?;
    let (view, seeds) = (View::from(args.view), args.seeds());
    let temporary = tempfile::tempdir()?;
    let list = match &args.list {
        Some(list) => list.clone(),
        None => write_list(&truth, &url, temporary.path())?,
    };
    let out = args.out.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut runs = Vec::new();
    let mut exit = Exit::Done;
    for mode in args.mode.each() {
        for seed in &seeds {
            let into = out.join(format!("{}-{seed}", mode.name()));
            let words = command(&url, &list, &args, *mode, *seed, &into);
            say(&format!("{}, seed {seed}", mode.name()));
            let before = cpu_seconds();
            let Some(ended) = huntsman_cli::crawl(words).await? else {
                return Err(Failure::usage(format!(
                    "{} holds a finished crawl; name another directory with --out, or overwrite it with --fresh",
                    escape(&into.to_string_lossy())
                )));
            };
            match ended {
                Exit::Done => {}
                Exit::Interrupted => return Ok(Exit::Interrupted),
                other => exit = other,
            }
            let report: Value = serde_json::from_slice(&std::fs::read(into.join("report.json"))?)?;
            let stat = |key: &str| report["stats"][key].as_u64().unwrap_or(0);
            let own = &report["avoid_dup"];
            runs.push(Run {
                mode: *mode,
                seed: *seed,
                score: score(&truth, &into.join("pages.jsonl"))?,
                requests: report["requests"].as_u64().unwrap_or(0),
                skipped: stat("avoid_dup/skipped"),
                explored: stat("avoid_dup/explored"),
                loss: own["estimated_loss"].as_f64().zip(own["estimated_loss_most"].as_f64()),
                elapsed_s: report["elapsed_s"].as_f64().unwrap_or(f64::NAN),
                cpu_s: report["cpu_s"].as_f64().zip(before).map(|(after, before)| after - before),
            });
        }
    }
    let mut stdout = io::stdout().lock();
    if args.json {
        let mut result = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "build": BUILD,
            "site": url.as_str(),
            "truth": path.to_string_lossy(),
            "view": view.name(),
            "concurrency": args.concurrency,
            "seeds": seeds,
        });
        for mode in args.mode.each() {
            result[mode.name()] = mode_json(&runs_of(&runs, *mode), view);
        }
        writeln!(stdout, "{result}")?;
    } else {
        print(&mut stdout, &url, &args, view, &runs)?;
    }
    Ok(exit)
}

/// Writes the URLs of the truth, with the origin of the start URL, to a file.
fn write_list(truth: &Truth, url: &Url, into: &Path) -> Outcome<PathBuf> {
    let origin = url.origin().ascii_serialization();
    let path = into.join("truth.list");
    let text: String = truth.urls().map(|url| format!("{origin}{url}\n")).collect();
    std::fs::write(&path, text)?;
    Ok(path)
}

/// The arguments of `huntsman crawl` for this run.
fn command(url: &Url, list: &Path, args: &AvoidDupArgs, mode: Mode, seed: u64, out: &Path) -> Vec<OsString> {
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(80));
    let mut words: Vec<OsString> = vec![url.as_str().into()];
    words.extend(
        ["--profile", "test", "--no-cookies", "--set", "log_level=warn", "--only"].map(OsString::from),
    );
    words.push(list.into());
    for (flag, value) in [
        ("--concurrency", args.concurrency.to_string()),
        ("--per-host", args.concurrency.to_string()),
        ("--allow-address", format!("{host}:{port}")),
        ("--seed", seed.to_string()),
    ] {
        words.extend([flag.into(), value.into()]);
    }
    words.extend([format!("--avoid-dup={}", mode.name()).into(), "--out".into(), out.into()]);
    if args.fresh {
        words.push("--fresh".into());
    }
    words
}

/// Scores the pages by the requested URL and, after a redirect, by the final one.
fn score(truth: &Truth, pages: &Path) -> Outcome<Score> {
    let reading = |error: &dyn std::fmt::Display| {
        Failure::crawl(format!("reading {}: {error}", escape(&pages.to_string_lossy())))
    };
    let file = File::open(pages).map_err(|error| reading(&error))?;
    let mut urls = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| reading(&error))?;
        let page: PageLine = serde_json::from_str(&line).map_err(|error| reading(&error))?;
        urls.extend([page.url, page.final_url]);
    }
    Ok(truth.score(urls.iter().map(String::as_str)))
}

fn runs_of(runs: &[Run], mode: Mode) -> Vec<&Run> {
    runs.iter().filter(|run| run.mode == mode).collect()
}

fn spread(runs: &[&Run], number: impl Fn(&Run) -> Option<f64>) -> Spread {
    Spread::of(runs.iter().map(|run| number(run)))
}

fn mode_json(runs: &[&Run], view: View) -> Value {
    let of = |number: &dyn Fn(&Run) -> Option<f64>| spread(runs, number).json();
    let lost = spread(runs, |run| Some(run.score.view(view).lost() as f64));
    let each: Vec<Value> = runs.iter().map(|run| run.json()).collect();
    json!({
        "possible": of(&|run| Some(run.score.view(view).possible())),
        "saved": of(&|run| Some(run.score.view(view).saved())),
        "avoided": of(&|run| run.score.view(view).avoided()),
        "lost": lost.json(),
        "lost_most": lost.0.last(),
        "lost_share": of(&|run| Some(run.score.view(view).lost_share())),
        "skipped": of(&|run| Some(run.skipped as f64)),
        "explored": of(&|run| Some(run.explored as f64)),
        "estimated_loss": of(&|run| run.loss.map(|(share, _)| share)),
        "estimated_loss_most": of(&|run| run.loss.map(|(_, most)| most)),
        "runs": each,
    })
}

impl Run {
    fn json(&self) -> Value {
        let mut out = Map::new();
        for (name, value) in [
            ("seed", json!(self.seed)),
            ("requests", json!(self.requests)),
            ("skipped", json!(self.skipped)),
            ("explored", json!(self.explored)),
            ("estimated_loss", json!(self.loss.map(|(share, _)| share))),
            ("estimated_loss_most", json!(self.loss.map(|(_, most)| most))),
            ("elapsed_s", json!(self.elapsed_s)),
            ("cpu_s", json!(self.cpu_s)),
            ("out_of_scope", json!(self.score.out_of_scope)),
            ("not_pages", json!(self.score.not_pages)),
        ] {
            out.insert(name.to_owned(), value);
        }
        for view in View::ALL {
            out.insert(view.name().to_owned(), score_json(self.score.view(view)));
        }
        Value::Object(out)
    }
}

fn print(
    stdout: &mut impl Write,
    url: &Url,
    args: &AvoidDupArgs,
    view: View,
    runs: &[Run],
) -> io::Result<()> {
    if let Some(run) = runs.first() {
        let score = run.score.view(view);
        writeln!(
            stdout,
            "{}: {} pages, {} contents by the view {}, {} could be saved; {} in flight",
            escape(url.as_str()),
            count(score.pages as u64),
            count(score.contents as u64),
            view.name(),
            percent(score.possible()),
            args.concurrency
        )?;
    }
    let head =
        ["", "saved", "lost", "of contents", "skipped", "explored", "own estimate of the loss", "CPU s"];
    let mut table = Marked::new(&[1, 2, 3, 4, 5, 6, 7], &[&head]);
    for mode in args.mode.each() {
        let of_mode = runs_of(runs, *mode);
        let parts: Vec<(String, Vec<&Run>)> =
            of_mode.iter().map(|run| (format!("{} seed {}", title(*mode), run.seed), vec![*run])).collect();
        let median = (of_mode.len() > 1).then(|| (format!("{} median", title(*mode)), of_mode.clone()));
        for (name, runs) in parts.into_iter().chain(median) {
            let lost = spread(&runs, |run| Some(run.score.view(view).lost() as f64));
            let is_lossy = lost.0.last().is_some_and(|most| *most > 0.0);
            let cells = [
                name,
                spread(&runs, |run| Some(run.score.view(view).saved())).middle(percent),
                lost.middle(number),
                spread(&runs, |run| Some(run.score.view(view).lost_share()))
                    .middle(|share| format!("{:.2} %", share * 100.0)),
                spread(&runs, |run| Some(run.skipped as f64)).middle(number),
                spread(&runs, |run| Some(run.explored as f64)).middle(number),
                estimate(
                    spread(&runs, |run| run.loss.map(|(share, _)| share)).median(),
                    spread(&runs, |run| run.loss.map(|(_, most)| most)).median(),
                ),
                spread(&runs, |run| run.cpu_s).middle(|seconds| format!("{seconds:.1}")),
            ];
            table.row(cells, is_lossy);
        }
    }
    table.print(stdout)?;
    writeln!(stdout, "{BUILD} build")
}
