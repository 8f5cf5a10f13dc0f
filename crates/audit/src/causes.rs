//! Causes: the issues of an audit by their codes, with the worst first.

use std::collections::BTreeMap;

use crate::code::{Code, Severity};
use crate::issue::Issue;
use crate::score::Score;

/// Issues of a cause that are kept.
const FIRST: usize = 20;

/// All issues of one code.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    /// The name of the code.
    pub(crate) code: String,
    /// The code.
    pub(crate) about: Option<Code>,
    /// What it is called in reports.
    pub(crate) title: String,
    /// The family of the code.
    pub(crate) family: String,
    /// How bad its worst issue is.
    pub(crate) severity: Severity,
    /// Number of issues.
    pub(crate) issues: usize,
    /// Number of errors, warnings and notices among them.
    pub(crate) by_severity: [usize; 3],
    /// Number of places at which they show.
    pub(crate) places: usize,
    /// Number of issues that one change of a template mends.
    pub(crate) templates: usize,
    /// Number of issues that the audit does not have with which this one is compared.
    pub(crate) new: usize,
    /// Points that it takes from the score of its family.
    pub(crate) points: f64,
    /// The first issues, without all of their places but the first one.
    pub(crate) first: Vec<Issue>,
}

impl Cause {
    /// Number of issues of a severity.
    pub(crate) fn number_of(&self, severity: Severity) -> usize {
        self.by_severity[severity.place()]
    }

    /// The severities of its issues, the worst first.
    pub(crate) fn severities(&self) -> impl Iterator<Item = Severity> {
        let all = [Severity::Error, Severity::Warning, Severity::Notice];
        all.into_iter().filter(|severity| self.number_of(*severity) > 0)
    }
}

/// Sums up issues, which come in their order: the worst first.
#[derive(Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

impl Causes {
    /// Adds an issue of a code.
    pub(crate) fn add(&mut self, issue: &Issue, code: Option<&Code>) {
        let is_same = |cause: &Cause| cause.code == issue.code;
        // Nearly always it is the last one.
        let known = self.0.iter().rposition(is_same).unwrap_or(self.0.len());
        if known == self.0.len() {
            self.0.push(Cause {
                code: issue.code.clone(),
                about: code.copied(),
                title: code.map_or_else(|| issue.code.clone(), Code::title),
                family: issue.family.clone(),
                severity: issue.severity,
                issues: 0,
                by_severity: [0; 3],
                places: 0,
                templates: 0,
                new: 0,
                points: 0.0,
                first: Vec::new(),
            });
        }
        let cause = &mut self.0[known];
        cause.issues += 1;
        cause.by_severity[issue.severity.place()] += 1;
        cause.places += issue.sources;
        cause.templates += usize::from(issue.template);
        cause.new += usize::from(issue.new == Some(true));
        if cause.first.len() < FIRST {
            let mut shown = issue.clone();
            shown.at.truncate(1);
            cause.first.push(shown);
        }
    }

    /// The causes: the worst first, by the pages or places that they affect and their severity.
    pub(crate) fn finish(mut self, score: &Score) -> Vec<Cause> {
        let mut affected = BTreeMap::new();
        let deductions = || score.families.values().flat_map(|family| &family.deductions);
        for cause in &mut self.0 {
            let of_cause = || deductions().filter(|deduction| deduction.code == cause.code);
            let points = of_cause().map(|deduction| deduction.points).sum();
            let pages = of_cause().filter_map(|deduction| deduction.pages).max().unwrap_or_default();
            affected.insert(
                cause.code.clone(),
                cause.issues.max(cause.places).max(pages) * cause.severity.weight(),
            );
            cause.points = points;
        }
        self.0.sort_by(|a, b| {
            (affected[&b.code], b.issues).cmp(&(affected[&a.code], a.issues)).then(a.code.cmp(&b.code))
        });
        self.0
    }
}
