//! The log: text or JSON lines on stderr or in a file, one event a line whatever the web put into its values.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use huntsman::{Settings, Timestamp};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::{Failure, Outcome};
use crate::progress::Screen;
use crate::render::{Style, escape, escape_json};

/// Crates whose events `log_level` is about; of others only warnings are shown, unless it names them.
const OURS: &str = "huntsman";

/// Number of events per level, as in the stats `log_count/{LEVEL}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogCount(Arc<[AtomicU64; 5]>);

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

    /// The levels that occurred.
    pub(crate) fn stats(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |index: usize| format!("log_count/{}", LEVELS[index].1);
        let counts = (0..LEVELS.len()).map(move |index| (name(index), self.0[index].load(Ordering::Relaxed)));
        counts.filter(|(_, count)| *count > 0)
    }
}

enum Target {
    /// Between the lines of the progress display.
    Screen(Screen),
    File(Mutex<File>),
}

struct LogLines {
    target: Target,
    json: bool,
    style: Style,
    count: LogCount,
}

/// Starts the log as the settings say. Called once, before anything logs.
///
/// # Errors
/// `log_level` or `log_format` are not understood, or `log_file` cannot be opened.
pub(crate) fn start(settings: &Settings, screen: &Screen) -> Outcome<LogCount> {
    let json = match settings.log_format.as_str() {
        "text" => false,
        "json" => true,
        other => {
            return Err(Failure::usage(format!("setting log_format = {}: use text or json", escape(other))));
        }
    };
    let targets = targets(&settings.log_level)?;
    let (target, style) = match &settings.log_file {
        Some(path) => {
            let file = huntsman::files::open_append(path).map_err(|error| {
                Failure::usage(format!("opening the log file {} (setting log_file): {error}", escape(path)))
            })?;
            (Target::File(Mutex::new(file)), Style::none())
        }
        None => (Target::Screen(screen.clone()), Style::stderr()),
    };
    let count = LogCount::default();
    let lines = LogLines { target, json, style, count: count.clone() };
    // A second start (none in the command itself) would keep the first log.
    let _ = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
    Ok(count)
}

/// `debug`, or levels per component: `info,huntsman_crawler=debug,hyper=info`.
fn targets(level: &str) -> Outcome<Targets> {
    let wrong = || {
        Failure::usage(format!(
            "setting log_level = {}: use off, error, warn, info, debug or trace, or levels per component such as \
             info,huntsman_crawler=debug",
            escape(level)
        ))
    };
    let level = level.trim().to_ascii_lowercase();
    let parsed: Targets = level.parse().map_err(|_| wrong())?;
    match level.split(',').find(|part| !part.contains('=')) {
        // A bare word that is no level would be taken for the name of a component.
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
        // A log that cannot be written must not end the crawl.
        match &self.target {
            Target::Screen(screen) => screen.line(&line),
            Target::File(file) => {
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = file.write_all(line.as_bytes());
            }
        }
    }
}

impl LogLines {
    fn text_line(&self, event: &Event<'_>) -> String {
        let level = *event.metadata().level();
        let name = format!("{level:5}");
        let name = match level {
            Level::ERROR => self.style.red(&name),
            Level::WARN => self.style.yellow(&name),
            Level::INFO => self.style.green(&name),
            _ => self.style.dim(&name),
        };
        let mut line = format!("{} {name} ", self.style.dim(&Timestamp::wall().to_rfc3339()));
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
        // Quotes where a blank would make the end of the value unclear.
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

    /// Runs `log` under a log into a file and gives what was written.
    fn logged(json: bool, log: impl FnOnce()) -> (String, LogCount) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let count = LogCount::default();
        let lines = LogLines {
            target: Target::File(Mutex::new(File::create(&path).unwrap())),
            json,
            style: Style::none(),
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
        assert!(targets("loud").unwrap_err().message.contains("log_level"));
        assert!(targets("info,hyper=debug").is_ok());
        assert!(targets("huntsman_crawler=trace").is_ok());
    }
}
