//! The part of a page from which an item is read, and what reading may cost.

use std::cell::Cell;
use std::fmt;

use huntsman_json_path::Limits;
use huntsman_xpath::{Scope, Value as XPathValue};
use serde_json::Value;

use super::found::FoundValue;
use crate::error::{Error, Result};
use crate::page::element::{Element, Selection};
use crate::page::json::compiled;
use crate::page::selector::{Amount, Found, Selector};
use crate::page::{Page, PageNode};

/// The most nodes that are visited for the items of one call: half a second to two. XPath counts its steps, and has the same limit.
const MAX_VISITS: u64 = 50_000_000;
/// The most bytes of the texts of the items of one call, as of a [`Selection`].
const MAX_BYTES: u64 = 64 << 20;
/// Deepest nesting of items. A list of items of its own type, such as answers to answers, ends where the page ends; with an absolute XPath
/// expression it would not.
const MAX_DEPTH: u8 = 64;

/// A part of a page from which an [`Item`](super::Item) is read: the whole page, an element, or a node that XPath selected.
#[derive(Clone, Copy)]
pub struct PagePart<'a> {
    place: Place<'a>,
    budget: &'a Budget,
    depth: u8,
}

/// A place in the tree of a page.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Page(&'a Page),
    Element(Element<'a>),
    Node(PageNode<'a>),
    /// A value within the JSON of the page.
    Json(&'a Page, &'a Value),
}

impl<'a> Place<'a> {
    /// The page that has the place.
    pub(super) fn page(self) -> &'a Page {
        match self {
            Place::Page(page) | Place::Json(page, _) => page,
            Place::Element(element) => element.page(),
            Place::Node(node) => node.page(),
        }
    }
}

/// What is left of the limits of a call.
#[derive(Debug)]
pub(super) struct Budget {
    visits: Cell<u64>,
    bytes: Cell<u64>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { visits: Cell::new(MAX_VISITS), bytes: Cell::new(MAX_BYTES) }
    }
}

impl Budget {
    fn visit(&self, nodes: u64) -> Result<()> {
        spend(&self.visits, nodes).ok_or_else(|| {
            let limit = format!("reading needs more than {MAX_VISITS} visits of nodes");
            Error::msg(format!("{limit}: do the parts contain each other, or does an XPath expression of a part begin with //?"))
        })
    }

    fn visits_left(&self) -> usize {
        usize::try_from(self.visits.get()).unwrap_or(usize::MAX)
    }

    fn read(&self, bytes: usize) -> Result<()> {
        spend(&self.bytes, bytes as u64).ok_or_else(|| {
            let limit = format!("the values take more than {} MiB", MAX_BYTES >> 20);
            Error::msg(format!("{limit}: select texts, or elements that do not contain each other"))
        })
    }
}

fn spend(left: &Cell<u64>, amount: u64) -> Option<()> {
    left.set(left.get().checked_sub(amount)?);
    Some(())
}

impl<'a> PagePart<'a> {
    pub(super) fn new(place: Place<'a>, budget: &'a Budget) -> Self {
        Self { place, budget, depth: 0 }
    }

    /// A place inside this part.
    ///
    /// # Errors
    /// The items are nested too deep.
    pub(super) fn inside(&self, place: Place<'a>) -> Result<Self> {
        if self.depth == MAX_DEPTH {
            return Err(Error::msg(format!(
                "items are nested more than {MAX_DEPTH} deep; an XPath expression that looks inside a part begins with .// and not with //"
            )));
        }
        Ok(Self { place, budget: self.budget, depth: self.depth + 1 })
    }

    /// The page.
    pub fn page(&self) -> &'a Page {
        self.place.page()
    }

    /// The part as an element: of the whole page its root.
    ///
    /// # Errors
    /// It is a node of an entry of a feed, an attribute or a text.
    pub fn element(&self) -> Result<Element<'a>> {
        match self.place {
            Place::Page(page) => Ok(Element::root(page)),
            Place::Element(element) => Ok(element),
            Place::Node(node) => node.element().ok_or_else(|| {
                let node = node.name();
                Error::msg(format!(
                    "CSS selects in elements of the page, and <{node}> is none of them: use xpath = \"...\""
                ))
            }),
            Place::Json(..) => {
                Err(Error::msg("CSS selects in HTML and XML, and this is JSON: use json = \"...\""))
            }
        }
    }

    /// The part as a node, from which XPath selects: of the whole page its root.
    ///
    /// # Errors
    /// The page has no tree for XPath.
    pub fn node(&self) -> Result<PageNode<'a>> {
        match self.place {
            Place::Page(page) => page.root(),
            Place::Element(element) => element.as_node(),
            Place::Node(node) => Ok(node),
            Place::Json(..) => {
                Err(Error::msg("XPath selects in HTML and XML, and this is JSON: use json = \"...\""))
            }
        }
    }

    /// The part as a value of JSON: of a page, and of what is inside of it, its body.
    ///
    /// # Errors
    /// The body is not JSON.
    pub fn json(&self) -> Result<&'a Value> {
        match self.place {
            Place::Json(_, value) => Ok(value),
            _ => Ok(self.page().json_body()?.value()),
        }
    }

    /// Values by a CSS selector, as [`Page::css`] and [`Element::css`] give them.
    ///
    /// # Errors
    /// The selector is not valid, or the part is no element of the page.
    pub fn css(&self, css: &str) -> Result<Selection> {
        self.element()?.css(css)
    }

    /// Values by an XPath expression, as [`Page::xpath`] gives them.
    ///
    /// # Errors
    /// The expression is not valid, or needs more steps than are allowed.
    pub fn xpath(&self, path: &str) -> Result<Selection> {
        self.node()?.xpath(path)
    }

    /// What a CSS selector finds. Elements are inside the part and never the part itself, else a list of items of its own type would not
    /// end; texts and attributes may be its own.
    pub(super) fn find_css(&self, css: &str) -> Result<Vec<FoundValue<'a>>> {
        let scope = self.element()?;
        let found = self.select(scope, &*Selector::of(css)?, Amount::All)?;
        Ok(found.into_iter().filter_map(|found| self.value_in(scope, found)).collect())
    }

    /// The first of what a CSS selector finds.
    pub(super) fn first_css(&self, css: &str) -> Result<Option<FoundValue<'a>>> {
        let scope = self.element()?;
        let selector = Selector::of(css)?;
        let Some(first) = self.select(scope, &selector, Amount::First)?.first().copied() else {
            return Ok(None);
        };
        let value = self.value_in(scope, first);
        if value.is_some() {
            return Ok(value);
        }
        // The first is the part itself.
        let found = self.select(scope, &selector, Amount::All)?;
        Ok(found.into_iter().find_map(|found| self.value_in(scope, found)))
    }

    fn select(&self, scope: Element<'a>, selector: &Selector, amount: Amount) -> Result<Vec<Found<'a>>> {
        let (found, visits) = selector.find_counted(scope.page().tree(), scope.place(), amount)?;
        self.budget.visit(visits)?;
        Ok(found)
    }

    /// The value of what was found in an element; `None` for the element itself, unless the part is the page.
    fn value_in(&self, scope: Element<'a>, found: Found<'a>) -> Option<FoundValue<'a>> {
        match found {
            Found::Value(text) => Some(FoundValue::text_of(*self, text)),
            Found::Element(_, place) if place == scope.place() && !matches!(self.place, Place::Page(_)) => {
                None
            }
            Found::Element(node, place) => {
                Some(FoundValue::place_of(*self, Place::Element(Element::at(scope.page(), node, place))))
            }
        }
    }

    /// What an XPath expression finds: elements as places, all else as texts.
    pub(super) fn find_xpath(&self, path: &str, scope: &Scope) -> Result<Vec<FoundValue<'a>>> {
        let context = self.node()?;
        let (value, visits) = context.evaluate_counted(path, scope)?;
        self.budget.visit(visits)?;
        let found = |node: PageNode<'a>| match node.is_element() {
            true => FoundValue::place_of(*self, Place::Node(node)),
            false => FoundValue::text_of(*self, node.raw_text()),
        };
        Ok(match value {
            XPathValue::Nodes(nodes) => nodes.into_iter().map(|node| found(context.with(node))).collect(),
            other => vec![FoundValue::text_of(*self, context.string(&other))],
        })
    }

    /// What a JSONPath finds; its `$` is the value of this part, or the body of the page. A null is nothing.
    pub(super) fn find_json(&self, path: &str) -> Result<Vec<FoundValue<'a>>> {
        let path = compiled(path)?;
        let limits = Limits { steps: self.budget.visits_left(), ..Limits::default() };
        let (values, steps) = path.select_counted(self.json()?, limits)?;
        self.budget.visit(steps as u64)?;
        let page = self.page();
        let given = values.into_iter().filter(|value| !value.is_null());
        Ok(given.map(|value| FoundValue::place_of(*self, Place::Json(page, value))).collect())
    }

    /// Counts the text of a value.
    pub(super) fn read(&self, bytes: usize) -> Result<()> {
        self.budget.read(bytes)
    }
}

impl fmt::Debug for PagePart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Page(page) => page.fmt(f),
            Place::Element(element) => element.fmt(f),
            Place::Node(node) => node.fmt(f),
            Place::Json(..) => f.write_str("JSON"),
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::{Request, Response};

    #[test]
    fn what_reading_costs_is_counted_over_all_fields() {
        let url = Url::parse("http://h/").unwrap();
        let page = Page::new(Request::get(url.clone()), Response::html(url, "<p>one<p>two"));
        let budget = |visits, bytes| Budget { visits: Cell::new(visits), bytes: Cell::new(bytes) };
        // Only the two paragraphs are looked at, and each is a step.
        let few_visits = budget(3, 8);
        let part = PagePart::new(Place::Page(&page), &few_visits);
        let found = part.find_css("p").unwrap();
        assert_eq!(found[1].text().unwrap().as_deref(), Some("two"));
        let told = part.find_css("p").unwrap_err().to_string();
        assert!(told.contains("more than 50000000 visits of nodes"), "{told}");
        assert!(found[0].text().is_ok());
        assert!(found[0].text().unwrap_err().to_string().contains("more than 64 MiB"));
        let one_step = budget(1, 8);
        let part = PagePart::new(Place::Page(&page), &one_step);
        assert!(part.find_xpath("//p", &Scope::new()).unwrap_err().to_string().contains("visits of nodes"));
    }
}
