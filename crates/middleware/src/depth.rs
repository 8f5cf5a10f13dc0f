//! Depth: how far from a seed the crawl goes.

use std::sync::OnceLock;

use huntsman_crawler::{
    Component, Context, Counter, DropReason, Hooks, OnFollow, Page, Request, Result, Settings,
    SpiderMiddleware, meta, settings,
};

settings! {
    /// Settings of [`Depth`].
    pub struct DepthSettings {
        /// Maximum number of links followed from a seed; 0 is no limit.
        depth_limit: u16 = 0;
        /// Maximum number of links in a row that were followed automatically, without a decision of the spider: a guard
        /// against endless chains. 0 switches it off.
        depth_guard: u16 = 20;
        /// Number by which the priority of a request is lowered per level of depth.
        depth_priority: i32 = 0;
        /// Counts the requests of each depth in the stats.
        depth_stats_verbose: bool = false;
    }
}

/// Drops requests that are deeper than `depth_limit` (reason `depth`), and lowers the priority by depth. Links that
/// were followed automatically are also dropped beyond `depth_guard`, a guard against endless chains (reason
/// `depth_guard`).
///
/// The engine counts the depth: a link is one deeper than its page, a redirect is as deep as its source. A request with
/// meta `depth_reset` starts at 0 again.
#[derive(Debug)]
pub struct Depth {
    limit: u16,
    guard: u16,
    priority: i32,
    verbose: bool,
    max: OnceLock<Counter>,
}

impl Depth {
    /// Creates the component from the settings; never `None`, because it also counts stats.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: DepthSettings = settings.of()?;
        Ok(Some(Self {
            limit: own.depth_limit,
            guard: own.depth_guard,
            priority: own.depth_priority,
            verbose: own.depth_stats_verbose,
            max: OnceLock::new(),
        }))
    }

    fn check(&self, request: &mut Request, cx: &Context) -> OnFollow {
        if request.meta_flag(meta::DEPTH_RESET) {
            request.depth = 0;
        }
        let depth = request.depth;
        let beyond = |reason: &'static str, limit: u16| {
            cx.stats().inc("depth/request_ignored_count");
            DropReason::skipped(reason).detail(format!("depth {depth} is beyond {limit}"))
        };
        if self.limit > 0 && depth > self.limit {
            return OnFollow::Drop(beyond("depth", self.limit));
        }
        if self.guard > 0 && depth > self.guard && request.is_guarded(cx.settings()) {
            return OnFollow::Drop(beyond("depth_guard", self.guard).guard("depth_guard"));
        }
        let lowered = i32::from(depth).saturating_mul(self.priority);
        request.priority = request.priority.saturating_sub(lowered);
        self.max.get_or_init(|| cx.stats().counter("request_depth_max")).max(depth.into());
        if self.verbose {
            cx.stats().inc(&format!("request_depth_count/{depth}"));
        }
        OnFollow::Keep
    }
}

impl Component for Depth {
    const NAME: &'static str = "depth";
    type Settings = DepthSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(900)
    }
}

impl SpiderMiddleware for Depth {
    fn process_start(&self, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.check(request, cx))
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.check(request, cx))
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::FoundBy;

    use super::*;

    fn check(settings: &Settings, depth: u16) -> (OnFollow, Request, Context) {
        let cx = Context::detached(settings.clone());
        let mut request = Request::parse("http://h/").unwrap().priority(5);
        (request.depth, request.found_by) = (depth, FoundBy::Link);
        let decision = Depth::from_settings(settings).unwrap().unwrap().check(&mut request, &cx);
        (decision, request, cx)
    }

    fn reason(decision: OnFollow) -> Option<String> {
        match decision {
            OnFollow::Keep => None,
            OnFollow::Drop(reason) => Some(reason.reason.into_owned()),
        }
    }

    #[test]
    fn the_limit_and_the_guard_have_own_reasons() {
        let mut settings = Settings::default();
        assert_eq!(reason(check(&settings, 20).0), None);
        assert_eq!(reason(check(&settings, 21).0).as_deref(), Some("depth_guard"));
        settings.change(|own: &mut DepthSettings| own.depth_limit = 2);
        assert_eq!(reason(check(&settings, 2).0), None);
        let (decision, _, cx) = check(&settings, 3);
        assert_eq!(reason(decision).as_deref(), Some("depth"));
        assert_eq!(cx.stats().get("depth/request_ignored_count"), 1);
        settings.change(|own: &mut DepthSettings| own.depth_limit = 0);
        settings.change(|own: &mut DepthSettings| own.depth_guard = 0);
        assert_eq!(reason(check(&settings, u16::MAX).0), None);
    }

    #[test]
    fn what_a_spider_names_is_guarded_only_if_it_asks() {
        let mut settings = Settings::default();
        let mut named = Request::parse("http://h/").unwrap();
        let mut check_named = |settings: &Settings, depth: u16| {
            named.depth = depth;
            let cx = Context::detached(settings.clone());
            reason(Depth::from_settings(settings).unwrap().unwrap().check(&mut named, &cx))
        };
        assert_eq!(check_named(&settings, 60), None);
        settings.guard_spider_requests = true;
        assert_eq!(check_named(&settings, 21).as_deref(), Some("depth_guard"));
        settings.guard_spider_requests = false;
        settings.change(|own: &mut DepthSettings| own.depth_limit = 2);
        assert_eq!(check_named(&settings, 3).as_deref(), Some("depth"), "a limit is for all");
    }

    #[test]
    fn depth_lowers_the_priority_and_is_counted() {
        let mut settings = Settings::default();
        settings.change(|own: &mut DepthSettings| own.depth_priority = 2);
        settings.change(|own: &mut DepthSettings| own.depth_stats_verbose = true);
        let (_, request, cx) = check(&settings, 3);
        assert_eq!(request.priority, -1);
        assert_eq!(cx.stats().get("request_depth_max"), 3);
        assert_eq!(cx.stats().get("request_depth_count/3"), 1);
        settings.change(|own: &mut DepthSettings| own.depth_priority = -2);
        assert_eq!(check(&settings, 3).1.priority, 11);
    }

    #[test]
    fn a_reset_starts_at_zero_again() {
        let mut settings = Settings::default();
        settings.change(|own: &mut DepthSettings| own.depth_limit = 1);
        let cx = Context::detached(settings.clone());
        let mut request = Request::parse("http://h/").unwrap().with_meta(meta::DEPTH_RESET, true);
        request.depth = 9;
        let depth = Depth::from_settings(&settings).unwrap().unwrap();
        assert_eq!(reason(depth.check(&mut request, &cx)), None);
        assert_eq!(request.depth, 0);
    }
}
