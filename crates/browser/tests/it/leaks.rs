//! The browser has no network: whatever a page tries, nothing arrives but what the program asks for.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use huntsman_browser::{Browser, Network, Ready, Rendering};
use tokio::net::TcpListener;

use crate::kit::{Site, run, settings};

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

#[test]
fn nothing_that_a_page_tries_arrives_at_this_machine() {
    run(async {
        let listeners = Listeners::open().await;
        let browser = Browser::new(settings()).unwrap();
        let udp = listeners.udp.local_addr().unwrap();
        for host in listeners.hosts() {
            // Addresses in clear text also from pages in clear text, where nothing is blocked as mixed.
            for url in [PAGE, "http://a.test/"] {
                let site = Site::new().html(url, hostile(&host, udp)).share();
                let ready =
                    Ready::Expression("window.left === 0 && document.readyState === 'complete'".to_owned());
                let rendering = Rendering { ready, ..Rendering::default() };
                let page =
                    browser.render(url, &rendering, Arc::clone(&site) as Arc<dyn Network>).await.unwrap();
                assert!(
                    page.html.contains("<p>there</p>") && !page.html.contains("<title>"),
                    "{}",
                    page.html
                );
                assert!(!page.is_incomplete, "all attempts came to an end: {url} {host} {:?}", page.requests);
                assert!(page.refused_direct >= 4, "{}", page.refused_direct);
                assert!(site.asked().iter().all(|asked| asked.url.starts_with("http")));
                if url != PAGE {
                    for part in ["fetch", "script", "style", "frame", "worker", "xhr", "events", "import"] {
                        assert!(
                            site.asked().iter().any(|asked| asked.url == format!("http://{host}/{part}")),
                            "{part}: {:?}",
                            page.requests
                        );
                    }
                }
            }
        }
        // Whatever is on its way arrives before this comes back.
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(listeners.arrived(), (0, 0));
        let stats = browser.stats().await;
        assert!(stats.refused_connections > 0, "sockets came to the proxy: {stats:?}");
        browser.close().await;
    });
}
