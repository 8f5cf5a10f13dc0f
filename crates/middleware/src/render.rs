//! Render: pages that need JavaScript, in a browser whose every request is one of the crawl's.

mod answers;
mod auto;
mod chromium;
mod failure;
mod har;
mod kept;
mod network;
mod page;
mod rendered;
mod renderer;
mod settings;
mod subrequest;

use std::fmt;
use std::sync::Arc;

use http::header;
use huntsman_browser::Rendering;
use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{
    AtEnd, Change, Component, Context, CrawlEnd, DownloaderMiddleware, DropReason, Event, Hooks, Observer,
    OnPage, OnResponse, Page, Persist, Request, Response, Result, Settings, SpiderMiddleware, log,
};
use huntsman_html::{PageKind, sniff};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{added, chain};
use auto::{Auto, Guess};
use failure::Failure;
use kept::Kept;
use network::PageNetwork;
use renderer::Lazy;

pub use failure::RenderError;
pub use rendered::Rendered;
pub use renderer::{RenderFuture, Renderer};
pub use settings::{RenderMode, RenderSandbox, RenderSettings, RenderThirdParty};

/// How a page is to be rendered: a [`Rendering`] as JSON.
pub(crate) const RENDER: MetaKey<Value> = MetaKey::new("render");
/// The page is not rendered, whatever the setting `render` says; a request that says itself how it is rendered is.
const DONT_RENDER: MetaKey<bool> = MetaKey::new("dont_render");
/// How often the browser crashed on the page.
const CRASHED: MetaKey<u64> = MetaKey::new("render_crashed");
/// Marks requests that a page makes in the browser.
const SUBRESOURCE: MetaKey<bool> = MetaKey::new("subresource");
/// How often a page on which the browser crashes goes back to the queue. Then its static form is delivered.
const MAX_CRASHES: u64 = 2;

/// Renders pages in Chromium: those whose request says so ([`RenderRequest::render`]), or more by the setting `render`.
///
/// The page of the spider then has the tree that scripts made, as HTML in UTF-8, under its last address; [`RenderedPage::rendered`] has what
/// else is known of it. The browser has no network: each request of a page goes through the middlewares and the slot of its host, and is judged by
/// robots.txt, like any other of the crawl. It is not a page: it is not recorded, retried or followed, only counted
/// (`render/requests/...`, `render/refused/...`).
///
/// A page on which the browser crashes goes back to the queue twice. Then its static form is delivered with the flag `render_crashed`.
pub struct Render {
    settings: RenderSettings,
    renderer: Lazy,
    /// Pages in the browser at once.
    places: Semaphore,
    kept: Arc<Kept>,
    /// With `render = auto`.
    auto: Option<Auto>,
}

/// How a page is rendered, and why if that was not said.
struct Plan<'a> {
    rendering: Rendering,
    guess: Option<Guess<'a>>,
}

impl fmt::Debug for Render {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Render").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Render {
    /// Creates the component from the settings; `None` if `render` is never. The browser is started with the first page that needs it.
    ///
    /// # Errors
    /// The settings need a browser, and there is none, or it would have to run as root with its sandbox.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: RenderSettings = settings.of()?;
        if own.render == RenderMode::Never {
            return Ok(None);
        }
        let renderer = Lazy::chromium(&own, settings)?;
        Ok(Some(Self::with(own, renderer)))
    }

    /// Uses another renderer than Chromium.
    ///
    /// # Errors
    /// A setting is wrong.
    pub fn with_renderer(settings: &Settings, renderer: Arc<dyn Renderer>) -> Result<Option<Self>> {
        let own: RenderSettings = settings.of()?;
        Ok((own.render != RenderMode::Never).then(|| Self::with(own, Lazy::given(renderer))))
    }

    fn with(settings: RenderSettings, renderer: Lazy) -> Self {
        let places = Semaphore::new(settings.pages());
        let kept = Arc::new(Kept::new(settings.render_cache));
        let auto = (settings.render == RenderMode::Auto).then(Auto::default);
        Self { settings, renderer, places, kept, auto }
    }

    /// How the page is to be rendered; `None` if it is not.
    async fn plan(&self, request: &Request, response: &Response, cx: &Context) -> Result<Option<Plan<'_>>> {
        let own = request.meta_value(RENDER);
        let is_meant = !request.meta_flag(DONT_RENDER)
            && matches!(self.settings.render, RenderMode::All | RenderMode::Auto);
        let is_open = own.is_some() || is_meant;
        if !is_open || !is_renderable(request, response) {
            return Ok(None);
        }
        // What follows waits for other pages, which may need the place at the host that this one holds.
        cx.give_back_start();
        let rendering = match own {
            Some(own) => return Ok(Some(Plan { rendering: serde_json::from_value(own)?, guess: None })),
            None => self.settings.rendering(),
        };
        let Some(auto) = &self.auto else { return Ok(Some(Plan { rendering, guess: None })) };
        let guess = auto.guess(request, response).await;
        Ok(guess.map(|guess| Plan { rendering, guess: Some(guess) }))
    }

    async fn render(
        &self,
        rendering: &Rendering,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<(), Failure> {
        let _place = self.places.acquire().await.map_err(|_| Failure::Cancelled)?;
        if cx.is_stopping() {
            return Err(Failure::Cancelled);
        }
        let renderer = self.renderer.get()?;
        let network = Arc::new(PageNetwork::new(request, response, &self.settings, &self.kept, cx));
        let rendered =
            renderer.render(response.url.as_str(), rendering, Arc::<PageNetwork>::clone(&network)).await;
        renderer.tell(cx.stats()).await;
        if network.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        page::put(rendered?, &network, request, response, cx);
        Ok(())
    }

    /// What becomes of a page that could not be rendered.
    fn failed(
        &self,
        failure: Failure,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> OnResponse {
        match failure {
            // The engine gives the request back to the queue.
            Failure::Cancelled => OnResponse::Drop(DropReason::skipped("cancelled")),
            Failure::Failed(why) => {
                cx.stats().inc("render/failed");
                OnResponse::Drop(DropReason::failed("render_failed").detail(why).status(response.status))
            }
            Failure::Crashed(why) => {
                cx.stats().inc("render/crashed");
                let crashes = request.meta_value(CRASHED).unwrap_or(0) + 1;
                log::warn!(url = %request.url, crashes, "the browser crashed: {}", why.escape_debug());
                if crashes > MAX_CRASHES {
                    cx.stats().inc("render/static");
                    response.add_flag("render_crashed");
                    return OnResponse::Continue;
                }
                let mut again = request.clone();
                added::strip(&mut again);
                chain::set_unfiltered(&mut again, Self::NAME);
                again.set_meta(CRASHED, crashes);
                OnResponse::Reschedule(Box::new(again))
            }
        }
    }
}

/// Whether the response is a page of HTML that a spider will get.
fn is_renderable(request: &Request, response: &Response) -> bool {
    let text = |name| response.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    !request.meta_flag(SUBRESOURCE)
        && !request.meta_flag(huntsman_crawler::meta::IS_ROBOTS_TXT)
        && !request.is_sitemap()
        && !request.is_feed()
        && response.status.is_success()
        && !response.body.is_empty()
        && !response.has_flag("unknown_encoding")
        && sniff(
            text(header::CONTENT_TYPE).as_deref(),
            text(header::CONTENT_DISPOSITION).as_deref(),
            response.url.path(),
            &response.body,
        ) == PageKind::Html
}

impl Component for Render {
    const NAME: &'static str = "render";
    type Settings = RenderSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // Behind all others that look at responses: what they made of one is what the browser gets.
        hooks.downloader(90).spider(30).observer().persist().at_end()
    }
}

impl DownloaderMiddleware for Render {
    async fn process_response(
        &self,
        request: &Request,
        response: &mut Response,
        cx: &Context,
    ) -> Result<OnResponse> {
        let Some(plan) = self.plan(request, response, cx).await? else { return Ok(OnResponse::Continue) };
        match self.render(&plan.rendering, request, response, cx).await {
            Ok(()) => {
                if let (Some(folder), Some(rendered)) = (&self.settings.render_har, response.extensions.get())
                {
                    har::keep(folder, &request.url, Rendered::clone(rendered)).await?;
                }
                if let Some(guess) = plan.guess {
                    guess.teach(request, response, cx);
                }
                Ok(OnResponse::Continue)
            }
            Err(failure) => Ok(self.failed(failure, request, response, cx)),
        }
    }
}

/// Writes into the record of the page what rendering it took.
impl SpiderMiddleware for Render {
    fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
        if let Some(rendered) = page.response().extensions.get::<Rendered>() {
            // Images and other kinds that are never asked are no requests of the crawl.
            let asked = rendered.requests.iter().filter(|request| request.kind.is_some());
            let refused = asked.clone().filter(|request| request.answer.is_err()).count();
            let mut record = json!({
                "ms": u64::try_from(rendered.took.as_millis()).unwrap_or(u64::MAX),
                "requests": asked.clone().count(),
                "refused": refused,
                "bytes": asked.map(|request| request.bytes).sum::<u64>(),
                "incomplete": rendered.is_incomplete,
            });
            if self.settings.render_har.is_some() {
                record["har"] = har::file_name(&page.request().url).into();
            }
            page.record_fields.insert("render".to_owned(), record);
        } else if page.response().has_flag("render_crashed") {
            page.record_fields.insert("render".to_owned(), json!({ "crashed": true }));
        }
        Ok(OnPage::Parse)
    }
}

impl AtEnd for Render {
    async fn at_end(&self, end: &mut CrawlEnd, _: &Context) {
        self.renderer.close().await;
        if let (Ok(report), Some(learnt)) = (&mut end.result, self.auto.as_ref().and_then(Auto::report)) {
            report.sections.insert(Self::NAME.to_owned(), learnt);
        }
    }
}

/// Settles what pages taught.
impl Observer for Render {
    fn event(&self, event: &Event<'_>) {
        let Some(auto) = &self.auto else { return };
        match event {
            Event::PageDelivered { request, .. } => auto.settle(request.requested_url()),
            Event::RequestDropped(dropped) => auto.settle(&dropped.url),
            _ => {}
        }
    }
}

/// What was learnt of pages that need a browser stays in the job.
impl Persist for Render {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, _: Option<&[u8]>) -> Result<()> {
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn load_entry(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.auto.as_ref().map_or(Ok(()), |auto| auto.load(key, value))
    }

    fn save_entries(&self) -> Result<Vec<Change>> {
        Ok(self.auto.as_ref().map(Auto::changes).unwrap_or_default())
    }
}

/// Lets a request say how its page is rendered.
pub trait RenderRequest {
    /// The page is rendered in a browser in this way, unless the setting `render` is never. A job keeps it.
    fn render(self, rendering: Rendering) -> Self;
}

impl RenderRequest for Request {
    fn render(self, rendering: Rendering) -> Self {
        let rendering = serde_json::to_value(rendering).expect("it has texts, numbers and lists only");
        self.with_meta(RENDER, rendering)
    }
}

/// Gives what is known of a page that was rendered.
pub trait RenderedPage {
    /// What rendering the page brought besides its tree; `None` if it was not rendered.
    fn rendered(&self) -> Option<&Rendered>;
}

impl RenderedPage for Page {
    fn rendered(&self) -> Option<&Rendered> {
        self.response().extensions.get()
    }
}
