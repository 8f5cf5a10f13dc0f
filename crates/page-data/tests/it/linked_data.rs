//! JSON-LD, microdata and Open Graph beside extruct; `tests/data/linked_data.py` made the pages and what it finds in them.

use huntsman_page_data::{MicrodataItem, MicrodataValue, OpenGraph, json_ld, microdata};
use scraper::Html;
use serde_json::{Map, Value, json};
use url::Url;

/// An item as extruct writes it: a property with one value is no list.
fn as_extruct(item: &MicrodataItem) -> Value {
    let one_or_many =
        |mut values: Vec<Value>| if values.len() == 1 { values.remove(0) } else { json!(values) };
    let mut found = Map::new();
    if !item.types.is_empty() {
        found.insert("type".to_owned(), one_or_many(item.types.iter().map(|of| json!(of)).collect()));
    }
    if let Some(id) = &item.id {
        found.insert("id".to_owned(), json!(id));
    }
    let mut properties: Map<String, Value> = Map::new();
    for (name, value) in &item.properties {
        let value = match value {
            MicrodataValue::Text(text) => json!(text),
            MicrodataValue::Item(item) => as_extruct(item),
        };
        match properties.get_mut(name) {
            None => drop(properties.insert(name.clone(), value)),
            Some(Value::Array(list)) => list.push(value),
            Some(known) => *known = json!([known.take(), value]),
        }
    }
    found.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(found)
}

#[test]
fn pages_hold_what_extruct_finds_in_them() {
    let table: Value = serde_json::from_str(include_str!("../data/linked_data.json")).unwrap();
    let url = Url::parse(table["url"].as_str().unwrap()).unwrap();
    for page in table["pages"].as_array().unwrap() {
        let (name, html) = (&page["name"], Html::parse_document(page["html"].as_str().unwrap()));
        let blocks: Vec<Value> = json_ld(&html).into_iter().map(Result::unwrap).collect();
        assert_eq!(json!(blocks), page["found"]["json-ld"], "{name}");
        let items: Vec<Value> = microdata(&html, &url).unwrap().items.iter().map(as_extruct).collect();
        assert_eq!(json!(items), page["found"]["microdata"], "{name}");
        let graph = OpenGraph::of(&html);
        let expected: Vec<(String, String)> =
            serde_json::from_value(page["found"]["opengraph"].clone()).unwrap();
        // extruct keeps the white space around a value.
        let expected = expected.into_iter().map(|(name, value)| (name, value.trim().to_owned()));
        assert_eq!(graph.properties(), expected.collect::<Vec<_>>(), "{name}");
    }
}
