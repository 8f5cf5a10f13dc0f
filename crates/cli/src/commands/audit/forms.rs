//! The forms in which `huntsman audit` writes its result.

use std::path::Path;

use clap::Args;
use huntsman::audit::{Audit, Export, SourceMap};

use crate::exit::{Failure, Outcome};
use crate::output;
use crate::render::{escape, say};

/// Flags of the forms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Audit")]
pub(super) struct FormArgs {
    /// For a build: --fail-on error unless another condition is given, the forms junit and sarif besides the others, no progress, and annotations on GitHub.
    #[arg(long)]
    ci: bool,

    /// Forms that are written, separated by commas: html, overview, csv, jsonl, sarif, junit, sitemap, graph, markdown [default: html,csv,jsonl].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    format: Vec<String>,

    /// Which files of a repository URLs are made of, for SARIF: `https://example.org/=site/` (repeatable).
    #[arg(long, value_name = "URL=PATH")]
    source_map: Vec<String>,
}

impl FormArgs {
    /// Whether the command is part of a build.
    pub(super) fn is_ci(&self) -> bool {
        self.ci
    }

    /// The conditions under which the command fails: in a build errors, if none is given.
    pub(super) fn with_ci(&self, fail_on: Vec<String>, codes: Vec<String>) -> Vec<String> {
        let mut conditions: Vec<String> = fail_on.into_iter().chain(codes).collect();
        if self.ci && conditions.is_empty() {
            conditions.push("error".to_owned());
        }
        conditions
    }
}

/// The forms that are written.
pub(super) struct Forms {
    exports: Vec<Export>,
    sources: SourceMap,
    has_annotations: bool,
}

impl Forms {
    pub(super) fn of(args: &FormArgs) -> Outcome<Self> {
        let mut exports: Vec<Export> = match args.format.as_slice() {
            [] => Export::DEFAULT.to_vec(),
            names => names.iter().map(|name| form(name)).collect::<Outcome<_>>()?,
        };
        if args.ci {
            exports.extend([Export::Junit, Export::Sarif]);
        }
        exports.sort_unstable();
        exports.dedup();
        let is_on_github = std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true");
        Ok(Self {
            exports,
            sources: SourceMap::parse(&args.source_map)?,
            has_annotations: args.ci && is_on_github,
        })
    }

    /// Writes an audit into its directory.
    pub(super) fn write(&self, audit: &mut Audit, directory: &Path) -> Outcome<()> {
        Ok(audit.export(directory, &self.exports, &self.sources)?)
    }

    /// Says where the result is.
    pub(super) fn tell(&self, audit: &Audit, directory: &Path) -> Outcome<()> {
        if self.has_annotations {
            // The log of a build is read line by line.
            print!("{}", audit.annotations(&self.sources)?);
        }
        let file = if self.exports.contains(&Export::Html) { "report.html" } else { output::ISSUES };
        say(&format!("  {}", escape(&directory.join(file).to_string_lossy())));
        Ok(())
    }
}

fn form(name: &str) -> Outcome<Export> {
    let found = Export::ALL.into_iter().find(|form| form.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = Export::ALL.iter().map(|form| form.name()).collect();
        Failure::usage(format!("--format {}: use {}", escape(name), names.join(", ")))
    })
}
