//! The log: text or JSON lines on stderr or in a file, always one line per event, whatever characters the values
//! contain.
//!
//! Whether there is a log is the program's decision: this one is only active if the program asks for it
//! ([`CrawlerBuilder::with_logging`](crate::CrawlerBuilder::with_logging)). If the log cannot be written (stderr is a
//! closed pipe, the disk is full), log lines are lost but the crawl is not affected.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::clock::Timestamp;
use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::terminal::{escape, escape_json, wants_color};

/// Prefix of the crates that `log_level` applies to. Of other crates only warnings are shown, unless the setting
/// names them.
const OURS: &str = "huntsman";

/// Number of events per level, for the stats `log_count/{LEVEL}`.
#[derive(Clone, Debug, Default)]
pub struct LogCount(Arc<[AtomicU64; 5]>);

const LEVELS: [(Level, &str); 5] = [
    (Level::ERROR, "ERROR"),
    (Level::WARN, "WARNING"),
    (Level::INFO, "INFO"),
    (Level::DEBUG, "DEBUG"),
    (Level::TRACE, "TRACE"),
];

impl LogCount {
    fn add(&self, level: Level) {
        if let Some(index) = LEVELS.iter().position(|(known, _)| *known == level) {
            self.0[index].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The counts of the levels that occurred.
    pub fn stats(&self) -> impl Iterator<Item = (String, u64)> + use<'_> {
        let name = |index: usize| format!("log_count/{}", LEVELS[index].1);
        let counts = (0..LEVELS.len()).map(move |index| (name(index), self.0[index].load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// Writes a line, which includes its line feed.
type WriteLine = Box<dyn Fn(&str) + Send + Sync>;

/// A log according to the settings `log_level`, `log_format` and `log_file`, to be started once per process.
pub struct Log {
    lines: WriteLine,
    color: bool,
}

impl Default for Log {
    fn default() -> Self {
        let lines = |line: &str| {
            // If stderr is gone the failure cannot be reported; `eprintln!` would panic.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        };
        Self { lines: Box::new(lines), color: wants_color(&std::io::stderr()) }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("color", &self.color).finish_non_exhaustive()
    }
}

/// The result of [`Log::start`].
#[derive(Clone, Debug)]
pub struct StartedLog {
    /// Counts of the events so far; zero if another log was installed before.
    pub count: LogCount,
    /// Whether this log was installed; a log that was installed before stays in place.
    pub is_installed: bool,
}

impl Log {
    /// A log on stderr, in colour if stderr is a terminal that supports it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes the lines to a function instead of writing them to stderr. A file named by the settings has precedence.
    /// The function must not panic.
    pub fn lines_to(mut self, lines: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.lines = Box::new(lines);
        self
    }

    /// Installs the log for the whole process. A log that is already installed stays in place.
    ///
    /// # Errors
    /// `log_level` or `log_format` is not valid, or `log_file` cannot be opened.
    pub fn start(self, settings: &Settings) -> Result<StartedLog> {
        let json = match settings.log_format.as_str() {
            "text" => false,
            "json" => true,
            other => {
                return Err(Error::usage(format!(
                    "setting log_format = {}: use text or json",
                    escape(other)
                )));
            }
        };
        let targets = targets(&settings.log_level)?;
        let (write, color): (WriteLine, bool) = match &settings.log_file {
            Some(path) => {
                let file = huntsman_files::open_append(path).map_err(|error| {
                    let path = escape(path);
                    Error::usage(format!("opening the log file {path} (setting log_file): {error}"))
                })?;
                (to_file(file), false)
            }
            None => (self.lines, self.color),
        };
        let count = LogCount::default();
        let lines = LogLines { write, json, color, count: count.clone() };
        let is_installed = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init().is_ok();
        Ok(StartedLog { count, is_installed })
    }
}

fn to_file(file: File) -> WriteLine {
    let file = Mutex::new(file);
    Box::new(move |line| {
        // The line is written in one piece, so that two processes may share a file.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    })
}

struct LogLines {
    write: WriteLine,
    json: bool,
    color: bool,
    count: LogCount,
}

/// Parses `debug`, or levels per component: `info,huntsman_crawler=debug,hyper=info`.
fn targets(level: &str) -> Result<Targets> {
    let wrong = || {
        Error::usage(format!(
            "setting log_level = {}: use off, error, warn, info, debug or trace, or levels per component such as \
             info,huntsman_crawler=debug",
            escape(level)
        ))
    };
    let level = level.trim().to_ascii_lowercase();
    let parsed: Targets = level.parse().map_err(|_| wrong())?;
    match level.split(',').find(|part| !part.contains('=')) {
        // A single word that is not a level would be taken as the name of a component.
        Some(word) => {
            let own = word.trim().parse::<tracing::level_filters::LevelFilter>().map_err(|_| wrong())?;
            let others = own.min(tracing::level_filters::LevelFilter::WARN);
            Ok(Targets::new().with_default(others).with_target(OURS, own).with_targets(parsed))
        }
        None => Ok(parsed),
    }
}

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.count.add(*event.metadata().level());
        let line = if self.json { json_line(event) } else { self.text_line(event) };
        (self.write)(&line);
    }
}

impl LogLines {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn text_line(&self, event: &Event<'_>) -> String {
        let level = *event.metadata().level();
        let name = format!("{level:5}");
        let name = match level {
            Level::ERROR => self.paint("31", &name),
            Level::WARN => self.paint("33", &name),
            Level::INFO => self.paint("32", &name),
            _ => self.paint("2", &name),
        };
        let mut line = format!("{} {name} ", self.paint("2", &Timestamp::wall().to_rfc3339()));
        let mut fields = TextFields { message: String::new(), rest: String::new() };
        event.record(&mut fields);
        line.push_str(&fields.message);
        line.push_str(&fields.rest);
        line.push('\n');
        line
    }
}

#[derive(Default)]
struct TextFields {
    message: String,
    rest: String,
}

impl TextFields {
    fn put(&mut self, field: &Field, value: &str) {
        let value = escape(value);
        if field.name() == "message" {
            self.message.push_str(&value);
        } else {
            let _ = write!(self.rest, " {}={value}", field.name());
        }
    }
}

impl Visit for TextFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        // Quotes are added if a blank would make the end of the value ambiguous.
        if field.name() != "message" && value.contains([' ', '"']) {
            self.put(field, &format!("{value:?}"));
        } else {
            self.put(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, &format!("{value:?}"));
    }
}

fn json_line(event: &Event<'_>) -> String {
    let mut line = Map::new();
    line.insert("time".into(), Timestamp::wall().to_rfc3339().into());
    line.insert("level".into(), event.metadata().level().as_str().to_ascii_lowercase().into());
    line.insert("component".into(), event.metadata().target().into());
    event.record(&mut JsonFields(&mut line));
    escape_json(&Value::Object(line).to_string()).into_owned() + "\n"
}

struct JsonFields<'a>(&'a mut Map<String, Value>);

impl JsonFields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for JsonFields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `log` with a log that writes to a file, and returns the contents of the file.
    fn logged(json: bool, log: impl FnOnce()) -> (String, LogCount) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let count = LogCount::default();
        let lines = LogLines {
            write: to_file(huntsman_files::create_new(&path).unwrap()),
            json,
            color: false,
            count: count.clone(),
        };
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(targets("info").unwrap()));
        tracing::subscriber::with_default(subscriber, log);
        (std::fs::read_to_string(path).unwrap(), count)
    }

    #[test]
    fn values_from_the_web_cannot_start_a_line_or_steer_the_terminal() {
        let log = || tracing::info!(target: "huntsman", url = "http://a/\n\u{1b}[2J\u{9b}1m", "got\rit");
        let (text, _) = logged(false, log);
        assert_eq!(text.matches('\n').count(), 1);
        assert!(text.contains("got\\rit") && text.contains("\\u{1b}[2J\\u{9b}1m"), "{text}");
        let (line, _) = logged(true, log);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(line.trim_end().chars().all(|c| !c.is_control()), "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["url"], "http://a/\n\u{1b}[2J\u{9b}1m");
        assert_eq!(value["message"], "got\rit");
    }

    #[test]
    fn the_level_is_about_our_own_components_and_events_are_counted() {
        let (text, count) = logged(false, || {
            tracing::info!(target: "huntsman::engine", pages = 3, "own");
            tracing::info!(target: "hyper", "foreign");
            tracing::warn!(target: "hyper", "foreign warning");
            tracing::debug!(target: "huntsman_crawler", "too fine");
        });
        assert!(text.contains("own pages=3") && text.contains("foreign warning"), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        let counts: Vec<_> = count.stats().collect();
        assert_eq!(counts, [("log_count/WARNING".to_owned(), 1), ("log_count/INFO".to_owned(), 1)]);
    }

    #[test]
    fn a_level_that_is_none_is_refused() {
        assert!(targets("loud").unwrap_err().to_string().contains("log_level"));
        assert!(targets("info,hyper=debug").is_ok());
        assert!(targets("huntsman_crawler=trace").is_ok());
    }
}
