//! Makes the truth of a recorded crawl: which of its URLs show the same.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman::detect::avoid::evaluation::{MadeTruth, RecordedResponse, ResponseKind, TruthMaker, View};
use huntsman::html::{Scan, ScanOptions};
use huntsman::{Page, Request, Response, files};
use huntsman_cli::exit::{Exit, Failure, Outcome};
use huntsman_cli::render::{count, escape, say};
use serde_json::json;

use super::args::AvoidDupArgs;
use super::{percent, recordings};

pub(super) fn run(path: &Path, args: &AvoidDupArgs) -> Outcome {
    let area = args.area.as_deref();
    if let Some(area) = area {
        // A wrong selector is an error before minutes of reading.
        let empty = Response::html(url::Url::parse("http://site.example/").expect("it is a URL"), "");
        area_of(&page_of(empty), area)?;
    }
    let mut maker = TruthMaker::default();
    let (mut origin, mut elsewhere, mut without_area) = (None, 0, 0);
    for response in RecordedResponse::read(recordings::open(path)?) {
        let response = response.map_err(|error| recordings::wrong(path, &error))?;
        let origin = origin.get_or_insert_with(|| response.url.origin());
        if response.url.origin() != *origin {
            elsewhere += 1;
            continue;
        }
        let url = response.url.clone();
        match kind_of(&response) {
            Some(kind) => maker.add(url.as_str(), kind),
            None => {
                let page = page_of(as_received(response));
                let text = area.map(|area| area_of(&page, area)).transpose()?.flatten();
                without_area += usize::from(area.is_some() && text.is_none());
                maker.add_page(url.as_str(), &text_of(page.body_text()), text.as_deref());
            }
        }
    }
    let made = maker.finish();
    let shown = escape(&path.to_string_lossy()).into_owned();
    if made.pages() == 0 {
        return Err(Failure::usage(format!("{shown}: no response is an HTML page")));
    }
    if let Some(area) = area {
        if without_area >= made.pages() {
            return Err(Failure::usage(format!("--area {}: it matches on no page", escape(area))));
        }
        if without_area > 0 {
            say(&format!("{} pages without an area are compared as a whole", count(without_area as u64)));
        }
    }
    if elsewhere > 0 {
        say(&format!("{} responses of other origins are left out", count(elsewhere)));
    }
    write(&made, args.output.as_deref())?;
    if args.json {
        print_json(&made)?;
    } else {
        say(&summary(&made));
    }
    Ok(Exit::Done)
}

/// What a response is in place of a page; `None` for a page.
fn kind_of(response: &RecordedResponse) -> Option<ResponseKind> {
    match response.status {
        300..=399 if response.location.is_some() => Some(ResponseKind::Redirect),
        200 if response.content_type.to_ascii_lowercase().contains("html") => None,
        200 => Some(ResponseKind::Other),
        _ => Some(ResponseKind::Error),
    }
}

/// The response as the crawler had it.
fn as_received(response: RecordedResponse) -> Response {
    let mut received = Response::html(response.url, response.body);
    if let Ok(content_type) = response.content_type.parse() {
        received.headers.insert("content-type", content_type);
    }
    received
}

fn page_of(response: Response) -> Page {
    Page::new(Request::get(response.url.clone()), response)
}

/// The text of the elements that a selector matches; `None` if there are none.
fn area_of(page: &Page, selector: &str) -> Outcome<Option<String>> {
    let elements = page
        .select(selector)
        .map_err(|error| Failure::usage(format!("--area {}: {error}", escape(selector))))?;
    let texts: Vec<String> = elements.iter().map(|element| text_of(&element.html())).collect();
    Ok((!texts.is_empty()).then(|| texts.join("\n")))
}

/// The visible text of HTML. Each element ends a word, because the links of a menu are seen apart even if nothing stands between them.
fn text_of(html: &str) -> String {
    let options = ScanOptions { links: false, ..ScanOptions::default() };
    Scan::of(&html.replace("</", " </"), &options).text().to_owned()
}

/// Writes the list to a file, packed if its name ends with `.gz`, or to stdout.
fn write(made: &MadeTruth, output: Option<&Path>) -> Outcome<()> {
    let Some(path) = output else { return Ok(made.write(io::stdout().lock())?) };
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let written = files::replace(path, |new| match is_packed {
        true => {
            let mut packed = GzEncoder::new(new, Compression::best());
            made.write(&mut packed)?;
            packed.finish().map(drop)
        }
        false => made.write(new),
    });
    written.map_err(|error| Failure::crawl(format!("writing {}: {error}", escape(&path.to_string_lossy()))))
}

fn possible(made: &MadeTruth, view: View) -> f64 {
    1.0 - made.contents(view) as f64 / made.pages() as f64
}

fn summary(made: &MadeTruth) -> String {
    let of = |view: View| {
        let contents = count(made.contents(view) as u64);
        format!(
            "{contents} contents by the view {} ({} could be saved)",
            view.name(),
            percent(possible(made, view))
        )
    };
    let (urls, pages) = (count(made.urls() as u64), count(made.pages() as u64));
    format!("{urls} URLs, {pages} pages: {}, {}", of(View::Area), of(View::Page))
}

fn print_json(made: &MadeTruth) -> Outcome<()> {
    let mut out = json!({ "urls": made.urls(), "pages": made.pages() });
    for view in View::ALL {
        out[view.name()] = json!({ "contents": made.contents(view), "possible": possible(made, view) });
    }
    Ok(writeln!(io::stdout().lock(), "{out}")?)
}
