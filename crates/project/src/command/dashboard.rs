//! The dashboard in the terminal: `crawl --tui`, and the command `control DIR watch`. It shows what the page of the control shows.
//!
//! It is plain text with a few sequences that all terminals have; a library for terminals would bring forms and keys, which it does not
//! need: what is to be done to the crawl is done by the other commands.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};

use huntsman_crawler::human_bytes;
use serde_json::Value;

use super::render::{Style, Table, count, counted, duration, escape, shorten};

/// Number of lines of the log that are kept.
const LOG_LINES: usize = 200;
/// Size of a terminal that does not tell its own.
const USUAL_SIZE: (usize, usize) = (80, 24);
/// Switches to a screen of its own, without a cursor, and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// The terminal on which a dashboard is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// Standard output.
    Stdout,
    /// Standard error, because standard output may have the items.
    Stderr,
}

impl Terminal {
    /// Whether a dashboard can be drawn there.
    pub fn is_capable(self) -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        };
        is_terminal && !is_dumb
    }

    /// Columns and lines.
    fn size(self) -> (usize, usize) {
        #[cfg(unix)]
        {
            let size = match self {
                Self::Stdout => rustix::termios::tcgetwinsize(io::stdout()),
                Self::Stderr => rustix::termios::tcgetwinsize(io::stderr()),
            };
            if let Ok(size) = size
                && size.ws_col > 0
                && size.ws_row > 0
            {
                return (size.ws_col.into(), size.ws_row.into());
            }
        }
        USUAL_SIZE
    }

    fn write(self, text: &str) {
        // An error means that the terminal is gone; the crawl goes on without the display.
        let _ = match self {
            Self::Stdout => {
                io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush())
            }
            Self::Stderr => io::stderr().lock().write_all(text.as_bytes()),
        };
    }

    fn style(self) -> Style {
        match self {
            Self::Stdout => Style::stdout(),
            Self::Stderr => Style::stderr(),
        }
    }
}

/// A dashboard that is being drawn. The terminal is as before when it is closed or dropped.
#[derive(Debug)]
pub struct Dashboard {
    terminal: Terminal,
    log: VecDeque<String>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was drawn so far: lines are printed as ever, so that errors before the crawl begins are seen.
    Waiting,
    Open,
    Closed,
}

impl Dashboard {
    /// A dashboard that takes the terminal with its first drawing.
    pub fn on(terminal: Terminal) -> Self {
        Self { terminal, log: VecDeque::new(), state: State::Waiting }
    }

    /// Adds a line to the log below the tables.
    pub fn line(&mut self, line: &str) {
        if self.state != State::Open {
            return self.terminal.write(line);
        }
        if self.log.len() >= LOG_LINES {
            self.log.pop_front();
        }
        self.log.push_back(line.trim_end().to_owned());
    }

    /// Draws an overview ([`Monitor::overview`](huntsman_serve::control::Monitor::overview)).
    pub fn draw(&mut self, overview: &Value) {
        match self.state {
            State::Open => {}
            State::Waiting => {
                self.terminal.write(ENTER);
                self.state = State::Open;
            }
            State::Closed => return,
        }
        let size = self.terminal.size();
        let lines = frame(overview, &self.log, size, self.terminal.style());
        // Each line is overwritten and then cleared to its end, which does not flicker.
        let mut text = "\x1b[H".to_owned();
        text.push_str(&lines.join("\x1b[K\r\n"));
        text.push_str("\x1b[K\x1b[J");
        self.terminal.write(&text);
    }

    /// Gives the terminal back, with the log as its last lines.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.state, State::Closed) == State::Open {
            self.terminal.write(LEAVE);
            for line in self.log.drain(..) {
                self.terminal.write(&format!("{line}\n"));
            }
        }
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.close();
    }
}

/// The lines of a dashboard, none of which is wider than the terminal, and not more than it has.
pub(super) fn frame(
    overview: &Value,
    log: &VecDeque<String>,
    (width, height): (usize, usize),
    style: Style,
) -> Vec<String> {
    let (status, rates) = (&overview["status"], &overview["rates"]);
    let number = |name: &str| count(status[name].as_u64().unwrap_or(0));
    let rate = |name: &str| rates[name].as_f64().unwrap_or(0.0).round();
    let state = status["state"].as_str().unwrap_or("?");
    let painted = match state {
        "running" => style.green(state),
        "ended" => style.red(state),
        _ => style.yellow(state),
    };
    let elapsed = duration(status["elapsed_s"].as_f64().unwrap_or(0.0));
    let cut = |text: &str| shorten(text, width).into_owned();
    let many = |name: &str, noun: &str| counted(status[name].as_u64().unwrap_or(0), noun);
    let numbers = format!(
        "{} ({}/min) · {} ({}/min) · {} queued · {} in flight",
        many("pages", "page"),
        rate("pages_per_minute"),
        many("items", "item"),
        rate("items_per_minute"),
        number("queued"),
        number("in_flight"),
    );
    let others = format!(
        "{} active, {} down · {} failed · {} skipped · {}",
        many("hosts_active", "host"),
        number("hosts_down"),
        number("failed"),
        number("skipped"),
        human_bytes(status["wire_bytes"].as_u64().unwrap_or(0)),
    );
    let mut lines = vec![format!("{} {painted} {elapsed}", style.bold("crawl")), cut(&numbers), cut(&others)];
    lines.push(style.green(&spark(&rates["series"], width)));
    let room = height.saturating_sub(lines.len());
    let tables = [
        ("hosts", room * 4 / 10, table(&overview["hosts"], &HOSTS, &[2, 3, 4, 5])),
        ("queue", room * 2 / 10, table(&overview["queue"], &["url", "depth", "priority"], &[])),
        ("errors", room * 2 / 10, table(&overview["errors"], &["at", "url", "why"], &[])),
    ];
    for (name, room, table) in tables {
        section(&mut lines, name, &table, room, style, &cut);
    }
    let left = height.saturating_sub(lines.len());
    let newest: Vec<String> =
        log.iter().rev().take(left.saturating_sub(1)).rev().map(|line| without_colours(line)).collect();
    section(&mut lines, "log", &newest, left, style, &cut);
    lines.truncate(height);
    lines
}

const HOSTS: [&str; 7] = ["host", "state", "queued", "in_flight", "delay_s", "requests", "last_error"];

/// Adds a title and lines, as many as there is room for.
fn section(
    lines: &mut Vec<String>,
    title: &str,
    content: &[String],
    room: usize,
    style: Style,
    cut: &impl Fn(&str) -> String,
) {
    if content.is_empty() || room < 2 {
        return;
    }
    lines.push(style.bold(title));
    lines.extend(content.iter().take(room - 1).map(|line| cut(&escape(line))));
}

fn table(entries: &Value, columns: &[&str], right: &[usize]) -> Vec<String> {
    let entries: Vec<&Value> = entries.as_array().into_iter().flatten().collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let mut table = Table::right(right);
    table.row(columns.iter().map(|name| name.replace('_', " ")));
    for entry in entries {
        table.row(columns.iter().map(|name| match &entry[*name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }));
    }
    table.lines("").lines().map(str::to_owned).collect()
}

/// A line of the log without the sequences that colour it for a terminal of its own.
fn without_colours(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let parameters = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        text + parameters.strip_prefix('m').unwrap_or(piece)
    })
}

/// A line of bars of eight heights.
fn spark(series: &Value, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let values: Vec<f64> = series.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let most = values.iter().copied().fold(1.0, f64::max);
    let shown = values.iter().skip(values.len().saturating_sub(width));
    shown.map(|value| BARS[((value / most * 7.0).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn overview() -> Value {
        let hosts: Vec<Value> = (0..50)
            .map(|n| json!({"host": format!("h{n}.example"), "state": "active", "queued": n, "last_error": "\u{1b}[31mred"}))
            .collect();
        json!({
            "status": {"state": "paused", "elapsed_s": 61.0, "pages": 12_345, "wire_bytes": 1_500_000},
            "rates": {"pages_per_minute": 59.6, "series": [0.0, 30.0, 60.0]},
            "hosts": hosts,
            "queue": [{"url": format!("https://example.org/{}", "a".repeat(500)), "depth": 3}],
            "errors": [],
        })
    }

    #[test]
    fn a_frame_fits_any_terminal_and_shows_no_control_characters() {
        let log: VecDeque<String> = (0..99).map(|n| format!("\u{1b}[2m12:00\u{1b}[0m line {n}")).collect();
        for size in [(80, 24), (20, 10), (200, 60), (1, 1), (80, 3)] {
            let lines = frame(&overview(), &log, size, Style::none());
            assert!(lines.len() <= size.1, "{size:?}: {lines:#?}");
            assert!(lines.iter().skip(1).all(|line| line.chars().count() <= size.0), "{size:?}: {lines:#?}");
            assert!(!lines.concat().contains('\u{1b}'), "{lines:#?}");
        }
        let text = frame(&overview(), &log, (80, 24), Style::none()).join("\n");
        for part in [
            "paused",
            "12 345 pages (60/min)",
            "1.5 MB",
            "▁▅█",
            "h0.example",
            "https://example.org/a",
            "line 98",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("errors"), "a list without entries has no title:\n{text}");
    }
}
