//! The commands: their names, what they take, and what they do, in one table.

use std::fmt;

use huntsman_crawler::nearest;
use huntsman_crawler::terminal::escape;

/// A command of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Css,
    Derive,
    Exit,
    Fetch,
    Follow,
    Forget,
    Form,
    Headers,
    Help,
    Json,
    Limit,
    Links,
    Page,
    Parse,
    Re,
    Robots,
    Save,
    Settings,
    Text,
    View,
    XPath,
}

/// A line of the table.
pub(crate) struct Info {
    command: Command,
    pub(crate) name: &'static str,
    arguments: &'static str,
    help: &'static str,
}

const fn info(command: Command, name: &'static str, arguments: &'static str, help: &'static str) -> Info {
    Info { command, name, arguments, help }
}

/// All commands, in the order of the help.
pub(crate) const COMMANDS: [Info; 22] = [
    info(Command::Fetch, "fetch", "URL|FILE", "fetches a page, or reads a file or a fixture"),
    info(Command::Page, "page", "", "says which page it is: URL, status, kind, title"),
    info(Command::Css, "css", "SELECTOR [as NAME]", "values by a CSS selector with ::text and ::attr(name)"),
    info(Command::XPath, "xpath", "PATH [as NAME]", "values by an XPath 1.0 expression"),
    info(Command::Json, "json", "PATH [as NAME]", "values of a JSON body by a JSONPath"),
    info(Command::Re, "re", "PATTERN", "what a regular expression finds in the last values, or in the body"),
    info(Command::Links, "links", "[TEXT]", "lists the links, or those with this text in address or anchor"),
    info(Command::Follow, "follow", "NUMBER", "fetches the link with this number"),
    info(Command::Form, "form", "[SELECTOR]", "shows a form: where it goes, and its fields"),
    info(Command::Headers, "headers", "", "shows status and headers"),
    info(Command::Text, "text", "", "shows the text that a reader sees"),
    info(
        Command::Robots,
        "robots",
        "[PATH]",
        "says whether robots.txt allows the page or a path, and by which line",
    ),
    info(
        Command::Settings,
        "settings",
        "[NAME]",
        "lists the settings, or says where the value of one comes from",
    ),
    info(Command::View, "view", "", "opens a private copy of the page in a browser"),
    info(Command::Parse, "parse", "[CALLBACK]", "what the callback of the spider gives for the page"),
    info(Command::Save, "save fixture", "NAME [CALLBACK]", "saves the page as a fixture for tests"),
    info(Command::Derive, "derive", "[NAME]", "prints a struct for what was tried, with derive(Item)"),
    info(Command::Forget, "forget", "[NAME]", "leaves out what was tried, or one field of it"),
    info(Command::Limit, "limit", "NUMBER", "number of values and links that are shown"),
    info(Command::Help, "help", "", "shows this list"),
    info(Command::Exit, "exit", "", "ends the shell, as Ctrl-D does"),
    info(Command::Exit, "quit", "", "ends the shell"),
];

/// Why a command did nothing, or found nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Whether the line is wrong: there is no such command, or the selector is not valid. Otherwise the page has no such thing, or could not be fetched.
    pub is_usage: bool,
    /// What is wrong. It may have several lines, and text of the page.
    pub message: String,
}

impl Complaint {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { is_usage: true, message: message.into() }
    }

    pub(crate) fn of(message: impl fmt::Display) -> Self {
        Self { is_usage: false, message: message.to_string() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Complaint {}

impl Command {
    /// The command of a line and its argument.
    ///
    /// # Errors
    /// There is no such command; the nearest is named.
    pub(crate) fn of(line: &str) -> Result<(Self, &str), Complaint> {
        let line = line.trim();
        let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        if word == "save" {
            let name = argument.strip_prefix("fixture").filter(|rest| rest.starts_with(char::is_whitespace));
            return match name.map(str::trim).filter(|name| !name.is_empty()) {
                Some(name) => Ok((Self::Save, name)),
                None => Err(Complaint::usage("name the fixture: save fixture NAME [CALLBACK]")),
            };
        }
        let Some(info) = COMMANDS.iter().find(|info| info.name == word) else {
            let hint = match nearest(word, COMMANDS.iter().map(|info| info.name)) {
                Some(near) => format!("did you mean {near}?"),
                None => "help lists the commands".to_owned(),
            };
            return Err(Complaint::usage(format!("there is no command {}; {hint}", escape(word))));
        };
        let needs_one = !info.arguments.is_empty() && !info.arguments.starts_with('[');
        // The whole body is the value of no path.
        if needs_one && argument.is_empty() && info.command != Self::Json {
            return Err(Complaint::usage(format!("{} {}: {}", info.name, info.arguments, info.help)));
        }
        if info.arguments.is_empty() && !argument.is_empty() {
            return Err(Complaint::usage(format!("{} takes nothing after it", info.name)));
        }
        Ok((info.command, argument))
    }
}

/// The list of all commands.
pub(crate) fn help() -> String {
    let usage = |info: &Info| format!("{} {}", info.name, info.arguments);
    let width = COMMANDS.iter().map(|info| usage(info).chars().count()).max().unwrap_or(0);
    let lines: Vec<String> =
        COMMANDS.iter().map(|info| format!("{:width$}  {}", usage(info), info.help)).collect();
    lines.join("\n")
}

/// What may stand at the end of a line in place of its last words: the start of these words, and the candidates.
pub(crate) fn completions(line: &str, settings: &[String]) -> (usize, Vec<String>) {
    let begins = |known: &str, begun: &str| known.starts_with(begun) && known != begun;
    if let Some(begun) = line.strip_prefix("settings ") {
        let names = settings.iter().filter(|name| begins(name, begun)).cloned().collect();
        return (line.len() - begun.len(), names);
    }
    (0, COMMANDS.iter().filter(|info| begins(info.name, line)).map(|info| info.name.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_and_its_argument() {
        for (line, command, argument) in [
            ("css h1 > a::text", Command::Css, "h1 > a::text"),
            ("  links  ", Command::Links, ""),
            ("save  fixture  first page ", Command::Save, "first page"),
            ("json", Command::Json, ""),
        ] {
            assert_eq!(Command::of(line), Ok((command, argument)), "{line}");
        }
        for (line, part) in [
            ("cs h1", "did you mean css?"),
            ("\u{1b}[31m", "there is no command \\u{1b}[31m"),
            ("css", "css SELECTOR"),
            ("headers x", "takes nothing"),
            ("save page", "save fixture NAME"),
        ] {
            let complaint = Command::of(line).unwrap_err();
            assert!(complaint.is_usage && complaint.message.contains(part), "{line}: {complaint}");
        }
    }

    #[test]
    fn commands_and_names_of_settings_are_completed() {
        let settings = ["depth_limit", "download_delay", "download_timeout"].map(str::to_owned);
        assert_eq!(completions("he", &settings), (0, vec!["headers".to_owned(), "help".to_owned()]));
        assert_eq!(completions("settings download_d", &settings), (9, vec!["download_delay".to_owned()]));
        assert_eq!(completions("css h", &settings).1, Vec::<String>::new());
        assert!(COMMANDS.iter().all(|info| help().contains(info.help)));
    }
}
