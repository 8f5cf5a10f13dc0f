//! Tests with connections that break and servers that stop at any moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use huntsman_dedup::redis::{Layout, RedisIndex};
use huntsman_detect::near::{Document, IndexErrorKind, NearIndex};
use huntsman_detect::simhash::SimHash;
use huntsman_testkit::redis::{Counted, Cuts, Proxy, Server};

use super::model::{Model, Source, identity, language, open, settings, steps_without_end};

const LAYOUTS: [Layout; 3] = Layout::ALL;

#[test]
fn cuts_at_any_byte_lose_and_double_nothing() {
    // Each waits between its attempts to connect again, so all run at once.
    std::thread::scope(|scope| {
        for (layout, seed) in LAYOUTS.into_iter().zip(21..) {
            // The log layout sends less, so connections are cut after fewer bytes, to get as many cuts.
            let less = if layout == Layout::Log { 10 } else { 1 };
            for (most_bytes, counted) in
                [(15_000, Counted::All), (60_000, Counted::All), (8000, Counted::Answers)]
            {
                scope.spawn(move || survive(layout, Cuts { seed, max_bytes: most_bytes / less, counted }));
            }
        }
    });
}

/// Takes random steps over connections that are cut all the time, and compares the index with the model.
fn survive(layout: Layout, cuts: Cuts) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let settings = settings(&url, layout).patience(Duration::from_secs(60));
    let index = RedisIndex::open(settings, identity(3)).expect("an index");
    println!("{layout}: {cuts:?}");
    proxy.cut(Some(cuts));
    proxy.cut_now();
    let (mut source, mut model) = (Source::new(cuts.seed, 40), Model::default());
    steps_without_end(&index, &mut model, &mut source, 25);
    assert!(proxy.count() > 5, "{} cuts", proxy.count());
    proxy.cut(None);
    model.check(&index, &source.queries(50), "at the end");
}

#[test]
fn an_answer_that_is_lost_appends_nothing_twice() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let index = open(&url, Layout::Log, 3);
    proxy.cut(Some(Cuts { seed: 27, max_bytes: 800, counted: Counted::Answers }));
    proxy.cut_now();
    let mut source = Source::new(27, 1);
    let language = language("hi");
    for batch in 0..300_u64 {
        let ids = batch * 4..(batch + 1) * 4;
        let documents = ids.map(|id| Document { language, id: id.into(), hash: source.hash() });
        index.insert(&documents.collect::<Vec<_>>()).expect("an insert");
    }
    assert!(proxy.count() > 10, "{} cuts", proxy.count());
    assert_eq!(server.cli(&["STRLEN", "sh:{HINDI}:log:0"]).trim(), (300 * 4 * 24).to_string());
}

#[test]
fn a_server_that_is_killed_and_starts_again_has_everything_once() {
    for (layout, seed) in LAYOUTS.into_iter().zip(31..) {
        let mut server = Server::builder().durable().start();
        let settings = settings(&server.url(), layout).patience(Duration::from_secs(120));
        let index = RedisIndex::open(settings, identity(3)).expect("an index");
        let (mut source, mut model) = (Source::new(seed, 3000), Model::default());
        let batches: Vec<Vec<Document>> = (0..8).map(|_| source.documents(250)).collect();
        let is_enough = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (batches, index, is_enough) = (&batches, &index, &is_enough);
            let writer = scope.spawn(move || {
                loop {
                    let is_last = is_enough.load(Ordering::SeqCst);
                    batches.iter().for_each(|batch| index.insert(batch).expect("an insert"));
                    if is_last {
                        return;
                    }
                }
            });
            // Each kill hits some moment of the work.
            for _ in 0..5 {
                std::thread::sleep(Duration::from_millis(source.below(400)));
                server.kill();
                server.start_again();
            }
            is_enough.store(true, Ordering::SeqCst);
            writer.join().expect("no panic");
        });
        batches.iter().for_each(|batch| model.insert(batch));
        model.check(&index, &source.queries(50), layout.name());
        model.check(&open(&server.url(), layout, 3), &source.queries(50), "another reader");
    }
}

#[test]
fn a_server_that_stays_away_is_an_error_and_the_same_batch_mends_it() {
    for (layout, seed) in LAYOUTS.into_iter().zip(41..) {
        let mut server = Server::builder().durable().start();
        let impatient = settings(&server.url(), layout).patience(Duration::from_millis(200));
        let index = RedisIndex::open(impatient, identity(3)).expect("an index");
        let (mut source, mut model) = (Source::new(seed, 500), Model::default());
        for _ in 0..3 {
            let batch = source.documents(200);
            server.kill();
            let error = index.insert(&batch).expect_err("no server");
            assert_eq!(error.kind(), IndexErrorKind::Unavailable);
            assert!(error.to_string().contains("run the same again"), "{error}");
            server.start_again();
            index.insert(&batch).expect("the same again");
            model.insert(&batch);
        }
        model.check(&index, &source.queries(50), layout.name());
    }
}

#[test]
fn a_batch_that_was_done_in_part_is_completed_by_doing_it_again() {
    // Each cut acts as if the process had been killed after that many bytes: a new process does the same work again from the start.
    for (layout, first_seed) in LAYOUTS.into_iter().zip([51, 61, 111]) {
        let server = Server::start();
        let (mut source, mut model) = (Source::new(first_seed, 60), Model::default());
        for seed in first_seed..first_seed + 8 {
            let batch = source.documents(100);
            let proxy = Proxy::start(server.port());
            let url = format!("redis://127.0.0.1:{}", proxy.port());
            let index = RedisIndex::open(settings(&url, layout).patience(Duration::ZERO), identity(3));
            let index = index.expect("an index");
            proxy.cut(Some(Cuts { seed, max_bytes: 40_000, counted: Counted::All }));
            proxy.cut_now();
            for _ in 0..3 {
                let _ = index.insert(&batch);
            }
            drop((index, proxy));
            let index = open(&server.url(), layout, 3);
            index.insert(&batch).expect("an insert");
            model.insert(&batch);
            model.check(&index, &source.queries(20), layout.name());
        }
    }
}

#[test]
fn a_full_server_says_so_and_room_mends_it() {
    let server = Server::builder().setting("maxmemory", "3mb").start();
    for layout in LAYOUTS {
        server.cli(&["FLUSHALL"]);
        // A log takes so little memory that the limit must be lower.
        let room = if layout == Layout::Log { "1mb" } else { "3mb" };
        server.cli(&["CONFIG", "SET", "maxmemory", room]);
        let index = open(&server.url(), layout, 3);
        let mut source = Source::new(71, 1_000_000);
        let documents = source.documents(40_000);
        let error = index.insert(&documents).expect_err("no room");
        assert_eq!(error.kind(), IndexErrorKind::Full);
        assert!(error.to_string().contains("raise its maxmemory"), "{error}");
        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        index.insert(&documents).expect("room");
        let mut model = Model::default();
        model.insert(&documents);
        assert_eq!(index.stats().expect("stats").documents(), model.0.len() as u64);
    }
}

#[test]
fn a_replica_takes_no_writes_and_says_so() {
    let master = Server::start();
    let replica = Server::builder().setting("replicaof", &format!("127.0.0.1 {}", master.port())).start();
    let document = Document { language: language("hi"), id: 1.into(), hash: SimHash(1) };
    for layout in LAYOUTS {
        // It may be about to become a master, and is given time for that.
        let impatient = settings(&replica.url(), layout).patience(Duration::from_millis(500));
        let index = RedisIndex::open(impatient, identity(3)).expect("an index");
        let error = index.insert(std::slice::from_ref(&document)).expect_err("a replica");
        assert_eq!(error.kind(), IndexErrorKind::Refused);
        assert!(error.to_string().contains("replicates"), "{error}");
    }
}

#[test]
fn where_no_server_is_there_is_no_index() {
    let mut server = Server::start();
    let url = server.url();
    server.kill();
    let error = RedisIndex::open(settings(&url, Layout::Compact), identity(3)).expect_err("no server");
    assert_eq!(error.kind(), IndexErrorKind::Unavailable);
    assert!(error.to_string().contains(&url) && error.to_string().contains("start the server"), "{error}");
    // Another kind of server listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let url = format!("redis://127.0.0.1:{port}");
    let error = RedisIndex::open(settings(&url, Layout::Compact), identity(3)).expect_err("no Redis");
    assert_eq!(error.kind(), IndexErrorKind::Refused);
    assert!(error.to_string().contains("whether a Redis server listens there"), "{error}");
}
