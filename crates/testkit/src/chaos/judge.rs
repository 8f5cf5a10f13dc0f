//! The verdict on a client, computed from the requests that the server received.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use super::behaviour::{Behaviour, Endpoints, Family, KEPT, POISON};
use super::{INSIDE, STRANGER};
use crate::record::{Outcome, Record, RecordedRequest};

/// The verdict on one behaviour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Stable name of the behaviour.
    pub name: &'static str,
    /// Its family; `None` for a verdict on the whole test bed, such as that on the control pages.
    pub family: Option<Family>,
    /// Whether the client passed.
    pub pass: bool,
    /// The client's mistakes, or a number worth knowing; may be empty.
    pub why: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = self.family.map_or("bed", Family::name);
        let mark = if self.pass { "PASS" } else { "FAIL" };
        write!(f, "{mark} {family}/{}", self.name)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}

/// The recorded requests for one behaviour.
pub(super) struct Evidence<'a> {
    pub(super) endpoints: &'a Endpoints,
    pub(super) record: &'a Record,
    /// The record of the port that must not be connected to.
    pub(super) other: &'a Record,
    pub(super) behaviour: &'a Behaviour,
    /// Requests under its path in order, without those for the two marked links.
    pub(super) own: Vec<&'a RecordedRequest>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(
        endpoints: &'a Endpoints,
        record: &'a Record,
        other: &'a Record,
        behaviour: &'a Behaviour,
    ) -> Self {
        let mut evidence = Self { endpoints, record, other, behaviour, own: Vec::new() };
        evidence.own = evidence
            .under()
            .filter(|(rest, _)| *rest != KEPT && *rest != POISON)
            .map(|(_, seen)| seen)
            .collect();
        evidence
    }

    /// Every request under its path, with the rest of the path.
    pub(super) fn under(&self) -> impl Iterator<Item = (&'a str, &'a RecordedRequest)> + use<'a> {
        let behaviour = self.behaviour;
        let host = behaviour.host(self.endpoints);
        let seen = self.record.requests.iter().filter(move |seen| seen.request.host == host);
        seen.filter_map(move |seen| Some((behaviour.rest_of(seen.request.path())?, seen)))
    }

    /// Requests for one resource of the behaviour.
    pub(super) fn at(&self, rest: &str) -> Vec<&'a RecordedRequest> {
        self.under().filter(|(found, _)| *found == rest).map(|(_, seen)| seen).collect()
    }

    /// Whether the inside host received a request whose path begins like this.
    fn inside(&self, path: &str) -> bool {
        self.record.to(INSIDE).any(|seen| seen.request.path().starts_with(path))
    }

    /// Requests for this behaviour to the host `STRANGER`.
    pub(super) fn at_stranger(&self) -> impl Iterator<Item = &'a RecordedRequest> + use<'a> {
        let name = self.behaviour.name;
        self.record.requests.iter().filter(move |seen| {
            seen.request.host == STRANGER && seen.request.path().strip_prefix("/look/") == Some(name)
        })
    }

    /// The `Cookie` headers of all requests to the test bed, as received.
    pub(super) fn cookies(&self) -> impl Iterator<Item = (&'a RecordedRequest, String)> + use<'a> {
        self.record.requests.iter().flat_map(|seen| {
            let values = seen.request.headers.get_all("cookie");
            values.iter().map(move |value| (seen, String::from_utf8_lossy(value.as_bytes()).into_owned()))
        })
    }

    /// Whether any request to the test bed sent a cookie of this name.
    pub(super) fn sent_cookie(&self, name: &str) -> bool {
        self.cookies().any(|(_, cookies)| has_cookie(&cookies, name))
    }

    pub(super) fn judge(&self) -> Verdict {
        let mut why = Vec::new();
        let behaviour = self.behaviour;
        if self.under().next().is_none() {
            why.push("not reached".to_owned());
        }
        let allowed = behaviour.requests.count(self.endpoints);
        if self.own.len() > allowed {
            why.push(format!("{} requests, {allowed} allowed", self.own.len()));
        }
        let taken = self.own.iter().map(|seen| seen.sent).max().unwrap_or(0);
        if taken > behaviour.bytes.limit(self.endpoints) {
            why.push(format!("took {} MiB of one answer", taken >> 20));
        }
        let held = self.own.iter().map(|seen| seen.duration(self.record.now)).max().unwrap_or_default();
        // A client with a limit of its own closes the connection before the server does.
        if held > self.endpoints.hold.mul_f64(0.9) {
            why.push(format!("held for {:.1} s", held.as_secs_f64()));
        }
        if behaviour.has_kept && self.at(KEPT).is_empty() {
            why.push("the link in the page was not followed".to_owned());
        }
        if behaviour.has_poison && !self.at(POISON).is_empty() {
            why.push("a link was followed that must not be".to_owned());
        }
        if self.inside(&format!("/panel/{}", behaviour.name)) {
            why.push("reached the inside host".to_owned());
        }
        if let Some(judge) = &behaviour.judge {
            judge(self, &mut why);
        }
        Verdict {
            name: behaviour.name,
            family: Some(behaviour.family),
            pass: why.is_empty(),
            why: why.join("; "),
        }
    }
}

/// Whether a `Cookie` header contains a cookie of this name.
pub(super) fn has_cookie(cookies: &str, name: &str) -> bool {
    cookies.split(';').any(|cookie| cookie.trim().split('=').next() == Some(name))
}

fn verdict(name: &'static str, why: &[String], note: String) -> Verdict {
    let pass = why.is_empty();
    Verdict { name, family: None, pass, why: if pass { note } else { why.join("; ") } }
}

/// The verdict on the control pages: all of them must be fetched, each completely.
pub(super) fn controls(record: &Record, pages: &[(&str, String)]) -> Verdict {
    let whole: HashSet<(&str, &str)> = record
        .requests
        .iter()
        .filter(|seen| seen.outcome == Outcome::Sent)
        .map(|seen| (seen.request.host.as_str(), seen.request.target.as_str()))
        .collect();
    let missing: Vec<String> = pages
        .iter()
        .filter(|(host, path)| !whole.contains(&(*host, path.as_str())))
        .map(|(host, path)| format!("{host}{path}"))
        .collect();
    let note = format!("{} of {}", pages.len() - missing.len(), pages.len());
    let why =
        if missing.is_empty() { Vec::new() } else { vec![format!("{note}; missing {}", missing.join(" "))] };
    verdict("control_pages", &why, note)
}

/// No request to the host of a stranger may carry data that belongs to another host.
pub(super) fn stranger(record: &Record) -> Verdict {
    let mut why = Vec::new();
    for seen in record.to(STRANGER) {
        for name in ["authorization", "proxy-authorization", "cookie"] {
            if seen.request.headers.contains_key(name) {
                why.push(format!("{name} sent with {}", seen.request.target));
            }
        }
    }
    verdict("stranger_gets_no_secrets", &why, format!("{} requests", record.to(STRANGER).count()))
}

/// The client must not even connect to the inside host, or to the port that no exception lists.
pub(super) fn inside(record: &Record, other: &Record) -> Verdict {
    let mut why = Vec::new();
    let count = |record: &Record, host: &str| record.connections.get(host).copied().unwrap_or(0);
    if count(record, INSIDE) > 0 {
        let paths: Vec<&str> = record.to(INSIDE).map(|seen| seen.request.path()).collect();
        why.push(format!("{} connections to the inside host: {}", count(record, INSIDE), paths.join(" ")));
    }
    let touched: u64 = other.connections.values().sum();
    if touched > 0 {
        why.push(format!("{touched} connections to a port that is not listed"));
    }
    verdict("inside_is_untouched", &why, String::new())
}

/// Each host gets one request for robots.txt, however many requests wait for it.
pub(super) fn robots_once(record: &Record, hosts: &[&str]) -> Verdict {
    let why: Vec<String> = hosts
        .iter()
        .filter_map(|host| {
            let count = record.to(host).filter(|seen| seen.request.path() == "/robots.txt").count();
            (count > 1).then(|| format!("{count} times on {host}"))
        })
        .collect();
    verdict("robots_once_per_host", &why, String::new())
}

/// No client may request paths under `/closed`, which robots.txt forbids on every host.
pub(super) fn closed(record: &Record) -> Verdict {
    let why: Vec<String> = record
        .requests
        .iter()
        .filter(|seen| seen.request.path().starts_with("/closed"))
        .map(|seen| format!("asked for {}{}", seen.request.host, seen.request.target))
        .collect();
    verdict("closed_by_robots", &why, String::new())
}

/// Everything received must be an HTTP request.
pub(super) fn well_formed(record: &Record) -> Verdict {
    verdict("requests_are_well_formed", &record.malformed, String::new())
}

/// Hosts that hang must not hold back others: nearly all pages of a healthy host must be requested in time.
pub(super) fn unhindered(record: &Record, healthy: &[(&str, String)], within: Duration) -> Verdict {
    let first = record.requests.iter().map(|seen| seen.started).min().unwrap_or_default();
    let in_time: HashSet<&str> = record
        .requests
        .iter()
        .filter(|seen| seen.started.saturating_sub(first) <= within)
        .filter(|seen| {
            healthy.iter().any(|(host, path)| seen.request.host == *host && seen.request.target == *path)
        })
        .map(|seen| seen.request.target.as_str())
        .collect();
    let note = format!("{} of {} healthy pages within {} s", in_time.len(), healthy.len(), within.as_secs());
    let enough = in_time.len() * 100 >= healthy.len() * 95;
    verdict(
        "silent_hosts_do_not_delay_others",
        if enough { &[] } else { std::slice::from_ref(&note) },
        note.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SiteRequest;

    fn request(host: &str, path: &str, started: u64) -> RecordedRequest {
        let request = SiteRequest {
            host: host.to_owned(),
            method: http::Method::GET,
            target: path.to_owned(),
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::new(),
            connection: 0,
            nth: 0,
        };
        let started = Duration::from_secs(started);
        RecordedRequest { request, started, ended: Some(started), sent: 1, outcome: Outcome::Sent }
    }

    #[test]
    fn healthy_pages_count_from_the_first_request_on() {
        let pages: Vec<_> = (0..20).map(|number| ("127.0.0.1", format!("/plain/{number}"))).collect();
        let mut record = Record { requests: vec![request("127.0.1.1", "/", 100)], ..Record::default() };
        record.requests.extend((0..19).map(|number| request("127.0.0.1", &format!("/plain/{number}"), 150)));
        assert!(unhindered(&record, &pages, Duration::from_secs(60)).pass, "19 of 20 are 95 %");
        assert!(!unhindered(&record, &pages, Duration::from_secs(40)).pass);
        record.requests.pop();
        let verdict = unhindered(&record, &pages, Duration::from_secs(60));
        assert_eq!((verdict.pass, verdict.why.as_str()), (false, "18 of 20 healthy pages within 60 s"));
    }

    #[test]
    fn a_control_page_must_be_taken_whole() {
        let pages = [("127.0.0.1", "/plain/0".to_owned())];
        let mut record = Record { requests: vec![request("127.0.0.1", "/plain/0", 1)], ..Record::default() };
        assert!(controls(&record, &pages).pass);
        record.requests[0].outcome = Outcome::ClientLeft;
        assert_eq!(controls(&record, &pages).why, "0 of 1; missing 127.0.0.1/plain/0");
        record.requests[0] = request("127.0.0.2", "/plain/0", 1);
        assert!(!controls(&record, &pages).pass, "another host");
    }

    #[test]
    fn cookies_are_distinguished_by_name() {
        assert!(has_cookie("a=1; theirs=2", "theirs"));
        assert!(has_cookie("theirs", "theirs"));
        assert!(!has_cookie("nottheirs=1; x=theirs=2", "theirs"));
    }
}
