//! What is done with a file of a feed that is whole: a journal becomes the file of its format, and a file becomes an object.
//!
//! It is done in the background, a few files at a time, while the crawl writes the next ones. What fails costs nothing but the result: the
//! journal or the file stays, and the report tells where.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use huntsman_crawler::{Context, Error, Event, Result, log};
use huntsman_files::Lock;
use tokio::task::JoinSet;

use super::place::Place;

/// Makes the file of a format from a journal of JSON lines: journal, file.
pub type Completion = Arc<dyn Fn(&Path, &Path) -> Result<()> + Send + Sync>;

/// Files that are delivered at the same time at most; further ones wait.
const AT_ONCE: usize = 2;

/// A whole file, and what is to be done with it.
pub(super) struct Whole {
    pub(super) place: Place,
    pub(super) completion: Option<Completion>,
    /// Whether the written file belongs to a job, which may go on with it; otherwise it is removed when it has become another one.
    pub(super) is_of_job: bool,
    pub(super) items: u64,
    /// The lock on the file or the journal, if an earlier run left it.
    pub(super) lock: Option<Lock>,
}

/// The files that are being delivered.
#[derive(Default)]
pub(super) struct Deliveries {
    tasks: JoinSet<(Whole, Result<()>)>,
}

impl Deliveries {
    /// Begins to deliver a file; waits if there are too many under way. Returns the errors of those that ended.
    pub(super) async fn begin(&mut self, mut whole: Whole, cx: Option<&Context>) -> Vec<Error> {
        let mut errors = Vec::new();
        while self.tasks.len() >= AT_ONCE {
            errors.extend(self.next(cx).await);
        }
        self.tasks.spawn(async move {
            let delivered = deliver(&mut whole).await;
            (whole, delivered)
        });
        errors
    }

    /// Waits for all deliveries. Returns the errors.
    pub(super) async fn finish(&mut self, cx: Option<&Context>) -> Vec<Error> {
        let mut errors = Vec::new();
        while !self.tasks.is_empty() {
            errors.extend(self.next(cx).await);
        }
        errors
    }

    async fn next(&mut self, cx: Option<&Context>) -> Option<Error> {
        let (whole, delivered) = match self.tasks.join_next().await? {
            Ok(ended) => ended,
            Err(cause) => return Some(Error::from(cause).context("delivering a file of a feed")),
        };
        let Whole { place, items, .. } = whole;
        if let Err(error) = &delivered {
            log::error!("{error}");
        }
        if let Some(cx) = cx {
            let error = delivered.as_ref().err().map(ToString::to_string);
            cx.emit(&Event::FeedSlotClosed { name: &place.name, items, error: error.as_deref() });
        }
        delivered.err()
    }
}

async fn deliver(whole: &mut Whole) -> Result<()> {
    let Whole { place, completion, is_of_job, lock, .. } = whole;
    if let Some(completion) = completion.clone() {
        let (journal, file): (PathBuf, PathBuf) = (place.written.clone(), place.file.clone());
        let removes = !*is_of_job;
        let completed = tokio::task::spawn_blocking(move || {
            completion(&journal, &file)?;
            if removes {
                huntsman_files::remove_file(&journal)?;
            }
            Ok(())
        });
        completed.await.map_err(Error::from).flatten().map_err(|error| {
            let journal = place.written.display();
            error.context(format!("making {} (its items are in {journal})", place.file.display()))
        })?;
    }
    #[cfg(feature = "s3")]
    if let Some(object) = &place.object {
        if !*is_of_job && (lock.is_none() || completion.is_some()) {
            *lock = Some(super::s3::mark(&place.file)?);
        }
        super::s3::upload(object, &place.file).await.map_err(|error| {
            let file = place.file.display();
            error.context(format!("uploading {} (it is kept in {file})", place.name))
        })?;
        if !*is_of_job {
            super::s3::remove(&place.file)?;
        }
    }
    #[cfg(not(feature = "s3"))]
    let _ = lock;
    Ok(())
}
