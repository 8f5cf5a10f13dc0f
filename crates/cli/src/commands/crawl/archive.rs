//! Flags of crawls over archives.

use std::fs::File;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::middleware::FromWarcSettings;
use huntsman::warc::{HttpHead, WarcReader, named_files};
use huntsman::{Request, Settings, Start, StartUrls, parse_web_url};
use serde_json::json;
use url::Url;

use crate::args::{Flags, list, set};
use crate::render::escape;

/// Bytes of a response in which its HTTP head is looked for.
const HEAD: u64 = 64 << 10;

/// Where pages come from in place of a network.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Archives")]
pub(crate) struct ArchiveArgs {
    /// Crawls archives instead of the network: WARC files, folders with such files, patterns in quotes, CDXJ indexes (repeatable). Nothing is sent; what the
    /// archives do not have is dropped as not_archived (setting from_warc).
    #[arg(long, value_name = "FILE|DIR|GLOB", value_hint = ValueHint::AnyPath, conflicts_with_all = ["replay", "warc"])]
    pub(crate) from_warc: Vec<String>,

    /// If the archives have several captures of a URL, takes the one nearest to this time: up to 14 digits, or RFC 3339 [default: the last one]
    /// (setting from_warc_at).
    #[arg(long, value_name = "TIME", requires = "from_warc")]
    pub(crate) at: Option<String>,

    /// Begins with every page of HTML with status 200 that the archives have, instead of with start URLs, and follows no links.
    #[arg(long, requires = "from_warc", conflicts_with_all = ["urls", "seeds"])]
    pub(crate) all: bool,
}

impl ArchiveArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        list(&mut flags, "from_warc", &self.from_warc);
        set(&mut flags, "from_warc_at", self.at.as_deref());
        if !self.from_warc.is_empty() {
            // A slot for each address would ask for the addresses of hosts.
            flags.push(("slot_by", json!("host")));
        }
        flags
    }

    /// The pages of the archives as start URLs.
    pub(crate) fn pages(&self) -> huntsman::Result<StartUrls> {
        let files = named_files(&self.from_warc).map_err(|error| {
            huntsman::Error::usage(format!("--from-warc: {}", escape(&error.to_string())))
        })?;
        let mut pages = Pages { files: files.into_iter(), open: None };
        let first = pages.next().transpose()?;
        let first =
            first.ok_or_else(|| huntsman::Error::usage("--all: the archives have no page of HTML"))?;
        let requests = std::iter::once(Ok(first.clone())).chain(pages).map(|url| url.map(Request::get));
        Ok(StartUrls::listed(first, Start::new(requests)))
    }
}

/// Whether the pages of a crawl come from archives, so that nothing is to be learnt of the network.
pub(in crate::commands) fn is_offline(settings: &Settings) -> huntsman::Result<bool> {
    Ok(!settings.of::<FromWarcSettings>()?.from_warc.is_empty())
}

/// The URLs of pages of HTML, which are read while the crawl runs. What is damaged was told when the crawl began.
struct Pages {
    files: std::vec::IntoIter<PathBuf>,
    open: Option<WarcReader<File>>,
}

impl Iterator for Pages {
    type Item = huntsman::Result<Url>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(reader) = &mut self.open else {
                let path = self.files.next()?;
                match File::open(&path) {
                    Ok(file) => self.open = Some(WarcReader::new(file)),
                    Err(error) => return Some(Err(error.into())),
                }
                continue;
            };
            match page(reader) {
                Ok(Some(Some(url))) => return Some(Ok(url)),
                Ok(Some(None)) => {}
                Ok(None) => self.open = None,
                Err(error) if error.is_damage() => {}
                Err(error) => {
                    self.open = None;
                    return Some(Err(error.into()));
                }
            }
        }
    }
}

/// The URL of the next record, if it is a page.
fn page(reader: &mut WarcReader<File>) -> Result<Option<Option<Url>>, huntsman::warc::ReadError> {
    let Some(head) = reader.next_head()? else { return Ok(None) };
    if !matches!(head.kind(), "response" | "revisit") {
        return Ok(Some(None));
    }
    let start = reader.block(HEAD)?.bytes;
    let is_page = HttpHead::parse(&start).is_some_and(|http| {
        let kind = http.get("content-type").unwrap_or_default().to_ascii_lowercase();
        http.status() == Some(200) && (kind.contains("html") || kind.is_empty())
    });
    Ok(Some(head.target().filter(|_| is_page).and_then(|url| parse_web_url(url).ok())))
}
