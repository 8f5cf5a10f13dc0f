//! `huntsman audit`: crawls a site, judges it, and writes and prints what is wrong.

mod again;
mod codes;
mod compare;
mod demo;
mod forms;
mod pdf;
mod sources;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use huntsman::audit::{Answered, Audit, AuditOptions, Earlier, Found, Segment};
use huntsman::output::AUDITED;
use huntsman::{Backend, HttpDownloader, StartUrls};

use self::demo::Demo;
use self::forms::Forms;
use super::SiteArgs;
use super::crawl::{is_offline, store_of};
use crate::command::attended::{Attendance, Ended, Ready};
use crate::command::{control, log_settings};
use crate::config::Config;
use crate::directory::finished;
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::metrics;
use crate::output::{self, EarlierRun, OutputDir, Plan, Run};
use crate::progress::Screen;
use crate::reachable;
use crate::render::{Style, say};

/// Flags of `audit`: those of a crawl, and what is judged.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    what: Option<AuditCommand>,

    #[command(flatten)]
    site: SiteArgs,

    #[command(flatten)]
    judged: JudgedArgs,
}

/// What an audit looks at and judges.
#[derive(Debug, Args)]
#[command(next_help_heading = "Audit")]
struct JudgedArgs {
    /// Judges only the URLs in this file, one per line, without following their links.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["seeds", "urls"])]
    list: Option<PathBuf>,

    /// Judges the audit in this directory again, with the settings of now and without a network, and replaces its files.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["seeds", "urls", "list", "out"])]
    job: Option<PathBuf>,

    /// Judges pages of a file without a network: of JSON lines with `url`, and if they are known `status`, `headers`, `html` and `elapsed_ms`, or of a
    /// WARC or WACZ file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["seeds", "urls", "list", "job"])]
    pages: Option<PathBuf>,

    /// Audits a small shop that is built in and has many faults, so that there is a report to look at. Needs no network.
    #[arg(long, conflicts_with_all = ["seeds", "urls", "list", "job", "pages"])]
    demo: bool,

    /// Directory of an earlier audit: issues that it does not have are marked as new.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    baseline: Option<PathBuf>,

    /// Leaves out links to other sites.
    #[arg(long)]
    no_external: bool,

    /// Leaves out images, scripts and styles.
    #[arg(long)]
    no_resources: bool,

    /// Does not read sitemaps.
    #[arg(long)]
    no_sitemaps: bool,

    /// Families and codes that are judged, separated by commas; one that begins with a hyphen is left out [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    rules: Vec<String>,

    /// Code or family that is left out (repeatable).
    #[arg(long, value_name = "CODE")]
    ignore_code: Vec<String>,

    /// Exits with code 10 on issues of this severity, family or code; `new:` before it counts only issues that the baseline does not have, and >N
    /// behind it allows N of them (repeatable; setting audit_fail_on).
    #[arg(long, value_name = "WHAT")]
    fail_on: Vec<String>,

    /// Exits with code 10 on issues of this code (repeatable); the same as --fail-on CODE.
    #[arg(long, value_name = "CODE")]
    fail_on_code: Vec<String>,

    /// Exits with code 10 unless this holds: KEY OP NUMBER, such as 'status_4xx <= 10' (repeatable; setting audit_budget). Keys: pages, status_4xx,
    /// status_5xx, errors, warnings, ttfb_p95_ms, page_kb_p95, depth_max, score, score_drop.
    #[arg(long, value_name = "CONDITION")]
    budget: Vec<String>,

    #[command(flatten)]
    sources: sources::SourceArgs,

    #[command(flatten)]
    forms: forms::FormArgs,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    /// Lists the codes of issues, or explains one: when it is reported, why it matters, what to change.
    #[command(before_help = "Examples:\n  huntsman audit codes\n  huntsman audit codes title-long")]
    Codes {
        /// The code to explain.
        code: Option<String>,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        /// Prints the page of the guide about all codes.
        #[arg(long, conflicts_with_all = ["code", "json"])]
        markdown: bool,
    },
    /// Compares two audits: which issues are new and which are fixed, and how pages changed.
    #[command(before_help = "Examples:\n  huntsman audit compare monday friday\n  \
        huntsman audit compare live staging --map https://staging.example=https://example.org --fail-on new:error")]
    Compare(compare::CompareArgs),
}

pub(crate) async fn run(args: AuditArgs) -> Outcome {
    let AuditArgs { what, mut site, judged } = args;
    match what {
        Some(AuditCommand::Codes { markdown: true, .. }) => return codes::markdown(),
        Some(AuditCommand::Codes { code, json, .. }) => return codes::run(code.as_deref(), json),
        Some(AuditCommand::Compare(args)) => return compare::run(&args),
        None => {}
    }
    if site.output.out.as_deref() == Some(Path::new("-")) {
        return Err(Failure::usage("--out -: an audit writes several files; name a directory"));
    }
    let demo = if judged.demo { Some(Demo::start(&mut site).await?) } else { None };
    site.settings.profile.get_or_insert_with(|| "audit".to_owned());
    let options = AuditOptions::default()
        .list_only(judged.list.is_some())
        .no_external(judged.no_external)
        .no_resources(judged.no_resources)
        .no_sitemaps(judged.no_sitemaps)
        .only(judged.rules)
        .ignore(judged.ignore_code)
        .fail_on(judged.forms.with_ci(judged.fail_on, judged.fail_on_code))
        .budget(judged.budget)
        .pdf_reader(pdf::reader())
        .baseline(judged.baseline.as_deref().map(Earlier::open).transpose()?);
    let mut defaults = super::crawl::defaults();
    defaults.extend(huntsman::audit::settings());
    defaults.extend(demo.is_some().then(Demo::quiet));
    let mut flags = site.settings();
    flags.extend(judged.sources.settings());
    flags.extend(demo.iter().flat_map(Demo::settings));
    let config = Config::load(&site.settings, defaults, flags)?;
    options.check(&config.settings)?;
    let options = options.logs(judged.sources.logs(&config.settings)?);
    let forms = Forms::of(&judged.forms)?;
    if let Some(dir) = &judged.job {
        return again::job(dir, &options, &config, &forms);
    }
    if let Some(file) = &judged.pages {
        return again::pages(file, &site, &options, &config, &forms);
    }
    let seeds = match &judged.list {
        Some(list) => StartUrls::of(&[], Some(list))?,
        None => site.start_urls()?,
    };
    if site.output.fresh && judged.baseline.is_some() && judged.baseline == site.output.out {
        return Err(Failure::usage(
            "--baseline names the directory that --fresh deletes; name another one by --out",
        ));
    }
    let screen = if judged.forms.is_ci() { Screen::plain() } else { screen(&site) };
    let Some(ended) = crawl(&site, &options, seeds, &config, screen).await? else { return Ok(Exit::Done) };
    tell(ended, &options, &config, &forms, site.output.fail_on_limit)
}

fn screen(site: &SiteArgs) -> Screen {
    if site.output.tui { Screen::with_dashboard() } else { Screen::with_progress() }
}

/// Crawls; `None` if the directory holds a finished audit, as a message says.
async fn crawl(
    site: &SiteArgs,
    options: &AuditOptions,
    seeds: StartUrls,
    config: &Config,
    screen: Screen,
) -> Outcome<Option<Ended>> {
    let downloader = HttpDownloader::new(&config.settings)?;
    let store = store_of(site.output.store.as_deref(), config.profile, false)?;
    let path = site.output.out.clone().unwrap_or_else(|| output::default_dir(&seeds.first, Run::Audit));
    let plan = match Plan::of(&path, EarlierRun::of(site.output.fresh), Run::Audit, store)? {
        Plan::Finished(status) => {
            say(&finished(&path, &status));
            return Ok(None);
        }
        Plan::Use(plan) => plan,
    };
    let metrics = match site.output.metrics {
        Some(address) => Some(metrics::bind(address, site.output.metrics_public).await?),
        None => None,
    };
    let control = control::bind(&config.settings, true).await?;
    let log = logging::start(&config.settings, &screen)?;
    if seeds.is_complete && site.output.replay.is_none() && !is_offline(&config.settings)? {
        reachable::look_at(seeds.given(), &config.settings, &downloader).await?;
    }
    log_settings(config);
    let directory = plan.create(&seeds.first, huntsman::Timestamp::wall().to_rfc3339())?;
    let attendance = Attendance::new(screen, log, metrics).with_control(control);
    let builder = options.crawl(seeds.into_start()).layers(config.layers.clone()).downloader(downloader);
    let builder = attendance.observe(builder);
    let built =
        attached(builder, &directory).and_then(|(builder, drops)| Ok((builder.build()?, Some(drops))));
    let ready = Ready::begin(built, Some(directory))?;
    Ok(Some(attendance.run(ready, async |_| Ok(())).await))
}

/// Lets a crawl keep its records in the directory, up to the position of its job.
fn attached<S>(
    builder: huntsman::CrawlerBuilder<S>,
    directory: &OutputDir,
) -> Outcome<(huntsman::CrawlerBuilder<S>, huntsman::middleware::sinks::DropLog)>
where
    S: huntsman::Spider<Item = Answered>,
{
    let (builder, drops) = directory.attach_job(builder)?;
    let records = directory.file(AUDITED);
    if directory.store() == Backend::Memory {
        return Ok((builder.pipeline(Segment::create(records)?), drops));
    }
    let (records, position) = Segment::of_job(records)?;
    Ok((builder.pipeline(records).persist(position), drops))
}

/// Judges what was found, writes it, and prints the summary.
fn tell(
    mut ended: Ended,
    options: &AuditOptions,
    config: &Config,
    forms: &Forms,
    fail_on_limit: bool,
) -> Outcome {
    let audit = match &ended.directory {
        Some(directory) if !ended.interrupted && ended.report.error.is_none() => {
            let found = Found::open(directory.path())?;
            let is_complete = ended.report.finish_reason == "finished";
            let mut audit = options.judge(found, &config.settings, is_complete)?;
            audit.ended_by = (!is_complete).then(|| ended.report.finish_reason.clone());
            forms.write(&mut audit, directory.path())?;
            Some(audit)
        }
        _ => None,
    };
    ended.report.audit = audit.as_ref().map(Audit::totals);
    ended.finish()?;
    let exit = super::exit_of(&ended, fail_on_limit);
    let Some(audit) = audit else {
        say(ended.report.summary(Style::stderr()).trim_end());
        return Ok(exit);
    };
    say(audit.summary(Style::stderr()).trim_end());
    if let Some(directory) = &ended.directory {
        forms.tell(&audit, directory.path())?;
    }
    // A crawl that failed has not seen what the gate asks for.
    Ok(if exit == Exit::Done && audit.has_failed() { Exit::Quality } else { exit })
}
