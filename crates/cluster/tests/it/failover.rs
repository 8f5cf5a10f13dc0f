//! A queue whose server dies and is replaced by its replica, or has no memory left.

use std::time::{Duration, Instant};

use huntsman_cluster::{Durability, ErrorKind, Operator, SharedFrontier};
use huntsman_crawler::{Frontier, Order};
use huntsman_testkit::redis::{Cluster, Proxy, Server};

use super::nodes::{PAGES, page, work};
use super::scripts::{request, settings};

/// Waits until something holds of a server.
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: it takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn replica_of(master: &Server) -> Server {
    let port = master.port().to_string();
    let replica = Server::builder().setting("replicaof", &format!("127.0.0.1 {port}")).start();
    until("the replica follows", || replica.cli(&["INFO", "replication"]).contains("master_link_status:up"));
    replica
}

fn offset(server: &Server) -> u64 {
    let info = server.cli(&["INFO", "replication"]);
    let line = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    line.and_then(|offset| offset.trim().parse().ok()).expect("a server tells its offset")
}

/// Two nodes do all pages while the master of the queue is killed. `dies` returns what replaces it.
async fn pages_are_done_once_while<T: Send + 'static>(
    frontier_at: &str,
    dies: impl FnOnce() -> T + Send + 'static,
) {
    let settings = settings(frontier_at).partitions(16).durability(Durability::Replica);
    let settings = settings.lease(Duration::from_secs(5));
    let join = |name: &str| SharedFrontier::join(settings.clone().node(name), Order::Bfs).expect("it joins");
    let (first, second) = (join("first"), join("second"));
    first.open().await.expect("open");
    second.open().await.expect("open");
    first.push(vec![page(1)]).await.expect("push");
    let all = std::sync::Mutex::new(Vec::new());
    let accident = async {
        // The servers need the processors that a loop without a pause would take.
        while all.lock().expect("no worker panics").len() < PAGES as usize / 3 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::task::spawn_blocking(dies).await.expect("the server is replaced")
    };
    let everything = async { tokio::join!(work(&first, &all), work(&second, &all), accident) };
    // The runner stops a test after two minutes, and would not tell how many pages were found.
    let done = tokio::time::timeout(Duration::from_secs(90), everything).await;
    let (_, _, servers) =
        done.unwrap_or_else(|_| panic!("{} of {PAGES} pages", all.lock().expect("no worker panics").len()));
    let mut all = all.into_inner().expect("no worker panics");
    all.sort_unstable();
    assert_eq!(all, (1..=PAGES).collect::<Vec<_>>(), "each page is settled once, and none is lost");
    let status = Operator::connect(settings).expect("the job exists").status().expect("its state");
    assert_eq!((status.queued, status.leased, status.outbox), (0, 0, 0));
    assert_eq!(status.settled, u64::from(PAGES));
    // Nodes that leave wait for servers that do not answer.
    drop((first, second));
    drop(servers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_promoted_replica_has_all_that_was_settled() {
    let mut master = Server::start();
    let replicas = [replica_of(&master), replica_of(&master)];
    let proxy = Proxy::start(master.port());
    let address = format!("redis://127.0.0.1:{}", proxy.port());
    let dies = move || {
        master.kill();
        // As a sentinel does, it takes the one that has the most.
        let [a, b] = &replicas;
        let (new, other) = if offset(a) >= offset(b) { (a, b) } else { (b, a) };
        // The address leads there before it is a master.
        proxy.forward_to(new.port());
        new.cli(&["REPLICAOF", "NO", "ONE"]);
        other.cli(&["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
        (proxy, replicas)
    };
    pages_are_done_once_while(&address, dies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_replaces_a_master_and_the_queue_goes_on() {
    let mut cluster = Cluster::replicated(3);
    // The first address may be the one that dies.
    let address = cluster.url();
    pages_are_done_once_while(&address, move || {
        cluster.kill(1);
        cluster.wait_until_replaced(1);
        // The new master needs a replica for what is done from now on. As long as another node does not know the new one, that node may
        // take the old one, which has lost all data, for the master.
        cluster.start_again(1);
        cluster
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_replica_nothing_counts_as_done() {
    let master = Server::start();
    let settings = settings(&format!("{}?patience=1", master.url())).durability(Durability::Replica);
    let refused = SharedFrontier::join(settings.clone(), Order::Bfs).expect_err("it has no replica");
    assert!(refused.to_string().contains("no replica"), "{refused}");
    let mut replica = replica_of(&master);
    let frontier = SharedFrontier::join(settings, Order::Bfs).expect("it joins");
    frontier.open().await.expect("open");
    frontier.push(vec![request("http://a.example/1")]).await.expect("push");
    replica.kill();
    until("the master has noticed", || master.cli(&["INFO", "replication"]).contains("connected_slaves:0"));
    let error = frontier.push(vec![request("http://a.example/2")]).await.expect_err("nothing has it");
    assert!(error.to_string().contains("no replica has the last changes"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_memory_is_told_and_the_queue_goes_on_when_it_has_more() {
    let server = Server::start();
    let job = settings(&server.url()).lease(Duration::from_millis(900));
    let frontier = SharedFrontier::join(job.clone(), Order::Bfs).expect("it joins");
    frontier.open().await.expect("open");
    frontier.push((0..100).map(|n| request(&format!("http://a.example/{n}"))).collect()).await.expect("push");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = frontier.push(vec![request("http://a.example/more")]).await.expect_err("it is full");
    assert!(error.to_string().contains("raise its maxmemory"), "{error}");
    drop(frontier);
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let again = loop {
        // The name is free when the lease has ended.
        match SharedFrontier::join(job.clone(), Order::Bfs) {
            Ok(frontier) => break frontier,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Input, "{error}"),
        }
    };
    while again.partitions_owned() == 0 {
        again.open().await.expect("open");
    }
    assert_eq!(again.len(), 100);
    let pushed = again.push(vec![request("http://a.example/more")]).await.expect("push");
    assert_eq!(pushed.accepted, 1, "what was refused was not half done");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_soon_though_its_server_is_gone_and_says_what_it_leaves_behind() {
    let mut server = Server::start();
    let patient = settings(&format!("{}?patience=3600", server.url())).partitions(3).node("n1");
    let frontier = SharedFrontier::join(patient.handover(Duration::from_millis(200)), Order::Bfs);
    let frontier = frontier.expect("it joins");
    while frontier.partitions_owned() < 3 {
        frontier.open().await.expect("open");
    }
    server.kill();
    // With its patience it would wait for an hour.
    let left = tokio::task::spawn_blocking(move || frontier.leave());
    let left = tokio::time::timeout(Duration::from_secs(120), left).await.expect("it does not wait for long");
    let error = left.expect("no panic").expect_err("the server is gone");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let message = error.to_string();
    assert!(
        message.contains("3 partitions of the node \"n1\"") && message.contains("leases end"),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_leaves_has_given_back_everything() {
    let server = Server::start();
    let join = || SharedFrontier::join(settings(&server.url()).partitions(3).node("n1"), Order::Bfs);
    let frontier = join().expect("it joins");
    while frontier.partitions_owned() < 3 {
        frontier.open().await.expect("open");
    }
    frontier.leave().expect("the server answers");
    let again = join().expect("the name is free at once");
    again.open().await.expect("open");
    assert_eq!(again.partitions_owned(), 3, "and so are the partitions");
}
