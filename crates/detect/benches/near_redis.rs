//! Memory and time of indexes in a Redis server, which it starts itself:
//! `cargo bench -p huntsman-detect --features redis --bench near_redis -- [DOCUMENTS [LAYOUT]]`, 100,000 documents unless said.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use huntsman_detect::near::redis::{Layout, RedisIndex, RedisSettings};
use huntsman_detect::near::{Document, Identity, Language, NearIndex};
use huntsman_detect::simhash::{Features, SimHash};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Ends its process with itself.
struct Server(Child, u16);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]).stdout(Stdio::null());
    let server = Server(command.spawn().expect("apt-get install redis-server"), port);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    server
}

/// The processor time that a process has taken, by proc(5) in steps of 10 ms; 0 where there is none.
fn cpu_micros(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let times = behind_name.split_ascii_whitespace().skip(11).take(2);
    times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10_000.0
}

fn open(server: &Server, layout: Layout, documents: u64, k: u32) -> RedisIndex {
    let settings: RedisSettings = format!("redis://127.0.0.1:{}", server.1).parse().expect("an address");
    let identity = Identity::new(k, Features::default()).expect("k is at most 7");
    RedisIndex::open(settings.layout(layout).design_size(documents), identity).expect("an index")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let count: u64 = arguments.first().map_or(100_000, |count| count.parse().expect("a number of documents"));
    let only: Option<Layout> = arguments.get(1).map(|layout| layout.parse().expect("a layout"));
    let language = Language::parse("hi").expect("a language");
    for layout in Layout::ALL.into_iter().filter(|layout| only.is_none_or(|only| only == *layout)) {
        for (ids, first) in
            [("ids below 2^31", 1_000_000_000_u64), ("ids of 16 digits", 1_000_000_000_000_000)]
        {
            let server = start();
            let index = open(&server, layout, count, 3);
            let memory = || index.used_memory().expect("an answer").expect("this server may be asked") as f64;
            let (empty, mut rng) = (memory(), Xoshiro256PlusPlus::seed_from_u64(1));
            let mut hashes = Vec::new();
            let start = Instant::now();
            for batch in (0..count).step_by(4096) {
                let documents: Vec<Document> = (batch..count.min(batch + 4096))
                    .map(|id| Document { language, id: (first + id * 7).into(), hash: SimHash(rng.random()) })
                    .collect();
                hashes.extend(documents.iter().map(|document| document.hash));
                index.insert(&documents).expect("an insert");
            }
            let inserts = count as f64 / start.elapsed().as_secs_f64();
            let bytes = (memory() - empty) / count as f64;
            println!("{layout}, {count} documents, {ids}: {bytes:.1} B/document, {inserts:.0} inserts/s");
            let stats = index.stats().expect("stats");
            for (part, bytes) in stats.bytes.iter().chain(&stats.languages[&language].bytes) {
                println!("  {part}: {:.1} B/document", *bytes as f64 / count as f64);
            }
            // Half of what is asked for is there, two bits away.
            let mut queries = |count: usize| -> Vec<(Language, SimHash)> {
                let mut query = || match rng.random_range(0..2) {
                    0 => SimHash(hashes[rng.random_range(0..hashes.len())].0 ^ 0b101),
                    _ => SimHash(rng.random()),
                };
                (0..count).map(|_| (language, query())).collect()
            };
            let cpu = || [server.0.id(), std::process::id()].map(cpu_micros);
            let mut rate = |index: &RedisIndex, batch: usize, batches: usize| {
                let mut best = 0_f64;
                for _ in 0..5 {
                    let queries = queries(batch * batches);
                    let start = Instant::now();
                    for queries in queries.chunks(batch) {
                        assert_eq!(index.near(queries).expect("an answer").len(), batch);
                    }
                    best = best.max((batch * batches) as f64 / start.elapsed().as_secs_f64());
                }
                best
            };
            let before = cpu();
            println!("  {:.0} queries/s in batches of 1000, k = 3", rate(&index, 1000, 4));
            let [there, here] = [0, 1].map(|process| (cpu()[process] - before[process]) / 20_000.0);
            println!("  {there:.0} us of processor a query in the server, {here:.0} us here");
            println!("  {:.0} queries/s one by one, k = 3", rate(&index, 1, 1000));
            let start = Instant::now();
            let wide = open(&server, layout, count, 7);
            println!("  opened in {:.2} s", start.elapsed().as_secs_f64());
            println!("  {:.0} queries/s in batches of 1000, k = 7", rate(&wide, 1000, 1));
        }
    }
}
