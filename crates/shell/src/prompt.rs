//! Lines of a person or of a pipe, and what is printed for them.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use huntsman_crawler::redacted;
use huntsman_crawler::terminal::{escape_document, wants_color};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use crate::command::{Complaint, completions};
use crate::shell::{Reply, Shell};

/// Number of lines of the history that are kept.
const HISTORY: usize = 1_000;

/// Reads commands and prints their replies on stdout, complaints on stderr, until the lines end or a command ends the shell.
#[derive(Debug, Default)]
pub struct Prompt {
    history: Option<PathBuf>,
}

/// The file of the history: `huntsman/shell-history` in `XDG_STATE_HOME`, or in `.local/state` of the home directory.
pub fn history_file() -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
    Some(state.join("huntsman/shell-history"))
}

impl Prompt {
    /// A prompt without a history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the lines of people in this file, which is private: the last 1,000. Users and passwords in URLs are masked. If the file cannot be
    /// read or written, there is no history.
    pub fn history(mut self, path: Option<PathBuf>) -> Self {
        self.history = path;
        self
    }

    /// Runs single commands in their order, and prints their values as they are, one a line: for scripts. It ends at the first complaint, which is
    /// returned.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub async fn once(&self, shell: &mut Shell, commands: &[String]) -> io::Result<Result<(), Complaint>> {
        for line in commands {
            let text = match shell.run(line).await {
                Ok(Reply::Text(text)) => text,
                Ok(Reply::Values(values)) => values.join("\n"),
                Ok(Reply::End) => return Ok(Ok(())),
                Err(complaint) => return Ok(Err(complaint)),
            };
            print(&text)?;
        }
        Ok(Ok(()))
    }

    /// Prints a reply as the shell does.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub fn show(&self, reply: &Reply, shell: &Shell) -> io::Result<()> {
        print(&reply.lines(shell.limit()))
    }

    /// Reads lines from stdin: with editing, history and completion if a person is there, and else one after the other. Complaints of a pipe do
    /// not end it; the first one is returned. A person has seen them.
    ///
    /// # Errors
    /// Stdout cannot be written, or stdin cannot be read.
    pub async fn read(&self, shell: &mut Shell) -> io::Result<Result<(), Complaint>> {
        if io::stdin().is_terminal() && io::stdout().is_terminal() {
            self.converse(shell).await?;
            return Ok(Ok(()));
        }
        let mut first = Ok(());
        for line in io::stdin().lock().lines() {
            match answer(shell, &line?).await? {
                Answered::End => break,
                Answered::Well => {}
                Answered::Complaint(complaint) => first = first.and(Err(complaint)),
            }
        }
        Ok(first)
    }

    async fn converse(&self, shell: &mut Shell) -> io::Result<()> {
        let config = Config::builder().max_history_size(HISTORY).map_err(other)?.build();
        let mut editor: Editor<Words, MemHistory> =
            Editor::with_history(config, MemHistory::new()).map_err(other)?;
        editor.set_helper(Some(Words(shell.names_of_settings().to_vec())));
        for line in self.history.as_deref().map(kept_lines).unwrap_or_default() {
            editor.add_history_entry(line).map_err(other)?;
        }
        print("`help` lists the commands, Ctrl-D ends")?;
        let prompt = if wants_color(&io::stdout()) { "\u{1b}[1mhuntsman>\u{1b}[0m " } else { "huntsman> " };
        loop {
            match editor.readline(prompt) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => {
                    let shown = remembered(&line);
                    if let Some(path) = &self.history {
                        // A shell without a history is still a shell.
                        let _ = add_line(path, &shown);
                    }
                    editor.add_history_entry(shown).map_err(other)?;
                    if matches!(answer(shell, &line).await?, Answered::End) {
                        return Ok(());
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(()),
                Err(error) => return Err(other(error)),
            }
        }
    }
}

enum Answered {
    Well,
    Complaint(Complaint),
    End,
}

/// Runs a line and prints the reply, safely for a terminal.
async fn answer(shell: &mut Shell, line: &str) -> io::Result<Answered> {
    match shell.run(line).await {
        Ok(Reply::End) => Ok(Answered::End),
        Ok(reply) => {
            Prompt::new().show(&reply, shell)?;
            Ok(Answered::Well)
        }
        Err(complaint) => {
            // If stderr is gone, nothing can be told there.
            let _ = writeln!(io::stderr(), "{}", escape_document(&complaint.message));
            Ok(Answered::Complaint(complaint))
        }
    }
}

/// Prints a text with a line end. What a page has written into it cannot steer a terminal.
fn print(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    match stdout.is_terminal() {
        // The colours of the prompt are not printed here.
        true => writeln!(stdout, "{}", escape_document(text))?,
        false => writeln!(stdout, "{text}")?,
    }
    stdout.flush()
}

fn other(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        error => io::Error::other(error),
    }
}

/// A line as it is kept: an address without user and password. An `@` elsewhere is part of a query.
fn remembered(line: &str) -> String {
    match line.trim_start().strip_prefix("fetch ") {
        Some(address) => format!("fetch {}", redacted(address.trim())),
        None => line.to_owned(),
    }
}

/// The last lines of the history.
fn kept_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(HISTORY)..];
    if lines.len() > 2 * HISTORY {
        let _ = huntsman_files::write(path, kept.join("\n") + "\n");
    }
    kept.iter().map(|line| (*line).to_owned()).collect()
}

fn add_line(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        huntsman_files::create_dir_all(folder)?;
    }
    writeln!(huntsman_files::open_append(path)?, "{line}")
}

/// Completes commands and names of settings.
struct Words(Vec<String>);

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(completions(&line[..at], &self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_remembered_and_a_query_is() {
        assert_eq!(remembered("fetch http://ann:hunter2@h/a"), "fetch http://***@h/a");
        assert_eq!(remembered("xpath //a/@href"), "xpath //a/@href");
    }

    #[test]
    fn the_history_is_private_and_keeps_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/history");
        for number in 0..3 {
            add_line(&path, &format!("css h{number}")).unwrap();
        }
        assert_eq!(kept_lines(&path), ["css h0", "css h1", "css h2"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        let many: String = (0..2_500).map(|number| format!("css {number}\n")).collect();
        std::fs::write(&path, many).unwrap();
        assert_eq!(kept_lines(&path).first().unwrap(), "css 1500");
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), HISTORY);
        assert!(kept_lines(&folder.path().join("none")).is_empty());
    }
}
