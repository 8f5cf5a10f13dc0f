//! Flags of rendering: pages that need JavaScript.

use clap::{Args, ValueEnum, ValueHint};
use huntsman::Settings;

use crate::args::{Flags, set};

/// Which pages are rendered in a browser.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct RenderArgs {
    /// Renders pages in Chromium, which has no network of its own: all pages, or with `--render=auto` those that need it, which is learnt by site and
    /// shape of the URL (setting render).
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) render: Option<RenderArg>,

    /// Scrolls each page to its end, at most N times, as long as that brings something (setting render_scroll).
    #[arg(long, value_name = "N", requires = "render")]
    pub(crate) render_scroll: Option<u32>,

    /// Writes the requests of each rendered page into this folder, as HAR files with headers and bodies (setting render_har).
    #[arg(long, value_name = "DIR", requires = "render", value_hint = ValueHint::DirPath)]
    pub(crate) har: Option<String>,
}

/// Values of `--render`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RenderArg {
    /// All pages of HTML.
    All,
    /// Those that need it.
    Auto,
}

impl RenderArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        let which = self.render.map(|which| match which {
            RenderArg::All => "all",
            RenderArg::Auto => "auto",
        });
        set(&mut flags, "render", which);
        set(&mut flags, "render_scroll", self.render_scroll);
        set(&mut flags, "render_har", self.har.as_deref());
        flags
    }
}

/// Refuses to begin a crawl whose pages could not be rendered.
pub(crate) fn check(settings: &Settings) -> huntsman::Result<()> {
    huntsman::middleware::Render::from_settings(settings).map(drop)
}
