//! Reads the pages that the sitemaps of https://example.org/ name.

use huntsman::Sitemaps;
use huntsman::prelude::*;

/// What is read from each page.
#[derive(Debug, Item, Serialize)]
pub struct TemplateItem {
    #[item(css = "title")]
    title: Option<String>,
    #[item(url)]
    url: Url,
}

/// Reads pages; the sitemaps in [`spider`] say which ones it gets.
pub struct Template;

/// The spider for the arguments of the command line: `-a start=URL` reads the sitemaps of another site.
pub fn spider(arguments: &Arguments) -> Result<Sitemaps<Template>> {
    let start = Url::parse(arguments.get("start").unwrap_or("https://example.org/"))?;
    // The address may also be that of a sitemap. robots.txt names those of its site.
    Ok(Sitemaps::new(Template).sitemap_urls([start.join("/robots.txt")?]))
}

impl Spider for Template {
    type Item = TemplateItem;

    fn start(&self) -> Start {
        Start::none()
    }

    fn parse(&self, page: &Page, out: &mut Output<TemplateItem>) -> Result<()> {
        out.item(page.item()?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use huntsman::Settings;

    use super::*;

    #[test]
    fn a_page_is_an_item() {
        let url = Url::parse("https://example.org/1").unwrap();
        let html = "<title>One</title>";
        let page = Page::new(Request::get(url.clone()), Response::html(url, html));
        let mut out = Output::new(Context::detached(Settings::default()));
        let spider = spider(&Arguments::default()).unwrap();
        spider.parse(&page, &mut out).unwrap();
        assert_eq!(out.into_parts().0[0].title.as_deref(), Some("One"));
    }
}
