//! `serve jobs` and the command `jobs`: a daemon that runs spiders from a queue and at the times of cron lines, and what is asked of it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use huntsman_crawler::signals::{Signals, StopMode};
use huntsman_jobs::{CONTACT, Config as JobsConfig, Daemon, Error, items_file, log_file};
use huntsman_serve::local::{ClientError, LocalClient};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::config::Config;
use super::exit::{Exit, Failure, Outcome};
use super::flags::{Flags, SettingsArgs, set};
use super::logging;
use super::progress::Screen;
use super::render::{Table, escape, escape_json, say};

/// What `serve` serves.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Runs a daemon of jobs: spiders from a queue and at the times of cron lines, each as a process of its own.
    #[command(after_help = "The command `jobs` asks the daemon; `jobs open` opens its page in a browser.")]
    Jobs(ServeJobsArgs),
}

/// Flags of `serve jobs`.
#[derive(Debug, Args)]
pub struct ServeJobsArgs {
    /// Directory of the daemon: its queue, its history, and a directory for each job.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "jobs")]
    pub dir: PathBuf,

    /// File with limits, projects and cron lines.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,

    /// Port of 127.0.0.1 [default: that of the file, or a free one].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// off, error, warn, info, debug or trace.
    #[arg(short = 'L', long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,

    /// File to which the log of the daemon is added, in place of stderr.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log_file: Option<String>,

    /// text or json.
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log_format: Option<String>,
}

/// Runs a daemon until a signal comes. `complete` adds to its configuration what the program knows, such as its own path.
///
/// # Errors
/// The configuration is wrong, or the directory or the port is taken.
pub async fn serve(args: ServeJobsArgs, complete: impl FnOnce(JobsConfig) -> JobsConfig) -> Outcome {
    // Before anything is printed: a program that waits for the address may send a signal at once.
    let mut signals = Signals::listen();
    let mut flags = Flags::new();
    set(&mut flags, "log_level", Some(args.log_level.as_str()));
    set(&mut flags, "log_file", args.log_file.as_deref());
    set(&mut flags, "log_format", args.log_format.as_deref());
    let settings = Config::load(&SettingsArgs::default(), Vec::new(), flags)?;
    logging::start(&settings.settings, &Screen::plain())?;
    let config = args.config.as_deref().map_or_else(|| Ok(JobsConfig::default()), JobsConfig::read);
    let mut config = complete(config.map_err(refused)?);
    if let Some(port) = args.port {
        config = config.port(port);
    }
    let daemon = Daemon::open(&args.dir, config).await.map_err(refused)?;
    let contact = args.dir.join(CONTACT);
    say(&format!(
        "jobs on http://{}/, token in {} (Ctrl-C ends it)",
        daemon.address(),
        escape(&contact.to_string_lossy())
    ));
    let (stop, stopped) = watch::channel(None);
    let mut running = tokio::spawn(daemon.run(stopped));
    let by_itself = |ended| Failure::crawl(format!("the daemon ended by itself: {ended:?}"));
    tokio::select! {
        ended = &mut running => return Err(by_itself(ended)),
        () = signals.next() => {}
    }
    let _ = stop.send(Some(StopMode::Graceful));
    say("stopping: running jobs end gently and go on with the next daemon; once more to end them at once");
    tokio::select! {
        _ = &mut running => return Ok(Exit::Interrupted),
        () = signals.next() => {}
    }
    let _ = stop.send(Some(StopMode::Immediate));
    let _ = running.await;
    Ok(Exit::Interrupted)
}

fn refused(error: Error) -> Failure {
    match error {
        Error::Config { .. } | Error::Unusable(_) | Error::Port(..) => Failure::usage(error.to_string()),
        error => Failure::crawl(error.to_string()),
    }
}

/// Flags of `jobs`.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Directory of the daemon, its --dir.
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath, default_value = "jobs")]
    pub dir: PathBuf,

    /// Prints the answer as JSON.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to ask or to do.
    #[command(subcommand)]
    pub what: JobsCommand,
}

/// What the command can ask and do.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Shows whether the daemon runs, and how many jobs it has.
    Status,

    /// Lists jobs: those that run, those that wait, and the last ones that ended.
    List {
        /// Only those of this project.
        #[arg(long, value_name = "PROJECT")]
        project: Option<String>,
        /// Only those of this spider.
        #[arg(long, value_name = "SPIDER")]
        spider: Option<String>,
        /// Most ended jobs to list.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: u64,
    },

    /// Shows all of a job: arguments, settings, directory, result.
    Show {
        /// Id of the job.
        #[arg(value_name = "JOB")]
        job: String,
    },

    /// Lists the projects, or the spiders of one.
    Spiders {
        /// The project.
        #[arg(value_name = "PROJECT")]
        project: Option<String>,
    },

    /// Lists the cron lines with their next runs.
    Schedules,

    /// Adds a job to the queue and prints its id.
    Schedule {
        /// The project.
        #[arg(value_name = "PROJECT")]
        project: String,
        /// The spider.
        #[arg(value_name = "SPIDER")]
        spider: String,
        /// Argument of the spider (repeatable).
        #[arg(short = 'a', long = "argument", value_name = "NAME=VALUE")]
        arguments: Vec<String>,
        /// Setting (repeatable).
        #[arg(short = 's', long, value_name = "KEY=VALUE")]
        set: Vec<String>,
        /// Jobs with a higher priority start first.
        #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
        priority: i32,
    },

    /// Ends a job: gently, and the second time at once. It does not go on later.
    Cancel {
        /// Id of the job.
        #[arg(value_name = "JOB")]
        job: String,
    },

    /// Prints the log of a job, also without the daemon.
    Log {
        /// Id of the job.
        #[arg(value_name = "JOB")]
        job: String,
    },

    /// Prints the items of a job, also without the daemon.
    Items {
        /// Id of the job.
        #[arg(value_name = "JOB")]
        job: String,
    },

    /// Prints a link that opens the page of the daemon in a browser: once, within five minutes.
    Open,
}

/// Runs the command.
///
/// # Errors
/// No daemon runs there, or it refuses the order.
pub async fn run(args: JobsArgs) -> Outcome {
    match &args.what {
        JobsCommand::Log { job } => return print(log_file(&args.dir, job), job),
        JobsCommand::Items { job } => return print(items_file(&args.dir, job), job),
        _ => {}
    }
    let client = LocalClient::of(&args.dir.join(CONTACT)).map_err(failure)?;
    let answer = ask(&client, &args.what).await?;
    let text = if args.json {
        format!("{}\n", escape_json(&answer.to_string()))
    } else {
        shown(&args.what, &answer)
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::NoContact(path) => Failure::crawl(format!(
            "there is no {}: no daemon of jobs runs in that directory; --dir names another one",
            escape(&path.to_string_lossy())
        )),
        error => Failure::crawl(error.to_string()),
    }
}

/// Prints a file of a job as it is.
fn print(file: Option<PathBuf>, job: &str) -> Outcome {
    let file = file.ok_or_else(|| Failure::usage(format!("{} is not the id of a job", escape(job))))?;
    let told = |path: &Path, error| Failure::crawl(format!("{}: {error}", escape(&path.to_string_lossy())));
    let mut open = File::open(&file).map_err(|error| told(&file, error))?;
    io::copy(&mut open, &mut io::stdout().lock())?;
    Ok(Exit::Done)
}

async fn ask(client: &LocalClient, what: &JobsCommand) -> Outcome<Value> {
    let query = |path: &str, pairs: &[(&str, Option<&str>)]| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs.iter().filter_map(|(name, value)| Some((name, (*value)?))));
        format!("{path}?{}", query.finish())
    };
    let answer = match what {
        JobsCommand::Status => client.get("/daemonstatus.json").await,
        JobsCommand::List { project, spider, limit } => {
            let limit = limit.to_string();
            let pairs =
                [("project", project.as_deref()), ("spider", spider.as_deref()), ("limit", Some(&*limit))];
            client.get(&query("/listjobs.json", &pairs)).await
        }
        JobsCommand::Show { job } => client.get(&query("/status.json", &[("job", Some(job))])).await,
        JobsCommand::Spiders { project: None } => client.get("/listprojects.json").await,
        JobsCommand::Spiders { project } => {
            client.get(&query("/listspiders.json", &[("project", project.as_deref())])).await
        }
        JobsCommand::Schedules => client.get("/listschedules.json").await,
        JobsCommand::Schedule { project, spider, arguments, set, priority } => {
            let order = json!({ "project": project, "spider": spider, "args": pairs("-a", arguments)?,
                "settings": pairs("-s", set)?, "priority": priority });
            client.post("/schedule.json", &order).await
        }
        JobsCommand::Cancel { job } => client.post("/cancel.json", &json!({ "job": job })).await,
        JobsCommand::Open => client.post("/link", &json!({})).await,
        JobsCommand::Log { .. } | JobsCommand::Items { .. } => unreachable!("these read files"),
    };
    answer.map_err(failure)
}

fn pairs(flag: &str, words: &[String]) -> Outcome<Map<String, Value>> {
    let pair = |word: &String| {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("{flag} {}: use NAME=VALUE", escape(word))))?;
        Ok((name.to_owned(), Value::from(value)))
    };
    words.iter().map(pair).collect()
}

/// An answer for people.
fn shown(what: &JobsCommand, answer: &Value) -> String {
    match what {
        JobsCommand::Status | JobsCommand::Show { .. } => {
            let mut table = Table::default();
            for (key, value) in answer.as_object().into_iter().flatten().filter(|(key, _)| *key != "status") {
                table.row([key.replace('_', " "), plain(value)]);
            }
            table.lines("")
        }
        JobsCommand::List { .. } => {
            let mut table = Table::right(&[4, 5]);
            let columns = ["id", "project", "spider", "state", "pages", "items", "started", "reason"];
            table.row(columns.map(str::to_owned));
            for list in ["running", "pending", "finished"] {
                for job in answer[list].as_array().into_iter().flatten() {
                    table.row(columns.map(|name| plain(&job[name])));
                }
            }
            table.lines("")
        }
        JobsCommand::Spiders { .. } => {
            let names = answer.get("spiders").or_else(|| answer.get("projects"));
            names.and_then(Value::as_array).into_iter().flatten().map(|name| line(&plain(name))).collect()
        }
        JobsCommand::Schedules => {
            let mut table = Table::right(&[3]);
            let columns = ["name", "cron", "next", "left_out"];
            table.row(columns.map(|name| name.replace('_', " ")));
            for schedule in answer["schedules"].as_array().into_iter().flatten() {
                table.row(columns.map(|name| plain(&schedule[name])));
            }
            table.lines("")
        }
        JobsCommand::Schedule { .. } => line(&plain(&answer["jobid"])),
        JobsCommand::Cancel { job } => line(&format!("{job}: {}", plain(&answer["message"]))),
        JobsCommand::Open => {
            say("This link opens the page once, within five minutes:");
            line(&plain(&answer["url"]))
        }
        JobsCommand::Log { .. } | JobsCommand::Items { .. } => String::new(),
    }
}

/// A line of its own; names and reasons come from programs and files.
fn line(text: &str) -> String {
    format!("{}\n", escape(text))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
