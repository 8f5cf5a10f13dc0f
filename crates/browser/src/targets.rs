//! Which page each target belongs to: pages, frames, workers. Each waits until its requests are intercepted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::connection::{Connection, Event};
use crate::page::Page;
use crate::process::auto_attach;

/// Runs before the scripts of each document.
const BEFORE: &str = include_str!("scripts/before.js");
/// The function by which that script tells of connections past HTTP.
pub(crate) const BINDING: &str = "huntsmanDirect";

/// The targets of a process.
#[derive(Default)]
pub(crate) struct Targets {
    connection: OnceLock<Connection>,
    known: Mutex<Known>,
    arrived: Notify,
}

#[derive(Default)]
struct Known {
    /// Pages by session: that of the page, and those of its frames and workers.
    sessions: HashMap<String, Arc<Page>>,
    /// Sessions of new pages, by target, that nobody has asked for yet.
    new: HashMap<String, String>,
    /// Pages of a context, which share its workers.
    contexts: HashMap<String, Vec<Weak<Page>>>,
    /// How many pages are being made in a context.
    expected: HashMap<String, usize>,
}

impl Targets {
    pub(crate) fn connect(&self, connection: Connection) {
        // It is called once, before there is an event.
        let _ = self.connection.set(connection);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, session: &str, method: &str, params: Value) {
        if let Some(connection) = self.connection.get() {
            let _unread = connection.call(session, method, params);
        }
    }

    /// Announces that this crate is about to make a page in a context. A target that comes there unannounced is a window that a page opened.
    pub(crate) fn expect(&self, context: &str) {
        *self.known().expected.entry(context.to_owned()).or_default() += 1;
    }

    /// Takes back what [`Targets::expect`] said.
    pub(crate) fn expect_no_more(&self, context: &str) {
        let mut known = self.known();
        if let Some(expected) = known.expected.get_mut(context) {
            *expected = expected.saturating_sub(1);
            if *expected == 0 {
                known.expected.remove(context);
            }
        }
    }

    /// The session of a new page, when it is there.
    pub(crate) async fn session(&self, target: &str) -> String {
        loop {
            let arrived = self.arrived.notified();
            if let Some(session) = self.known().new.remove(target) {
                return session;
            }
            arrived.await;
        }
    }

    /// Begins to tell a page of its events, and lets it run.
    pub(crate) fn add(&self, page: &Arc<Page>) {
        let mut known = self.known();
        known.sessions.insert(page.session.clone(), Arc::clone(page));
        known.contexts.entry(page.context.clone()).or_default().push(Arc::downgrade(page));
        drop(known);
        self.set_up(&page.session, "page");
    }

    /// Forgets a page and all that belongs to it.
    pub(crate) fn remove(&self, page: &Page) {
        let mut known = self.known();
        known.sessions.retain(|_, other| !std::ptr::eq(Arc::as_ptr(other), page));
        if let Some(pages) = known.contexts.get_mut(&page.context) {
            pages.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), page));
            if pages.is_empty() {
                known.contexts.remove(&page.context);
            }
        }
    }

    pub(crate) fn on_event(&self, event: &Event) {
        match event.method.as_str() {
            "Target.attachedToTarget" => self.attached(event),
            "Target.detachedFromTarget" => {
                let gone = event.params["sessionId"].as_str().unwrap_or_default();
                let page = self.known().sessions.remove(gone);
                if let Some(page) = page.filter(|page| page.session == gone) {
                    page.crashed("its target is gone");
                }
            }
            _ => {
                let page = self.known().sessions.get(&event.session).cloned();
                match page {
                    Some(page) => page.on_event(event),
                    // Of a target whose page has ended.
                    None if event.method == "Fetch.requestPaused" => self.send(
                        &event.session,
                        "Fetch.failRequest",
                        json!({"requestId": event.params["requestId"], "errorReason": "Aborted"}),
                    ),
                    None => {}
                }
            }
        }
    }

    fn attached(&self, event: &Event) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let session = text(&event.params["sessionId"]);
        let target = &event.params["targetInfo"];
        let (id, kind, context) =
            (text(&target["targetId"]), text(&target["type"]), text(&target["browserContextId"]));
        let mut known = self.known();
        if kind == "page" {
            let is_ours = target["openerId"].is_null() && known.expected.contains_key(&context);
            if is_ours {
                known.new.insert(id, session);
                drop(known);
                self.arrived.notify_waiters();
            } else {
                // Its address was told by the page that wanted it. It may share the thread of that page, so it must not wait.
                drop(known);
                self.send(&session, "Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]}));
                self.send("", "Target.closeTarget", json!({"targetId": id}));
                self.send(&session, "Runtime.runIfWaitingForDebugger", json!({}));
            }
            return;
        }
        let page = known.sessions.get(&event.session).cloned().or_else(|| {
            let pages = known.contexts.get(&context)?;
            pages.iter().rev().find_map(Weak::upgrade)
        });
        if let Some(page) = page {
            known.sessions.insert(session.clone(), page);
        }
        drop(known);
        self.set_up(&session, &kind);
    }

    /// Intercepts what a target asks for, and then lets it run. What a kind of target does not know, it refuses.
    fn set_up(&self, session: &str, kind: &str) {
        self.send(session, "Target.setAutoAttach", auto_attach());
        self.send(session, "Fetch.enable", json!({"patterns": [{"urlPattern": "*"}]}));
        // For sockets, which are told of here only. No bodies are kept.
        self.send(
            session,
            "Network.enable",
            json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0, "maxPostDataSize": 0}),
        );
        self.send(session, "Runtime.enable", json!({}));
        if matches!(kind, "page" | "iframe") {
            self.send(session, "Page.enable", json!({}));
            self.send(session, "Runtime.addBinding", json!({"name": BINDING}));
            self.send(session, "Page.addScriptToEvaluateOnNewDocument", json!({"source": BEFORE}));
        }
        self.send(session, "Runtime.runIfWaitingForDebugger", json!({}));
    }
}
