//! Reads every page of https://example.org/ that links lead to.

use huntsman::prelude::*;

/// What is read from each page.
#[derive(Debug, Item, Serialize)]
pub struct TemplateItem {
    #[item(css = "title")]
    title: Option<String>,
    #[item(css = "h1")]
    heading: Option<String>,
    #[item(url)]
    url: Url,
}

/// Follows the links of its host.
pub struct Template {
    start: Url,
}

/// The spider for the arguments of the command line: `-a start=URL` begins elsewhere.
pub fn spider(arguments: &Arguments) -> Result<Template> {
    let start = Url::parse(arguments.get("start").unwrap_or("https://example.org/"))?;
    Ok(Template { start })
}

impl Spider for Template {
    type Item = TemplateItem;

    fn start(&self) -> Start {
        Start::urls([self.start.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<TemplateItem>) -> Result<()> {
        out.item(page.item()?);
        out.follow_links(page);
        Ok(())
    }

    fn allowed_domains(&self) -> Vec<String> {
        vec![self.start.host_str().unwrap_or_default().to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use huntsman::Settings;

    use super::*;

    #[test]
    fn a_page_is_an_item_and_its_links_are_followed() {
        let url = Url::parse("https://example.org/").unwrap();
        let html = "<title>Home</title><h1>Welcome</h1><a href=/about>About</a>";
        let page = Page::new(Request::get(url.clone()), Response::html(url, html));
        let mut out = Output::new(Context::detached(Settings::default()));
        let spider = spider(&Arguments::default()).unwrap();
        spider.parse(&page, &mut out).unwrap();
        let (items, requests) = out.into_parts();
        assert_eq!(items[0].heading.as_deref(), Some("Welcome"));
        assert_eq!(requests[0].url.path(), "/about");
    }
}
