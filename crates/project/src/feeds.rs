//! The files of `-o` and `-O`: the ending of a name says the format.

use std::path::{Path, PathBuf};

use huntsman_crawler::{CrawlerBuilder, Result, Spider};
use huntsman_middleware::sinks::{Compression, Csv, Feed, Format, Json, JsonLines, Xml};
use serde::Serialize;

use crate::command::exit::{Failure, Outcome};
use crate::command::render::escape;
use crate::command::stdout::StdoutLines;

/// A file that gets the items of a crawl.
#[derive(Clone, Debug)]
pub(crate) struct FeedFile {
    pub(crate) path: PathBuf,
    pub(crate) start: Start,
}

/// What happens to what is in the file already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Items are added to it.
    Append,
    /// It is overwritten.
    Overwrite,
    /// The crawl has a job: a new one overwrites it, and one that goes on continues it.
    OfJob,
}

impl FeedFile {
    /// Whether the items go to stdout.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// The parameters in the name that may be arguments of the spider: `items-%(shelf)s.jsonl` has `shelf`.
    pub(crate) fn parameters(&self) -> Vec<String> {
        let name = self.path.to_string_lossy();
        let after = |part: &str| part.split_once(')').map(|(name, _)| name.to_owned());
        name.split("%(").skip(1).filter_map(after).collect()
    }

    /// Adds the feed to a crawl of this spider.
    pub(crate) fn attach<S>(&self, builder: CrawlerBuilder<S>, spider: &str) -> Outcome<CrawlerBuilder<S>>
    where
        S: Spider,
        S::Item: Serialize,
    {
        if self.is_stdout() {
            return Ok(builder.pipeline(StdoutLines::new()));
        }
        let plain = match Compression::of_name(&self.path.to_string_lossy()) {
            Compression::None => self.path.clone(),
            _ => self.path.with_extension(""),
        };
        let ending = plain.extension().and_then(|ending| ending.to_str());
        Ok(match (ending, self.start) {
            (Some("jsonl"), Start::OfJob) => {
                let (feed, position) = JsonLines::of_job(&self.path)?;
                builder.pipeline(feed).persist(position)
            }
            (Some("csv"), Start::OfJob) => {
                let (feed, position) = Csv::of_job(&self.path)?;
                builder.pipeline(feed).persist(position)
            }
            (Some("json" | "xml"), Start::OfJob) => {
                return Err(self.fault(
                    "a crawl that can be continued writes .jsonl or .csv; one with --store memory writes others, too",
                ));
            }
            (Some("jsonl"), _) => {
                let feed: JsonLines<S::Item> = self.open(spider)?;
                builder.pipeline(feed)
            }
            (Some("csv"), _) => {
                let feed: Csv<S::Item> = self.open(spider)?;
                builder.pipeline(feed)
            }
            (Some("json"), _) => {
                let feed: Json<S::Item> = self.open(spider)?;
                builder.pipeline(feed)
            }
            (Some("xml"), _) => {
                let feed: Xml<S::Item> = self.open(spider)?;
                builder.pipeline(feed)
            }
            _ => {
                return Err(self.fault(
                    "the name has to end with .jsonl, .csv, .json or .xml, and .gz or .zst after it for a compressed file",
                ));
            }
        })
    }

    fn open<T, F: Format>(&self, spider: &str) -> Result<Feed<T, F>> {
        let feed = match self.start {
            Start::Overwrite => Feed::overwrite(&self.path),
            _ if F::APPENDS => Feed::append(&self.path),
            // Nothing can be added to it, so an earlier file is left alone.
            _ => Feed::create(&self.path),
        };
        Ok(feed?.param("name", spider))
    }

    pub(crate) fn fault(&self, what: &str) -> Failure {
        Failure::usage(format!("-o {}: {what}", escape(&self.path.to_string_lossy())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_stand_in_a_name() {
        let of = |name: &str| FeedFile { path: name.into(), start: Start::Append }.parameters();
        assert_eq!(of("items-%(shelf)s-%(batch_id)05d.jsonl"), ["shelf", "batch_id"]);
        assert!(of("items.jsonl").is_empty());
    }
}
