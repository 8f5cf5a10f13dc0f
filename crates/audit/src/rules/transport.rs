//! Security of connections: certificates, versions of TLS, and whether https is forced.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::code::PageClass::{Any, Html};
use crate::code::Severity::{Error, Notice};
use crate::finding::{Finding, Findings};
use crate::record::Kind;
use crate::rule::Rule;
use crate::site::{Address, Site, authority, front_of};
use crate::tls::TlsRecord;

const fn code(name: &'static str) -> Code {
    Code::new("security", name).of_site().judges(Any)
}

const CODES: &[Code] = &[
    code("certificate-expiring")
        .headline("Certificates that end soon")
        .text("The certificate of a host of the site is valid for less than [certificate_days] days.", "Browsers refuse the host once it is over.", "Renew it, and let a timer renew it from now on.")
        .source("RFC 5280").example("notAfter in 6 days", "notAfter in 80 days"),
    code("certificate-invalid")
        .headline("Certificates that are refused").severity(Error)
        .text("The certificate of a host of the site is over or not yet valid, is for other names, or is signed by itself or by an authority that is not trusted (`--ca-file` names one's own).", "Browsers warn of the site, and nothing else loads it.", "Install a certificate of a known authority for this name, with its intermediate certificates.")
        .source("RFC 5280").example("a certificate for www.example.org at example.org", "a certificate for example.org and www.example.org"),
    code("certificate-weak")
        .headline("Weak certificates")
        .text("The certificate of a host of the site has a key of RSA with less than 2048 bits, or is signed with SHA-1 or MD5.", "It can be forged, and new programs refuse it.", "Have a new one made with a key of EC, or of RSA with at least 2048 bits, and SHA-256.")
        .source("NIST SP 800-131A").example("RSA key of 1024 bits", "EC key of 256 bits"),
    code("tls-old")
        .headline("Old versions of TLS")
        .text("A host of the site accepts TLS 1.1, TLS 1.0 or SSL 3.0.", "What is sent by these versions can be read and changed by attackers, and no current browser needs them.", "Set the lowest version to TLS 1.2 in the server.")
        .source("RFC 8996").example("ssl_protocols TLSv1 TLSv1.1 TLSv1.2", "ssl_protocols TLSv1.2 TLSv1.3"),
    code("https-not-forced")
        .headline("http that does not lead to https")
        .text("A host has pages by https, and answers 2xx for its front page by http.", "Readers who type the name stay without encryption.", "Redirect http to https by 301.")
        .source("RFC 6797").example("GET http://example.org/ -> 200", "GET http://example.org/ -> 301 https://example.org/"),
    Code::new("performance", "http1-only")
        .headline("Hosts that speak HTTP/1.1 only").severity(Notice).of_site().judges(Any)
        .text("A host of the site answers by https in HTTP/1.1, although HTTP/2 was offered. It is not judged without the setting `http2`.", "Files are loaded one after the other over each connection.", "Switch on HTTP/2 in the server.")
        .source("RFC 9113").example("ALPN: http/1.1", "ALPN: h2"),
];

pub(super) struct Transport;

impl Rule for Transport {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn site(&self, site: &Site, findings: &mut Findings) {
        for (host, tls) in site.tls_hosts() {
            let told = |code: &str| Finding::of(code).url(&format!("https://{host}/")).group(host);
            certificate(tls, site.limits().audit_certificate_days, told, findings);
            if let Some(version) = &tls.old_version {
                findings.add(told("tls-old").value(version.as_str()));
            }
            if let Some(version) = tls.http.as_deref().filter(|version| version.starts_with("HTTP/1")) {
                findings.add(told("http1-only").value(version));
            }
        }
        unforced(site, findings);
    }
}

fn certificate(tls: &TlsRecord, least: u32, told: impl Fn(&str) -> Finding, findings: &mut Findings) {
    let weakness = tls.weakness();
    let is_unknown_fault = tls.fault.as_deref() == Some("other");
    match &tls.fault {
        // A weak certificate is refused for being weak.
        Some(_) if is_unknown_fault && weakness.is_some() => {}
        Some(fault) => findings.add(told("certificate-invalid").value(cause(fault, tls))),
        None if tls.days_left < i64::from(least) => {
            findings.add(told("certificate-expiring").value(tls.days_left).limit(least));
        }
        None => {}
    }
    if let Some(weakness) = weakness {
        findings.add(told("certificate-weak").value(weakness));
    }
}

/// The cause of a refusal, for people.
fn cause(fault: &str, tls: &TlsRecord) -> String {
    let day = tls.not_after.get(..10).unwrap_or_default();
    match fault {
        "expired" => format!("expired on {day}"),
        "not_yet_valid" => "not valid yet".to_owned(),
        "wrong_name" => format!("for another name: {}", tls.subject),
        "self_signed" => "signed by itself".to_owned(),
        "unknown_issuer" => format!("of an unknown issuer: {}", tls.issuer),
        _ => "refused".to_owned(),
    }
}

/// Hosts with pages by https whose front page also comes by http.
fn unforced(site: &Site, findings: &mut Findings) {
    let is_plain = |address: Address<'_>| {
        let is_there = address.status().is_some_and(|status| (200..300).contains(&status));
        is_there && matches!(address.kind(), Some(Kind::Page | Kind::Plain))
    };
    let mut fronts = site
        .records_of(is_plain)
        .filter(|answer| answer.url.starts_with("http://") && front_of(&answer.url) == answer.url)
        .peekable();
    if fronts.peek().is_none() {
        return;
    }
    let encrypted: BTreeSet<String> = site
        .pages(Html)
        .filter(|page| page.url.starts_with("https://"))
        .map(|page| authority(&page.url).to_owned())
        .collect();
    for front in fronts.filter(|front| encrypted.contains(authority(&front.url))) {
        findings.add(Finding::of("https-not-forced").url(&front.url).value(front.status));
    }
}
