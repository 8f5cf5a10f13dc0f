//! The spider of a check: it asks for each URL once, and for the pages whose links are checked.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{Error, FetchError, Output, Page, PageKind, Request, Result, Spider, Start, meta};
use url::Url;

use super::answer::Answer;
use super::cache::Cache;
use super::extract::{self, Format};
use super::options::LinkOptions;
use super::reference::{Base, Reference, Target};
use crate::failure;
use crate::page::without_fragment;
use crate::refusals;
use crate::site::Refused;
use crate::spider::{LAST_TRY, TRY, external, keep_redirects};

/// The links of the answer are checked.
const IS_SOURCE: MetaKey<bool> = MetaKey::new("links_source");
/// The request asks for the robots.txt of a host that could not be had.
const IS_ROBOTS: MetaKey<bool> = MetaKey::new("links_robots");
/// A page with fewer words than this that has scripts is made by them, and so are the names in it.
const FEW_WORDS: usize = 20;

/// What the crawl of a check found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) answers: HashMap<String, Answer>,
    pub(crate) references: Vec<Reference>,
    /// Why there is no answer to a URL.
    pub(crate) refused: HashMap<String, Refused>,
}

pub(crate) struct LinkSpider {
    start: Mutex<Option<Start>>,
    options: Arc<LinkOptions>,
    cache: Cache,
    found: Arc<Mutex<Found>>,
    /// URLs that were asked for, and whether by GET.
    asked: Mutex<HashMap<String, bool>>,
    robots: Mutex<HashSet<String>>,
}

impl LinkSpider {
    /// Begins with the URLs of these references and with these pages.
    pub(crate) fn new(
        references: &[Reference],
        pages: &[Url],
        options: Arc<LinkOptions>,
        cache: Cache,
        found: Arc<Mutex<Found>>,
    ) -> Self {
        let spider = Self {
            start: Mutex::new(None),
            options,
            cache,
            found,
            asked: Mutex::default(),
            robots: Mutex::default(),
        };
        let pages = pages.iter().map(|page| {
            Request::get(page.clone())
                .unfiltered()
                .with_meta(IS_SOURCE, true)
                .with_meta(meta::ALLOW_OFFSITE, true)
        });
        let requests: Vec<Request> = pages.chain(spider.requests(references)).collect();
        *spider.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(Start::requests(requests));
        spider
    }

    /// Requests for the URLs of references that were not asked for yet.
    fn requests(&self, references: &[Reference]) -> Vec<Request> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = references.iter().filter_map(|reference| match &reference.target {
            Target::Web(url) if !self.options.is_excluded(url) => Some(url),
            _ => None,
        });
        let mut requests: Vec<(Url, bool)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for url in wanted {
            let by_get = self.options.fragments && url.fragment().is_some();
            let name = without_fragment(url);
            let known = self.cache.get(&name).is_some_and(|answer| !by_get || answer.anchors.is_some());
            if known || asked.get(&name).is_some_and(|was_get| *was_get || !by_get) {
                continue;
            }
            asked.insert(name.clone(), by_get);
            match places.get(&name) {
                Some(place) => requests[*place].1 |= by_get,
                None => {
                    places.insert(name, requests.len());
                    let mut url = url.clone();
                    url.set_fragment(None);
                    requests.push((url, by_get));
                }
            }
        }
        requests.into_iter().map(|(url, by_get)| asking(url, u64::from(by_get))).collect()
    }

    /// Asks for the target of a redirect, as the redirected URL was asked for.
    fn follow(&self, request: &Request, target: &str, out: &mut Output<()>) {
        let by_get = request.method != Method::HEAD;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = self.cache.get(target).is_some_and(|answer| !by_get || answer.anchors.is_some());
        if is_known || asked.get(target).is_some_and(|was_get| *was_get || !by_get) {
            return;
        }
        if let Ok(url) = Url::parse(target) {
            asked.insert(target.to_owned(), by_get);
            out.request(asking(url, request.meta_value(TRY).unwrap_or_default().min(1)));
        }
    }

    /// The names to which fragments may lead; `None` if the answer is no page, or if scripts make it.
    fn anchors(&self, page: &Page) -> Option<Vec<String>> {
        if !self.options.fragments || page.request().method == Method::HEAD || page.kind() != PageKind::Html {
            return None;
        }
        let (scan, _) = page.scanned();
        let is_made_by_scripts = page.text().split_whitespace().take(FEW_WORDS).count() < FEW_WORDS
            && (scan.facts().is_some_and(|facts| facts.scripts > 0) || page.body_text().contains("<script"));
        (!is_made_by_scripts).then(|| extract::of_html(page.body_text()))
    }

    /// Asks again for a URL that seems to be broken: by GET, and five seconds later once more.
    fn try_again(request: &Request, out: &mut Output<()>) -> bool {
        let tried = request.meta_value(TRY).unwrap_or(2);
        if tried >= 2 {
            return false;
        }
        let next =
            asking(request.url.clone(), tried + 1).unfiltered().with_meta(refusals::SEEMS_BROKEN, true);
        out.request(if tried == 0 { next } else { next.after(LAST_TRY) });
        true
    }
}

/// Asks for a URL: by HEAD, and by GET from the second try on. Each redirect is an answer of its own.
fn asking(url: Url, tried: u64) -> Request {
    let mut request = external(url, tried);
    keep_redirects(&mut request);
    request
}

impl Spider for LinkSpider {
    type Item = ();

    fn name(&self) -> &str {
        "links"
    }

    fn start(&self) -> Start {
        self.start.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(Start::none)
    }

    fn parse(&self, page: &Page, out: &mut Output<()>) -> Result<()> {
        let request = page.request();
        let status = page.response().status;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if request.meta_flag(IS_SOURCE) && status.is_success() && page.kind() == PageKind::Html {
            let base = Base::Url(page.url().clone());
            let references =
                extract::references(request.requested_url(), page.body_text(), Format::Html, base);
            out.requests(self.requests(&references));
            found.references.extend(references);
        }
        let answer = Answer::of(page, self.anchors(page));
        match &answer.redirect {
            Some(target) => self.follow(request, target, out),
            None if !self.options.accepts(&request.url, answer.status)
                && refusals::is_worth_asking_again(
                    answer.status,
                    request.method == Method::HEAD,
                    answer.is_challenge,
                )
                && Self::try_again(request, out) =>
            {
                return Ok(());
            }
            None => {}
        }
        // An answer to HEAD says nothing of fragments, and may come after that to GET.
        let is_better = found.answers.get(&answer.url).is_none_or(|known| known.anchors.is_none());
        if is_better {
            found.answers.insert(answer.url.clone(), answer);
        }
        Ok(())
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<()>) -> Result<()> {
        let fetch = error.downcast_ref::<FetchError>();
        let kind = fetch.map(|error| error.kind().name());
        if kind == Some("address_refused") || request.meta_flag(IS_ROBOTS) {
            return Ok(());
        }
        if error.to_string().starts_with("robots_unreachable") {
            // What is wrong with the host shows in its robots.txt, now and at a second request.
            let robots = request.url.join("/robots.txt").ok();
            if let (Some(robots), Some(fetch)) = (&robots, fetch) {
                let kind = fetch.kind().name();
                let refused = Refused {
                    reason: kind.to_owned(),
                    detail: Some(failure::told(kind, &fetch.to_string())),
                };
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.refused.entry(robots.to_string()).or_insert(refused);
            }
            let mut asked = self.robots.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(robots) = robots.filter(|robots| asked.insert(robots.to_string())) {
                let request = Request::get(robots)
                    .with_meta(meta::ALLOW_OFFSITE, true)
                    .with_meta(meta::DONT_RETRY, true);
                out.request(request.with_meta(IS_ROBOTS, true));
            }
            return Ok(());
        }
        let is_final =
            error.to_string().starts_with(refusals::REASON) || kind.is_some_and(refusals::is_timeout);
        if !is_final {
            Self::try_again(request, out);
        }
        Ok(())
    }
}
