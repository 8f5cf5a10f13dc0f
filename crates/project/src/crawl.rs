//! The command `crawl`: runs spiders with their settings, their files, their jobs, and what a command has beside them.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use huntsman_crawler::logging::LogCount;
use huntsman_crawler::{Backend, Crawler, Pace, Settings, Timestamp};
use huntsman_middleware::sinks::{DropLog, FeedSettings, FeedStart, NamedFeed};
use huntsman_output::{self as output, EarlierRun, OutputDir, Plan, Run, State, Use};
use huntsman_serve::MetricsServer;
use url::Url;

use crate::arguments::Arguments;
use crate::command::attended::{Attendance, Ended, Ready};
use crate::command::control::ControlServer;
use crate::command::directory::finished;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::progress::Screen;
use crate::command::reachable::advice;
use crate::command::render::{Style, escape, say};
use crate::command::signals::Interrupted;
use crate::command::{Config, control, log_settings, logging, metrics};
use crate::command_line::{CrawlArgs, OutputArgs};
use crate::feeds::{FeedFile, SET};
use crate::project::{Chosen, Project};
use crate::typed::Wiring;

pub(crate) async fn run(project: &Project, args: CrawlArgs) -> Outcome {
    let names = names(project, &args)?;
    let is_crowd = args.is_crowd();
    let mut planned = Vec::new();
    for name in names {
        let args = if is_crowd { args.of_one(name)? } else { args.clone() };
        planned.extend(plan_of(project, name, args)?);
    }
    if planned.is_empty() {
        return Ok(Exit::Done);
    }
    check_arguments(&planned)?;
    let mut ready = Vec::new();
    for planned in planned {
        ready.push(planned.with_control().await?);
    }
    let server = match args.output.metrics {
        Some(address) => Some(metrics::bind(address, args.output.metrics_public).await?),
        None => None,
    };
    let screen = match is_crowd {
        true => Screen::plain(),
        false => screen(&args, &ready[0].0),
    };
    // The log is that of the process: the first spider's settings are those of all.
    let log = logging::start(&ready[0].0.config.settings, &screen)?;
    if let Some(address) = server.as_ref().map(MetricsServer::address) {
        screen.line(&format!("metrics at http://{address}/metrics\n"));
    }
    let mut beside =
        Beside { screen, log, server, pace: Pace::default(), interrupted: Interrupted::default() };
    let built = ready.into_iter().map(|(planned, control)| planned.build(control, &mut beside));
    let begun = begin(built.collect())?;
    let ended = begun.into_iter().map(|begun| async move {
        let Begun { name, attendance, ready, output } = begun;
        (name, attendance.run(ready, async |_| Ok(())).await, output)
    });
    let mut worst = Exit::Done;
    let mut failed = None;
    for (name, ended, output) in join_all(ended).await {
        if is_crowd {
            say(&format!("spider {}:", escape(&name)));
        }
        match tell(ended, &output) {
            Ok(exit) => worst = worst.or_worse(exit),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    failed.map_or(Ok(worst), Err)
}

/// The spiders that are named, or the only one.
fn names<'p>(project: &'p Project, args: &CrawlArgs) -> Outcome<Vec<&'p str>> {
    let mut names = Vec::new();
    for name in &args.spiders {
        let name = project.find(Some(name))?;
        if names.contains(&name) {
            return Err(Failure::usage(format!("the spider {} is named twice", escape(name))));
        }
        names.push(name);
    }
    if names.is_empty() {
        names.push(project.find(None)?);
    }
    Ok(names)
}

/// A crawl whose settings and files are known.
struct Planned<'p> {
    chosen: Chosen<'p>,
    arguments: Arguments,
    config: Config,
    plan: Option<Use>,
    feeds: Vec<FeedFile>,
    args: CrawlArgs,
}

/// What the crawls of one command have in common.
struct Beside {
    screen: Screen,
    log: LogCount,
    server: Option<MetricsServer>,
    pace: Pace,
    interrupted: Interrupted,
}

/// A crawl that was built, or could not be.
struct Built {
    name: String,
    attendance: Attendance,
    crawl: Outcome<(Crawler, Option<DropLog>)>,
    directory: Option<OutputDir>,
    output: OutputArgs,
}

/// A crawl that is ready to run.
struct Begun {
    name: String,
    attendance: Attendance,
    ready: Ready,
    output: OutputArgs,
}

/// The crawl of a spider; `None` if its directory holds it finished, which is said.
fn plan_of<'p>(project: &'p Project, name: &'p str, args: CrawlArgs) -> Outcome<Option<Planned<'p>>> {
    let arguments = Arguments::of_flags(&args.arguments)?;
    let plan = match &args.output.out {
        None => None,
        Some(path) => match plan(path, name, &args.output)? {
            Plan::Finished(status) => {
                say(&finished(path, &status));
                return Ok(None);
            }
            Plan::Use(plan) => Some(plan),
        },
    };
    // Not before: a spider may open its files when it is made, and that of a finished crawl must not.
    let chosen = project.choose(Some(name), &arguments)?;
    let config =
        project.checked(Config::load(chosen.sources(&args.settings), Vec::new(), args.settings())?)?;
    let mut feeds = feeds(&args.output);
    // A program without the built-in components has none of their settings.
    if feeds.is_empty() && chosen.crawl.table().has::<FeedSettings>() {
        feeds = set_feeds(&config.settings, name, &args)?;
    }
    arguments.known(feeds.iter().flat_map(FeedFile::parameters));
    Ok(Some(Planned { chosen, arguments, config, plan, feeds, args }))
}

/// Fails if an argument was given that no spider asks for.
fn check_arguments(planned: &[Planned<'_>]) -> Outcome<()> {
    let Some((first, others)) = planned.split_first() else { return Ok(()) };
    for other in others {
        first.arguments.known(other.arguments.asked_for());
    }
    Ok(first.arguments.check()?)
}

/// Where messages and progress are shown.
fn screen(args: &CrawlArgs, planned: &Planned<'_>) -> Screen {
    // Items on the terminal and a progress line would overwrite each other.
    let shares_terminal =
        planned.feeds.iter().any(FeedFile::is_stdout) || (planned.feeds.is_empty() && planned.plan.is_none());
    let is_plain = args.log.no_progress || (shares_terminal && io::stdout().is_terminal());
    match (is_plain, args.log.tui) {
        (true, _) => Screen::plain(),
        (false, true) => Screen::with_dashboard(),
        (false, false) => Screen::with_progress(),
    }
}

impl<'p> Planned<'p> {
    async fn with_control(self) -> Outcome<(Planned<'p>, Option<ControlServer>)> {
        let control = control::bind(&self.config.settings, self.plan.is_some()).await?;
        Ok((self, control))
    }

    /// Builds the crawl. Nothing that an earlier crawl has left is changed yet.
    fn build(self, control: Option<ControlServer>, beside: &mut Beside) -> Outcome<Built> {
        let Self { chosen, arguments, config, plan, feeds, args } = self;
        log_settings(&config);
        let loses = match (&plan, args.output.fresh) {
            (Some(plan), _) if plan.continues() => Loses::Nothing,
            (_, true) => Loses::Directory,
            (_, false) => Loses::Earlier,
        };
        let directory = match plan {
            Some(plan) => Some(plan.create(&start_of(chosen.name), Timestamp::wall().to_rfc3339())?),
            None => None,
        };
        let attendance = Attendance::new(beside.screen.clone(), beside.log.clone(), beside.server.take())
            .with_control(control)
            .with_interrupted(beside.interrupted.clone());
        let name = chosen.name.to_owned();
        let feeds = match &directory {
            Some(directory) => feeds_of(feeds, directory, &name, &arguments, loses),
            None => Ok(feeds),
        };
        let crawl = feeds.and_then(|feeds| {
            chosen.crawl.build(Wiring {
                spider: &name,
                layers: config.layers,
                settings: &config.settings,
                arguments: &arguments,
                feeds,
                directory: directory.as_ref(),
                attendance: &attendance,
                pace: beside.pace.clone(),
            })
        });
        Ok(Built { name, attendance, crawl, directory, output: args.output })
    }
}

/// Begins the directories of all crawls, or, if one of them could not be built, of none.
fn begin(built: Vec<Outcome<Built>>) -> Outcome<Vec<Begun>> {
    let mut failed = None;
    let mut whole = Vec::new();
    for built in built {
        match built {
            Ok(Built { crawl: Err(failure), directory, .. }) => {
                directory.into_iter().for_each(OutputDir::discard);
                failed = failed.or(Some(failure));
            }
            Ok(built) => whole.push(built),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    if let Some(failure) = failed {
        whole.into_iter().filter_map(|built| built.directory).for_each(OutputDir::discard);
        return Err(failure);
    }
    let begin = |built: Built| {
        let ready = Ready::begin(built.crawl, built.directory)?;
        Ok(Begun { name: built.name, attendance: built.attendance, ready, output: built.output })
    };
    whole.into_iter().map(begin).collect()
}

impl CrawlArgs {
    /// Whether several spiders run at once.
    fn is_crowd(&self) -> bool {
        self.spiders.len() > 1
    }

    /// The flags of one spider among several: its files have its name.
    fn of_one(&self, spider: &str) -> Outcome<Self> {
        let mut args = self.clone();
        if args.output.metrics.is_some() || args.log.tui {
            let flag = if args.log.tui { "--tui" } else { "--metrics" };
            return Err(Failure::usage(format!(
                "{flag} is for one spider: crawl several of them with --out DIR --control, and look at each by `control DIR/SPIDER`"
            )));
        }
        if let Some(out) = &mut args.output.out {
            out.push(spider);
        }
        for (flag, paths) in [("-o", &mut args.output.items), ("-O", &mut args.output.overwrite_items)] {
            for path in paths.iter_mut().filter(|path| path.as_os_str() != "-") {
                *path = named(flag, path, spider)?;
            }
        }
        if let Some(path) = &mut args.output.report {
            *path = named("--report", path, spider)?;
        }
        let fixtures = [("--record", &mut args.fixtures.record), ("--replay", &mut args.fixtures.replay)];
        for (flag, folder) in fixtures {
            if let Some(folder) = folder {
                *folder = named(flag, Path::new(folder.as_str()), spider)?.to_string_lossy().into_owned();
            }
        }
        Ok(args)
    }
}

/// The parameter that stands for the name of the spider.
const NAME: &str = "%(name)s";

/// The file of a spider: several of them cannot write the same one.
fn named(flag: &str, path: &Path, spider: &str) -> Outcome<PathBuf> {
    let shown = path.to_string_lossy();
    if !shown.contains(NAME) {
        return Err(Failure::usage(format!(
            "{flag} {}: several spiders cannot share it; put {NAME} into the name, which stands for the spider",
            escape(&shown)
        )));
    }
    Ok(of_spider(&shown, spider).into_owned().into())
}

/// A name with that of the spider in it.
fn of_spider<'n>(name: &'n str, spider: &str) -> Cow<'n, str> {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    match name.contains(NAME) {
        true => Cow::Owned(name.replace(NAME, &spider.chars().map(kept).collect::<String>())),
        false => Cow::Borrowed(name),
    }
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

/// The files of the items that the command line names.
fn feeds(args: &OutputArgs) -> Vec<FeedFile> {
    let added = args.items.iter().map(|path| (path, FeedStart::Append, "-o"));
    let overwritten = args.overwrite_items.iter().map(|path| (path, FeedStart::Overwrite, "-O"));
    let file = |(path, start, named_by): (&PathBuf, _, _)| FeedFile { path: path.clone(), start, named_by };
    added.chain(overwritten).map(file).collect()
}

/// The files of the items that the settings name. Several spiders have one each.
fn set_feeds(settings: &Settings, spider: &str, args: &CrawlArgs) -> Outcome<Vec<FeedFile>> {
    let file = |name: &String| {
        let path = match &args.output.out {
            Some(out) => NamedFeed::<()>::within(out, name),
            None if args.is_crowd() => named(SET, Path::new(name), spider)?,
            None => name.into(),
        };
        Ok(FeedFile { path, start: FeedStart::Append, named_by: SET })
    };
    settings.of::<FeedSettings>()?.feeds.iter().map(file).collect()
}

/// The same files for a crawl into a directory, which goes on with them if it has a job. Files that are there already are lost only if a flag
/// says so, `-O` for any file and `--fresh` for those within the directory.
fn feeds_of(
    feeds: Vec<FeedFile>,
    directory: &OutputDir,
    spider: &str,
    arguments: &Arguments,
    loses: Loses,
) -> Outcome<Vec<FeedFile>> {
    let has_job = directory.store() != Backend::Memory;
    let of_directory = |feed: FeedFile| {
        let is_within = feed.path.starts_with(directory.path());
        match feed.start {
            _ if feed.is_stdout() => Ok(feed),
            FeedStart::Overwrite if has_job => {
                let feed = FeedFile { start: FeedStart::OfJobOverwrite, ..feed };
                feed.of_job(spider, arguments, directory, false)
            }
            _ if has_job => {
                let keeps = match loses {
                    Loses::Nothing => false,
                    Loses::Earlier => true,
                    Loses::Directory => !is_within,
                };
                FeedFile { start: FeedStart::OfJob, ..feed }.of_job(spider, arguments, directory, keeps)
            }
            // It cannot be continued, so it begins with empty files.
            _ if is_within && feed.named_by == SET => Ok(FeedFile { start: FeedStart::Overwrite, ..feed }),
            _ => Ok(feed),
        }
    };
    feeds.into_iter().map(of_directory).collect()
}

/// Which items a crawl with a job would delete if it began all of its files anew.
#[derive(Clone, Copy)]
enum Loses {
    /// None: it goes on with the files.
    Nothing,
    /// Those of earlier crawls, because it is a new one.
    Earlier,
    /// The same, but those within its directory may be deleted, as `--fresh` says.
    Directory,
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
