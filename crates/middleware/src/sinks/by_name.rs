//! Feeds by the names of their files: the ending says the format.

use std::path::{Path, PathBuf};
use std::time::Duration;

use huntsman_crawler::{Context, Error, OnItem, Persist, Pipeline, Result, Settings, Timestamp};
use serde::Serialize;

use super::feed::{Feed, Format};
use super::name::Name;
#[cfg(feature = "parquet")]
use super::parquet::Parquet;
use super::place::is_remote;
#[cfg(feature = "sqlite")]
use super::sqlite::Sqlite;
use super::target::Compression;
use super::{Csv, Json, JsonLines, Xml};

/// What a feed does with what an earlier run has written to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedStart {
    /// There must be nothing.
    Create,
    /// Items are added. If the format cannot be added to, there must be nothing.
    Append,
    /// It is overwritten.
    Overwrite,
    /// The crawl has a job: a new one overwrites a file, and one that goes on continues it. An object of a bucket that is there before the job
    /// is an error when the crawl begins.
    OfJob,
    /// As [`FeedStart::OfJob`], and a new job also replaces an object.
    OfJobOverwrite,
}

/// A feed whose format follows from the name of its file.
///
/// | ending | format |
/// |---|---|
/// | `.jsonl`, `.csv`, `.json`, `.xml`, also with `.gz` or `.zst` after it | text |
/// | `.parquet` | Parquet, with the feature `parquet` |
/// | `.sqlite`, `.sqlite3`, `.db`, also with `?table=NAME` after it | SQLite, with the feature `sqlite` |
///
/// With the feature `s3`, a name that begins with `s3://` is an object of a bucket, in all formats but SQLite.
#[derive(Debug)]
pub struct NamedFeed<T>(Inner<T>);

#[derive(Debug)]
enum Inner<T> {
    Lines(JsonLines<T>),
    Csv(Csv<T>),
    Json(Json<T>),
    Xml(Xml<T>),
    #[cfg(feature = "parquet")]
    Parquet(Parquet<T>),
    #[cfg(feature = "sqlite")]
    Sqlite(Sqlite<T>),
}

/// Does the same with the feed of every format.
macro_rules! each {
    ($of:expr, $feed:ident => $act:expr) => {
        match $of {
            Inner::Lines($feed) => $act,
            Inner::Csv($feed) => $act,
            Inner::Json($feed) => $act,
            Inner::Xml($feed) => $act,
            #[cfg(feature = "parquet")]
            Inner::Parquet($feed) => $act,
            #[cfg(feature = "sqlite")]
            Inner::Sqlite($feed) => $act,
        }
    };
}

/// A feed, and its position if it belongs to a job.
type Opened<F> = (F, Option<Box<dyn Persist>>);

impl<T: 'static> NamedFeed<T> {
    /// Opens the feed of a file. With [`FeedStart::OfJob`] or [`FeedStart::OfJobOverwrite`] it has a position, which must be given to the builder by
    /// [`CrawlerBuilder::persist`](huntsman_crawler::CrawlerBuilder::persist).
    ///
    /// # Errors
    /// The ending is not known, this build has not its format, a job cannot go on with the format, or the file cannot be opened.
    pub fn open(path: &Path, start: FeedStart) -> Result<(Self, Option<Box<dyn Persist>>)> {
        let fault = |what: &str| Error::usage(format!("{}: {what}", path.display()));
        let name = path.to_str().ok_or_else(|| fault("the name is not valid Unicode"))?;
        if let Some(format) = missing_format(name) {
            return Err(fault(&format!(
                "this program is built without the cargo feature {format} of huntsman"
            )));
        }
        let (inner, position) = match ending(name) {
            "jsonl" => opened(path, start).map(|(feed, position)| (Inner::Lines(feed), position)),
            "csv" => opened(path, start).map(|(feed, position)| (Inner::Csv(feed), position)),
            "json" | "xml" if matches!(start, FeedStart::OfJob | FeedStart::OfJobOverwrite) => {
                let what = format!(
                    "a crawl that can be continued writes {}; one with --store memory writes others, too",
                    resumable()
                );
                return Err(fault(&what));
            }
            "json" => opened(path, start).map(|(feed, position)| (Inner::Json(feed), position)),
            "xml" => opened(path, start).map(|(feed, position)| (Inner::Xml(feed), position)),
            #[cfg(feature = "parquet")]
            "parquet" => opened(path, start).map(|(feed, position)| (Inner::Parquet(feed), position)),
            #[cfg(feature = "sqlite")]
            "sqlite" | "sqlite3" | "db" => {
                table(path, start).map(|(feed, position)| (Inner::Sqlite(feed), position))
            }
            _ => {
                return Err(fault(
                    "the name has to end with .jsonl, .csv, .json or .xml, and .gz or .zst after it for a compressed file, or with \
                     .parquet or .sqlite",
                ));
            }
        }?;
        Ok((Self(inner), position))
    }

    /// Sets a parameter for the file name, such as `name` for `%(name)s`.
    pub fn param(self, key: &str, value: &str) -> Self {
        Self(match self.0 {
            Inner::Lines(feed) => Inner::Lines(feed.param(key, value)),
            Inner::Csv(feed) => Inner::Csv(feed.param(key, value)),
            Inner::Json(feed) => Inner::Json(feed.param(key, value)),
            Inner::Xml(feed) => Inner::Xml(feed.param(key, value)),
            #[cfg(feature = "parquet")]
            Inner::Parquet(feed) => Inner::Parquet(feed.param(key, value)),
            #[cfg(feature = "sqlite")]
            Inner::Sqlite(feed) => Inner::Sqlite(feed.param(key, value)),
        })
    }

    /// The name of a job's file: its parameters are filled in, so that it is the same whenever the job goes on.
    ///
    /// # Errors
    /// A parameter is not among these, is written wrongly, or is that of a batch: a job goes on with one file.
    pub fn filled<'a>(
        path: &Path,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<PathBuf> {
        let Some(template) = path.to_str() else { return Ok(path.to_owned()) };
        let mut name = Name::new(template.to_owned());
        if name.is_batched() {
            let what = format!(
                "{template}: a job goes on with one file, so its name has no number or time of a batch"
            );
            return Err(Error::usage(what));
        }
        parameters.into_iter().for_each(|(key, value)| name.set(key, value));
        Ok(name.of_batch(0, Timestamp::wall())?.into())
    }

    /// The place of a file that is named relative to this folder; that of an object of a bucket is the name itself.
    pub fn within(folder: &Path, name: &str) -> PathBuf {
        if is_remote(name) { name.into() } else { folder.join(name) }
    }

    /// The file on this machine that a name stands for, to ask whether there is something in it.
    pub fn local_file(path: &Path) -> &Path {
        let file = path.to_str().map(without_table);
        file.map_or(path, Path::new)
    }
}

fn without_table(name: &str) -> &str {
    name.rsplit_once("?table=").map_or(name, |(file, _)| file)
}

/// The last part of the name, without that of a compression.
fn ending(name: &str) -> &str {
    let name = without_table(name);
    let plain = match Compression::of_name(name) {
        Compression::None => name,
        _ => name.rsplit_once('.').map_or(name, |(plain, _)| plain),
    };
    plain.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The feature that a name needs and this build does not have.
fn missing_format(name: &str) -> Option<&'static str> {
    match ending(name) {
        "parquet" if !cfg!(feature = "parquet") => Some("parquet"),
        "sqlite" | "sqlite3" | "db" if !cfg!(feature = "sqlite") => Some("sqlite"),
        _ => None,
    }
}

fn resumable() -> &'static str {
    match (cfg!(feature = "parquet"), cfg!(feature = "sqlite")) {
        (true, true) => ".jsonl, .csv, .parquet or .sqlite",
        (true, false) => ".jsonl, .csv or .parquet",
        (false, true) => ".jsonl, .csv or .sqlite",
        (false, false) => ".jsonl or .csv",
    }
}

fn opened<T: 'static, F: Format>(path: &Path, start: FeedStart) -> Result<Opened<Feed<T, F>>> {
    Ok(match start {
        FeedStart::OfJob | FeedStart::OfJobOverwrite => {
            let (feed, position) = Feed::of_job(path)?;
            let feed = if start == FeedStart::OfJobOverwrite { feed.replace_object() } else { feed };
            (feed, Some(Box::new(position)))
        }
        FeedStart::Overwrite => (Feed::overwrite(path)?, None),
        FeedStart::Append if F::APPENDS => (Feed::append(path)?, None),
        // Nothing can be added to it, so an earlier file is left alone.
        FeedStart::Append | FeedStart::Create => (Feed::create(path)?, None),
    })
}

#[cfg(feature = "sqlite")]
fn table<T: 'static>(path: &Path, start: FeedStart) -> Result<Opened<Sqlite<T>>> {
    Ok(match start {
        FeedStart::OfJob | FeedStart::OfJobOverwrite => {
            let (feed, position) = Sqlite::of_job(path)?;
            (feed, Some(Box::new(position)))
        }
        FeedStart::Overwrite => (Sqlite::overwrite(path)?, None),
        FeedStart::Append => (Sqlite::append(path)?, None),
        FeedStart::Create => (Sqlite::create(path)?, None),
    })
}

impl<T: Serialize + Send + 'static> Pipeline<T> for NamedFeed<T> {
    /// No limit: an item may begin a new file, and the last one is then completed.
    fn timeout(&self, _: &Settings) -> Option<Duration> {
        None
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        each!(&mut self.0, feed => feed.open(cx).await)
    }

    async fn process_item(&mut self, item: T, cx: &Context) -> Result<OnItem<T>> {
        each!(&mut self.0, feed => feed.process_item(item, cx).await)
    }

    async fn flush(&mut self) -> Result<()> {
        each!(&mut self.0, feed => feed.flush().await)
    }

    async fn close(&mut self) -> Result<()> {
        each!(&mut self.0, feed => feed.close().await)
    }
}
