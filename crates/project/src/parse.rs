//! The command `parse`: fetches one page, and prints what its callback gives.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{DEFAULT_CALLBACK, Error, Output, Page, Request, Result, Spider, Start};
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::arguments::Arguments;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::progress::Screen;
use crate::command::reachable::advice;
use crate::command::render::{counted, escape, escape_json};
use crate::command::{Config, logging};
use crate::command_line::ParseArgs;
use crate::project::Project;

/// Number of start requests among which the page is looked for.
const LOOKED_AT: usize = 1_000;

/// What a callback gave for a page.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    items: Vec<Value>,
    requests: Vec<Request>,
    error: Option<String>,
}

/// A spider that fetches one page for another spider, and follows nothing.
pub(crate) struct OnePage<S> {
    spider: S,
    request: Request,
    /// Whether the callback was named.
    is_named: bool,
    parsed: Arc<Mutex<Option<Parsed>>>,
}

impl<S> OnePage<S> {
    pub(crate) fn new(spider: S, request: Request, parsed: Arc<Mutex<Option<Parsed>>>) -> Self {
        let is_named = *request.callback != *DEFAULT_CALLBACK;
        Self { spider, request, is_named, parsed }
    }
}

impl<S: Spider<Item: Serialize>> Spider for OnePage<S> {
    type Item = ();

    fn name(&self) -> &str {
        self.spider.name()
    }

    /// A start request of the spider for this page, if it has one, because that says what the page is for.
    fn start(&self) -> Start {
        let same = |request: &Request| request.url == self.request.url;
        let own = match self.is_named {
            true => None,
            false => self.spider.start().take(LOOKED_AT).filter_map(Result::ok).find(same),
        };
        Start::requests([own.unwrap_or_else(|| self.request.clone())])
    }

    fn callbacks(&self) -> &[&str] {
        self.spider.callbacks()
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let mut given = Output::new(out.context().clone());
        let result = self.spider.parse(page, &mut given);
        let (items, requests) = given.into_parts();
        let items = items.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let (items, error) = match (items, &result) {
            (Ok(items), Ok(())) => (items, None),
            (Ok(items), Err(error)) => (items, Some(error.to_string())),
            (Err(error), _) => (Vec::new(), Some(format!("an item has no form in JSON: {error}"))),
        };
        let parsed = Parsed { items, requests, error };
        *self.parsed.lock().unwrap_or_else(PoisonError::into_inner) = Some(parsed);
        result
    }

    fn failed(&self, _: &Request, error: &Error, _: &mut Output<()>) -> Result<()> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        parsed.get_or_insert_default().error.get_or_insert(error.to_string());
        Ok(())
    }
}

pub(crate) async fn run(project: &Project, args: ParseArgs) -> Outcome {
    let mut request = Request::parse(&args.url)?;
    if let Some(label) = &args.callback {
        request = request.callback(label);
    }
    for (name, value) in callback_arguments(args.arguments_of_callback.as_deref())? {
        request = request.cb_kwarg(&name, value);
    }
    let arguments = Arguments::of_flags(&args.arguments)?;
    let chosen = project.for_page(args.spider.as_deref(), &request.url, &arguments)?;
    arguments.check()?;
    let command = vec![
        // There is only one page, so no delay is needed, and the user is waiting in front of the screen.
        ("download_delay", json!(0.0)),
        ("robots_retry_delays", json!([])),
        ("max_parked_wait", json!(30.0)),
        ("closespider_pagecount", json!(1)),
        ("log_level", json!("warn")),
    ];
    let mut flags = args.network.settings();
    // These are for this command alone, whatever the settings file says about crawls.
    flags.extend(command);
    let sources = chosen.sources(&args.settings);
    let config = project.checked(Config::load(sources, Vec::new(), flags)?)?;
    logging::start(&config.settings, &Screen::plain())?;
    let url = request.url.clone();
    let (crawler, parsed) = chosen.crawl.one_page(request, config.layers, &arguments)?;
    let report = crawler.run().await?;
    let parsed = parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(parsed) = parsed else {
        let reason =
            report.failed_seeds.into_iter().next().map_or(report.finish_reason, |(_, reason)| reason);
        return Err(could_not(&url, &reason));
    };
    print(&parsed, args.json)?;
    match parsed.error {
        None => Ok(Exit::Done),
        Some(error) if parsed.items.is_empty() && parsed.requests.is_empty() => Err(could_not(&url, &error)),
        Some(error) => Err(Failure::crawl(format!("{url}: {error}"))),
    }
}

fn could_not(url: &Url, reason: &str) -> Failure {
    Failure::crawl(format!("{url} could not be parsed: {reason}{}", advice(reason, url)))
}

fn callback_arguments(text: Option<&str>) -> Outcome<Map<String, Value>> {
    let Some(text) = text else { return Ok(Map::new()) };
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!(
            "--callback-arguments {}: {error}; use an object of JSON such as '{{\"page\": 2}}'",
            escape(text)
        ))
    })
}

/// Items first, then requests, one a line.
fn print(parsed: &Parsed, as_json: bool) -> Outcome<()> {
    let mut text = String::new();
    let mut line = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    if !as_json {
        line(&counted(parsed.items.len() as u64, "item"));
    }
    for item in &parsed.items {
        match as_json {
            true => line(&json!({"item": item}).to_string()),
            false => line(&format!("  {item}")),
        }
    }
    if !as_json {
        line(&counted(parsed.requests.len() as u64, "request"));
    }
    for request in &parsed.requests {
        let arguments = request.cb_kwargs().filter(|arguments| !arguments.is_empty());
        if as_json {
            let request = json!({
                "method": request.method.as_str(),
                "url": request.url.as_str(),
                "callback": &*request.callback,
                "arguments": arguments,
            });
            line(&json!({"request": request}).to_string());
        } else {
            let arguments = arguments.map_or(String::new(), |arguments| format!(" {}", json!(arguments)));
            line(&format!(
                "  {} {} -> {}{arguments}",
                request.method,
                request.url,
                escape(&request.callback)
            ));
        }
    }
    let mut stdout = io::stdout().lock();
    let shown = if stdout.is_terminal() { escape_json(&text) } else { text.as_str().into() };
    stdout.write_all(shown.as_bytes())?;
    Ok(stdout.flush()?)
}
