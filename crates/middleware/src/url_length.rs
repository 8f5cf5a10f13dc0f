//! UrlLength: refuses URLs that are too long, carry user info, or whose path looks like a trap.

use huntsman_crawler::{
    Component, Context, DownloaderMiddleware, DropReason, Hooks, OnFollow, OnRequest, Page, Request, Result,
    Settings, SpiderMiddleware, settings,
};
use huntsman_text::urlparts::guard;
use url::Url;

settings! {
    /// Settings of [`UrlLength`].
    pub struct UrlLengthSettings {
        /// Maximum length of a URL in bytes; 0 is no limit.
        urllength_limit: usize = 2_048;
        /// Maximum number of path segments in a URL; 0 switches the guard off.
        path_max_segments: usize = 20;
        /// Maximum number of times that the same segment may occur in a path; 0 switches the guard off.
        path_max_repeats: usize = 3;
    }
}

/// Refuses URLs by their shape alone: longer than `urllength_limit` bytes (`url_length`), or with user info
/// (`userinfo`).
///
/// Links that were followed automatically are also subject to two guards against traps: more than `path_max_segments`
/// segments (`path_segments`); one segment more than `path_max_repeats` times anywhere, or a sequence of segments that
/// often in a row (`path_repeats`).
///
/// It judges links and seeds, and as a downloader middleware redirect targets and pushed requests.
#[derive(Clone, Debug)]
pub struct UrlLength {
    limit: usize,
    segments: usize,
    repeats: usize,
}

impl UrlLength {
    /// Creates the component from the settings; never `None`, because user info is refused in any case.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: UrlLengthSettings = settings.of()?;
        Ok(Some(Self {
            limit: own.urllength_limit,
            segments: own.path_max_segments,
            repeats: own.path_max_repeats,
        }))
    }

    /// Why a URL is refused; `None` if it is not.
    pub fn refusal(&self, url: &Url) -> Option<DropReason> {
        let bytes = url.as_str().len();
        if self.limit > 0 && bytes > self.limit {
            return Some(
                DropReason::skipped("url_length")
                    .detail(format!("{bytes} bytes are more than {}", self.limit)),
            );
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Some(DropReason::skipped("userinfo"));
        }
        None
    }

    /// Why a URL looks like a trap; `None` if it does not.
    fn trap(&self, url: &Url) -> Option<DropReason> {
        let segments = guard::segment_count(url.path());
        if self.segments > 0 && segments > self.segments {
            let detail = format!("{segments} segments are more than {}", self.segments);
            return Some(DropReason::skipped("path_segments").detail(detail).guard("path_max_segments"));
        }
        if self.repeats > 0 && segments >= self.repeats {
            let same = guard::most_repeated_segment(url.path());
            // The search is quadratic, so it is bounded here even if the guard on segments is off.
            const SEARCHED: usize = 200;
            let row = if segments <= SEARCHED { guard::repeated_sequence(url.path()) } else { None };
            // A segment may occur `repeats` times; a longer sequence that is repeated this often in a row is already a
            // loop.
            let looped = row.is_some_and(|row| row.segments > 1 && row.times >= self.repeats.max(2));
            if same > self.repeats || looped {
                let times = row.map_or(same, |row| same.max(row.times));
                let detail = format!("a part of the path is repeated {times} times");
                return Some(DropReason::skipped("path_repeats").detail(detail).guard("path_max_repeats"));
            }
        }
        None
    }

    fn check(&self, request: &Request, cx: &Context) -> OnFollow {
        let guarded = || self.trap(&request.url).filter(|_| request.is_guarded(cx.settings()));
        match self.refusal(&request.url).or_else(guarded) {
            None => OnFollow::Keep,
            Some(reason) => {
                if reason.reason == "url_length" {
                    cx.stats().inc("urllength/request_ignored_count");
                } else {
                    cx.stats().inc(&format!("url_guard/{}", reason.reason));
                }
                OnFollow::Drop(reason)
            }
        }
    }
}

impl Component for UrlLength {
    const NAME: &'static str = "url_length";
    type Settings = UrlLengthSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        // In the downloader chain this is next to Offsite, before any download for the request.
        hooks.downloader(60).spider(800)
    }
}

impl SpiderMiddleware for UrlLength {
    fn process_start(&self, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.check(request, cx))
    }

    fn process_follow(&self, _: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        Ok(self.check(request, cx))
    }
}

impl DownloaderMiddleware for UrlLength {
    async fn process_request(&self, request: &mut Request, cx: &Context) -> Result<OnRequest> {
        Ok(match self.check(request, cx) {
            OnFollow::Keep => OnRequest::Continue,
            OnFollow::Drop(reason) => OnRequest::Drop(reason),
        })
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::FoundBy;

    use super::*;

    fn refused(settings: &Settings, url: &str) -> Option<String> {
        let middleware = UrlLength::from_settings(settings).unwrap().unwrap();
        let cx = Context::detached(settings.clone());
        let mut link = Request::parse(url).unwrap();
        link.found_by = FoundBy::Link;
        match middleware.check(&link, &cx) {
            OnFollow::Keep => None,
            OnFollow::Drop(reason) => Some(reason.reason.into_owned()),
        }
    }

    #[test]
    fn the_shape_of_a_path_is_the_business_of_a_spider_that_names_it() {
        let mut settings = Settings::default();
        let middleware = UrlLength::from_settings(&settings).unwrap().unwrap();
        let many = format!("http://h/{}", "a/".repeat(30));
        let judge = |settings: &Settings, url: &str| {
            middleware.check(&Request::parse(url).unwrap(), &Context::detached(settings.clone()))
        };
        assert!(matches!(judge(&settings, &many), OnFollow::Keep));
        assert!(matches!(judge(&settings, "http://user@h/"), OnFollow::Drop(_)));
        settings.guard_spider_requests = true;
        assert!(matches!(judge(&settings, &many), OnFollow::Drop(_)));
    }

    #[test]
    fn each_shape_has_its_own_reason() {
        let settings = Settings::default();
        let long = format!("http://h/{}", "x".repeat(2_048 - "http://h/".len()));
        let many = format!("http://h/{}", (0..21).map(|n| format!("s{n}/")).collect::<String>());
        for (url, reason) in [
            ("http://h/a/b/c", None),
            (long.as_str(), None),
            (&format!("{long}x"), Some("url_length")),
            ("http://user@h/", Some("userinfo")),
            ("http://:pw@h/", Some("userinfo")),
            (&many, Some("path_segments")),
            ("http://h/a/a/a", None),
            ("http://h/a/x/a/y/a/z/a", Some("path_repeats")),
            ("http://h/a/b/a/b/x", None),
            ("http://h/a/b/a/b/a/b/", Some("path_repeats")),
        ] {
            assert_eq!(refused(&settings, url).as_deref(), reason, "{url}");
        }
    }

    #[test]
    fn zero_switches_a_guard_off() {
        let mut settings = Settings::default();
        settings.change(|own: &mut UrlLengthSettings| {
            (own.urllength_limit, own.path_max_segments, own.path_max_repeats) = (0, 0, 0);
        });
        assert_eq!(refused(&settings, &format!("http://h/{}", "a/".repeat(3_000))), None);
    }
}
