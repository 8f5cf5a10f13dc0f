//! Exports: an audit in the forms that other programs read.

mod annotations;
mod graph;
mod markdown;
mod of_junit;
mod redirects;
mod sarif;
mod sitemap;

use std::path::Path;

use huntsman_crawler::Result;

use crate::audit::Audit;
use crate::code::Code;
use crate::compare::Compare;
use crate::earlier::Earlier;
use crate::tables::written_text;

pub use sarif::SourceMap;

/// A form in which an audit is written. `issues.jsonl` and `pages.jsonl` are always written, because later audits read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Export {
    /// `report.html`, for people.
    Html,
    /// `overview.html`: the first view of the report alone, to be sent to others.
    Overview,
    /// Tables in the folder `csv`.
    Csv,
    /// `issues.jsonl` and `pages.jsonl`.
    Jsonl,
    /// `audit.sarif`: SARIF 2.1.0, for code hosts.
    Sarif,
    /// `junit.xml`: a suite for each family and a case for each code, for build servers.
    Junit,
    /// `sitemap.xml`: the pages that search engines may index.
    Sitemap,
    /// `graph.graphml` and `graph.dot`: the pages and their links. `redirects.csv`, `redirects.nginx.conf` and `redirects.htaccess`: where redirects end.
    Graph,
    /// `summary.md`: a page for the display of a build.
    Markdown,
}

impl Export {
    /// All forms.
    pub const ALL: [Self; 9] = [
        Self::Html,
        Self::Overview,
        Self::Csv,
        Self::Jsonl,
        Self::Sarif,
        Self::Junit,
        Self::Sitemap,
        Self::Graph,
        Self::Markdown,
    ];
    /// The forms that are written if none are named.
    pub const DEFAULT: [Self; 3] = [Self::Html, Self::Csv, Self::Jsonl];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Overview => "overview",
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Sarif => "sarif",
            Self::Junit => "junit",
            Self::Sitemap => "sitemap",
            Self::Graph => "graph",
            Self::Markdown => "markdown",
        }
    }
}

impl Audit {
    /// Writes the audit in these forms, with the lines that are always written. Files of their names are replaced. If there is a baseline, it is
    /// compared with what was written, which sets [`comparison`](Self::comparison).
    ///
    /// # Errors
    /// The directory cannot be written, or the baseline not be read; the error names the file.
    pub fn export(&mut self, directory: &Path, forms: &[Export], sources: &SourceMap) -> Result<()> {
        self.write_lines(directory)?;
        self.compare_with_baseline(directory)?;
        for form in forms {
            match form {
                Export::Html => self.write_report(directory)?,
                Export::Overview => written_text(&directory.join("overview.html"), &self.overview_html()?)?,
                Export::Csv => self.write_tables(directory)?,
                Export::Jsonl => {}
                Export::Sarif => written_text(&directory.join("audit.sarif"), &self.sarif(sources)?)?,
                Export::Junit => written_text(&directory.join("junit.xml"), &self.junit())?,
                Export::Sitemap => self.write_sitemap(directory)?,
                Export::Graph => {
                    self.write_graph(directory)?;
                    self.write_redirects(directory)?;
                }
                Export::Markdown => written_text(&directory.join("summary.md"), &self.markdown())?,
            }
        }
        Ok(())
    }

    /// Compares the files of the baseline with those that were just written.
    fn compare_with_baseline(&mut self, directory: &Path) -> Result<()> {
        let Some(before) = self.baseline.clone() else { return Ok(()) };
        let is_same = |path: &Path| path.canonicalize().ok() == directory.canonicalize().ok();
        if is_same(before.path()) {
            // Its files were replaced by those of this audit.
            return Ok(());
        }
        let after = Earlier::just_written(directory, &self.totals())?;
        let codes: Vec<Code> = self.codes.clone();
        self.comparison = Some(Compare::numbers(before, after, &codes)?);
        Ok(())
    }
}
