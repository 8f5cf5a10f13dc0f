//! Tests of TLS and HTTP/2, against a server with a certificate that it generates.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Version;
use huntsman_crawler::{
    CertificateError, CertificateFault, FetchErrorKind as K, Request, Settings, VerifyCertificates,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ALL_VERSIONS, ServerConfig, SupportedProtocolVersion, crypto};
use tokio_rustls::server::TlsStream;

use super::support::{Server, downloader, fetch, get};

/// An https site that answers every request with its path, over HTTP/2 or HTTP/1.1.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: Bytes,
    seen: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Site {
    /// Heads of the requests so far, in debug format.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn site(protocols: &[&str]) -> Site {
    site_that(protocols, false, ALL_VERSIONS).await
}

async fn site_that(protocols: &[&str], flood: bool, versions: &[&'static SupportedProtocolVersion]) -> Site {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("a certificate");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let mut config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .expect("a valid pair");
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, log) = (acceptor.clone(), Arc::clone(&log));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") if flood => flood_h2(stream).await,
                    Some(b"h2") => serve_h2(stream, &log).await,
                    _ => serve_h1(stream, &log).await,
                }
            });
        }
    });
    Site { address, certificate: Bytes::copy_from_slice(&certificate), seen, task }
}

async fn serve_h1(mut stream: TlsStream<TcpStream>, log: &Mutex<Vec<String>>) {
    let mut seen = Vec::new();
    loop {
        while !seen.windows(4).any(|w| w == b"\r\n\r\n") {
            let mut chunk = [0; 4096];
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
            }
        }
        let head = String::from_utf8(std::mem::take(&mut seen)).unwrap();
        let path = head.split(' ').nth(1).unwrap().to_owned();
        log.lock().unwrap().push(head);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}", path.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Special paths: /headers has too many bytes of headers, /lines too many lines, /reset and /refuse (once) end with a
/// reset, /cut ends in the middle of the body, /big never ends.
async fn serve_h2(stream: TlsStream<TcpStream>, log: &Mutex<Vec<String>>) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let before = {
            let mut log = log.lock().unwrap();
            let before = log.iter().filter(|seen| seen.contains(&path)).count();
            log.push(format!("{request:?}"));
            before
        };
        let mut response = http::Response::builder().status(200).header("content-type", "text/html");
        match &*path {
            "/headers" => response = response.header("x", "y".repeat(300 << 10)),
            "/lines" => {
                for n in 0..1_100 {
                    response = response.header(format!("x-{n}"), "y");
                }
            }
            "/reset" => {
                respond.send_reset(h2::Reason::INTERNAL_ERROR);
                continue;
            }
            "/refuse" if before == 0 => {
                respond.send_reset(h2::Reason::REFUSED_STREAM);
                continue;
            }
            _ => {}
        }
        let Ok(mut body) = respond.send_response(response.body(()).unwrap(), false) else { continue };
        match &*path {
            "/cut" => {
                let _ = body.send_data(Bytes::from_static(b"half"), false);
                tokio::spawn(async move {
                    // The pause lets the client read the first half before the reset discards it.
                    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                    body.send_reset(h2::Reason::INTERNAL_ERROR);
                });
            }
            "/big" => {
                tokio::spawn(async move {
                    loop {
                        body.reserve_capacity(64 << 10);
                        match std::future::poll_fn(|cx| body.poll_capacity(cx)).await {
                            Some(Ok(room)) => {
                                if body.send_data(Bytes::from(vec![b'x'; room]), false).is_err() {
                                    return;
                                }
                            }
                            _ => return,
                        }
                    }
                });
            }
            _ => {
                let _ = body.send_data(Bytes::from(path.into_bytes()), true);
            }
        }
    }
}

/// Sends interim responses to the first request as long as they are accepted: hand-made frames, each with status 103.
async fn flood_h2(mut stream: TlsStream<TcpStream>) {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const INTERIM: [u8; 14] = [0, 0, 5, 1, 4, 0, 0, 0, 1, 0x08, 3, b'1', b'0', b'3'];
    let _ = stream.write_all(&SETTINGS).await;
    let _ = stream.read(&mut [0; 16 << 10]).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let frames = INTERIM.repeat(1_000);
    for _ in 0..10_000 {
        if stream.write_all(&frames).await.is_err() {
            return;
        }
    }
}

fn trusting(change: impl FnOnce(&mut Settings)) -> huntsman_crawler::HttpDownloader {
    downloader(|s| {
        s.download_verify_certificates = false.into();
        change(s);
    })
}

#[tokio::test]
async fn an_untrusted_certificate_is_a_tls_error() {
    let site = site(&["http/1.1"]).await;
    let error = get(&downloader(|_| {}), &site.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), K::Tls, "{error}");
    assert!(!error.was_sent() && error.to_string().contains("localhost"), "{error}");
    let refused = error.certificate().expect("the certificate that was refused");
    assert_eq!((refused.fault, &refused.certificate), (CertificateFault::UnknownIssuer, &site.certificate));
    assert!(site.seen().is_empty());
}

#[tokio::test]
async fn without_verification_the_page_is_delivered_with_its_certificate() {
    for (protocols, version) in [
        (&["h2", "http/1.1"][..], Version::HTTP_2),
        (&["http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let site = site(protocols).await;
        let response = get(&trusting(|_| {}), &site.url("/x?y")).await.expect("a page");
        assert_eq!(response.version, version);
        assert!(response.body.starts_with(b"/x"));
        assert_eq!(response.certificate.as_ref(), Some(&site.certificate));
        assert!(response.timings.connect.is_some(), "with the handshake in it");
    }
    let site = site(&["h2", "http/1.1"]).await;
    let response = get(&trusting(|s| s.http2 = false), &site.url("/")).await.expect("a page");
    assert_eq!(response.version, Version::HTTP_11, "switched off");
}

#[tokio::test]
async fn a_bad_certificate_is_recorded_with_the_page_where_that_is_asked_for() {
    for protocols in [&["h2", "http/1.1"][..], &["http/1.1"]] {
        let site = site(protocols).await;
        let downloader = trusting(|s| s.download_verify_certificates = VerifyCertificates::Record);
        let plain = Server::always(super::support::page(b"")).await;
        assert!(get(&downloader, &plain.url("/")).await.expect("a page").flags.is_empty());
        // The second response uses the connection of the first.
        for _ in 0..2 {
            let request = Request::parse(&site.url("/x")).unwrap().header("Authorization", "s3cret").unwrap();
            let response = fetch(&downloader, request).await.expect("a page");
            assert!(response.body.starts_with(b"/x") && response.has_flag("bad_certificate"), "{response:?}");
            let error = response.extensions.get::<CertificateError>().expect("what is wrong with it");
            assert_eq!(error.fault, CertificateFault::UnknownIssuer);
            assert!(error.to_string().contains("certificate"), "{error}");
            assert_eq!(response.certificate.as_ref(), Some(&site.certificate));
        }
        assert!(site.seen().iter().all(|head| !head.contains("s3cret")), "credentials are withheld");
    }
}

#[tokio::test]
async fn credentials_are_withheld_from_servers_that_are_not_verified() {
    let site = site(&["http/1.1"]).await;
    let request = |url: &str| {
        let with = [
            ("Authorization", "Basic s3cret"),
            ("Cookie", "a=s3cret"),
            ("X-Key", "s3cret"),
            ("X-Other", "shown"),
        ];
        let mut request =
            with.iter().fold(Request::parse(url).unwrap(), |r, (name, value)| r.header(name, value).unwrap());
        request.headers.get_mut("X-Key").unwrap().set_sensitive(true);
        request
    };
    let downloader = trusting(|_| {});
    fetch(&downloader, request(&site.url("/"))).await.expect("a page");
    assert!(
        !site.seen()[0].contains("s3cret") && site.seen()[0].contains("x-other: shown"),
        "{:?}",
        site.seen()
    );
    let plain = Server::always(super::support::page(b"")).await;
    fetch(&downloader, request(&plain.url("/"))).await.expect("a page");
    assert_eq!(plain.heads()[0].matches("s3cret").count(), 3, "http never was verified");
}

#[tokio::test]
async fn a_server_without_tls_is_a_tls_error_and_one_with_it_a_bad_response() {
    let plain = Server::start(|mut peer, _| async move {
        peer.put(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.gone().await;
    })
    .await;
    let error = get(&trusting(|_| {}), &format!("https://{}/", plain.address)).await.unwrap_err();
    assert_eq!(error.kind(), K::Tls, "{error}");
    let site = site(&["http/1.1"]).await;
    let error = get(&trusting(|_| {}), &format!("http://{}/", site.address)).await.unwrap_err();
    assert!(matches!(error.kind(), K::BadResponse | K::Reset), "{error}");
}

#[tokio::test]
async fn one_http2_connection_carries_requests_at_once() {
    let site = site(&["h2"]).await;
    let downloader = Arc::new(trusting(|_| {}));
    get(&downloader, &site.url("/first")).await.expect("a page");
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (downloader, url) = (Arc::clone(&downloader), site.url(&format!("/{n}")));
            tokio::spawn(async move {
                let response = get(&downloader, &url).await.expect("a page");
                assert_eq!(response.body, format!("/{n}"));
                assert!(response.timings.connect.is_none(), "no further connection");
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

#[tokio::test]
async fn http2_answers_are_limited_like_others() {
    let site = site(&["h2"]).await;
    let downloader = trusting(|s| s.download_maxsize = 1 << 20);
    for (path, kind) in [
        ("/headers", K::BadResponse),
        ("/lines", K::BadResponse),
        ("/reset", K::Reset),
        ("/cut", K::Incomplete),
        ("/big", K::TooLarge),
    ] {
        let error = get(&downloader, &site.url(path)).await.expect_err(path);
        assert_eq!(error.kind(), kind, "{path}: {error}");
        assert!(error.was_sent());
        assert_eq!(get(&downloader, &site.url("/after")).await.expect("still works").body, "/after");
    }
}

#[tokio::test]
async fn a_flood_of_http2_interim_answers_ends_at_the_deadline_at_the_latest() {
    let site = site_that(&["h2"], true, ALL_VERSIONS).await;
    let error = get(&trusting(|s| s.first_byte_timeout = 0.3), &site.url("/")).await.unwrap_err();
    assert!(matches!(error.kind(), K::BadResponse | K::FirstByteTimeout), "{error}");
}

#[tokio::test]
async fn a_stream_that_the_server_refused_is_sent_again_silently() {
    let site = site(&["h2"]).await;
    let response = get(&trusting(|_| {}), &site.url("/refuse")).await.expect("a page");
    assert_eq!(response.body, "/refuse");
    assert_eq!(site.seen().len(), 2);
}

#[tokio::test]
async fn the_lowest_and_the_highest_tls_version_are_honoured() {
    let old = site_that(&["http/1.1"], false, &[&TLS12]).await;
    let new = site_that(&["http/1.1"], false, &[&TLS13]).await;
    let only = |min: &str, max: &str| {
        let (min, max) = (min.to_owned(), max.to_owned());
        trusting(move |s| (s.tls_min_version, s.tls_max_version) = (min, max))
    };
    for (min, max, old_answers, new_answers) in
        [("1.2", "1.3", true, true), ("1.2", "1.2", true, false), ("1.3", "1.3", false, true)]
    {
        let downloader = only(min, max);
        for (site, answers, version) in [(&old, old_answers, "TLS 1.2"), (&new, new_answers, "TLS 1.3")] {
            let got = get(&downloader, &site.url("/")).await;
            match got {
                Ok(response) => {
                    assert!(answers, "{min} to {max}");
                    assert_eq!(response.tls_version, Some(version));
                    // The connection is used again.
                    let next = get(&downloader, &site.url("/next")).await.expect("a page");
                    assert_eq!((next.timings.connect, next.tls_version), (None, Some(version)));
                }
                Err(error) => assert!(!answers && error.kind() == K::Tls, "{min} to {max}: {error}"),
            }
        }
    }
}

/// A file of PEM with a certificate.
fn pem_file(certificate: &[u8]) -> tempfile::NamedTempFile {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let file = tempfile::NamedTempFile::new().unwrap();
    let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    std::fs::write(file.path(), pem).unwrap();
    file
}

#[tokio::test]
async fn a_server_whose_authority_is_in_the_file_is_verified_and_gets_credentials() {
    let site = site(&["http/1.1"]).await;
    let file = pem_file(&site.certificate);
    let trusted = downloader(|s| s.tls_ca_file = Some(file.path().display().to_string()));
    let request = Request::parse(&site.url("/x")).unwrap().header("Authorization", "s3cret").unwrap();
    assert_eq!(fetch(&trusted, request).await.expect("a page").body, "/x");
    assert!(site.seen()[0].contains("s3cret"));
    let other = super::secure::site(&["http/1.1"]).await;
    let error = get(&trusted, &other.url("/")).await.unwrap_err();
    assert_eq!(error.kind(), K::Tls, "another authority is still unknown: {error}");
    let by_address = format!("https://{}/", site.address);
    let error = get(&trusted, &by_address).await.unwrap_err();
    let fault = error.certificate().map(|refused| refused.fault);
    assert_eq!(fault, Some(CertificateFault::WrongName), "{error}");
}

#[test]
fn a_file_of_authorities_that_has_none_is_told_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let broken = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    for (name, text, why) in [
        ("missing.pem", None, "No such file"),
        ("empty.pem", Some(""), "there is no certificate in it"),
        ("der.crt", Some("\u{30}\u{1}"), "there is no certificate in it"),
        ("broken.pem", Some(broken), "certificate 1 cannot be read"),
    ] {
        let path = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let mut settings = Settings::default();
        settings.tls_ca_file = Some(path.display().to_string());
        let error = huntsman_crawler::HttpDownloader::new(&settings).unwrap_err();
        let said = error.to_string();
        assert!(error.is_usage() && said.contains(name) && said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_question_about_old_versions_of_tls_obeys_the_guard_and_is_no_request() {
    let site = site(&["http/1.1"]).await;
    let question =
        |url: &str| Request::parse(url).expect("a URL").with_meta(huntsman_crawler::meta::OLD_TLS, true);
    let open = downloader(|settings| settings.allow_private_addresses = true);
    let answer = fetch(&open, question(&site.url("/"))).await.expect("an answer");
    assert_eq!((answer.status.as_u16(), answer.tls_version), (204, None), "rustls accepts no old version");
    let plain = fetch(&open, question("http://localhost:9/")).await.expect("without TLS nothing is asked");
    assert_eq!(plain.tls_version, None);
    let guarded = downloader(|settings| {
        settings.allow_private_addresses = false;
        settings.allow_addresses.clear();
    });
    let refused = fetch(&guarded, question(&site.url("/"))).await.expect_err("a private address");
    assert_eq!(refused.kind(), K::AddressRefused);
    assert!(site.seen().is_empty(), "{:?}", site.seen());
}
