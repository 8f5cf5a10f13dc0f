//! What is compared: files, pages, stdin.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::CONTENT_TYPE;
use huntsman::detect::copyvio::Text;
use huntsman::{HttpDownloader, Output, Page, Result, Spider, Start};
use serde_json::json;
use url::Url;

use crate::args::Flags;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::reachable::advice;
use crate::render::escape;

/// The largest page, text or wiki page, and the largest PDF: as in the reference.
const MAX_TEXT: u64 = 2 << 20;
const MAX_PDF: u64 = 15 << 20;

/// What is compared, as it was named.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Stdin,
    File(String),
    Page(Url),
}

/// How the bytes of an input are read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Html,
    Wikitext,
    Pdf,
}

impl Input {
    /// A file, a URL or `-`.
    ///
    /// # Errors
    /// It looks like a URL and is none that can be fetched.
    pub(crate) fn parse(name: &str) -> Outcome<Self> {
        if name == "-" {
            return Ok(Self::Stdin);
        }
        if !name.contains("://") {
            return Ok(Self::File(name.to_owned()));
        }
        match Url::parse(name) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self::Page(url)),
            Ok(url) => Err(Failure::usage(format!(
                "{}: {}: is not fetched, http and https are",
                escape(name),
                url.scheme()
            ))),
            Err(error) => Err(Failure::usage(format!("{}: {error}", escape(name)))),
        }
    }
}

/// The texts of inputs, or why there is none.
#[derive(Debug)]
pub(crate) struct Inputs {
    config: Config,
    pages: HashMap<Url, std::result::Result<Text, String>>,
}

impl Inputs {
    /// Fetches all pages among the inputs: with robots.txt, politeness and limits as in a crawl.
    ///
    /// # Errors
    /// The settings are wrong. A page that cannot be had is no error here.
    pub(crate) async fn fetch(inputs: &[Input], config: Config) -> Outcome<Self> {
        let mut urls: Vec<Url> = Vec::new();
        for input in inputs {
            if let Input::Page(url) = input
                && !urls.contains(url)
            {
                urls.push(url.clone());
            }
        }
        let mut all = Self { config, pages: HashMap::new() };
        if urls.is_empty() {
            return Ok(all);
        }
        let downloader = HttpDownloader::new(&all.config.settings)?;
        let got: Arc<Mutex<HashMap<Url, _>>> = Arc::default();
        let spider = Texts { urls: urls.clone(), got: Arc::clone(&got) };
        let crawler =
            huntsman::crawl(spider).layers(all.config.layers.clone()).downloader(downloader).build()?;
        let report = crawler.run().await?;
        let mut got = std::mem::take(&mut *got.lock().unwrap_or_else(PoisonError::into_inner));
        let mut reasons: HashMap<String, String> = report.failed_seeds.into_iter().collect();
        for url in urls {
            let text = got.remove(&url).unwrap_or_else(|| {
                let reason = reasons.remove(url.as_str()).unwrap_or_else(|| report.finish_reason.clone());
                Err(format!("{reason}{}", advice(&reason, &url)))
            });
            all.pages.insert(url, text);
        }
        Ok(all)
    }

    /// What an input says.
    ///
    /// # Errors
    /// Why there is no text.
    pub(crate) fn text(&self, input: &Input) -> std::result::Result<Text, String> {
        match input {
            Input::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().take(MAX_TEXT + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
                // Nothing tells what it is but itself.
                let kind = if looks_like_html(&bytes) { Kind::Html } else { Kind::Plain };
                text_of(kind, &bytes, None)
            }
            Input::File(path) => {
                let kind = kind_of_file(Path::new(path));
                let limit = if kind == Kind::Pdf { MAX_PDF } else { MAX_TEXT };
                let mut bytes = Vec::new();
                let file = File::open(path).map_err(|error| error.to_string())?;
                file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
                text_of(kind, &bytes, None)
            }
            Input::Page(url) => self.pages.get(url).cloned().unwrap_or_else(|| Err("not fetched".to_owned())),
        }
    }

    /// Settings for fetching what somebody waits for in front of the screen.
    pub(crate) fn command() -> Flags {
        vec![
            ("download_delay", json!(0.0)),
            ("download_binary", json!(true)),
            ("download_maxsize", json!(MAX_PDF)),
            ("robots_retry_delays", json!([])),
            ("max_parked_wait", json!(30.0)),
            ("page_text", json!(false)),
            ("log_level", json!("off")),
        ]
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let head = bytes.trim_ascii_start();
    let starts = |what: &[u8]| head.get(..what.len()).is_some_and(|start| start.eq_ignore_ascii_case(what));
    starts(b"<!doctype html") || starts(b"<html")
}

fn kind_of_file(path: &Path) -> Kind {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" | "xhtml" => Kind::Html,
        "wiki" | "wikitext" | "mediawiki" => Kind::Wikitext,
        "pdf" => Kind::Pdf,
        _ => Kind::Plain,
    }
}

fn kind_of_media(media_type: Option<&str>) -> Option<Kind> {
    match media_type {
        Some("text/html" | "application/xhtml+xml") => Some(Kind::Html),
        Some("application/pdf" | "application/x-pdf") => Some(Kind::Pdf),
        Some("text/plain") | None => Some(Kind::Plain),
        Some(_) => None,
    }
}

fn text_of(kind: Kind, bytes: &[u8], charset: Option<&str>) -> std::result::Result<Text, String> {
    let limit = if kind == Kind::Pdf { MAX_PDF } else { MAX_TEXT };
    if bytes.len() as u64 > limit {
        return Err(format!("larger than {limit} bytes"));
    }
    let text = match kind {
        Kind::Plain => Text::plain(bytes, charset),
        Kind::Html => Text::html(bytes, charset),
        Kind::Wikitext => Text::wikitext(Text::plain(bytes, charset).exact()),
        Kind::Pdf => Text::new(pdf_text(bytes)?),
    };
    if text.is_empty() { Err("it has no text".to_owned()) } else { Ok(text) }
}

/// The text of a PDF file, by this program in another process.
#[cfg(feature = "pdf")]
fn pdf_text(bytes: &[u8]) -> std::result::Result<String, String> {
    use huntsman::middleware::copyvio::{PdfProcess, PdfText};
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    PdfProcess::new(program, ["pdf-text"]).text(bytes).map_err(|error| error.to_string())
}

#[cfg(not(feature = "pdf"))]
fn pdf_text(_: &[u8]) -> std::result::Result<String, String> {
    Err("this build does not read PDF files; build it with the feature pdf".to_owned())
}

/// Fetches pages and keeps what they say.
struct Texts {
    urls: Vec<Url>,
    got: Arc<Mutex<HashMap<Url, std::result::Result<Text, String>>>>,
}

impl Spider for Texts {
    type Item = ();

    fn name(&self) -> &str {
        "copyvio"
    }

    fn start(&self) -> Start {
        Start::urls(self.urls.clone())
    }

    fn parse(&self, page: &Page, _: &mut Output<()>) -> Result<()> {
        let response = page.response();
        let media = response.content_type();
        let header = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let charset = header.and_then(huntsman::html::content_charset);
        let text = match kind_of_media(media.as_deref()) {
            Some(kind) => text_of(kind, &response.body, charset),
            None => Err(format!("{} has no text that is read", media.unwrap_or_default())),
        };
        if let Ok(url) = Url::parse(page.request().requested_url()) {
            self.got.lock().unwrap_or_else(PoisonError::into_inner).insert(url, text);
        }
        Ok(())
    }
}
