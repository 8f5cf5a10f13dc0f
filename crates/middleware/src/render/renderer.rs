//! What renders pages: Chromium, or a stand-in of a program's own.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use huntsman_browser::{Network, Rendering};
use huntsman_crawler::{Result, Settings, Stats};

use super::chromium::Chromium;
use super::failure::RenderError;
use super::settings::{RenderMode, RenderSettings};

/// The future of a rendered page.
pub type RenderFuture<'a> =
    Pin<Box<dyn Future<Output = Result<huntsman_browser::Rendered, RenderError>> + Send + 'a>>;

/// Renders pages. It has no network of its own: what a page asks for, it asks of the `network` that it is given, beginning with the document.
pub trait Renderer: Send + Sync + 'static {
    /// Renders the page at this address.
    fn render<'a>(
        &'a self,
        url: &'a str,
        rendering: &'a Rendering,
        network: Arc<dyn Network>,
    ) -> RenderFuture<'a>;

    /// Tells the stats of the crawl what it takes, after each page.
    fn tell<'a>(&'a self, stats: &'a Stats) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let _ = stats;
        Box::pin(async {})
    }

    /// Ends what it runs, when the crawl has ended.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}

/// A renderer that is made with the first page that needs it.
pub(super) struct Lazy {
    make: Box<dyn Fn() -> Result<Arc<dyn Renderer>> + Send + Sync>,
    made: Mutex<Option<Arc<dyn Renderer>>>,
}

impl Lazy {
    pub(super) fn given(renderer: Arc<dyn Renderer>) -> Self {
        Self { make: Box::new(move || Ok(Arc::clone(&renderer))), made: Mutex::default() }
    }

    /// Chromium by the settings. If they need it in any case, it is looked for at once.
    pub(super) fn chromium(own: &RenderSettings, settings: &Settings) -> Result<Self> {
        let (of_browser, of_crawl) = (own.clone(), settings.clone());
        let make = move || Ok(Arc::new(Chromium::find(&of_browser, &of_crawl)?) as Arc<dyn Renderer>);
        let lazy = Self { make: Box::new(make), made: Mutex::default() };
        if matches!(own.render, RenderMode::All | RenderMode::Auto) || own.render_browser.is_some() {
            lazy.get()?;
        }
        Ok(lazy)
    }

    /// The renderer.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn get(&self) -> Result<Arc<dyn Renderer>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(renderer) => Ok(Arc::clone(renderer)),
            None => Ok(Arc::clone(made.insert((self.make)()?))),
        }
    }

    pub(super) async fn close(&self) {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(renderer) = made {
            renderer.close().await;
        }
    }
}
