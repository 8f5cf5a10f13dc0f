//! Reads the entries of the XML feed https://example.org/.

use huntsman::prelude::*;

/// An entry of the feed.
#[derive(Debug, Item, Serialize)]
pub struct TemplateItem {
    #[item(xpath = "title")]
    title: String,
    #[item(xpath = "link")]
    link: Option<String>,
}

/// The spider for the arguments of the command line: `-a start=URL` reads another feed.
pub fn spider(arguments: &Arguments) -> Result<XmlFeed<TemplateItem>> {
    let feed = arguments.get("start").unwrap_or("https://example.org/");
    // A default namespace needs a prefix: `.namespace("a", "http://www.w3.org/2005/Atom")`, then entries are `a:entry`.
    Ok(XmlFeed::items([feed], "item"))
}

#[cfg(test)]
mod tests {
    use huntsman::Settings;

    use super::*;

    #[test]
    fn an_entry_is_an_item() {
        let spider = spider(&Arguments::default()).unwrap();
        let request = spider.start().next().unwrap().unwrap();
        let feed = "<rss><item><title>One</title></item><item><title>Two</title></item></rss>";
        let page = Page::new(request.clone(), Response::html(request.url, feed));
        let mut out = Output::new(Context::detached(Settings::default()));
        spider.parse(&page, &mut out).unwrap();
        let (items, _) = out.into_parts();
        assert_eq!((items.len(), items[1].title.as_str()), (2, "Two"));
    }
}
