//! `report.html`: an audit for people.
//!
//! The page has its views as HTML, made beforehand; long tables are drawn by a script from [blocks](blocks) of data, a few rows at a time. Of a site
//! with up to 5,000 pages it is one file; of a larger one the blocks are files of the folder `report` beside it. It loads nothing else: its content
//! security policy names its own script and style by their hashes, and admits other files only if that script loads them. Titles, URLs and all other
//! texts of audited pages are shown as text and never read as HTML.

mod blocks;
mod charts;
mod collect;
mod counts;
mod custom;
mod details;
mod directories;
mod elsewhere;
mod frame;
mod graph;
mod hosts;
mod issues;
mod languages;
mod layout;
mod logs;
mod overview;
mod responses;
mod sitemaps;
mod structure;
mod urls;

use std::path::Path;

use huntsman_crawler::{Error, Result};
use huntsman_output::{HTML_REPORT, REPORT_DATA};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use self::blocks::Blocks;
use self::collect::collect;
use self::counts::Counts;
use crate::audit::Audit;
use crate::tables::written_text;

/// Pages of which a report is one file.
const IN_ONE_FILE: usize = 5_000;
/// What cannot stand in the fragment of a link to a view.
const IN_FRAGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'%').add(b'<').add(b'>').add(b'?').add(b'&').add(b'`');

impl Audit {
    /// The report as one HTML page with all its data, also of a large site. It shows the worst pages and says so if there are
    /// more than 200,000 (the setting `audit_report_pages`).
    ///
    /// # Errors
    /// The audit cannot be read.
    pub fn html(&self) -> Result<String> {
        let mut blocks = Blocks::Within(Vec::new());
        let collected = collect(self, &mut blocks)?;
        Ok(frame::page(self, collected, &blocks).into_string())
    }

    /// The overview of the report as a page of its own, which can be sent alone: its links to other views are left out.
    ///
    /// # Errors
    /// The audit cannot be read.
    pub fn overview_html(&self) -> Result<String> {
        Ok(frame::overview(self, &Counts::of(self)?).into_string())
    }

    /// Writes `report.html`, and of a large site the folder `report`.
    pub(crate) fn write_report(&self, directory: &Path) -> Result<()> {
        let folder = directory.join(REPORT_DATA);
        let context =
            |error: std::io::Error| Error::from(error).context(format!("writing {}", folder.display()));
        huntsman_files::remove_any(&folder).map_err(context)?;
        let path = directory.join(HTML_REPORT);
        if self.number_of_pages() <= IN_ONE_FILE {
            return written_text(&path, &self.html()?);
        }
        huntsman_files::create_dir(&folder).map_err(context)?;
        let mut blocks = Blocks::Beside(folder);
        let collected = collect(self, &mut blocks)?;
        written_text(&path, &frame::page(self, collected, &blocks).into_string())
    }
}

pub(crate) use frame::plain_page;

/// The view of a page.
fn link_to_page(url: &str) -> String {
    format!("#page/{}", utf8_percent_encode(url, IN_FRAGMENT))
}

/// The view of all pages in a folder.
fn link_to_folder(url: &str) -> String {
    format!("#pages?q={}", utf8_percent_encode(url, IN_FRAGMENT))
}
