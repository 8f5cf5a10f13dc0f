//! `huntsman fetch`: fetches one page with all middlewares and prints it.

#[cfg(feature = "render")]
mod rendering;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueHint};
#[cfg(feature = "render")]
use huntsman::middleware::{Rendered, RenderedPage};
use huntsman::{HttpDownloader, Output, Page, Request, Result, Spider, Start};
use serde_json::json;

use crate::args::{NetworkArgs, SettingsArgs};
use crate::config::Config;
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::progress::Screen;
use crate::reachable::{self, advice};
use crate::render::{escape, escape_document, escape_json, warn};
use crate::spider::PageRecord;
#[cfg(feature = "render")]
use rendering::RenderArgs;

/// Flags of `fetch`.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// URL of the page.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: String,

    /// Prints the record that `crawl` would write, with text.
    #[arg(long, group = "what")]
    pub(crate) json: bool,

    /// Prints the text that is visible to a reader.
    #[arg(long, group = "what")]
    pub(crate) text: bool,

    /// Prints the links, one per line.
    #[arg(long, group = "what")]
    pub(crate) links: bool,

    /// Prints status and headers.
    #[arg(long, group = "what")]
    pub(crate) headers: bool,

    #[cfg(feature = "render")]
    #[command(flatten)]
    pub(crate) render: RenderArgs,

    #[command(flatten)]
    pub(crate) network: NetworkArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// The part of the page that is printed.
#[derive(Clone, Copy, Debug)]
enum Part {
    Body,
    Json,
    Text,
    Links,
    Headers,
}

pub(crate) async fn run(args: FetchArgs) -> Outcome {
    let part = match (args.json, args.text, args.links, args.headers) {
        (true, ..) => Part::Json,
        (_, true, ..) => Part::Text,
        (_, _, true, _) => Part::Links,
        (.., true) => Part::Headers,
        _ => Part::Body,
    };
    #[cfg_attr(not(feature = "render"), expect(unused_mut, reason = "rendering adds to it"))]
    let mut command = vec![
        // There is only one page, so no delay is needed, and every status and content type is worth showing.
        ("download_delay", json!(0.0)),
        ("httperror_allow_all", json!(true)),
        ("download_binary", json!(true)),
        // The user is waiting in front of the screen.
        ("robots_retry_delays", json!([])),
        ("max_parked_wait", json!(30.0)),
        ("page_text", json!(matches!(part, Part::Text | Part::Json))),
        // The result is printed at the end.
        ("log_level", json!("off")),
    ];
    #[cfg(feature = "render")]
    command.extend(args.render.settings());
    let config = Config::load(&args.settings, command, args.network.settings())?;
    #[cfg(feature = "render")]
    super::crawl::rendering::check(&config.settings)?;
    logging::start(&config.settings, &Screen::plain())?;
    let url = huntsman::parse_web_url(&args.url)?;
    let request = Request::get(url.clone());
    #[cfg(feature = "render")]
    let request = args.render.applied(request);
    let fetched = fetch(config, request, part).await?;
    #[cfg(feature = "render")]
    args.render.write(&url, fetched.rendered.as_ref())?;
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        let text = String::from_utf8_lossy(&fetched.output);
        let shown = if args.json { escape_json(&text) } else { escape_document(&text) };
        stdout.write_all(shown.as_bytes())?;
    } else {
        stdout.write_all(&fetched.output)?;
    }
    stdout.flush()?;
    if fetched.status.is_success() {
        return Ok(Exit::Done);
    }
    warn(&format!("{} answered {}", args.url, fetched.status));
    Ok(Exit::Crawl)
}

/// The parts of the page that are to be printed.
#[derive(Debug)]
struct FetchedPage {
    status: http::StatusCode,
    output: Vec<u8>,
    #[cfg(feature = "render")]
    rendered: Option<Rendered>,
}

async fn fetch(config: Config, request: Request, part: Part) -> Outcome<FetchedPage> {
    let url = request.url.clone();
    let downloader = HttpDownloader::new(&config.settings)?;
    reachable::look_at(std::slice::from_ref(&url), &config.settings, &downloader).await?;
    let fetched = Arc::new(Mutex::new(None));
    let spider = OnePage { request, part, fetched: Arc::clone(&fetched) };
    let crawler = huntsman::crawl(spider).layers(config.layers).downloader(downloader).build()?;
    let report = crawler.run().await?;
    if let Some(fetched) = fetched.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Ok(fetched);
    }
    let reason = report.failed_seeds.into_iter().next().map_or(report.finish_reason, |(_, reason)| reason);
    Err(Failure::crawl(format!("{url} could not be fetched: {reason}{}", advice(&reason, &url))))
}

struct OnePage {
    request: Request,
    part: Part,
    fetched: Arc<Mutex<Option<FetchedPage>>>,
}

impl Spider for OnePage {
    type Item = ();

    fn name(&self) -> &str {
        "fetch"
    }

    fn start(&self) -> Start {
        Start::requests([self.request.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let output = match self.part {
            Part::Body => page.response().body.to_vec(),
            Part::Json => {
                let record = PageRecord::of(page, out.context(), page.links().len(), true);
                let mut line = serde_json::to_vec(&record)?;
                line.push(b'\n');
                line
            }
            Part::Text => with_line_end(page.text().to_owned()).into_bytes(),
            Part::Links => page.links().iter().map(|url| format!("{url}\n")).collect::<String>().into_bytes(),
            Part::Headers => headers(page).into_bytes(),
        };
        let fetched = FetchedPage {
            status: page.response().status,
            output,
            #[cfg(feature = "render")]
            rendered: page.rendered().cloned(),
        };
        *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
        Ok(())
    }
}

fn with_line_end(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn headers(page: &Page) -> String {
    let response = page.response();
    let mut out = format!("{} {}\n", response.protocol(), response.status);
    for (name, value) in &response.headers {
        // A value may hold any byte above the control characters; bytes that are not UTF-8 are shown as replacement
        // characters.
        out.push_str(&format!("{name}: {}\n", escape(&String::from_utf8_lossy(value.as_bytes()))));
    }
    out
}
