//! Linked data as typed values: nodes are found by their `@type`, wherever they stand, and references within a page are resolved.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::json::MAX_VALUES;
use crate::type_name::type_name;

/// Values that may be given when references are resolved. Beyond it references stay as they are: nodes that refer to each other twice would
/// double with each step.
const MAX_COPIED: usize = 100_000;
/// Deepest chain of references that is resolved.
const MAX_CHAIN: usize = 16;

/// The linked data of a page: nodes with a `@type`, in lists, in `@graph`, and within each other.
#[derive(Clone, Debug, Default)]
pub struct LinkedData {
    values: Vec<Value>,
}

impl LinkedData {
    /// Linked data of the values of all blocks.
    pub fn new(values: Vec<Value>) -> Self {
        Self { values }
    }

    /// The values as they stand on the page.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The nodes of a type, in the order of the page, those within other nodes behind these. The name is compared without the vocabulary:
    /// `Product` finds `Product`, `schema:Product` and `https://schema.org/Product`, and a list of types that has one of them.
    ///
    /// A reference `{"@id": "..."}` to another node of the page is replaced by that node; one to itself or to a node above it stays.
    ///
    /// # Errors
    /// The nodes have more than four million values together; nodes of one type within each other are given again and again.
    pub fn of_type(&self, name: &str) -> Result<Vec<Value>, Error> {
        let mut by_id = HashMap::new();
        for node in self.nodes() {
            if let Some(id) = node.get("@id").and_then(Value::as_str)
                && node.len() > 1
            {
                // If a node is described in several places, the longest description counts.
                let known = by_id.entry(id).or_insert(node);
                if known.len() < node.len() {
                    *known = node;
                }
            }
        }
        let wanted = self.nodes().into_iter().filter(|node| type_of(node).any(|of| of == name));
        let mut resolver = Resolver { by_id: &by_id, chain: Vec::new(), copied: 0 };
        wanted
            .map(|node| {
                let copy = resolver.object(node);
                match resolver.copied > MAX_VALUES {
                    true => Err(Error::new(format!(
                        "linked data: the nodes of the type {name} have more than {MAX_VALUES} values"
                    ))),
                    false => Ok(copy),
                }
            })
            .collect()
    }

    /// The nodes whose type is the name of a struct, as typed values: see [`of_type`](Self::of_type) and [`type_name`].
    ///
    /// # Errors
    /// A node does not have the shape of the struct (the message names the node and the field), or `T` is no struct.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Vec<T>, Error> {
        let name = type_name::<T>().ok_or_else(|| {
            Error::new("linked data is read into a struct, whose name (or #[serde(rename = \"...\")]) is the @type that is wanted")
        })?;
        self.read_type(name)
    }

    /// Like [`read`](Self::read), with the name of the type given: for a struct with another name, or for several types in one struct.
    ///
    /// # Errors
    /// A node does not have the shape of `T`, or the nodes have too many values.
    pub fn read_type<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Error> {
        let nodes = self.of_type(name)?.into_iter().enumerate();
        nodes
            .map(|(index, node)| {
                T::deserialize(node)
                    .map_err(|why| Error::new(format!("linked data, {name} number {}: {why}", index + 1)))
            })
            .collect()
    }

    /// All objects, outer ones before those within them.
    fn nodes(&self) -> Vec<&Map<String, Value>> {
        let (mut found, mut open) = (Vec::new(), std::collections::VecDeque::from_iter(&self.values));
        while let Some(value) = open.pop_front() {
            match value {
                Value::Array(list) => list.iter().rev().for_each(|value| open.push_front(value)),
                Value::Object(map) => {
                    found.push(map);
                    open.extend(map.values().filter(|value| value.is_array() || value.is_object()));
                }
                _ => {}
            }
        }
        found
    }
}

/// The types of a node without their vocabulary: `Product` of `https://schema.org/Product`.
pub fn type_of(node: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let types = match node.get("@type") {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    types
        .iter()
        .filter_map(Value::as_str)
        .map(|name| name.trim().rsplit(['/', '#', ':']).next().unwrap_or_default())
}

struct Resolver<'a> {
    by_id: &'a HashMap<&'a str, &'a Map<String, Value>>,
    /// The ids of the nodes above.
    chain: Vec<&'a str>,
    copied: usize,
}

impl<'a> Resolver<'a> {
    fn value(&mut self, value: &'a Value) -> Value {
        self.copied += 1;
        match value {
            Value::Array(list) => list.iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => self.object(map),
            other => other.clone(),
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>) -> Value {
        let id = map.get("@id").and_then(Value::as_str);
        let described = match id {
            Some(id) if map.len() == 1 && self.may_go_to(id) => self.by_id.get(id).copied(),
            _ => None,
        };
        let map = described.unwrap_or(map);
        let is_open = id.filter(|_| map.len() > 1);
        self.chain.extend(is_open);
        let entries = map.iter().map(|(name, value)| (name.clone(), self.value(value)));
        let copy = Value::Object(entries.collect());
        if is_open.is_some() {
            self.chain.pop();
        }
        copy
    }

    fn may_go_to(&self, id: &str) -> bool {
        self.copied < MAX_COPIED && self.chain.len() < MAX_CHAIN && !self.chain.contains(&id)
    }
}

/// One value or a list of them: linked data has `"image": "a.png"` on one page and `"image": ["a.png", "b.png"]` on the next.
///
/// ```
/// use huntsman_page_data::OneOrMany;
///
/// let images: OneOrMany<String> = serde_json::from_str("\"a.png\"")?;
/// assert_eq!(images.first().map(String::as_str), Some("a.png"));
/// assert_eq!(serde_json::from_str::<OneOrMany<u8>>("[1, 2]")?.into_vec(), [1, 2]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// A list.
    Many(Vec<T>),
    /// A value that stands alone.
    One(T),
}

impl<T> OneOrMany<T> {
    /// The first value; `None` of an empty list.
    pub fn first(&self) -> Option<&T> {
        match self {
            Self::Many(list) => list.first(),
            Self::One(value) => Some(value),
        }
    }

    /// All values.
    pub fn into_vec(self) -> Vec<T> {
        match self {
            Self::Many(list) => list,
            Self::One(value) => vec![value],
        }
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Product {
        name: String,
        offers: Option<Offer>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Offer {
        price: String,
    }

    #[test]
    fn nodes_are_found_wherever_they_stand() {
        let data = LinkedData::new(vec![json!({"@graph": [
            {"@type": "WebPage", "mainEntity": {"@type": ["Thing", "http://schema.org/Product"], "name": "mill",
                "offers": {"@id": "#o"}}},
            {"@type": "schema:Offer", "@id": "#o", "price": "7"},
            {"@type": "Product", "name": "dam"},
        ]})]);
        let names: Vec<Product> = data.read().unwrap();
        let mill = Product { name: "mill".to_owned(), offers: Some(Offer { price: "7".to_owned() }) };
        assert_eq!(names, [Product { name: "dam".to_owned(), offers: None }, mill]);
        assert_eq!(data.read::<Offer>().unwrap().len(), 1);
    }

    #[test]
    fn a_node_of_another_shape_is_told_with_its_field() {
        let data = LinkedData::new(vec![json!({"@type": "Product", "name": 7})]);
        let error = data.read::<Product>().unwrap_err().to_string();
        assert!(error.starts_with("linked data, Product number 1: invalid type: integer `7`"), "{error}");
        assert!(data.read::<String>().unwrap_err().to_string().contains("struct"));
    }

    #[test]
    fn circles_of_references_end() {
        let data = LinkedData::new(vec![
            json!({"@type": "A", "@id": "1", "to": {"@id": "2"}, "self": {"@id": "1"}}),
            json!({"@type": "B", "@id": "2", "to": {"@id": "1"}, "none": {"@id": "9"}}),
        ]);
        let found = data.of_type("A").unwrap();
        assert_eq!(found[0]["to"]["@type"], "B");
        assert_eq!(found[0]["to"]["to"], json!({"@id": "1"}));
        assert_eq!(found[0]["self"], json!({"@id": "1"}));
        assert_eq!(found[0]["to"]["none"], json!({"@id": "9"}));
    }

    #[test]
    fn references_that_double_at_each_step_stay_within_a_limit() {
        let node = |n: u32| json!({"@type": "A", "@id": format!("{n}"), "l": {"@id": format!("{}", n + 1)}, "r": {"@id": format!("{}", n + 1)}});
        let data = LinkedData::new((0..60).map(node).collect());
        assert_eq!(data.of_type("A").unwrap().len(), 60);
    }

    #[test]
    fn nodes_within_each_other_are_given_until_a_limit() {
        let wide = serde_json::json!(vec![0; 100_000]);
        let nested = (0..50).fold(wide, |inside, _| json!({"@type": "A", "in": inside}));
        let error = LinkedData::new(vec![nested]).of_type("A").unwrap_err().to_string();
        assert!(error.contains("more than 4000000 values"), "{error}");
    }
}
