//! A check: finds the sources of an article, reads them, and compares each with the article.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use huntsman_crawler::Result;
use huntsman_detect::copyvio::SourceStatus;

use super::candidates::{CandidateSource, Subject};
use super::checked::Checked;
use super::plan::CheckPlan;
use super::queries::{self, Queries};
use super::running_check::{Parts, RunningCheck};
use super::source_reader::SourceReader;
use super::sources::{Source, SourceText, Sources};

/// Compares an article with the sources that `candidates` find for it.
///
/// Queries run one after the other; meanwhile the sources that were found are read and compared as they arrive. The
/// check ends when all of that is done, when a violation was found and one is enough, or when the time is over. Work in
/// progress is then dropped: a query, a source that waits for its host or for its running.
///
/// # Errors
/// A comparison panicked.
pub(crate) async fn check(
    reader: &SourceReader,
    subject: Arc<Subject>,
    candidates: &[Arc<dyn CandidateSource>],
    plan: &CheckPlan,
) -> Result<Checked> {
    let start = Instant::now();
    let mut time_is_over = pin!(tokio::time::sleep(plan.max_time));
    let running = RunningCheck::begin(Arc::clone(&subject), plan.clone()).await?;
    let are_wanted = !running.is_too_small();
    let planned = queries::plan(&subject, candidates, if are_wanted { plan.max_queries } else { 0 });
    let mut queries = Queries::new(&subject, &planned);
    let mut sources = Sources::new(&subject, plan);
    let mut comparing = FuturesUnordered::new();
    let mut errors = Vec::new();
    loop {
        let has_query = queries.are_left() && !running.has_violation();
        if !has_query && comparing.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            () = &mut time_is_over => break,
            Some(compared) = comparing.next(), if !comparing.is_empty() => {
                let (number, status) = compared?;
                sources.settle(number, status);
            }
            Some(answer) = queries.next(), if has_query => match answer.found {
                Ok(candidates) => for candidate in candidates {
                    let are_wanted = are_wanted && !running.has_violation();
                    if let Some(source) = sources.accept(candidate, &answer.by, are_wanted) {
                        comparing.push(compare(source, reader, &running, plan));
                    }
                },
                Err(error) => errors.push((answer.by, error.to_string())),
            },
        }
    }
    drop(comparing);
    let (result, Parts { found, found_by, short_circuit }) = running.finish(sources).await?;
    Ok(Checked {
        short_circuit,
        possible_miss: queries.may_have_missed(),
        found,
        found_by,
        queries: queries.count(),
        errors,
        time: start.elapsed(),
        ..Checked::of(result)
    })
}

/// Reads a source, unless its text is known, and compares it. Returns its number and its status.
async fn compare(
    source: Source,
    reader: &SourceReader,
    running: &RunningCheck,
    plan: &CheckPlan,
) -> Result<(usize, SourceStatus)> {
    let Source { number, name, text } = source;
    let (reading, known) = match text {
        SourceText::Known(reading) => (Ok(reading), true),
        SourceText::At(url) => (reader.read(&url, plan.source_time, running.violation()).await, false),
    };
    let status = match reading {
        Ok(reading) => running.compare(name, reading, known).await?,
        Err(status) => status,
    };
    Ok((number, status))
}
