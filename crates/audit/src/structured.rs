//! Structured data: the items that pages describe for programs, by JSON-LD, microdata or RDFa.
//!
//! Only what the page says is told: no vocabulary is known here, and no context is fetched.

use std::path::Path;

use huntsman_crawler::{MicrodataItem, MicrodataValue, Page, Result};
use memchr::memchr2_iter;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::audit::Audit;
use crate::page::AuditedPage;
use crate::place::Sought;
use crate::rules::json_ld_text;
use crate::tables::Table;

/// Items of a page that are kept.
const MAX_ITEMS: usize = 500;
/// Levels of JSON-LD that are looked at.
const MAX_DEPTH: usize = 32;
/// Characters of a text.
const MAX_TEXT: usize = 200;
const COLUMNS: [&str; 9] = ["url", "format", "type", "name", "id", "within", "properties", "line", "column"];

/// How an item is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DataFormat {
    /// A script with the type `application/ld+json`.
    JsonLd,
    /// The attributes `itemscope` and `itemprop`.
    Microdata,
    /// The attributes `typeof` and `property`.
    Rdfa,
}

impl DataFormat {
    fn name(self) -> &'static str {
        match self {
            Self::JsonLd => "json-ld",
            Self::Microdata => "microdata",
            Self::Rdfa => "rdfa",
        }
    }
}

/// An item that a page describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DataItem {
    /// How it is written.
    pub format: DataFormat,
    /// Its types as written, such as `Product` or `https://schema.org/Product`.
    pub types: Vec<String>,
    /// The value of its property `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The type of the item whose property it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The names of its properties.
    pub properties: Vec<String>,
    /// Line and column: of the script of JSON-LD, or of the type of another item, as far as it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<(u32, u32)>,
}

/// The items of a page.
pub(crate) fn of(page: &AuditedPage<'_>) -> Vec<DataItem> {
    let text = page.page().scanned().1;
    let mut items = Vec::new();
    for span in &page.facts().semantics.json_ld {
        // What is no JSON is an issue of its own.
        if let Ok(value) = serde_json::from_str(json_ld_text(span.of(text))) {
            let place = page.place(span.start);
            of_json_ld(&value, None, (place.line, place.column), 0, &mut items);
        }
    }
    // A tree is made only of pages that seem to have what is looked for in it.
    if mentions(text, b"itemscope") {
        let mut sought = Sought::of(text);
        let found = page.page().microdata().map_or_else(|_| Vec::new(), |found| found.items);
        found.iter().for_each(|item| of_microdata(item, None, &mut sought, &mut items));
    }
    if mentions(text, b"typeof") {
        of_rdfa(page.page(), text, &mut items);
    }
    items.truncate(MAX_ITEMS);
    items
}

/// Whether a source has the name of an attribute anywhere, in any case.
fn mentions(text: &str, name: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let begins = memchr2_iter(name[0], name[0].to_ascii_uppercase(), bytes);
    begins
        .map(|at| &bytes[at..])
        .any(|rest| rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name))
}

fn short(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TEXT).collect()
}

fn of_json_ld(value: &Value, within: Option<&str>, at: (u32, u32), depth: usize, items: &mut Vec<DataItem>) {
    if depth > MAX_DEPTH || items.len() >= MAX_ITEMS {
        return;
    }
    let node = match value {
        Value::Array(values) => {
            return values.iter().for_each(|value| of_json_ld(value, within, at, depth + 1, items));
        }
        Value::Object(node) => node,
        _ => return,
    };
    let types: Vec<String> = match node.get("@type") {
        Some(Value::String(name)) => vec![short(name)],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(short).collect(),
        _ => Vec::new(),
    };
    let text = |key: &str| node.get(key).and_then(Value::as_str).map(short);
    let of_type = types.first().cloned();
    if of_type.is_some() {
        let properties = node.keys().filter(|key| !key.starts_with('@')).map(|key| short(key)).collect();
        items.push(DataItem {
            format: DataFormat::JsonLd,
            types,
            name: text("name"),
            id: text("@id"),
            within: within.map(str::to_owned),
            properties,
            at: Some(at),
        });
    }
    let inner = of_type.as_deref().or(within);
    for value in node.iter().filter(|(key, _)| *key != "@context").map(|(_, value)| value) {
        of_json_ld(value, inner, at, depth + 1, items);
    }
}

fn of_microdata(
    item: &MicrodataItem,
    within: Option<&str>,
    sought: &mut Sought<'_>,
    items: &mut Vec<DataItem>,
) {
    if items.len() >= MAX_ITEMS {
        return;
    }
    let mut properties: Vec<String> = item.properties.iter().map(|(name, _)| short(name)).collect();
    properties.dedup();
    let name = item.properties.iter().find_map(|(name, value)| match value {
        MicrodataValue::Text(text) if name == "name" => Some(short(text)),
        _ => None,
    });
    let types: Vec<String> = item.types.iter().map(|name| short(name)).collect();
    let at = item.types.first().and_then(|name| sought.next(name));
    let of_type = types.first().cloned();
    let (id, within) = (item.id.clone(), within.map(str::to_owned));
    items.push(DataItem { format: DataFormat::Microdata, types, name, id, within, properties, at });
    for (_, value) in &item.properties {
        if let MicrodataValue::Item(inner) = value {
            of_microdata(inner, of_type.as_deref(), sought, items);
        }
    }
}

/// Items of RDFa: elements with `typeof`. A property belongs to the nearest of them around it.
fn of_rdfa(page: &Page, text: &str, items: &mut Vec<DataItem>) {
    let Ok(elements) = page.select("[typeof]") else { return };
    let mut sought = Sought::of(text);
    for element in elements.into_iter().take(MAX_ITEMS) {
        let attribute = |name: &str| element.attr(name).map(|value| value.trim().to_owned());
        let given = attribute("typeof").unwrap_or_default();
        let types: Vec<String> = given.split_whitespace().map(short).collect();
        if types.is_empty() {
            continue;
        }
        // A property belongs to the nearest element with a type around it: to one with as many types around it as there are up to here.
        let one = |path: &str| element.xpath(path).ok().and_then(|found| found.get());
        let depth = one("count(ancestor-or-self::*[@typeof])").unwrap_or_default();
        let of_this = format!("descendant::*[@property][count(ancestor::*[@typeof])={depth}]");
        let found = element.xpath(&format!("{of_this}/@property"));
        let found = found.map_or_else(|_| Vec::new(), |found| found.get_all().to_vec());
        let mut properties: Vec<String> = found.iter().map(|name| short(name)).collect();
        properties.dedup();
        let named = format!("{of_this}[@property='name' or @property='schema:name'][1]");
        let name = one(&format!("string({named}/@content)")).filter(|text| !text.is_empty());
        let name = name.or_else(|| one(&format!("string({named})"))).map(|text| short(&text));
        let within = one("string(ancestor::*[@typeof][1]/@typeof)").map(|text| short(&text));
        let id = attribute("resource").or_else(|| attribute("about"));
        let at = sought.next(&given);
        let [name, within] = [name, within].map(|text| text.filter(|text| !text.is_empty()));
        items.push(DataItem { format: DataFormat::Rdfa, types, name, id, within, properties, at });
    }
}

impl Audit {
    /// Writes `structured.csv`: the items of each page.
    pub(crate) fn write_structured(&self, folder: &Path) -> Result<()> {
        let mut table = Table::with_columns(&folder.join("structured.csv"), &COLUMNS)?;
        self.each_answer(&mut |record, _| {
            for item in record.html.iter().flat_map(|html| &html.structured) {
                table.row(&row(&record.url, item))?;
            }
            Ok(())
        })?;
        table.finish()
    }
}

fn row(url: &str, item: &DataItem) -> Value {
    let row: Map<String, Value> = [
        ("url", json!(url)),
        ("format", json!(item.format.name())),
        ("type", json!(item.types.join(" "))),
        ("name", json!(item.name)),
        ("id", json!(item.id)),
        ("within", json!(item.within)),
        ("properties", json!(item.properties.join(" "))),
        ("line", json!(item.at.map(|at| at.0))),
        ("column", json!(item.at.map(|at| at.1))),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    row.into()
}
