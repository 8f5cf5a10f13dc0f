//! `--control` and the command `control`: a running crawl lets the user of this machine look at it and steer it.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use huntsman_crawler::signals::Signals;
use huntsman_crawler::{ControlSettings, Settings, human_bytes};
use huntsman_output::CONTROL;
use huntsman_serve::local::{ClientError, LocalClient, LocalServer};
use serde_json::{Value, json};

use super::dashboard::{self, Dashboard, Terminal};
use super::exit::{Exit, Failure, Outcome};
use super::render::{Style, Table, count, escape, escape_json, say};
use super::values::{positive, seconds};

/// Time between two frames of a dashboard.
pub(super) const REFRESH: Duration = Duration::from_secs(1);

/// A server of the control that is bound.
#[derive(Debug)]
pub struct ControlServer {
    server: LocalServer,
    file: Option<PathBuf>,
}

/// Binds the server of the control if the settings ask for it (`control`, `control_port`, `control_file`). `has_directory` says whether the
/// crawl has a directory for the file with the token.
///
/// # Errors
/// The port is taken, or there is no place for the token.
pub async fn bind(settings: &Settings, has_directory: bool) -> Outcome<Option<ControlServer>> {
    let own = settings.of_or_default::<ControlSettings>();
    if !own.control {
        return Ok(None);
    }
    if own.control_file.is_none() && !has_directory {
        return Err(Failure::usage(
            "--control: the token needs a file: name a directory with --out, or the file with -s control_file=FILE",
        ));
    }
    let server = LocalServer::bind(own.control_port)
        .await
        .map_err(|error| Failure::usage(format!("setting control_port: {}: {error}", own.control_port)))?;
    Ok(Some(ControlServer { server, file: own.control_file.map(PathBuf::from) }))
}

impl ControlServer {
    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Writes the file with address and token.
    ///
    /// # Errors
    /// It cannot be written; the message is for people.
    pub(super) fn publish(mut self, directory: Option<&Path>) -> Result<LocalServer, String> {
        let file = self.file.or_else(|| Some(directory?.join(CONTROL)));
        let file = file.ok_or_else(|| "--control: there is no directory for the token".to_owned())?;
        let name = escape(&file.to_string_lossy()).into_owned();
        self.server.publish(&file).map_err(|error| format!("--control: writing {name}: {error}"))?;
        Ok(self.server)
    }
}

/// Flags of the command.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// Directory of the running crawl (its --out), or the file that the setting control_file names.
    #[arg(value_name = "JOB", value_hint = ValueHint::AnyPath)]
    pub job: PathBuf,

    /// Prints the answer as JSON.
    #[arg(long, global = true)]
    pub json: bool,

    /// What to ask or to do.
    #[command(subcommand)]
    pub what: ControlCommand,
}

/// What the command can ask and do.
#[derive(Debug, Subcommand)]
pub enum ControlCommand {
    /// Shows whether the crawl goes on, and its numbers.
    Status,

    /// Shows all stats.
    Stats,

    /// Lists hosts: queue, state, delay, last error; those with the longest queues first.
    Hosts {
        /// Most hosts to list.
        #[arg(long, value_name = "N", default_value = "20", value_parser = positive)]
        limit: u64,
    },

    /// Lists the next requests of the queue.
    Queue {
        /// Only those of this host.
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
        /// Most requests to list.
        #[arg(long, value_name = "N", default_value = "20", value_parser = positive)]
        limit: u64,
    },

    /// Lists the last requests that failed, newest first.
    Errors,

    /// Starts no more downloads until `resume`; those in flight end. The job is saved as ever.
    Pause,

    /// Continues after `pause`.
    Resume,

    /// Stops the crawl as Ctrl-C does: requests in flight may end, and the same command goes on with it.
    Stop,

    /// Queues URLs, which must be in the scope of the crawl and new.
    Add {
        /// The URLs.
        #[arg(value_name = "URL", required = true, value_hint = ValueHint::Url)]
        urls: Vec<String>,
    },

    /// Drops the queued requests of a host, which gets no more requests in this run.
    Remove {
        /// The host.
        #[arg(value_name = "HOST")]
        host: String,
    },

    /// Sets the delay between requests of a host, and how many it gets at once.
    Delay {
        /// The host.
        #[arg(value_name = "HOST")]
        host: String,
        /// Seconds between the starts of two requests. A Crawl-delay of robots.txt that is longer holds all the same.
        #[arg(value_name = "SECONDS", value_parser = seconds, required_unless_present = "concurrency")]
        seconds: Option<f64>,
        /// Most requests in flight at once.
        #[arg(long, value_name = "N", value_parser = positive)]
        concurrency: Option<u64>,
    },

    /// Shows the crawl in this terminal until it ends or Ctrl-C comes, which ends only the view.
    Watch,

    /// Prints a link that opens the page of the crawl in a browser: once, within five minutes.
    Open,
}

/// Runs the command.
///
/// # Errors
/// No crawl with control runs there, or it refuses the order.
pub async fn run(args: ControlArgs) -> Outcome {
    let path = if args.job.is_dir() { args.job.join(CONTROL) } else { args.job.clone() };
    let client = LocalClient::of(&path).map_err(failure)?;
    if matches!(args.what, ControlCommand::Watch) {
        return watch(&client).await;
    }
    let mut text = String::new();
    for answer in ask(&client, &args.what).await? {
        if args.json {
            let _ = writeln!(text, "{}", escape_json(&answer.to_string()));
        } else {
            text.push_str(&shown(&args.what, &answer));
        }
    }
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::NoContact(path) => Failure::crawl(format!(
            "there is no {}: no crawl with --control runs in that directory",
            escape(&path.to_string_lossy())
        )),
        error => Failure::crawl(error.to_string()),
    }
}

/// The answers to a command: one, or one for each URL.
async fn ask(client: &LocalClient, what: &ControlCommand) -> Outcome<Vec<Value>> {
    let nothing = json!({});
    let answer = match what {
        ControlCommand::Status => client.get("/status").await,
        ControlCommand::Stats => client.get("/stats").await,
        ControlCommand::Hosts { limit } => client.get(&format!("/hosts?limit={limit}")).await,
        ControlCommand::Queue { host, limit } => {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("limit", &limit.to_string());
            if let Some(host) = host {
                query.append_pair("host", host);
            }
            client.get(&format!("/queue?{}", query.finish())).await
        }
        ControlCommand::Errors => client.get("/errors").await,
        ControlCommand::Pause => client.post("/pause", &nothing).await,
        ControlCommand::Resume => client.post("/resume", &nothing).await,
        ControlCommand::Stop => client.post("/stop", &nothing).await,
        ControlCommand::Remove { host } => client.post("/remove", &json!({ "host": host })).await,
        ControlCommand::Delay { host, seconds, concurrency } => {
            client
                .post("/delay", &json!({ "host": host, "seconds": seconds, "concurrency": concurrency }))
                .await
        }
        ControlCommand::Watch => client.get("/overview").await,
        ControlCommand::Open => client.post("/link", &nothing).await,
        ControlCommand::Add { urls } => {
            let mut answers = Vec::with_capacity(urls.len());
            for url in urls {
                let mut answer = client.post("/add", &json!({ "url": url })).await.map_err(failure)?;
                answer["url"] = json!(url);
                answers.push(answer);
            }
            return Ok(answers);
        }
    };
    Ok(vec![answer.map_err(failure)?])
}

/// An answer for people.
fn shown(what: &ControlCommand, answer: &Value) -> String {
    let text = |key: &str| plain(&answer[key]);
    match what {
        ControlCommand::Status | ControlCommand::Pause | ControlCommand::Resume | ControlCommand::Stop => {
            status(answer)
        }
        ControlCommand::Watch => String::new(),
        ControlCommand::Stats => {
            let mut table = Table::default();
            for (key, value) in answer.as_object().into_iter().flatten() {
                table.row([key.clone(), plain(value)]);
            }
            table.lines("")
        }
        ControlCommand::Hosts { .. } => {
            let columns =
                ["host", "state", "queued", "in_flight", "concurrency", "delay_s", "requests", "last_error"];
            listed(answer, &columns, &[2, 3, 4, 5, 6])
        }
        ControlCommand::Queue { .. } => listed(answer, &["url", "depth", "priority", "not_before"], &[1, 2]),
        ControlCommand::Errors => listed(answer, &["at", "url", "why"], &[]),
        ControlCommand::Add { .. } => {
            let reason = match &answer["reason"] {
                Value::Null => String::new(),
                reason => format!(" ({})", plain(reason)),
            };
            line(&format!("{}: {}{reason}", text("url"), text("outcome")))
        }
        ControlCommand::Remove { .. } => {
            line(&format!("{} requests of {} are dropped", text("queued"), text("host")))
        }
        ControlCommand::Delay { .. } => {
            let at_once = match &answer["concurrency"] {
                Value::Null => "any number".to_owned(),
                number => plain(number),
            };
            line(&format!("{}: {} s between requests, {at_once} at once", text("host"), text("delay_s")))
        }
        ControlCommand::Open => {
            say("This link opens the page once, within five minutes:");
            line(&text("url"))
        }
    }
}

fn status(answer: &Value) -> String {
    let mut table = Table::default();
    table.row(["state".to_owned(), plain(&answer["state"])]);
    let names = [
        "pages",
        "items",
        "requests",
        "failed",
        "skipped",
        "queued",
        "in_flight",
        "hosts_active",
        "hosts_down",
    ];
    for name in names {
        table.row([name.replace('_', " "), count(answer[name].as_u64().unwrap_or(0))]);
    }
    table.row(["received".to_owned(), human_bytes(answer["wire_bytes"].as_u64().unwrap_or(0))]);
    table.row(["seconds".to_owned(), format!("{:.0}", answer["elapsed_s"].as_f64().unwrap_or(0.0))]);
    table.lines("")
}

fn listed(answer: &Value, columns: &[&str], numbers: &[usize]) -> String {
    let mut table = Table::right(numbers);
    table.row(columns.iter().map(|name| name.replace('_', " ")));
    for entry in answer.as_array().into_iter().flatten() {
        table.row(columns.iter().map(|name| plain(&entry[*name])));
    }
    table.lines("")
}

/// A line of its own; addresses and reasons come from strangers.
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

/// Shows the dashboard of a crawl until it ends or a signal comes; without a terminal, one frame.
async fn watch(client: &LocalClient) -> Outcome {
    let overview = async || client.get("/overview?limit=40").await;
    let first = overview().await.map_err(failure)?;
    if !Terminal::Stdout.is_capable() {
        let frame = dashboard::frame(&first, &VecDeque::new(), (120, 60), Style::none());
        io::stdout().lock().write_all((frame.join("\n") + "\n").as_bytes())?;
        return Ok(Exit::Done);
    }
    let mut signals = Signals::listen();
    let mut dashboard = Dashboard::on(Terminal::Stdout);
    dashboard.draw(&first);
    loop {
        tokio::select! {
            () = signals.next() => return Ok(Exit::Done),
            () = tokio::time::sleep(REFRESH) => {}
        }
        match overview().await {
            Ok(overview) => dashboard.draw(&overview),
            Err(ClientError::NoAnswer(..)) => {
                dashboard.line("the crawl has ended\n");
                return Ok(Exit::Done);
            }
            Err(error) => return Err(failure(error)),
        }
    }
}
