//! Data for programs in HTML: JSON-LD, microdata and Open Graph.

use huntsman_page_data::{LinkedData, Microdata, OpenGraph, json_ld, microdata};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Page;
use crate::error::{Error, Result};
use crate::log;

impl Page {
    /// The values of all blocks of JSON-LD as they stand on the page; of a block that is a list, its elements. They are read once.
    ///
    /// Blocks are read as leniently as pages need: with comments, commas at the end, and control characters in texts. A block that cannot
    /// be read even so is passed over and named in the log.
    ///
    /// # Errors
    /// There are blocks, but none can be read.
    pub fn json_ld(&self) -> Result<&[Value]> {
        Ok(self.linked()?.values())
    }

    /// Nodes of JSON-LD as typed values: `page.linked_data::<Product>()?` gives the nodes whose `@type` is `Product`, wherever they stand
    /// (in lists, in `@graph`, within other nodes). References `{"@id": "..."}` within the page are resolved. The type is the name of the
    /// struct, or what `#[serde(rename = "...")]` on the struct says.
    ///
    /// ```
    /// use huntsman_crawler::{Page, Request, Response};
    /// use serde::Deserialize;
    /// use url::Url;
    ///
    /// #[derive(Deserialize)]
    /// struct Product {
    ///     name: String,
    ///     sku: Option<String>,
    /// }
    ///
    /// let url = Url::parse("http://shop.example/mill").unwrap();
    /// let html = r#"<script type="application/ld+json">
    ///     {"@context": "https://schema.org", "@graph": [{"@type": ["Product"], "name": "Mill", }]}</script>"#;
    /// let page = Page::new(Request::get(url.clone()), Response::html(url, html));
    /// let products = page.linked_data::<Product>()?;
    /// assert_eq!((products[0].name.as_str(), &products[0].sku), ("Mill", &None));
    /// # Ok::<(), huntsman_crawler::Error>(())
    /// ```
    ///
    /// # Errors
    /// A node does not have the shape of the struct (the message names the field), or the blocks cannot be read.
    #[doc(alias = "extruct")]
    pub fn linked_data<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        self.linked()?.read().map_err(|cause| self.data_error(cause))
    }

    /// Like [`linked_data`](Self::linked_data), with the `@type` given: `page.linked_data_of::<Value>("Product")?`.
    ///
    /// # Errors
    /// As for `linked_data`.
    pub fn linked_data_of<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>> {
        self.linked()?.read_type(name).map_err(|cause| self.data_error(cause))
    }

    /// The items that are marked up by `itemscope` and `itemprop`, by the algorithm of WHATWG. As typed values:
    /// `page.microdata()?.read::<Product>()?`.
    ///
    /// # Errors
    /// Items nest deeper than 64 levels, or references make them larger than is allowed.
    pub fn microdata(&self) -> Result<Microdata> {
        microdata(&self.tree().html, self.base()).map_err(|cause| self.data_error(cause))
    }

    /// The properties of Open Graph (`og:title`, `article:author`), and of Twitter's cards. As a typed value:
    /// `page.open_graph().read::<Preview>()?`.
    pub fn open_graph(&self) -> OpenGraph {
        OpenGraph::of(&self.tree().html)
    }

    fn linked(&self) -> Result<&LinkedData> {
        if let Some(known) = self.linked.get() {
            return Ok(known);
        }
        let (mut values, mut first_fault) = (Vec::new(), None);
        for value in json_ld(&self.tree().html) {
            match value {
                Ok(value) => values.push(value),
                Err(cause) => {
                    log::warn!(url = %self.url(), "{cause}: passed over");
                    first_fault.get_or_insert(cause);
                }
            }
        }
        match first_fault {
            Some(cause) if values.is_empty() => Err(self.data_error(cause)),
            _ => Ok(self.linked.get_or_init(|| LinkedData::new(values))),
        }
    }

    fn data_error(&self, cause: huntsman_page_data::Error) -> Error {
        Error::from(cause).context(self.url().to_string())
    }
}
