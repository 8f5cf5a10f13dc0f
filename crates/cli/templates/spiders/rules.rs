//! Follows the links of https://example.org/ by rules, and reads the pages that one of them names.

use huntsman::prelude::*;

/// What is read from each page that a rule with a callback leads to.
#[derive(Debug, Item, Serialize)]
pub struct TemplateItem {
    #[item(css = "h1")]
    heading: String,
    #[item(url)]
    url: Url,
}

/// Reads pages; the rules in [`spider`] say which ones it gets.
pub struct Template {
    start: Url,
}

/// The spider for the arguments of the command line: `-a start=URL` begins elsewhere.
pub fn spider(arguments: &Arguments) -> Result<Rules<Template>> {
    let start = Url::parse(arguments.get("start").unwrap_or("https://example.org/"))?;
    Ok(Rules::new(Template { start })
        // The first rule that takes a link counts. Without a callback, the links of its pages are followed.
        .rule(LinkExtractor::new().allow("/category/")?)
        .rule(Rule::new(LinkExtractor::new().allow("/item/")?).callback("item")))
}

impl Spider for Template {
    type Item = TemplateItem;

    fn start(&self) -> Start {
        Start::urls([self.start.clone()])
    }

    fn callbacks(&self) -> &[&str] {
        &["item"]
    }

    fn parse(&self, page: &Page, out: &mut Output<TemplateItem>) -> Result<()> {
        if page.callback() == "item" {
            out.item(page.item()?);
        }
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
    fn the_rules_lead_to_the_pages_of_items() {
        let url = Url::parse("https://example.org/").unwrap();
        let html = "<a href=/category/a>A</a> <a href=/item/1>1</a> <a href=/about>About</a>";
        let page = Page::new(Request::get(url.clone()), Response::html(url, html));
        let mut out = Output::new(Context::detached(Settings::default()));
        let spider = spider(&Arguments::default()).unwrap();
        spider.parse(&page, &mut out).unwrap();
        let (items, requests) = out.into_parts();
        let paths: Vec<&str> = requests.iter().map(|request| request.url.path()).collect();
        assert_eq!((items.len(), paths), (0, vec!["/category/a", "/item/1"]));
    }
}
