//! The command `parse`: fetches one page, or a few that it leads to, and prints what their callbacks give.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_crawler::{
    Context, DEFAULT_CALLBACK, Error, OnItem, Output, Page, Pipeline, Request, Result, Spider, Start,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::arguments::Arguments;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::flags::Flags;
use crate::command::progress::Screen;
use crate::command::reachable::advice;
use crate::command::render::{counted, escape, escape_json, warn};
use crate::command::{Config, logging};
use crate::command_line::ParseArgs;
use crate::project::Project;

/// Number of start requests among which the page is looked for.
const LOOKED_AT: usize = 1_000;

/// The pages that are fetched, and what is kept of them.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    request: Request,
    /// Number of links that are followed from the page.
    depth: u16,
    /// Whether items pass the pipelines.
    pub(crate) pipelines: bool,
}

/// What callbacks gave.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// In the order in which the pages came.
    pages: Vec<ParsedPage>,
    /// The items that came out of the pipelines, if they were asked for.
    passed: Vec<Value>,
}

/// What a callback gave for a page.
#[derive(Debug)]
struct ParsedPage {
    url: Url,
    depth: u16,
    items: Vec<Value>,
    requests: Vec<Request>,
    error: Option<String>,
}

/// A spider that fetches one page for another spider, and follows what its callback gives as far as the sample goes.
pub(crate) struct SampleSpider<S> {
    spider: S,
    sample: Sample,
    /// Whether the callback was named.
    is_named: bool,
    parsed: Arc<Mutex<Parsed>>,
}

/// The last pipeline: it keeps what comes out of the others.
pub(crate) struct Passed(pub(crate) Arc<Mutex<Parsed>>);

impl<I: Serialize + Send + 'static> Pipeline<I> for Passed {
    async fn process_item(&mut self, item: I, _: &Context) -> Result<OnItem<I>> {
        let value = serde_json::to_value(&item)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).passed.push(value);
        Ok(OnItem::Keep(item))
    }
}

impl Sample {
    /// One page.
    pub(crate) fn of(request: Request) -> Self {
        Self { request, depth: 0, pipelines: false }
    }
}

impl<S> SampleSpider<S> {
    pub(crate) fn new(spider: S, sample: Sample, parsed: Arc<Mutex<Parsed>>) -> Self {
        let is_named = *sample.request.callback != *DEFAULT_CALLBACK;
        Self { spider, sample, is_named, parsed }
    }

    fn keep(&self, page: ParsedPage) {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner).pages.push(page);
    }
}

impl<S: Spider<Item: Serialize>> Spider for SampleSpider<S> {
    type Item = S::Item;

    fn name(&self) -> &str {
        self.spider.name()
    }

    /// A start request of the spider for this page, if it has one, because that says what the page is for.
    fn start(&self) -> Start {
        let same = |request: &Request| request.url == self.sample.request.url;
        let own = match self.is_named {
            true => None,
            false => self.spider.start().take(LOOKED_AT).filter_map(Result::ok).find(same),
        };
        Start::requests([own.unwrap_or_else(|| self.sample.request.clone())])
    }

    fn callbacks(&self) -> &[&str] {
        self.spider.callbacks()
    }

    fn allowed_domains(&self) -> Vec<String> {
        self.spider.allowed_domains()
    }

    fn parse(&self, page: &Page, out: &mut Output<S::Item>) -> Result<()> {
        let mut given = Output::new(out.context().clone());
        let result = self.spider.parse(page, &mut given);
        let (items, requests) = given.into_parts();
        let values = items.iter().map(serde_json::to_value).collect::<Result<_, _>>();
        let (values, error) = match (values, &result) {
            (Ok(values), Ok(())) => (values, None),
            (Ok(values), Err(error)) => (values, Some(error.to_string())),
            (Err(error), _) => (Vec::new(), Some(format!("an item has no form in JSON: {error}"))),
        };
        let depth = page.request().depth;
        if depth < self.sample.depth {
            out.requests(requests.clone());
        }
        self.keep(ParsedPage { url: page.url().clone(), depth, items: values, requests, error });
        if self.sample.pipelines {
            out.items(items);
        }
        result
    }

    fn failed(&self, request: &Request, error: &Error, _: &mut Output<S::Item>) -> Result<()> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        // The error of a callback is with its page already.
        if parsed.pages.iter().any(|page| page.error.is_some() && page.url == request.url) {
            return Ok(());
        }
        parsed.pages.push(ParsedPage {
            url: request.url.clone(),
            depth: request.depth,
            items: Vec::new(),
            requests: Vec::new(),
            error: Some(error.to_string()),
        });
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
    let mut flags = args.network.settings();
    // These are for this command alone, whatever the settings file says about crawls.
    flags.extend(settings_of(&args));
    let sources = chosen.sources(&args.settings);
    let config = project.checked(Config::load(sources, Vec::new(), flags)?)?;
    logging::start(&config.settings, &Screen::plain())?;
    let url = request.url.clone();
    let sample = Sample { request, depth: args.depth, pipelines: args.pipelines };
    let (crawler, parsed) = chosen.crawl.sample(sample, config.layers, &arguments)?;
    let report = crawler.run().await?;
    let mut parsed = std::mem::take(&mut *parsed.lock().unwrap_or_else(PoisonError::into_inner));
    if parsed.pages.is_empty() {
        let reason =
            report.failed_seeds.into_iter().next().map_or(report.finish_reason, |(_, reason)| reason);
        return Err(could_not(&url, &reason));
    }
    parsed.pages.sort_by_key(|page| page.depth);
    print(&parsed, &args)?;
    if args.depth > 0 && report.finish_reason == "closespider_pagecount" {
        warn(&format!("--max-pages {} ended this; there may be more pages", args.max_pages));
    }
    let failed = parsed.pages.iter().find_map(|page| Some((page, page.error.as_ref()?)));
    match failed {
        None => Ok(Exit::Done),
        Some((page, error))
            if parsed.pages.len() == 1 && page.items.is_empty() && page.requests.is_empty() =>
        {
            Err(could_not(&url, error))
        }
        Some((page, error)) => Err(Failure::crawl(format!("{}: {error}", page.url))),
    }
}

fn settings_of(args: &ParseArgs) -> Flags {
    let mut flags = vec![
        ("robots_retry_delays", json!([])),
        ("max_parked_wait", json!(30.0)),
        ("log_level", json!("warn")),
    ];
    match args.depth {
        // There is only one page, so no delay is needed, and the user is waiting in front of the screen.
        0 => flags.extend([("download_delay", json!(0.0)), ("closespider_pagecount", json!(1))]),
        _ => flags.push(("closespider_pagecount", json!(args.max_pages))),
    }
    flags
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

/// Page by page, items first, then requests, one a line; at the end what came out of the pipelines.
fn print(parsed: &Parsed, args: &ParseArgs) -> Outcome<()> {
    let mut lines = Vec::new();
    for page in &parsed.pages {
        match args.json {
            true => json_lines(page, args, &mut lines),
            false => text_lines(page, args, &mut lines),
        }
    }
    if args.pipelines {
        let items = &parsed.passed;
        if !args.json {
            lines.push(format!("{} out of the pipelines", counted(items.len() as u64, "item")));
        }
        lines.extend(items.iter().map(|item| match args.json {
            true => json!({"item": item}).to_string(),
            false => format!("  {item}"),
        }));
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut stdout = io::stdout().lock();
    let shown = if stdout.is_terminal() { escape_json(&text) } else { text.as_str().into() };
    stdout.write_all(shown.as_bytes())?;
    Ok(stdout.flush()?)
}

fn arguments_of(request: &Request) -> Option<&Map<String, Value>> {
    request.cb_kwargs().filter(|arguments| !arguments.is_empty())
}

fn text_lines(page: &ParsedPage, args: &ParseArgs, lines: &mut Vec<String>) {
    if args.depth > 0 {
        let error = page.error.as_ref().map_or(String::new(), |error| format!(": {}", escape(error)));
        lines.push(format!("depth {}: {}{error}", page.depth, page.url));
    }
    lines.push(counted(page.items.len() as u64, "item"));
    lines.extend(page.items.iter().map(|item| format!("  {item}")));
    lines.push(counted(page.requests.len() as u64, "request"));
    for request in &page.requests {
        let arguments =
            arguments_of(request).map_or(String::new(), |arguments| format!(" {}", json!(arguments)));
        let callback = escape(&request.callback);
        lines.push(format!("  {} {} -> {callback}{arguments}", request.method, request.url));
    }
}

fn json_lines(page: &ParsedPage, args: &ParseArgs, lines: &mut Vec<String>) {
    let mut add = |name: &str, value: Value| {
        let mut line = Map::new();
        if args.depth > 0 {
            line.insert("page".to_owned(), page.url.as_str().into());
        }
        line.insert(name.to_owned(), value);
        lines.push(Value::from(line).to_string());
    };
    // Each item once: as it comes out of the pipelines, if they are asked for.
    for item in page.items.iter().filter(|_| !args.pipelines) {
        add("item", item.clone());
    }
    for request in &page.requests {
        let value = json!({
            "method": request.method.as_str(),
            "url": request.url.as_str(),
            "callback": &*request.callback,
            "arguments": arguments_of(request),
        });
        add("request", value);
    }
}
