//! Security by host: which of its faults each host of the site has, and on how many pages.

use std::collections::BTreeMap;

use huntsman_output::markup::Web;
use huntsman_output::render::count;
use maud::{Markup, html};

use crate::audit::Audit;
use crate::code::Code;
use crate::issue::Issue;
use crate::site::authority;
use crate::tables::PageLine;
use crate::tls::TlsRecord;

/// Hosts that are told apart, and that are shown.
const MAX_HOSTS: usize = 10_000;
const SHOWN: usize = 100;
const FAMILY: &str = "security";

/// A row of the table: its name, and what it tells of a host.
type Told = (&'static str, fn(&TlsRecord) -> String);

/// What is told of the certificate of each host.
const OF_CERTIFICATES: [Told; 5] = [
    ("Certificate until", |tls| {
        format!("{} ({} days)", tls.not_after.get(..10).unwrap_or_default(), tls.days_left)
    }),
    ("Issuer", |tls| tls.issuer.clone()),
    ("Key and signature", |tls| match tls.key_bits {
        0 => format!("{}, {}", tls.key, tls.signature),
        bits => format!("{} {bits}, {}", tls.key, tls.signature),
    }),
    ("TLS", |tls| tls.version.clone().unwrap_or_else(|| "-".to_owned())),
    ("TLS below 1.2", |tls| tls.old_version.clone().unwrap_or_else(|| "-".to_owned())),
];

/// A host of the site.
#[derive(Debug, Default)]
struct Host {
    pages: usize,
    encrypted: usize,
    faults: BTreeMap<String, Fault>,
}

/// A code at a host.
#[derive(Debug, Default)]
struct Fault {
    issues: usize,
    /// Whether one issue is about all pages of the host.
    is_of_host: bool,
}

/// The hosts of a site, by name.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<String, Host>);

impl Hosts {
    fn host(&mut self, url: &str) -> Option<&mut Host> {
        let name = authority(url);
        if self.0.len() >= MAX_HOSTS && !self.0.contains_key(name) {
            return None;
        }
        Some(self.0.entry(name.to_owned()).or_default())
    }

    pub(super) fn add_page(&mut self, page: &PageLine<'_>) {
        if let Some(host) = self.host(page.url).filter(|_| page.is_html()) {
            host.pages += 1;
            host.encrypted += usize::from(page.url.starts_with("https:"));
        }
    }

    pub(super) fn add_issue(&mut self, issue: &Issue) {
        if issue.family != FAMILY {
            return;
        }
        if let Some(host) = self.host(&issue.url) {
            let fault = host.faults.entry(issue.code.clone()).or_default();
            fault.issues += 1;
            fault.is_of_host |= issue.group.as_deref() == Some(authority(&issue.url));
        }
    }

    pub(super) fn view(&self, audit: &Audit) -> Markup {
        let codes: Vec<&Code> = audit.codes.iter().filter(|code| code.family == FAMILY).collect();
        let mut hosts: Vec<(&String, &Host)> = self.0.iter().filter(|(_, host)| host.pages > 0).collect();
        hosts.sort_by(|a, b| b.1.pages.cmp(&a.1.pages).then(a.0.cmp(b.0)));
        html! {
            p.lead {
                @if codes.is_empty() { "No code about security was judged." }
                @else { "What each host of the site lacks, by the headers and forms of its pages. A fault of all pages is mended once, in the server." }
            }
            @if !codes.is_empty() {
                div.wide {
                    table data-sort {
                        thead {
                            tr {
                                th scope="col" { "What" }
                                @for (name, _) in hosts.iter().take(SHOWN) { th.url scope="col" { (Web(name)) } }
                            }
                        }
                        tbody {
                            tr {
                                th scope="row" { "Pages" }
                                @for (_, host) in hosts.iter().take(SHOWN) { td data-v=(host.pages) { (count(host.pages as u64)) } }
                            }
                            tr {
                                th scope="row" { "Pages over https" }
                                @for (_, host) in hosts.iter().take(SHOWN) {
                                    td data-v=(host.encrypted) {
                                        span class=(if host.encrypted == host.pages { "ok" } else { "bad" }) { (count(host.encrypted as u64)) }
                                    }
                                }
                            }
                            @for (what, told) in OF_CERTIFICATES {
                                tr {
                                    th scope="row" { (what) }
                                    @for (name, _) in hosts.iter().take(SHOWN) {
                                        td { (audit.site.tls(name).map_or_else(|| "-".to_owned(), told)) }
                                    }
                                }
                            }
                            @for code in &codes {
                                tr {
                                    th scope="row" { a href={ "#issue/" (code.name) } { (code.title()) } }
                                    @for (_, host) in hosts.iter().take(SHOWN) { (cell(host, code)) }
                                }
                            }
                        }
                    }
                }
                @if hosts.len() > SHOWN {
                    p.soft { "The " (SHOWN) " largest of " (count(hosts.len() as u64)) " hosts are shown." }
                }
            }
        }
    }
}

fn cell(host: &Host, code: &Code) -> Markup {
    html! {
        @match host.faults.get(code.name) {
            None => td data-v="0" { span.ok { "none" } },
            Some(fault) if fault.is_of_host => td data-v=(host.pages) { span.bad { "all pages" } },
            Some(fault) => td data-v=(fault.issues) {
                span.bad { (count(fault.issues as u64)) " of " (count(host.pages as u64)) }
            },
        }
    }
}
