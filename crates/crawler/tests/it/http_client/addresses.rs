//! Tests of the address guard and of fixed addresses from outside: which server was connected to.

use huntsman_crawler::{Downloader, FetchErrorKind as K, HttpDownloader, Settings};

use super::support::{Server, get, page};

fn guarded(change: impl FnOnce(&mut Settings)) -> HttpDownloader {
    let mut settings = Settings::default();
    change(&mut settings);
    HttpDownloader::new(&settings).expect("valid settings")
}

#[tokio::test]
async fn loopback_is_refused_in_every_spelling_before_a_connection() {
    let server = Server::always(page(b"secret")).await;
    let port = server.address.port();
    let downloader = guarded(|_| {});
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "\u{FF11}\u{FF12}\u{FF17}.\u{FF10}.\u{FF10}.\u{FF11}",
        "127\u{3002}0\u{3002}0\u{3002}1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "localhost",
        "LocalHost.",
        "8.8.8.8@127.0.0.1",
        "127.0.0.2",
    ] {
        let error = get(&downloader, &format!("http://{host}:{port}/")).await.unwrap_err();
        assert_eq!(error.kind(), K::AddressRefused, "{host}: {error}");
        assert!(!error.was_sent());
    }
    for host in
        ["10.0.0.1", "192.168.0.1", "172.20.0.1", "169.254.169.254", "100.64.1.1", "[fd00::1]", "[fe80::1]"]
    {
        let error = get(&downloader, &format!("http://{host}/latest/meta-data/")).await.unwrap_err();
        assert_eq!(error.kind(), K::AddressRefused, "{host}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn listed_targets_pass_by_exact_host_and_port() {
    let (open, shut) = (Server::always(page(b"open")).await, Server::always(page(b"shut")).await);
    let downloader = guarded(|s| s.allow_addresses = vec![open.address.to_string()]);
    assert_eq!(&get(&downloader, &open.url("/")).await.expect("listed").body[..], b"open");
    assert_eq!(get(&downloader, &shut.url("/")).await.unwrap_err().kind(), K::AddressRefused);
    // The same server under another name is another target.
    let by_name = format!("http://localhost:{}/", open.address.port());
    assert_eq!(get(&downloader, &by_name).await.unwrap_err().kind(), K::AddressRefused);
    let downloader = guarded(|s| s.allow_addresses = vec!["127.0.0.1:*".into()]);
    assert!(get(&downloader, &open.url("/")).await.is_ok() && get(&downloader, &shut.url("/")).await.is_ok());
    assert_eq!(shut.connections(), 1);
}

#[tokio::test]
async fn fixed_addresses_are_used_by_port_and_judged_like_all_others() {
    let (one, two) = (Server::always(page(b"one")).await, Server::always(page(b"two")).await);
    let (first, second) = (one.address.port(), two.address.port());
    let resolve = vec![format!("site.example:{first}:127.0.0.1"), format!("site.example:{second}:127.0.0.1")];
    let url = |port: u16| format!("http://site.example:{port}/");

    let judged = guarded(|s| s.resolve.clone_from(&resolve));
    assert_eq!(get(&judged, &url(first)).await.unwrap_err().kind(), K::AddressRefused);
    assert_eq!(one.connections(), 0);

    let listed = guarded(|s| {
        s.resolve.clone_from(&resolve);
        s.allow_addresses = vec![format!("site.example:{first}")];
    });
    let response = get(&listed, &url(first)).await.expect("listed");
    assert_eq!((&response.body[..], response.ip), (&b"one"[..], Some("127.0.0.1".parse().unwrap())));
    assert!(response.timings.dns.is_some());
    assert!(one.heads()[0].contains(&format!("host: site.example:{first}\r\n")));
    assert_eq!(get(&listed, &url(second)).await.unwrap_err().kind(), K::AddressRefused);
    assert_eq!(Downloader::address(&listed, "site.example").await, Some("127.0.0.1".parse().unwrap()));
    assert_eq!(two.connections(), 0);
}

#[tokio::test]
async fn settings_that_make_no_sense_are_named() {
    type Change = fn(&mut Settings);
    let bad: [(&str, Change); 7] = [
        ("resolve", |s| s.resolve = vec!["x".into()]),
        ("allow_addresses", |s| s.allow_addresses = vec!["x".into()]),
        ("tls_min_version", |s| s.tls_min_version = "1.0".into()),
        ("tls_max_version", |s| s.tls_max_version = "ssl".into()),
        ("tls_max_version", |s| (s.tls_min_version, s.tls_max_version) = ("1.3".into(), "1.2".into())),
        ("bind_address", |s| s.bind_address = Some("eth0".into())),
        ("allow_addresses", |s| s.allow_addresses = vec!["a:b:80".into()]),
    ];
    for (name, change) in bad {
        let mut settings = Settings::default();
        change(&mut settings);
        let error = HttpDownloader::new(&settings).expect_err(name);
        assert!(error.is_usage() && error.to_string().contains(name), "{error}");
    }
}

#[tokio::test]
async fn requests_leave_from_the_bound_address() {
    let (seen, mut from) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(move |mut peer, _| {
        let seen = seen.clone();
        async move {
            seen.send(peer.stream.peer_addr().unwrap().ip()).unwrap();
            peer.head().await;
            peer.put(&page(b"")).await;
        }
    })
    .await;
    let downloader = guarded(|s| {
        s.allow_private_addresses = true;
        s.bind_address = Some("127.0.0.9".into());
    });
    get(&downloader, &server.url("/")).await.expect("a page");
    assert_eq!(from.recv().await, Some("127.0.0.9".parse().unwrap()));
}
