//! The cost of `huntsman dedup join` over the fingerprints of a large archive: the command itself, from an export to pairs.

use std::process::Stdio;

use huntsman::bulk::export::{Export, export};
use huntsman::detect::near::{DiskIndex, Identity};
use huntsman_cli::OrFailure;
use huntsman_cli::exit::{Failure, Outcome};
use huntsman_cli::process::program;
use huntsman_cli::render::{count, say};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::args::SimhashArgs;
use super::documents::{Documents, Spread};
use super::scratch;
use crate::clock::Watch;
use crate::sheet::{Sheet, figure, mebibytes};

/// Joins of the same documents.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Joins {
    pub(super) documents: u64,
    /// Bytes of the export.
    pub(super) input_bytes: u64,
    pub(super) joins: Vec<Join>,
}

/// A join for one k.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Join {
    pub(super) k: u32,
    pub(super) candidates: u64,
    pub(super) pairs: u64,
    /// Seconds until equal fingerprints were folded.
    pub(super) fold_s: f64,
    /// Seconds of the whole command.
    pub(super) command_s: f64,
    pub(super) core_s: Option<f64>,
    pub(super) peak_rss_bytes: Option<u64>,
}

pub(super) fn run(args: &SimhashArgs) -> Outcome<Joins> {
    let directory = scratch(args)?;
    let place = |name: &str| directory.path().join(name);
    say(&format!("join: an export of {} documents", count(args.documents)));
    let documents = Documents::new(args.seed, &Spread::Even).take(args.documents as usize);
    let index = DiskIndex::build(place("index"), Identity::default(), documents).or_failure()?;
    let exported = export(&index, &place("exported"), &Export::default())
        .map_err(|error| Failure::crawl(error.to_string()))?;
    drop(index);
    std::fs::remove_dir_all(place("index"))?;
    let mut all = Joins {
        documents: args.documents,
        input_bytes: exported.iter().map(|part| part.bytes).sum(),
        joins: Vec::new(),
    };
    for k in &args.k {
        say(&format!("join: k = {k}"));
        let (watch, report) = (Watch::start(), place("report.json"));
        let mut command = program(std::env::current_exe()?);
        command.args(["dedup", "join"]).arg(place("exported")).arg("--out").arg(place(&format!("near-{k}")));
        command.args(["--k", &k.to_string(), "--memory", "2GB", "--report"]).arg(&report);
        let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
        let command_s = watch.seconds();
        if !ended.status.success() {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            return Err(Failure::crawl(format!("dedup join ended with {}: {}", ended.status, said.trim())));
        }
        let report: Value = serde_json::from_slice(&std::fs::read(report)?)?;
        let number = |name: &str| report[name].as_u64().unwrap_or(0);
        // One of a thousand documents is near to the one before it, by up to five bits: for each number of bits one of 6,000.
        let least = args.documents * u64::from((*k).min(5)) / 12_000;
        if number("rows") != args.documents || number("pairs") < least {
            return Err(Failure::crawl(format!(
                "dedup join found {} pairs of {} documents: this is a bug",
                number("pairs"),
                number("rows")
            )));
        }
        all.joins.push(Join {
            k: *k,
            candidates: number("candidates"),
            pairs: number("pairs"),
            fold_s: report["fold_seconds"].as_f64().unwrap_or(0.0),
            command_s,
            core_s: report["cpu_s"].as_f64(),
            peak_rss_bytes: report["peak_rss_bytes"].as_u64(),
        });
    }
    Ok(all)
}

impl Joins {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let title = format!(
            "huntsman dedup join: an export of {} documents in ten languages, {} MB, with --memory 2GB",
            count(self.documents),
            count(self.input_bytes / 1_000_000)
        );
        let mut sheet = Sheet::new(
            title,
            ["k", "whole command s", "of this folding s", "core s", "peak", "compared", "pairs"],
        );
        for join in &self.joins {
            sheet.row([
                join.k.to_string(),
                figure(join.command_s),
                figure(join.fold_s),
                join.core_s.map_or_else(|| "-".to_owned(), figure),
                mebibytes(join.peak_rss_bytes),
                count(join.candidates),
                count(join.pairs),
            ]);
        }
        vec![sheet]
    }
}
