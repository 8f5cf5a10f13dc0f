//! `huntsman robots`: shows what a robots.txt says about paths, and which line decides.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueHint};
use http::StatusCode;
use huntsman::middleware::RobotsSettings;
use huntsman::robots::{Group, MAX_BYTES, Meaning, PathVerdict, Robots, RobotsAgent, product_token};
use huntsman::{HttpDownloader, Output, Page, Request, Result, Spider, Start, human_bytes, meta};
use serde_json::{Value, json};
use url::{Position, Url};

use crate::args::{NetworkArgs, SettingsArgs};
use crate::config::Config;
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::progress::Screen;
use crate::reachable::{self, advice};
use crate::render::{Style, Table, escape};

/// Flags of `robots`.
#[derive(Debug, Args)]
pub(crate) struct RobotsArgs {
    /// A URL of the site, or a robots.txt file on disk.
    #[arg(value_name = "URL|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) source: String,

    /// Paths or URLs of the site to check, in addition to the path of the URL.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    /// Name of the crawler [default: from the settings].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// A robots.txt, and what the HTTP status means for the whole site.
struct Source {
    /// Where the file came from, for messages.
    shown: String,
    /// The base for relative sitemap addresses.
    base: Option<Url>,
    status: Option<u16>,
    body: Vec<u8>,
    meaning: Meaning,
}

pub(crate) async fn run(args: RobotsArgs) -> Outcome {
    let command = vec![
        ("download_delay", json!(0.0)),
        ("httperror_allow_all", json!(true)),
        ("download_binary", json!(true)),
        ("download_maxsize", json!(MAX_BYTES as u64 + 1)),
        ("download_truncate", json!(true)),
        // RFC 9309, 2.3.1.2: at least five.
        ("redirect_max_times", json!(5)),
        ("metarefresh_enabled", json!(false)),
        ("max_parked_wait", json!(30.0)),
        // The result is printed at the end.
        ("log_level", json!("off")),
    ];
    let config = Config::load(&args.settings, command, args.network.settings())?;
    logging::start(&config.settings, &Screen::plain())?;
    let settings = &config.settings;
    let agent = args.agent.clone().or(settings.of::<RobotsSettings>()?.robotstxt_user_agent);
    let agent = agent.unwrap_or_else(|| product_token(&settings.user_agent).to_owned());
    let (source, own_path) = read(&args.source, config).await?;
    let robots = Robots::parse(if source.meaning == Meaning::Parsed { &source.body } else { b"" });
    let rules = source.meaning.rules(&robots, &agent);
    let mut paths: Vec<String> = own_path.into_iter().filter(|own| !args.paths.contains(own)).collect();
    paths.extend(args.paths.clone());
    if paths.is_empty() {
        paths.push("/".to_owned());
    }
    let sitemaps: Vec<String> = match &source.base {
        Some(base) => robots.sitemaps(base).iter().map(Url::to_string).collect(),
        // A file on disk has no base URL, so its relative addresses lead nowhere.
        None => Url::parse("http://robots.invalid/robots.txt").map_or(Vec::new(), |base| {
            let absolute = |url: &Url| url.host_str() != Some("robots.invalid");
            robots.sitemaps(&base).iter().filter(|url| absolute(url)).map(Url::to_string).collect()
        }),
    };
    let verdicts: Vec<PathVerdict> = paths.iter().map(|path| PathVerdict::of(path, &rules)).collect();
    let text = if args.json {
        as_json(&source, &agent, &rules, &sitemaps, &verdicts).to_string() + "\n"
    } else {
        as_text(&source, &agent, &rules, &sitemaps, &verdicts)
    };
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if source.meaning == Meaning::DisallowAll { Exit::Crawl } else { Exit::Done })
}

/// Reads the robots.txt, and returns the path of the URL as well if the URL does more than name the site.
async fn read(source: &str, config: Config) -> Outcome<(Source, Option<String>)> {
    if !source.contains("://") && Path::new(source).exists() {
        let body = std::fs::read(source)
            .map_err(|error| Failure::usage(format!("reading {}: {error}", escape(source))))?;
        let file =
            Source { shown: source.to_owned(), base: None, status: None, body, meaning: Meaning::Parsed };
        return Ok((file, None));
    }
    let url = huntsman::parse_web_url(source).map_err(|failure| {
        if source.contains("://") { failure } else { failure.context("neither a file nor a URL") }
    })?;
    let path = match &url[Position::BeforePath..Position::AfterQuery] {
        "/robots.txt" | "/" => None,
        path => Some(path.to_owned()),
    };
    let address = url.join("/robots.txt").map_err(|error| Failure::usage(format!("{url}: {error}")))?;
    Ok((fetch(address, config).await?, path))
}

async fn fetch(address: Url, config: Config) -> Outcome<Source> {
    let downloader = HttpDownloader::new(&config.settings)?;
    reachable::look_at(std::slice::from_ref(&address), &config.settings, &downloader).await?;
    let fetched = FetchedFile::default();
    let spider = OneFile { address: address.clone(), fetched: Arc::clone(&fetched) };
    let crawler = huntsman::crawl(spider).layers(config.layers).downloader(downloader).build()?;
    let report = crawler.run().await?;
    let Some((status, body)) = fetched.lock().unwrap_or_else(PoisonError::into_inner).take() else {
        let reason =
            report.failed_seeds.into_iter().next().map_or(report.finish_reason, |(_, reason)| reason);
        return Err(Failure::crawl(format!(
            "{address} could not be fetched: {reason}; a crawler takes everything as forbidden for now{}",
            advice(&reason, &address)
        )));
    };
    let shown = address.to_string();
    let meaning = Meaning::of_status(status);
    Ok(Source { shown, base: Some(address), status: Some(status.as_u16()), body, meaning })
}

/// Status and body of the file, once they have arrived.
type FetchedFile = Arc<Mutex<Option<(StatusCode, Vec<u8>)>>>;

struct OneFile {
    address: Url,
    fetched: FetchedFile,
}

impl Spider for OneFile {
    type Item = ();

    fn name(&self) -> &str {
        "robots"
    }

    fn start(&self) -> Start {
        let request = Request::get(self.address.clone());
        Start::requests([request
            .with_meta(meta::DONT_OBEY_ROBOTSTXT, true)
            .with_meta(meta::ALLOW_OFFSITE, true)])
    }

    fn parse(&self, page: &Page, _: &mut Output<()>) -> Result<()> {
        let response = page.response();
        let file = (response.status, response.body.to_vec());
        *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }
}

fn group_name(rules: &RobotsAgent) -> &'static str {
    match rules.group() {
        Group::Named => "named",
        Group::Any => "any",
        Group::None => "none",
    }
}

fn as_json(
    source: &Source,
    agent: &str,
    rules: &RobotsAgent,
    sitemaps: &[String],
    verdicts: &[PathVerdict],
) -> Value {
    let paths: Vec<Value> = verdicts
        .iter()
        .map(|verdict| {
            let (number, rule) = verdict.line.clone().unzip();
            json!({"path": verdict.path, "allowed": verdict.is_allowed, "line": number, "rule": rule})
        })
        .collect();
    let rate = rules.request_rate();
    json!({
        "source": source.shown,
        "status": source.status,
        "meaning": source.meaning.name(),
        "agent": agent,
        "group": group_name(rules),
        "rules": rules.rule_count(),
        "crawl_delay_s": rules.crawl_delay().map(|delay| delay.as_secs_f64()),
        "request_rate": rate.map(|rate| json!({"requests": rate.requests, "per_s": rate.per.as_secs_f64()})),
        "delay_s": rules.delay().map(|delay| delay.as_secs_f64()),
        "sitemaps": sitemaps,
        "paths": paths,
    })
}

fn as_text(
    source: &Source,
    agent: &str,
    rules: &RobotsAgent,
    sitemaps: &[String],
    verdicts: &[PathVerdict],
) -> String {
    let mut head = Table::default();
    let size = human_bytes(source.body.len() as u64);
    head.row([
        "file",
        &match source.status {
            Some(status) => format!("{} ({status}, {size})", source.shown),
            None => format!("{} ({size})", source.shown),
        },
    ]);
    head.row(["agent", agent]);
    let group = match (source.meaning, rules.group()) {
        (Meaning::AllowAll, _) => "no file: everything is allowed".to_owned(),
        (Meaning::DisallowAll, _) => "no usable answer: everything is forbidden for now".to_owned(),
        (_, Group::Named) => format!("of {agent}, {} rules", rules.rule_count()),
        (_, Group::Any) => format!("of *, {} rules", rules.rule_count()),
        (_, Group::None) => "none: everything is allowed".to_owned(),
    };
    head.row(["group", &group]);
    if let Some(delay) = rules.crawl_delay() {
        head.row(["crawl delay", &format!("{} s", delay.as_secs_f64())]);
    }
    if let Some(rate) = rules.request_rate() {
        head.row(["request rate", &format!("{} in {} s", rate.requests, rate.per.as_secs_f64())]);
    }
    for sitemap in sitemaps {
        head.row(["sitemap", sitemap]);
    }
    let mut table = Table::default();
    for verdict in verdicts {
        let rule = match &verdict.line {
            Some((number, rule)) => format!("line {number}: {rule}"),
            None => "no rule matches".to_owned(),
        };
        let rule = if source.meaning == Meaning::Parsed { rule } else { String::new() };
        table.row([if verdict.is_allowed { "allowed" } else { "forbidden" }, &verdict.path, &rule]);
    }
    let style = Style::stdout();
    let colored: String = table
        .lines("")
        .lines()
        .map(|line| match line.starts_with("allowed") {
            true => style.green(line) + "\n",
            false => style.red(line) + "\n",
        })
        .collect();
    format!("{}\n{colored}", head.lines(""))
}
