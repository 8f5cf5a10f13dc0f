//! The spiders of this program: `cargo run -- list` names them, and `cargo run -- crawl quotes -o quotes.jsonl` runs one.

mod spiders;

use std::process::ExitCode;

use huntsman::Project;

fn main() -> ExitCode {
    Project::new(env!("CARGO_PKG_NAME"))
        .version(env!("CARGO_PKG_VERSION"))
        .spider("quotes", spiders::quotes::spider)
        .main()
}
