//! Tests of indexes in a cluster of three nodes.

use std::cell::Cell;

use huntsman_dedup::redis::{HashTag, Layout, RedisIndex};
use huntsman_detect::near::{IndexErrorKind, NearIndex};
use huntsman_testkit::redis::Cluster;

use super::model::{Model, Source, identity, random_steps, settings};

#[test]
fn a_cluster_is_the_naive_index_with_every_tag() {
    let cluster = Cluster::start(3);
    let flush = || cluster.nodes().iter().for_each(|node| drop(node.cli(&["FLUSHALL"])));
    for (tag, seed) in HashTag::ALL.into_iter().zip(91..) {
        flush();
        let settings = settings(&cluster.url(), Layout::Compact).tag(tag);
        let index = RedisIndex::open(settings, identity(3)).expect("an index");
        random_steps(&index, &mut Model::default(), &mut Source::new(seed, 40), 15);
        index.flush().expect("a flush");
        let keys: Vec<usize> = cluster
            .nodes()
            .iter()
            .map(|node| node.cli(&["DBSIZE"]).trim().parse().expect("a number"))
            .collect();
        println!("{tag}: {keys:?} keys");
        if tag == HashTag::Bucket {
            assert!(keys.iter().all(|count| *count > keys.iter().sum::<usize>() / 5), "{keys:?}");
        }
    }
    flush();
    let index = RedisIndex::open(settings(&cluster.url(), Layout::Seed), identity(3)).expect("an index");
    random_steps(&index, &mut Model::default(), &mut Source::new(95, 40), 15);
    assert!(index.used_memory().expect("memory").is_some_and(|bytes| bytes > 3_000_000));
    let error = RedisIndex::open(settings(&format!("{}/1", cluster.url()), Layout::Seed), identity(3));
    let error = error.expect_err("a cluster has one database");
    assert_eq!(error.kind(), IndexErrorKind::Input);
}

#[test]
fn slots_that_move_are_followed() {
    let cluster = Cluster::start(3);
    for (layout, seed) in [Layout::Compact, Layout::Seed].into_iter().zip(96..) {
        let index = RedisIndex::open(settings(&cluster.url(), layout), identity(3)).expect("an index");
        let (mut source, mut model) = (Source::new(seed, 40), Model::default());
        random_steps(&index, &mut model, &mut source, 3);
        let key = if layout == Layout::Seed { "simhashes:HINDI" } else { "sh:{HINDI}:meta" };
        let slot: u16 = cluster.nodes()[0].cli(&["CLUSTER", "KEYSLOT", key]).trim().parse().expect("a slot");
        for to in [0, 1, 2] {
            let owner = cluster.nodes().iter().position(|node| {
                let keys = node.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]);
                keys.trim() != "0"
            });
            if owner == Some(to) {
                continue;
            }
            let was_between = Cell::new(false);
            cluster.move_slot(slot, to, || {
                was_between.set(true);
                random_steps(&index, &mut model, &mut source, 2);
            });
            assert!(was_between.get());
            random_steps(&index, &mut model, &mut source, 2);
        }
    }
}

#[test]
fn a_lost_node_is_waited_for_and_then_reported() {
    let mut cluster = Cluster::start(3);
    let settings = settings(&cluster.url(), Layout::Seed).patience(std::time::Duration::from_millis(500));
    let index = RedisIndex::open(settings, identity(3)).expect("an index");
    let (mut source, mut model) = (Source::new(98, 40), Model::default());
    random_steps(&index, &mut model, &mut source, 2);
    cluster.kill(1);
    let error = index.near(&source.queries(50)).expect_err("a third of the keys is gone");
    assert_eq!(error.kind(), IndexErrorKind::Unavailable);
    assert!(error.to_string().contains("run the same again"), "{error}");
}
