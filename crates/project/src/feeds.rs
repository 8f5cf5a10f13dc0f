//! The files of `-o` and `-O`: the ending of a name says the format.

use std::path::{Path, PathBuf};

use huntsman_crawler::{CrawlerBuilder, Spider};
use huntsman_middleware::sinks::{FeedStart, NamedFeed};
use serde::Serialize;

use crate::command::exit::{Failure, Outcome};
use crate::command::render::escape;
use crate::command::stdout::StdoutLines;

/// A file that gets the items of a crawl.
#[derive(Clone, Debug)]
pub(crate) struct FeedFile {
    pub(crate) path: PathBuf,
    /// What happens to what is in the file already.
    pub(crate) start: FeedStart,
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

    /// The file on this machine that has the items of earlier runs.
    pub(crate) fn local_file(&self) -> &Path {
        NamedFeed::<()>::local_file(&self.path)
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
        let opened = NamedFeed::open(&self.path, self.start);
        let (feed, position) = opened.map_err(|error| match error.is_usage() {
            true => Failure::usage(format!("-o {}", escape(&error.to_string()))),
            false => error.into(),
        })?;
        let builder = builder.pipeline(feed.param("name", spider));
        Ok(match position {
            Some(position) => builder.persist(position),
            None => builder,
        })
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
        let of = |name: &str| FeedFile { path: name.into(), start: FeedStart::Append }.parameters();
        assert_eq!(of("items-%(shelf)s-%(batch_id)05d.jsonl"), ["shelf", "batch_id"]);
        assert!(of("items.jsonl").is_empty());
    }
}
