//! The default set of components: every built-in component at its place in the chains.

use huntsman_crawler::{
    ControlSettings, CrawlerBuilder, Output, Page, Plugin, SettingsTable, Spider, spider_fn,
};

use crate::sinks::FeedSettings;
use crate::{AuditSettings, ItemCheckSettings, LinkSettings, MediaSettings};

/// Installs the built-in middlewares, with Scrapy's order numbers where Scrapy has them. Each can be switched off or
/// moved by its name in the settings `downloader_middlewares` and `spider_middlewares`.
///
/// The page `docs/guide/settings-reference.md` of the guide, which `huntsman settings --markdown` prints, lists the
/// components in their order, and their settings. The downloader itself is not included.
///
/// A component that is added later takes the place of the built-in one with its name.
///
/// ```
/// use huntsman_crawler::{ControlSettings, CrawlerBuilder, Output, Page, Result, spider_fn};
/// use huntsman_middleware::Defaults;
///
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let builder = CrawlerBuilder::new(spider).plugin(Defaults);
/// let (downloader, spider) = builder.components();
/// assert_eq!((downloader[0].name, downloader[0].order), ("offsite", Some(50)));
/// assert!(spider.iter().any(|info| info.name == "depth"));
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
        let builder = crate::install_built_in(builder);
        #[cfg(feature = "render")]
        let builder = builder.component(crate::Render::from_settings);
        builder
            .with_settings::<AuditSettings>()
            .with_settings::<FeedSettings>()
            .with_settings::<ItemCheckSettings>()
            .with_settings::<LinkSettings>()
            .with_settings::<MediaSettings>()
            .with_settings::<ControlSettings>()
            .mark_built_in()
    }
}

/// Exports what is named in the list, and installs the first of each line as a component, in the order of the list.
macro_rules! built_in {
    ($($file:ident::{$component:ident $(, $other:ident)*};)+) => {
        $( pub use $file::{$component $(, $other)*}; )+

        fn install_built_in<S: huntsman_crawler::Spider>(
            builder: huntsman_crawler::CrawlerBuilder<S>,
        ) -> huntsman_crawler::CrawlerBuilder<S> {
            builder $(.component($component::from_settings))+
        }
    };
}

pub(crate) use built_in;
