//! The polite stack: every built-in middleware in its place.

use huntsman_crawler::{CrawlerBuilder, Plugin, Spider};

use crate::avoid_dup::KeptAvoidDup;
use crate::cookies::KeptJars;
use crate::incremental::{KeptIncremental, SharedIncremental};
use crate::near_dup::{KeptNearDup, SharedNearDup};
use crate::offsite::KeptScope;
use crate::offsite::SharedOffsite;
use crate::robots_txt::{KeptRobots, SharedRobots};
use crate::{
    AvoidDup, CookieJars, Cookies, DefaultHeaders, Depth, DownloadTimeout, DownloaderStats, HttpAuth,
    HttpCache, HttpCompression, HttpError, HttpProxy, Incremental, MetaCopyDetection, MetaRefresh, NearDup,
    Nofollow, Offsite, Redirect, Referer, Retry, RobotsTxt, SharedAvoidDup, Traps, UrlLength, UserAgent,
};

/// Installs the built-in middlewares, with Scrapy's order numbers where Scrapy has them. Each is switched off or moved by
/// its name in the settings `downloader_middlewares` and `spider_middlewares`.
///
/// | order | downloader side | order | spider side |
/// |---|---|---|---|
/// | | | 20 | [`avoid_dup`](AvoidDup) |
/// | | | 40 | [`incremental`](Incremental) |
/// | 50 | [`offsite`](Offsite) | 50 | [`http_error`](HttpError) |
/// | 60 | [`url_length`](UrlLength) | 55 | [`near_dup`](NearDup) |
/// | 100 | [`robots_txt`](RobotsTxt) | 60 | [`nofollow`](Nofollow) |
/// | 200 | [`avoid_dup`](AvoidDup) | 700 | [`referer`](Referer) |
/// | 300 | [`http_auth`](HttpAuth) | 800 | [`url_length`](UrlLength) |
/// | 350 | [`download_timeout`](DownloadTimeout) | 850 | [`traps`](Traps) |
/// | 400 | [`default_headers`](DefaultHeaders) | 900 | [`depth`](Depth) |
/// | 405 | [`referer`](Referer) | 950 | [`offsite`](Offsite) |
/// | 500 | [`user_agent`](UserAgent) | 1000 | [`meta_copy_detection`](MetaCopyDetection) |
/// | 550 | [`retry`](Retry) | | |
/// | 580 | [`meta_refresh`](MetaRefresh) | | |
/// | 590 | [`http_compression`](HttpCompression) | | |
/// | 600 | [`redirect`](Redirect) | | |
/// | 700 | [`cookies`](Cookies) | | |
/// | 750 | [`http_proxy`](HttpProxy) | | |
/// | 850 | [`downloader_stats`](DownloaderStats) | | |
/// | 870 | [`incremental`](Incremental) | | |
/// | 900 | [`http_cache`](HttpCache) | | |
///
/// The downloader itself is not part of it.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::{CookieJars, Defaults};
///
/// let spider = || spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let usual = CrawlerBuilder::new(spider()).plugin(Defaults);
/// // Jars that outlive the crawl: seeded before it, saved after it.
/// let jars = CookieJars::new();
/// let logged_in = CrawlerBuilder::new(spider()).plugin(Defaults.cookie_jars(jars.clone()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults;

/// [`Defaults`] with given cookie jars, or with a place to look at what AvoidDup learns.
#[derive(Clone, Debug, Default)]
pub struct DefaultsWith {
    jars: CookieJars,
    avoid_dup: SharedAvoidDup,
}

impl DefaultsWith {
    /// Uses these cookie jars.
    pub fn cookie_jars(mut self, jars: CookieJars) -> Self {
        self.jars = jars;
        self
    }

    /// Puts [`AvoidDup`] into this place, if the settings switch it on.
    pub fn avoid_dup(mut self, place: SharedAvoidDup) -> Self {
        self.avoid_dup = place;
        self
    }
}

impl Defaults {
    /// Uses these cookie jars.
    pub fn cookie_jars(self, jars: CookieJars) -> DefaultsWith {
        DefaultsWith::default().cookie_jars(jars)
    }

    /// Puts [`AvoidDup`] into this place, if the settings switch it on: for its rules and totals after the crawl.
    pub fn avoid_dup(self, place: SharedAvoidDup) -> DefaultsWith {
        DefaultsWith::default().avoid_dup(place)
    }
}

impl Plugin for Defaults {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        DefaultsWith::default().install(builder)
    }
}

impl Plugin for DefaultsWith {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        let Self { jars, avoid_dup } = self;
        let [avoid_dup_pages, avoid_dup_events] = [avoid_dup.clone(), avoid_dup.clone()];
        let offsite = SharedOffsite::default();
        let same_offsite = offsite.clone();
        let incremental = SharedIncremental::default();
        let [of_pages, of_events] = [incremental.clone(), incremental.clone()];
        let robots = SharedRobots::default();
        let near_dup = SharedNearDup::default();
        builder
            .persist(KeptRobots::new(robots.clone()))
            .persist(KeptAvoidDup::new(avoid_dup.clone()))
            .persist(KeptJars::new(jars.clone()))
            .persist(KeptScope::new(offsite.clone()))
            .persist(KeptIncremental::new(incremental.clone()))
            .persist(KeptNearDup::new(near_dup.clone()))
            .observer_with(move |settings| of_events.get(settings))
            .observer_with(move |settings| avoid_dup_events.make(settings))
            .middleware_with(Offsite::NAME, Offsite::ORDER, move |settings| offsite.get(settings))
            .middleware_with(UrlLength::NAME, UrlLength::DOWNLOADER_ORDER, UrlLength::from_settings)
            .middleware_with(RobotsTxt::NAME, RobotsTxt::ORDER, move |settings| robots.get(settings))
            .middleware_with(AvoidDup::NAME, AvoidDup::ORDER, move |settings| avoid_dup.make(settings))
            .middleware_with(HttpAuth::NAME, HttpAuth::ORDER, HttpAuth::from_settings)
            .middleware_with(DownloadTimeout::NAME, DownloadTimeout::ORDER, DownloadTimeout::from_settings)
            .middleware_with(DefaultHeaders::NAME, DefaultHeaders::ORDER, DefaultHeaders::from_settings)
            .middleware_with(Referer::NAME, Referer::DOWNLOADER_ORDER, Referer::from_settings)
            .middleware_with(UserAgent::NAME, UserAgent::ORDER, UserAgent::from_settings)
            .middleware_with(Retry::NAME, Retry::ORDER, Retry::from_settings)
            .middleware_with(MetaRefresh::NAME, MetaRefresh::ORDER, MetaRefresh::from_settings)
            .middleware_with(HttpCompression::NAME, HttpCompression::ORDER, HttpCompression::from_settings)
            .middleware_with(Redirect::NAME, Redirect::ORDER, Redirect::from_settings)
            .middleware_with(Cookies::NAME, Cookies::ORDER, move |settings| {
                Cookies::with_jars(settings, jars)
            })
            .middleware_with(HttpProxy::NAME, HttpProxy::ORDER, HttpProxy::from_settings)
            .middleware_with(DownloaderStats::NAME, DownloaderStats::ORDER, DownloaderStats::from_settings)
            .middleware_with(Incremental::NAME, Incremental::ORDER, move |settings| incremental.get(settings))
            .middleware_with(HttpCache::NAME, HttpCache::ORDER, HttpCache::from_settings)
            .spider_middleware_with(AvoidDup::NAME, AvoidDup::SPIDER_ORDER, move |settings| {
                avoid_dup_pages.make(settings)
            })
            .spider_middleware_with(Incremental::NAME, Incremental::SPIDER_ORDER, move |settings| {
                of_pages.get(settings)
            })
            .spider_middleware_with(NearDup::NAME, NearDup::ORDER, move |settings| near_dup.make(settings))
            .spider_middleware_with(HttpError::NAME, HttpError::ORDER, HttpError::from_settings)
            .spider_middleware_with(Nofollow::NAME, Nofollow::ORDER, Nofollow::from_settings)
            .spider_middleware_with(Referer::NAME, Referer::ORDER, Referer::from_settings)
            .spider_middleware_with(UrlLength::NAME, UrlLength::ORDER, UrlLength::from_settings)
            .spider_middleware_with(Traps::NAME, Traps::ORDER, Traps::from_settings)
            .spider_middleware_with(Depth::NAME, Depth::ORDER, Depth::from_settings)
            .spider_middleware_with(
                MetaCopyDetection::NAME,
                MetaCopyDetection::ORDER,
                MetaCopyDetection::from_settings,
            )
            .spider_middleware_with(Offsite::NAME, Offsite::SPIDER_ORDER, move |settings| {
                same_offsite.get(settings)
            })
            .built_in()
    }
}
