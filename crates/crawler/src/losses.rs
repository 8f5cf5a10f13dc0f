//! The losses of a crawl: they are counted as they happen, each with its first reason, for the report.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::event::Event;
use crate::secrets::redacted;

/// A kind of loss, with its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Loss {
    /// The kind.
    pub kind: LossKind,
    /// The setting of the guard that refused links, the name of the feed, the field that is not valid, or `files` or `images`; empty for
    /// other kinds. Beyond 100 names within a kind, the rest share the name `others`.
    pub name: String,
    /// The number of losses.
    pub count: u64,
    /// The first loss, with its reason.
    pub first: String,
}

/// The kinds of losses. A failed page is not among them, because it has a record of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// Start requests that could not be fetched.
    Seeds,
    /// Items on which a pipeline failed.
    ItemsFailed,
    /// Items that a callback could not read and gave to [`Output::try_item`](crate::Output::try_item).
    ItemsUnread,
    /// Items that a pipeline dropped on purpose.
    ItemsDropped,
    /// Items with a field that breaks a rule of validation, by field. They are dropped or kept, as the pipeline that checks them says.
    ItemsInvalid,
    /// Pages whose callback failed. Items and requests given before the failure are kept.
    Callbacks,
    /// Files of feeds that could not be finished.
    Feeds,
    /// Files or images that items name and that could not be fetched or stored.
    Files,
    /// Links that a guard against traps refused.
    Links,
}

/// `2 links cut by depth_guard, first http://h/: depth 21 is beyond 20`.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, count, first } = self;
        let s = if *count == 1 { "" } else { "s" };
        match kind {
            LossKind::Seeds => write!(f, "{count} seed{s} failed")?,
            LossKind::ItemsFailed => write!(f, "{count} item{s} lost, a pipeline failed")?,
            LossKind::ItemsUnread => write!(f, "{count} item{s} could not be read")?,
            LossKind::ItemsDropped => write!(f, "{count} item{s} dropped by pipelines")?,
            LossKind::ItemsInvalid => write!(f, "{count} item{s} not valid in {name}")?,
            LossKind::Callbacks => write!(f, "{count} page{s} whose callback failed")?,
            LossKind::Feeds => write!(f, "{count} file{s} of the feed {name} not finished")?,
            LossKind::Files => write!(f, "{count} of the {name} that items name not stored")?,
            LossKind::Links => write!(f, "{count} link{s} cut by {name}")?,
        }
        write!(f, ", first: {first}")
    }
}

/// Counts losses; shared by all parts of a crawl.
#[derive(Debug, Default)]
pub(crate) struct Losses(Mutex<BTreeMap<(LossKind, String), (u64, String)>>);

/// Greatest length of a first reason, in characters; longer ones are cut.
const SHOWN: usize = 300;
/// Greatest number of names that are counted separately within a kind, because feeds may have any number of files, and items any fields.
const NAMES: usize = 100;
/// The name of all losses of a kind beyond [`NAMES`].
const OTHERS: &str = "others";

impl Losses {
    /// Counts a loss. Returns whether it is the first one of its kind and name.
    pub(crate) fn add(&self, kind: LossKind, name: &str, what: impl FnOnce() -> String) -> bool {
        let mut all = self.lock();
        let mut key = (kind, name.to_owned());
        if !all.contains_key(&key) && all.keys().filter(|(other, _)| *other == kind).count() >= NAMES {
            OTHERS.clone_into(&mut key.1);
        }
        if let Some((count, _)) = all.get_mut(&key) {
            *count += 1;
            return false;
        }
        let first = what().chars().take(SHOWN).flat_map(char::escape_debug).collect();
        all.insert(key, (1, first));
        true
    }

    /// Counts the losses that an event reports.
    pub(crate) fn event(&self, event: &Event<'_>) {
        match event {
            Event::ItemError { error } => self.add(LossKind::ItemsFailed, "", || (*error).to_owned()),
            Event::ItemDropped { reason } => self.add(LossKind::ItemsDropped, "", || (*reason).to_owned()),
            Event::ItemInvalid { field, reason } => {
                self.add(LossKind::ItemsInvalid, field, || (*reason).to_owned())
            }
            Event::FileFailed { kind, url, error } => {
                self.add(LossKind::Files, kind, || format!("{}: {error}", redacted(url)))
            }
            Event::SpiderError { request, error } => {
                self.add(LossKind::Callbacks, "", || format!("{}: {error}", redacted(request.url.as_str())))
            }
            Event::FeedSlotClosed { name, error: Some(error), .. } => {
                self.add(LossKind::Feeds, name, || (*error).to_owned())
            }
            _ => return,
        };
    }

    /// All losses, the worst kind first.
    pub(crate) fn all(&self) -> Vec<Loss> {
        let all = self.lock();
        let loss = |((kind, name), (count, first)): (&(LossKind, String), &(u64, String))| Loss {
            kind: *kind,
            name: name.clone(),
            count: *count,
            first: first.clone(),
        };
        all.iter().map(loss).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(LossKind, String), (u64, String)>> {
        // If a thread panicked while it held the lock, the counts are still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_limit_of_a_kind_share_one_and_hide_no_other_kind() {
        let losses = Losses::default();
        for n in 0..NAMES + 7 {
            losses.event(&Event::ItemInvalid { field: &format!("field{n}"), reason: "is empty" });
        }
        losses.event(&Event::FileFailed { kind: "images", url: "http://u:pw@a.test/", error: "status 404" });
        let all = losses.all();
        let others = all.iter().find(|loss| loss.name == OTHERS).unwrap();
        assert_eq!((all.len(), others.count), (NAMES + 2, 7));
        let last = all.last().unwrap().to_string();
        assert_eq!(last, "1 of the images that items name not stored, first: http://***@a.test/: status 404");
    }
}
