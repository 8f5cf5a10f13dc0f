//! Near-duplicates among documents that do not come from a crawl: the input is JSON lines, the output flags.
//!
//! The documents of a day are compared with all earlier ones, which are stored in an index in a directory. This
//! example makes up two days; name a file of JSON lines with `id`, `lang` and `text` to flag your own documents
//! instead.

use std::error::Error;
use std::path::{Path, PathBuf};

use huntsman::dedup::{
    Batches, Counts, Dedup, Flags, IdentityOptions, IfMissing, IndexLocation, Settings, Source, Warnings,
};

const STORY: &str = "The ferry to the outer islands will not leave before noon tomorrow, the harbour master said, because the wind has \
    turned to the north and the tide is lower than it has been in years. Passengers with a ticket for the morning may take the evening ferry, or \
    have their money back at the kiosk on the northern pier. The mail boat leaves as usual. In the old town the market opens an hour later, and \
    the museum of lighthouses lends its largest room to everybody who waits. The harbour master remembers only one such day, forty years ago, when \
    a circus with two elephants had to stay on the pier for a night and half the children of the island came to feed them with bread and apples. \
    This time, he said, there will be soup, blankets and a film about seals, and nobody has to bring an elephant.";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let days = match std::env::args().nth(1) {
        Some(file) => vec![PathBuf::from(file)],
        None => made_up(folder.path())?,
    };
    for day in days {
        let counts = run(&day, &folder.path().join("index"))?;
        println!("{}: {} documents, {} flagged", day.display(), counts.processed, counts.flagged);
    }
    Ok(())
}

/// Flags documents that are near to earlier ones, then adds the documents of the file to the index.
fn run(documents: &Path, index: &Path) -> Result<Counts, Box<dyn Error>> {
    let warnings = Warnings::new(|warning| eprintln!("{warning}"));
    let place = IndexLocation::Directory(index.to_owned());
    // Texts count as near if their fingerprints differ in at most 7 of 128 bits, the largest distance of an index:
    // these stories are short.
    let identity =
        place.identity(IdentityOptions { k: Some(7), ..IdentityOptions::default() }, IfMissing::Create)?;
    let index = place.open(identity, &warnings)?;

    let mut dedup = Dedup::new(index, Flags::to(std::io::stdout())).min_words(20).warnings(warnings);
    let mut counts = Counts::default();
    let settings = Settings::new(vec![Source::File(documents.to_owned())], identity.features());
    for batch in Batches::start(settings)? {
        let batch = batch?;
        counts.read(&batch);
        for bad in &batch.rejected {
            eprintln!("{bad}");
        }
        dedup.add(batch.stories, &mut counts)?;
    }
    dedup.finish()?;
    Ok(counts)
}

/// Writes a story, and for the next day the same story with one word changed.
fn made_up(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let stories = [(1, STORY.to_owned()), (2, STORY.replace("soup", "tea"))];
    let mut days = Vec::new();
    for (id, text) in stories {
        let day = folder.join(format!("day-{id}.jsonl"));
        std::fs::write(&day, serde_json::json!({"id": id, "lang": "en", "text": text}).to_string() + "\n")?;
        days.push(day);
    }
    Ok(days)
}
