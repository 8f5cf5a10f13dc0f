//! Audits over real connections with TLS: an authority of one's own, and certificates that are refused.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use huntsman_audit::{Audit, audit};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, crypto};

use crate::issues_of;

const DAY: Duration = Duration::from_secs(86_400);

/// An https site of one page, which speaks HTTP/1.1.
struct Site {
    url: String,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // A certificate whose subject is its issuer would be signed by itself.
    params.distinguished_name.push(DnType::CommonName, "An own authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

async fn site(authority: &CertifiedIssuer<'static, KeyPair>, name: &str, not_after: SystemTime) -> Site {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = (not_after - 30 * DAY).into();
    params.not_after = not_after.into();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let (mut head, mut piece) = (Vec::new(), [0; 4_096]);
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => head.extend_from_slice(&piece[..read]),
                    }
                }
                let is_front = head.starts_with(b"GET / ");
                let (status, body) = if is_front { ("200 OK", "<p>front") } else { ("404 Not Found", "") };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    Site { url, task }
}

async fn run(sites: &[&Site], ca_file: Option<&Path>) -> Audit {
    let audit = audit(sites.iter().map(|site| site.url.as_str()))
        .set("allow_private_addresses", true)
        .set("retry_times", 0);
    let audit = match ca_file {
        Some(path) => audit.set("tls_ca_file", path.to_str().unwrap()),
        None => audit,
    };
    audit.run().await.unwrap()
}

#[tokio::test]
async fn certificates_of_an_own_authority_are_judged_by_its_file() {
    let authority = authority();
    let now = SystemTime::now();
    let good = site(&authority, "localhost", now + 9 * DAY + DAY / 2).await;
    let misnamed = site(&authority, "other.example", now + 20 * DAY).await;
    let expired = site(&authority, "localhost", now - 2 * DAY).await;
    let dir = tempfile::tempdir().unwrap();
    let ca_file = dir.path().join("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    let audit = run(&[&good, &misnamed, &expired], Some(&ca_file)).await;
    let told = |code: &str| -> Vec<(String, String)> {
        let issues = issues_of(&audit, code).into_iter();
        issues.map(|issue| (issue.url, issue.evidence.value.to_string())).collect()
    };
    let mut invalid = told("certificate-invalid");
    invalid.sort_by_key(|(url, _)| *url != misnamed.url);
    assert_eq!(invalid.len(), 2, "{invalid:?}");
    assert_eq!((&invalid[0].0, &invalid[1].0), (&misnamed.url, &expired.url));
    assert!(invalid[0].1.contains("another name") && invalid[1].1.contains("expired on"), "{invalid:?}");
    assert_eq!(told("certificate-expiring"), [(good.url.clone(), "9".to_owned())]);
    assert_eq!(told("http1-only"), [(good.url.clone(), "\"HTTP/1.1\"".to_owned())]);
    assert_eq!(told("hsts-missing").len(), 1, "the page of the site that answers is judged");
    let needs_rendering = |code: &&String| code.starts_with("render-") || *code == "console-error";
    let not_judged: Vec<_> = audit.not_judged.iter().filter(|code| !needs_rendering(code)).collect();
    assert!(not_judged.is_empty(), "{not_judged:?}");

    // Without its file nobody knows the authority.
    let audit = run(&[&good], None).await;
    let issues = issues_of(&audit, "certificate-invalid");
    assert_eq!(issues.len(), 1);
    assert!(issues[0].evidence.value.to_string().contains("unknown issuer"), "{:?}", issues[0].evidence);
}
