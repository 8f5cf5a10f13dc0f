//! Answers to people and programs that look at the running crawl, and what they ask for.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::core::Core;
use super::Run;
use crate::context::{ControlMessage, Overview, Politeness};
use crate::control::{Addition, CrawlState, HostStatus, QueuedRequest, REMOVED};
use crate::drop::DropReason;
use crate::error::Result;
use crate::host::HostKey;
use crate::report::HostReport;
use crate::request::Request;
use crate::schedule::SlotState;

impl Run {
    pub(super) fn overview(&self) -> Overview {
        let (hosts_active, hosts_down) = self.scheduler.hosts_active_and_down();
        let state = match (&self.stop, self.paused) {
            (Some(_), _) => CrawlState::Stopping,
            (None, true) => CrawlState::Paused,
            (None, false) => CrawlState::Running,
        };
        let queued = self.core.frontier.len();
        Overview { state, queued, in_flight: self.visits.len() as u64, hosts_active, hosts_down }
    }

    /// Replies to a message. Its sender may be gone meanwhile.
    pub(super) async fn control(&mut self, message: ControlMessage) -> Result<()> {
        match message {
            ControlMessage::Hosts(most, reply) => {
                let _ = reply.send(self.host_list(most).await?);
            }
            ControlMessage::Host(host, reply) => {
                let _ = reply.send(self.one_host(&host).await?);
            }
            ControlMessage::Queue(host, most, reply) => {
                let _ = reply.send(peek(&Arc::clone(&self.core), host, most).await?);
            }
            ControlMessage::Add(request, reply) => {
                let _ = reply.send(self.add(*request).await?);
            }
            ControlMessage::RemoveHost(host, reply) => {
                let queued = self.core.frontier.queued_of(&host).await?;
                self.scheduler.adjust(&host, Politeness::GiveUp(REMOVED), self.core.cx.now());
                let _ = reply.send(queued);
            }
        }
        Ok(())
    }

    /// The hosts with the longest queues, and the busiest ones; the longest queues come first.
    async fn host_list(&mut self, most: usize) -> Result<Vec<HostStatus>> {
        let core = Arc::clone(&self.core);
        let frontier = &core.frontier;
        let mut reports = self.hosts(&HashMap::new());
        for report in &mut reports {
            report.queued = frontier.queued_of(&HostKey::new(&report.host)).await?;
        }
        let named: HashSet<String> = reports.iter().map(|report| report.host.clone()).collect();
        for (host, queued) in frontier.longest_queues(most).await? {
            if !named.contains(host.as_str()) {
                reports.push(self.unsent(&host, queued));
            }
        }
        reports.sort_by_key(|report| (Reverse(report.queued), Reverse(report.requests)));
        reports.truncate(most);
        Ok(reports.into_iter().map(|report| self.host_status(report)).collect())
    }

    async fn one_host(&mut self, host: &HostKey) -> Result<Option<HostStatus>> {
        let core = Arc::clone(&self.core);
        let queued = core.frontier.queued_of(host).await?;
        let counted = self.hosts(&HashMap::new()).into_iter().find(|report| report.host == host.as_str());
        if queued == 0 && counted.is_none() && self.scheduler.delay_of(host).is_none() {
            return Ok(None);
        }
        let report = HostReport { queued, ..counted.unwrap_or_else(|| self.unsent(host, queued)) };
        Ok(Some(self.host_status(report)))
    }

    /// The report of a host to which nothing was sent so far, or that is not among the busiest.
    fn unsent(&self, host: &HostKey, queued: u64) -> HostReport {
        let now = self.snapshot(host, queued);
        HostReport {
            host: host.to_string(),
            delay_s: now.delay.as_secs_f64(),
            queued,
            state: now.state.name(),
            ..HostReport::default()
        }
    }

    fn host_status(&self, report: HostReport) -> HostStatus {
        let host = HostKey::new(&report.host);
        let until = match self.scheduler.slot_state(&host) {
            SlotState::Sleeping(until) | SlotState::Down(until) => Some(until.to_rfc3339()),
            SlotState::Active | SlotState::GaveUp(_) => None,
        };
        let (in_flight, concurrency) = (self.scheduler.active_of(&host), self.scheduler.limit_of(&host));
        HostStatus { report, in_flight, concurrency, until }
    }

    /// Queues a request as a component does that pushes one: it passes the spider middlewares, and so the scope, and the filter of
    /// duplicates.
    async fn add(&mut self, mut request: Request) -> Result<Addition> {
        if self.stop.is_some() {
            return Ok(Addition::Ended);
        }
        if let Some(reason) = self.core.offsite(&request, &self.core.spider.allowed_domains()) {
            self.core.refuse(&request, "offsite", reason.clone());
            return Ok(Addition::Refused(reason));
        }
        if let Err(reason) = self.pass_start(&mut request) {
            return Ok(Addition::Refused(reason));
        }
        self.core.assign(&mut request, None).await;
        if let SlotState::GaveUp(reason) = self.scheduler.slot_state(&request.host()) {
            return Ok(Addition::Refused(
                DropReason::skipped(reason).detail("the host gets no more requests"),
            ));
        }
        let mut requests = vec![request];
        self.core.admit(&mut requests);
        if requests.is_empty() {
            return Ok(Addition::Refused(DropReason::skipped("observer")));
        }
        let pushed = self.core.push(requests).await?;
        self.useful = self.core.cx.now();
        Ok(if pushed.accepted > 0 { Addition::Queued } else { Addition::Duplicate })
    }
}

/// The next requests of a host, or of all hosts beginning with the longest queue.
async fn peek(core: &Core, host: Option<HostKey>, most: usize) -> Result<Vec<QueuedRequest>> {
    let hosts = match host {
        Some(host) => vec![host],
        None => core.frontier.longest_queues(most).await?.into_iter().map(|(host, _)| host).collect(),
    };
    let mut next = Vec::new();
    for host in hosts {
        if next.len() >= most {
            break;
        }
        next.extend(core.frontier.peek(&host, most - next.len()).await?.iter().map(QueuedRequest::of));
    }
    Ok(next)
}
