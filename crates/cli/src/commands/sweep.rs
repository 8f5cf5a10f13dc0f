//! `huntsman sweep`: crawls a site and checks each of its pages for sources.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use huntsman::sweep::{CheckPlan, SiteSweep, SweepTotals, Workspace, write_report};
use serde_json::json;

use super::crawl::{CrawlExtras, crawl};
use crate::args::Flags;
use crate::config::Config;
use crate::copyvio::{Inputs, pdf_reader};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, OutputDir};
use crate::render::{Style, counted, escape, say};
use crate::sweep::{SweepArgs, Sweeping, files};

pub(crate) async fn run(args: SweepArgs) -> Outcome {
    let SweepArgs { mut site, candidates, mut checks } = args;
    let max_time = site.reach.max_time;
    if site.output.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage("--out -: a sweep writes several files; name a directory"));
    }
    // `--exclude` means a pattern of addresses to the crawl and a file of rules to the checks; this command accepts
    // both.
    let (files, patterns): (Vec<String>, Vec<String>) =
        std::mem::take(&mut site.reach.exclude).into_iter().partition(|name| Path::new(name).is_file());
    site.reach.exclude = patterns;
    checks.exclude_sources.extend(files.into_iter().map(PathBuf::from));
    let name = site.urls.first().cloned().unwrap_or_else(|| "the sites".to_owned());
    let fail_on_limit = site.output.fail_on_limit;
    let mut flags = site.network.settings();
    // Sources are read from the archives, too: nothing is sent.
    flags.extend(site.archive.settings());
    let config = Config::load(&site.settings, workers(checks.workers), flags)?;
    let layers = config.layers.clone();
    let plan = checks.each.plan(&checks.exclude_sources, checks.check_time, candidates.max_queries)?;
    let sweep = SiteSweep {
        workspace: Workspace::start(pdf_reader(), |crawler| crawler.layers(layers))?,
        sources: candidates.sources(&config.settings)?,
        plan: CheckPlan { keep_texts: true, ..plan },
        at_once: checks.checks_at_once,
        until: max_time.map(|limit| Instant::now() + Duration::from_secs_f64(limit)),
    };
    let sweep = Some(Sweeping { sweep, min_words: checks.min_words });
    let extras = CrawlExtras { sweep, ..CrawlExtras::default() };
    let Some(crawled) = crawl(site, extras).await? else { return Ok(Exit::Done) };
    let totals = match crawled.directory() {
        Some(directory) => Some(write_reports(directory, &name, checks.html.as_deref())?),
        None => None,
    };
    let ended = crawled.finish()?;
    say(ended.report.summary(Style::stderr()).trim_end());
    if let (Some(directory), Some(totals)) = (&ended.directory, totals) {
        if checks.json {
            writeln!(io::stdout(), "{}", serde_json::to_string(&totals)?)?;
        }
        print_totals(&totals);
        say(&format!("  {}", escape(&directory.file(output::SWEEP_REPORT).to_string_lossy())));
    }
    Ok(super::exit_of(&ended, fail_on_limit))
}

/// Writes the report into the directory, and a copy of it to `copy` if one is asked for.
fn write_reports(directory: &OutputDir, name: &str, copy: Option<&Path>) -> Outcome<SweepTotals> {
    let report = directory.file(output::SWEEP_REPORT);
    let totals = write_report(&files(directory), name, &report)
        .map_err(|error| Failure::crawl(format!("writing {}: {error}", escape(&report.to_string_lossy()))))?;
    if let Some(path) = copy {
        let page = fs::File::open(report);
        let copied = page.and_then(|mut page| {
            let mut copy = huntsman::files::Output::new(path)?;
            io::copy(&mut page, &mut copy)?;
            copy.finish()
        });
        copied.map_err(|error| {
            Failure::crawl(format!("writing {}: {error}", escape(&path.to_string_lossy())))
        })?;
    }
    Ok(totals)
}

/// Settings of the crawl that reads sources.
fn workers(workers: usize) -> Flags {
    let mut flags = Inputs::command();
    flags.extend(Workspace::settings());
    flags.push(("concurrent_requests", json!(workers)));
    flags
}

fn print_totals(totals: &SweepTotals) {
    let style = Style::stderr();
    let statuses = totals.statuses.iter().map(|(status, number)| format!("{number} {status}"));
    let statuses = statuses.collect::<Vec<_>>().join(", ");
    let suspected = format!("{} suspected", counted(totals.suspected as u64, "article"));
    let possible = format!("{} possible", totals.possible);
    say(&format!(
        "  {} with sources ({statuses}): {}, {}",
        counted(totals.articles as u64, "article"),
        if totals.suspected > 0 { style.red(&suspected) } else { suspected },
        if totals.possible > 0 { style.yellow(&possible) } else { possible },
    ));
}
