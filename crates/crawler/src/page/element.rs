//! Elements of a page's tree, and values selected from it.

use std::borrow::Cow;

use scraper::ElementRef;
use url::Url;

use super::Page;
use super::selector::{Amount, Found, Place, Selector};
use super::tree::Tree;
use super::xpath::PageNode;
use crate::error::{Error, Result};

/// An element of a page.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    page: &'a Page,
    node: ElementRef<'a>,
    place: Place,
}

impl<'a> Element<'a> {
    pub(super) fn at(page: &'a Page, node: ElementRef<'a>, place: Place) -> Self {
        Self { page, node, place }
    }

    /// The root of the tree of HTML.
    pub(super) fn root(page: &'a Page) -> Self {
        let tree = page.tree();
        Self { page, node: tree.html.root_element(), place: tree.outermost() }
    }

    pub(super) fn page(&self) -> &'a Page {
        self.page
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// All text inside the element, as in the document.
    pub(super) fn raw_text(&self) -> Cow<'a, str> {
        let mut texts = self.node.text();
        let first = texts.next().unwrap_or_default();
        match texts.next() {
            None => Cow::Borrowed(first),
            Some(second) => Cow::Owned([first, second].into_iter().chain(texts).collect()),
        }
    }

    /// Tag name in lower case.
    pub fn name(&self) -> &'a str {
        self.node.value().name()
    }

    /// All text inside the element, as in the document, stripped at both ends.
    pub fn text(&self) -> String {
        self.raw_text().trim().to_owned()
    }

    /// The value of an attribute; `None` if the element does not have it.
    pub fn attr(&self, name: &str) -> Option<&'a str> {
        self.node.value().attr(name)
    }

    /// The `href` (or `src`) as an absolute URL of any scheme; [`Output::follow`] ignores schemes such as `mailto:`
    /// and `javascript:`.
    ///
    /// # Errors
    /// There is no such attribute, or it is not a URL.
    ///
    /// [`Output::follow`]: crate::Output::follow
    pub fn href(&self) -> Result<Url> {
        let address = self.address();
        let address = address.ok_or_else(|| Error::msg(format!("<{}> has no href", self.name())))?;
        self.page.resolve(address.trim()).map_err(|cause| {
            Error::from(cause).context(format!("\"{}\" is not a URL", address.escape_debug()))
        })
    }

    /// The `href` or `src` as written; on a page of XML, where a link may be written `<link>/a</link>`, the text of an element without either.
    pub(super) fn address(&self) -> Option<Cow<'a, str>> {
        let written = self.attr("href").or_else(|| self.attr("src")).map(Cow::Borrowed);
        written.or_else(|| {
            let text = self.is_xml().then(|| self.raw_text())?;
            (!text.trim().is_empty()).then_some(text)
        })
    }

    pub(super) fn is_xml(&self) -> bool {
        self.page.tree().xml().is_some()
    }

    /// The elements inside this one that match a CSS selector. The selector cannot refer to ancestors of this
    /// element.
    ///
    /// # Errors
    /// The selector is not valid, or needs more than 50 million steps.
    pub fn select(&self, css: &str) -> Result<Vec<Element<'a>>> {
        let inside = select(self.page, self.place, css)?;
        Ok(inside.filter(|found| found.place != self.place).collect())
    }

    /// The text of the first matching element inside this one.
    ///
    /// # Errors
    /// The selector is not valid or needs more than 50 million steps, or no element matches; the error names the selector and the page.
    pub fn text_of(&self, css: &str) -> Result<String> {
        let tree = self.page.tree();
        let (found, _) = Selector::of_elements(css)?.find_counted(tree, self.place, Amount::First)?;
        let inside = match found.first() {
            Some(Found::Element(node, place)) if *place != self.place => {
                Some(Element::at(self.page, *node, *place))
            }
            // The first is this element itself.
            Some(_) => self.select(css)?.into_iter().next(),
            None => None,
        };
        match inside {
            Some(found) => Ok(found.text()),
            None => Err(Error::msg(format!(
                "nothing matches \"{css}\" in <{}> of {}",
                self.name(),
                self.page.url()
            ))),
        }
    }

    /// Values by a CSS selector as in [`Page::css`]. The element itself can match, as in Scrapy:
    /// `a.css("::attr(href)")` begins with its own attribute.
    ///
    /// # Errors
    /// The selector is not valid, or needs more than 50 million steps.
    pub fn css(&self, css: &str) -> Result<Selection> {
        values(self.page.tree(), self.place, css)
    }

    /// Values by an XPath expression from this element, as in [`Page::xpath`]: `.//a/@href` is inside it, `//a` anywhere on the page.
    ///
    /// # Errors
    /// The expression is not valid, or needs more steps than are allowed.
    pub fn xpath(&self, path: &str) -> Result<Selection> {
        self.as_node()?.xpath(path)
    }

    /// The nodes that an XPath expression selects from this element.
    ///
    /// # Errors
    /// The expression is not valid, gives something else than nodes, or needs more steps than are allowed.
    pub fn nodes(&self, path: &str) -> Result<Vec<PageNode<'a>>> {
        self.as_node()?.nodes(path)
    }

    pub(super) fn as_node(&self) -> Result<PageNode<'a>> {
        let nodes = self.page.css_nodes()?;
        let node = nodes
            .node(self.page.tree().outline(), self.place)
            .ok_or_else(|| Error::msg("the element is not in the tree of its page"))?;
        Ok(PageNode::at(self.page, &nodes.document, node))
    }

    /// The element as HTML, or as XML on a page of XML.
    pub fn html(&self) -> String {
        let tree = self.page.tree();
        tree.markup(self.place, &mut String::new())
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

/// The most bytes of the values of a selection. Elements that are nested contain each other's markup.
const MAX_VALUES: usize = 64 << 20;

impl Selection {
    /// Collects values.
    ///
    /// # Errors
    /// They take more than 64 MiB.
    pub(super) fn of(values: impl IntoIterator<Item = String>) -> Result<Self> {
        let values = values.into_iter();
        let (mut all, mut bytes) = (Vec::with_capacity(values.size_hint().0), 0);
        for value in values {
            bytes += value.len();
            if bytes > MAX_VALUES {
                return Err(Error::msg(format!(
                    "the values take more than {} MiB: select texts, or elements that do not contain each other",
                    MAX_VALUES >> 20
                )));
            }
            all.push(value);
        }
        Ok(Self(all))
    }

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

    /// Applies a regular expression to the values. The result has the groups of each match, one after the other, or
    /// the whole match if there are no groups. A group that did not participate is empty. Takes linear time.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn re(&self, expression: &str) -> Result<Vec<String>> {
        let regex = regex::Regex::new(expression)?;
        let groups = if regex.captures_len() > 1 { 1..regex.captures_len() } else { 0..1 };
        let group = |captures: &regex::Captures<'_>, number| {
            captures.get(number).map_or_else(String::new, |found| found.as_str().to_owned())
        };
        let captures = self.0.iter().flat_map(|value| regex.captures_iter(value));
        Ok(captures.flat_map(|c| groups.clone().map(move |number| group(&c, number))).collect())
    }

    /// The first result of [`re`](Self::re).
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn re_first(&self, expression: &str) -> Result<Option<String>> {
        Ok(self.re(expression)?.into_iter().next())
    }
}

/// The elements that a selector matches within an element, which may match itself.
pub(super) fn select<'a>(
    page: &'a Page,
    scope: Place,
    css: &str,
) -> Result<impl Iterator<Item = Element<'a>> + use<'a>> {
    let found = Selector::of_elements(css)?.find(page.tree(), scope)?.into_iter();
    Ok(found.filter_map(move |found| match found {
        Found::Element(node, place) => Some(Element { page, node, place }),
        Found::Value(_) => None,
    }))
}

/// The values that a selector matches within an element, which may match itself.
pub(super) fn values(tree: &Tree, scope: Place, css: &str) -> Result<Selection> {
    let (found, mut buffer) = (Selector::of(css)?.find(tree, scope)?, String::new());
    Selection::of(found.into_iter().map(|found| match found {
        Found::Element(_, place) => tree.markup(place, &mut buffer),
        Found::Value(value) => value.to_owned(),
    }))
}
