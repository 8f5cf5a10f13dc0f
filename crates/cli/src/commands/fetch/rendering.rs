//! Flags of `fetch` for pages that need JavaScript.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use huntsman::Request;
use huntsman::middleware::browser::{Action, Rendering, Shot};
use huntsman::middleware::{RenderRequest, Rendered};
use serde_json::json;
use url::Url;

use crate::args::Flags;
use crate::exit::{Failure, Outcome};
use crate::render::escape;

/// How the page is rendered.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct RenderArgs {
    /// Renders the page in Chromium, which has no network of its own.
    #[arg(long)]
    pub(crate) render: bool,

    /// Scrolls the page to its end, at most N times, as long as that brings something.
    #[arg(long, value_name = "N", requires = "render")]
    pub(crate) render_scroll: Option<u32>,

    /// Writes a picture of the whole page into this file, as PNG.
    #[arg(long, value_name = "FILE", requires = "render", value_hint = ValueHint::FilePath)]
    pub(crate) screenshot: Option<PathBuf>,

    /// Writes the page as it would be printed into this file, as PDF.
    #[arg(long, value_name = "FILE", requires = "render", value_hint = ValueHint::FilePath)]
    pub(crate) pdf: Option<PathBuf>,

    /// Writes the requests of the page into this file, as HAR, which the tools of browsers show.
    #[arg(long, value_name = "FILE", requires = "render", value_hint = ValueHint::FilePath)]
    pub(crate) har: Option<PathBuf>,
}

impl RenderArgs {
    /// The settings that these flags stand for.
    pub(crate) fn settings(&self) -> Flags {
        // Rather than `requested`, so that a browser that is missing is told before anything is fetched.
        if self.render { vec![("render", json!("all"))] } else { Flags::new() }
    }

    /// The request, with what is to be done on its page.
    pub(crate) fn applied(&self, request: Request) -> Request {
        if !self.render {
            return request;
        }
        let scroll = self.render_scroll.map(|rounds| Action::ScrollToEnd { rounds, until: None });
        let picture = self.screenshot.as_ref().map(|_| Action::Screenshot { is_full: true });
        let print = self.pdf.as_ref().map(|_| Action::Pdf);
        let steps = [scroll, picture, print].into_iter().flatten().map(Into::into).collect();
        request.render(Rendering { steps, ..Rendering::default() })
    }

    /// Writes the files that were asked for.
    pub(crate) fn write(&self, url: &Url, rendered: Option<&Rendered>) -> Outcome<()> {
        let har = rendered.map(|rendered| rendered.har(url).to_string());
        let shots = rendered.map_or(&[][..], |rendered| &rendered.shots);
        let picture = shots.iter().find_map(|shot| match shot {
            Shot::Png(bytes) => Some(bytes),
            Shot::Pdf(_) => None,
        });
        let print = shots.iter().find_map(|shot| match shot {
            Shot::Pdf(bytes) => Some(bytes),
            Shot::Png(_) => None,
        });
        let files = [
            (&self.screenshot, picture.map(|bytes| &bytes[..])),
            (&self.pdf, print.map(|bytes| &bytes[..])),
            (&self.har, har.as_deref().map(str::as_bytes)),
        ];
        for (file, content) in files {
            let Some(file) = file else { continue };
            let Some(content) = content else {
                return Err(Failure::crawl(format!("{}: the page was not rendered", shown(file))));
            };
            huntsman::files::write(file, content)
                .map_err(|error| Failure::crawl(format!("{}: {error}", shown(file))))?;
        }
        Ok(())
    }
}

fn shown(file: &Path) -> String {
    escape(&file.to_string_lossy()).into_owned()
}
