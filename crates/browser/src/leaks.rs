//! The browser has no network: whatever a page tries, nothing arrives but what the program asks for.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;

use self::kit::{Site, run, settings};
use crate::{Browser, Network, Ready, Rendering, Settings};

// What leaks without a flag can be shown only from within: no user can leave one out.
#[path = "../tests/it/kit.rs"]
#[allow(dead_code, clippy::field_reassign_with_default, reason = "it is the kit of tests from outside, too")]
mod kit;

const PAGE: &str = "https://a.test/";

/// Listeners of this machine, and what arrived.
struct Listeners {
    hits: Arc<AtomicUsize>,
    tcp: Vec<SocketAddr>,
    udp: UdpSocket,
}

impl Listeners {
    async fn open() -> Self {
        let hits = Arc::new(AtomicUsize::new(0));
        let mut tcp = Vec::new();
        for address in [SocketAddr::from(([127, 0, 0, 1], 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
            // A machine may be without IPv6.
            let Ok(listener) = TcpListener::bind(address).await else { continue };
            tcp.push(listener.local_addr().unwrap());
            let hits = Arc::clone(&hits);
            tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    hits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        Self { hits, tcp, udp }
    }

    /// Hosts with ports at which something listens.
    fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = self.tcp.iter().map(SocketAddr::to_string).collect();
        hosts.push(format!("localhost:{}", self.tcp[0].port()));
        hosts
    }

    /// Connections and datagrams that arrived.
    fn arrived(&self) -> (usize, usize) {
        let mut packets = 0;
        while self.udp.recv_from(&mut [0; 2048]).is_ok() {
            packets += 1;
        }
        (self.hits.load(Ordering::Relaxed), packets)
    }
}

/// A page that tries to reach a host in every way that there is.
fn hostile(host: &str, udp: SocketAddr) -> String {
    format!(
        r#"<!doctype html><p>there</p><link rel=preconnect href=http://{host}/><link rel=dns-prefetch href=http://{host}/><link rel=prefetch href=http://{host}/ahead>
        <link rel=stylesheet href=http://{host}/style><link rel=manifest href=http://{host}/manifest><link rel=icon href=http://{host}/icon>
        <link rel=prerender href=http://{host}/pre><link rel=modulepreload href=http://{host}/module>
        <script type=speculationrules>{{"prerender": [{{"urls": ["http://{host}/s1"]}}], "prefetch": [{{"urls": ["http://{host}/s2"]}}]}}</script>
        <script src=http://{host}/script></script><img src=http://{host}/image><img src=file:///etc/passwd><iframe src=http://{host}/frame></iframe>
        <iframe src=file:///etc/passwd></iframe><object data=http://{host}/object></object><embed src=http://{host}/embed><video src=http://{host}/video preload=auto></video>
        <audio src=http://{host}/audio preload=auto></audio><form action=http://{host}/form target=frame method=post><input name=a></form><iframe name=frame></iframe>
        <a ping=http://{host}/ping href="javascript:void 0" id=link>x</a>
        <script>
        window.left = 0;
        const wait = (promise) => {{ window.left += 1; promise.then(() => 0, () => 0).then(() => {{ window.left -= 1; }}); }};
        const event = (target, ...names) => new Promise((done) => {{ for (const name of names) target.addEventListener(name, done); }});
        link.click(); document.forms[0].submit();
        wait(fetch('http://{host}/fetch', {{ mode: 'no-cors' }})); wait(fetch('http://{host}/keep', {{ mode: 'no-cors', keepalive: true }}));
        navigator.sendBeacon('http://{host}/beacon', 'x');
        const tries = [
            () => {{ const socket = new WebSocket('ws://{host}/socket'); wait(event(socket, 'error', 'close')); }},
            () => {{ const socket = new WebSocket('wss://{host}/socket'); wait(event(socket, 'error', 'close')); }},
            () => {{ const source = new EventSource('http://{host}/events'); wait(event(source, 'error').then(() => source.close())); }},
            () => wait(new WebTransport('https://{host}/transport').ready),
            () => {{
                const worker = new Worker(URL.createObjectURL(new Blob([`
                    const all = [fetch('http://{host}/worker', {{ mode: 'no-cors' }}).catch(() => 0)];
                    try {{ const s = new WebSocket('ws://{host}/worker-socket'); all.push(new Promise((d) => {{ s.onclose = d; }})); }} catch {{}}
                    try {{ importScripts('http://{host}/import'); }} catch {{}}
                    Promise.all(all).then(() => postMessage(1));`])));
                wait(event(worker, 'message', 'error'));
            }},
            () => {{
                const port = new SharedWorker(URL.createObjectURL(new Blob([`
                    onconnect = (e) => fetch('http://{host}/shared', {{ mode: 'no-cors' }}).catch(() => 0).then(() => e.ports[0].postMessage(1))`]))).port;
                port.start(); wait(event(port, 'message'));
            }},
            () => {{
                const peer = new RTCPeerConnection({{ iceServers: [{{ urls: 'stun:{udp}' }}, {{ urls: 'turn:{udp}', username: 'u', credential: 'c' }}, {{ urls: 'turn:{host}?transport=tcp', username: 'u', credential: 'c' }}] }});
                peer.createDataChannel('x');
                wait(peer.createOffer().then((offer) => peer.setLocalDescription(offer)).then(() => new Promise((done) => {{
                    peer.onicecandidate = (e) => {{ if (!e.candidate) done(); }};
                    if (peer.iceGatheringState === 'complete') done();
                }})));
            }},
            () => {{ window.open('http://{host}/window'); window.open('http://{host}/apart', '_blank', 'noopener'); }},
            () => {{ location.href = 'http://{host}/location'; }},
            () => {{ const x = new XMLHttpRequest(); wait(event(x, 'loadend')); x.open('GET', 'http://{host}/xhr'); x.send(); }},
            () => wait(fetch('file:///etc/passwd').then(() => {{ document.title = 'read a file'; }})),
        ];
        for (const attempt of tries) try {{ attempt(); }} catch {{}}
        </script>"#
    )
}

/// What a browser did of a page that tries to reach a host.
struct Tried {
    site: Arc<Site>,
    page: crate::Rendered,
}

/// Renders the page that tries to reach a host, and waits for the end of all attempts.
async fn attempt(browser: &Browser, url: &str, host: &str, udp: SocketAddr) -> Tried {
    let site = Site::new().html(url, hostile(host, udp)).share();
    let ready = Ready::Expression("window.left === 0 && document.readyState === 'complete'".to_owned());
    let rendering = Rendering { ready, ..Rendering::default() };
    let page = browser.render(url, &rendering, Arc::clone(&site) as Arc<dyn Network>).await.unwrap();
    assert!(page.html.contains("<p>there</p>") && !page.html.contains("<title>"), "{}", page.html);
    assert!(!page.is_incomplete, "all attempts came to an end: {url} {host} {:?}", page.requests);
    Tried { site, page }
}

fn assert_asked(tried: &Tried, host: &str) {
    assert!(tried.page.refused_direct >= 4, "{}", tried.page.refused_direct);
    assert!(tried.site.asked().iter().all(|asked| asked.url.starts_with("http")));
    for part in ["fetch", "script", "style", "frame", "worker", "xhr", "events", "import"] {
        let is_asked = tried.site.asked().iter().any(|asked| asked.url == format!("http://{host}/{part}"));
        assert!(is_asked, "{part}: {:?}", tried.page.requests);
    }
}

#[test]
fn nothing_that_a_page_tries_arrives_at_this_machine() {
    run(async {
        let listeners = Listeners::open().await;
        let browser = Browser::new(settings()).unwrap();
        let udp = listeners.udp.local_addr().unwrap();
        for host in listeners.hosts() {
            attempt(&browser, PAGE, &host, udp).await;
            // Addresses in clear text also from pages in clear text, where nothing is blocked as mixed.
            assert_asked(&attempt(&browser, "http://a.test/", &host, udp).await, &host);
        }
        // Whatever is on its way arrives before this comes back.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(listeners.arrived(), (0, 0));
        let stats = browser.stats().await;
        assert!(stats.refused_connections > 0, "sockets came to the proxy: {stats:?}");
        browser.close().await;
    });
}

#[test]
fn names_that_lead_to_this_machine_and_addresses_of_its_network_are_not_reached() {
    run(async {
        let listeners = Listeners::open().await;
        let udp = listeners.udp.local_addr().unwrap();
        let port = listeners.tcp[0].port();
        let mut settings = settings();
        // As if the name had been bound to this machine after it was looked at.
        settings.changed.1.push("--host-resolver-rules=MAP rebound.test 127.0.0.1");
        let browser = Browser::new(settings).unwrap();
        let done = Arc::new(tokio::sync::Notify::new());
        let seen = tokio::spawn(connections_to(0xA9FE_A9FE, Arc::clone(&done)));
        for host in [format!("rebound.test:{port}"), "169.254.169.254".to_owned()] {
            assert_asked(&attempt(&browser, "http://a.test/", &host, udp).await, &host);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        done.notify_one();
        assert_eq!(seen.await.unwrap(), 0, "connections to 169.254.169.254");
        assert_eq!(listeners.arrived(), (0, 0));
        browser.close().await;
    });
}

/// How often a socket of this machine was seen that is to reach an address.
async fn connections_to(address: u32, done: Arc<tokio::sync::Notify>) -> usize {
    let address = format!(" {:08X}:", address.swap_bytes());
    let mut seen = 0;
    loop {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
        seen += sockets.matches(&address).count();
        tokio::select! {
            () = done.notified() => return seen,
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
}

/// What arrives at this machine, by TCP and UDP, from a browser without some flags.
async fn arrived_without(flags: &[&'static str]) -> (usize, usize) {
    let listeners = Listeners::open().await;
    let mut settings: Settings = settings();
    settings.changed.0.extend(flags);
    let browser = Browser::new(settings).unwrap();
    attempt(&browser, "http://a.test/", &listeners.hosts()[0], listeners.udp.local_addr().unwrap()).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    browser.close().await;
    listeners.arrived()
}

#[test]
fn each_flag_that_keeps_the_browser_off_the_network_is_needed() {
    run(async {
        const PLAIN: &str = "--webrtc-ip-handling-policy=";
        const FORCED: &str = "--force-webrtc-ip-handling-policy=";
        assert!(
            arrived_without(&["--proxy-server="]).await.0 > 0,
            "sockets go past a proxy that is not there"
        );
        assert!(
            arrived_without(&["--proxy-bypass-list="]).await.0 > 0,
            "addresses of this machine go past it"
        );
        // The shell knows one spelling, the browser the other.
        let alone = [arrived_without(&[PLAIN]).await.1, arrived_without(&[FORCED]).await.1];
        assert!(alone.iter().filter(|packets| **packets > 0).count() == 1, "datagrams: {alone:?}");
        assert!(arrived_without(&[PLAIN, FORCED]).await.1 > 0);
    });
}

/// Whether the request of a shared worker was asked of the network, and how many connections came to the proxy.
async fn asked_by_a_shared_worker(settings: Settings) -> (bool, u64) {
    let page = r"<!doctype html><script>
        const worker = new SharedWorker('/shared.js');
        worker.port.onmessage = worker.onerror = () => { window.ended = true; };
        worker.port.start();
        </script>";
    let shared =
        "onconnect = (e) => fetch('/of-shared').catch(() => 0).then(() => e.ports[0].postMessage(1))";
    let site = Site::new().html(PAGE, page).script("https://a.test/shared.js", shared).share();
    let browser = Browser::new(settings).unwrap();
    let rendering = Rendering { ready: Ready::Expression("window.ended".to_owned()), ..Rendering::default() };
    let page = browser.render(PAGE, &rendering, Arc::clone(&site) as Arc<dyn Network>).await.unwrap();
    assert!(!page.is_incomplete, "{:?}", page.requests);
    let refused = browser.stats().await.refused_connections;
    browser.close().await;
    (site.asked().iter().any(|asked| asked.url == "https://a.test/of-shared"), refused)
}

#[test]
fn attaching_at_the_browser_is_needed_for_shared_workers() {
    run(async {
        assert!(asked_by_a_shared_worker(settings()).await.0);
        let mut settings = settings();
        settings.attaches_pages_only = true;
        let (is_asked, refused) = asked_by_a_shared_worker(settings).await;
        assert!(!is_asked && refused > 0, "the request is not intercepted and fails at the proxy: {refused}");
    });
}

#[test]
fn workers_that_workers_start_are_intercepted_or_refused() {
    run(async {
        let page = r#"<!doctype html><p>there</p><script>
            let left = 0;
            const wait = (promise) => { left += 1; promise.then(() => 0, () => 0).then(() => { left -= 1; }); };
            wait(new Promise((done) => { new Worker('/outer.js').onmessage = done; }));
            wait(new Promise((done) => { const port = new SharedWorker('/shared.js').port; port.onmessage = done; port.start(); }));
            wait(navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready)
                .then(() => new Promise((done) => { if (navigator.serviceWorker.controller) done(); navigator.serviceWorker.oncontrollerchange = done; }))
                .then(() => fetch('/by-page')));
            </script>"#;
        let outer = r#"
            const ended = (worker) => new Promise((done) => { worker.onmessage = worker.onerror = done; });
            const blob = (source) => new Worker(URL.createObjectURL(new Blob([source])));
            const deeper = `const worker = new Worker(URL.createObjectURL(new Blob(["importScripts('https://a.test/imported.js'); fetch('https://a.test/of-innermost').finally(() => postMessage(1))"])));
                worker.onmessage = worker.onerror = () => fetch('https://a.test/of-inner').finally(() => postMessage(1))`;
            Promise.all([ended(blob(deeper)), ended(new Worker('/inner.js'))]).then(() => postMessage(1))"#;
        let service = r#"
            importScripts('/of-service.js');
            onactivate = (e) => e.waitUntil(clients.claim());
            onfetch = (e) => { if (e.request.url.endsWith('/by-page')) e.respondWith(fetch('/by-service')); }"#;
        let site = Site::new()
            .html(PAGE, page)
            .script("https://a.test/outer.js", outer)
            .script("https://a.test/inner.js", "fetch('/of-script').finally(() => postMessage(1))")
            .script("https://a.test/imported.js", "")
            .script(
                "https://a.test/shared.js",
                "onconnect = (e) => fetch('/of-shared').finally(() => e.ports[0].postMessage(1))",
            )
            .script("https://a.test/service.js", service)
            .script("https://a.test/of-service.js", "")
            .share();
        let browser = Browser::new(settings()).unwrap();
        let ready = Ready::Expression("left === 0".to_owned());
        let rendering = Rendering { ready, ..Rendering::default() };
        let page = browser.render(PAGE, &rendering, Arc::clone(&site) as Arc<dyn Network>).await.unwrap();
        assert!(!page.is_incomplete, "{:?}", page.requests);
        let is_asked =
            |part: &str| site.asked().iter().any(|asked| asked.url == format!("https://a.test/{part}"));
        for part in [
            "outer.js",
            "imported.js",
            "of-inner",
            "of-innermost",
            "shared.js",
            "of-shared",
            "service.js",
            "of-service.js",
            "by-service",
        ] {
            assert!(is_asked(part), "{part}: {:?}", page.requests);
        }
        // The protocol has no way to pause the script of a worker that a worker starts: workers have no `Fetch`, and the frame is not asked. What
        // nobody pauses comes to the proxy.
        assert!(!is_asked("inner.js") && !is_asked("of-script"));
        assert!(browser.stats().await.refused_connections > 0);
        browser.close().await;
    });
}
