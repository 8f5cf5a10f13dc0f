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
    /// How bad it is.
    pub(crate) severity: Severity,
    /// Number of issues.
    pub(crate) issues: usize,
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

/// Sums up issues. Those of a code come together.
#[derive(Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

impl Causes {
    /// Adds an issue of a code.
    pub(crate) fn add(&mut self, issue: &Issue, code: Option<&Code>) {
        if self.0.last().is_none_or(|cause| cause.code != issue.code) {
            self.0.push(Cause {
                code: issue.code.clone(),
                about: code.copied(),
                title: code.map_or_else(|| issue.code.clone(), Code::title),
                family: issue.family.clone(),
                severity: issue.severity,
                issues: 0,
                places: 0,
                templates: 0,
                new: 0,
                points: 0.0,
                first: Vec::new(),
            });
        }
        let cause = self.0.last_mut().expect("it was added above");
        cause.issues += 1;
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
            let deduction = deductions().find(|deduction| deduction.code == cause.code);
            cause.points = deduction.map_or(0.0, |deduction| deduction.points);
            let pages = deduction.and_then(|deduction| deduction.pages).unwrap_or_default();
            affected.insert(
                cause.code.clone(),
                cause.issues.max(cause.places).max(pages) * cause.severity.weight(),
            );
        }
        self.0.sort_by(|a, b| {
            (affected[&b.code], b.issues).cmp(&(affected[&a.code], a.issues)).then(a.code.cmp(&b.code))
        });
        self.0
    }
}
