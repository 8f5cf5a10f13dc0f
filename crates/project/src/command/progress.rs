//! The progress line: on stderr, only when that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::dashboard::{Dashboard, Terminal};

/// The stderr stream, shared by the progress line and the log so that neither tears the other.
#[derive(Clone, Debug)]
pub struct Screen {
    bar: Option<ProgressBar>,
    dashboard: Option<Arc<Mutex<Dashboard>>>,
}

/// The numbers that the progress line shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Pages that were delivered.
    pub pages: u64,
    /// Pages a second, averaged over the last seconds.
    pub rate: f64,
    /// Waiting requests.
    pub queued: u64,
    /// Hosts with requests that wait or are in flight.
    pub hosts: u64,
    /// Failed requests.
    pub failed: u64,
    /// Bytes of response bodies as transferred.
    pub bytes: u64,
}

impl Screen {
    /// The screen with a progress line if stderr is a terminal that can show one.
    pub fn with_progress() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if !io::stderr().is_terminal() || dumb {
            return Self::plain();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(8));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let template = if plain { "{spinner} {wide_msg}" } else { "{spinner:.green} {wide_msg}" };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        Self { bar: Some(bar), dashboard: None }
    }

    /// A dashboard on all of stderr if that is a terminal that can show one; otherwise lines.
    pub fn with_dashboard() -> Self {
        if !Terminal::Stderr.is_capable() {
            return Self::plain();
        }
        Self { bar: None, dashboard: Some(Arc::new(Mutex::new(Dashboard::on(Terminal::Stderr)))) }
    }

    /// The screen without a progress line.
    pub fn plain() -> Self {
        Self { bar: None, dashboard: None }
    }

    /// Whether there is a progress line to update.
    pub fn has_progress(&self) -> bool {
        self.bar.is_some()
    }

    /// Whether there is a dashboard to draw.
    pub fn has_dashboard(&self) -> bool {
        self.dashboard.is_some()
    }

    /// Draws an overview of the crawl on the dashboard.
    pub fn draw(&self, overview: &Value) {
        self.on_dashboard(|dashboard| dashboard.draw(overview));
    }

    fn on_dashboard(&self, work: impl FnOnce(&mut Dashboard)) {
        if let Some(dashboard) = &self.dashboard {
            work(&mut dashboard.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Shows new numbers.
    pub fn update(&self, progress: &Progress) {
        if let Some(bar) = &self.bar {
            bar.set_message(progress.line());
            bar.tick();
        }
    }

    /// Shows a description of the current step, for commands that do not crawl.
    pub fn status(&self, doing: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(doing.to_owned());
            bar.tick();
        }
    }

    /// Prints a line (with its line feed) above the progress line.
    pub fn line(&self, line: &str) {
        if self.dashboard.is_some() {
            return self.on_dashboard(|dashboard| dashboard.line(line));
        }
        let print = || {
            // If stderr is gone, the error cannot be reported anywhere.
            let _ = io::stderr().lock().write_all(line.as_bytes());
        };
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the progress line or the dashboard.
    pub fn clear(&self) {
        self.on_dashboard(Dashboard::close);
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress {
    /// Formats the line: `1 234 pages, 56.7/s · 89 queued · 2 hosts · 3 failed · 4.5 MB`
    pub fn line(&self) -> String {
        use super::render::{count, counted};
        format!(
            "{}, {:.1}/s · {} queued · {} · {} failed · {}",
            counted(self.pages, "page"),
            self.rate,
            count(self.queued),
            counted(self.hosts, "host"),
            count(self.failed),
            huntsman_crawler::human_bytes(self.bytes)
        )
    }
}

/// Computes pages a second over the last samples, so that the number follows the crawl without jumping.
#[derive(Debug, Default)]
pub struct Rate {
    samples: std::collections::VecDeque<(Duration, u64)>,
}

/// The time over which the rate is averaged.
const WINDOW: Duration = Duration::from_secs(5);

impl Rate {
    /// Adds a sample and returns the rate.
    pub fn sample(&mut self, at: Duration, pages: u64) -> f64 {
        self.samples.push_back((at, pages));
        while self.samples.len() > 2 && self.samples.get(1).is_some_and(|(then, _)| at - *then >= WINDOW) {
            self.samples.pop_front();
        }
        match self.samples.front() {
            Some((then, before)) if at > *then => {
                pages.saturating_sub(*before) as f64 / (at - *then).as_secs_f64()
            }
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rate = Rate::default();
        assert_eq!(rate.sample(Duration::ZERO, 0), 0.0);
        for second in 1..=20 {
            let got = rate.sample(Duration::from_secs(second), second * 10);
            assert!((got - 10.0).abs() < 1e-9, "{got}");
        }
        // The site stops answering: after the window the old rate is forgotten.
        let rates: Vec<f64> = (21..=27).map(|second| rate.sample(Duration::from_secs(second), 200)).collect();
        assert_eq!(rates.last(), Some(&0.0), "{rates:?}");
        assert!(rate.samples.len() < 10);
    }

    #[test]
    fn the_line_says_what_is_going_on() {
        let progress =
            Progress { pages: 1234, rate: 56.78, queued: 89, hosts: 2, failed: 3, bytes: 4_500_000 };
        assert_eq!(progress.line(), "1 234 pages, 56.8/s · 89 queued · 2 hosts · 3 failed · 4.5 MB");
    }
}
