//! The network of one page in the browser: its requests are nested downloads of the crawl.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use huntsman_browser::{Answer, Asked, Kind, Network, NetworkFuture, Refused};
use huntsman_crawler::{Context, FetchErrorKind, Request, Response, SentMark, Timestamp, registrable_domain};
use url::Url;

use super::answers::answer_of;
use super::kept::Kept;
use super::page::PageCookies;
use super::settings::{RenderSettings, RenderThirdParty};
use super::subrequest::{SubRequests, kind_name};

/// Answers what one page asks for.
pub(super) struct PageNetwork {
    cx: Context,
    started: Timestamp,
    url: Url,
    document: Answer,
    subrequests: SubRequests,
    third_party: RenderThirdParty,
    /// Whether the document was asked for.
    is_begun: AtomicBool,
    kept: Arc<Kept>,
    pub(super) cookies: PageCookies,
    flights: Arc<Flights>,
    is_cancelled: AtomicBool,
}

/// The requests of a page that are not answered yet.
#[derive(Default)]
struct Flights {
    next: AtomicU64,
    marks: Mutex<HashMap<u64, SentMark>>,
}

/// A request of a page that is not answered yet.
struct InFlight(Arc<Flights>, u64);

impl PageNetwork {
    pub(super) fn new(
        request: &Request,
        response: &Response,
        settings: &RenderSettings,
        kept: &Arc<Kept>,
        cx: &Context,
    ) -> Self {
        let cookies = PageCookies::of(request, &response.url, cx);
        let mut document = answer_of(response);
        document.headers.extend(cookies.lines().map(|line| ("set-cookie".to_owned(), line)));
        Self {
            cx: cx.clone(),
            started: cx.now(),
            url: without_fragment(&response.url),
            document,
            subrequests: SubRequests::of(request, &response.url),
            third_party: settings.render_third_party,
            is_begun: AtomicBool::new(false),
            kept: Arc::clone(kept),
            cookies,
            flights: Arc::default(),
            is_cancelled: AtomicBool::new(false),
        }
    }

    /// When the page was begun.
    pub(super) fn started(&self) -> Timestamp {
        self.started
    }

    /// Whether a request was not answered because the crawl stops: then the page is not whole.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    async fn answered(&self, asked: Asked) -> Result<Answer, Refused> {
        let stats = self.cx.stats();
        let kind = if asked.is_main { "page" } else { kind_name(asked.kind) };
        stats.inc(&format!("render/requests/{kind}"));
        self.cookies.store(&asked.cookies, self.subrequests.jar(), &self.cx);
        let answer = self.answer_or_refuse(asked).await;
        if let Err(refused) = &answer {
            stats.inc(&format!("render/refused/{}", refused.reason));
        }
        answer
    }

    async fn answer_or_refuse(&self, asked: Asked) -> Result<Answer, Refused> {
        let url = Url::parse(&asked.url).map_err(|_| refused("invalid_request"))?;
        // The first document is that of the page, also if the browser writes its address in another way.
        if asked.is_main
            && (!self.is_begun.swap(true, Ordering::Relaxed) || url == self.url && asked.method == "GET")
        {
            self.cx.stats().inc("render/source/page");
            return Ok(self.document.clone());
        }
        if !self.allows(&url, asked.kind) {
            return Err(refused("third_party"));
        }
        let is_shared = matches!(asked.kind, Kind::Script | Kind::Stylesheet) && asked.method == "GET";
        let request = self.subrequests.request(url, asked)?;
        let (answer, source) = match is_shared {
            true => {
                let key = (self.subrequests.jar().to_owned(), request.url.to_string());
                let mut flight = None;
                let join = |mark| flight = Some(self.flights.add(mark));
                let fetch = |mark| self.fetch(request, mark);
                let (answer, was_there) = self.kept.answer(key, self.cx.now(), join, fetch).await;
                drop(flight);
                (answer, if was_there { "kept" } else { "crawl" })
            }
            false => {
                let mark = SentMark::default();
                let _flight = self.flights.add(mark.clone());
                (self.fetch(request, mark).await, "crawl")
            }
        };
        match &answer {
            Ok(_) => self.cx.stats().inc(&format!("render/source/{source}")),
            Err(refused) if refused.reason == FetchErrorKind::Cancelled.name() => {
                self.is_cancelled.store(true, Ordering::Relaxed);
            }
            Err(_) => {}
        }
        answer
    }

    /// Fetches as the crawl fetches anything: by the middlewares, with a start of the slot of the host.
    async fn fetch(&self, mut request: Request, mark: SentMark) -> Result<Answer, Refused> {
        request.extensions.insert(mark);
        match self.cx.download(request).await {
            Ok(response) => Ok(answer_of(&response)),
            Err(error) => Err(refused(error.reason())),
        }
    }

    /// Whether the page may load this from the site that it is on.
    fn allows(&self, url: &Url, kind: Kind) -> bool {
        if site(url) == site(&self.url) {
            return true;
        }
        match self.third_party {
            RenderThirdParty::All => true,
            RenderThirdParty::None => false,
            RenderThirdParty::ScriptXhr => matches!(kind, Kind::Script | Kind::Xhr | Kind::Fetch),
        }
    }
}

impl Network for PageNetwork {
    fn answer(&self, asked: Asked) -> NetworkFuture<'_> {
        Box::pin(self.answered(asked))
    }

    fn is_waiting(&self) -> bool {
        let marks = self.flights.lock();
        !marks.is_empty() && !marks.values().any(SentMark::is_sent)
    }
}

impl Flights {
    fn add(self: &Arc<Self>, mark: SentMark) -> InFlight {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, mark);
        InFlight(Arc::clone(self), number)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, SentMark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.lock().remove(&self.1);
    }
}

/// The site of an address: its registrable domain, or else its host.
fn site(url: &Url) -> &str {
    registrable_domain(url).or(url.host_str()).unwrap_or_default()
}

fn without_fragment(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    url
}

pub(super) fn refused(reason: impl Into<String>) -> Refused {
    Refused { reason: reason.into() }
}
