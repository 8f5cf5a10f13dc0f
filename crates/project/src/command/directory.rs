//! `--out`: messages about a directory that cannot be used, with the flags that help.

use std::path::Path;

use huntsman_output::{Error, State, Status};

use super::exit::{Exit, Failure};
use super::render::{counted, escape};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let of_flag = matches!(
            error,
            Error::NotADirectory { .. } | Error::Inaccessible { .. } | Error::Unwritable { .. }
        );
        let advice = match &error {
            Error::InUse { .. } => "; wait for it, or name another directory with --out".to_owned(),
            Error::Changed { .. } => "; give the command again".to_owned(),
            Error::UnknownFile { .. } => {
                "; name another directory with --out, or overwrite it with --fresh".to_owned()
            }
            Error::OtherRun { found, state, .. } => {
                let go_on = match state {
                    State::Finished => String::new(),
                    _ => format!("go on with it by `huntsman {}`, ", found.name()),
                };
                format!(
                    ": {go_on}name another directory with --out, or start anew with --fresh, which deletes it"
                )
            }
            Error::QueueLost { .. } => "; --fresh deletes its files and starts anew".to_owned(),
            Error::OtherStore { store, .. } => {
                format!("; go on with --store {}, or start anew with --fresh", escape(store))
            }
            Error::OldVersion { .. } => {
                "; finish it with that version, or start anew with --fresh".to_owned()
            }
            Error::Damaged { .. } => {
                "; `huntsman verify` tells what is whole, --fresh deletes all and starts anew".to_owned()
            }
            Error::NewerVersion { .. } => {
                "; use that one, or --fresh, which deletes all and starts anew".to_owned()
            }
            Error::NoState { .. } => {
                "; name a directory that was given to --out, or the state in it".to_owned()
            }
            Error::StateLost { .. } => "; --store redb keeps it".to_owned(),
            _ => String::new(),
        };
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Crawl };
        let flag = if of_flag { "--out " } else { "" };
        Self { exit, message: format!("{flag}{error}{advice}"), is_broken_pipe: false }
    }
}

/// The failure of a command that only inspects a directory.
pub fn inspecting(error: Error) -> Failure {
    match error {
        Error::InUse { .. } => Failure::crawl(format!("{error}; wait until it ends")),
        Error::Unwritable { .. } => Failure::crawl(error.to_string()),
        error => error.into(),
    }
}

/// The message about a directory whose run is finished.
pub fn finished(path: &Path, status: &Status) -> String {
    format!(
        "{} holds a finished {} of {}: {}, ended as {}. Nothing to do; --fresh crawls anew.",
        escape(&path.to_string_lossy()),
        status.run().name(),
        escape(&status.seed_url),
        counted(status.pages, "page"),
        escape(status.finish_reason.as_deref().unwrap_or("finished"))
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use huntsman_output::Run;

    use super::*;

    #[test]
    fn what_cannot_be_used_names_the_flags_that_help() {
        let path = || PathBuf::from("out");
        let failure = |error: Error| Failure::from(error);
        for state in [State::Running, State::Finished] {
            let seed_url = "https://example.org/".to_owned();
            let (found, wanted) = (Run::Sweep, Run::Crawl);
            let other = failure(Error::OtherRun { path: path(), found, state, seed_url, wanted });
            for word in ["sweep", "crawl", "--fresh", "--out"] {
                assert!(other.message.contains(word), "{}", other.message);
            }
            assert_eq!(other.message.contains("`huntsman sweep`"), state == State::Running);
        }
        let damaged = || serde_json::from_str::<u8>("{").unwrap_err();
        for error in [
            Error::QueueLost { path: path(), run: Run::Crawl },
            Error::Damaged { path: path(), source: damaged() },
            Error::UnknownFile { path: path(), name: "pages.jsonl" },
        ] {
            assert!(failure(error).message.contains("--fresh"));
        }
        let in_use = || Error::InUse { path: path() };
        assert!(
            failure(in_use()).message.contains("--out") && !inspecting(in_use()).message.contains("--out")
        );
        assert!(
            failure(Error::NotADirectory { path: path() }).message.starts_with("--out out: it is a file")
        );
        assert!(failure(Error::Changed { path: path() }).message.contains("again"));
    }
}
