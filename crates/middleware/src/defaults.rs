//! The default set of components: every built-in component at its place in the chains.

use huntsman_crawler::{CrawlerBuilder, Output, Page, Plugin, SettingsTable, Spider, spider_fn};

use crate::sinks::FeedSettings;
use crate::{
    AvoidDup, Cookies, DefaultHeaders, Depth, DownloadTimeout, DownloaderStats, HttpAuth, HttpCache,
    HttpCompression, HttpError, HttpProxy, Incremental, MetaCopyDetection, MetaRefresh, NearDup, Nofollow,
    Offsite, Redirect, Referer, Retry, RobotsTxt, Traps, UrlLength, UserAgent,
};

/// Installs the built-in middlewares, with Scrapy's order numbers where Scrapy has them. Each can be switched off or
/// moved by its name in the settings `downloader_middlewares` and `spider_middlewares`.
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
/// The downloader itself is not included.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::{CookieJars, Cookies, Defaults};
///
/// let spider = || spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let usual = CrawlerBuilder::new(spider()).plugin(Defaults);
/// // A component that is added later takes the place of the one of its name: jars that outlive the crawl, seeded before it.
/// let jars = CookieJars::new();
/// let same = jars.clone();
/// let logged_in =
///     CrawlerBuilder::new(spider()).plugin(Defaults).component(move |settings| Cookies::with_jars(settings, same));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Defaults;

impl Defaults {
    /// The settings that a crawl with these components accepts: those of the engine and those of the components.
    pub fn settings_table() -> SettingsTable {
        let spider = spider_fn([""; 0], |_: &Page, _: &mut Output<()>| Ok(()));
        CrawlerBuilder::new(spider).plugin(Self).settings_table().clone()
    }
}

impl Plugin for Defaults {
    fn install<S: Spider>(self, builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
        builder
            .component(Offsite::from_settings)
            .component(UrlLength::from_settings)
            .component(RobotsTxt::from_settings)
            .component(AvoidDup::from_settings)
            .component(HttpAuth::from_settings)
            .component(DownloadTimeout::from_settings)
            .component(DefaultHeaders::from_settings)
            .component(Referer::from_settings)
            .component(UserAgent::from_settings)
            .component(Retry::from_settings)
            .component(MetaRefresh::from_settings)
            .component(HttpCompression::from_settings)
            .component(Redirect::from_settings)
            .component(Cookies::from_settings)
            .component(HttpProxy::from_settings)
            .component(DownloaderStats::from_settings)
            .component(Incremental::from_settings)
            .component(HttpCache::from_settings)
            .component(HttpError::from_settings)
            .component(NearDup::from_settings)
            .component(Nofollow::from_settings)
            .component(Traps::from_settings)
            .component(Depth::from_settings)
            .component(MetaCopyDetection::from_settings)
            .with_settings::<FeedSettings>()
            .mark_built_in()
    }
}
