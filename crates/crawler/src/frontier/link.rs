//! What a frontier that several processes share tells the crawl that uses it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::context::{Context, Message};
use crate::error::{Error, Result};
use crate::hand_over::{HandOver, HostNote};
use crate::host::{HostKey, SlotBy};
use crate::request::Fingerprinter;
use crate::schedule::SavedPoliteness;
use crate::settings::seconds;
use crate::stats::Stats;

/// The way from a shared frontier to the engine: what other processes did, and what the operator of all of them wants.
///
/// Cheap to clone. After the end of the crawl its calls have no effect.
#[derive(Clone)]
pub struct FrontierLink {
    cx: Context,
    hand_over: Arc<[Arc<dyn HandOver>]>,
}

impl fmt::Debug for FrontierLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontierLink").field("cx", &self.cx).finish_non_exhaustive()
    }
}

/// Since when this process works on a host; `None` if it does not, or always did.
pub type OwnedSince = Box<dyn Fn(&HostKey) -> Option<Timestamp> + Send>;

/// A message of a shared frontier.
pub(crate) enum FrontierMessage {
    /// The process works on the hosts that the function names from now on; these have requests.
    Adopted(Vec<(HostKey, Option<SavedPoliteness>)>, Box<dyn Fn(&HostKey) -> bool + Send>),
    /// The process gives the hosts away that the first function names; the second is called when all that is known of them was told.
    Leaving(Box<dyn Fn(&HostKey) -> bool + Send>, Box<dyn FnOnce() + Send>),
    /// Other processes have done pages.
    Progressed,
    /// Another process may work on these hosts.
    Lost(Box<dyn Fn(&HostKey) -> bool + Send>),
}

impl fmt::Debug for FrontierMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopted(hosts, _) => f.debug_tuple("Adopted").field(hosts).finish_non_exhaustive(),
            Self::Leaving(..) => f.debug_tuple("Leaving").finish_non_exhaustive(),
            Self::Progressed => f.write_str("Progressed"),
            Self::Lost(_) => f.debug_tuple("Lost").finish_non_exhaustive(),
        }
    }
}

impl FrontierLink {
    pub(crate) fn new(cx: Context, hand_over: Arc<[Arc<dyn HandOver>]>) -> Self {
        Self { cx, hand_over }
    }

    /// What identifies a slot in this crawl (`slot_by`).
    pub fn slot_by(&self) -> SlotBy {
        self.cx.settings().slot_by
    }

    /// How fingerprints of this crawl are made.
    ///
    /// # Errors
    /// A setting names a header that is none.
    pub fn fingerprinter(&self) -> Result<Fingerprinter> {
        Fingerprinter::from_settings(self.cx.settings())
    }

    /// How long a request may take (`download_timeout`); `None` if there is no limit.
    pub fn page_deadline(&self) -> Option<Duration> {
        Some(seconds(self.cx.settings().download_timeout)).filter(|deadline| !deadline.is_zero())
    }

    /// The delay between requests to a host of which nothing is learnt (`download_delay`).
    pub fn download_delay(&self) -> Duration {
        seconds(self.cx.settings().download_delay)
    }

    /// How many requests may be in flight (`concurrent_requests`); `None` if there is no limit.
    pub fn concurrency(&self) -> Option<usize> {
        Some(self.cx.settings().concurrent_requests).filter(|requests| *requests > 0)
    }

    /// The counters of the crawl.
    pub fn stats(&self) -> &Stats {
        self.cx.stats()
    }

    /// Tells of hosts that got a request by another process, or whose first request is due earlier. With no host, the engine only asks
    /// again whether the crawl is at its end.
    pub fn woken(&self, hosts: Vec<HostKey>) {
        self.cx.tell(Message::Woken(hosts));
    }

    /// Tells that the process works on the hosts that `is_adopted` names from now on; `hosts` are those with requests, and what the last
    /// process learnt about them. The first request to each of them waits for its delay since the last start, if that is known, and
    /// otherwise from now on, because the last process may have sent one a moment ago.
    pub fn adopted(
        &self,
        hosts: Vec<(HostKey, Option<SavedPoliteness>)>,
        is_adopted: impl Fn(&HostKey) -> bool + Send + 'static,
    ) {
        self.cx.tell(Message::Frontier(FrontierMessage::Adopted(hosts, Box::new(is_adopted))));
    }

    /// Tells that the process is about to give the hosts away that `is_left` names, none of which has a request in flight. What the next
    /// process should know of them goes to [`Frontier::learnt`](super::Frontier::learnt), with the times of their last starts, and
    /// [`Frontier::note`](super::Frontier::note); then `told` is called.
    pub fn leaving(
        &self,
        is_left: impl Fn(&HostKey) -> bool + Send + 'static,
        told: impl FnOnce() + Send + 'static,
    ) {
        self.cx.tell(Message::Frontier(FrontierMessage::Leaving(Box::new(is_left), Box::new(told))));
    }

    /// Gives components what other processes noted about hosts. It is called before [`adopted`](Self::adopted), so that they know it before
    /// the first request.
    pub fn noted(&self, notes: &[HostNote]) {
        for part in &*self.hand_over {
            notes.iter().for_each(|note| part.take_over(note));
        }
    }

    /// The time of the crawl's clock.
    pub fn now(&self) -> Timestamp {
        self.cx.now()
    }

    /// Tells that another process may work on the hosts that `is_lost` names. Their requests in flight are given up.
    pub fn lost(&self, is_lost: impl Fn(&HostKey) -> bool + Send + 'static) {
        self.cx.tell(Message::Frontier(FrontierMessage::Lost(Box::new(is_lost))));
    }

    /// Tells that some process has done a page. A crawl drops requests of hosts that are down when nothing else happens for a while
    /// (`max_parked_wait`), and what happens elsewhere counts, too.
    pub fn progressed(&self) {
        self.cx.tell(Message::Frontier(FrontierMessage::Progressed));
    }

    /// Starts no more requests until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.cx.tell(Message::Pause);
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.cx.tell(Message::Resume);
    }

    /// Ends the crawl for this reason; requests in flight may end.
    pub fn stop(&self, reason: &str) {
        self.cx.tell(Message::Stop(reason.to_owned()));
    }

    /// Ends the crawl with an error: the queue cannot be reached.
    pub fn failed(&self, error: Error) {
        self.cx.tell(Message::Fatal(error));
    }
}
