//! Reads the rows of the CSV feed https://example.org/.

use huntsman::prelude::*;

/// A row of the feed. The names of the fields are those in its first row.
#[derive(Debug, Serialize, Deserialize)]
pub struct TemplateItem {
    name: String,
    price: f64,
}

/// The spider for the arguments of the command line: `-a start=URL` reads another feed.
pub fn spider(arguments: &Arguments) -> Result<CsvFeed<TemplateItem>> {
    let feed = arguments.get("start").unwrap_or("https://example.org/");
    Ok(CsvFeed::items([feed]).delimiter(b','))
}

#[cfg(test)]
mod tests {
    use huntsman::Settings;

    use super::*;

    #[test]
    fn a_row_is_an_item() {
        let spider = spider(&Arguments::default()).unwrap();
        let request = spider.start().next().unwrap().unwrap();
        let feed = "name,price\nOne,1.5\nTwo,2\n";
        let page = Page::new(request.clone(), Response::html(request.url, feed));
        let mut out = Output::new(Context::detached(Settings::default()));
        spider.parse(&page, &mut out).unwrap();
        let (items, _) = out.into_parts();
        assert_eq!((items.len(), items[0].price), (2, 1.5));
        assert_eq!(items[1].name, "Two");
    }
}
