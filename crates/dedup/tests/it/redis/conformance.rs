//! Runs the tests for all indexes on each layout.

use std::ops::ControlFlow;
use std::path::Path;

use huntsman_dedup::redis::{Layout, RedisIndex};
use huntsman_detect::near::{
    DocId, Document, Identity, IndexError, IndexStats, Language, NearIndex, NearMatch,
};
use huntsman_detect::simhash::SimHash;
use huntsman_testkit::conformance::near_index::{self as suite, Opened};
use huntsman_testkit::near_index_conformance;
use huntsman_testkit::redis::Server;

use super::model::settings;

/// An index, and the server that holds it and is stopped with it.
#[derive(Debug)]
struct Served {
    index: RedisIndex,
    _server: Server,
}

impl NearIndex for Served {
    fn identity(&self) -> &Identity {
        self.index.identity()
    }

    fn near(&self, queries: &[(Language, SimHash)]) -> Result<Vec<Vec<NearMatch>>, IndexError> {
        self.index.near(queries)
    }

    fn get(&self, language: &Language, ids: &[DocId]) -> Result<Vec<Option<SimHash>>, IndexError> {
        self.index.get(language, ids)
    }

    fn insert(&self, documents: &[Document]) -> Result<(), IndexError> {
        self.index.insert(documents)
    }

    fn remove(&self, language: &Language, ids: &[DocId]) -> Result<usize, IndexError> {
        self.index.remove(language, ids)
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        self.index.stats()
    }

    fn for_each(&self, each: &mut dyn FnMut(&Document) -> ControlFlow<()>) -> Result<(), IndexError> {
        self.index.for_each(each)
    }

    fn flush(&self) -> Result<(), IndexError> {
        self.index.flush()
    }
}

fn open(server: &Server, layout: Layout, identity: Identity) -> Result<RedisIndex, IndexError> {
    RedisIndex::open(settings(&server.url(), layout), identity)
}

fn serve(layout: Layout, identity: Identity) -> Opened {
    let server = Server::start();
    Ok(Box::new(Served { index: open(&server, layout, identity)?, _server: server }))
}

fn compact(_: &Path, identity: Identity) -> Opened {
    serve(Layout::Compact, identity)
}

fn seed(_: &Path, identity: Identity) -> Opened {
    serve(Layout::Seed, identity)
}

fn log(_: &Path, identity: Identity) -> Opened {
    serve(Layout::Log, identity)
}

near_index_conformance!(compact_layout, compact);
near_index_conformance!(seed_layout, seed);
near_index_conformance!(log_layout, log);

// The rules for persistent indexes. Unlike in a directory, an index can be opened with another k, because the stored data serves all.
#[test]
fn what_was_done_is_there_after_reopening() {
    for layout in Layout::ALL {
        for k in [3, 7] {
            let server = Server::start();
            let open = |identity| -> Opened { Ok(Box::new(open(&server, layout, identity)?)) };
            suite::what_was_done_is_there_after_reopening(&open, k);
        }
    }
}

#[test]
fn random_steps_with_reopening_equal_a_naive_model() {
    for layout in Layout::ALL {
        for (seed, k) in [(0, 3), (1, 7)] {
            let server = Server::start();
            let open = |identity| -> Opened { Ok(Box::new(open(&server, layout, identity)?)) };
            suite::random_steps_equal_a_naive_model(&open, k, seed, true);
        }
    }
}
