//! Checks output directories: records of pages and drops, results of a sweep, the report, and the job.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use huntsman::SavedJob;
use huntsman::middleware::StoredCheck;
use serde_json::Value;

use super::{Problem, Verdict};
use crate::exit::Outcome;
use crate::output::{DROPS, HTML_REPORT, PAGES, REPORT, Run, SWEEP, SWEEP_REPORT, State, Status, job_of};
use crate::render::counted;
use crate::sweep::whole_articles;

/// Number of problems of each kind that are listed one by one.
const TOLD: usize = 10;

/// A check in progress, with its results.
struct Look<'a> {
    path: &'a Path,
    status: &'a Status,
    verdict: Verdict,
    /// Addresses of pages: `true` if the address has a record of its own, `false` if it only answered for another one.
    seen: HashMap<Box<str>, bool>,
    told: HashMap<&'static str, usize>,
}

impl Verdict {
    /// Checks an output directory; changes nothing.
    pub(crate) fn of_output(path: &Path, status: &Status) -> Outcome<Self> {
        let mut look = Look {
            path,
            status,
            verdict: Self::new(kind(status.run()), path),
            seen: HashMap::new(),
            told: HashMap::new(),
        };
        match status.state {
            State::Making | State::Clearing => {
                look.verdict.note(
                    "its files are being made or cleared, and none counts; the same command starts anew",
                );
                return Ok(look.verdict);
            }
            State::Failed => look.verdict.note("the run delivered no page; the same command starts anew"),
            State::Running if status.is_in_memory() => {
                look.verdict.note("the run was killed, and its queue was in memory; --fresh starts anew");
            }
            State::Running => look.verdict.note("the run was killed; the same command goes on"),
            State::Interrupted => look.verdict.note("the run was stopped; the same command goes on"),
            State::Finished => {}
        }
        let pages = look.records(PAGES)?;
        let drops = look.records(DROPS)?;
        look.verdict.count("pages", pages);
        look.verdict.count("drops", drops);
        if status.run() == Run::Sweep {
            look.sweep()?;
        }
        if status.state == State::Finished {
            look.finished(pages)?;
        }
        if !status.is_in_memory() {
            look.job()?;
        }
        Ok(look.verdict)
    }
}

fn kind(run: Run) -> &'static str {
    match run {
        Run::Crawl => "output of a crawl",
        Run::Sweep => "output of a sweep",
        Run::Demo => "output of a demo",
    }
}

impl Look<'_> {
    /// Whether there may be records behind the positions in the job: a continued run cuts them off.
    fn is_unfinished(&self) -> bool {
        matches!(self.status.state, State::Running | State::Interrupted)
    }

    fn problem(&mut self, file: PathBuf, at: Option<u64>, what: String) {
        let help = "restore the file from a copy, or start anew with --fresh".to_owned();
        self.verdict.problem(Problem { file, at, what, help });
    }

    /// As [`problem`](Self::problem), for problems that many records may have.
    fn problem_of(&mut self, kind: &'static str, file: &Path, at: u64, what: impl FnOnce() -> String) {
        let told = self.told.entry(kind).or_default();
        *told += 1;
        if *told <= TOLD {
            self.problem(file.to_owned(), Some(at), what());
        }
    }

    /// Checks the records of a file: each is JSON, and each address has one.
    fn records(&mut self, name: &'static str) -> Outcome<u64> {
        let file = self.path.join(name);
        let Some(reader) = opened(&file)? else {
            self.problem(file, None, "it is missing".to_owned());
            return Ok(0);
        };
        let (mut records, mut at) = (0, 0);
        for_each_line(reader, |line| {
            let start = at;
            at += line.len() as u64;
            if !line.ends_with(b"\n") {
                match self.is_unfinished() {
                    true => self
                        .verdict
                        .note(format!("the last line of {name} is torn; the run that goes on cuts it off")),
                    false => self.problem(file.clone(), Some(start), "the last line is torn".to_owned()),
                }
                return;
            }
            let record: Value = match serde_json::from_slice(line) {
                Ok(record) => record,
                Err(error) => {
                    return self
                        .problem_of("a line", &file, start, || format!("the line is no record ({error})"));
                }
            };
            records += 1;
            let Some(url) = record["url"].as_str() else {
                return self.problem_of("no address", &file, start, || "the record has no url".to_owned());
            };
            if self.seen.insert(url.into(), true) == Some(true) {
                self.problem_of("twice", &file, start, || format!("{url} has another record"));
            }
            if let Some(url) = record["final_url"].as_str() {
                self.seen.entry(url.into()).or_insert(false);
            }
        })?;
        Ok(records)
    }

    /// Checks the articles of a sweep: all their lines are there, and their pages, too.
    fn sweep(&mut self) -> Outcome<()> {
        let file = self.path.join(SWEEP);
        let Some(reader) = opened(&file)? else {
            self.problem(file, None, "it is missing".to_owned());
            return Ok(());
        };
        let length = reader.get_ref().metadata()?.len();
        match whole_articles(&file) {
            Ok((articles, end)) => {
                self.verdict.count("articles with sources", articles.len() as u64);
                if end < length && !self.is_unfinished() {
                    self.problem(file.clone(), Some(end), "the last article is not whole".to_owned());
                }
                let unknown = articles.iter().filter(|url| !self.seen.contains_key(url.as_str())).count();
                if unknown > 0 && !self.is_unfinished() {
                    let what = format!("{} have no page in {PAGES}", counted(unknown as u64, "article"));
                    self.problem(file, None, what);
                }
            }
            Err(error) => self.problem(file, None, error.to_string()),
        }
        Ok(())
    }

    /// Checks the files that a finished run writes at its end.
    fn finished(&mut self, pages: u64) -> Outcome<()> {
        let further = match self.status.run() {
            Run::Crawl => None,
            Run::Sweep => Some(SWEEP_REPORT),
            Run::Demo => Some(HTML_REPORT),
        };
        for name in [Some(REPORT), further].into_iter().flatten() {
            let file = self.path.join(name);
            if !file.is_file() {
                self.problem(file, None, "it is missing".to_owned());
            }
        }
        let file = self.path.join(REPORT);
        if let Some(reader) = opened(&file)?
            && let Err(error) = serde_json::from_reader::<_, Value>(reader)
        {
            self.problem(file, None, format!("it cannot be read ({error})"));
        }
        if pages != self.status.pages {
            let what = format!("it has {}, and the run wrote {}", counted(pages, "page"), self.status.pages);
            self.problem(self.path.join(PAGES), None, what);
        }
        Ok(())
    }

    /// Checks every entry of the job, and the queue and counters that the entries form.
    fn job(&mut self) -> Outcome<()> {
        let path = job_of(self.path);
        if !path.join("format.json").is_file() {
            self.problem(path, None, "the job is missing".to_owned());
            return Ok(());
        }
        let check = StoredCheck::of(&path, &[])?;
        self.verdict.count("entries of the job", check.entries);
        for what in check.damage {
            self.problem(path.clone(), None, what);
        }
        match SavedJob::read(&path) {
            Ok(job) => self.verdict.count("requests in the queue", job.queued()),
            Err(error) => self.problem(path, None, error.to_string()),
        }
        Ok(())
    }
}

fn opened(path: &Path) -> Outcome<Option<BufReader<File>>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(BufReader::new(opened?))),
    }
}

fn for_each_line(mut reader: impl BufRead, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        each(&line);
        line.clear();
    }
    Ok(())
}
