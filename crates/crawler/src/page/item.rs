//! Items that are read from pages by their types: `#[derive(Item)]`, and what the code that it makes stands on.
//!
//! An item is read from a [`PagePart`]: the whole page, an element or a node. A field is a selector with what follows it ([`Field`]); it gives
//! [`FoundValue`]s, which become values of the field's type ([`ItemValue`]).

mod field;
mod found;
mod loader;
mod part;

use super::element::{self, Element};
use super::{Page, PageNode};
use crate::error::{Error, Result};

pub use found::{FoundValue, ItemValue};
pub use loader::{ItemLoader, Processor};
pub use part::PagePart;

use part::{Budget, Place};

/// What the code that `#[derive(Item)]` makes calls; no API.
pub mod private {
    pub use super::field::{Convert, Converted, Field, Query, value, with};
}

/// A value that is read from a page, or from a part of it. [`#[derive(Item)]`](derive@crate::Item) implements this trait for a struct whose
/// fields say where their values are; then [`Page::item`], [`Page::items`] and the methods of this name of elements and nodes read it.
///
/// A type that is read in another way implements it by hand:
///
/// ```
/// use huntsman_crawler::{Item, PagePart, Result};
///
/// struct Coordinates(f64, f64);
///
/// impl Item for Coordinates {
///     fn from_part(part: &PagePart<'_>) -> Result<Self> {
///         let text = part.css("::attr(data-at)")?.get_or("");
///         let (latitude, longitude) = text.split_once(',').unwrap_or_default();
///         Ok(Self(latitude.parse()?, longitude.parse()?))
///     }
/// }
/// ```
#[doc(alias = "ItemLoader")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no item: it does not say how it is read from a page",
    note = "add `#[derive(Item)]` to it"
)]
pub trait Item: Sized {
    /// Reads the item.
    ///
    /// # Errors
    /// The part does not have what the item needs; the message names the field and the value.
    fn from_part(part: &PagePart<'_>) -> Result<Self>;

    /// The prefixes of namespaces that XPath expressions of the item may use.
    fn prefixes() -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

impl Page {
    /// The page as an item: `page.item::<Book>()?`.
    ///
    /// # Errors
    /// A field without a default was not found, or a value cannot be converted; the message names page, field, selector and value. Reading stops
    /// when it has visited 50 million nodes or found 64 MiB of texts.
    pub fn item<T: Item>(&self) -> Result<T> {
        self.read(Place::Page(self))
    }

    /// The elements that match a CSS selector as items: `page.items::<Quote>("div.quote")?`. There are none if nothing matches.
    ///
    /// One bad element makes the whole call fail; [`try_items`](Self::try_items) gives the others.
    ///
    /// # Errors
    /// The selector is not valid, or an element cannot be read; see [`item`](Self::item). The message has the number of the element.
    pub fn items<T: Item>(&self, css: &str) -> Result<Vec<T>> {
        self.try_items(css)?.into_iter().collect()
    }

    /// Like [`items`](Self::items), with a result for each element: what can be read of a page with a few bad rows.
    /// [`Output::try_item`](crate::Output::try_item) takes such results.
    ///
    /// # Errors
    /// The selector is not valid.
    pub fn try_items<T: Item>(&self, css: &str) -> Result<Vec<Result<T>>> {
        let elements = element::select(self, self.tree().outermost(), css)?;
        Ok(self.read_all(elements.map(Place::Element).collect(), css))
    }

    /// The nodes that an XPath expression selects as items, in HTML and in XML: `page.items_xpath::<Entry>("//item")?`. The expression may have
    /// the prefixes of the item.
    ///
    /// # Errors
    /// As for [`items`](Self::items); or the expression gives something else than nodes.
    pub fn items_xpath<T: Item>(&self, path: &str) -> Result<Vec<T>> {
        self.try_items_xpath(path)?.into_iter().collect()
    }

    /// Like [`items_xpath`](Self::items_xpath), with a result for each node.
    ///
    /// # Errors
    /// The expression is not valid, or gives something else than nodes.
    pub fn try_items_xpath<T: Item>(&self, path: &str) -> Result<Vec<Result<T>>> {
        let nodes = self.root()?.nodes_with(path, &field::scope_of(T::prefixes()))?;
        Ok(self.read_all(nodes.into_iter().map(Place::Node).collect(), path))
    }

    /// The values that a JSONPath selects from a body of JSON, as items: `page.items_json::<Thing>("$.things[*]")?`. The `$` of their
    /// fields is the value.
    ///
    /// # Errors
    /// As for [`items`](Self::items); or the body is not JSON.
    pub fn items_json<T: Item>(&self, path: &str) -> Result<Vec<T>> {
        self.try_items_json(path)?.into_iter().collect()
    }

    /// Like [`items_json`](Self::items_json), with a result for each value.
    ///
    /// # Errors
    /// The path is not valid, or the body is not JSON.
    pub fn try_items_json<T: Item>(&self, path: &str) -> Result<Vec<Result<T>>> {
        let values = self.json_path(path)?;
        Ok(self.read_all(values.nodes().map(|node| Place::Json(self, node.value())).collect(), path))
    }

    fn read<T: Item>(&self, place: Place<'_>) -> Result<T> {
        let budget = Budget::default();
        T::from_part(&PagePart::new(place, &budget))
            .map_err(|error| error.context(format!("item of {}", self.url())))
    }

    /// All places share a budget, because elements that are nested contain each other.
    fn read_all<T: Item>(&self, places: Vec<Place<'_>>, selector: &str) -> Vec<Result<T>> {
        let (budget, count) = (Budget::default(), places.len());
        let item = |(number, place)| {
            T::from_part(&PagePart::new(place, &budget)).map_err(|error: Error| {
                let selector = selector.escape_debug();
                error.context(format!("item {number} of {count} (\"{selector}\") of {}", self.url()))
            })
        };
        (1..).zip(places).map(item).collect()
    }
}

impl Element<'_> {
    /// The element as an item; see [`Page::item`]. Its selectors look inside the element.
    ///
    /// # Errors
    /// As for [`Page::item`].
    pub fn item<T: Item>(&self) -> Result<T> {
        self.page().read(Place::Element(*self))
    }

    /// The elements inside this one that match a CSS selector, as items; see [`Page::items`].
    ///
    /// # Errors
    /// As for [`Page::items`].
    pub fn items<T: Item>(&self, css: &str) -> Result<Vec<T>> {
        let inside = self.select(css)?.into_iter().map(Place::Element);
        self.page().read_all(inside.collect(), css).into_iter().collect()
    }
}

impl PageNode<'_> {
    /// The node as an item; see [`Page::item`]. In XML its fields are selected by XPath.
    ///
    /// # Errors
    /// As for [`Page::item`].
    pub fn item<T: Item>(&self) -> Result<T> {
        self.page().read(Place::Node(*self))
    }

    /// The nodes that an XPath expression selects from here, as items; see [`Page::items_xpath`].
    ///
    /// # Errors
    /// As for [`Page::items_xpath`].
    pub fn items_xpath<T: Item>(&self, path: &str) -> Result<Vec<T>> {
        let nodes = self.nodes_with(path, &field::scope_of(T::prefixes()))?.into_iter().map(Place::Node);
        self.page().read_all(nodes.collect(), path).into_iter().collect()
    }
}
