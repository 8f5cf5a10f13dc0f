//! `huntsman-bench avoid-dup`: how many fetches the avoidance of duplicates saves and how many pages it loses,
//! compared with MaybeDont's rules.

mod args;
mod cases;
mod recordings;
mod site;
mod truth;
mod truth_maker;

use std::io::{self, Write};

use huntsman::detect::avoid::evaluation::ViewScore;
use huntsman_cli::exit::Outcome;
use huntsman_cli::render::{Style, Table, say};
use serde_json::{Value, json};

pub(crate) use args::{AvoidDupArgs, HELP};

use args::Mode;

pub(crate) fn run(args: AvoidDupArgs) -> Outcome {
    if let Some(path) = &args.make_truth {
        return truth_maker::run(path, &args);
    }
    if cfg!(debug_assertions) {
        say("this is a debug build: its times say little; measure with cargo build --release");
    }
    match (&args.site, &args.recording) {
        (Some(url), _) => crate::on_runtime(site::run(url.clone(), args)),
        (None, Some(path)) => recordings::run(path, &args),
        (None, None) => cases::run(&args),
    }
}

/// One number per seed, in ascending order.
#[derive(Clone, Debug)]
struct Spread(Vec<f64>);

impl Spread {
    /// Collects the numbers; seeds without one are left out.
    fn of(numbers: impl IntoIterator<Item = Option<f64>>) -> Self {
        let mut numbers: Vec<f64> = numbers.into_iter().flatten().collect();
        numbers.sort_by(f64::total_cmp);
        Self(numbers)
    }

    fn median(&self) -> Option<f64> {
        let (Some(low), Some(high)) =
            (self.0.get(self.0.len().checked_sub(1)? / 2), self.0.get(self.0.len() / 2))
        else {
            return None;
        };
        Some((low + high) / 2.0)
    }

    /// The range as `0.79-0.81`, a single number if both ends look the same, or `-` if there are none.
    fn range(&self, show: impl Fn(f64) -> String) -> String {
        match (self.0.first(), self.0.last()) {
            (Some(least), Some(most)) => {
                let (least, most) = (show(*least), show(*most));
                if least == most { least } else { format!("{least}-{most}") }
            }
            _ => "-".to_owned(),
        }
    }

    fn middle(&self, show: impl Fn(f64) -> String) -> String {
        self.median().map_or_else(|| "-".to_owned(), show)
    }

    fn json(&self) -> Value {
        json!(self.median())
    }
}

fn number(value: f64) -> String {
    format!("{value:.0}")
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

/// The score by one view of the truth.
fn score_json(score: ViewScore) -> Value {
    json!({
        "pages": score.pages,
        "contents": score.contents,
        "downloads": score.downloads,
        "contents_downloaded": score.contents_downloaded,
        "possible": score.possible(),
        "saved": score.saved(),
        "avoided": score.avoided(),
        "lost": score.lost(),
        "lost_share": score.lost_share(),
    })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The loss that a model estimates for itself: `0.0 % (< 3.5 %)`.
fn estimate(share: Option<f64>, most: Option<f64>) -> String {
    match (share, most) {
        (Some(share), Some(most)) => format!("{} (< {})", percent(share), percent(most)),
        _ => "-".to_owned(),
    }
}

/// A table whose first lines are its header; lines may be marked.
struct Marked {
    table: Table,
    head: usize,
    marked: Vec<bool>,
}

impl Marked {
    fn new(right: &[usize], head: &[&[&str]]) -> Self {
        let mut table = Table::right(right);
        for line in head {
            table.row(line.iter());
        }
        Self { table, head: head.len(), marked: Vec::new() }
    }

    fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>, is_marked: bool) {
        self.table.row(cells);
        self.marked.push(is_marked);
    }

    fn print(&self, stdout: &mut impl Write) -> io::Result<()> {
        let style = Style::stdout();
        for (at, line) in self.table.lines("").lines().enumerate() {
            let line = match at.checked_sub(self.head) {
                None => style.bold(line),
                Some(at) if self.marked[at] => style.yellow(line),
                Some(_) => line.to_owned(),
            };
            writeln!(stdout, "{line}")?;
        }
        Ok(())
    }
}

/// The title of a group of columns.
fn title(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default:",
        Mode::Reference => "reference:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_a_median_and_a_range() {
        let spread = |numbers: &[f64]| Spread::of(numbers.iter().map(|number| Some(*number)));
        assert_eq!(spread(&[3.0, 1.0, 2.0]).median(), Some(2.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]).median(), Some(2.5));
        assert_eq!(spread(&[7.0]).median(), Some(7.0));
        assert_eq!(Spread::of([None, None]).median(), None);
        assert_eq!(spread(&[0.811, 0.79]).range(ratio), "0.79-0.81");
        assert_eq!(spread(&[0.811, 0.809]).range(ratio), "0.81");
        assert_eq!(Spread::of([None]).range(ratio), "-");
    }
}
