//! The speed of `huntsman dedup add` with a day's stories: the command itself, from texts in a file to flags and an
//! index.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use huntsman::detect::near::{DiskIndex, Identity, NearIndex};
use huntsman_cli::OrFailure;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::process::program;
use huntsman_cli::render::{count, say};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::args::SimhashArgs;
use super::documents::{Documents, Spread};
use super::scratch;
use crate::clock::Watch;
use crate::sheet::{Sheet, figure, mebibytes};
use crate::stories::Writer;

/// The cost of the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Add {
    /// Documents that were in the index before.
    pub(super) indexed: u64,
    pub(super) stories: u64,
    pub(super) words_per_story: u64,
    /// Size of the texts in bytes.
    pub(super) text_bytes: u64,
    /// Stories that are copies of earlier ones; all of them must be flagged.
    pub(super) copies: u64,
    pub(super) flagged: u64,
    /// Seconds from the first story to the last flag, without opening the index.
    pub(super) elapsed_s: f64,
    pub(super) stories_per_s: f64,
    pub(super) mb_per_s: f64,
    /// User and system seconds of the whole command, including opening the index.
    pub(super) core_s: Option<f64>,
    /// Seconds of the whole command, from its start to its end.
    pub(super) command_s: f64,
    pub(super) peak_rss_bytes: Option<u64>,
}

/// One of this many stories is a copy of an earlier one.
const COPY_EVERY: u64 = 100;

pub(super) fn run(args: &SimhashArgs) -> Outcome<Add> {
    let directory = scratch(args)?;
    let place = |name: &str| directory.path().join(name);
    say(&format!("add: {} stories into an index of {} documents", count(args.add), count(args.documents)));
    let (stories, index) = (place("stories.jsonl"), place("index"));
    let (text_bytes, copies) = write(args, &stories)?;
    let documents = Documents::new(args.seed, &Spread::Even).take(args.documents as usize);
    DiskIndex::build(&index, Identity::default(), documents).or_failure()?.flush().or_failure()?;

    let watch = Watch::start();
    let report = place("report.json");
    let mut command = program(std::env::current_exe()?);
    command.args(["dedup", "add"]).arg(&stories).arg("--index").arg(&index);
    command.arg("--flags").arg(place("flags.jsonl")).arg("--report").arg(&report);
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    let command_s = watch.seconds();
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        return Err(Failure::crawl(format!("dedup add ended with {}: {}", ended.status, said.trim())));
    }
    let report: Value = serde_json::from_slice(&std::fs::read(report)?)?;
    let number = |name: &str| {
        report[name].as_u64().ok_or_else(|| Failure::crawl(format!("the report of dedup add has no {name}")))
    };
    let (processed, flagged) = (number("processed")?, number("flagged")?);
    if processed != args.add || flagged < copies || number("errors")? > 0 {
        return Err(Failure::crawl(format!(
            "dedup add processed {processed} of {} stories and flagged {flagged} where {copies} are copies: this is a bug",
            args.add
        )));
    }
    let elapsed_s = report["elapsed_s"].as_f64().unwrap_or(command_s).max(1e-6);
    Ok(Add {
        indexed: args.documents,
        stories: args.add,
        words_per_story: args.words,
        text_bytes,
        copies,
        flagged,
        elapsed_s,
        stories_per_s: args.add as f64 / elapsed_s,
        mb_per_s: text_bytes as f64 / 1e6 / elapsed_s,
        core_s: report["cpu_s"].as_f64(),
        command_s,
        peak_rss_bytes: report["peak_rss_bytes"].as_u64(),
    })
}

/// Writes stories of all languages in turn. Returns the bytes of their texts, and the number of copies.
fn write(args: &SimhashArgs, path: &Path) -> Outcome<(u64, u64)> {
    let writers = Writer::all()?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(args.seed);
    // The last story of each language, which may be repeated.
    let mut last: Vec<Option<String>> = vec![None; writers.len()];
    let (mut bytes, mut copies) = (0, 0);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for number in 0..args.add {
        let at = number as usize % writers.len();
        let is_copy = random.random_range(0..COPY_EVERY) == 0;
        let text = match last[at].take().filter(|_| is_copy) {
            Some(text) => {
                copies += 1;
                text
            }
            None => writers[at].story(&mut random, args.words as usize).text(),
        };
        bytes += text.len() as u64;
        // These ids are larger than the 16-digit ids of the indexed documents.
        let id = 10_u64.pow(16) + number;
        serde_json::to_writer(&mut file, &json!({"id": id, "lang": writers[at].lang, "text": text}))?;
        file.write_all(b"\n")?;
        last[at] = Some(text);
    }
    file.flush()?;
    Ok((bytes, copies))
}

impl Add {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let title = format!(
            "huntsman dedup add: {} stories of {} words in ten languages into an index of {} documents",
            count(self.stories),
            count(self.words_per_story),
            count(self.indexed)
        );
        let mut sheet = Sheet::new(
            title,
            ["", "stories/s", "MB/s", "seconds", "whole command s", "core s", "peak", "copies", "flagged"],
        );
        sheet.row([
            "add".to_owned(),
            count(self.stories_per_s as u64),
            figure(self.mb_per_s),
            figure(self.elapsed_s),
            figure(self.command_s),
            self.core_s.map_or_else(|| "-".to_owned(), figure),
            mebibytes(self.peak_rss_bytes),
            count(self.copies),
            count(self.flagged),
        ]);
        vec![sheet.note("The whole command opens the index first, and packs it up at its end.")]
    }
}
