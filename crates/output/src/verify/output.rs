//! Checks output directories: records of pages and drops, results of a sweep, the report, and the job.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use huntsman_crawler::{Result, SavedJob};
use huntsman_middleware::StoredCheck;
use serde_json::Value;

use super::{Problem, Verdict};
use crate::render::counted;
use crate::{DROPS, HTML_REPORT, ISSUES, PAGES, REPORT, Run, SWEEP, SWEEP_REPORT, State, Status, job_of};

/// Number of problems of each kind that are listed one by one.
const LISTED: usize = 10;

/// Reads the results of a sweep: gives the addresses of the articles of which all lines are there, and the offset in bytes at which the last
/// of them ends.
pub type ArticleReader<'a> = &'a dyn Fn(&Path) -> Result<(HashSet<String>, u64)>;

/// A check in progress, with its results.
struct OutputCheck<'a> {
    path: &'a Path,
    status: &'a Status,
    whole_articles: ArticleReader<'a>,
    verdict: Verdict,
    /// Addresses of pages: `true` if the address has a record of its own, `false` if it only answered for another one.
    seen: HashMap<Box<str>, bool>,
    listed: HashMap<&'static str, usize>,
    /// Records of requests that other nodes of a shared crawl may have done, too.
    shared: u64,
}

impl Verdict {
    /// Checks an output directory; changes nothing. Reads all its files.
    ///
    /// # Errors
    /// A file cannot be read for a reason that is not damage.
    pub fn of_output(path: &Path, status: &Status, whole_articles: ArticleReader<'_>) -> Result<Self> {
        let mut check = OutputCheck {
            path,
            status,
            whole_articles,
            verdict: Self::new(kind(status.run()), path),
            seen: HashMap::new(),
            listed: HashMap::new(),
            shared: 0,
        };
        match status.state {
            State::Making | State::Clearing => {
                check.verdict.note(
                    "its files are being made or cleared, and none counts; the same command starts anew",
                );
                return Ok(check.verdict);
            }
            State::Failed => check.verdict.note("the run delivered no page; the same command starts anew"),
            // Told when it is known whether others share the queue.
            State::Running if status.is_in_memory() => {}
            State::Running => check.verdict.note("the run was killed; the same command goes on"),
            State::Interrupted => check.verdict.note("the run was stopped; the same command goes on"),
            State::Finished => {}
        }
        // An audit writes its pages at its end, from what it kept of each answer.
        let is_audit = status.run() == Run::Audit;
        let has_pages = !is_audit || status.state == State::Finished;
        let pages = if has_pages { check.records(PAGES)? } else { 0 };
        let drops = check.records(DROPS)?;
        check.verdict.count("pages", pages);
        check.verdict.count("drops", drops);
        if status.state == State::Running && status.is_in_memory() {
            check.verdict.note(match check.shared {
                0 => "the run was killed, and its queue was in memory; --fresh starts anew",
                _ => "the node was killed; other nodes do its work, and `huntsman cluster collect` takes its records",
            });
        }
        if status.run() == Run::Sweep {
            check.sweep()?;
        }
        if status.state == State::Finished {
            check.finished(pages)?;
        }
        if !status.is_in_memory() {
            check.job()?;
        }
        Ok(check.verdict)
    }
}

fn kind(run: Run) -> &'static str {
    match run {
        Run::Crawl => "output of a crawl",
        Run::Sweep => "output of a sweep",
        Run::Demo => "output of a demo",
        Run::Audit => "output of an audit",
    }
}

impl OutputCheck<'_> {
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
        let listed = self.listed.entry(kind).or_default();
        *listed += 1;
        if *listed <= LISTED {
            self.problem(file.to_owned(), Some(at), what());
        }
    }

    /// Checks the records of a file: each is JSON, and each address has one.
    fn records(&mut self, name: &'static str) -> Result<u64> {
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
            if record.get("settled").is_some() {
                // It says that the request of an earlier record was settled.
                return;
            }
            records += 1;
            // A node of a shared crawl may do a request again that it had lost to another one.
            let is_shared = record.get("work").is_some();
            self.shared += u64::from(is_shared);
            let Some(url) = record["url"].as_str() else {
                return self.problem_of("no address", &file, start, || "the record has no url".to_owned());
            };
            if self.seen.insert(url.into(), true) == Some(true) && !is_shared {
                self.problem_of("twice", &file, start, || format!("{url} has another record"));
            }
            if let Some(url) = record["final_url"].as_str() {
                self.seen.entry(url.into()).or_insert(false);
            }
        })?;
        Ok(records)
    }

    /// Checks the articles of a sweep: all their lines are there, and their pages, too.
    fn sweep(&mut self) -> Result<()> {
        let file = self.path.join(SWEEP);
        let Some(reader) = opened(&file)? else {
            self.problem(file, None, "it is missing".to_owned());
            return Ok(());
        };
        let length = reader.get_ref().metadata()?.len();
        match (self.whole_articles)(&file) {
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
    fn finished(&mut self, pages: u64) -> Result<()> {
        let further = match self.status.run() {
            Run::Crawl => None,
            Run::Sweep => Some(SWEEP_REPORT),
            Run::Demo => Some(HTML_REPORT),
            Run::Audit => Some(ISSUES),
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
        // Not every answer of an audit is a page of the site.
        let is_as_told = match self.shared {
            0 => pages == self.status.pages,
            // Not every page that a node of a shared crawl recorded was still its own.
            _ => pages >= self.status.pages,
        };
        if !is_as_told && self.status.run() != Run::Audit {
            let what = format!("it has {}, and the run wrote {}", counted(pages, "page"), self.status.pages);
            self.problem(self.path.join(PAGES), None, what);
        }
        Ok(())
    }

    /// Checks every entry of the job, and the queue and counters that the entries form.
    fn job(&mut self) -> Result<()> {
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

fn opened(path: &Path) -> Result<Option<BufReader<File>>> {
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
