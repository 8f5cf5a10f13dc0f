//! Which pages need a browser: learnt by site and shape of the URL, from pages of which both forms are known.

mod beliefs;
mod gain;
mod looks;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use huntsman_browser::SubRequest;
use huntsman_crawler::{Change, Context, Error, Page, Request, Response, Result, redacted};
use serde_json::{Value, json};
use tokio::sync::Notify;
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use self::beliefs::{Beliefs, Choice, Lesson, Shape, Why};
use self::gain::Gain;
use self::looks::Looks;
use super::rendered::Rendered;

/// What is believed of a crawl's pages.
#[derive(Default)]
pub(super) struct Auto {
    beliefs: Mutex<Beliefs>,
    /// What pages taught that are not settled yet, by [`page_key`].
    open: Mutex<HashMap<u64, (Shape, Lesson)>>,
    /// A page of a shape that is not known yet was compared.
    learnt: Notify,
}

/// A page that is rendered because of what is believed of its shape.
pub(super) struct Guess<'a> {
    auto: &'a Auto,
    shape: Shape,
    why: Why,
    page: Url,
    key: u64,
    has_taught: bool,
}

impl Auto {
    /// Decides on a page by its static form. While the first pages of a shape are being compared, the others wait for the result. `None` if the
    /// static form is enough.
    pub(super) async fn guess(&self, request: &Request, response: &Response) -> Option<Guess<'_>> {
        let mut shape = Shape::of(&response.url, Looks::of(&page_of(request, response)));
        // By the address, so that a crawl that goes on decides as it would have.
        let chance = chance_of(&response.url);
        let key = page_key(request.requested_url());
        loop {
            let learnt = self.learnt.notified();
            tokio::pin!(learnt);
            // From here on no result is missed.
            learnt.as_mut().enable();
            let choice = self.lock().choose(&mut shape, chance);
            match choice {
                Choice::Render(why) => {
                    let page = response.url.clone();
                    return Some(Guess { auto: self, shape, why, page, key, has_taught: false });
                }
                Choice::Static => {
                    self.learn(key, &shape, Lesson::Static);
                    return None;
                }
                Choice::Wait => learnt.await,
            }
        }
    }

    fn learn(&self, key: u64, shape: &Shape, lesson: Lesson) {
        self.lock().learn(shape, lesson);
        self.open().insert(key, (shape.clone(), lesson));
        self.learnt.notify_waiters();
    }

    /// The page that was requested at this address is delivered or dropped, so a crawl that goes on will not fetch it again.
    pub(super) fn settle(&self, requested_url: &str) {
        let taught = self.open().remove(&page_key(requested_url));
        if let Some((shape, lesson)) = taught {
            self.lock().settle(&shape, lesson);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, (Shape, Lesson)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Beliefs> {
        self.beliefs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beliefs for the report of the crawl; `None` if there are none.
    pub(super) fn report(&self) -> Option<Value> {
        let beliefs = self.lock();
        let totals = beliefs.totals();
        if totals.shapes == 0 {
            return None;
        }
        let shapes: Vec<Value> = beliefs
            .most_seen()
            .map(|(shape, belief)| {
                json!({
                    "site": shape.site(),
                    "shape": shape.template(),
                    "looks": shape.looks().name(),
                    "compared": belief.seen,
                    "needed": belief.needed,
                    "static": belief.left_static,
                    "wrong": belief.wrong,
                    "renders": belief.renders(shape.looks()),
                })
            })
            .collect();
        Some(json!({
            "shapes": totals.shapes,
            "rendered": totals.compared,
            "needed": totals.needed,
            "static": totals.left_static,
            "wrong": totals.wrong,
            "by_shape": shapes,
        }))
    }

    pub(super) fn load(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.lock()
            .load(key, value)
            .map_err(|why| Error::msg(format!("what was learnt of pages that need a browser: {why}")))
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        self.lock().changes()
    }
}

impl Guess<'_> {
    /// Learns from the rendered page, unless the comparison says nothing.
    pub(super) fn teach(mut self, request: &Request, response: &Response, cx: &Context) {
        let verdict =
            response.extensions.get::<Rendered>().filter(|rendered| is_whole(rendered)).map(|rendered| {
                let mut before = response.clone();
                before.body = rendered.static_body.clone();
                before.url = self.page.clone();
                // The rendered form is UTF-8; the static one is what its server said.
                if let Some(content_type) = &rendered.content_type {
                    before.headers.insert(http::header::CONTENT_TYPE, content_type.clone());
                } else {
                    before.headers.remove(http::header::CONTENT_TYPE);
                }
                Gain::between(&page_of(request, &before), &page_of(request, response), cx).is_needed()
            });
        if let (Some(true), Why::Check) = (verdict, self.why) {
            cx.stats().inc("render/wrong_guesses");
        }
        self.end(verdict);
    }

    fn end(&mut self, verdict: Option<bool>) {
        self.has_taught = true;
        self.auto.learn(self.key, &self.shape, Lesson::Rendered(self.why, verdict));
    }
}

/// A page that was not rendered in the end teaches nothing.
impl Drop for Guess<'_> {
    fn drop(&mut self) {
        if !self.has_taught {
            self.end(None);
        }
    }
}

/// Whether the rendered form is all that the page would be: not if time ended, or robots.txt kept a part from it.
fn is_whole(rendered: &Rendered) -> bool {
    let is_kept_back = |request: &SubRequest| request.answer.as_ref().is_err_and(|why| why == "robots");
    !rendered.is_incomplete && !rendered.requests.iter().any(is_kept_back)
}

/// The page that a response is.
fn page_of(request: &Request, response: &Response) -> Page {
    Page::new(request.clone(), response.clone())
}

/// The key of a page among those that are open: the address at which it was requested, as the records of dropped requests show it.
fn page_key(requested_url: &str) -> u64 {
    xxh3_64(redacted(requested_url).as_bytes())
}

/// A number from 0 to 1 that depends on the address only.
fn chance_of(url: &Url) -> f64 {
    (xxh3_64(url.as_str().as_bytes()) >> 11) as f64 / (1_u64 << 53) as f64
}
