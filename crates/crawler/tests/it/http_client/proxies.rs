//! Tests of requests through proxies: what is sent to the proxy, and what is not sent to the site.

use std::time::Duration;

use huntsman_crawler::{
    CertificateError, CertificateFault, FetchErrorKind as K, HttpDownloader, ProxyFault, Request, Settings,
    VerifyCertificates,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{Server, downloader, fetch, get, page};

fn through(proxy: &str, url: &str) -> Request {
    Request::parse(url).expect("a URL").meta("proxy", proxy)
}

/// Copies in both directions until one side ends.
async fn relay(mut client: tokio::net::TcpStream, target: std::net::SocketAddr) {
    if let Ok(mut site) = tokio::net::TcpStream::connect(target).await {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut site).await;
    }
}

#[tokio::test]
async fn http_goes_through_with_an_absolute_url_and_credentials_for_the_proxy() {
    let proxy = Server::always(page(b"by proxy")).await;
    let address = format!("http://us%40er:p%20w@{}", proxy.address);
    // The name does not exist, so the request only works if the proxy handles it.
    let response =
        fetch(&downloader(|_| {}), through(&address, "http://site.invalid/a?b#c")).await.expect("a page");
    assert_eq!(&response.body[..], b"by proxy");
    assert_eq!(response.ip, None, "the site's address is not known");
    let head = &proxy.heads()[0];
    assert!(head.starts_with("GET http://site.invalid/a?b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("host: site.invalid\r\n"), "{head}");
    assert!(head.contains("proxy-authorization: Basic dXNAZXI6cCB3\r\n"), "{head}");
}

#[tokio::test]
async fn proxy_credentials_never_reach_a_site() {
    let site = Server::always(page(b"direct")).await;
    let request = Request::parse(&site.url("/")).unwrap().header("Proxy-Authorization", "Basic abc").unwrap();
    fetch(&downloader(|_| {}), request).await.expect("a page");
    assert!(!site.heads()[0].to_lowercase().contains("proxy-auth"), "{:?}", site.heads());
}

#[tokio::test]
async fn https_goes_through_a_tunnel_that_alone_sees_the_credentials() {
    let site = super::secure::site(&["h2", "http/1.1"]).await;
    let target = site.address;
    let proxy = Server::start(move |mut peer, _| async move {
        peer.head().await;
        peer.put(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        relay(peer.stream, target).await;
    })
    .await;
    let downloader = downloader(|s| s.download_verify_certificates = false.into());
    let request = through(&format!("http://user:pass@{}", proxy.address), "https://site.invalid/x");
    let response = fetch(&downloader, request).await.expect("a page");
    assert_eq!(response.version, http::Version::HTTP_2, "HTTP/2 works through a tunnel");
    assert_eq!(proxy.heads().len(), 1);
    let head = &proxy.heads()[0];
    assert!(head.starts_with("CONNECT site.invalid:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic dxnlcjpwyxnz\r\n"), "{head}");
    let seen = site.seen();
    assert!(
        !seen.is_empty() && seen.iter().all(|request| !request.to_lowercase().contains("proxy")),
        "{seen:?}"
    );
    assert_eq!(response.certificate.as_ref(), Some(&site.certificate), "it is that of the site");
    assert_eq!(response.tls_version, Some("TLS 1.3"));
    let again = through(&format!("http://user:pass@{}", proxy.address), "https://site.invalid/y");
    let response = fetch(&downloader, again).await.expect("a page");
    assert_eq!(proxy.connections(), 1, "tunnels are reused");
    assert_eq!(response.certificate.as_ref(), Some(&site.certificate));
    assert_eq!(response.tls_version, Some("TLS 1.3"));
}

/// A proxy for https that makes a tunnel to one site, whatever is asked for.
async fn tunnel(target: std::net::SocketAddr) -> Server {
    Server::start(move |mut peer, _| async move {
        peer.head().await;
        peer.put(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
        relay(peer.stream, target).await;
    })
    .await
}

#[tokio::test]
async fn bad_certificates_of_sites_behind_proxies_are_told_and_recorded_where_that_is_asked_for() {
    let site = super::secure::site(&["http/1.1"]).await;
    let (http, (socks, _log)) = (tunnel(site.address).await, socks(site.address, false).await);
    for proxy in [http.url(""), format!("socks5h://{}", socks.address)] {
        let error =
            fetch(&downloader(|_| {}), through(&proxy, "https://localhost/x")).await.expect_err("refused");
        assert_eq!(error.kind(), K::Tls, "{error}");
        let refused = error.certificate().expect("the certificate of the site");
        assert_eq!(
            (refused.fault, &refused.certificate),
            (CertificateFault::UnknownIssuer, &site.certificate)
        );

        let recording = downloader(|s| s.download_verify_certificates = VerifyCertificates::Record);
        // The second response uses the tunnel of the first.
        for _ in 0..2 {
            let request = through(&proxy, "https://localhost/x").header("Authorization", "s3cret").unwrap();
            let response = fetch(&recording, request).await.expect("a page");
            assert!(response.has_flag("bad_certificate"), "{response:?}");
            let error = response.extensions.get::<CertificateError>().expect("what is wrong with it");
            assert_eq!(error.fault, CertificateFault::UnknownIssuer);
            assert_eq!(response.certificate.as_ref(), Some(&site.certificate));
            assert_eq!(response.tls_version, Some("TLS 1.3"));
        }
    }
    assert!(site.seen().iter().all(|head| !head.contains("s3cret")), "credentials are withheld");
}

#[tokio::test]
async fn a_bad_certificate_of_a_proxy_is_refused_and_is_none_of_the_site() {
    let proxy = super::secure::site(&["http/1.1"]).await;
    for verify in [VerifyCertificates::Yes, VerifyCertificates::Record] {
        let downloader = downloader(|s| s.download_verify_certificates = verify);
        let address = format!("https://user:s3cret@localhost:{}", proxy.address.port());
        for url in ["https://site.invalid/x", "http://site.invalid/x"] {
            let error = fetch(&downloader, through(&address, url)).await.expect_err("refused");
            assert!(matches!(error.kind(), K::Proxy | K::Tls), "{error}");
            assert!(error.certificate().is_none(), "{url}: {error}");
        }
    }
    assert_eq!(proxy.seen(), Vec::<String>::new(), "it gets no request and no credentials");
}

#[tokio::test]
async fn a_proxy_that_fails_is_a_proxy_error() {
    let refusing =
        Server::once("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n").await;
    let silent = Server::once("").await;
    let chatty = Server::start(|mut peer, _| async move {
        peer.head().await;
        peer.flood(&b"HTTP/1.1 200 OK\r\nX: y\r\n"[..].repeat(1_000), 64 << 20).await;
    })
    .await;
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let downloader = downloader(|_| {});
    for proxy in [
        refusing.url(""),
        silent.url(""),
        chatty.url(""),
        gone,
        "http://proxy.invalid:1".into(),
        "ftp://x".into(),
    ] {
        let error = fetch(&downloader, through(&proxy, "https://site.invalid/")).await.unwrap_err();
        assert_eq!(error.kind(), K::Proxy, "{proxy}: {error}");
        assert!(!error.was_sent() && error.is_transient());
        // A tunnel that was not made may be the fault of the site.
        let expected = if proxy == chatty.url("") { ProxyFault::Possible } else { ProxyFault::Certain };
        assert_eq!(error.proxy_fault(), expected, "{proxy}: {error}");
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_reach_the_site_is_perhaps_not_at_fault_and_the_host_is_not_blamed() {
    let no_tunnel = Server::once("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").await;
    let silent = Server::start(|mut peer, _| async move {
        peer.gone().await;
    })
    .await;
    let closing = Server::start(|mut peer, _| async move {
        peer.head().await;
    })
    .await;
    let unreachable = Server::start(|mut peer, _| async move {
        peer.bytes(3).await;
        peer.put(b"\x05\x00").await;
        peer.bytes(4).await;
        peer.put(b"\x05\x04\x00\x01\0\0\0\0\0\0").await;
    })
    .await;
    let impatient = |s: &mut Settings| (s.connect_timeout, s.first_byte_timeout) = (0.3, 0.3);
    let socks = format!("socks5h://{}", unreachable.address);
    for (proxy, url, kind, fault) in [
        (no_tunnel.url(""), "https://site.invalid/", K::Proxy, ProxyFault::Possible),
        (silent.url(""), "https://site.invalid/", K::ConnectTimeout, ProxyFault::Possible),
        (silent.url(""), "http://site.invalid/", K::FirstByteTimeout, ProxyFault::Possible),
        (closing.url(""), "http://site.invalid/", K::Reset, ProxyFault::Possible),
        (socks, "http://site.invalid/", K::Proxy, ProxyFault::Possible),
    ] {
        let error = fetch(&downloader(impatient), through(&proxy, url)).await.unwrap_err();
        assert_eq!((error.kind(), error.proxy_fault()), (kind, fault), "{proxy} {url}: {error}");
        assert!(!error.is_host_failure(), "{error}");
    }
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let direct = Request::parse(&format!("http://{gone}/")).unwrap();
    let error = fetch(&downloader(|_| {}), direct).await.unwrap_err();
    assert!(error.proxy_fault() == ProxyFault::None && error.is_host_failure(), "{error}");
}

#[tokio::test]
async fn a_password_is_in_no_message() {
    let downloader = downloader(|_| {});
    for proxy in [
        "http://user:hunter2@127.0.0.1:1",
        "ftp://user:hunter2@x/",
        "http://user:hunter2@",
        "http://u:hunter2@[x",
    ] {
        let error = fetch(&downloader, through(proxy, "https://site.invalid/")).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_silent_is_a_connect_timeout() {
    let proxy = Server::start(|mut peer, _| async move {
        peer.gone().await;
    })
    .await;
    let downloader = downloader(|s| s.connect_timeout = 0.1);
    let error = fetch(&downloader, through(&proxy.url(""), "https://site.invalid/")).await.unwrap_err();
    assert_eq!(error.kind(), K::ConnectTimeout, "{error}");
}

/// A SOCKS 5 server that requires a password if one is expected, and connects to the site whatever the requested
/// target is. It sends the target and the credentials to the test.
async fn socks(
    site: std::net::SocketAddr,
    password: bool,
) -> (Server, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let (seen, log) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |mut peer, _| {
        let seen = seen.clone();
        async move {
            let mut note = String::new();
            let hello = peer.bytes(2).await;
            peer.bytes(hello[1].into()).await;
            peer.put(&[5, if password { 2 } else { 0 }]).await;
            if password {
                let length = peer.bytes(2).await[1];
                note += &String::from_utf8(peer.bytes(length.into()).await).unwrap();
                let length = peer.bytes(1).await[0];
                note += &format!(":{}@", String::from_utf8(peer.bytes(length.into()).await).unwrap());
                peer.put(&[1, 0]).await;
            }
            let kind = peer.bytes(4).await[3];
            match kind {
                1 => note += &format!("{:?}", peer.bytes(4).await),
                3 => {
                    let length = peer.bytes(1).await[0];
                    note += &String::from_utf8(peer.bytes(length.into()).await).unwrap();
                }
                _ => note += &format!("{:?}", peer.bytes(16).await),
            }
            let port = peer.bytes(2).await;
            note += &format!(":{}", u16::from_be_bytes([port[0], port[1]]));
            seen.send(note).expect("the test listens");
            peer.put(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
            relay(peer.stream, site).await;
        }
    })
    .await;
    (server, log)
}

#[tokio::test]
async fn socks_resolves_here_or_there() {
    let site = Server::always(page(b"by socks")).await;
    let fixed = downloader(|s| s.resolve = vec!["site.invalid:80:127.0.0.1".into()]);
    for (scheme, password, url, expected) in [
        ("socks5h", false, "http://site.invalid/", "site.invalid:80"),
        ("socks5h", true, "http://site.invalid/", "us er:p@ss@site.invalid:80"),
        ("socks5", false, "http://site.invalid/", "[127, 0, 0, 1]:80"),
        (
            "socks5h",
            false,
            "http://[2606:4700::1]:81/",
            "[38, 6, 71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]:81",
        ),
    ] {
        let (proxy, mut log) = socks(site.address, password).await;
        let user = if password { "us%20er:p%40ss@" } else { "" };
        let request = through(&format!("{scheme}://{user}{}", proxy.address), url);
        let response = fetch(&fixed, request).await.unwrap_or_else(|e| panic!("{scheme} {url}: {e}"));
        assert_eq!(&response.body[..], b"by socks");
        assert_eq!(log.recv().await.as_deref(), Some(expected));
    }
    assert!(site.heads().iter().all(|head| head.starts_with("GET / HTTP/1.1\r\n")), "{:?}", site.heads());
}

#[tokio::test]
async fn socks_refusals_are_proxy_errors() {
    for answer in
        [&b"\x05\xff"[..], b"\x05\x00\x05\x01\x00\x01\0\0\0\0\0\0", b"HTTP/1.1 400 Bad\r\n\r\n", b""]
    {
        let proxy = Server::start(move |mut peer, _| async move {
            peer.stream.read_u8().await.ok();
            peer.stream.write_all(answer).await.ok();
            tokio::time::sleep(Duration::from_millis(20)).await;
        })
        .await;
        let request = through(&format!("socks5h://{}", proxy.address), "http://site.invalid/");
        let error = fetch(&downloader(|_| {}), request).await.unwrap_err();
        assert_eq!(error.kind(), K::Proxy, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn the_guard_works_on_the_name_and_not_on_the_proxy() {
    let proxy = Server::always(page(b"by proxy")).await;
    let mut settings = Settings::default();
    settings.resolve = vec!["inside.example:80:10.0.0.1".into()];
    let guarded = HttpDownloader::new(&settings).expect("valid settings");
    let http = proxy.url("");
    for url in [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://localhost/",
        "https://a.localhost/",
    ] {
        let error = fetch(&guarded, through(&http, url)).await.unwrap_err();
        assert_eq!(error.kind(), K::AddressRefused, "{url}: {error}");
    }
    let error = fetch(&guarded, through(&http.replace("http:", "socks5:"), "http://inside.example/"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), K::AddressRefused, "resolved here: judged here");
    assert_eq!(proxy.connections(), 0);
    assert!(fetch(&guarded, through(&http, "http://site.invalid/")).await.is_ok());
}

#[tokio::test]
async fn the_name_of_a_proxy_is_no_way_around_the_guard() {
    let site = Server::always(page(b"inside")).await;
    let (proxy, _log) = socks(site.address, false).await;
    let guarded = HttpDownloader::new(&Settings::default()).expect("valid settings");
    let address = format!("socks5://localhost:{}", proxy.address.port());
    for url in ["http://localhost/".to_owned(), format!("http://localhost:{}/", site.address.port())] {
        let error = fetch(&guarded, through(&address, &url)).await.unwrap_err();
        assert_eq!(error.kind(), K::AddressRefused, "{url}: {error}");
    }
    assert_eq!(site.connections(), 0);
}

#[tokio::test]
async fn each_proxy_has_its_own_connections_and_none_is_none() {
    let (one, two, site) = (
        Server::always(page(b"one")).await,
        Server::always(page(b"two")).await,
        Server::always(page(b"site")).await,
    );
    let downloader = downloader(|_| {});
    for _ in 0..3 {
        for (proxy, body) in [(one.url(""), "one"), (two.url("/"), "two"), (String::new(), "site")] {
            let response = fetch(&downloader, through(&proxy, &site.url("/"))).await.expect("a page");
            assert_eq!(response.body, body);
        }
    }
    assert_eq!((one.connections(), two.connections(), site.connections()), (1, 1, 1));
    for n in 0..200 {
        // With many proxies the oldest are forgotten, and nothing breaks.
        let _ = fetch(&downloader, through(&format!("http://127.0.0.1:1/?{n}"), &site.url("/"))).await;
    }
    assert!(get(&downloader, &site.url("/")).await.is_ok());
}
