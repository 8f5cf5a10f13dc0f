//! The URLs of a report, by numbers.

use std::collections::HashMap;

use huntsman_crawler::Result;
use xxhash_rust::xxh3::xxh3_64;

use super::blocks::{Blocks, Located, Rows};
use crate::edges::common;

/// URLs besides those of pages that the report knows; references to further ones are left out.
const MAX_OTHERS: usize = 1_000_000;

/// URLs by their numbers: first the pages in the order of their URLs, then all others as they come. Memory holds sixteen bytes for each.
#[derive(Debug)]
pub(super) struct Urls {
    numbers: HashMap<u64, u32>,
    pages: usize,
    rows: Rows,
    last: String,
}

impl Urls {
    pub(super) fn new() -> Self {
        Self { numbers: HashMap::new(), pages: 0, rows: Rows::new("urls"), last: String::new() }
    }

    /// Adds the next page.
    pub(super) fn add_page(&mut self, url: &str, blocks: &mut Blocks) -> Result<()> {
        self.pages += 1;
        self.add(url, blocks).map(drop)
    }

    /// The number of a page.
    pub(super) fn page(&self, url: &str) -> Option<u32> {
        self.known(url).filter(|number| (*number as usize) < self.pages)
    }

    /// The number of a URL that has one.
    pub(super) fn known(&self, url: &str) -> Option<u32> {
        self.numbers.get(&xxh3_64(url.as_bytes())).copied()
    }

    /// The number of any URL, which gets one if it has none; `None` if there are too many.
    pub(super) fn any(&mut self, url: &str, blocks: &mut Blocks) -> Result<Option<u32>> {
        match self.numbers.get(&xxh3_64(url.as_bytes())) {
            Some(number) => Ok(Some(*number)),
            None if self.numbers.len() - self.pages >= MAX_OTHERS => Ok(None),
            None => self.add(url, blocks).map(Some),
        }
    }

    fn add(&mut self, url: &str, blocks: &mut Blocks) -> Result<u32> {
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.numbers.insert(xxh3_64(url.as_bytes()), number);
        // The first row of a block shares nothing with the one before. A character takes at most six bytes.
        self.rows.make_room(6 * url.len() + 32, blocks)?;
        let is_start = self.rows.begins_block();
        let common = if is_start { 0 } else { common(&self.last, url) };
        // A row is the number of UTF-16 units that it shares with the row before, and the rest.
        let units = url[..common].chars().map(char::len_utf16).sum::<usize>();
        self.rows.add(&(units, &url[common..]), blocks)?;
        self.last.clear();
        self.last.push_str(url);
        Ok(number)
    }

    pub(super) fn finish(self, blocks: &mut Blocks) -> Result<Located> {
        self.rows.finish(blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_first_and_each_url_has_one_number() {
        let mut blocks = Blocks::Within(Vec::new());
        let mut urls = Urls::new();
        for url in ["https://a.example/", "https://a.example/grün", "https://a.example/grünlich"] {
            urls.add_page(url, &mut blocks).unwrap();
        }
        let mut number = |url: &str| urls.any(url, &mut blocks).unwrap();
        assert_eq!(number("https://a.example/grün"), Some(1));
        assert_eq!(number("https://b.example/"), Some(3));
        assert_eq!(number("https://b.example/"), Some(3));
        assert_eq!((urls.page("https://a.example/"), urls.page("https://b.example/")), (Some(0), None));
        assert_eq!(urls.finish(&mut blocks).unwrap().rows, 4);
        let Blocks::Within(written) = blocks else { panic!("they are in the page") };
        let rows: serde_json::Value = serde_json::from_str(&written[0].1).unwrap();
        let expected =
            serde_json::json!([[0, "https://a.example/"], [18, "grün"], [22, "lich"], [8, "b.example/"]]);
        assert_eq!(rows, expected);
    }
}
