//! Nodes on one server: what is stored, in what order, and what happens when one of them ends.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use huntsman_crawler::{End, Frontier, HostKey, Lease, Order, Pushed, Request, Settled, SlotBy, Timestamp};
use huntsman_url_frontier::test_server::Server;
use huntsman_url_frontier::{ErrorKind, UrlFrontier, UrlFrontierSettings};

const NOW: Timestamp = Timestamp(0);

pub(crate) fn settings(server: &Server) -> UrlFrontierSettings {
    let settings: UrlFrontierSettings = server.url().parse().expect("the address of a server");
    settings.job("job")
}

pub(crate) fn join(server: &Server) -> UrlFrontier {
    UrlFrontier::join(settings(server), Order::Bfs).expect("the node joins")
}

fn request(url: &str) -> Request {
    let mut request = Request::parse(url).expect("a URL");
    request.assign_slot(HostKey::of(&request.url, SlotBy::Host));
    let fingerprint = request.fingerprint();
    request.assign_fingerprint(fingerprint);
    request
}

async fn lease(node: &UrlFrontier, host: &str) -> Vec<Lease> {
    node.lease(&HostKey::new(host), 9, NOW).await.expect("lease").leases
}

async fn settle(node: &UrlFrontier, host: &str, lease: &Lease, end: End, children: Vec<Request>) -> Pushed {
    let settled = Settled { lease: lease.id, host: HostKey::new(host), end, children };
    node.settle(vec![settled]).await.expect("settle")
}

#[tokio::test]
async fn a_page_whose_node_died_is_served_to_another_one_when_its_hold_ends() {
    let server = Server::start().without_pauses();
    let first = join(&server);
    first.push(vec![request("http://a.example/1")]).await.expect("push");
    assert_eq!(lease(&first, "a.example").await.len(), 1);
    drop(first);
    let second = join(&server);
    assert!(lease(&second, "a.example").await.is_empty(), "it is held");
    assert_eq!(server.longest_hold(), 60, "twice the time of a page");
    server.advance(61);
    let leased = lease(&second, "a.example").await;
    assert_eq!(leased[0].request.url.path(), "/1");
    settle(&second, "a.example", &leased[0], End::Done, Vec::new()).await;
    assert_eq!(server.completed("job"), ["http://a.example/1"]);
}

#[tokio::test]
async fn a_host_with_a_long_delay_is_held_until_its_delay_is_over() {
    let server = Server::start().without_pauses();
    let node = join(&server);
    node.push(["1", "2"].map(|n| request(&format!("http://{n}.example/"))).to_vec()).await.expect("push");
    assert_eq!(lease(&node, "1.example").await.len(), 1);
    node.turn(&HostKey::new("1.example"), Duration::from_secs(15)).await.expect("turn");
    assert_eq!(lease(&node, "2.example").await.len(), 1);
    assert_eq!(server.longest_hold(), 60, "twice the time of a page is enough");
    node.turn(&HostKey::new("1.example"), Duration::from_millis(99_500)).await.expect("turn");
    node.push(vec![request("http://3.example/")]).await.expect("push");
    assert_eq!(lease(&node, "3.example").await.len(), 1);
    assert_eq!(server.longest_hold(), 230);
}

#[tokio::test]
async fn a_page_is_not_done_before_what_was_found_on_it_is_stored() {
    let server = Server::start().without_pauses();
    let node = join(&server);
    node.push(vec![request("http://a.example/1")]).await.expect("push");
    let leased = lease(&node, "a.example").await;
    server.fail(u32::MAX);
    let settled = Settled {
        lease: leased[0].id,
        host: HostKey::new("a.example"),
        end: End::Done,
        children: vec![request("http://b.example/2")],
    };
    let error = node.settle(vec![settled]).await.expect_err("nothing is stored").to_string();
    assert!(error.contains("failed to store 1 URLs"), "{error}");
    server.fail(0);
    assert!(server.completed("job").is_empty());
    server.advance(61);
    // The lease lives on in this process, so another one gets the page.
    assert_eq!(lease(&join(&server), "a.example").await.len(), 1);
}

#[tokio::test]
async fn what_the_server_fails_to_store_is_sent_again() {
    for server in [Server::start(), Server::start().without_batches()] {
        server.fail(2);
        let urls = ["http://a.example/1", "http://a.example/2", "http://a.example/1", "http://b.example/3"];
        let pushed = join(&server).push(urls.map(request).to_vec()).await.expect("push");
        assert_eq!((pushed.accepted, pushed.duplicates), (3, 1));
        assert_eq!(server.queued("job").len(), 3);
    }
}

#[tokio::test]
async fn found_urls_go_one_by_one_to_a_server_that_knows_no_batches() {
    let server = Server::start().without_batches();
    let node = join(&server);
    for n in 0..2 {
        node.push(vec![request(&format!("http://a.example/{n}"))]).await.expect("push");
    }
    assert_eq!(server.calls("PutDiscovered"), 1, "it is tried once");
    assert_eq!(server.calls("PutURLs"), 2);
    assert_eq!(server.queued("job").len(), 2);
}

#[tokio::test]
async fn a_retry_and_a_delayed_request_wait_for_their_time_in_whole_seconds() {
    let server = Server::start().without_pauses();
    let node = join(&server);
    let due = Timestamp::wall() + Duration::from_secs(100);
    let seconds = due.0.div_ceil(1_000_000);
    let mut delayed = request("http://a.example/later");
    delayed.not_before = Some(due);
    let pushed = node.push(vec![request("http://a.example/1"), delayed.clone()]).await.expect("push");
    assert_eq!(pushed.accepted, 2);
    let leased = lease(&node, "a.example").await;
    assert_eq!(leased.len(), 1);
    let mut retry = leased[0].request.clone().unfiltered();
    (retry.retries, retry.not_before) = (1, Some(due));
    let pushed =
        settle(&node, "a.example", &leased[0], End::Reschedule(Box::new(retry)), vec![delayed]).await;
    assert_eq!((pushed.accepted, pushed.duplicates), (1, 1), "a known request gets no other time");
    let queued = server.queued("job");
    assert_eq!(queued.values().copied().collect::<Vec<_>>(), [seconds, seconds], "{queued:?}");
    server.advance(101);
    let mut again = lease(&node, "a.example").await;
    again.sort_by_key(|lease| lease.request.retries);
    assert_eq!(again.iter().map(|lease| lease.request.retries).collect::<Vec<_>>(), [0, 1]);
}

#[tokio::test]
async fn a_url_of_another_crawler_is_a_plain_get_and_keeps_what_that_one_knows() {
    let server = Server::start().without_pauses();
    assert!(server.put("job", "www.a.example", "http://www.a.example/x?b=2&a=1"));
    let node = join(&server);
    let leased = lease(&node, "www.a.example").await;
    let asked = &leased[0].request;
    assert_eq!((asked.method.as_str(), asked.url.as_str()), ("GET", "http://www.a.example/x?b=2&a=1"));
    assert_eq!(asked.depth, 0);
    // A retry stays at the URL of the other crawler, although this one would write it otherwise.
    let retry = End::Reschedule(Box::new(asked.clone().unfiltered()));
    settle(&node, "www.a.example", &leased[0], retry, Vec::new()).await;
    assert_eq!(server.queued("job").keys().collect::<Vec<_>>(), ["http://www.a.example/x?b=2&a=1"]);
    assert_eq!(server.metadata("job", "http://www.a.example/x?b=2&a=1"), ["hm"]);
    let leased = lease(&node, "www.a.example").await;
    settle(&node, "www.a.example", &leased[0], End::Done, Vec::new()).await;
    assert_eq!(server.completed("job"), ["http://www.a.example/x?b=2&a=1"]);
}

#[tokio::test]
async fn a_url_that_cannot_be_asked_for_is_done_and_does_not_come_back() {
    let server = Server::start().without_pauses();
    server.put("job", "a.example", "ftp://a.example/x");
    server.put("job", "a.example", "http://a.example/y");
    let node = join(&server);
    let leased = lease(&node, "a.example").await;
    assert_eq!(leased.iter().map(|lease| lease.request.url.path()).collect::<Vec<_>>(), ["/y"]);
    assert_eq!(server.completed("job"), ["ftp://a.example/x"]);
}

#[tokio::test]
async fn what_the_server_cannot_hold_comes_back_with_the_reason() {
    let server = Server::start().without_pauses();
    let node = join(&server);
    let raw = request("http://a.example/raw").unfiltered();
    let mut long = request("http://a.example/long");
    long.assign_slot(HostKey::new(&"x".repeat(256)));
    let pushed = node.push(vec![raw.clone(), long, request("http://a.example/1")]).await.expect("push");
    assert_eq!((pushed.accepted, pushed.duplicates, pushed.unfit.len()), (1, 0, 2));
    assert!(pushed.unfit[0].1.contains("unfiltered"), "{:?}", pushed.unfit);
    assert!(pushed.unfit[1].1.contains("255 bytes"), "{:?}", pushed.unfit);
    // So does an unfiltered request of another URL that was to take the place of the page, which is done.
    let leased = lease(&node, "a.example").await;
    let pushed = settle(&node, "a.example", &leased[0], End::Reschedule(Box::new(raw)), Vec::new()).await;
    assert_eq!((pushed.accepted, pushed.unfit.len()), (0, 1));
    assert_eq!(server.completed("job"), ["http://a.example/1"]);
}

#[tokio::test]
async fn what_waits_here_goes_back_when_the_crawl_ends() {
    let server = Server::start().without_pauses();
    let first = join(&server);
    first.push((0..5).map(|n| request(&format!("http://a.example/{n}"))).collect()).await.expect("push");
    let leased = first.lease(&HostKey::new("a.example"), 2, NOW).await.expect("lease").leases;
    settle(&first, "a.example", &leased[0], End::Done, Vec::new()).await;
    first.left();
    settle(&first, "a.example", &leased[1], End::Release, Vec::new()).await;
    first.sync().await.expect("sync");
    let leased = lease(&join(&server), "a.example").await;
    let paths: Vec<&str> = leased.iter().map(|lease| lease.request.url.path()).collect();
    assert_eq!(paths, ["/1", "/2", "/3", "/4"]);
}

// On a runtime, as a program joins.
#[tokio::test(flavor = "multi_thread")]
async fn another_order_and_a_server_that_is_not_there_are_refused_at_the_start() {
    let mut server = Server::start();
    for order in [Order::Dfs, Order::BestFirst] {
        let error = UrlFrontier::join(settings(&server), order).expect_err("the order is refused");
        assert!(error.to_string().contains("scheduler_order bfs"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Input);
    }
    server.stop();
    let error = UrlFrontier::join(settings(&server), Order::Bfs).expect_err("there is no server");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // A server of another protocol.
    let site = huntsman_testkit::Site::builder().page("/", "x").start().await;
    let address = format!("urlfrontier://127.0.0.1:{}", site.url("/").port().expect("a port"));
    let settings: UrlFrontierSettings = address.parse().expect("an address");
    assert!(UrlFrontier::join(settings.timeout(Duration::from_secs(5)), Order::Bfs).is_err());
}

const HOSTS: u32 = 7;
const PAGES: u32 = 300;

/// A page leads to two more, at other hosts.
fn page(n: u32) -> Request {
    request(&format!("http://h{}.example/{n}", n % HOSTS))
}

/// Takes what is served until all pages were done by some node; returns how many this one did.
async fn work(node: &UrlFrontier, all: &Mutex<Vec<u32>>) -> usize {
    let mut own = 0;
    while all.lock().expect("no worker panics").iter().collect::<BTreeSet<_>>().len() < PAGES as usize {
        let before = own;
        for host in (0..HOSTS).map(|n| HostKey::new(&format!("h{n}.example"))) {
            for lease in node.lease(&host, 2, NOW).await.expect("lease").leases {
                let n: u32 = lease.request.url.path()[1..].parse().expect("a number");
                let children =
                    [2 * n, 2 * n + 1].into_iter().filter(|child| *child <= PAGES).map(page).collect();
                let settled = Settled { lease: lease.id, host: host.clone(), end: End::Done, children };
                node.settle(vec![settled]).await.expect("settle");
                all.lock().expect("no worker panics").push(n);
                own += 1;
            }
        }
        if own == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    own
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_page_is_done_once_by_two_nodes() {
    let server = Server::start().without_pauses();
    let (first, second) = (join(&server), join(&server));
    first.push(vec![page(1)]).await.expect("push");
    assert_eq!(second.push(vec![page(1)]).await.expect("push").duplicates, 1);
    let all = Mutex::new(Vec::new());
    let both = async { tokio::join!(work(&first, &all), work(&second, &all)) };
    tokio::time::timeout(Duration::from_secs(120), both).await.expect("all pages are found");
    let mut all = all.into_inner().expect("no worker panics");
    all.sort_unstable();
    assert_eq!(all, (1..=PAGES).collect::<Vec<_>>());
    assert!(server.queued("job").is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarts_again_and_again_loses_no_page() {
    let mut server = Server::start().without_pauses();
    let (first, second) = (join(&server), join(&server));
    first.push(vec![page(1)]).await.expect("push");
    let all = Mutex::new(Vec::new());
    let restarts = async {
        loop {
            let done = all.lock().expect("no worker panics").len();
            if done >= PAGES as usize {
                return;
            }
            tokio::time::sleep(Duration::from_millis(60)).await;
            server.restart();
        }
    };
    let both = async { tokio::join!(work(&first, &all), work(&second, &all), restarts) };
    tokio::time::timeout(Duration::from_secs(120), both).await.expect("all pages are found");
    let all: BTreeSet<u32> = all.into_inner().expect("no worker panics").into_iter().collect();
    assert_eq!(all, (1..=PAGES).collect());
}
