//! Items whose fields are known only while a crawl runs: values are added field by field, and processors make the item of them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use huntsman_json_path::Limits;
use huntsman_xpath::Scope;
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::field::{first_group, has_groups};
use super::found::{FoundValue, ItemValue, shown};
use super::part::{Budget, PagePart, Place};
use crate::error::{Error, Result};
use crate::page::element::Element;
use crate::page::json::compiled;
use crate::page::{Page, PageNode};

/// Puts an item together field by field, for fields whose names or selectors are known only at run time. For fields that are known when the
/// program is written, [`#[derive(Item)]`](derive@crate::Item) is shorter, and checked by the compiler.
///
/// Values are texts, without white space at the ends and with one space for each run inside, or what JSON has. What is added passes the input processor of
/// its field and is kept in a list; the output processor makes the value of the item from the list. Both are [`Processor::identity`] unless
/// they are set.
///
/// ```
/// use huntsman_crawler::{Page, Processor, Request, Response, Result};
/// # use url::Url;
///
/// # fn main() -> Result<()> {
/// # let url = Url::parse("http://h.test/1")?;
/// # let html = "<h1>The <b>Mill</b></h1><p class=price>£ 10.50</p><a class=tag>old</a><a class=tag>wind</a>";
/// # let page = Page::new(Request::get(url.clone()), Response::html(url, html));
/// let price = Processor::map_text(|text| Ok(text.replace('£', "").trim().parse::<f64>()?.into()));
/// let mut book = page.loader().default_output(Processor::take_first()).input("price", price).output("tags", Processor::identity());
/// book.add_css("title", "h1")?;
/// book.add_xpath("price", "//p[@class = 'price']")?;
/// book.add_css("tags", "a.tag")?;
/// book.add_value("shop", "Mill Street")?;
/// let item = serde_json::Value::from(book.load()?);
/// assert_eq!(item["title"], "The Mill");
/// assert_eq!(item["price"], 10.5);
/// assert_eq!(item["tags"], serde_json::json!(["old", "wind"]));
/// # Ok(()) }
/// ```
pub struct ItemLoader<'a> {
    place: Place<'a>,
    budget: Budget,
    scope: Scope,
    fields: Vec<(String, Vec<Value>)>,
    input: Processors,
    output: Processors,
}

/// The processors of one side.
#[derive(Debug)]
struct Processors {
    of_all: Processor,
    of_field: HashMap<String, Processor>,
}

impl Default for Processors {
    fn default() -> Self {
        Self { of_all: Processor::identity(), of_field: HashMap::new() }
    }
}

impl Processors {
    fn of(&self, field: &str) -> &Processor {
        self.of_field.get(field).unwrap_or(&self.of_all)
    }
}

impl<'a> ItemLoader<'a> {
    fn new(place: Place<'a>) -> Self {
        Self {
            place,
            budget: Budget::default(),
            scope: Scope::new(),
            fields: Vec::new(),
            input: Processors::default(),
            output: Processors::default(),
        }
    }

    /// Sets the input processor of fields that have none of their own.
    pub fn default_input(mut self, processor: Processor) -> Self {
        self.input.of_all = processor;
        self
    }

    /// Sets the output processor of fields that have none of their own.
    pub fn default_output(mut self, processor: Processor) -> Self {
        self.output.of_all = processor;
        self
    }

    /// Sets the input processor of a field. It gets the list of values of each call that adds some.
    pub fn input(mut self, field: impl Into<String>, processor: Processor) -> Self {
        self.input.of_field.insert(field.into(), processor);
        self
    }

    /// Sets the output processor of a field. It gets the list of all values of the field.
    pub fn output(mut self, field: impl Into<String>, processor: Processor) -> Self {
        self.output.of_field.insert(field.into(), processor);
        self
    }

    /// Declares a prefix of a namespace for XPath expressions.
    pub fn prefix(mut self, prefix: &str, uri: &str) -> Self {
        self.scope = self.scope.prefix(prefix, uri);
        self
    }

    /// Adds what a CSS selector finds; elements give the text inside them.
    ///
    /// # Errors
    /// The selector is not valid, a processor fails, or the limits of [`Page::item`] are exceeded. The message names page and field.
    pub fn add_css(&mut self, field: &str, css: &str) -> Result<&mut Self> {
        self.add(field, |part, _| texts(&part.find_css(css)?))
    }

    /// Adds what an XPath expression selects; elements give the text inside them.
    ///
    /// # Errors
    /// As [`add_css`](Self::add_css).
    pub fn add_xpath(&mut self, field: &str, path: &str) -> Result<&mut Self> {
        self.add(field, |part, scope| texts(&part.find_xpath(path, scope)?))
    }

    /// Adds what a JSONPath selects from the body, as it stands there. A null is nothing.
    ///
    /// # Errors
    /// As [`add_css`](Self::add_css), or the body is not JSON.
    pub fn add_json(&mut self, field: &str, path: &str) -> Result<&mut Self> {
        self.add(field, |part, _| {
            part.find_json(path)?.iter().filter_map(|found| Value::from_found(found).transpose()).collect()
        })
    }

    /// Adds a value; a list adds its values one by one.
    ///
    /// # Errors
    /// A processor fails.
    pub fn add_value(&mut self, field: &str, value: impl Into<Value>) -> Result<&mut Self> {
        let mut values = Vec::new();
        flatten(value.into(), &mut values);
        self.add(field, |_, _| Ok(values))
    }

    /// The values that a field has so far.
    pub fn values(&self, field: &str) -> &[Value] {
        self.fields.iter().find(|(name, _)| name == field).map_or(&[], |(_, values)| values)
    }

    /// Removes the values of a field.
    pub fn clear(&mut self, field: &str) {
        self.fields.retain(|(name, _)| name != field);
    }

    /// Makes the item: the fields in the order in which they were first added to. A field is left out if its output is null, as that of
    /// [`Processor::take_first`] without a value.
    ///
    /// # Errors
    /// An output processor fails.
    pub fn load(self) -> Result<Map<String, Value>> {
        let url = self.page().url().clone();
        let mut item = Map::new();
        for (field, values) in self.fields {
            let value = self.output.of(&field).apply(Value::Array(values));
            let value = value.map_err(|error| named(error, &field, &url))?;
            if !value.is_null() {
                item.insert(field, value);
            }
        }
        Ok(item)
    }

    /// Makes the item, as a type of yours.
    ///
    /// # Errors
    /// As [`load`](Self::load), or the fields do not fit the type.
    pub fn load_as<T: DeserializeOwned>(self) -> Result<T> {
        let url = self.page().url().clone();
        let item = Value::Object(self.load()?);
        serde_json::from_value(item).map_err(|cause| Error::from(cause).context(format!("item of {url}")))
    }

    fn page(&self) -> &'a Page {
        self.place.page()
    }

    fn add(
        &mut self,
        field: &str,
        find: impl FnOnce(&PagePart<'_>, &Scope) -> Result<Vec<Value>>,
    ) -> Result<&mut Self> {
        let found = find(&PagePart::new(self.place, &self.budget), &self.scope);
        let added = found.and_then(|found| self.input.of(field).apply(Value::Array(found)));
        let added = added.map_err(|error| named(error, field, self.page().url()))?;
        let at = match self.fields.iter().position(|(name, _)| name == field) {
            Some(at) => at,
            None => {
                self.fields.push((field.to_owned(), Vec::new()));
                self.fields.len() - 1
            }
        };
        flatten(added, &mut self.fields[at].1);
        Ok(self)
    }
}

impl fmt::Debug for ItemLoader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemLoader").field("fields", &self.fields).finish_non_exhaustive()
    }
}

impl Page {
    /// Begins an item of the page whose fields are added at run time.
    pub fn loader(&self) -> ItemLoader<'_> {
        ItemLoader::new(Place::Page(self))
    }
}

impl<'a> Element<'a> {
    /// Begins an item of the element whose fields are added at run time. Its selectors look inside the element.
    pub fn loader(&self) -> ItemLoader<'a> {
        ItemLoader::new(Place::Element(*self))
    }
}

impl<'a> PageNode<'a> {
    /// Begins an item of the node whose fields are added at run time, by XPath from the node.
    pub fn loader(&self) -> ItemLoader<'a> {
        ItemLoader::new(Place::Node(*self))
    }
}

fn named(error: Error, field: &str, url: &url::Url) -> Error {
    error.context(field.to_owned()).context(format!("item of {url}"))
}

fn texts(found: &[FoundValue<'_>]) -> Result<Vec<Value>> {
    let text = |value: &FoundValue<'_>| Ok(value.text()?.map(|text| Value::from(text.into_owned())));
    found.iter().filter_map(|value| text(value).transpose()).collect()
}

/// Adds a value to a list: the values of a list one by one, and null not at all.
fn flatten(value: Value, list: &mut Vec<Value>) {
    match value {
        Value::Null => {}
        Value::Array(values) => values.into_iter().for_each(|value| flatten(value, list)),
        value => list.push(value),
    }
}

/// What is done with the values of a field of an [`ItemLoader`]. It gets a list, and gives a list or one value.
#[derive(Clone)]
pub struct Processor(Kind);

type Function = Arc<dyn Fn(Value) -> Result<Value> + Send + Sync>;

#[derive(Clone)]
enum Kind {
    Identity,
    TakeFirst,
    Join(String),
    Compose(Vec<Processor>),
    /// Of each value.
    Map(Function),
    /// Of the whole list.
    Whole(Function),
}

impl Processor {
    /// Leaves the list as it is.
    pub const fn identity() -> Self {
        Self(Kind::Identity)
    }

    /// Gives the first value that is not an empty text, or null.
    pub const fn take_first() -> Self {
        Self(Kind::TakeFirst)
    }

    /// Makes one text of all values, or null of none.
    pub fn join(separator: impl Into<String>) -> Self {
        Self(Kind::Join(separator.into()))
    }

    /// Does one after the other, until one gives null.
    pub fn compose(processors: impl IntoIterator<Item = Self>) -> Self {
        Self(Kind::Compose(processors.into_iter().collect()))
    }

    /// Calls a function for each value. Null leaves the value out, and a list stands for several values. Several functions are
    /// [composed](Self::compose).
    pub fn map(function: impl Fn(Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self(Kind::Map(Arc::new(function)))
    }

    /// Calls a function for the text of each value; other values stay as they are.
    pub fn map_text(function: impl Fn(&str) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self::map(move |value| match &value {
            Value::String(text) => function(text)
                .map_err(|why| Error::msg(format!("{} cannot be converted: {why}", shown(text)))),
            _ => Ok(value),
        })
    }

    /// Calls a function for the whole list.
    pub fn whole(function: impl Fn(Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        Self(Kind::Whole(Arc::new(function)))
    }

    /// Takes what a regular expression finds in each text: of each match its first group that took part, or all of it if there is none.
    ///
    /// # Errors
    /// The expression is not valid.
    pub fn regex(pattern: &str) -> Result<Self> {
        let regex = Regex::new(pattern)?;
        Ok(Self::map_text(move |text| {
            Ok(if has_groups(&regex) {
                let groups = regex.captures_iter(text);
                groups.filter_map(|groups| Some(Value::from(first_group(&groups)?.as_str()))).collect()
            } else {
                regex.find_iter(text).map(|found| Value::from(found.as_str())).collect()
            })
        }))
    }

    /// Takes what a JSONPath selects from each value; a text is read as JSON.
    ///
    /// # Errors
    /// The path is not valid.
    pub fn select_json(path: &str) -> Result<Self> {
        // Each thread has its compiled paths.
        compiled(path)?;
        let path = path.to_owned();
        Ok(Self::map(move |value| {
            let value = match value {
                Value::String(text) => serde_json::from_str(&text).map_err(|cause| {
                    Error::from(cause).context(format!("{} is not JSON", shown(text.trim())))
                })?,
                value => value,
            };
            let path = compiled(&path)?;
            let (found, _) = path.select_counted(&value, Limits::default())?;
            Ok(found.into_iter().cloned().collect())
        }))
    }

    fn apply(&self, list: Value) -> Result<Value> {
        match &self.0 {
            Kind::Identity => Ok(list),
            Kind::TakeFirst => Ok(values(list).into_iter().find(|value| *value != "").unwrap_or_default()),
            Kind::Join(separator) => {
                let text = |value: Value| match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                let texts: Vec<String> = values(list).into_iter().map(text).collect();
                Ok(if texts.is_empty() { Value::Null } else { texts.join(separator).into() })
            }
            Kind::Compose(all) => all.iter().try_fold(list, |value, next| match value {
                Value::Null => Ok(Value::Null),
                value => next.apply(value),
            }),
            Kind::Map(function) => {
                values(list).into_iter().map(|value| function(value)).collect::<Result<Vec<_>>>().map(
                    |given| {
                        let mut list = Vec::new();
                        given.into_iter().for_each(|value| flatten(value, &mut list));
                        Value::Array(list)
                    },
                )
            }
            Kind::Whole(function) => function(list),
        }
    }
}

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Identity => f.write_str("Identity"),
            Kind::TakeFirst => f.write_str("TakeFirst"),
            Kind::Join(separator) => f.debug_tuple("Join").field(separator).finish(),
            Kind::Compose(all) => f.debug_list().entries(all).finish(),
            Kind::Map(_) => f.write_str("Map"),
            Kind::Whole(_) => f.write_str("Whole"),
        }
    }
}

/// The values of what a processor gets: those of a list, or the one value.
fn values(value: Value) -> Vec<Value> {
    let mut list = Vec::new();
    flatten(value, &mut list);
    list
}
