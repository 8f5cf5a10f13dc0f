//! `huntsman links`: checks the links of files and of single pages.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use huntsman::HttpDownloader;
use huntsman::audit::{LinkFormat, LinkOptions, LinkReport};
use huntsman::files;
use serde_json::{Value, json};

use crate::args::{NetworkArgs, SettingsArgs};
use crate::config::Config;
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::progress::Screen;
use crate::render::{Style, escape, say};

/// Flags of `links`.
#[derive(Debug, Args)]
pub(crate) struct LinksArgs {
    /// Files, folders, pages (`https://...`), or - for standard input.
    #[arg(value_name = "SOURCE", required = true, value_hint = ValueHint::AnyPath)]
    sources: Vec<String>,

    /// Form of the report.
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Compact)]
    format: Form,

    /// Writes the report into this file.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,

    /// Status codes of good answers: codes, ranges (200-299) and classes (2xx), separated by commas (setting links_accept).
    #[arg(long, value_name = "LIST")]
    accept: Option<String>,

    /// Does not ask for URLs of this pattern: a glob, or a regular expression after `re:` (repeatable; setting links_exclude).
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Folder of the site: addresses with a leading slash begin here.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    root_dir: Option<PathBuf>,

    /// Resolves relative addresses of files and of standard input by this URL, and not to files.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with = "root_dir")]
    base: Option<String>,

    /// Does not look whether fragments lead to an id or a heading (setting links_fragments).
    #[arg(long)]
    no_fragments: bool,

    /// Keeps good answers in this file, and does not ask for them again within a day (setting links_max_age).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    cache: Option<PathBuf>,

    /// Names for each broken URL the address at which an archive may have a copy; nothing is asked of it.
    #[arg(long)]
    suggest: bool,

    #[command(flatten)]
    network: NetworkArgs,

    #[command(flatten)]
    settings: SettingsArgs,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// A line for each broken link, and the totals.
    Compact,
    /// A line for each link.
    Detailed,
    /// One JSON object.
    Json,
    /// JUnit XML.
    Junit,
    /// Tables of Markdown.
    Markdown,
}

impl From<Form> for LinkFormat {
    fn from(form: Form) -> Self {
        match form {
            Form::Compact => Self::Compact,
            Form::Detailed => Self::Detailed,
            Form::Json => Self::Json,
            Form::Junit => Self::Junit,
            Form::Markdown => Self::Markdown,
        }
    }
}

pub(crate) async fn run(mut args: LinksArgs) -> Outcome {
    args.settings.profile.get_or_insert_with(|| "audit".to_owned());
    let mut defaults = huntsman::audit::settings();
    // The result is printed at the end.
    defaults.push(("log_level", json!("off")));
    let config = Config::load(&args.settings, defaults, args.flags())?;
    LinkOptions::from_settings(&config.settings)?;
    logging::start(&config.settings, &Screen::plain())?;
    let base = args.base.as_deref().map(huntsman::parse_web_url).transpose()?;
    if let Some(root) = args.root_dir.as_deref().filter(|root| !root.is_dir()) {
        return Err(Failure::usage(format!(
            "--root-dir {}: there is no such folder",
            escape(&root.to_string_lossy())
        )));
    }
    let (root, cache) = (args.root_dir.clone(), args.cache.clone());
    let check = huntsman::audit::links(&args.sources)?
        .layers(config.layers.clone())
        .downloader(HttpDownloader::new(&config.settings)?)
        .options(move |options| options.base(base).root_dir(root).cache(cache));
    let report = check.run().await?;
    write(&report, &args)?;
    Ok(match report.is_good() {
        true => Exit::Done,
        false => Exit::Quality,
    })
}

impl LinksArgs {
    fn flags(&self) -> Vec<(&'static str, Value)> {
        let mut flags = self.network.settings();
        if let Some(accept) = &self.accept {
            flags.push(("links_accept", json!([accept])));
        }
        if !self.exclude.is_empty() {
            flags.push(("links_exclude", json!(self.exclude)));
        }
        if self.no_fragments {
            flags.push(("links_fragments", json!(false)));
        }
        flags
    }
}

fn write(report: &LinkReport, args: &LinksArgs) -> Outcome<()> {
    let Some(path) = &args.out else {
        let text = report.render(args.format.into(), Style::stdout(), args.suggest);
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        return Ok(out.flush()?);
    };
    let text = report.render(args.format.into(), Style::none(), args.suggest);
    let mut out = files::Output::new(path)?;
    out.write_all(text.as_bytes())?;
    out.finish()?;
    say(&report.totals());
    Ok(())
}
