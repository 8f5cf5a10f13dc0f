//! Lists of issues, on disk if there are many.

use huntsman_crawler::{Error, Result};

use crate::code::Severity;
use crate::issue::Issue;
use huntsman_disk::{FRAME, Framed, Frames, Scratch, Spool};

/// Issues in the order of severity, code, URL, target and group. Each time that the list is read, it is read from disk.
#[derive(Debug)]
pub struct Issues {
    spool: Spool,
    codes: Vec<OfCode>,
}

/// The issues of one code and one severity, which stand together.
#[derive(Clone, Debug)]
pub(crate) struct OfCode {
    pub(crate) code: String,
    pub(crate) severity: Severity,
    /// Number of issues.
    pub(crate) number: usize,
    /// Where they begin.
    start: u64,
}

impl Issues {
    /// Number of issues.
    pub fn len(&self) -> usize {
        self.codes.iter().map(|of| of.number).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// Reads all of them.
    ///
    /// # Errors
    /// Each item is an error if reading fails.
    pub fn iter(&self) -> impl Iterator<Item = Result<Issue>> {
        Lines { issues: self, frames: None, next: 0, frame: Vec::new(), at: 0 }
    }

    /// Reads those of a code.
    ///
    /// # Errors
    /// Each item is an error if reading fails.
    pub fn of<'a>(&'a self, code: &'a str) -> impl Iterator<Item = Result<Issue>> {
        let of = self.codes.iter().filter(move |of| of.code == code);
        of.flat_map(|of| {
            Lines { issues: self, frames: None, next: of.start, frame: Vec::new(), at: 0 }.take(of.number)
        })
    }

    /// The codes with issues, in the order of the list. A code whose issues have several severities is there once for each.
    pub(crate) fn codes(&self) -> &[OfCode] {
        &self.codes
    }

    /// The names of the codes with issues, each once, in the order of their worst issues.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for of in &self.codes {
            if !names.contains(&of.code.as_str()) {
                names.push(&of.code);
            }
        }
        names
    }

    /// The number of issues of a severity.
    pub(crate) fn number_of(&self, severity: Severity) -> usize {
        self.codes.iter().filter(|of| of.severity == severity).map(|of| of.number).sum()
    }
}

/// Writes a list.
#[derive(Debug)]
pub(crate) struct IssuesWriter {
    issues: Issues,
    framed: Framed,
    frame: Vec<u8>,
    out: Vec<u8>,
}

impl IssuesWriter {
    pub(crate) fn new(scratch: &Scratch) -> Result<Self> {
        let issues = Issues { spool: Spool::new(scratch), codes: Vec::new() };
        Ok(Self { issues, framed: Framed::new()?, frame: Vec::new(), out: Vec::new() })
    }

    /// Adds the next issue.
    pub(crate) fn add(&mut self, issue: &Issue) -> Result<()> {
        let is_other = |of: &OfCode| of.code != issue.code || of.severity != issue.severity;
        if self.issues.codes.last().is_none_or(is_other) {
            // Those of a code begin with a frame, so that they can be read alone.
            self.end_frame()?;
            self.issues.codes.push(OfCode {
                code: issue.code.clone(),
                severity: issue.severity,
                number: 0,
                start: self.issues.spool.len(),
            });
        }
        self.issues.codes.last_mut().expect("it was added above").number += 1;
        serde_json::to_writer(&mut self.frame, issue)?;
        self.frame.push(b'\n');
        if self.frame.len() < FRAME { Ok(()) } else { self.end_frame() }
    }

    fn end_frame(&mut self) -> Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        self.out.clear();
        self.framed.put(&self.frame, &mut self.out)?;
        self.frame.clear();
        Ok(self.issues.spool.write(&self.out)?)
    }

    pub(crate) fn finish(mut self) -> Result<Issues> {
        self.end_frame()?;
        Ok(self.issues)
    }
}

/// Reads issues line by line.
#[derive(Debug)]
struct Lines<'a> {
    issues: &'a Issues,
    frames: Option<Frames>,
    next: u64,
    frame: Vec<u8>,
    at: usize,
}

impl Lines<'_> {
    fn next_issue(&mut self) -> Result<Option<Issue>> {
        if self.at == self.frame.len() {
            let frames = match &mut self.frames {
                Some(frames) => frames,
                None => self.frames.insert(Frames::new()?),
            };
            match frames.read(&self.issues.spool, self.next, &mut self.frame)? {
                None => return Ok(None),
                Some(next) => (self.next, self.at) = (next, 0),
            }
        }
        let rest = &self.frame[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        let issue = serde_json::from_slice(&rest[..end]);
        issue.map(Some).map_err(|error| Error::from(error).context("reading an issue"))
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<Issue>;

    fn next(&mut self) -> Option<Result<Issue>> {
        let issue = self.next_issue();
        if issue.is_err() {
            // The list ends with the error.
            (self.next, self.at) = (u64::MAX, self.frame.len());
        }
        issue.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_read_together_and_by_code() {
        let mut writer = IssuesWriter::new(&Scratch::temporary()).unwrap();
        let mut all = Vec::new();
        let (error, notice) = (Severity::Error, Severity::Notice);
        for (code, severity, number) in
            [("a", error, 3), ("b", error, 2_000), ("c", error, 1), ("a", notice, 2), ("b", notice, 700)]
        {
            for at in 0..number {
                let (code, url) = (code.to_owned(), format!("https://x.example/{at}"));
                let issue = Issue { code, url, severity, ..Issue::empty() };
                writer.add(&issue).unwrap();
                all.push(issue);
            }
        }
        let issues = writer.finish().unwrap();
        let read: Vec<Issue> = issues.iter().collect::<Result<_>>().unwrap();
        assert!(read == all && issues.len() == 2_706 && !issues.is_empty());
        for code in ["a", "b", "c", "d"] {
            let read: Vec<Issue> = issues.of(code).collect::<Result<_>>().unwrap();
            let expected: Vec<&Issue> = all.iter().filter(|issue| issue.code == code).collect();
            assert!(read.iter().eq(expected), "{code}");
        }
        let numbers = [Severity::Error, Severity::Warning, Severity::Notice].map(|of| issues.number_of(of));
        assert_eq!(numbers, [2_004, 0, 702]);
        assert_eq!(issues.names(), ["a", "b", "c"]);
    }
}
