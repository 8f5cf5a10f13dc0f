//! Nofollow: drops links that a page asks robots not to follow.

use http::{HeaderMap, header};
use huntsman_crawler::robots::product_token;
use huntsman_crawler::{
    Component, Context, Hooks, OnFollow, OnPage, Page, Request, Result, Settings, SpiderMiddleware, settings,
};

use crate::robots_txt::RobotsSettings;

settings! {
    /// Settings of [`Nofollow`].
    pub struct NofollowSettings {
        /// Does not follow links that meta robots, X-Robots-Tag or rel marks as nofollow.
        obey_nofollow: bool = true, audit = false, test = false;
    }
}

/// Drops links, with reason `nofollow`, that a page asks robots not to follow: by `X-Robots-Tag`, by `meta name=robots`
/// (or the name of our product token), or by the link's own `rel=nofollow`.
#[derive(Debug)]
pub struct Nofollow {
    agent: Option<String>,
    default_agent: String,
}

/// The robots directives of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Do not list the page.
    pub noindex: bool,
    /// Do not follow its links.
    pub nofollow: bool,
    /// Do not keep a copy of it.
    pub noarchive: bool,
}

impl Directives {
    /// The directives of a page for a crawler, named by its product token or its whole User-Agent.
    ///
    /// Directives for all robots and those for this one add up.
    pub fn of(page: &Page, user_agent: &str) -> Self {
        let token = product_token(user_agent);
        let mut found = Self::of_headers(&page.response().headers, user_agent);
        for meta in page.metas() {
            if let (Some(name), Some(content)) = (meta.name, meta.content)
                && (name.trim().eq_ignore_ascii_case("robots") || is_ours(name, token))
            {
                content.split([',', ' ', '\t', '\n']).for_each(|word| found.add(word));
            }
        }
        found
    }

    /// The directives of a response in its headers (`X-Robots-Tag`) alone.
    pub fn of_headers(headers: &HeaderMap, user_agent: &str) -> Self {
        let token = product_token(user_agent);
        let mut found = Self::default();
        for value in headers.get_all("x-robots-tag") {
            found.read_header(&String::from_utf8_lossy(value.as_bytes()), token);
        }
        found
    }

    /// Reads a header such as `noindex, otherbot: nofollow`: a name with a colon says which robot the following
    /// directives are for.
    fn read_header(&mut self, value: &str, token: &str) {
        // Directives with values, which must not be mistaken for names of robots.
        const VALUED: [&str; 4] =
            ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
        let mut is_for_us = true;
        for part in value.split(',') {
            let mut word = part.trim();
            if let Some((name, rest)) = word.split_once(':')
                && !VALUED.iter().any(|valued| name.trim().eq_ignore_ascii_case(valued))
                // This skips the rest of a date: `unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT`.
                && !name.contains(char::is_whitespace)
            {
                is_for_us = name.trim() == "*" || is_ours(name, token);
                word = rest.trim();
            }
            if is_for_us {
                self.add(word);
            }
        }
    }

    fn add(&mut self, word: &str) {
        let is = |name: &str| word.trim().eq_ignore_ascii_case(name);
        self.noindex |= is("noindex") || is("none");
        self.nofollow |= is("nofollow") || is("none");
        self.noarchive |= is("noarchive");
    }
}

fn is_ours(name: &str, token: &str) -> bool {
    !token.is_empty() && name.trim().eq_ignore_ascii_case(token)
}

impl Nofollow {
    /// Creates the component from the settings; `None` if `obey_nofollow` is off.
    ///
    /// # Errors
    /// None.
    pub fn from_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: NofollowSettings = settings.of()?;
        let robots: RobotsSettings = settings.of_or_default();
        Ok(own.obey_nofollow.then(|| Self {
            agent: robots.robotstxt_user_agent.clone(),
            default_agent: settings.user_agent.clone(),
        }))
    }

    fn directives(&self, page: &Page) -> Directives {
        let own = || page.request().headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let agent = self.agent.as_deref().or_else(own).unwrap_or(&self.default_agent);
        Directives::of(page, agent)
    }
}

impl Component for Nofollow {
    const NAME: &'static str = "nofollow";
    type Settings = NofollowSettings;

    fn hooks(hooks: Hooks<Self>) -> Hooks<Self> {
        hooks.spider(60)
    }
}

impl SpiderMiddleware for Nofollow {
    fn process_page(&self, page: &mut Page, _: &Context) -> Result<OnPage> {
        let directives = self.directives(page);
        page.extensions.insert(directives);
        Ok(OnPage::Parse)
    }

    fn process_follow(&self, page: &Page, request: &mut Request, cx: &Context) -> Result<OnFollow> {
        let by_page = page.extensions.get::<Directives>().is_some_and(|directives| directives.nofollow);
        if !by_page && !request.nofollow {
            return Ok(OnFollow::Keep);
        }
        cx.stats().inc("nofollow/filtered");
        Ok(OnFollow::drop("nofollow"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use huntsman_crawler::Response;
    use url::Url;

    fn page(header: Option<&str>, html: &str) -> Page {
        let url = Url::parse("http://h/").unwrap();
        let mut response = Response::html(url.clone(), html.to_owned());
        if let Some(value) = header {
            response.headers.insert("x-robots-tag", value.parse().unwrap());
        }
        Page::new(Request::get(url), response)
    }

    #[test]
    fn headers_speak_to_all_or_to_one() {
        for (value, noindex, nofollow) in [
            ("nofollow", false, true),
            ("NOINDEX, NoFollow", true, true),
            ("none", true, true),
            ("all", false, false),
            ("huntsman: nofollow", false, true),
            ("otherbot: nofollow", false, false),
            ("otherbot: noindex, nofollow", false, false),
            ("otherbot: noindex, Huntsman: nofollow", false, true),
            ("*: nofollow", false, true),
            ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", false, true),
            ("max-snippet: 5, noindex", true, false),
            ("nofollowing", false, false),
            ("noarchive, nofollow", false, true),
        ] {
            let found = Directives::of(&page(Some(value), ""), "huntsman/0.1 (+x)");
            assert_eq!((found.noindex, found.nofollow), (noindex, nofollow), "{value}");
            assert_eq!(found.noarchive, value.contains("noarchive"), "{value}");
        }
    }

    #[test]
    fn metas_speak_to_all_or_to_one() {
        for (html, nofollow) in [
            ("<meta name=robots content=nofollow>", true),
            ("<META NAME=ROBOTS CONTENT='index, NONE'>", true),
            ("<meta name=Huntsman content=nofollow>", true),
            ("<meta name=googlebot content=nofollow>", false),
            ("<meta name=robots content='index, follow'>", false),
            ("<meta name=description content=nofollow>", false),
            ("<!-- <meta name=robots content=nofollow> -->", false),
        ] {
            assert_eq!(Directives::of(&page(None, html), "huntsman").nofollow, nofollow, "{html}");
        }
    }

    fn follow(settings: &Settings, mut page: Page, nofollow: bool) -> Option<bool> {
        let middleware = Nofollow::from_settings(settings).unwrap()?;
        let cx = Context::detached(settings.clone());
        middleware.process_page(&mut page, &cx).unwrap();
        let mut request = Request::parse("http://h/a").unwrap();
        request.nofollow = nofollow;
        Some(matches!(middleware.process_follow(&page, &mut request, &cx).unwrap(), OnFollow::Keep))
    }

    #[test]
    fn links_of_such_pages_and_such_links_are_dropped() {
        let settings = Settings::default();
        assert_eq!(follow(&settings, page(None, ""), false), Some(true));
        assert_eq!(follow(&settings, page(None, ""), true), Some(false));
        assert_eq!(follow(&settings, page(Some("none"), ""), false), Some(false));
        let mut named = Settings::default();
        named.change(|own: &mut RobotsSettings| own.robotstxt_user_agent = Some("special".to_owned()));
        assert_eq!(follow(&named, page(Some("special: nofollow"), ""), false), Some(false));
        let mut off = Settings::default();
        off.change(|own: &mut NofollowSettings| own.obey_nofollow = false);
        assert_eq!(follow(&off, page(Some("none"), ""), true), None);
    }
}
