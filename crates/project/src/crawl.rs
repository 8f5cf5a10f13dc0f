//! The command `crawl`: runs a spider with its settings, its files, its job, and what a command has beside it.

use std::io::{self, IsTerminal};
use std::path::Path;

use huntsman_crawler::{Backend, Timestamp};
use huntsman_middleware::sinks::FeedStart;
use huntsman_output::{self as output, EarlierRun, Plan, Run, State, Use};
use huntsman_serve::MetricsServer;
use url::Url;

use crate::arguments::Arguments;
use crate::command::attended::{Attendance, Ended, Ready};
use crate::command::directory::finished;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::progress::Screen;
use crate::command::reachable::advice;
use crate::command::render::{Style, escape, say};
use crate::command::{Config, control, log_settings, logging, metrics};
use crate::command_line::{CrawlArgs, OutputArgs};
use crate::feeds::FeedFile;
use crate::project::Project;
use crate::typed::Wiring;

pub(crate) async fn run(project: &Project, args: CrawlArgs) -> Outcome {
    let arguments = Arguments::of_flags(&args.arguments)?;
    let name = project.find(args.spider.as_deref())?;
    let plan = match &args.output.out {
        None => None,
        Some(path) => match plan(path, name, &args.output)? {
            Plan::Finished(status) => {
                say(&finished(path, &status));
                return Ok(Exit::Done);
            }
            Plan::Use(plan) => Some(plan),
        },
    };
    let feeds = feeds(&args.output, plan.as_ref())?;
    // Not before: a spider may open its files when it is made, and that of a finished crawl must not.
    let chosen = project.choose(Some(name), &arguments)?;
    arguments.known(feeds.iter().flat_map(FeedFile::parameters));
    arguments.check()?;
    let config =
        project.checked(Config::load(chosen.sources(&args.settings), Vec::new(), args.settings())?)?;
    let server = match args.output.metrics {
        Some(address) => Some(metrics::bind(address, args.output.metrics_public).await?),
        None => None,
    };
    let control = control::bind(&config.settings, plan.is_some()).await?;
    // Items on the terminal and a progress line would overwrite each other.
    let shares_terminal = feeds.iter().any(FeedFile::is_stdout) || (feeds.is_empty() && plan.is_none());
    let is_plain = args.log.no_progress || (shares_terminal && io::stdout().is_terminal());
    let screen = match (is_plain, args.log.tui) {
        (true, _) => Screen::plain(),
        (false, true) => Screen::with_dashboard(),
        (false, false) => Screen::with_progress(),
    };
    let log = logging::start(&config.settings, &screen)?;
    log_settings(&config);
    let directory = match plan {
        Some(plan) => Some(plan.create(&start_of(chosen.name), Timestamp::wall().to_rfc3339())?),
        None => None,
    };
    if let Some(address) = server.as_ref().map(MetricsServer::address) {
        screen.line(&format!("metrics at http://{address}/metrics\n"));
    }
    let attendance = Attendance::new(screen, log, server).with_control(control);
    let built = chosen.crawl.build(Wiring {
        spider: chosen.name,
        layers: config.layers,
        settings: &config.settings,
        arguments: &arguments,
        feeds,
        directory: directory.as_ref(),
        attendance: &attendance,
    });
    let ready = Ready::begin(built, directory)?;
    let ended = attendance.run(ready, async |_| Ok(())).await;
    tell(ended, &args.output)
}

/// Writes the report, prints the summary, and returns the exit code.
fn tell(mut ended: Ended, args: &OutputArgs) -> Outcome {
    ended.report.items = ended.report.stats.get("item_scraped_count").and_then(serde_json::Value::as_u64);
    ended.finish()?;
    if let Some(path) = &args.report {
        huntsman_files::write(path, ended.report.to_json()?).map_err(|error| {
            Failure::crawl(format!("--report {}: {error}", escape(&path.to_string_lossy())))
        })?;
    }
    say(ended.report.summary(Style::stderr()).trim_end());
    if let Some(directory) = &ended.directory {
        say(&format!("  {}", escape(&directory.path().to_string_lossy())));
    }
    Ok(ended.exit(args.fail_on_limit, advice))
}

/// The files of the items.
fn feeds(args: &OutputArgs, plan: Option<&Use>) -> Outcome<Vec<FeedFile>> {
    let has_job = args.out.is_some() && args.store.as_deref() != Some(Backend::Memory.name());
    let mut feeds = Vec::new();
    for (paths, start) in [(&args.items, FeedStart::Append), (&args.overwrite_items, FeedStart::Overwrite)] {
        for path in paths {
            let feed = FeedFile { path: path.clone(), start };
            let start = match start {
                start if !has_job || feed.is_stdout() => start,
                FeedStart::Overwrite => FeedStart::OfJobOverwrite,
                _ => FeedStart::OfJob,
            };
            // The items of the job would begin the file anew.
            let is_lost = start == FeedStart::OfJob;
            if is_lost && !plan.is_some_and(Use::continues) && has_content(feed.local_file()) {
                return Err(feed.fault(
                    "the file has items, and a new crawl with --out begins its files anew; overwrite it with -O, or name another one",
                ));
            }
            feeds.push(FeedFile { start, ..feed });
        }
    }
    Ok(feeds)
}

fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() > 0)
}

/// What may be done with the directory. A crawl of another spider in it is left alone.
fn plan(path: &Path, spider: &str, args: &OutputArgs) -> Outcome<Plan> {
    let store = match args.store.as_deref() {
        None => Backend::default(),
        Some(name) => {
            name.parse::<Backend>().ok().filter(|store| store.is_compiled_in()).ok_or_else(|| {
                Failure::usage(format!(
                    "--store {}: this build has no such store; use redb or memory",
                    escape(name)
                ))
            })?
        }
    };
    let is_other = |status: &output::Status| {
        let counts = matches!(status.state, State::Running | State::Interrupted | State::Finished);
        counts && status.seed_url != start_of(spider).as_str()
    };
    if !args.fresh
        && path.is_dir()
        && let Some(status) = output::held(path)?.filter(is_other)
    {
        let found = status.seed_url.strip_prefix(SCHEME).map(|name| format!("the spider {name}"));
        return Err(Failure::usage(format!(
            "--out {}: it holds a crawl of {}: name another directory, or start anew with --fresh, which deletes it",
            escape(&path.to_string_lossy()),
            escape(&found.unwrap_or(status.seed_url))
        )));
    }
    Ok(Plan::of(path, EarlierRun::of(args.fresh), Run::Crawl, store)?)
}

/// The scheme of the address that stands for a spider in the status of a directory.
const SCHEME: &str = "spider:";

/// What the status of a directory has in place of a start URL: only the spider knows where it starts.
fn start_of(spider: &str) -> Url {
    let mut url = Url::parse(SCHEME).expect("a scheme alone is a URL");
    url.set_path(spider);
    url
}
