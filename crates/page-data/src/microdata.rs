//! Microdata: items that are marked up in HTML by `itemscope`, `itemprop`, `itemref` and `itemtype`, by the algorithm of WHATWG.

use std::collections::{HashMap, HashSet};

use scraper::{ElementRef, Html};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::Url;

use crate::error::Error;
use crate::linked_data::LinkedData;

/// Elements that are looked at for all items of a page. `itemref` can lead to the same elements again and again.
const MAX_STEPS: usize = 1_000_000;
/// What an item counts as, beside its elements.
const ITEM_STEPS: usize = 10;
/// Bytes of all values of a page. Properties within properties have each other's text.
const MAX_TEXT: usize = 64 << 20;
/// Deepest nesting of items.
const MAX_DEPTH: usize = 64;

/// The items of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Microdata {
    /// The items that are no property of another one, in the order of the page.
    pub items: Vec<MicrodataItem>,
}

/// An item: its types, its identity, and its properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MicrodataItem {
    /// The types, mostly one URL such as `https://schema.org/Product`.
    pub types: Vec<String>,
    /// The global identity, as an absolute URL if it is one.
    pub id: Option<String>,
    /// Names and values in the order of the page; a name may be there several times.
    pub properties: Vec<(String, MicrodataValue)>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MicrodataValue {
    /// A text, or a URL that is absolute if it is valid.
    Text(String),
    /// Another item.
    Item(MicrodataItem),
}

impl MicrodataItem {
    /// The values of a property that are texts or URLs.
    pub fn texts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.properties.iter().filter(move |(of, _)| of == name).filter_map(|(_, value)| match value {
            MicrodataValue::Text(text) => Some(text.as_str()),
            MicrodataValue::Item(_) => None,
        })
    }

    /// The item as JSON by the algorithm of WHATWG: `type` and `properties`, whose values are always lists, and `id`.
    pub fn to_json(&self) -> Value {
        let mut properties = Map::new();
        for (name, value) in &self.properties {
            let value = match value {
                MicrodataValue::Text(text) => Value::from(text.as_str()),
                MicrodataValue::Item(item) => item.to_json(),
            };
            if let Value::Array(list) = properties.entry(name.clone()).or_insert_with(|| json!([])) {
                list.push(value);
            }
        }
        let mut item = Map::new();
        if !self.types.is_empty() {
            item.insert("type".to_owned(), json!(self.types));
        }
        if let Some(id) = &self.id {
            item.insert("id".to_owned(), json!(id));
        }
        item.insert("properties".to_owned(), Value::Object(properties));
        Value::Object(item)
    }

    /// The item in the shape of linked data: `@type`, `@id` and the properties; a property with one value is no list.
    fn to_linked(&self) -> Value {
        let one_or_many = |mut values: Vec<Value>| match values.len() {
            1 => values.remove(0),
            _ => Value::Array(values),
        };
        let mut item = Map::new();
        if !self.types.is_empty() {
            item.insert("@type".to_owned(), one_or_many(self.types.iter().map(|of| json!(of)).collect()));
        }
        if let Some(id) = &self.id {
            item.insert("@id".to_owned(), json!(id));
        }
        let mut properties: Vec<(&str, Vec<Value>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (name, value) in &self.properties {
            let value = match value {
                MicrodataValue::Text(text) => Value::from(text.as_str()),
                MicrodataValue::Item(item) => item.to_linked(),
            };
            let place = *places.entry(name).or_insert_with(|| {
                properties.push((name, Vec::new()));
                properties.len() - 1
            });
            properties[place].1.push(value);
        }
        let properties = properties.into_iter();
        item.extend(properties.map(|(name, values)| (name.to_owned(), one_or_many(values))));
        Value::Object(item)
    }
}

impl Microdata {
    /// All items as JSON by the algorithm of WHATWG: `{"items": [...]}`.
    pub fn to_json(&self) -> Value {
        json!({ "items": self.items.iter().map(MicrodataItem::to_json).collect::<Vec<_>>() })
    }

    /// The items whose type is the name of a struct, as typed values, those within other items, too; as of JSON-LD by
    /// [`LinkedData::read`]. All values are texts; a property with several values needs a list or [`OneOrMany`](crate::OneOrMany).
    ///
    /// # Errors
    /// An item does not have the shape of the struct, or `T` is no struct.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        self.as_linked_data().read()
    }

    /// The items in the shape of linked data.
    pub fn as_linked_data(&self) -> LinkedData {
        LinkedData::new(self.items.iter().map(MicrodataItem::to_linked).collect())
    }
}

/// Reads the items of a page. URLs are resolved against `base`.
///
/// An item that is marked as a property, but belongs to no item, is taken as one that stands alone; WHATWG leaves it out, and search engines
/// do not. An item that is a property of itself, by `itemref` or in a circle, is left out there. Texts have their white space collapsed, as a
/// reader sees them; WHATWG keeps it.
///
/// # Errors
/// Items nest too deep (64 levels), or references make them too large (a million elements looked at, 64 MiB of values).
pub fn microdata(html: &Html, base: &Url) -> Result<Microdata, Error> {
    let elements = || html.tree.root().descendants().filter_map(ElementRef::wrap);
    let mut places = Places::default();
    for (number, element) in elements().enumerate() {
        if let Some(id) = element.value().attr("id") {
            places.by_id.entry(id).or_insert(element);
        }
        if element.value().attr("itemref").is_some() {
            places.has_references = true;
        }
        places.numbers.insert(address(element), number);
    }
    let mut reader = Reader { places, base, above: Vec::new(), taken: HashSet::new(), steps: 0, bytes: 0 };
    let is_item = |element: &ElementRef<'_>| element.value().attr("itemscope").is_some();
    let is_property = |element: &ElementRef<'_>| element.value().attr("itemprop").is_some();
    let mut items = Vec::new();
    for top in elements().filter(|element| is_item(element) && !is_property(element)) {
        items.push((reader.place(top), reader.item(top)?));
    }
    // By WHATWG nothing leads to a property outside of all items. Pages have such items all the same.
    let is_within =
        |element: &ElementRef<'_>| element.ancestors().filter_map(ElementRef::wrap).any(|e| is_item(&e));
    for lost in elements().filter(|element| is_item(element) && is_property(element) && !is_within(element)) {
        if !reader.taken.contains(&address(lost)) {
            items.push((reader.place(lost), reader.item(lost)?));
        }
    }
    items.sort_by_key(|(place, _)| *place);
    Ok(Microdata { items: items.into_iter().map(|(_, item)| item).collect() })
}

/// What tells an element from all others of its tree.
fn address(element: ElementRef<'_>) -> usize {
    std::ptr::from_ref(element.value()).addr()
}

/// Where elements are in the document.
#[derive(Default)]
struct Places<'a> {
    by_id: HashMap<&'a str, ElementRef<'a>>,
    has_references: bool,
    numbers: HashMap<usize, usize>,
}

struct Reader<'a> {
    places: Places<'a>,
    base: &'a Url,
    /// The items above, which must not be within themselves.
    above: Vec<usize>,
    /// All items so far.
    taken: HashSet<usize>,
    steps: usize,
    bytes: usize,
}

impl<'a> Reader<'a> {
    /// The number of an element in the document.
    fn place(&self, element: ElementRef<'_>) -> Option<usize> {
        self.places.numbers.get(&address(element)).copied()
    }

    fn item(&mut self, root: ElementRef<'a>) -> Result<MicrodataItem, Error> {
        if self.above.len() >= MAX_DEPTH {
            return Err(Error::new(format!("microdata: items nest deeper than {MAX_DEPTH} levels")));
        }
        self.above.push(address(root));
        self.taken.insert(address(root));
        let attr = |name| root.value().attr(name);
        let types =
            attr("itemtype").unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect();
        let id = attr("itemid").map(|id| self.resolved(id));
        let mut properties = Vec::new();
        for element in self.property_elements(root)? {
            let Some(value) = self.value(element)? else { continue };
            let names = element.value().attr("itemprop").unwrap_or_default();
            let mut seen = HashSet::new();
            for name in names.split_ascii_whitespace() {
                if !seen.insert(name) {
                    continue;
                }
                self.count(name)?;
                if seen.len() > 1 {
                    self.count_value(&value)?;
                }
                properties.push((name.to_owned(), value.clone()));
            }
        }
        self.above.pop();
        Ok(MicrodataItem { types, id, properties })
    }

    /// The elements that are properties of an item, in the order of the document.
    fn property_elements(&mut self, root: ElementRef<'a>) -> Result<Vec<ElementRef<'a>>, Error> {
        self.steps += ITEM_STEPS;
        let mut starts: Vec<ElementRef<'a>> = root.child_elements().collect();
        let references = root.value().attr("itemref").unwrap_or_default().split_ascii_whitespace();
        starts.extend(references.filter_map(|id| self.places.by_id.get(id).copied()));
        starts.reverse();
        let (mut seen, mut found) = (HashSet::from([address(root)]), Vec::new());
        while let Some(element) = starts.pop() {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                let what = "itemref leads to more than the elements that are looked at for a page";
                return Err(Error::new(format!("microdata: {what} ({MAX_STEPS})")));
            }
            // Without references no element can be reached twice.
            if self.places.has_references && !seen.insert(address(element)) {
                continue;
            }
            if element.value().attr("itemscope").is_none() {
                let at = starts.len();
                starts.extend(element.child_elements());
                starts[at..].reverse();
            }
            if element.value().attr("itemprop").is_some_and(|names| !names.trim().is_empty()) {
                found.push(element);
            }
        }
        if self.places.has_references {
            found.sort_by_key(|element| self.place(*element));
        }
        Ok(found)
    }

    /// The value of a property; `None` if it is an item that is above itself.
    fn value(&mut self, element: ElementRef<'a>) -> Result<Option<MicrodataValue>, Error> {
        let attr = |name| element.value().attr(name);
        if attr("itemscope").is_some() {
            let is_circle = self.above.contains(&address(element));
            return Ok(if is_circle { None } else { Some(MicrodataValue::Item(self.item(element)?)) });
        }
        let url = |name| attr(name).map_or_else(String::new, |address| self.resolved(address));
        let own = |name| attr(name).unwrap_or_default().trim().to_owned();
        let text = match element.value().name() {
            "meta" => own("content"),
            "audio" | "embed" | "iframe" | "img" | "source" | "track" | "video" => url("src"),
            "a" | "area" | "link" => url("href"),
            "object" => url("data"),
            "data" | "meter" => own("value"),
            "time" if attr("datetime").is_some() => own("datetime"),
            _ => self.text(element)?,
        };
        self.count(&text)?;
        Ok(Some(MicrodataValue::Text(text)))
    }

    /// The text inside an element, with white space collapsed.
    fn text(&self, element: ElementRef<'_>) -> Result<String, Error> {
        let mut text = String::new();
        for piece in element.text() {
            for (index, word) in piece.split_whitespace().enumerate() {
                let is_apart = index > 0 || piece.starts_with(char::is_whitespace);
                if is_apart && !text.is_empty() && !text.ends_with(' ') {
                    text.push(' ');
                }
                text.push_str(word);
            }
            if piece.ends_with(char::is_whitespace) && !text.is_empty() && !text.ends_with(' ') {
                text.push(' ');
            }
            if self.bytes + text.len() > MAX_TEXT {
                return Err(too_much_text());
            }
        }
        text.truncate(text.trim_end().len());
        Ok(text)
    }

    /// An address as an absolute URL; as it stands if it is none.
    fn resolved(&self, address: &str) -> String {
        let address = address.trim();
        self.base.join(address).map_or_else(|_| address.to_owned(), String::from)
    }

    fn count(&mut self, text: &str) -> Result<(), Error> {
        self.bytes += text.len();
        if self.bytes > MAX_TEXT { Err(too_much_text()) } else { Ok(()) }
    }

    /// Counts a value that is given under one more name.
    fn count_value(&mut self, value: &MicrodataValue) -> Result<(), Error> {
        match value {
            MicrodataValue::Text(text) => self.count(text),
            MicrodataValue::Item(item) => item.properties.iter().try_for_each(|(name, value)| {
                self.count(name)?;
                self.count_value(value)
            }),
        }
    }
}

fn too_much_text() -> Error {
    Error::new(format!("microdata: the values take more than {} MiB", MAX_TEXT >> 20))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn read(html: &str) -> Result<Microdata, Error> {
        microdata(&Html::parse_document(html), &Url::parse("http://shop.example/dir/").unwrap())
    }

    #[test]
    fn items_have_values_by_their_elements() {
        let found = read(
            "<div itemscope itemtype='https://schema.org/Product  https://schema.org/Thing' itemid=/mill>\
             <h1 itemprop='name title'>Wind <b>mill</b></h1><img itemprop=image src=m.png><time itemprop=made datetime=2026-11>x</time>\
             <p itemprop=offers itemscope><meta itemprop=price content=' 7 '><data itemprop=n value=3>three</data></p></div>",
        );
        let expected = json!({"items": [{
            "type": ["https://schema.org/Product", "https://schema.org/Thing"],
            "id": "http://shop.example/mill",
            "properties": {
                "name": ["Wind mill"], "title": ["Wind mill"], "image": ["http://shop.example/dir/m.png"], "made": ["2026-11"],
                "offers": [{"properties": {"price": ["7"], "n": ["3"]}}]
            }
        }]});
        assert_eq!(found.unwrap().to_json(), expected);
    }

    #[test]
    fn references_add_properties_in_the_order_of_the_page() {
        let found = read(
            "<p id=b itemprop=second>2</p><div itemscope itemref='b a none'><p itemprop=third>3</p></div><p id=a itemprop=fourth>4</p>",
        );
        let names =
            |item: &MicrodataItem| item.properties.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&found.unwrap().items[0]), ["second", "third", "fourth"]);
    }

    #[test]
    fn circles_of_references_end() {
        let found = read(
            "<div itemscope id=a itemref=b></div><div id=b itemscope itemprop=p itemref=c></div><div id=c itemscope itemprop=q itemref=b></div>",
        );
        assert_eq!(
            found.unwrap().to_json(),
            json!({"items": [{"properties": {"p": [{"properties": {"q": [{"properties": {}}]}}]}}]})
        );
        let own = read("<div itemscope id=a itemref=a><i itemprop=x>1</i></div>").unwrap();
        assert_eq!(own.items[0].properties.len(), 1);
    }

    #[test]
    fn references_that_double_at_each_step_end_at_a_limit() {
        let item = |n: u32| {
            format!(
                "<div id=i{n}><p itemprop=l itemscope itemref=i{0}></p><p itemprop=r itemscope itemref=i{0}></p></div>",
                n + 1
            )
        };
        let html: String = (0..60).map(item).collect();
        let error = read(&format!("<div itemscope itemref=i0></div>{html}")).unwrap_err().to_string();
        assert!(error.contains("1000000"), "{error}");
        let chain: String = (0..100)
            .map(|n| format!("<div id=i{n} itemprop=p itemscope itemref=i{}></div>", n + 1))
            .collect();
        let error = read(&format!("<div itemscope itemref=i0></div>{chain}")).unwrap_err().to_string();
        assert!(error.contains("64 levels"), "{error}");
    }

    #[test]
    fn items_are_read_into_structs() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Product {
            name: String,
            #[serde(default)]
            offers: crate::OneOrMany<Offer>,
        }
        #[derive(Debug, PartialEq, Deserialize)]
        struct Offer {
            price: String,
        }
        let found = read(
            "<div itemscope itemtype=http://schema.org/Product><b itemprop=name>mill</b><p itemprop=offers itemscope>\
             <i itemprop=price>7</i></p></div>",
        );
        let offer = crate::OneOrMany::One(Offer { price: "7".to_owned() });
        assert_eq!(
            found.unwrap().read::<Product>().unwrap(),
            [Product { name: "mill".to_owned(), offers: offer }]
        );
    }

    #[test]
    fn a_property_that_belongs_to_no_item_stands_alone() {
        let found = read(
            "<p itemprop=a itemscope itemref=x><i itemprop=n>1</i></p><p itemscope><i itemprop=n>2</i></p><p id=x itemprop=b itemscope></p>",
        );
        assert_eq!(
            found.unwrap().to_json(),
            json!({"items": [{"properties": {"n": ["1"], "b": [{"properties": {}}]}}, {"properties": {"n": ["2"]}}]})
        );
    }
}
