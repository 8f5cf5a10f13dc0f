//! How a browser is run, and its bounds.

use std::path::PathBuf;
use std::time::Duration;

/// How a browser is run, and its bounds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The program; without one it is searched for.
    pub path: Option<PathBuf>,
    /// Whether pages run in the sandbox of the browser.
    pub has_sandbox: bool,
    /// Pages at once.
    pub pages: usize,
    /// Bytes that the answers of a page may have, and its tree at the end.
    pub bytes_per_page: u64,
    /// Requests that a page may make.
    pub requests_per_page: usize,
    /// Memory of all processes of the browser, in bytes. Above it no further page is begun, and the largest page ends.
    pub memory: u64,
    /// Pages after which a browser is replaced, because each leaves something behind.
    pub pages_per_browser: usize,
    /// Time of a page.
    pub timeout: Duration,
    /// Time in which the browser itself must answer; one that does not is killed.
    pub answers_within: Duration,
    /// What the browser says it is, to servers and to scripts; without one, what it says by itself.
    pub user_agent: Option<String>,
    /// Folder in which the profiles are; without one, that for temporary files.
    pub folder: Option<PathBuf>,
    /// Flags that tests leave out, by their beginnings, and such that they add.
    #[cfg(test)]
    pub(crate) changed: (Vec<&'static str>, Vec<&'static str>),
    /// For tests: the browser tells of no target of its own but pages, without which nothing could be rendered.
    #[cfg(test)]
    pub(crate) attaches_pages_only: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            path: None,
            has_sandbox: true,
            pages: std::thread::available_parallelism().map_or(1, usize::from),
            bytes_per_page: 50_000_000,
            requests_per_page: 500,
            memory: 1_000_000_000,
            pages_per_browser: 200,
            timeout: Duration::from_secs(30),
            answers_within: Duration::from_secs(10),
            user_agent: None,
            folder: None,
            #[cfg(test)]
            changed: Default::default(),
            #[cfg(test)]
            attaches_pages_only: false,
        }
    }
}
