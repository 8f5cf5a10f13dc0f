//! The files of `-o` and `-O`, and of the setting `feeds`: the ending of a name says the format.

use std::path::{Path, PathBuf};

use huntsman_crawler::{CrawlerBuilder, Spider};
use huntsman_middleware::sinks::{FeedStart, NamedFeed};
use huntsman_output::OutputDir;
use serde::Serialize;

use crate::arguments::Arguments;
use crate::command::exit::{Failure, Outcome};
use crate::command::render::escape;
use crate::command::stdout::StdoutLines;

/// What names the files of the settings, for messages.
pub(crate) const SET: &str = "setting feeds:";

/// A file that gets the items of a crawl.
#[derive(Clone, Debug)]
pub(crate) struct FeedFile {
    pub(crate) path: PathBuf,
    /// What happens to what is in the file already.
    pub(crate) start: FeedStart,
    /// What has named it, for messages.
    pub(crate) named_by: &'static str,
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

    /// The feed of the job in this directory: its name is the same whenever the job goes on. With `keeps`, a file that has items already is
    /// refused, because a new job would empty it.
    pub(crate) fn of_job(
        mut self,
        spider: &str,
        arguments: &Arguments,
        directory: &OutputDir,
        keeps: bool,
    ) -> Outcome<Self> {
        let started = directory.started();
        let time = started.get(..19).unwrap_or(started);
        let parameters = [("name", spider), ("time", time)].into_iter().chain(arguments.all());
        self.path = NamedFeed::<()>::filled(&self.path, parameters)
            .map_err(|error| self.fault(&error.to_string()))?;
        let file = NamedFeed::<()>::local_file(&self.path);
        if keeps && std::fs::metadata(file).is_ok_and(|found| found.len() > 0) {
            return Err(self.fault(&format!(
                "the file has items, and a new crawl with --out begins its files anew: overwrite it with -O {}, or name another one",
                self.path.display()
            )));
        }
        Ok(self)
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
            true => Failure::usage(format!("{} {}", self.named_by, escape(&error.to_string()))),
            false => error.into(),
        })?;
        let builder = builder.pipeline(feed.param("name", spider));
        Ok(match position {
            Some(position) => builder.persist(position),
            None => builder,
        })
    }

    fn fault(&self, what: &str) -> Failure {
        let path = self.path.to_string_lossy();
        Failure::usage(format!("{} {}: {}", self.named_by, escape(&path), escape(what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_may_stand_in_a_name() {
        let of = |name: &str| {
            FeedFile { path: name.into(), start: FeedStart::Append, named_by: "-o" }.parameters()
        };
        assert_eq!(of("items-%(shelf)s-%(batch_id)05d.jsonl"), ["shelf", "batch_id"]);
        assert!(of("items.jsonl").is_empty());
    }
}
