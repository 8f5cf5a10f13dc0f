//! `--index`: a full-text index of the pages that crawls fetched.

use std::path::Path;

use huntsman::CrawlerBuilder;
use huntsman::Spider;

use crate::exit::Failure;
use crate::exit::Outcome;

#[cfg(feature = "text-index")]
pub(crate) use huntsman::sweep::TextIndex;

/// Replaces the text index in a build without that feature; it has no values.
#[cfg(not(feature = "text-index"))]
#[derive(Clone, Debug)]
pub(crate) enum TextIndex {}

/// Opens an index for adding pages, and creates it if it does not exist.
#[cfg(feature = "text-index")]
pub(crate) fn open_or_create(path: &Path) -> Outcome<TextIndex> {
    TextIndex::open_or_create(path).map_err(failure)
}

/// Opens an index for queries.
#[cfg(feature = "text-index")]
pub(crate) fn open(path: &Path) -> Outcome<TextIndex> {
    TextIndex::open(path).map_err(failure)
}

/// The failure of a command that cannot use an index.
#[cfg(feature = "text-index")]
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn failure(error: huntsman::sweep::TextIndexError) -> Failure {
    use huntsman::sweep::TextIndexError as E;
    let message = format!("--index: {}", crate::render::escape(&error.to_string()));
    match error {
        E::Missing(_) | E::NotAnIndex(_) | E::Version(_) => Failure::usage(message),
        _ => Failure::crawl(message),
    }
}

/// Makes a crawl add its pages to the index.
#[cfg(feature = "text-index")]
pub(crate) fn install<S: Spider>(builder: CrawlerBuilder<S>, index: &TextIndex) -> CrawlerBuilder<S> {
    builder.plugin(huntsman::sweep::IndexPages::new(index.clone()))
}

/// Commits the added pages after the crawl, so that queries find them. If the user is waiting for the end, merges are
/// not waited for.
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
