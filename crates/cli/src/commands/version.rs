//! `huntsman version`.

use std::env::consts::{ARCH, OS};
use std::io::{self, Write};

use huntsman::{Backend, Settings};

use crate::exit::{Exit, Outcome};
use crate::render::Table;

/// Stores in this build, the default first.
pub(crate) fn stores() -> Vec<&'static str> {
    let stores = [Backend::Redb, Backend::Sled, Backend::Memory];
    stores.into_iter().filter(|store| store.is_compiled_in()).map(Backend::name).collect()
}

pub(crate) fn run(verbose: bool) -> Outcome {
    let mut out = io::stdout().lock();
    writeln!(out, "huntsman {}", env!("CARGO_PKG_VERSION"))?;
    if verbose {
        let build =
            if cfg!(debug_assertions) { "debug (slow; measure with a release build)" } else { "release" };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut table = Table::default();
        table.row(["build", build]);
        table.row(["machine", &format!("{OS} {ARCH}, {cores} cores")]);
        table.row(["stores", &stores().join(", ")]);
        table.row(["user agent", &Settings::default().user_agent]);
        table.row(["licence", env!("CARGO_PKG_LICENSE")]);
        out.write_all(table.lines("").as_bytes())?;
    }
    Ok(Exit::Done)
}
