//! `huntsman-bench simhash`: measures on this machine what the documentation promises about near-duplicates.
//!
//! It measures which changes of a text are found, how fast fingerprints are, the cost of an index in memory, in a
//! directory and in Redis, and how many stories a day's run processes. Nothing is fetched: some stories are in the
//! build, and others like them are generated as needed.

mod add;
mod args;
mod documents;
mod edits;
mod index;
mod join;
mod pairs;
mod quality;
mod redis;
mod speed;

use std::process::{Command, Stdio};

use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::redis_server::RedisServer;
use huntsman_cli::render::{count, escape, say};
use serde::{Deserialize, Serialize};

use crate::BUILD;
use crate::sheet::{FormArgs, Sheet};

pub(crate) use args::{HELP, SimhashArgs};

use args::Part;

/// All figures; parts that were not asked for are missing.
#[derive(Debug, Serialize, Deserialize)]
struct Report {
    version: String,
    build: String,
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quality: Option<quality::Quality>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speed: Option<speed::Speed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<index::Indexes>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    add: Option<add::Add>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    join: Option<join::Joins>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redis: Option<redis::Redis>,
}

pub(crate) fn run(args: &SimhashArgs) -> Outcome {
    if let Some(part) = args.part {
        let mut report = Report::new(args);
        report.add(part, args)?;
        FormArgs { json: true, markdown: false }.print(&report, &[], args.seed)?;
        return Ok(Exit::Done);
    }
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    let parts = parts(args);
    let mut report = Report::new(args);
    match parts.as_slice() {
        [part] => report.add(*part, args)?,
        // Each part runs in a process of its own, so that its memory figures do not include memory of another part.
        parts => parts.iter().try_for_each(|part| report.take(*part, Report::of_process(*part)?))?,
    }
    args.form.print(&report, &report.sheets(), args.seed)?;
    Ok(Exit::Done)
}

/// The parts to measure, in this order.
fn parts(args: &SimhashArgs) -> Vec<Part> {
    let is_asked_for = |part: &Part| args.only.contains(part);
    if args.only.is_empty() && args.pairs.is_some() {
        return vec![Part::Quality];
    }
    let mut parts = Part::ALL.to_vec();
    if !args.only.is_empty() {
        parts.retain(is_asked_for);
    } else if args.redis.is_none() && !RedisServer::is_installed() {
        say("redis: left out, as there is no redis-server here; name a server with --redis URL");
        parts.retain(|part| *part != Part::Redis);
    }
    parts
}

/// A directory for temporary files, removed when this value is dropped.
fn scratch(args: &SimhashArgs) -> Outcome<tempfile::TempDir> {
    let parent = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let made = tempfile::Builder::new().prefix("huntsman-bench-").tempdir_in(&parent);
    made.map_err(|error| Failure::crawl(format!("{}: {error}", escape(&parent.to_string_lossy()))))
}

impl Report {
    fn new(args: &SimhashArgs) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: BUILD.to_owned(),
            seed: args.seed,
            quality: None,
            speed: None,
            index: None,
            add: None,
            join: None,
            redis: None,
        }
    }

    /// Measures a part in this process.
    fn add(&mut self, part: Part, args: &SimhashArgs) -> Outcome<()> {
        match part {
            Part::Quality => {
                match &args.pairs {
                    Some(path) => say(&format!("quality: pairs of {}", escape(&path.to_string_lossy()))),
                    None => say(&format!("quality: {} stories for each kind of change", count(args.stories))),
                }
                self.quality = Some(quality::run(args)?);
            }
            Part::Speed => {
                say("speed of fingerprints");
                self.speed = Some(speed::run(args)?);
            }
            Part::Index => self.index = Some(index::run(args)?),
            Part::Add => self.add = Some(add::run(args)?),
            Part::Join => self.join = Some(join::run(args)?),
            Part::Redis => self.redis = Some(redis::run(args)?),
        }
        Ok(())
    }

    /// Measures a part with the same arguments in another process, which prints its errors itself.
    fn of_process(part: Part) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(std::env::args_os().skip(1)).args(["--part", part.name()]);
        let ended = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if ended.status.success() {
            return Ok(serde_json::from_slice(&ended.stdout)?);
        }
        let exit = match ended.status.code() {
            Some(2) => Exit::Usage,
            _ => Exit::Crawl,
        };
        let message = format!("the part `{}` ended with {}", part.name(), ended.status);
        Err(Failure { exit, message, is_broken_pipe: false })
    }

    /// Moves a part of another report into this one.
    fn take(&mut self, part: Part, of: Self) -> Outcome<()> {
        match part {
            Part::Quality => self.quality = of.quality,
            Part::Speed => self.speed = of.speed,
            Part::Index => self.index = of.index,
            Part::Add => self.add = of.add,
            Part::Join => self.join = of.join,
            Part::Redis => self.redis = of.redis,
        }
        Ok(())
    }

    fn sheets(&self) -> Vec<Sheet> {
        let parts = [
            self.quality.as_ref().map(quality::Quality::sheets),
            self.speed.as_ref().map(speed::Speed::sheets),
            self.index.as_ref().map(index::Indexes::sheets),
            self.add.as_ref().map(add::Add::sheets),
            self.join.as_ref().map(join::Joins::sheets),
            self.redis.as_ref().map(redis::Redis::sheets),
        ];
        parts.into_iter().flatten().flatten().collect()
    }
}
