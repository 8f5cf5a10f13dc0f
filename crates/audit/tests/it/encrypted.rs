//! Audits over real connections with TLS: an authority of one's own, and certificates that are refused.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use huntsman_audit::{Audit, PageClass, audit};
use huntsman_testkit::ForwardProxy;
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
    let days = audit.site.pages(PageClass::Html).filter_map(|page| Some(page.certificate()?.days_left));
    assert_eq!(days.collect::<Vec<_>>(), [9], "the line of each page says for how long it is valid");
    let needs_rendering = |code: &&String| code.starts_with("render-") || *code == "console-error";
    let not_judged: Vec<_> = audit.not_judged.iter().filter(|code| !needs_rendering(code)).collect();
    assert!(not_judged.is_empty(), "{not_judged:?}");

    // Without its file nobody knows the authority.
    let audit = run(&[&good], None).await;
    let issues = issues_of(&audit, "certificate-invalid");
    assert_eq!(issues.len(), 1);
    assert!(issues[0].evidence.value.to_string().contains("unknown issuer"), "{:?}", issues[0].evidence);
}

#[tokio::test]
async fn certificates_are_judged_through_a_proxy_too() {
    let authority = authority();
    let now = SystemTime::now();
    let good = site(&authority, "localhost", now + 9 * DAY + DAY / 2).await;
    let misnamed = site(&authority, "other.example", now + 20 * DAY).await;
    let dir = tempfile::tempdir().unwrap();
    let ca_file = dir.path().join("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();
    let by_proxy = async |site: &Site| {
        let proxy =
            ForwardProxy::start(site.url.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap());
        let audit = audit([site.url.as_str()])
            .set("allow_private_addresses", true)
            .set("retry_times", 0)
            .set("tls_ca_file", ca_file.to_str().unwrap())
            .set("proxy", proxy.url(""))
            .run()
            .await
            .unwrap();
        let requests = proxy.requests();
        assert!(
            !requests.is_empty() && requests.iter().all(|head| head.starts_with("CONNECT ")),
            "{requests:?}"
        );
        audit
    };
    let audit = by_proxy(&good).await;
    let expiring = issues_of(&audit, "certificate-expiring");
    assert_eq!(expiring.len(), 1);
    assert_eq!((&expiring[0].url, expiring[0].evidence.value.to_string()), (&good.url, "9".to_owned()));
    assert!(!audit.not_judged.iter().any(|code| code.starts_with("certificate-")), "{:?}", audit.not_judged);
    let audit = by_proxy(&misnamed).await;
    let invalid = issues_of(&audit, "certificate-invalid");
    assert_eq!(invalid.len(), 1);
    assert!(invalid[0].evidence.value.to_string().contains("another name"), "{:?}", invalid[0].evidence);
}

/// A server of https with these versions of TLS, by another implementation than the client's. It prints its port, and ends when its input does.
const SERVER: &str = r#"
import http.server, ssl, sys, threading
folder, lowest = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
context.set_ciphers("ALL:@SECLEVEL=0")
context.minimum_version = ssl.TLSVersion[lowest]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<p>front" if self.path == "/" else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_HEAD = do_GET
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
# The handshake belongs to the thread of the connection.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
"#;

/// A process with [`SERVER`], and its URL.
struct Foreign {
    process: std::process::Child,
    url: String,
}

impl Foreign {
    fn start(folder: &Path, lowest: &str) -> Self {
        use std::io::BufRead;
        use std::process::{Command, Stdio};
        let mut process = Command::new("python3")
            .args(["-c", SERVER, folder.to_str().unwrap(), lowest])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is in PATH: apt-get install python3");
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, url: format!("https://localhost:{}/", line.trim()) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn servers_that_accept_old_versions_of_tls_are_told() {
    let authority = authority();
    let dir = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = (SystemTime::now() - DAY).into();
    params.not_after = (SystemTime::now() + 60 * DAY).into();
    let certificate = params.signed_by(&key, &authority).unwrap();
    std::fs::write(dir.path().join("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
    let ca_file = dir.path().join("ca.pem");
    std::fs::write(&ca_file, authority.pem()).unwrap();

    let [old, new] = ["TLSv1", "TLSv1_2"].map(|lowest| Foreign::start(dir.path(), lowest));
    let audit = audit([&old.url, &new.url].map(String::as_str))
        .set("allow_private_addresses", true)
        .set("tls_ca_file", ca_file.to_str().unwrap())
        .set("retry_times", 0)
        .run()
        .await
        .unwrap();
    let issues = issues_of(&audit, "tls-old");
    let told: Vec<_> = issues.iter().map(|issue| (&issue.url, issue.evidence.value.to_string())).collect();
    assert_eq!(told, [(&old.url, "\"TLS 1.1\"".to_owned())]);
    assert_eq!(issues_of(&audit, "certificate-invalid").len(), 0);
}
