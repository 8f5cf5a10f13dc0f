//! The inputs of a comparison: files, pages, stdin.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
#[cfg(feature = "pdf")]
use std::sync::Once;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(feature = "pdf")]
use huntsman::sweep::pdf_child;
use huntsman::sweep::{LinkedText, PdfText, TextKind};
use huntsman::{HttpDownloader, Output, Page, Result, Spider, Start};
use serde_json::json;
use url::Url;

use crate::args::Flags;
use crate::config::Config;
use crate::exit::{Failure, Outcome};
use crate::reachable::advice;
use crate::render::escape;

/// An input, as it was named.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Input {
    Stdin,
    File(String),
    Page(Url),
}

impl Input {
    /// The address of the input, if it is a page.
    pub(crate) fn url(&self) -> Option<&Url> {
        if let Self::Page(url) = self { Some(url) } else { None }
    }

    /// Parses the name of a file, a URL or `-`.
    ///
    /// # Errors
    /// The name looks like a URL but cannot be fetched.
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

/// The texts of inputs, or the reasons why there is none.
#[derive(Debug)]
pub(crate) struct Inputs {
    config: Config,
    pages: HashMap<Url, std::result::Result<LinkedText, String>>,
}

impl Inputs {
    /// Fetches all pages among the inputs, with robots.txt, politeness and limits as in a crawl.
    ///
    /// # Errors
    /// The settings are wrong. A page that cannot be fetched is no error here.
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

    /// The text of an input.
    ///
    /// # Errors
    /// The reason why there is no text.
    pub(crate) fn read(&self, input: &Input) -> std::result::Result<LinkedText, String> {
        match input {
            Input::Stdin => {
                let bytes = bytes_of(io::stdin(), TextKind::Pdf)?;
                read(TextKind::of_bytes(&bytes), &bytes)
            }
            Input::File(path) => {
                let kind = TextKind::of_file(Path::new(path));
                read(kind, &bytes_of(File::open(path).map_err(|error| error.to_string())?, kind)?)
            }
            Input::Page(url) => self.pages.get(url).cloned().unwrap_or_else(|| Err("not fetched".to_owned())),
        }
    }

    /// Settings for fetching pages while the user waits in front of the screen.
    pub(crate) fn command() -> Flags {
        vec![
            ("download_delay", json!(0.0)),
            ("download_binary", json!(true)),
            ("download_maxsize", json!(TextKind::Pdf.most_bytes())),
            ("robots_retry_delays", json!([])),
            ("max_parked_wait", json!(30.0)),
            ("page_text", json!(false)),
            ("log_level", json!("off")),
        ]
    }
}

fn bytes_of(from: impl io::Read, kind: TextKind) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(kind.most_bytes() as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

fn read(kind: TextKind, bytes: &[u8]) -> std::result::Result<LinkedText, String> {
    LinkedText::of_bytes(kind, bytes, pdf_reader().as_deref()).map_err(|why| why.to_string())
}

/// A reader of PDF files that runs this program in another process.
#[cfg(feature = "pdf")]
pub fn pdf_reader() -> Option<Arc<dyn PdfText>> {
    Some(Arc::new(pdf_process(&["pdf-text"])?))
}

/// This program with these arguments, as the process that reads PDF files.
#[cfg(feature = "pdf")]
pub(crate) fn pdf_process(args: &[&str]) -> Option<huntsman::sweep::PdfProcess> {
    let program = std::env::current_exe().ok()?;
    static LOGGED: Once = Once::new();
    LOGGED.call_once(|| {
        let missing = pdf_child::missing_protections();
        if !missing.is_empty() {
            let missing = missing.join(" and ");
            tracing::debug!("PDF files are read with less of a sandbox: this system has no {missing}");
        }
    });
    Some(huntsman::sweep::PdfProcess::new(program, args))
}

/// No reader of PDF files: the command was built without the feature `pdf`.
#[cfg(not(feature = "pdf"))]
pub fn pdf_reader() -> Option<Arc<dyn PdfText>> {
    None
}

/// A spider that fetches pages and keeps their texts.
struct Texts {
    urls: Vec<Url>,
    got: Arc<Mutex<HashMap<Url, std::result::Result<LinkedText, String>>>>,
}

impl Spider for Texts {
    type Item = ();

    fn name(&self) -> &str {
        "copyvio"
    }

    fn start(&self) -> Start {
        Start::urls(self.urls.clone())
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let text = LinkedText::of_page(page, out.context(), pdf_reader().as_deref());
        let text = text.map_err(|why| why.to_string());
        if let Ok(url) = Url::parse(page.request().requested_url()) {
            self.got.lock().unwrap_or_else(PoisonError::into_inner).insert(url, text);
        }
        Ok(())
    }
}
