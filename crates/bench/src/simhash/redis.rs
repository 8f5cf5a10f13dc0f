//! The cost of indexes in a Redis server.

use std::collections::BTreeMap;

use huntsman::dedup::redis::{Layout, RedisIndex, RedisSettings};
use huntsman::detect::near::{Document, Identity, Language, NearIndex};
use huntsman::detect::simhash::{Features, SimHash};
use huntsman_cli::OrFailure;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::redis_server::RedisServer;
use huntsman_cli::render::{count, say};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::args::SimhashArgs;
use crate::clock::Watch;
use crate::sheet::{Sheet, figure, figure_or_none};

/// Indexes of the same number of documents, of one language each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Redis {
    pub(super) documents: u64,
    pub(super) indexes: Vec<RedisCost>,
}

/// An index of one layout and one kind of ids.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RedisCost {
    pub(super) layout: String,
    /// `below 2^31` or `of 16 digits`.
    pub(super) ids: String,
    /// Growth of the server's memory per document.
    pub(super) bytes_per_document: f64,
    /// The bytes that the index reports, by purpose.
    pub(super) parts: BTreeMap<String, f64>,
    /// Insertions in batches of 4,096.
    pub(super) inserts_per_s: f64,
    /// Queries with k = 3 in batches of 1,000.
    pub(super) queries_per_s: f64,
    /// Single queries with k = 3.
    pub(super) single_queries_per_s: f64,
    /// Queries with k = 7 in batches of 1,000.
    pub(super) wide_queries_per_s: f64,
    /// Microseconds of this process's processor time per query, in batches with k = 3.
    pub(super) own_core_us: f64,
    /// The same for the server, if it was started here and the system reports it.
    pub(super) server_core_us: Option<f64>,
    /// Seconds until an existing index is open.
    pub(super) open_s: f64,
}

/// Kinds of ids: their name and the smallest id.
const IDS: [(&str, u64); 2] = [("below 2^31", 1_000_000_000), ("of 16 digits", 1_000_000_000_000_000)];

fn own_server() -> Outcome<RedisServer> {
    RedisServer::start().map_err(|mut failure| {
        failure.message.push_str("; or name a server with --redis URL");
        failure
    })
}

/// Microseconds of processor time that a server has used, from proc(5) in steps of 10 ms.
fn core_us(server: &RedisServer) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.id())).ok()?;
    let times = stat.rsplit(')').next()?.split_ascii_whitespace().skip(11).take(2);
    Some(times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10_000.0)
}

pub(super) fn run(args: &SimhashArgs) -> Outcome<Redis> {
    let url = args.redis.as_ref().and_then(Option::as_ref);
    let mut indexes = Vec::new();
    for layout in Layout::ALL {
        for (number, (ids, first)) in IDS.into_iter().enumerate() {
            say(&format!("redis: {} documents, {layout}, ids {ids}", count(args.redis_documents)));
            let server = if url.is_none() { Some(own_server()?) } else { None };
            let url = server.as_ref().map_or_else(|| url.cloned().unwrap_or_default(), RedisServer::url);
            let settings = url.parse::<RedisSettings>().or_failure()?;
            let settings = match std::env::var("HUNTSMAN_REDIS_PASSWORD") {
                Ok(password) if server.is_none() => settings.password(password),
                _ => settings,
            };
            let settings = settings.layout(layout).design_size(args.redis_documents);
            let language = Language::parse(&format!("BENCH-{layout}-{number}"));
            let language = language.map_err(|_| Failure::crawl("a layout has no name"))?;
            let cost = measure(args, &settings, language, first, server.as_ref())?;
            indexes.push(RedisCost { layout: layout.to_string(), ids: ids.to_owned(), ..cost });
        }
    }
    Ok(Redis { documents: args.redis_documents, indexes })
}

fn measure(
    args: &SimhashArgs,
    settings: &RedisSettings,
    language: Language,
    first_id: u64,
    server: Option<&RedisServer>,
) -> Outcome<RedisCost> {
    let open = |k| {
        let identity = Identity::new(k, Features::default()).or_failure()?;
        RedisIndex::open(settings.clone(), identity).or_failure()
    };
    let index = open(3)?;
    if index.stats().or_failure()?.languages.contains_key(&language) {
        return Err(Failure::usage(format!(
            "--redis {}: there are documents of an earlier run ({language}); name an empty database",
            settings.address()
        )));
    }
    let memory = || {
        let memory = index.used_memory().or_failure()?;
        memory.map(|bytes| bytes as f64).ok_or_else(|| {
            Failure::usage(format!("--redis {}: its user may not ask for INFO", settings.address()))
        })
    };
    let documents = args.redis_documents;
    let (empty, mut random) = (memory()?, Xoshiro256PlusPlus::seed_from_u64(args.seed));
    let (mut hashes, watch) = (Vec::new(), Watch::start());
    for start in (0..documents).step_by(4_096) {
        let batch: Vec<Document> = (start..documents.min(start + 4_096))
            .map(|id| Document { language, id: (first_id + id * 7).into(), hash: SimHash(random.random()) })
            .collect();
        hashes.extend(batch.iter().map(|document| document.hash));
        index.insert(&batch).or_failure()?;
    }
    let inserts_per_s = documents as f64 / watch.seconds();
    let bytes_per_document = (memory()? - empty) / documents as f64;
    let stats = index.stats().or_failure()?;
    let of_language = stats.languages.get(&language).map(|language| &language.bytes);
    let parts = stats.bytes.iter().chain(of_language.into_iter().flatten());
    let parts = parts.map(|(part, bytes)| ((*part).to_owned(), *bytes as f64 / documents as f64)).collect();
    // Half of the queried fingerprints are stored, at a distance of two bits.
    let mut queries = |number: usize| -> Vec<(Language, SimHash)> {
        let mut query = || match random.random_bool(0.5) {
            true => SimHash(hashes[random.random_range(0..hashes.len())].0 ^ 0b101),
            false => SimHash(random.random()),
        };
        (0..number).map(|_| (language, query())).collect()
    };
    // A small index is measured with few queries.
    let rounds = if documents < 10_000 { 1 } else { 5 };
    let batch_size = (documents as usize / 10).min(1_000);
    // The best rate of the rounds, and this process's processor time per query over all of them.
    let mut rate = |index: &RedisIndex, batch: usize, batches: usize| {
        let (mut best, mut core_s) = (0_f64, 0.0);
        for _ in 0..rounds {
            let queries = queries(batch * batches);
            let watch = Watch::start();
            for queries in queries.chunks(batch) {
                index.near(queries).or_failure()?;
            }
            best = best.max(queries.len() as f64 / watch.seconds());
            core_s += watch.core_seconds();
        }
        Outcome::Ok((best, core_s * 1e6 / (rounds * batch * batches) as f64))
    };
    let before = server.and_then(core_us);
    let (queries_per_s, own_core_us) = rate(&index, batch_size, 4)?;
    let after = server.and_then(core_us);
    let server_core_us =
        after.zip(before).map(|(after, before)| (after - before) / (rounds * batch_size * 4) as f64);
    let (single_queries_per_s, _) = rate(&index, 1, batch_size)?;
    let watch = Watch::start();
    let wide = open(7)?;
    let open_s = watch.seconds();
    let (wide_queries_per_s, _) = rate(&wide, batch_size, 1)?;
    Ok(RedisCost {
        layout: String::new(),
        ids: String::new(),
        bytes_per_document,
        parts,
        inserts_per_s,
        queries_per_s,
        single_queries_per_s,
        wide_queries_per_s,
        own_core_us,
        server_core_us,
        open_s,
    })
}

impl Redis {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::new(
            format!("Redis server, {} documents of one language", count(self.documents)),
            [
                "layout",
                "B a document",
                "inserts/s",
                "queries/s, k = 3",
                "one by one",
                "k = 7",
                "us of a core here",
                "in the server",
                "open s",
            ],
        );
        for of in &self.indexes {
            let rate = |rate: f64| count(rate as u64);
            sheet.row([
                format!("{}, ids {}", of.layout, of.ids),
                figure(of.bytes_per_document),
                rate(of.inserts_per_s),
                rate(of.queries_per_s),
                rate(of.single_queries_per_s),
                rate(of.wide_queries_per_s),
                figure(of.own_core_us),
                figure_or_none(of.server_core_us),
                figure(of.open_s),
            ]);
        }
        vec![
            sheet.note(
                "Queries go in batches of 1,000 unless said. Half of them find a document, two bits away.",
            ),
        ]
    }
}
