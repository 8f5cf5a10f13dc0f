//! The trend: the numbers of earlier audits, which each audit carries on in its `report.json`.

use serde::{Deserialize, Serialize};

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::earlier::Earlier;

/// Audits that are carried on, with the last one.
const MAX: usize = 50;

/// The numbers of an audit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Past {
    /// When it was judged, as RFC 3339.
    pub at: String,
    /// The score of the site; `None` if no code was judged.
    pub score: Option<f64>,
    /// Number of HTML pages.
    pub pages: u64,
    /// Number of errors that count.
    pub errors: u64,
    /// Number of warnings that count.
    pub warnings: u64,
    /// Number of notices that count.
    pub notices: u64,
}

impl Audit {
    /// The earlier audits and this one, at most 50, the oldest first.
    pub fn trend(&self) -> Vec<Past> {
        let mut trend = self.earlier.clone();
        trend.push(self.past());
        trend.drain(..trend.len().saturating_sub(MAX));
        trend
    }

    /// Carries on the trend of an earlier audit of the site. If this audit judges the same crawl again, it takes the place of the last one.
    pub fn carry_on(&mut self, earlier: &Earlier, is_same_crawl: bool) {
        self.earlier = earlier.trend().to_vec();
        if is_same_crawl {
            self.earlier.pop();
        }
    }

    fn past(&self) -> Past {
        let number = |severity: Severity| self.issues.number_of(severity) as u64;
        Past {
            at: self.judged_at.to_rfc3339(),
            score: self.score().overall,
            pages: self.count(PageClass::Html) as u64,
            errors: number(Severity::Error),
            warnings: number(Severity::Warning),
            notices: number(Severity::Notice),
        }
    }
}
