//! All pairs of near-duplicates of an index at once: export, join and clusters.
//!
//! Needs no site: `cargo run --example bulk --features bulk`.

use std::error::Error;

use huntsman::bulk::export::{Export, export};
use huntsman::bulk::{Clustering, Input, Join, Link};
use huntsman::detect::near::{Document, Identity, Language, MemoryIndex};
use huntsman::detect::simhash::SimHash;
use huntsman::detect::words::Words;

fn main() -> Result<(), Box<dyn Error>> {
    // Every third story repeats the one before it, with one word replaced.
    let english = Language::parse("en")?;
    let documents = (0..3_000_u64).map(|id| {
        let (of, edited) = if id % 3 == 2 { (id - 1, id) } else { (id, 0) };
        let word = |at: u64| match at {
            100 if edited > 0 => format!("edited{edited} "),
            _ => format!("word{} ", (of * 7_919 + at * 104_729) % 99_991),
        };
        let text: String = (0..400).map(word).collect();
        Document { language: english, id: id.into(), hash: SimHash::of(&Words::of(&text)) }
    });
    let index = MemoryIndex::build(Identity::default(), documents)?;

    // The export is Parquet, which SQL engines read, too.
    let folder = tempfile::tempdir()?;
    let (exported, near) = (folder.path().join("exported"), folder.path().join("near"));
    export(&index, &exported, &Export::default())?;

    // Killed here, the same join goes on where it was.
    let input = Input { paths: vec![exported], ..Input::default() };
    let report = Join::new(input, &near).run(&|line| eprintln!("{line}"))?;
    println!("{} pairs among {} documents", report.pairs, report.rows);

    // What is kept, and what is a copy of it.
    let clusters = Clustering::new(Link::Greedy).run(&near)?;
    println!("{} documents in {} clusters", clusters.documents, clusters.clusters);
    assert!(report.pairs > 0);
    Ok(())
}
