//! A crawl whose queue other processes share: hosts come and go.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::Run;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::frontier::{FrontierLink, FrontierMessage};
use crate::host::HostKey;
use crate::schedule::SavedPoliteness;

impl Run {
    /// Connects the frontier with this crawl.
    pub(super) fn attach(&mut self) -> Result<()> {
        let link = FrontierLink::new(self.core.cx.clone(), Arc::clone(&self.core.hand_over));
        if let Some(since) = self.core.frontier.attach(link)? {
            self.is_shared = true;
            self.core.sender.share();
            self.core.hand_over.iter().for_each(|part| part.begin());
            // Records what is learnt about hosts from here on.
            self.scheduler.resume_with(HashMap::new());
            self.scheduler.share_with(since);
        }
        Ok(())
    }

    /// Does what a shared frontier tells.
    pub(super) fn shared(&mut self, message: FrontierMessage) {
        let now = self.core.cx.now();
        match message {
            FrontierMessage::Adopted(hosts, is_adopted) => {
                let is_told = |politeness: &SavedPoliteness| politeness.last_start > Timestamp(0);
                let told: HashSet<HostKey> = hosts
                    .iter()
                    .filter(|(_, politeness)| politeness.as_ref().is_some_and(is_told))
                    .map(|(host, _)| host.clone())
                    .collect();
                self.scheduler.adopt_known(|host| is_adopted(host) && !told.contains(host), now);
                for (host, politeness) in hosts {
                    self.scheduler.adopt(host, politeness, now);
                }
                self.useful = now;
            }
            FrontierMessage::Leaving(is_left, told) => {
                self.tell_left(is_left);
                told();
            }
            FrontierMessage::Progressed => self.useful = now,
            FrontierMessage::Lost(is_lost) => {
                // Another process may ask these hosts: what is in flight ends without a page, and its lease is void already.
                for visit in self.leased.values().filter(|visit| is_lost(&visit.host)) {
                    visit.task.abort();
                }
                self.waiters.retain(|_, (host, _)| !is_lost(host));
            }
        }
    }

    /// Passes all that the next process that works on some hosts should know of them to the frontier.
    pub(super) fn tell_left(&mut self, is_left: impl Fn(&HostKey) -> bool) {
        self.tell_learnt();
        self.core.frontier.learnt(self.scheduler.leave(is_left));
        self.core.frontier.note(self.core.hand_over.iter().flat_map(|part| part.rest()).collect());
    }

    /// Passes what the scheduler and components learnt about hosts to the frontier.
    pub(super) fn tell_learnt(&mut self) {
        let learnt: Vec<_> = self.scheduler.changes().collect();
        if !learnt.is_empty() {
            self.core.frontier.learnt(learnt);
        }
        let notes: Vec<_> = self.core.hand_over.iter().flat_map(|part| part.learnt()).collect();
        if !notes.is_empty() {
            self.core.frontier.note(notes);
        }
    }
}
