//! `huntsman-bench selectors`: what CSS and XPath find on pages, and what it costs, for a comparison with another program.
//!
//! Each page of a folder is asked each query of a file, and a JSON line per page has the results. The tree that the selectors see can be written
//! as XML, so that another program can be asked on the same tree. `bench/selectors` compares with parsel.

mod tree;
mod values;

use std::ffi::OsStr;
use std::fs;
use std::hint::black_box;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use huntsman::{Page, Request, Response, Result};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::process::thread_clock;
use serde::Serialize;
use url::Url;

use values::Answer;

/// Flags of `selectors`.
#[derive(Debug, Args)]
pub(crate) struct SelectorsArgs {
    /// A page in UTF-8, or a folder of them.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) pages: PathBuf,

    /// A file of queries: `css` or `xpath`, a tab, and the query in each line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) queries: PathBuf,

    /// A folder that gets the tree of each page as XML, named as the page and `.xml`.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) trees: Option<PathBuf>,

    /// Prints all values, and not a checksum and the first ones.
    #[arg(long)]
    pub(crate) full: bool,

    /// Measures the processor time of queries in place of printing results.
    #[arg(long)]
    pub(crate) time: bool,
}

#[derive(Clone, Debug)]
enum Query {
    Css(String),
    XPath(String),
}

/// What a page answers.
#[derive(Debug, Serialize)]
struct Answers<'a> {
    page: &'a str,
    /// In the order of the queries.
    answers: Vec<Answer>,
}

/// What a page costs, in microseconds of one processor.
#[derive(Debug, Serialize)]
struct Costs<'a> {
    page: &'a str,
    bytes: usize,
    /// From bytes to the tree that CSS selects in.
    parse_us: f64,
    /// From bytes to the nodes that XPath selects.
    parse_xpath_us: f64,
    /// In the order of the queries; without a number where the query is refused.
    queries_us: Vec<Option<f64>>,
}

pub(crate) fn run(args: &SelectorsArgs) -> Outcome {
    let queries = queries(&args.queries)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for path in pages(&args.pages)? {
        let bytes = read(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let line = if args.time {
            let costs = costs(&name, &bytes, &queries).map_err(|error| told(&path, &error))?;
            serde_json::to_string(&costs)
        } else {
            let page = page(&bytes);
            if let Some(folder) = &args.trees {
                let xml = tree::xml(&page).map_err(|error| told(&path, &error))?;
                let to = folder.join(format!("{name}.xml"));
                fs::write(&to, xml).map_err(|error| told(&to, &error))?;
            }
            let answers =
                queries.iter().map(|query| Answer::of(values::values(&page, query), args.full)).collect();
            serde_json::to_string(&Answers { page: &name, answers })
        };
        let line = line.map_err(|error| told(&path, &error))?;
        writeln!(out, "{line}").map_err(|error| Failure::crawl(format!("writing results: {error}")))?;
    }
    out.flush().map_err(|error| Failure::crawl(format!("writing results: {error}")))?;
    Ok(Exit::Done)
}

fn told(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::crawl(format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| told(path, &error))
}

/// The pages at a path, by name.
fn pages(path: &Path) -> Outcome<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| told(path, &error))?;
    let mut pages = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(|error| told(path, &error))?;
    pages.retain(|page| page.extension() == Some(OsStr::new("html")));
    pages.sort();
    Ok(pages)
}

fn queries(path: &Path) -> Outcome<Vec<Query>> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let query = |(number, line): (u32, &str)| match line.split_once('\t') {
        Some(("css", css)) => Ok(Query::Css(css.to_owned())),
        Some(("xpath", xpath)) => Ok(Query::XPath(xpath.to_owned())),
        _ => Err(told(path, &format!("line {number} does not begin with css or xpath and a tab"))),
    };
    lines.map(query).collect()
}

fn page(bytes: &[u8]) -> Page {
    let url = Url::parse("http://pages.example/").expect("this is a URL");
    Page::new(Request::get(url.clone()), Response::html(url, bytes.to_vec()))
}

fn costs<'a>(name: &'a str, bytes: &[u8], queries: &[Query]) -> Result<Costs<'a>> {
    let parse_us = micros(|| {
        let page = page(bytes);
        black_box(page.is_tree_truncated());
    });
    let parse_xpath_us = micros(|| {
        let page = page(bytes);
        black_box(page.root().is_ok());
    });
    let page = page(bytes);
    page.root()?;
    let queries_us = queries.iter().map(|query| cost(&page, query)).collect();
    Ok(Costs { page: name, bytes: bytes.len(), parse_us, parse_xpath_us, queries_us })
}

/// The time of a query that is compiled already, with all values as strings.
fn cost(page: &Page, query: &Query) -> Option<f64> {
    let run = || match query {
        Query::Css(css) => page.css(css),
        Query::XPath(path) => page.xpath(path),
    };
    run().ok()?;
    Some(micros(|| {
        let _ = black_box(run());
    }))
}

/// Microseconds of one run: the least of five rounds of a millisecond or one run, whichever is longer.
fn micros(mut work: impl FnMut()) -> f64 {
    const ROUND: Duration = Duration::from_millis(1);
    let round = |work: &mut dyn FnMut()| {
        let (start, mut runs) = (thread_clock(), 0_u32);
        loop {
            work();
            runs += 1;
            let taken = thread_clock().saturating_sub(start);
            if taken >= ROUND {
                return taken.as_secs_f64() * 1e6 / f64::from(runs);
            }
        }
    };
    work();
    (0..5).map(|_| round(&mut work)).fold(f64::INFINITY, f64::min)
}
