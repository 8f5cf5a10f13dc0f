//! Components: one value with all its hooks, its settings, its meta key, its state in the job and its stats; taken from outside.

use std::sync::atomic::{AtomicU64, Ordering};

use huntsman::meta::MetaKey;
use huntsman::middleware::{AvoidDup, CookieJars, Cookies};
use huntsman::store::Backend;
use huntsman::{
    Component, Context, Event, Hooks, Job, Observer, OnFollow, Output, Page, Persist, Request, Result,
    Settings, SpiderMiddleware, settings, spider_fn,
};
use huntsman_testkit::ScriptedDownloader;
use serde_json::json;

use super::support::{links, quick, tree};

settings! {
    /// Settings of the quota.
    pub(crate) struct QuotaSettings {
        /// Links that are followed in all runs of the crawl; 0 is no limit.
        quota_links: u64 = 0, test = 5;
        /// A word that the quota keeps to itself.
        quota_password: String = String::new(), secret;
    }
}

/// On requests that do not count.
const FREE: MetaKey<bool> = MetaKey::new("quota_free");

/// Follows so many links and no more, also if the crawl is resumed.
#[derive(Default)]
struct Quota {
    limit: u64,
    used: AtomicU64,
    stops: AtomicU64,
}

impl Quota {
    fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let limit = settings.of::<QuotaSettings>()?.quota_links;
        Ok((limit > 0).then(|| Self { limit, ..Self::default() }))
    }
}

impl Component for Quota {
    const NAME: &'static str = "quota";
    type Settings = QuotaSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(960).observer().persist()
    }
}

impl SpiderMiddleware for Quota {
    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        if request.meta_flag(FREE) || self.used.fetch_add(1, Ordering::Relaxed) < self.limit {
            return Ok(OnFollow::Keep);
        }
        cx.stats().inc("quota/refused");
        Ok(OnFollow::drop("quota"))
    }
}

impl Observer for Quota {
    fn event(&self, event: &Event<'_>) {
        if let Event::EngineStopped = event {
            self.stops.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Persist for Quota {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn load(&self, state: Option<&[u8]>) -> Result<()> {
        let Some(state) = state else { return Ok(()) };
        self.used.store(serde_json::from_slice(state)?, Ordering::Relaxed);
        Ok(())
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(Some(serde_json::to_vec(&self.used.load(Ordering::Relaxed))?))
    }
}

#[tokio::test(start_paused = true)]
async fn a_component_is_one_value_with_all_its_hooks_and_the_report_gives_it_back() {
    let web = ScriptedDownloader::pages(tree("a.test", 40));
    let crawl = quick(links(["http://a.test/0"]), &web).component(Quota::from_settings).set("quota_links", 8);
    let report = crawl.run().await.unwrap();
    assert_eq!(report.pages, 9, "the seed and eight links");
    assert!(report.stat("quota/refused") > 0);
    let quota = report.component::<Quota>().expect("it was configured");
    assert!(quota.used.load(Ordering::Relaxed) > 8);
    assert_eq!(quota.stops.load(Ordering::Relaxed), 1);
    assert!(report.component::<AvoidDup>().is_none(), "the settings leave it out");
}

#[tokio::test(start_paused = true)]
async fn a_meta_key_of_a_component_travels_with_the_request() {
    let web = ScriptedDownloader::pages(tree("a.test", 40));
    let spider = spider_fn(["http://a.test/0"], |page: &Page, out: &mut Output<()>| {
        for url in page.links() {
            out.request(Request::get(url).with_meta(FREE, true));
        }
        Ok(())
    });
    let crawl = quick(spider, &web).component(Quota::from_settings).set("quota_links", 1);
    assert_eq!(crawl.run().await.unwrap().pages, 40);
}

#[tokio::test(start_paused = true)]
async fn the_state_of_a_component_is_in_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let run = |seed: &'static str| {
        let web = ScriptedDownloader::pages(tree("a.test", 90));
        let crawl = quick(links([seed]), &web).component(Quota::from_settings).set("quota_links", 8);
        crawl.job(Job::open(folder.path().join("job"), Backend::Redb).unwrap()).run()
    };
    assert_eq!(run("http://a.test/0").await.unwrap().pages, 9);
    // Eight links do not lead to this page, in whatever order the callbacks run; it has links of its own.
    assert_eq!(run("http://a.test/39").await.unwrap().pages, 10, "of both runs: the quota is used up");
}

#[test]
fn settings_of_a_component_are_known_checked_and_in_profiles_like_others() {
    let crawl =
        || quick(links(["http://a.test/0"]), &ScriptedDownloader::new()).component(Quota::from_settings);
    let table = crawl().settings_table().clone();
    let info = table.get("quota_links").expect("it is declared");
    assert_eq!((info.kind, (info.default)()), ("u64", json!(0)));
    assert_eq!(info.doc(), "Links that are followed in all runs of the crawl; 0 is no limit.");
    assert_eq!(table.shown("quota_password", json!("x")), json!("***"));
    let error = crawl().set("quota_lnks", 3).build().unwrap_err().to_string();
    assert!(error.contains("did you mean quota_links?"), "{error}");
    let error = crawl().set("quota_links", "many").build().unwrap_err().to_string();
    assert!(error.contains("setting quota_links") && error.contains("u64"), "{error}");
    let built = crawl().profile(huntsman::Profile::Test).build().unwrap();
    assert_eq!(built.component::<Quota>().expect("the profile switches it on").limit, 5);
    // Without the component nobody knows the setting.
    let other = quick(links(["http://a.test/0"]), &ScriptedDownloader::new()).set("quota_links", 3);
    assert!(other.build().unwrap_err().to_string().contains("unknown setting quota_links"));
}

#[test]
fn a_component_is_moved_and_switched_off_by_its_name() {
    let crawl = || {
        let crawl = quick(links(["http://a.test/0"]), &ScriptedDownloader::new());
        crawl.component(Quota::from_settings).set("quota_links", 3)
    };
    let order = |crawler: &huntsman::Crawler| {
        crawler.components().1.iter().find(|info| info.name == "quota").unwrap().order
    };
    assert_eq!(order(&crawl().build().unwrap()), Some(960));
    let moved = crawl().set("spider_middlewares", json!({"quota": 10})).build().unwrap();
    assert_eq!(order(&moved), Some(10));
    let off = crawl().set("spider_middlewares", json!({"quota": "off"})).build().unwrap();
    assert_eq!((order(&off), off.component::<Quota>().is_none()), (None, true), "it is not made at all");
}

#[test]
fn two_components_cannot_declare_one_setting() {
    settings! {
        /// Settings of another component.
        struct OtherSettings {
            /// The same name.
            quota_links: u64 = 1;
        }
    }
    let crawl = quick(links(["http://a.test/0"]), &ScriptedDownloader::new()).component(Quota::from_settings);
    let error = crawl.with_settings::<OtherSettings>().build().unwrap_err().to_string();
    assert!(error.contains("quota_links: two components"), "{error}");
}

#[test]
fn a_component_that_is_added_later_takes_the_place_of_the_one_of_its_name() {
    let jars = CookieJars::new();
    let same = jars.clone();
    let crawl = quick(links(["http://a.test/0"]), &ScriptedDownloader::new());
    let crawler = crawl.component(move |settings| Cookies::with_jars(settings, same)).build().unwrap();
    let cookies = crawler.component::<Cookies>().unwrap();
    cookies.jars().with("mine", |_| ());
    assert_eq!(jars.names(), ["mine"]);
    let places = crawler.components().0.iter().filter(|info| info.name == "cookies").count();
    assert_eq!(places, 1);
}
