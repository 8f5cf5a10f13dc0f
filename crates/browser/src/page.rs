//! A page while it is rendered: its life from the first request to the last word.

mod budget;
mod keys;
mod outcome;
mod ready;
mod script;
mod state;
mod steps;
mod traffic;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::{Connection, Event};
use crate::process::{Lease, Process};
use crate::targets::BINDING;
use crate::{Error, Network, Rendered, Rendering, Settings};
use script::World;
use state::State;

/// A page while it is rendered. Events change its state, and the code that drives it waits for changes.
pub(crate) struct Page {
    pub(crate) session: String,
    pub(crate) context: String,
    target: String,
    connection: Connection,
    network: Arc<dyn Network>,
    bytes: u64,
    begun: Instant,
    state: Mutex<State>,
    changes: watch::Sender<()>,
    world: Mutex<Option<World>>,
    /// Requests that the network is working on.
    requests: Mutex<JoinSet<()>>,
}

/// Renders a page in a process.
pub(crate) async fn render(
    lease: &Lease,
    settings: &Settings,
    url: &str,
    rendering: &Rendering,
    network: Arc<dyn Network>,
) -> Result<Rendered, Error> {
    let open = Open::new(&lease.process, settings, rendering.session.as_deref(), network).await?;
    let limit = rendering.timeout.unwrap_or(settings.timeout);
    let rendered = open.page.rendered(url, rendering, limit).await;
    let rendered = match rendered {
        Ok(rendered) => open.page.with_cookies(&lease.process, open.is_own, rendered).await,
        Err(error) => Err(error),
    };
    match open.close().await {
        Ok(()) => rendered,
        // The page is known, so what comes after it does not matter; the next one gets another process.
        Err(error) => rendered.inspect(|_| tracing::debug!(%error, "closing a page")),
    }
}

/// A page that is open. It is closed when this is dropped.
struct Open {
    page: Arc<Page>,
    process: Arc<Process>,
    /// Whether the context is that of this page alone.
    is_own: bool,
    is_closed: bool,
}

impl Open {
    async fn new(
        process: &Arc<Process>,
        settings: &Settings,
        session: Option<&str>,
        network: Arc<dyn Network>,
    ) -> Result<Self, Error> {
        let context = match session {
            None => new_context(process).await?,
            Some(name) => {
                let mut sessions = process.sessions.lock().await;
                match sessions.get(name) {
                    Some(context) => context.clone(),
                    None => {
                        let context = new_context(process).await?;
                        sessions.insert(name.to_owned(), context.clone());
                        context
                    }
                }
            }
        };
        let made = {
            let _expected = Expected::new(process, &context);
            let params = json!({"url": "about:blank", "browserContextId": context});
            let made = process.call("Target.createTarget", params).await?;
            let target = made["targetId"].as_str().unwrap_or_default().to_owned();
            let arrived =
                tokio::time::timeout(settings.answers_within, process.targets.session(&target)).await;
            let arrived = arrived.map_err(|_late| Error::crashed("a new page does not come"))?;
            (target, arrived)
        };
        let (target, session_id) = made;
        let page = Arc::new(Page {
            session: session_id,
            context,
            target,
            connection: process.connection.clone(),
            network,
            bytes: settings.bytes_per_page,
            begun: Instant::now(),
            state: Mutex::new(State::new(settings.requests_per_page)),
            changes: watch::Sender::new(()),
            world: Mutex::new(None),
            requests: Mutex::new(JoinSet::new()),
        });
        process.targets.add(&page);
        Ok(Self { page, process: Arc::clone(process), is_own: session.is_none(), is_closed: false })
    }

    /// Ends what the network is working on, and closes the page.
    async fn close(mut self) -> Result<(), Error> {
        self.process.targets.remove(&self.page);
        let mut requests = std::mem::take(&mut *lock(&self.page.requests));
        requests.shutdown().await;
        if self.process.is_dead() {
            self.is_closed = true;
            return Ok(());
        }
        let [close, dispose] = self.last_commands();
        let closed = self.process.call(close.0, close.1).await;
        let disposed =
            if self.is_own { self.process.call(dispose.0, dispose.1).await } else { Ok(Value::Null) };
        self.is_closed = true;
        closed.and(disposed).map(drop)
    }

    fn last_commands(&self) -> [(&'static str, Value); 2] {
        [
            ("Target.closeTarget", json!({"targetId": self.page.target})),
            ("Target.disposeBrowserContext", json!({"browserContextId": self.page.context})),
        ]
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        lock(&self.page.requests).abort_all();
        self.process.targets.remove(&self.page);
        let [close, dispose] = self.last_commands();
        let _unread = self.process.connection.call("", close.0, close.1);
        if self.is_own {
            let _unread = self.process.connection.call("", dispose.0, dispose.1);
        }
    }
}

/// The time in which a new page of a context is ours.
struct Expected<'a> {
    process: &'a Process,
    context: &'a str,
}

impl<'a> Expected<'a> {
    fn new(process: &'a Process, context: &'a str) -> Self {
        process.targets.expect(context);
        Self { process, context }
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.process.targets.expect_no_more(self.context);
    }
}

async fn new_context(process: &Process) -> Result<String, Error> {
    let made = process.call("Target.createBrowserContext", json!({})).await?;
    let context = made["browserContextId"].as_str().unwrap_or_default().to_owned();
    let denied = json!({"behavior": "deny", "browserContextId": context});
    process.call("Browser.setDownloadBehavior", denied).await?;
    Ok(context)
}

impl Page {
    /// Changes the state, and tells those that wait.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changes.send_replace(());
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Waits until the state has something.
    async fn until<T>(&self, mut found: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut changes = self.changes.subscribe();
        loop {
            changes.borrow_and_update();
            if let Some(found) = found(&mut self.state()) {
                return found;
            }
            if changes.changed().await.is_err() {
                // The sender is part of the page.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Ends the page, because its process is gone.
    pub(crate) fn crashed(&self, reason: &str) {
        self.change(|state| state.crash.get_or_insert_with(|| reason.to_owned()).len());
    }

    /// Takes note of an event of the page, a frame or a worker.
    pub(crate) fn on_event(self: &Arc<Self>, event: &Event) {
        let params = &event.params;
        let is_page = event.session == self.session;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match event.method.as_str() {
            "Fetch.requestPaused" => self.paused(&event.session, params),
            "Inspector.targetCrashed" if is_page => self.crashed("the process of the page is gone"),
            "Page.frameAttached" => {
                let (frame, parent) = (text(&params["frameId"]), text(&params["parentFrameId"]));
                self.state().frames.attach(frame, parent);
            }
            "Page.frameDetached" if params["reason"] != "swap" => {
                self.state().frames.detach(&text(&params["frameId"]))
            }
            "Page.frameNavigated" => {
                let frame = &params["frame"];
                let id = text(&frame["id"]);
                let url = text(&frame["url"]) + frame["urlFragment"].as_str().unwrap_or_default();
                if id == self.target {
                    *lock(&self.world) = None;
                    self.change(|state| state.new_document(url));
                } else {
                    self.state().frames.navigate(id, url);
                }
            }
            "Page.navigatedWithinDocument" => {
                let (id, url) = (text(&params["frameId"]), text(&params["url"]));
                if id == self.target {
                    self.change(|state| state.url = url);
                } else {
                    self.state().frames.navigate(id, url);
                }
            }
            "Page.loadEventFired" if is_page => self.change(State::loaded),
            "Page.windowOpen" => self.state().note_popup(text(&params["url"])),
            "Page.javascriptDialogOpening" => {
                // Pages may be left; all else is answered with no.
                let accept = params["type"] == "beforeunload";
                let answer = json!({"accept": accept});
                let _unread = self.connection.call(&event.session, "Page.handleJavaScriptDialog", answer);
            }
            "Network.webSocketCreated" | "Network.webTransportCreated" => self.state().refused_direct += 1,
            "Runtime.bindingCalled" if params["name"] == BINDING => self.state().refused_direct += 1,
            "Runtime.consoleAPICalled" => {
                let words = params["args"].as_array().map(Vec::as_slice).unwrap_or_default();
                self.state().note_line(text(&params["type"]), words.iter().map(script::as_text));
            }
            "Runtime.exceptionThrown" => {
                let details = &params["exceptionDetails"];
                self.state().note_line("error".to_owned(), std::iter::once(script::exception(details)));
            }
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
