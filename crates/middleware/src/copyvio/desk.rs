//! The spider of the crawl that reads sources: hands them to the checks that wait for them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use huntsman_crawler::{
    Context, DownloaderMiddleware, DropReason, Error, Event, Observer, OnDownload, OnRequest, Output, Page,
    Request, Result, Spider, Start, meta,
};
use url::Url;

use super::detour::{detour, feed_text};
use super::pdf::PdfText;
use super::plan::CheckPlan;
use super::reading::{NoText, Reading, TextKind};
use super::recent::Recent;
use super::session::Message;
use crate::added;

/// Reason of a request for which nobody waits any more.
const NOT_WANTED: &str = "not_wanted";
/// How long a download goes on after the end of its check.
const END_GRACE: Duration = Duration::from_millis(200);
/// Addresses that a page's text is followed to.
const MAX_DETOURS: u8 = 3;

/// What comes of a source.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    Text(Arc<Reading>),
    Failed(String),
}

/// The spider of the crawl that reads sources: hands them to their checks. Seen only by the closure that configures that crawl.
#[derive(Clone)]
pub struct Desk {
    checks: Arc<Mutex<Checks>>,
    pdf: Option<Arc<dyn PdfText>>,
}

struct Checks {
    last: u64,
    open: HashMap<u64, Open>,
    /// Whose sources these URLs are, each once, and which.
    orders: HashMap<String, Order>,
    recent: Recent,
    is_closed: bool,
}

/// A check that waits for sources.
struct Open {
    send: Sender<Message>,
    end: Instant,
    source_time: Duration,
    begun: HashSet<usize>,
    /// Nothing more is begun.
    is_over: bool,
}

/// A URL that is in the queue or on its way.
#[derive(Default)]
struct Order {
    checks: Vec<(u64, usize)>,
    is_begun: bool,
    detours: u8,
    /// Bytes that it may have, and that came, as on the wire.
    most: usize,
    came: usize,
    /// Why its download was ended.
    refusal: Option<NoText>,
}

impl Desk {
    pub(crate) const NAME: &'static str = "copyvio_desk";
    /// Before robots.txt and all others: what nobody wants costs nothing.
    const ORDER: i32 = 10;

    pub(crate) fn new(pdf: Option<Arc<dyn PdfText>>, memory: usize, life: Duration) -> Self {
        let checks = Checks {
            last: 0,
            open: HashMap::new(),
            orders: HashMap::new(),
            recent: Recent::new(memory, life),
            is_closed: false,
        };
        Self { checks: Arc::new(Mutex::new(checks)), pdf }
    }

    fn checks(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a check; its number.
    pub(crate) fn open(&self, send: Sender<Message>, end: Instant, plan: &CheckPlan) -> Result<u64> {
        let mut checks = self.checks();
        if checks.is_closed {
            return Err(Error::usage("this workspace is finished"));
        }
        checks.last += 1;
        let number = checks.last;
        let open = Open { send, end, source_time: plan.source_time, begun: HashSet::new(), is_over: false };
        checks.open.insert(number, open);
        Ok(number)
    }

    /// Ends a check: nothing more is begun for it alone.
    pub(crate) fn close(&self, number: u64) {
        self.checks().open.remove(&number);
    }

    /// Ends all checks and refuses others.
    pub(crate) fn close_all(&self) {
        let mut checks = self.checks();
        checks.is_closed = true;
        checks.open.clear();
    }

    /// Takes note of who wants a URL. What was read a moment ago is handed over at once.
    pub(crate) fn order(&self, url: &Url, number: u64, source: usize) -> Ordered {
        let mut checks = self.checks();
        let Checks { open, orders, recent, .. } = &mut *checks;
        let Some(open) = open.get_mut(&number) else { return Ordered::Waits };
        if let Some(reading) = recent.get(url.as_str(), Instant::now()) {
            return Ordered::Known(reading);
        }
        let order = orders.entry(url.as_str().to_owned()).or_default();
        let is_first = order.checks.is_empty();
        order.checks.push((number, source));
        if order.is_begun {
            open.begun.insert(source);
        }
        if is_first { Ordered::First } else { Ordered::Waits }
    }

    /// Nothing more of a check is begun; which sources were.
    pub(crate) fn no_more(&self, number: u64) -> HashSet<usize> {
        let mut checks = self.checks();
        let Some(open) = checks.open.get_mut(&number) else { return HashSet::new() };
        open.is_over = true;
        open.begun.clone()
    }

    /// How long a URL that is about to be asked for may take; `None` if nobody wants it any more.
    fn begin(&self, url: &str) -> Option<Duration> {
        let mut checks = self.checks();
        let Checks { open, orders, .. } = &mut *checks;
        let order = orders.get_mut(url)?;
        let now = Instant::now();
        let mut time = Duration::ZERO;
        for (number, source) in &order.checks {
            let Some(open) = open.get_mut(number) else { continue };
            // A redirect of one that was begun goes on.
            if !open.is_over || open.begun.contains(source) {
                open.begun.insert(*source);
                let left = open.end.saturating_duration_since(now);
                // At its end the check itself says that the source is late, before the download is given up.
                let until_end = if left.is_zero() { left } else { left + END_GRACE };
                time = time.max(open.source_time.min(until_end));
            }
        }
        if time.is_zero() {
            orders.remove(url);
            return None;
        }
        (order.is_begun, order.came) = (true, 0);
        Some(time)
    }

    /// The text of a page lies elsewhere: who waits for it waits for that; whether anybody does.
    fn divert(&self, url: &str, to: &Url) -> bool {
        let mut checks = self.checks();
        let Some(mut order) = checks.orders.remove(url) else { return false };
        order.detours += 1;
        if order.detours > MAX_DETOURS {
            checks.orders.insert(url.to_owned(), order);
            return false;
        }
        let there = checks.orders.entry(to.as_str().to_owned()).or_default();
        let is_first = there.checks.is_empty();
        (there.is_begun, there.detours) = (true, there.detours.max(order.detours));
        there.checks.append(&mut order.checks);
        is_first
    }

    /// Tells those who want a URL what came of it.
    fn deliver(&self, url: &str, arrival: Arrival) {
        let mut checks = self.checks();
        let Checks { open, orders, recent, .. } = &mut *checks;
        let Some(order) = orders.remove(url) else { return };
        let arrival = match order.refusal {
            Some(refusal) => Arrival::Failed(refusal.to_string()),
            None => arrival,
        };
        if let Arrival::Text(reading) = &arrival {
            recent.keep(url, reading, Instant::now());
        }
        for (number, source) in order.checks {
            if let Some(open) = open.get(&number) {
                // Who waited may have ended meanwhile.
                let _ = open.send.send(Message::Arrived(source, arrival.clone()));
            }
        }
    }

    fn read(&self, page: &Page, cx: &Context) -> Result<Reading, NoText> {
        match feed_text(page) {
            Some(text) => Ok(Reading { text, ..Reading::default() }),
            None => Reading::of_page(page, cx, self.pdf.as_deref()),
        }
    }

    /// Whether bytes of an answer are worth having, as far as its head says.
    fn judge(&self, request: &Request, headers: &HeaderMap) -> OnDownload {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let media_type = text(CONTENT_TYPE).map(|value| value.split(';').next().unwrap_or_default().trim());
        let mut checks = self.checks();
        let Some(order) = checks.orders.get_mut(request.requested_url()) else { return OnDownload::Continue };
        let kind = TextKind::of_media(media_type);
        // A blog's feed is JSON.
        if kind.is_none() && order.detours == 0 {
            order.refusal = Some(NoText::MediaType(media_type.unwrap_or_default().to_owned()));
            return OnDownload::Drop;
        }
        order.most = kind.unwrap_or(TextKind::Plain).most_bytes();
        let length = text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        if length.is_some_and(|length| length > order.most) {
            order.refusal = Some(NoText::TooLarge(order.most));
            return OnDownload::Drop;
        }
        OnDownload::Continue
    }
}

/// What becomes of an order.
#[derive(Debug)]
pub(crate) enum Ordered {
    /// It was read a moment ago.
    Known(Arc<Reading>),
    /// Nobody has asked for it yet.
    First,
    /// Somebody else has.
    Waits,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").field("open", &self.checks().open.len()).finish_non_exhaustive()
    }
}

impl Spider for Desk {
    type Item = ();

    fn name(&self) -> &str {
        Self::NAME
    }

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let url = page.request().requested_url();
        let read = self.read(page, out.context());
        if let Some(there) = detour(page, read.is_err())
            && self.divert(url, &there)
        {
            out.request(Request::get(there).unfiltered());
            return Ok(());
        }
        self.deliver(
            url,
            match read {
                Ok(reading) => Arrival::Text(Arc::new(reading)),
                Err(why) => Arrival::Failed(why.to_string()),
            },
        );
        Ok(())
    }
}

impl DownloaderMiddleware for Desk {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn order(&self) -> i32 {
        Self::ORDER
    }

    async fn process_request(&self, request: &mut Request, _: &Context) -> Result<OnRequest> {
        if request.is_nested() || request.meta_flag(meta::IS_ROBOTS_TXT) {
            return Ok(OnRequest::Continue);
        }
        let Some(time) = self.begin(request.requested_url()) else {
            return Ok(OnRequest::Drop(DropReason::skipped(NOT_WANTED)));
        };
        added::set_meta(request, meta::DOWNLOAD_TIMEOUT, time);
        Ok(OnRequest::Continue)
    }
}

impl Observer for Desk {
    fn event(&self, event: &Event<'_>) {
        let (Event::RequestDropped(dropped) | Event::RequestRefused(dropped)) = event else { return };
        // Who asks for it by now has a request of their own in the queue.
        if dropped.component == Self::NAME {
            return;
        }
        let why = match (&dropped.detail, dropped.status) {
            (Some(detail), _) => format!("{}: {detail}", dropped.reason),
            (None, Some(status)) => format!("{}: {status}", dropped.reason),
            (None, None) => dropped.reason.to_string(),
        };
        self.deliver(&dropped.url, Arrival::Failed(why));
    }

    fn on_headers(&self, request: &Request, status: StatusCode, headers: &HeaderMap) -> OnDownload {
        if !status.is_success() || request.is_nested() || request.meta_flag(meta::IS_ROBOTS_TXT) {
            return OnDownload::Continue;
        }
        self.judge(request, headers)
    }

    fn on_bytes(&self, request: &Request, bytes: &[u8]) -> OnDownload {
        if request.is_nested() || request.meta_flag(meta::IS_ROBOTS_TXT) {
            return OnDownload::Continue;
        }
        let mut checks = self.checks();
        let Some(order) = checks.orders.get_mut(request.requested_url()) else { return OnDownload::Continue };
        order.came = order.came.saturating_add(bytes.len());
        if order.most == 0 || order.came <= order.most {
            return OnDownload::Continue;
        }
        order.refusal = Some(NoText::TooLarge(order.most));
        OnDownload::Drop
    }
}
