//! The fixtures of a project: pages that are stored with it, and what its callbacks are expected to give for them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use huntsman_crawler::{EngineSettings, Settings};
use huntsman_middleware::{EXCHANGE_ENDING, Exchange, Expectation, Fixture, exchanges_in};

use crate::arguments::Arguments;
use crate::command::Config;
use crate::command::exit::{Exit, Failure, Outcome};
use crate::command::render::{counted, escape, escape_document};
use crate::command_line::CheckArgs;
use crate::project::Project;
use crate::typed::AnyCrawl;

/// A stored page, and the spider in whose folder it is.
struct Stored {
    path: PathBuf,
    spider: Option<String>,
}

/// What a check says of a fixture.
enum Verdict {
    Ok,
    /// What is wrong, a line each.
    Wrong(Vec<String>),
    /// The expectation was written.
    Accepted(Expectation),
    /// It is not checked, for this reason.
    Skipped(String),
}

/// Checks the fixtures of the spiders, or accepts what their callbacks give. The folder need not be there.
pub(crate) fn check(project: &Project, args: &CheckArgs) -> Outcome {
    let (mut well, mut wrong, mut accepted) = (0, 0, 0);
    let mut stdout = io::stdout().lock();
    for stored in stored(project, &args.fixtures)? {
        let verdict = match verdict(project, args, &stored) {
            Ok(None) => continue,
            Ok(Some(verdict)) => verdict,
            Err(failure) => Verdict::Wrong(vec![failure.message]),
        };
        let path = stored.path.to_string_lossy();
        let name = escape(path.strip_suffix(EXCHANGE_ENDING).unwrap_or(&path)).into_owned();
        match verdict {
            Verdict::Ok => well += 1,
            Verdict::Skipped(why) => writeln!(stdout, "{name}: not checked: {}", escape_document(&why))?,
            Verdict::Accepted(given) => {
                accepted += 1;
                let (items, requests) = (given.items.len() as u64, given.requests.len() as u64);
                let error =
                    given.error.map_or(String::new(), |error| format!(", and the error: {}", escape(&error)));
                let counts = format!("{} and {}", counted(items, "item"), counted(requests, "request"));
                writeln!(stdout, "{name}: {counts} are expected from now on{error}")?;
            }
            Verdict::Wrong(lines) => {
                wrong += 1;
                for line in lines {
                    writeln!(stdout, "{name}: {}", escape(&line))?;
                }
            }
        }
    }
    if well + wrong + accepted > 0 {
        let of = counted(well + wrong + accepted, "fixture");
        writeln!(stdout, "{of}: {well} ok, {accepted} accepted, {wrong} wrong")?;
    }
    Ok(if wrong > 0 { Exit::Crawl } else { Exit::Done })
}

/// The fixtures in a folder, and in the folders of the spiders in it.
fn stored(project: &Project, folder: &Path) -> Outcome<Vec<Stored>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let of_all = exchanges_in(folder)?.into_iter().map(|path| Stored { path, spider: None });
    let mut stored: Vec<Stored> = of_all.collect();
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", escape(&folder.to_string_lossy())));
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let exchanges = exchanges_in(&folder)?;
        if exchanges.is_empty() {
            continue;
        }
        project.find(Some(&name)).map_err(|failure| failure.context(escape(&folder.to_string_lossy())))?;
        stored.extend(exchanges.into_iter().map(|path| Stored { path, spider: Some(name.clone()) }));
    }
    Ok(stored)
}

/// `None` if the fixture is not for this check: it belongs to another spider, or is no page.
fn verdict(project: &Project, args: &CheckArgs, stored: &Stored) -> Outcome<Option<Verdict>> {
    let exchange = Exchange::read(&stored.path)?;
    let expected_at = Expectation::path_of(&stored.path);
    let expected = Expectation::read(&expected_at)?;
    // A recording has robots.txt, redirects and error pages, too, which no callback gets.
    if (exchange.is_nested || !exchange.response.status.is_success()) && expected.is_none() {
        return Ok(None);
    }
    let arguments = Arguments::of_flags(&args.arguments)?;
    let url = exchange.request.url.clone();
    let chosen = match &stored.spider {
        Some(name) => project.choose(Some(name), &arguments),
        None => project.for_page(None, &url, &arguments),
    };
    let chosen = match chosen {
        Ok(chosen) => chosen,
        // One cannot give arguments to all spiders at once.
        Err(failure) if args.spider.is_none() && arguments.lacks_one() => {
            return Ok(Some(Verdict::Skipped(failure.message)));
        }
        Err(failure) => return Err(failure),
    };
    if args.spider.as_deref().is_some_and(|wanted| wanted != chosen.name) {
        return Ok(None);
    }
    let config = project.checked(Config::load(chosen.sources(&args.settings), Vec::new(), Vec::new())?)?;
    let found = parsed(chosen.crawl, exchange, config.settings, &arguments, args.timeout)?;
    if args.accept {
        return Ok(Some(match expected {
            // Rules are what a person wrote; what a callback gives is none.
            Some(expected) if expected.contract.is_some() => judged(project, &expected, &found),
            Some(expected) if expected == found => Verdict::Ok,
            _ => {
                found.write(&expected_at)?;
                Verdict::Accepted(found)
            }
        }));
    }
    let Some(expected) = expected else {
        return Ok(Some(Verdict::Wrong(vec![
            "nothing is expected of it yet; `check --accept` writes what its callback gives".to_owned(),
        ])));
    };
    Ok(Some(judged(project, &expected, &found)))
}

fn judged(project: &Project, expected: &Expectation, found: &Expectation) -> Verdict {
    let mut differences = expected.differences(found);
    for (name, terms) in expected.contract.iter().flat_map(|contract| &contract.own) {
        let judged = project.contract_of(name).and_then(|judge| Ok(judge(terms, found)?));
        differences.extend(judged.err().map(|failure| format!("contract {name}: {}", failure.message)));
    }
    if differences.is_empty() { Verdict::Ok } else { Verdict::Wrong(differences) }
}

fn parsed(
    crawl: Box<dyn AnyCrawl>,
    exchange: Exchange,
    mut settings: Settings,
    arguments: &Arguments,
    seconds: f64,
) -> Outcome<Expectation> {
    settings.change(|own: &mut EngineSettings| {
        own.spider_args.extend(arguments.all().map(|(name, value)| (name.to_owned(), value.to_owned())));
    });
    Ok(crawl.parse(Fixture::of(exchange).settings(settings), Duration::from_secs_f64(seconds))?)
}
