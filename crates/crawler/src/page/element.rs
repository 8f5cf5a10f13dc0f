//! Elements of a page's tree, and values selected from it.

use scraper::ElementRef;
use url::Url;

use super::{Page, tree};
use crate::error::{Error, Result};

/// An element of a page.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    page: &'a Page,
    node: ElementRef<'a>,
}

impl<'a> Element<'a> {
    pub(super) fn new(page: &'a Page, node: ElementRef<'a>) -> Self {
        Self { page, node }
    }

    /// Tag name, lower-cased.
    pub fn name(&self) -> &'a str {
        self.node.value().name()
    }

    /// All text inside, as in the document, stripped at both ends.
    pub fn text(&self) -> String {
        self.node.text().collect::<String>().trim().to_owned()
    }

    /// An attribute.
    pub fn attr(&self, name: &str) -> Option<&'a str> {
        self.node.value().attr(name)
    }

    /// The `href` (or `src`) as an absolute URL.
    ///
    /// # Errors
    /// There is no such attribute, or it is no http or https URL.
    pub fn href(&self) -> Result<Url> {
        let address = self.attr("href").or_else(|| self.attr("src"));
        let address = address.ok_or_else(|| Error::msg(format!("<{}> has no href", self.name())))?;
        self.page
            .join(address.trim())
            .ok_or_else(|| Error::msg(format!("\"{}\" is no http or https URL", address.escape_debug())))
    }

    /// Elements inside that match a CSS selector.
    ///
    /// # Errors
    /// The selector is not valid CSS.
    pub fn select(&self, css: &str) -> Result<Vec<Element<'a>>> {
        let selector = tree::selector(css)?;
        Ok(self.node.select(&selector).map(|node| Element { page: self.page, node }).collect())
    }

    /// The text of the first element inside that matches.
    ///
    /// # Errors
    /// The selector is not valid CSS, or nothing matches; the error names the selector and the page.
    pub fn text_of(&self, css: &str) -> Result<String> {
        match self.select(css)?.first() {
            Some(found) => Ok(found.text()),
            None => Err(Error::msg(format!(
                "nothing matches \"{css}\" in <{}> of {}",
                self.name(),
                self.page.url()
            ))),
        }
    }

    /// Values by a query with `::text` or `::attr(name)`, inside this element.
    ///
    /// # Errors
    /// The selector is not valid CSS.
    pub fn css(&self, query_text: &str) -> Result<Selection> {
        query(self.node, query_text)
    }

    /// The element as HTML.
    pub fn html(&self) -> String {
        self.node.html()
    }
}

impl std::fmt::Debug for Element<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", self.name())
    }
}

/// Values that a query selected, in document order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(Vec<String>);

impl Selection {
    /// The first value.
    pub fn get(&self) -> Option<String> {
        self.0.first().cloned()
    }

    /// The first value, or a default.
    pub fn get_or(&self, default: &str) -> String {
        self.get().unwrap_or_else(|| default.to_owned())
    }

    /// All values.
    pub fn get_all(&self) -> &[String] {
        &self.0
    }

    /// What a regular expression finds in the values: its first group, or the whole match. Linear time.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn re(&self, expression: &str) -> Result<Vec<String>> {
        let regex = regex::Regex::new(expression)?;
        let captures = self.0.iter().flat_map(|value| regex.captures_iter(value));
        Ok(captures.filter_map(|c| Some(c.get(1).or_else(|| c.get(0))?.as_str().to_owned())).collect())
    }

    /// The first find of a regular expression.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn re_first(&self, expression: &str) -> Result<Option<String>> {
        Ok(self.re(expression)?.into_iter().next())
    }
}

/// What a query takes from each element that it matches.
enum Take<'q> {
    Html,
    Text,
    Attr(&'q str),
}

pub(super) fn query(root: ElementRef<'_>, query: &str) -> Result<Selection> {
    let (css, take) = match query.rsplit_once("::") {
        Some((css, "text")) => (css, Take::Text),
        Some((css, pseudo)) if pseudo.starts_with("attr(") && pseudo.ends_with(')') => {
            (css, Take::Attr(pseudo["attr(".len()..pseudo.len() - 1].trim()))
        }
        _ => (query, Take::Html),
    };
    let css = if css.trim().is_empty() { "*" } else { css.trim() };
    let selector = tree::selector(css)?;
    let mut values = Vec::new();
    for node in root.select(&selector) {
        match take {
            Take::Html => values.push(node.html()),
            // Scrapy's ::text gives the text nodes that are direct children.
            Take::Text => {
                values.extend(node.children().filter_map(|child| Some(child.value().as_text()?.to_string())))
            }
            Take::Attr(name) => values.extend(node.value().attr(name).map(str::to_owned)),
        }
    }
    Ok(Selection(values))
}
