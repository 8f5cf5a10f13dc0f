//! Pages whose text is at another URL.

use huntsman_crawler::Page;
use huntsman_detect::copyvio::Text;
use url::Url;

/// Label of a request for the full text of another page.
pub(crate) const FULL_TEXT: &str = "full_text";

/// The URL of the text that a page shows without containing it, in the two cases that the reference handles: the feed
/// entry of a Blogger blog that shows posts by script, and the file behind an archive's viewer of PDF files. `is_empty`
/// says that the page itself has no text.
pub(crate) fn full_text_url(page: &Page, is_empty: bool) -> Option<Url> {
    let url = page.url();
    let host = url.host_str()?;
    if host.ends_with(".blogspot.com") && is_empty {
        let (_, rest) = page.body_text().split_once("'postId': '")?;
        let (id, _) = rest.split_once('\'')?;
        let is_id = !id.is_empty() && id.len() <= 32 && id.bytes().all(|byte| byte.is_ascii_digit());
        let path = format!("/feeds/posts/default/{id}?alt=json&v=2&dynamicviews=1&rewriteforssl=true");
        return if is_id { url.join(&path).ok() } else { None };
    }
    if host == "web.archive.org" && url.path().ends_with(".pdf") && page.kind().is_markup() {
        let viewer = page.select("#playback[src]").ok()?.into_iter().next()?;
        return url.join(viewer.attr("src")?).ok();
    }
    None
}

/// The text of a feed entry that [`full_text_url`] names; `None` if the page is no such entry.
pub(crate) fn feed_text(page: &Page) -> Option<Text> {
    let is_feed = page.url().path().starts_with("/feeds/posts/default/")
        && page.url().host_str().is_some_and(|host| host.ends_with(".blogspot.com"));
    if !is_feed {
        return None;
    }
    let feed: serde_json::Value = page.json().ok()?;
    let html = feed["entry"]["content"]["$t"].as_str()?;
    let text = Text::html(html.as_bytes(), Some("utf-8"));
    (!text.is_empty()).then_some(text)
}
