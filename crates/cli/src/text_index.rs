//! `--index`: a full-text index of what crawls fetched.

use std::path::Path;

use huntsman::CrawlerBuilder;
use huntsman::Spider;

use crate::exit::Failure;
use crate::exit::Outcome;

#[cfg(feature = "text-index")]
pub(crate) use huntsman::middleware::copyvio::TextIndex;

/// What stands for an index in a build without them.
#[cfg(not(feature = "text-index"))]
#[derive(Clone, Debug)]
pub(crate) enum TextIndex {}

/// Opens an index for adding pages, and makes it where there is none.
#[cfg(feature = "text-index")]
pub(crate) fn open_or_create(path: &Path) -> Outcome<TextIndex> {
    TextIndex::open_or_create(path).map_err(failure)
}

/// Opens an index for looking.
#[cfg(feature = "text-index")]
pub(crate) fn open(path: &Path) -> Outcome<TextIndex> {
    TextIndex::open(path).map_err(failure)
}

/// How a command ends that cannot use an index.
#[cfg(feature = "text-index")]
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn failure(error: huntsman::middleware::copyvio::TextIndexError) -> Failure {
    use huntsman::middleware::copyvio::TextIndexError as E;
    let message = format!("--index: {}", crate::render::escape(&error.to_string()));
    match error {
        E::Missing(_) | E::NotAnIndex(_) | E::Version(_) => Failure::usage(message),
        _ => Failure::crawl(message),
    }
}

/// Has a crawl add its pages.
#[cfg(feature = "text-index")]
pub(crate) fn install<S: Spider>(builder: CrawlerBuilder<S>, index: &TextIndex) -> CrawlerBuilder<S> {
    builder.plugin(huntsman::middleware::copyvio::IndexPages::new(index.clone()))
}

/// Makes what was added findable, after the crawl. Merges are not waited for where somebody waits for the end.
#[cfg(feature = "text-index")]
pub(crate) async fn close(index: TextIndex, is_urgent: bool) -> huntsman::Result<()> {
    let close = move || if is_urgent { index.commit() } else { index.close() };
    let closed = tokio::task::spawn_blocking(close).await?;
    closed.map_err(|error| huntsman::Error::usage(error.to_string()))
}

#[cfg(not(feature = "text-index"))]
pub(crate) fn open_or_create(_: &Path) -> Outcome<TextIndex> {
    Err(Failure::usage("--index: this build has no text index; build it with the feature text-index"))
}

#[cfg(not(feature = "text-index"))]
pub(crate) fn open(path: &Path) -> Outcome<TextIndex> {
    open_or_create(path)
}

#[cfg(not(feature = "text-index"))]
pub(crate) fn install<S: Spider>(_: CrawlerBuilder<S>, index: &TextIndex) -> CrawlerBuilder<S> {
    match *index {}
}

#[cfg(not(feature = "text-index"))]
pub(crate) async fn close(index: TextIndex, _: bool) -> huntsman::Result<()> {
    match index {}
}
