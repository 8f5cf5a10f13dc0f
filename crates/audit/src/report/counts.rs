//! How much an audit looked at.

use std::collections::BTreeMap;

use huntsman_crawler::Result;

use crate::audit::Audit;
use crate::record::{Kind, Record};
use crate::tables::PageLine;

/// Numbers of answers.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Pages of the site that answered.
    pub(super) pages: usize,
    /// Pages that are in the report.
    pub(super) shown: usize,
    /// HTML pages that were judged.
    pub(super) html: usize,
    pub(super) resources: usize,
    pub(super) external: usize,
    pub(super) sitemaps: usize,
    /// URLs of the site without an answer.
    pub(super) unanswered: usize,
    /// URLs that were not requested, by the reason.
    pub(super) refused: BTreeMap<String, usize>,
}

impl Counts {
    /// The numbers of an audit, all of whose pages are shown.
    pub(super) fn of(audit: &Audit) -> Result<Self> {
        let mut counts = Self { refused: audit.refusals(), ..Self::default() };
        audit.each_page(&mut |page| {
            counts.add_page(page);
            Ok(())
        })?;
        audit.each_answer(&mut |record, _| {
            counts.add(record);
            Ok(())
        })?;
        counts.shown = counts.pages;
        Ok(counts)
    }

    pub(super) fn add_page(&mut self, page: &PageLine<'_>) {
        self.pages += 1;
        self.html += usize::from(page.is_html());
    }

    pub(super) fn add(&mut self, record: &Record) {
        match record.kind {
            Kind::Page => self.unanswered += usize::from(record.status.is_none()),
            Kind::Resource => self.resources += 1,
            Kind::External => self.external += 1,
            Kind::Sitemap => self.sitemaps += 1,
            Kind::Robots
            | Kind::Probe
            | Kind::Plain
            | Kind::Feed
            | Kind::Icon
            | Kind::Again
            | Kind::OldTls => {}
        }
    }
}
