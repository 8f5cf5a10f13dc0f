//! A site in memory, and the browser that all tests share.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use huntsman_browser::{
    Action, Answer, Asked, Browser, Error, Kind, Network, NetworkFuture, Refused, Rendered, Rendering,
    Settings, Step,
};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Time for a page on a machine that is busy with other work as well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));
static BROWSER: LazyLock<Browser> =
    LazyLock::new(|| Browser::new(settings()).expect("a browser is installed"));

/// Settings for tests: root has no sandbox, and the machine is slow.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.path = std::env::var_os("HUNTSMAN_TEST_BROWSER").map(PathBuf::from);
    settings.has_sandbox = false;
    settings.pages = 2;
    settings.timeout = PATIENCE;
    settings.answers_within = PATIENCE;
    settings.memory = 4_000_000_000;
    settings.user_agent = Some("Huntsman-test/1.0".to_owned());
    settings.folder = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
    settings
}

/// Runs a test on the runtime that the shared browser lives on.
pub(crate) fn run<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    match RUNTIME.block_on(RUNTIME.spawn(test)) {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Renders a page in the shared browser.
pub(crate) async fn render(site: &Arc<Site>, url: &str, rendering: Rendering) -> Result<Rendered, Error> {
    BROWSER.render(url, &rendering, Arc::clone(site) as Arc<dyn Network>).await
}

/// Renders a page as it is by default.
pub(crate) async fn rendered(site: &Arc<Site>, url: &str) -> Rendered {
    render(site, url, Rendering::default()).await.expect("the page is rendered")
}

/// A rendering with steps.
pub(crate) fn steps(actions: impl IntoIterator<Item = Action>) -> Rendering {
    Rendering { steps: actions.into_iter().map(Step::from).collect(), ..Rendering::default() }
}

/// Answers by address, and what was asked.
#[derive(Default)]
pub(crate) struct Site {
    answers: HashMap<String, Result<Answer, Refused>>,
    held: HashMap<String, Arc<Semaphore>>,
    asked: Mutex<Vec<Asked>>,
    is_waiting: AtomicBool,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(mut self, url: &str, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.answers.insert(url.to_owned(), Ok(answer(200, &[("Content-Type", media_type)], body)));
        self
    }

    pub(crate) fn html(self, url: &str, body: impl Into<Bytes>) -> Self {
        self.with(url, "text/html; charset=utf-8", body)
    }

    pub(crate) fn script(self, url: &str, body: impl Into<Bytes>) -> Self {
        self.with(url, "text/javascript", body)
    }

    pub(crate) fn answer(mut self, url: &str, answer: Answer) -> Self {
        self.answers.insert(url.to_owned(), Ok(answer));
        self
    }

    pub(crate) fn refuse(mut self, url: &str, reason: &str) -> Self {
        self.answers.insert(url.to_owned(), Err(Refused { reason: reason.to_owned() }));
        self
    }

    /// The answer of an address waits until the semaphore has a permit.
    pub(crate) fn hold(mut self, url: &str, until: &Arc<Semaphore>) -> Self {
        self.held.insert(url.to_owned(), Arc::clone(until));
        self
    }

    pub(crate) fn share(self) -> Arc<Self> {
        Arc::new(self)
    }

    /// Says that pages do nothing but wait for the pace of a host, or that they no longer do.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Addresses with their kinds, sorted.
    pub(crate) fn kinds(&self) -> Vec<(String, Kind)> {
        let mut kinds: Vec<_> = self.asked().into_iter().map(|asked| (asked.url, asked.kind)).collect();
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        kinds
    }
}

impl Network for Site {
    fn answer(&self, asked: Asked) -> NetworkFuture<'_> {
        let url = asked.url.clone();
        self.asked.lock().unwrap().push(asked);
        Box::pin(async move {
            if let Some(held) = self.held.get(&url) {
                held.acquire().await.expect("it is not closed").forget();
            }
            self.answers.get(&url).cloned().unwrap_or_else(|| Ok(answer(404, &[], "nothing is here")))
        })
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }
}

/// An answer.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Answer { status, headers, body: body.into() }
}
