//! The spider of an audit: it follows the links of the site, looks once at what they lead to elsewhere, and gives a record of each answer.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, header};
use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{
    AllowedAddresses, Component, Context, DownloaderMiddleware, Error, Event, FetchError, FetchErrorKind,
    Hooks, Observer, OnFollow, OnRequest, Output, Page, PageNeeds, Request, Result, Settings, Sitemap,
    SitemapLimits, SitemapReport, Spider, SpiderMiddleware, Start, Timestamp, meta,
};
use huntsman_middleware::{AuditSettings, Offsite};
use url::Url;

use crate::answer_record::record_of;
use crate::custom::CustomReader;
use crate::documents::{self, PdfReader};
use crate::failure;
use crate::finding::{Finding, Findings};
use crate::logs::Logs;
use crate::page::{AuditedPage, KnownHosts, without_fragment};
use crate::record::{Answered, Edge, EdgeKind, Kind, NamedFor, Record};
use crate::refusals;
use crate::rendering::DONT_RENDER;
use crate::robots_files::SitemapFile;
use crate::rule::RuleSet;
use crate::second_look::SecondLooks;
use crate::site::{authority, front_of};
use crate::tls::TlsRecord;

/// Why a URL is requested; a name of [`Kind`].
const KIND: MetaKey<String> = MetaKey::new("audit_kind");
/// How often an external URL was tried.
pub(crate) const TRY: MetaKey<u64> = MetaKey::new("audit_try");
/// The request came back to its own URL with a cookie.
const AGAIN: MetaKey<bool> = MetaKey::new("audit_again");
/// A path that no site has.
const PROBE: &str = "/huntsman-audit-looks-for-a-page-that-is-missing";
/// The URL in a question about old versions of TLS. It is never requested, and keeps the record apart from those of pages.
const OLD_TLS: &str = "/huntsman-audit-asks-for-old-versions-of-tls";
/// How long a broken external URL waits for its last try.
pub(crate) const LAST_TRY: Duration = Duration::from_secs(5);
/// Bytes of an image or a medium that are received to learn its size, if its server does not state it.
const MAX_COUNTED: u64 = 16 << 20;
/// Maximum number of characters of an excerpt of an error, and of a header.
pub(crate) const MAX_DETAIL: usize = 300;

/// What an audit looks at besides the pages of the site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Links are followed.
    pub(crate) follow: bool,
    /// Links to other sites are looked at.
    pub(crate) external: bool,
    /// Images, scripts and styles are looked at.
    pub(crate) resources: bool,
    /// PDF files are read.
    pub(crate) pdf: bool,
}

/// The part of an audit in the crawl: it asks for the facts of pages, and keeps redirects from being followed by themselves, because each hop
/// is a record.
pub(crate) struct Judge {
    limits: AuditSettings,
    rules: RuleSet,
    allowed: AllowedAddresses,
    second_looks: SecondLooks,
    custom: Option<CustomReader>,
    pdf: Option<PdfReader>,
}

impl Judge {
    pub(crate) fn from_settings(settings: &Settings, rules: RuleSet) -> Result<Self> {
        let limits: AuditSettings = settings.of()?;
        let custom = CustomReader::of(&limits)?;
        let allowed = AllowedAddresses::of(settings)?;
        Ok(Self { limits, rules, allowed, second_looks: SecondLooks::default(), custom, pdf: None })
    }

    /// Reads PDF files, too.
    pub(crate) fn with_pdf(mut self, pdf: Option<PdfReader>) -> Self {
        self.pdf = pdf;
        self
    }

    /// Adds what a document of the site says, and where its links lead. Returns whether it is one.
    pub(crate) fn add_document(&self, page: &Page, answered: &mut Answered) -> bool {
        if answered.record.kind != Kind::Page {
            return false;
        }
        let Some((document, edges)) = documents::read(page, self.pdf.as_ref()) else { return false };
        answered.record.document = Some(Box::new(document));
        answered.edges = edges;
        true
    }

    /// Adds to the record of a page what it says, and what the rules find on it. Returns whether it is HTML that can be judged.
    pub(crate) fn judged(
        &self,
        page: &Page,
        answered: &mut Answered,
        is_audited: &dyn Fn(&Url) -> bool,
    ) -> bool {
        let hosts = KnownHosts { allowed: &self.allowed, is_audited };
        let Some(audited) = AuditedPage::of(page, &self.limits, hosts) else { return false };
        answered.record.html = Some(audited.record());
        if answered.record.kind == Kind::Page {
            answered.edges = audited.edges();
            let mut findings = Findings::default();
            self.rules.judge_page(&audited, &mut findings);
            (answered.findings, answered.measures) = findings.into_parts();
        }
        true
    }

    /// Adds what the user reads from a page of the site.
    pub(crate) fn add_custom(&self, page: &Page, record: &mut Record) {
        let custom = self.custom.as_ref().filter(|_| record.kind == Kind::Page);
        record.custom = custom.and_then(|custom| custom.read(page)).map(Box::new);
    }
}

impl Component for Judge {
    const NAME: &'static str = "audit";
    type Settings = AuditSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(940).downloader(150).observer()
    }

    fn page_needs(&self) -> PageNeeds {
        PageNeeds { text: true, audit: true, ..PageNeeds::default() }
    }
}

impl DownloaderMiddleware for Judge {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        match kind_of(request) {
            Kind::Again => Ok(self.second_looks.admit(request, cx)),
            _ => Ok(OnRequest::Continue),
        }
    }
}

impl Observer for Judge {
    fn event(&self, event: &Event<'_>) {
        match event {
            Event::RequestReachedDownloader { request } => self.second_looks.sent(request),
            Event::RequestLeftDownloader { request, .. } => {
                self.second_looks.ended(request);
                if kind_of(request) == Kind::Again {
                    self.second_looks.looked();
                }
            }
            _ => {}
        }
    }
}

impl SpiderMiddleware for Judge {
    fn process_start(&self, request: &mut Request, _: &Context) -> Result<OnFollow> {
        keep_redirects(request);
        Ok(OnFollow::Keep)
    }

    fn process_follow(&self, _: &Page, request: &mut Request, _: &Context) -> Result<OnFollow> {
        keep_redirects(request);
        Ok(OnFollow::Keep)
    }
}

pub(crate) fn keep_redirects(request: &mut Request) {
    if !matches!(kind_of(request), Kind::Sitemap | Kind::Robots | Kind::Icon) {
        request.set_meta(meta::DONT_REDIRECT, true);
        request.set_meta(meta::DONT_METAREFRESH, true);
    }
    if kind_of(request) != Kind::Page {
        // Only the pages of the site are compared with what scripts make of them.
        request.set_meta(DONT_RENDER, true);
    }
}

/// The spider of an audit. Its items are records; [`AuditOptions::crawl`](crate::AuditOptions::crawl) makes it.
#[derive(Debug)]
pub struct AuditSpider {
    start: Mutex<Option<Start>>,
    reach: Reach,
    /// Logs of servers, whose URLs are requested, too.
    logs: Option<Logs>,
    /// Hosts without an answer that were told, and hosts that were probed.
    seen: Mutex<HashSet<String>>,
}

impl AuditSpider {
    pub(crate) fn new(start: Start, reach: Reach, logs: Option<Logs>) -> Self {
        Self { start: Mutex::new(Some(start)), reach, logs, seen: Mutex::default() }
    }

    /// Whether this is the first time that the spider meets this name.
    fn is_first(&self, name: String) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(name)
    }

    /// Queues what the page refers to.
    fn follow(&self, answered: &Answered, out: &mut Output<Answered>) {
        let record = &answered.record;
        let cx = out.context().clone();
        let mut queued = HashSet::new();
        for edge in &answered.edges {
            let is_resource = edge.kind.is_resource();
            if (is_resource && !self.reach.resources) || !queued.insert((edge.to.as_str(), is_resource)) {
                continue;
            }
            let Ok(url) = Url::parse(&edge.to) else { continue };
            self.look_at(url, edge.kind, &cx, out);
        }
        if !self.reach.follow {
            return;
        }
        let Some(html) = &record.html else { return };
        for file in &html.files {
            let Ok(url) = Url::parse(&file.url) else { continue };
            self.look_at_file(url, file.named_for, &cx, out);
        }
        let named = html.canonical.iter().chain(html.next.iter()).chain(html.prev.iter());
        let named = named.chain(html.alternates.iter().map(|alternate| &alternate.url));
        for url in named.filter(|url| **url != record.url).filter_map(|url| Url::parse(url).ok()) {
            ask_for_named(url, self.reach, &cx, out);
        }
    }

    fn look_at_file(&self, url: Url, named_for: NamedFor, cx: &Context, out: &mut Output<Answered>) {
        match named_for {
            NamedFor::Preview if self.reach.resources => self.look_at(url, EdgeKind::Image, cx, out),
            NamedFor::Feed if in_scope(&url, cx) => out.request(of_kind(Request::get(url), Kind::Feed)),
            NamedFor::Feed => self.look_at(url, EdgeKind::Link, cx, out),
            NamedFor::Preview => {}
        }
    }

    fn look_at(&self, url: Url, kind: EdgeKind, cx: &Context, out: &mut Output<Answered>) {
        if in_scope(&url, cx) {
            match kind {
                EdgeKind::Link if self.reach.follow => out.request(self.page_request(url)),
                EdgeKind::Script | EdgeKind::Style | EdgeKind::Frame => {
                    out.request(Request::get(url).with_meta(KIND, Kind::Resource.name().to_owned()));
                }
                // Drawings of SVG are text, whose compression is judged.
                EdgeKind::Image if url.path().to_ascii_lowercase().ends_with(".svg") => {
                    out.request(of_kind(Request::get(url), Kind::Resource));
                }
                EdgeKind::Image | EdgeKind::Media => {
                    out.request(
                        Request::get(url)
                            .method(Method::HEAD)
                            .with_meta(KIND, Kind::Resource.name().to_owned()),
                    );
                }
                _ => {}
            }
            return;
        }
        if !self.reach.external || !may_be_asked(&url, cx) {
            return;
        }
        if url.host_str().is_some_and(|host| host.ends_with(".invalid")) {
            if self.is_first(without_fragment(&url)) {
                let record = Record {
                    url: without_fragment(&url),
                    kind: Kind::External,
                    error: Some("dns".to_owned()),
                    detail: Some("names that end in .invalid have no address (RFC 2606)".to_owned()),
                    ..Record::default()
                };
                out.item(record.into());
            }
            return;
        }
        out.request(external(url, 0));
    }

    /// A request for a page or a document of the site. Bodies of documents are asked for by their names, too, because some servers have no
    /// media type for them.
    fn page_request(&self, url: Url) -> Request {
        let path = url.path().to_ascii_lowercase();
        let is_document = self.reach.pdf && path.ends_with(".pdf") || path.ends_with(".docx");
        let request = Request::get(url);
        if is_document { request.with_meta(meta::DOWNLOAD_BINARY, true) } else { request }
    }

    /// Follows a redirect, as the same kind of request.
    fn redirected(&self, page: &Page, record: &Record, out: &mut Output<Answered>) {
        let Some(target) = record.redirect.as_ref().and_then(|url| Url::parse(url).ok()) else { return };
        let request = page.request();
        let is_own = in_scope(&target, out.context());
        let sets_cookie = page.response().headers.contains_key(header::SET_COOKIE);
        if *target.as_str() == *record.url {
            // The page may come once the cookie is there; without one it is a loop.
            if sets_cookie && !request.meta_flag(AGAIN) {
                let again =
                    Request::get(target).method(request.method.clone()).unfiltered().with_meta(AGAIN, true);
                let again =
                    again.with_meta(KIND, record.kind.name().to_owned()).with_meta(meta::ALLOW_OFFSITE, true);
                out.request(again.with_meta(meta::IS_START_REQUEST, record.is_start));
            }
            return;
        }
        match record.kind {
            Kind::Page | Kind::External if is_own && !self.reach.follow && !record.is_start => {}
            Kind::Page if record.is_start => {
                // Where a start URL leads is the site that is meant.
                let request = Request::get(target).with_meta(meta::IS_START_REQUEST, true);
                out.request(request.with_meta(meta::ALLOW_OFFSITE, true));
            }
            Kind::Page | Kind::External if is_own => out.request(self.page_request(target)),
            Kind::Resource | Kind::Feed if is_own => {
                let next = Request::get(target).method(request.method.clone());
                out.request(of_kind(next, record.kind));
            }
            Kind::Page | Kind::External | Kind::Resource | Kind::Feed
                if self.reach.external && may_be_asked(&target, out.context()) =>
            {
                out.request(external(target, 0));
            }
            _ => {}
        }
    }

    /// Tries an external URL again that seems to be broken. Returns whether it does.
    fn try_again(&self, request: &Request, is_broken: bool, out: &mut Output<Answered>) -> bool {
        let kind = kind_of(request);
        let tried = request.meta_value(TRY).unwrap_or(0);
        let is_head = request.method == Method::HEAD;
        let mut next = match kind {
            Kind::External if is_broken && tried < 2 => {
                external(request.url.clone(), tried + 1).with_meta(refusals::SEEMS_BROKEN, true)
            }
            // The size of an image is wanted, and not the image.
            Kind::Resource | Kind::Icon if is_broken && is_head => {
                of_kind(Request::get(request.url.clone()), kind)
                    .with_meta(meta::DOWNLOAD_COUNT, true)
                    .with_meta(meta::DOWNLOAD_MAXSIZE, MAX_COUNTED)
                    .with_meta(meta::DOWNLOAD_TRUNCATE, true)
            }
            _ => return false,
        };
        if !is_head {
            next = next.unfiltered().after(LAST_TRY);
        }
        out.request(next);
        true
    }

    /// Looks at a path that no site has, once for each origin of a start URL.
    fn probe(&self, page: &Page, out: &mut Output<Answered>) {
        if !page.request().meta_flag(meta::IS_START_REQUEST) || !self.reach.follow {
            return;
        }
        let origin = page.url().origin().ascii_serialization();
        if let (true, Ok(url)) = (self.is_first(origin), page.url().join(PROBE)) {
            out.request(Request::get(url).with_meta(KIND, Kind::Probe.name().to_owned()));
            self.ask_by_http(page.url(), out);
            self.ask_for_logged(page.url(), out);
        }
    }

    /// Asks for URLs that stand in logs. Those of lines without a host may be on each host where the crawl begins.
    fn ask_for_logged(&self, url: &Url, out: &mut Output<Answered>) {
        let front = front_of(url.as_str());
        for (host, target) in self.logs.iter().flat_map(Logs::targets) {
            let logged = match host.as_str() {
                "" => Url::parse(&format!("{}{target}", front.trim_end_matches('/'))),
                host => Url::parse(&format!("{}://{host}{target}", url.scheme())),
            };
            if let Some(logged) = logged.ok().filter(|logged| in_scope(logged, out.context())) {
                out.request(Request::get(logged));
            }
        }
    }

    /// Asks for the robots.txt of a host as a file to judge, once. What the crawl obeys is fetched apart from it.
    fn ask_for_robots(&self, url: &Url, out: &mut Output<Answered>) {
        if let Ok(robots) = url.join("/robots.txt")
            && self.is_first(robots.to_string())
        {
            let request = Request::get(robots).with_meta(meta::ALLOW_OFFSITE, true);
            out.request(request.with_meta(KIND, Kind::Robots.name().to_owned()));
        }
    }

    /// Asks for the icon of a host at its usual place, once, for a page that names none.
    fn ask_for_icon(&self, url: &Url, record: &Record, out: &mut Output<Answered>) {
        let has_icon = record.html.as_ref().is_none_or(|html| html.has_icon);
        if let (false, Ok(icon)) = (has_icon, url.join("/favicon.ico"))
            && self.is_first(icon.to_string())
        {
            out.request(of_kind(Request::get(icon).method(Method::HEAD), Kind::Icon));
        }
    }

    /// Asks for the front page of a host with https by http, which should lead to https. Only the usual ports are known to belong together.
    fn ask_by_http(&self, url: &Url, out: &mut Output<Answered>) {
        let (Some(host), "https", None) = (url.host_str(), url.scheme(), url.port()) else { return };
        let Ok(plain) = Url::parse(&format!("http://{host}/")) else { return };
        out.request(
            Request::get(plain)
                .unfiltered()
                .with_meta(meta::ALLOW_OFFSITE, true)
                .with_meta(meta::DONT_RETRY, true)
                .with_meta(KIND, Kind::Plain.name().to_owned()),
        );
    }

    /// Adds the certificate of the host to a record, at the first answer that shows it. A host of the site is asked for old versions of TLS, then.
    fn add_tls(&self, record: &mut Record, tls: Option<TlsRecord>, out: &mut Output<Answered>) {
        let Some(tls) = tls else { return };
        let fault = tls.fault.as_deref().unwrap_or_default();
        if !self.is_first(format!("tls {} {} {fault}", authority(&record.url), tls.not_after)) {
            return;
        }
        if record.kind != Kind::External
            && let Ok(url) = Url::parse(&record.url).and_then(|url| url.join(OLD_TLS))
            && self.is_first(url.to_string())
        {
            let request = of_kind(Request::get(url), Kind::OldTls)
                .with_meta(meta::OLD_TLS, true)
                .with_meta(meta::ALLOW_OFFSITE, true)
                .with_meta(meta::DONT_OBEY_ROBOTSTXT, true)
                .with_meta(meta::DONT_RETRY, true)
                .with_meta(meta::DONT_CACHE, true);
            out.request(request);
        }
        record.tls = Some(tls);
    }
}

impl Spider for AuditSpider {
    type Item = Answered;

    fn name(&self) -> &str {
        "audit"
    }

    fn start(&self) -> Start {
        self.start.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_else(Start::none)
    }

    fn parse(&self, page: &Page, out: &mut Output<Answered>) -> Result<()> {
        let judge =
            out.context().component::<Judge>().ok_or_else(|| Error::usage("an audit needs its component"))?;
        let mut answered = Answered::from(record_of(page));
        let record = &answered.record;
        match record.kind {
            Kind::Again => {
                out.item(answered);
                return Ok(());
            }
            Kind::OldTls => {
                answered.record.tls = TlsRecord::of_old_version(page.response());
                if answered.record.tls.is_some() {
                    out.item(answered);
                }
                return Ok(());
            }
            _ => {}
        }
        let status = page.response().status.as_u16();
        let is_broken = match record.kind {
            // Some servers name the target only in answers to GET.
            Kind::External if record.leads_nowhere() => record.is_head,
            Kind::External => refusals::is_worth_asking_again(status, record.is_head, record.is_challenge),
            _ => status >= 400,
        };
        // Some servers refuse HEAD, and some answer it without a length.
        let has_no_length = record.is_head && record.kind == Kind::Resource && record.wire_bytes == 0;
        if self.try_again(page.request(), is_broken || has_no_length, out) {
            return Ok(());
        }
        if record.redirect.is_some() {
            self.redirected(page, record, out);
        } else if judge.judged(page, &mut answered, &|url| in_scope(url, out.context()))
            && answered.record.kind == Kind::Page
        {
            self.follow(&answered, out);
            self.probe(page, out);
            if answered.record.ttfb_ms > judge.limits.audit_ttfb_max_ms
                && let Some(again) = judge.second_looks.request(page.url())
            {
                out.request(of_kind(again, Kind::Again).with_meta(meta::ALLOW_OFFSITE, true));
            }
            if self.reach.follow {
                self.ask_for_robots(page.url(), out);
                self.ask_for_icon(page.url(), &answered.record, out);
            }
        } else if judge.add_document(page, &mut answered) {
            self.follow(&answered, out);
        }
        judge.add_custom(page, &mut answered.record);
        self.add_tls(&mut answered.record, TlsRecord::of_response(page.response()), out);
        out.item(answered);
        Ok(())
    }

    fn failed(&self, request: &Request, error: &Error, out: &mut Output<Answered>) -> Result<()> {
        let fetch = error.downcast_ref::<FetchError>();
        let name = reason_of(error, fetch);
        let status = fetch.and_then(FetchError::status).map(|status| status.as_u16());
        let by_head = request.method == Method::HEAD;
        let is_refused = status.is_some_and(|status| {
            refusals::is_refusal(status) && !refusals::is_worth_asking_again(status, by_head, false)
        });
        let is_final = matches!(name.as_str(), "address_refused" | "robots_unreachable" | refusals::REASON)
            || (kind_of(request) == Kind::External && (refusals::is_timeout(&name) || is_refused));
        if !is_final && self.try_again(request, true, out) {
            return Ok(());
        }
        if matches!(kind_of(request), Kind::Plain | Kind::Again | Kind::OldTls) {
            // A host without http is as it should be, a page that was slow has an answer already, and a host that does not answer a question about
            // old versions accepts none.
            return Ok(());
        }
        let url = without_fragment(&request.url);
        let kind = fetch.map(|fetch| fetch.kind().name());
        let is_of_robots = name == "robots_unreachable";
        if is_of_robots {
            // What is wrong with the host shows in its robots.txt.
            self.ask_for_robots(&request.url, out);
        }
        let detail = match fetch {
            Some(fetch) if fetch.kind() != FetchErrorKind::Middleware => {
                failure::told(fetch.kind().name(), &fetch.to_string())
            }
            // The name of the reason is told apart from it.
            _ => error.to_string().trim_start_matches(refusals::REASON).trim_start_matches(": ").to_owned(),
        };
        let mut record = Record {
            url,
            kind: kind_of(request),
            is_start: request.meta_flag(meta::IS_START_REQUEST),
            is_head: request.method == Method::HEAD,
            status,
            error: Some(name),
            detail: Some(detail.chars().take(MAX_DETAIL).collect()),
            robots_error: kind.filter(|_| is_of_robots).map(str::to_owned),
            ..Record::default()
        };
        self.add_tls(&mut record, fetch.and_then(TlsRecord::of_error), out);
        out.item(record.into());
        Ok(())
    }
}

/// The record of a sitemap, whose entries are its edges. It is read a second time for that, in which nothing is kept of what is not listed. Of a
/// robots.txt that names sitemaps it is the record of that file.
pub(crate) fn of_sitemap(page: &Page, report: &SitemapReport, reach: Reach, out: &mut Output<Answered>) {
    let mut record = record_of(page);
    if page.request().meta_flag(meta::SITEMAP_ROBOTS) {
        return out.item(record.into());
    }
    let limits = SitemapLimits::of(out.context().settings());
    let now = Timestamp::wall();
    let mut file = SitemapFile::default();
    let mut edges = Vec::new();
    for entry in Sitemap::new(&page.response().body, page.url(), limits) {
        file.add(&entry, now);
        edges.push(Edge::new(&without_fragment(&entry.loc), EdgeKind::Sitemap));
    }
    file.finish(page, report, limits);
    if reach.follow {
        ask_for_translations(&file, &edges, reach, out);
    }
    (record.kind, record.sitemap) = (Kind::Sitemap, Some(file));
    out.item(Answered { edges, ..record.into() });
}

/// Asks for pages in other languages that a sitemap names and does not list.
fn ask_for_translations(file: &SitemapFile, edges: &[Edge], reach: Reach, out: &mut Output<Answered>) {
    let cx = out.context().clone();
    let mut known: HashSet<&str> = edges.iter().map(|edge| edge.to.as_str()).collect();
    for alternate in file.translations.iter().flat_map(|translations| &translations.alternates) {
        if known.insert(&alternate.url)
            && let Ok(url) = Url::parse(&alternate.url)
        {
            ask_for_named(url, reach, &cx, out);
        }
    }
}

/// Asks for a page that is named as canonical, as the next one or in another language.
fn ask_for_named(url: Url, reach: Reach, cx: &Context, out: &mut Output<Answered>) {
    if in_scope(&url, cx) {
        out.request(Request::get(url));
    } else if reach.external && may_be_asked(&url, cx) {
        out.request(external(url, 1));
    }
}

/// The name of the reason why a request failed. If a middleware dropped it, its reason is not among the kinds of errors, and begins the message.
fn reason_of(error: &Error, fetch: Option<&FetchError>) -> String {
    let kind = fetch.map_or("error", |error| error.kind().name());
    let message = error.to_string();
    match message.split_once(": ") {
        Some((name @ ("robots_unreachable" | refusals::REASON), _)) => name.to_owned(),
        _ => kind.to_owned(),
    }
}

pub(crate) fn kind_of(request: &Request) -> Kind {
    if request.meta_flag(meta::SITEMAP_ROBOTS) {
        return Kind::Robots;
    }
    if request.is_sitemap() {
        return Kind::Sitemap;
    }
    request.meta_text(KIND).map_or(Kind::Page, Kind::of_name)
}

/// A request that says what it is for.
fn of_kind(request: Request, kind: Kind) -> Request {
    request.with_meta(KIND, kind.name().to_owned())
}

/// Whether a URL belongs to the site.
fn in_scope(url: &Url, cx: &Context) -> bool {
    cx.component::<Offsite>().is_none_or(|offsite| offsite.rules().in_scope(url))
}

/// A request for a URL outside of the site: by HEAD, and by GET from the second try on.
pub(crate) fn external(url: Url, tried: u64) -> Request {
    let method = if tried == 0 { Method::HEAD } else { Method::GET };
    Request::get(url)
        .method(method)
        .with_meta(meta::ALLOW_OFFSITE, true)
        .with_meta(meta::DONT_RETRY, true)
        .with_meta(TRY, tried)
        .with_meta(KIND, Kind::External.name().to_owned())
}

/// Whether the audit looks at a URL of another site: hosts of this machine and its network are asked only if the user names them.
fn may_be_asked(url: &Url, cx: &Context) -> bool {
    is_public(url) || cx.component::<Judge>().is_some_and(|judge| judge.allowed.contains(url))
}

/// Whether a URL is meant for others than this machine and its network.
pub(crate) fn is_public(url: &Url) -> bool {
    use url::Host;
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name != "localhost" && !name.ends_with(".localhost")
        }
        Some(Host::Ipv4(ip)) => {
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified())
        }
        Some(Host::Ipv6(ip)) => {
            !(ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local())
        }
        None => false,
    }
}

impl RuleSet {
    /// Lets all rules judge a page, and drops what does not apply to its class.
    pub(crate) fn judge_page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let mut found = Findings::default();
        for rule in self.rules() {
            rule.page(page, &mut found);
        }
        let applies = |finding: &Finding| self.code(&finding.code).is_some_and(|code| page.is(code.judges));
        let (found, measures) = found.into_parts();
        found.into_iter().filter(applies).for_each(|finding| findings.add(finding));
        measures.into_iter().for_each(|measure| findings.measure(measure));
    }
}

/// A shared list of rules, in the form that a crawl keeps.
pub(crate) type SharedRules = Arc<[Box<dyn crate::rule::Rule>]>;
