//! Chromium, by the settings of the crawl.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use huntsman_browser::{Browser, Network, Rendering};
use huntsman_crawler::{Error, Result, Settings, Stats};

use super::failure::RenderError;
use super::renderer::{RenderFuture, Renderer};
use super::settings::{RenderSandbox, RenderSettings};

pub(super) struct Chromium(Browser);

impl Chromium {
    /// Finds the program; it is started with the first page.
    pub(super) fn find(own: &RenderSettings, settings: &Settings) -> Result<Self> {
        let mut browser = huntsman_browser::Settings::default();
        browser.path = own.render_browser.as_ref().map(PathBuf::from);
        browser.has_sandbox = own.render_sandbox == RenderSandbox::On;
        browser.pages = own.pages();
        browser.bytes_per_page = own.render_page_bytes;
        browser.requests_per_page = own.render_page_requests;
        browser.memory = own.render_memory;
        browser.pages_per_browser = own.render_pages_per_browser;
        browser.timeout = own.timeout();
        browser.user_agent = Some(settings.user_agent.clone());
        Browser::new(browser).map(Self).map_err(|error| {
            let setting = match &error {
                huntsman_browser::Error::NotFound { .. } => " (setting render_browser)",
                huntsman_browser::Error::Sandbox { .. } => " (setting render_sandbox=off)",
                _ => "",
            };
            Error::usage(format!("render: {error}{setting}"))
        })
    }
}

impl Renderer for Chromium {
    fn render<'a>(
        &'a self,
        url: &'a str,
        rendering: &'a Rendering,
        network: Arc<dyn Network>,
    ) -> RenderFuture<'a> {
        Box::pin(async move {
            self.0.render(url, rendering, network).await.map_err(|error| match error.is_crash() {
                true => RenderError::Crashed(error.to_string()),
                false => RenderError::Failed(error.to_string()),
            })
        })
    }

    fn tell<'a>(&'a self, stats: &'a Stats) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let told = self.0.stats().await;
            let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
            stats.max("render/restarts", number(told.restarts));
            stats.max("render/memory_max", number(told.most_memory));
            stats.max("render/cpu_milliseconds", i64::try_from(told.cpu.as_millis()).unwrap_or(i64::MAX));
        })
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.0.close())
    }
}
