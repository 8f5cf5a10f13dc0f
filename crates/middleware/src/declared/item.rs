//! Items of a declared spider: on which pages they are, and what is read for each of them.

use huntsman_crawler::{DEFAULT_CALLBACK, Element, Error, JsonNode, Page, PageKind, PageNode, Result};
use regex::Regex;
use serde_json::Value;

use super::DeclaredItem;
use super::field::Field;

/// The name that start pages have in `rule`.
pub(super) const START: &str = "start";

/// A kind of items.
#[derive(Debug)]
pub(super) struct ItemRule {
    pub(super) name: String,
    /// Whether items say in their first field which kind they are.
    pub(super) is_named: bool,
    /// The labels of the pages, or none for all.
    pub(super) labels: Vec<String>,
    /// An expression that the URL of a page must match.
    pub(super) page: Option<Regex>,
    pub(super) each: Option<Each>,
    pub(super) fields: Vec<Field>,
}

/// What stands for one item each.
#[derive(Debug)]
pub(super) enum Each {
    Css(String),
    XPath(String),
    Json { path: String, script: Option<String> },
}

/// What the fields of an item are read from.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Page,
    Element(Element<'a>),
    Node(PageNode<'a>),
    Json(JsonNode<'a>),
}

impl ItemRule {
    pub(super) fn applies_to(&self, page: &Page) -> bool {
        let label = match page.callback() {
            DEFAULT_CALLBACK => START,
            other => other,
        };
        (self.labels.is_empty() || self.labels.iter().any(|wanted| wanted == label))
            && self.page.as_ref().is_none_or(|wanted| wanted.is_match(page.url().as_str()))
    }

    /// The items of a page.
    pub(super) fn read(&self, page: &Page) -> Vec<Result<DeclaredItem>> {
        let items = match &self.each {
            None => Ok(vec![self.item(page, 1, Place::Page)]),
            Some(Each::Css(css)) => {
                page.select(css).map(|found| self.items(page, found.into_iter().map(Place::Element)))
            }
            Some(Each::XPath(path)) => {
                page.nodes(path).map(|found| self.items(page, found.into_iter().map(Place::Node)))
            }
            Some(Each::Json { path, script }) => self.json_items(page, path, script.as_deref()),
        };
        items.unwrap_or_else(|error| vec![Err(error.context(format!("item \"{}\"", self.name)))])
    }

    fn json_items(&self, page: &Page, path: &str, script: Option<&str>) -> Result<Vec<Result<DeclaredItem>>> {
        let of_script;
        let json = match script {
            Some(script) => match page.find_script_json(script)? {
                Some(found) => {
                    of_script = found;
                    &of_script
                }
                None => return Ok(Vec::new()),
            },
            None if page.kind() != PageKind::Json && page.json_body().is_err() => return Ok(Vec::new()),
            None => page.json_body()?,
        };
        Ok(self.items(page, json.json_path(path)?.nodes().map(Place::Json)))
    }

    fn items<'a>(&self, page: &Page, places: impl Iterator<Item = Place<'a>>) -> Vec<Result<DeclaredItem>> {
        places.enumerate().map(|(index, place)| self.item(page, index + 1, place)).collect()
    }

    fn item(&self, page: &Page, number: usize, place: Place<'_>) -> Result<DeclaredItem> {
        let mut item = DeclaredItem::new();
        if self.is_named {
            item.insert("item".to_owned(), Value::from(self.name.as_str()));
        }
        for field in &self.fields {
            let value = field.read(page, place).map_err(|error: Error| {
                let which = if self.each.is_some() { format!(" number {number}") } else { String::new() };
                error.context(format!(
                    "item \"{}\"{which} of {}, field \"{}\"",
                    self.name,
                    page.url(),
                    field.name
                ))
            })?;
            item.insert(field.name.clone(), value);
        }
        Ok(item)
    }
}
