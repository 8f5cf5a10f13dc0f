//! Faults of connections: certificates, and http that does not lead to https.

use std::time::{Duration, SystemTime};

use huntsman_crawler::CertificateFault as Fault;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

use super::{AUDITED, Builder};
use crate::Reply;

/// Certificates with keys of RSA, which `rcgen` does not make; both end in the year 2126.
const SHORT_KEY: &[u8] = include_bytes!("../../../data/rsa-1024.der");
const LONG_KEY: &[u8] = include_bytes!("../../../data/rsa-2048.der");

pub(super) fn add(site: &mut Builder) {
    certificates(site);
    plain(site);
}

/// A certificate of the host of the site, with a key of EC, that is valid for this many days from now.
fn valid_for(days: u64) -> Vec<u8> {
    // An hour more, so that the days are whole ones while a test runs.
    let left = Duration::from_secs(days * 86_400 + 3_600);
    let mut params =
        CertificateParams::new(vec!["audit.example".to_owned()]).expect("it is a name of a host");
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "audit.example");
    params.not_after = (SystemTime::now() + left).into();
    let key = KeyPair::generate().expect("a key can be made");
    params.self_signed(&key).expect("the key fits").der().to_vec()
}

/// A host whose certificate is accepted: a port of the host of the site, so that it is in its scope.
fn host(site: &mut Builder, port: u16, certificate: Vec<u8>) -> String {
    let front = format!("{AUDITED}:{port}/");
    site.link(&front);
    site.hidden(&front, |page| {
        page.title(&format!("<title>The other front page at port {port}</title>"))
            .h1(&format!("<h1>Front {port}</h1>"))
            .description(&format!("<meta name=description content=\"The front page of the same host at port {port}, which has a certificate of its own.\">"))
            .body(&format!("<a href=\"{AUDITED}/\">The site that it belongs to</a>"))
    });
    site.certificate(&format!("audit.example:{port}"), certificate, None);
    front
}

/// A host to which no connection can be made because of its certificate; it is one of [`ALSO_AUDITED`](super::ALSO_AUDITED).
fn refused(site: &mut Builder, name: &str, certificate: Vec<u8>, fault: Fault) -> String {
    site.certificate(name, certificate, Some(fault));
    format!("https://{name}/")
}

fn certificates(site: &mut Builder) {
    let front = host(site, 8_440, valid_for(9));
    site.expect("certificate-expiring", &front);
    host(site, 8_441, valid_for(30));
    host(site, 8_442, valid_for(400));
    site.misses("certificate-expiring", 2);

    let faults =
        [("expired", Fault::Expired), ("misnamed", Fault::WrongName), ("unknown", Fault::UnknownIssuer)];
    for (name, fault) in faults {
        let front = refused(site, &format!("{name}.example"), valid_for(90), fault);
        site.expect("certificate-invalid", &front);
    }
    // A certificate that is signed by itself is no fault if it is trusted, and one of another site is not a fault of this one.
    host(site, 8_453, valid_for(90));
    host(site, super::OLD_PORT, valid_for(90));
    site.page("/certificate-invalid/miss-2", |page| {
        page.body("<a href=\"https://badly.example/\">A site with a bad certificate</a>")
    });
    site.certificate("badly.example", valid_for(90), Some(Fault::Expired));
    site.expect("external-broken", "https://badly.example/");
    site.misses("certificate-invalid", 2);

    let front = refused(site, "weak.example", SHORT_KEY.to_vec(), Fault::Other);
    site.expect("certificate-weak", &front);
    host(site, 8_461, LONG_KEY.to_vec());
    host(site, 8_462, valid_for(90));
    site.misses("certificate-weak", 2);

    // The answers to the question, which is never sent as a request; the second one is of a client that sends it, and the third host refuses.
    let question = "huntsman-audit-asks-for-old-versions-of-tls";
    let front = host(site, 8_471, valid_for(90));
    site.answer(&format!("{front}{question}"), Reply::status(204).tls_version("TLS 1.1"));
    site.expect("tls-old", &front);
    let front = host(site, 8_472, valid_for(90));
    site.answer(&format!("{front}{question}"), Reply::status(404).tls_version("TLS 1.2"));
    let front = host(site, 8_473, valid_for(90));
    site.answer(&format!("{front}{question}"), Reply::status(204));
    site.misses("tls-old", 2);
}

/// The front page of the site also comes by http.
fn plain(site: &mut Builder) {
    site.answer("http://audit.example/", Reply::html("<p>The front page by http"));
    site.expect("https-not-forced", "http://audit.example/");
    // A page by http that is no front page of a host, and a host that redirects.
    site.answer("http://redirecting.example/", Reply::redirect(301, "https://redirecting.example/"));
    site.answer("http://silent.example/", Reply::error(huntsman_crawler::FetchErrorKind::Connect));
    for host in ["redirecting", "silent"] {
        let url = format!("https://{host}.example/");
        // One has its icon at the usual place, the other one names it as old pages do.
        let icon = if host == "silent" { "" } else { "<link rel=\"shortcut icon\" href=/old.ico>" };
        site.hidden(&url, |page| {
            page.icon(icon).title(&format!("<title>The front page of a host: {host}</title>"))
                .h1(&format!("<h1>{host}</h1>"))
                .description(&format!("<meta name=description content=\"The front page of the host called {host}, which does not answer by http with a page.\">"))
                .body(&format!("<a href=\"{AUDITED}/\">The site that it belongs to</a>"))
        });
    }
    site.misses("https-not-forced", 2);
}
