//! Reads the JSON of https://example.org/, page by page.

use huntsman::prelude::*;

/// What is read from each element of the list.
#[derive(Debug, Item, Serialize)]
pub struct TemplateItem {
    #[item(json = "$.id")]
    id: u64,
    #[item(json = "$.name")]
    name: Option<String>,
}

/// Reads a list, and goes on at the address that `next` names.
pub struct Template {
    start: String,
}

/// The spider for the arguments of the command line: `-a start=URL` begins elsewhere.
pub fn spider(arguments: &Arguments) -> Result<Template> {
    let start = arguments.parse_or("start", "https://example.org/".to_owned())?;
    Ok(Template { start })
}

impl Spider for Template {
    type Item = TemplateItem;

    fn start(&self) -> Start {
        Start::urls([self.start.clone()])
    }

    fn parse(&self, page: &Page, out: &mut Output<TemplateItem>) -> Result<()> {
        out.items(page.items_json("$.items[*]")?);
        let next: Option<Option<String>> = page.json_path("$.next")?.value()?;
        if let Some(next) = next.flatten() {
            out.follow(page.url().join(&next)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use huntsman::Settings;

    use super::*;

    #[test]
    fn elements_are_items_and_the_next_page_is_followed() {
        let url = Url::parse("https://example.org/").unwrap();
        let json = r#"{"items": [{"id": 1, "name": "One"}, {"id": 2}], "next": "?page=2"}"#;
        let page = Page::new(Request::get(url.clone()), Response::html(url, json));
        let mut out = Output::new(Context::detached(Settings::default()));
        let spider = spider(&Arguments::default()).unwrap();
        spider.parse(&page, &mut out).unwrap();
        let (items, requests) = out.into_parts();
        assert_eq!((items[0].id, items[1].name.as_deref()), (1, None));
        assert_eq!(requests[0].url.query(), Some("page=2"));
    }
}
