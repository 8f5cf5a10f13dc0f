//! What two nodes may do to one partition.

use std::time::Duration;

use huntsman_cluster::{ClusterSettings, Durability, ErrorKind, Operator, SharedFrontier};
use huntsman_crawler::{
    End, Frontier, HostKey, KnownTarget, Order, Request, SavedPoliteness, Settled, Timestamp,
};
use huntsman_testkit::redis::{Counted, Cuts, Proxy, Server};

const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

pub(crate) fn settings(url: &str) -> ClusterSettings {
    let settings: ClusterSettings = url.parse().expect("the address of a server");
    // On a busy machine a server may take longer than a user would wait for it.
    settings.job("job").partitions(1).durability(Durability::Ack).handover(Duration::from_secs(60))
}

pub(crate) fn request(url: &str) -> Request {
    let mut request = Request::parse(url).expect("a URL");
    let (host, fingerprint) = (request.host(), request.fingerprint());
    request.assign_slot(host);
    request.assign_fingerprint(fingerprint);
    request
}

fn join(settings: ClusterSettings) -> SharedFrontier {
    SharedFrontier::join(settings, Order::Bfs).expect("the node joins")
}

async fn one(frontier: &SharedFrontier, host: &HostKey) -> huntsman_crawler::Lease {
    frontier.lease(host, 1, NOW).await.expect("lease").leases.pop().expect("the host has due work")
}

fn done(lease: &huntsman_crawler::Lease, children: &[&str]) -> Vec<Settled> {
    let children = children.iter().map(|url| request(url)).collect();
    vec![Settled { lease: lease.id, host: lease.request.host(), end: End::Done, children }]
}

/// Opens the frontier until it owns a partition.
async fn own(frontier: &SharedFrontier) -> Vec<(HostKey, u64)> {
    loop {
        let hosts = frontier.open().await.expect("open");
        if frontier.partitions_owned() > 0 {
            return hosts;
        }
    }
}

/// Cuts the connection after a random number of bytes of the replies, so that the server has done what is sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_replies_were_lost_change_nothing_when_they_are_sent_again() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    for seed in 0..5 {
        println!("seed {seed}");
        let job = settings(&format!("redis://127.0.0.1:{}", proxy.port())).job(format!("job{seed}"));
        let frontier = join(job);
        assert!(frontier.open().await.expect("open").is_empty());
        proxy.cut(Some(Cuts { seed, max_bytes: 900, counted: Counted::Answers }));
        proxy.cut_now();
        let host = HostKey::new("a.example");
        // Unfiltered requests are known by nothing but the number of their push.
        let start: Vec<Request> =
            (0..20).map(|n| request(&format!("http://a.example/{n}")).unfiltered()).collect();
        let pushed = frontier.push(start).await.expect("push");
        assert_eq!((pushed.accepted, pushed.duplicates, frontier.len()), (20, 0, 20));
        let mut settled = 0;
        while frontier.len() > 0 {
            let leased = frontier.lease(&host, 3, NOW).await.expect("lease");
            assert!(!leased.leases.is_empty(), "all requests are due");
            for lease in leased.leases {
                let parent: u32 = lease.request.url.path()[1..].parse().expect("a number");
                let child = request(&format!("http://a.example/{}", parent + 100)).unfiltered();
                let children = if parent < 100 { vec![child] } else { Vec::new() };
                let accepted = children.len() as u64;
                let batch = vec![Settled { lease: lease.id, host: host.clone(), end: End::Done, children }];
                assert_eq!(frontier.settle(batch).await.expect("settle").accepted, accepted);
                settled += 1;
            }
        }
        assert_eq!(settled, 40);
        proxy.cut(None);
    }
    assert!(proxy.count() > 20, "{} cuts are too few to judge", proxy.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_lease_ended_is_fenced_off_and_its_work_is_done_by_another() {
    let server = Server::start();
    // The first node speaks through a proxy, so that it can be cut off.
    let proxy = Proxy::start(server.port());
    let short = Duration::from_millis(600);
    let through = format!("redis://127.0.0.1:{}?patience=0.1&timeout=1", proxy.port());
    let first = join(settings(&through).node("first").lease(short));
    own(&first).await;
    let host = HostKey::new("a.example");
    first.push(vec![request("http://a.example/1"), request("http://a.example/2")]).await.expect("push");
    let held = one(&first, &host).await;
    assert!(first.claim(&host).await.expect("claim"));

    // Both calls of the first node are ready, and its network is gone until the second node has taken over.
    proxy.cut(Some(Cuts { seed: 1, max_bytes: 1, counted: Counted::All }));
    proxy.cut_now();
    let second = join(settings(&server.url()).node("second").lease(short));
    assert_eq!(own(&second).await, [(host.clone(), 2)], "the leased request is work again, in its place");
    assert!(!first.claim(&host).await.expect("claim"), "it starts nothing without a lease");
    proxy.cut(None);

    let pushed = first.settle(done(&held, &["http://a.example/3"])).await.expect("settle");
    assert_eq!((pushed.accepted, pushed.duplicates), (0, 0), "a void lease settles nothing");
    assert!(first.lease(&host, 1, NOW).await.expect("lease").leases.is_empty());
    let again = one(&second, &host).await;
    assert_eq!(again.request.url.path(), "/1");
    let pushed = second.settle(done(&again, &["http://a.example/3"])).await.expect("settle");
    assert_eq!(pushed.accepted, 1, "only the owner's children were stored");
    assert_eq!(second.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_before_another_node_took_over_is_told_as_settled() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let short = Duration::from_millis(600);
    let through = format!("redis://127.0.0.1:{}", proxy.port());
    let first = join(settings(&through).node("first").lease(short));
    own(&first).await;
    let host = HostKey::new("a.example");
    first.push((0..3).map(|n| request(&format!("http://a.example/{n}"))).collect()).await.expect("push");
    // The server knows the script from then on.
    first.settle(done(&one(&first, &host).await, &[])).await.expect("settle");
    let held = one(&first, &host).await;

    // The server settles the lease, and its reply is lost.
    proxy.lose_answers(true);
    let mut operator = Operator::connect(settings(&server.url())).expect("the job exists");
    let takes_over = async {
        while operator.status().expect("its state").settled == 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Nor does anything of the first node arrive until the second one has taken over.
        proxy.cut(Some(Cuts { seed: 1, max_bytes: 1, counted: Counted::All }));
        proxy.cut_now();
        let second = join(settings(&server.url()).node("second").lease(short));
        let hosts = own(&second).await;
        proxy.lose_answers(false);
        proxy.cut(None);
        (second, hosts)
    };
    let (pushed, (second, hosts)) =
        tokio::join!(first.settle(done(&held, &["http://a.example/3"])), takes_over);
    let pushed = pushed.expect("settle");
    assert_eq!((pushed.accepted, pushed.void), (1, 0), "the page is not fetched again");
    assert_eq!(hosts, [(host.clone(), 2)]);
    let leased = second.lease(&host, 3, NOW).await.expect("lease").leases;
    let paths: Vec<&str> = leased.iter().map(|lease| lease.request.url.path()).collect();
    assert_eq!(paths, ["/2", "/3"]);
    // Calls of the second node have numbers of their own.
    let pushed = second.settle(done(&leased[0], &["http://a.example/4", "http://a.example/5"])).await;
    assert_eq!(pushed.expect("settle").accepted, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_name_in_use_is_refused_with_the_time_until_it_is_free() {
    let server = Server::start();
    let first = join(settings(&server.url()).node("n1"));
    let refused = SharedFrontier::join(settings(&server.url()).node("n1"), Order::Bfs);
    let error = refused.expect_err("the name is in use");
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.to_string().contains("\"n1\" is in use"), "{error}");
    drop(first);
    join(settings(&server.url()).node("n1"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_disagree_about_the_job_are_refused() {
    let server = Server::start();
    let _first = join(settings(&server.url()).node("n1"));
    let refused = |settings: ClusterSettings, order| {
        SharedFrontier::join(settings.node("n2"), order).expect_err("it disagrees").to_string()
    };
    let error = refused(settings(&server.url()), Order::Dfs);
    assert!(error.contains("scheduler_order bfs, not dfs"), "{error}");
    let error = refused(settings(&server.url()).durability(Durability::Replica), Order::Bfs);
    assert!(error.contains("--durability ack, not replica"), "{error}");
    let error = refused(settings(&server.url()).partitions(2), Order::Bfs);
    assert!(error.contains("was made with 1 partitions, not 2"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_to_a_known_url_of_another_partition_is_given_back_as_known() {
    let server = Server::start();
    let frontier = join(settings(&server.url()).partitions(64));
    while frontier.partitions_owned() < 64 {
        frontier.open().await.expect("open");
    }
    let (from, to) = (HostKey::new("a.example"), HostKey::new("b.example"));
    let start = ["http://a.example/known", "http://a.example/new", "http://b.example/1"].map(request);
    frontier.push(start.to_vec()).await.expect("push");
    let known = one(&frontier, &to).await;
    assert!(known.request.extensions.get::<KnownTarget>().is_none());
    frontier.settle(done(&known, &[])).await.expect("settle");
    for target in ["http://b.example/1", "http://b.example/2"] {
        let lease = one(&frontier, &from).await;
        let end = End::Reschedule(Box::new(request(target)));
        let settled = Settled { lease: lease.id, host: from.clone(), end, children: Vec::new() };
        assert!(frontier.settle(vec![settled]).await.expect("settle").refused.is_empty());
    }
    let mut found = Vec::new();
    while found.len() < 2 {
        for lease in frontier.lease(&to, 2, NOW).await.expect("lease").leases {
            let is_known = lease.request.extensions.get::<KnownTarget>().is_some();
            found.push((lease.request.url.path().to_owned(), is_known));
            frontier.settle(done(&lease, &[])).await.expect("settle");
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(found, [("/1".to_owned(), true), ("/2".to_owned(), false)]);
    assert_eq!(frontier.len(), 0);
}

#[test]
fn a_server_that_evicts_keys_or_keeps_too_little_is_refused() {
    let evicts = Server::builder().setting("maxmemory-policy", "allkeys-lru").start();
    let refused = |server: &Server, durability| {
        let settings = settings(&server.url()).durability(durability);
        SharedFrontier::join(settings, Order::Bfs).expect_err("the server is refused").to_string()
    };
    let error = refused(&evicts, Durability::Ack);
    assert!(error.contains("maxmemory-policy noeviction"), "{error}");
    let forgets = Server::start();
    let error = refused(&forgets, Durability::Fsync);
    assert!(error.contains("appendonly yes"), "{error}");
    let late = Server::builder().setting("appendonly", "yes").start();
    let error = refused(&late, Durability::Fsync);
    assert!(error.contains("appendfsync always"), "{error}");
    let durable = Server::builder().durable().start();
    SharedFrontier::join(settings(&durable.url()).durability(Durability::Fsync), Order::Bfs)
        .expect("it joins");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lost_its_scripts_gets_them_again() {
    let server = Server::start();
    let frontier = join(settings(&server.url()));
    own(&frontier).await;
    server.cli(&["SCRIPT", "FLUSH"]);
    let pushed = frontier.push(vec![request("http://a.example/1")]).await.expect("push");
    assert_eq!(pushed.accepted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_cut_off_gives_up_its_partitions_without_an_answer() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let through = format!("redis://127.0.0.1:{}", proxy.port());
    let frontier = join(settings(&through).lease(Duration::from_secs(3)));
    own(&frontier).await;
    proxy.cut(Some(Cuts { seed: 1, max_bytes: 1, counted: Counted::All }));
    proxy.cut_now();
    let given_up = async {
        while frontier.partitions_owned() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), given_up).await.expect("it gives up without an answer");
    proxy.cut(None);
    while frontier.partitions_owned() == 0 {
        frontier.open().await.expect("open");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_borrows_a_host_takes_turns_with_its_owner() {
    const DELAY: Duration = Duration::from_millis(50);
    const TURNS: u32 = 10;
    let server = Server::start();
    let owner = join(settings(&server.url()).node("owner").lease(Duration::from_secs(3)));
    own(&owner).await;
    let other = join(settings(&server.url()).node("other").lease(Duration::from_secs(3)));
    other.open().await.expect("open");
    let host = HostKey::new("a.example");
    // As long as nobody else asks, the owner does not ask the server: the delay is the engine's matter.
    for _ in 0..TURNS {
        owner.turn(&host, DELAY).await.expect("a turn");
    }
    assert_eq!(server.cli(&["EXISTS", "hm:{job.0}:m"]).trim_end(), "0");

    other.turn(&host, DELAY).await.expect("a turn");
    let (number, heard) = ("marks", "heard");
    let field = |name: &str| server.cli(&["HGET", "hm:{job.0}:own", name]).trim_end().to_owned();
    assert_eq!(field(number), field(heard), "the owner had heard of it before");
    let begun = std::time::Instant::now();
    let turns = async |node: &SharedFrontier| {
        for _ in 0..TURNS {
            node.turn(&host, DELAY).await.expect("a turn");
        }
    };
    tokio::join!(turns(&owner), turns(&other));
    assert!(
        begun.elapsed() >= DELAY * (2 * TURNS - 1),
        "no two turns are closer than the delay: {:?}",
        begun.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_learnt_of_a_host_counts_for_those_who_borrow_it() {
    let server = Server::start();
    let owner = join(settings(&server.url()).node("owner").lease(Duration::from_secs(3)));
    own(&owner).await;
    let host = HostKey::new("a.example");
    let learnt = SavedPoliteness { crawl_delay: Duration::from_millis(300), ..SavedPoliteness::default() };
    owner.learnt(vec![(host.clone(), Some(learnt))]);
    while server.cli(&["HSTRLEN", "hm:{job.0}:pace", "a.example"]).trim_end() != "32" {
        tokio::task::yield_now().await;
    }
    let other = join(settings(&server.url()).node("other").lease(Duration::from_secs(3)));
    let begun = std::time::Instant::now();
    for _ in 0..2 {
        other.turn(&host, Duration::ZERO).await.expect("a turn");
    }
    assert!(begun.elapsed() >= Duration::from_millis(600), "the Crawl-delay: {:?}", begun.elapsed());
    drop(owner);
    // Without an owner nobody has to hear of the mark.
    other.turn(&HostKey::new("b.example"), Duration::ZERO).await.expect("a turn");
}
