//! Pages in their two forms: as their server sent them, and as scripts made them.

use huntsman_crawler::meta::MetaKey;
use huntsman_crawler::{Page, Settings};
use serde_json::Value;

/// The page is not rendered; the component that renders pages reads it.
pub(crate) const DONT_RENDER: MetaKey<bool> = MetaKey::new("dont_render");

/// Whether the crawl renders pages by itself.
pub(crate) fn is_on(settings: &Settings) -> bool {
    let which = settings.get("render");
    matches!(which.as_ref().and_then(Value::as_str), Some("all" | "auto"))
}

/// Whether the page is the tree that scripts made.
pub(crate) fn is_rendered(page: &Page) -> bool {
    page.response().has_flag("rendered")
}

#[cfg(feature = "render")]
mod source {
    use huntsman_crawler::{Page, Response};
    use huntsman_html::ScanOptions;
    use huntsman_middleware::{Rendered, RenderedPage};

    /// A rendered page as its server sent it, and what else is known of its rendering; `None` if it was not rendered.
    pub(crate) fn source_of(page: &Page) -> Option<(Page, &Rendered)> {
        let rendered = page.rendered()?;
        let (request, response) = (page.request(), page.response());
        let mut source = Response::new(request.url.clone(), response.status, rendered.static_body.clone());
        source.headers = response.headers.clone();
        match &rendered.content_type {
            Some(content_type) => {
                source.headers.insert(http::header::CONTENT_TYPE, content_type.clone());
            }
            None => {
                source.headers.remove(http::header::CONTENT_TYPE);
            }
        }
        let options = ScanOptions { text: true, resources: true, audit: true, ..ScanOptions::links_only() };
        Some((Page::with_options(request.clone(), source, options), rendered))
    }
}

#[cfg(feature = "render")]
pub(crate) use source::source_of;
