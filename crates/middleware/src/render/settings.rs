//! The settings of rendering.

use std::time::Duration;

use huntsman_browser::{Action, Rendering};
use huntsman_crawler::{Error, Result, settings};
use serde::{Deserialize, Serialize};

settings! {
    /// Settings of [`Render`](super::Render).
    pub struct RenderSettings checked by check {
        /// Which pages are rendered in a browser: never, requested (those whose request says so), auto (those that need it, which is learnt by site and shape of the URL) or all.
        render: RenderMode = RenderMode::Requested;
        /// Path of Chromium. Without it, `chromium-headless-shell` and `chromium` are looked for.
        render_browser: Option<String> = None;
        /// Whether the browser runs in its sandbox: on or off. As root it does not run in it.
        render_sandbox: RenderSandbox = RenderSandbox::On;
        /// Pages in the browser at once; 0 means one per processor.
        render_pages: usize = 0;
        /// Seconds after which a page is delivered as it is; waiting for the pace of a host does not count.
        render_timeout: f64 = 30.0;
        /// Rounds of scrolling at most, for pages whose request does not say how they are rendered.
        render_scroll: u32 = 0;
        /// What a page may load from other sites: script,xhr or all or none.
        render_third_party: RenderThirdParty = RenderThirdParty::ScriptXhr;
        /// Bytes of scripts and styles that are kept for the crawl.
        render_cache: u64 = 256_000_000;
        /// Bytes that a page may load.
        render_page_bytes: u64 = 50_000_000;
        /// Requests that a page may make.
        render_page_requests: usize = 500;
        /// Bytes of memory of the browser above which it is replaced.
        render_memory: u64 = 1_000_000_000;
        /// Pages after which the browser is replaced.
        render_pages_per_browser: usize = 200;
        /// Folder in which the requests of each rendered page are written as a HAR file, whose name is in the record of the page.
        render_har: Option<String> = None;
    }
}

fn check(settings: &RenderSettings) -> Result<()> {
    let timeout = settings.render_timeout;
    if !timeout.is_finite() || !(1.0..=3_600.0).contains(&timeout) {
        return Err(Error::usage("render_timeout: give 1 to 3600 seconds"));
    }
    if settings.render_pages_per_browser == 0 {
        return Err(Error::usage("render_pages_per_browser: a browser renders at least one page"));
    }
    Ok(())
}

impl RenderSettings {
    /// How pages are rendered whose request does not say it.
    pub(super) fn rendering(&self) -> Rendering {
        let steps = match self.render_scroll {
            0 => Vec::new(),
            rounds => vec![Action::ScrollToEnd { rounds, until: None }.into()],
        };
        Rendering { steps, ..Rendering::default() }
    }

    /// Pages at once.
    pub(super) fn pages(&self) -> usize {
        match self.render_pages {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            pages => pages.min(tokio::sync::Semaphore::MAX_PERMITS),
        }
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.render_timeout)
    }
}

/// Which pages are rendered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderMode {
    /// None, even if a request says so.
    Never,
    /// Those whose request says so.
    #[default]
    Requested,
    /// Those whose request says so, and those that likely need it.
    Auto,
    /// Every page of HTML.
    All,
}

/// Whether the browser runs in its sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderSandbox {
    /// It does.
    #[default]
    On,
    /// It does not: what breaks out of a page has the rights of the crawler.
    Off,
}

/// What a page may load from other sites than its own. A site is a registrable domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RenderThirdParty {
    /// Scripts, and what scripts ask for.
    #[default]
    #[serde(rename = "script,xhr")]
    ScriptXhr,
    /// All that it may load from its own.
    All,
    /// Nothing.
    None,
}
