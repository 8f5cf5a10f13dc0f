//! `huntsman-bench feeds`: items a second into files, by format.
//!
//! Each feed gets the same items through the interface of pipelines, with a flush after every hundred, as pages cause them. `bench/feeds` writes the
//! same items with Python and compares the files.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, ValueHint};
use huntsman::middleware::sinks::{FeedStart, NamedFeed};
use huntsman::{Context, Pipeline, Result, Settings};
use huntsman_cli::exit::{Exit, Outcome};
use huntsman_cli::render::say;
use serde::Serialize;

/// Flags of `feeds`.
#[derive(Debug, Args)]
pub(crate) struct FeedsArgs {
    /// Number of items.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) items: u32,

    /// A folder that keeps the files [default: one that is removed].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
}

/// An item as a shop has it: a text of some words, numbers, a list, and an object at times.
#[derive(Clone, Debug, Serialize)]
struct Item {
    id: u32,
    title: String,
    price: f64,
    in_stock: bool,
    rating: Option<u8>,
    tags: Vec<String>,
    about: String,
    seller: Option<Seller>,
}

#[derive(Clone, Debug, Serialize)]
struct Seller {
    name: String,
    since: u16,
}

fn item(number: u32) -> Item {
    let words = |from: u32, count: u32| -> Vec<String> {
        (0..count)
            .map(|n| format!("word{}", (from.wrapping_mul(2_654_435_761) >> 7).wrapping_add(n * 37) % 5_000))
            .collect()
    };
    Item {
        id: number,
        title: words(number, 6).join(" "),
        price: f64::from(number % 10_000) / 100.0,
        in_stock: !number.is_multiple_of(3),
        rating: (!number.is_multiple_of(5)).then_some((number % 6) as u8),
        tags: words(number + 1, number % 4),
        about: words(number + 2, 30).join(" "),
        seller: number
            .is_multiple_of(7)
            .then(|| Seller { name: format!("shop {}", number % 100), since: 2000 }),
    }
}

/// Items that are flushed together.
const PER_FLUSH: usize = 100;

pub(crate) fn run(args: &FeedsArgs) -> Outcome {
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    let temporary = tempfile::tempdir()?;
    let folder = args.out.as_deref().unwrap_or(temporary.path());
    let items: Vec<Item> = (0..args.items).map(item).collect();
    println!("file           items/s     bytes");
    for name in ["items.jsonl", "items.csv", "items.sqlite", "items.parquet"] {
        let path = folder.join(name);
        let seconds = crate::on_runtime(async { Ok(write(&path, &items).await?) })?;
        let bytes = std::fs::metadata(&path)?.len();
        let rate = f64::from(args.items) / seconds;
        println!("{name:<13} {rate:>8.0} {bytes:>9}");
    }
    Ok(Exit::Done)
}

/// Seconds to write a file.
async fn write(path: &Path, items: &[Item]) -> Result<f64> {
    let cx = Context::detached(Settings::default());
    let (mut feed, _) = NamedFeed::<Item>::open(path, FeedStart::Overwrite)?;
    let begun = Instant::now();
    feed.open(&cx).await?;
    for items in items.chunks(PER_FLUSH) {
        for item in items {
            feed.process_item(item.clone(), &cx).await?;
        }
        feed.flush().await?;
    }
    feed.close().await?;
    Ok(begun.elapsed().as_secs_f64())
}
