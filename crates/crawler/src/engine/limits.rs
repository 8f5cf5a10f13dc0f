//! The limits that close a crawl. They are exact, because room is reserved before a visit starts.

use std::collections::HashMap;

use crate::clock::Timestamp;
use crate::context::Context;
use crate::host::HostKey;
use crate::settings::{Settings, seconds};

/// Keeps the counts for the `closespider_*` limits and for the page limit per host.
#[derive(Debug)]
pub(crate) struct Limits {
    page_limit: u64,
    per_host_limit: u64,
    pages: u64,
    pages_without_item: u64,
    items: u64,
    errors: u64,
    started: Timestamp,
    last_item: Timestamp,
    timeout: Option<Timestamp>,
    no_item_timeout: Option<std::time::Duration>,
    /// Per host: pages delivered, visits in flight.
    hosts: HashMap<HostKey, (u64, u64)>,
}

/// Whether one more visit of a host may start.
pub(crate) enum HostRoom {
    Free,
    /// The visits in flight may use up the rest of its limit.
    Wait,
    Spent,
}

impl Limits {
    /// The limits of the settings, if `pages` were delivered by earlier runs already.
    pub(crate) fn new(settings: &Settings, now: Timestamp, pages: u64) -> Self {
        let after = |value: f64| (value > 0.0).then(|| seconds(value));
        Self {
            page_limit: settings.closespider_pagecount,
            per_host_limit: settings.max_pages_per_host,
            pages,
            pages_without_item: 0,
            items: 0,
            errors: 0,
            started: now,
            last_item: now,
            timeout: after(settings.closespider_timeout).map(|timeout| now + timeout),
            no_item_timeout: after(settings.closespider_timeout_no_item),
            hosts: HashMap::new(),
        }
    }

    /// Whether one more visit can start without exceeding the page limit.
    pub(crate) fn has_room(&self, visits: usize) -> bool {
        self.page_limit == 0 || self.pages + (visits as u64) < self.page_limit
    }

    pub(crate) fn is_per_host(&self) -> bool {
        self.per_host_limit > 0
    }

    /// Reserves a visit of a host.
    pub(crate) fn reserve_host(&mut self, host: &HostKey) -> HostRoom {
        if self.per_host_limit == 0 {
            return HostRoom::Free;
        }
        let (pages, visits) = self.hosts.entry(host.clone()).or_default();
        if *pages >= self.per_host_limit {
            HostRoom::Spent
        } else if *pages + *visits >= self.per_host_limit {
            HostRoom::Wait
        } else {
            *visits += 1;
            HostRoom::Free
        }
    }

    /// Releases the reservation of a visit that ended.
    pub(crate) fn release_host(&mut self, host: &HostKey, delivered: bool) {
        if let Some((pages, visits)) = self.hosts.get_mut(host) {
            *visits = visits.saturating_sub(1);
            *pages += u64::from(delivered);
        }
    }

    pub(crate) fn page(&mut self, callback_failed: bool) {
        self.pages += 1;
        self.pages_without_item += 1;
        self.errors += u64::from(callback_failed);
    }

    pub(crate) fn dropped(&mut self, callback_failed: bool) {
        self.errors += u64::from(callback_failed);
    }

    pub(crate) fn items(&mut self, count: u64, now: Timestamp) {
        self.items += count;
        self.pages_without_item = 0;
        self.last_item = now;
    }

    /// The next time at which a limit may be reached without any event.
    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        let no_item = self.no_item_timeout.map(|timeout| self.last_item + timeout);
        [self.timeout, no_item].into_iter().flatten().min()
    }

    /// The finish reason, if a limit is reached.
    pub(crate) fn reached(&self, cx: &Context, now: Timestamp) -> Option<&'static str> {
        let settings = cx.settings();
        let at = |limit: u64, count: u64| limit > 0 && count >= limit;
        if at(settings.closespider_pagecount, self.pages) {
            Some("closespider_pagecount")
        } else if at(settings.closespider_itemcount, self.items) {
            Some("closespider_itemcount")
        } else if at(settings.closespider_errorcount, self.errors) {
            Some("closespider_errorcount")
        } else if at(settings.closespider_pagecount_no_item, self.pages_without_item) {
            Some("closespider_pagecount_no_item")
        } else if self.timeout.is_some_and(|at| now >= at) {
            Some("closespider_timeout")
        } else if self
            .no_item_timeout
            .is_some_and(|timeout| now >= self.last_item.max(self.started) + timeout)
        {
            Some("closespider_timeout_no_item")
        } else {
            None
        }
    }
}
