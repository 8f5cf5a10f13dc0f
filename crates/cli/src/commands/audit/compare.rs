//! `huntsman audit compare`: what two audits have in common and in what they differ.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use huntsman::audit::{Compare, Comparison};

use crate::exit::{Exit, Outcome};
use crate::render::{Style, counted, escape, say};

/// Codes that are listed.
const CODES: usize = 10;

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Directory of the earlier audit.
    #[arg(value_name = "BEFORE", value_hint = ValueHint::DirPath)]
    before: PathBuf,

    /// Directory of the later audit.
    #[arg(value_name = "AFTER", value_hint = ValueHint::DirPath)]
    after: PathBuf,

    /// Treats URLs that begin with FROM as if they began with TO: https://staging.example=https://example.org (repeatable).
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<String>,

    /// Exits with code 10 on issues of the later audit of this severity, family or code; `new:` before it counts only new ones, and >N behind it
    /// allows N (repeatable).
    #[arg(long, value_name = "WHAT")]
    fail_on: Vec<String>,

    /// Directory for compare.html, compare.json, issues.csv and pages.csv.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = "audit-compare")]
    out: PathBuf,
}

pub(super) fn run(args: &CompareArgs) -> Outcome {
    let comparison = Compare::new(&args.before, &args.after, &args.map, &args.fail_on)?.write(&args.out)?;
    say(&shown(&comparison));
    for failure in &comparison.gate {
        say(&format!("  {}", Style::stderr().red(&format!("failed on {failure}"))));
    }
    say(&format!("  {}", escape(&args.out.join("compare.html").to_string_lossy())));
    Ok(if comparison.gate.is_empty() { Exit::Done } else { Exit::Quality })
}

fn shown(comparison: &Comparison) -> String {
    let number = |name: &str| comparison.issues.get(name).copied().unwrap_or(0);
    let pages = &comparison.pages;
    let mut lines = vec![
        format!(
            "  {}: {} new, {} fixed, {} unchanged, {} gone with their pages",
            counted(comparison.issues.values().sum(), "issue"),
            number("new"),
            number("fixed"),
            number("unchanged"),
            number("gone")
        ),
        format!(
            "  {} not reached, {} not judged by the later audit",
            number("not_reached"),
            number("not_judged")
        ),
        format!(
            "  {} in both, {} changed, {} added, {} removed, {} not reached",
            counted(pages.both, "page"),
            pages.changed,
            pages.added,
            pages.removed,
            pages.not_reached
        ),
    ];
    let of = |code: &str, standing: &str| {
        comparison.codes.get(code).and_then(|counts| counts.get(standing)).copied().unwrap_or(0)
    };
    let mut codes: Vec<&str> = comparison.codes.keys().map(String::as_str).collect();
    codes.retain(|code| of(code, "new") + of(code, "fixed") > 0);
    codes.sort_by_key(|code| std::cmp::Reverse(of(code, "new") + of(code, "fixed")));
    for code in codes.into_iter().take(CODES) {
        lines.push(format!("  {code:<26} {:>5} new {:>5} fixed", of(code, "new"), of(code, "fixed")));
    }
    lines.join("\n")
}
