//! Components: parts of a crawl that are created once, and registered once with all their hooks.

use std::any::Any;
use std::sync::Arc;

use crate::at_end::{AtEnd, DynAtEnd};
use crate::event::Observer;
use crate::hand_over::HandOver;
use crate::job::Persist;
use crate::middleware::{DownloaderMiddleware, DynDownloaderMiddleware, SpiderMiddleware};
use crate::settings::SettingsGroup;

/// A part of a crawl that is created once from the settings, and attached with all its hooks together.
///
/// [`CrawlerBuilder::component`](crate::CrawlerBuilder::component) registers it. All hooks are called on the same
/// value: those of a downloader middleware, of a spider middleware, of an observer of events, and of a part of the
/// job's state. The crawl knows its settings by the names that it declares with [`settings!`](crate::settings!).
/// After the crawl [`CrawlReport::component`](crate::CrawlReport::component) returns the value.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use huntsman_crawler::meta::MetaKey;
/// use huntsman_crawler::{
///     Component, Context, CrawlerBuilder, Hooks, OnFollow, Output, Page, Persist, Request, Result, Settings, SpiderMiddleware,
///     settings, spider_fn,
/// };
///
/// settings! {
///     /// Settings of the quota.
///     pub struct QuotaSettings {
///         /// Links that are followed in all runs of the crawl; 0 is no limit.
///         quota_links: u64 = 0, test = 100;
///     }
/// }
///
/// /// On requests that do not count.
/// const FREE: MetaKey<bool> = MetaKey::new("quota_free");
///
/// /// Follows so many links and no more, also if the crawl is resumed.
/// struct Quota {
///     limit: u64,
///     used: AtomicU64,
/// }
///
/// impl Quota {
///     fn from_settings(settings: &Settings) -> Result<Option<Self>> {
///         let limit = settings.of::<QuotaSettings>()?.quota_links;
///         Ok((limit > 0).then(|| Self { limit, used: AtomicU64::new(0) }))
///     }
/// }
///
/// impl Component for Quota {
///     const NAME: &'static str = "quota";
///     type Settings = QuotaSettings;
///
///     fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
///         hooks.spider(960).persist()
///     }
/// }
///
/// impl SpiderMiddleware for Quota {
///     fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
///         if request.meta_flag(FREE) || self.used.fetch_add(1, Ordering::Relaxed) < self.limit {
///             return Ok(OnFollow::Keep);
///         }
///         cx.stats().inc("quota/refused");
///         Ok(OnFollow::drop("quota"))
///     }
/// }
///
/// impl Persist for Quota {
///     fn name(&self) -> String {
///         Self::NAME.to_owned()
///     }
///
///     fn load(&self, state: Option<&[u8]>) -> Result<()> {
///         let Some(state) = state else { return Ok(()) };
///         self.used.store(serde_json::from_slice(state)?, Ordering::Relaxed);
///         Ok(())
///     }
///
///     fn save(&self) -> Result<Option<Vec<u8>>> {
///         Ok(Some(serde_json::to_vec(&self.used.load(Ordering::Relaxed))?))
///     }
/// }
///
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let crawler = CrawlerBuilder::new(spider).component(Quota::from_settings).set("quota_links", 1_000);
/// assert!(crawler.settings_table().get("quota_links").is_some());
/// ```
pub trait Component: Send + Sync + Sized + 'static {
    /// The name of the component in settings, stats and records; unique in a crawl.
    const NAME: &'static str;

    /// The settings that it reads, as declared with [`settings!`](crate::settings!); `()` if there are none.
    type Settings: SettingsGroup;

    /// Names the hooks that the component implements, and their places in the chains.
    fn hooks(hooks: Hooks<Self>) -> Hooks<Self>;

    /// Returns what the component needs from the scan of each page; nothing by default.
    fn page_needs(&self) -> PageNeeds {
        PageNeeds::default()
    }
}

/// What a component needs from the scan of each page, besides links, title and meta data. The scan collects
/// everything that at least one component needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageNeeds {
    /// The text of the page.
    pub text: bool,
    /// The blocks that the text consists of, with their positions.
    pub blocks: bool,
    /// What an audit judges: resources, headings, images, fields, ids, names of links.
    pub audit: bool,
}

impl PageNeeds {
    /// The needs of both together.
    pub fn or(self, other: Self) -> Self {
        Self {
            text: self.text || other.text,
            blocks: self.blocks || other.blocks,
            audit: self.audit || other.audit,
        }
    }
}

/// Makes a hook from a component.
type Hook<C, T> = fn(Arc<C>) -> T;

/// A hook and its place in the chain.
type OrderedHook<C, T> = (i32, Hook<C, Arc<T>>);

/// The hooks of a component.
#[derive(Debug)]
pub struct Hooks<C> {
    pub(crate) downloader: Option<OrderedHook<C, dyn DynDownloaderMiddleware>>,
    pub(crate) spider: Option<OrderedHook<C, dyn SpiderMiddleware>>,
    pub(crate) observer: Option<Hook<C, Arc<dyn Observer>>>,
    pub(crate) persist: Option<Hook<C, Box<dyn Persist>>>,
    pub(crate) at_end: Option<Hook<C, Arc<dyn DynAtEnd>>>,
    pub(crate) hand_over: Option<Hook<C, Arc<dyn HandOver>>>,
}

impl<C> Default for Hooks<C> {
    fn default() -> Self {
        Self { downloader: None, spider: None, observer: None, persist: None, at_end: None, hand_over: None }
    }
}

impl<C: Component> Hooks<C> {
    /// Registers the component as a downloader middleware at this place of the chain, by Scrapy's numbers.
    pub fn downloader(mut self, order: i32) -> Self
    where
        C: DownloaderMiddleware,
    {
        self.downloader = Some((order, |component| component));
        self
    }

    /// Registers the component as a spider middleware at this place of the chain.
    pub fn spider(mut self, order: i32) -> Self
    where
        C: SpiderMiddleware,
    {
        self.spider = Some((order, |component| component));
        self
    }

    /// Registers the component as an observer, which receives events.
    pub fn observer(mut self) -> Self
    where
        C: Observer,
    {
        self.observer = Some(|component| component);
        self
    }

    /// Registers the component's state, which is kept in the job if there is one.
    pub fn persist(mut self) -> Self
    where
        C: Persist,
    {
        self.persist = Some(|component| Box::new(component));
        self
    }

    /// Registers the component to act when the crawl has ended.
    pub fn at_end(mut self) -> Self
    where
        C: AtEnd,
    {
        self.at_end = Some(|component| component);
        self
    }

    /// Registers what the component learns about hosts, which goes with them to other processes if the queue is shared.
    pub fn hand_over(mut self) -> Self
    where
        C: HandOver,
    {
        self.hand_over = Some(|component| component);
        self
    }
}

/// The components of a crawl, by type. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Components(Arc<Vec<Arc<dyn Any + Send + Sync>>>);

impl Components {
    pub(crate) fn new(components: Vec<Arc<dyn Any + Send + Sync>>) -> Self {
        Self(Arc::new(components))
    }

    pub(crate) fn get<C: Component>(&self) -> Option<Arc<C>> {
        self.0.iter().find_map(|component| Arc::clone(component).downcast().ok())
    }
}

impl std::fmt::Debug for Components {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Components").field(&self.0.len()).finish()
    }
}
