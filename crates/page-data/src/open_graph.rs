//! Open Graph: the `meta` elements that a page has for previews (`og:title`, `og:image:width`), and those of cards (`twitter:card`).

use scraper::{ElementRef, Html};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Prefixes of properties that are read: Open Graph, its types, and what Facebook and Twitter added.
const PREFIXES: [&str; 12] = [
    "og",
    "article",
    "book",
    "business",
    "fb",
    "music",
    "place",
    "product",
    "profile",
    "restaurant",
    "twitter",
    "video",
];

/// Properties whose values are structured: what follows `og:image` with `og:image:` belongs to it.
const STRUCTURED: [&str; 3] = ["image", "video", "audio"];

/// The properties of a page with their values, in the order of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenGraph {
    properties: Vec<(String, String)>,
}

impl OpenGraph {
    /// Reads the `meta` elements whose `property` (or `name`, as many pages write it) begins with a known prefix such as `og:`, `article:`
    /// or `twitter:`. Values are stripped; an element without `content` is passed over.
    pub fn of(html: &Html) -> Self {
        let metas = html
            .tree
            .root()
            .descendants()
            .filter_map(ElementRef::wrap)
            .filter(|e| e.value().name() == "meta");
        let mut properties = Vec::new();
        for meta in metas {
            let attr = |name| meta.value().attr(name);
            let Some(content) = attr("content") else { continue };
            // `property` may name several properties.
            for name in attr("property").or_else(|| attr("name")).unwrap_or_default().split_ascii_whitespace()
            {
                let prefix = name.split_once(':').map(|(prefix, _)| prefix);
                if prefix
                    .is_some_and(|prefix| PREFIXES.iter().any(|known| known.eq_ignore_ascii_case(prefix)))
                {
                    properties.push((name.to_ascii_lowercase(), content.trim().to_owned()));
                }
            }
        }
        Self { properties }
    }

    /// All properties with their values, in the order of the page.
    pub fn properties(&self) -> &[(String, String)] {
        &self.properties
    }

    /// The first value of a property: `get("og:title")`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// All values of a property.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.properties.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// The properties as one object. Names have no `og:`; those of another vocabulary are in an object by its prefix
    /// (`{"article": {"author": ...}}`). A property that is there several times is a list. `image`, `video` and `audio` are always lists
    /// of objects with `url` and what follows it (`width`, `alt`).
    pub fn to_json(&self) -> Value {
        let mut graph = Map::new();
        for (name, value) in &self.properties {
            let Some((prefix, name)) = name.split_once(':') else { continue };
            let (first, detail) = name.split_once(':').unwrap_or((name, "url"));
            if prefix == "og" && STRUCTURED.contains(&first) {
                structured(&mut graph, first, detail, value);
                continue;
            }
            let of_prefix = match prefix {
                "og" => &mut graph,
                // `og:video` would be in the way of `video:duration`.
                "video" => entry(&mut graph, "video_details"),
                other => entry(&mut graph, other),
            };
            add(of_prefix, name, value);
        }
        Value::Object(graph)
    }

    /// The properties as a typed value; see [`to_json`](Self::to_json) for the shape. All values are texts.
    ///
    /// # Errors
    /// They do not have the shape of `T`; the message names the field.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(self.to_json()).map_err(|why| Error::new(format!("Open Graph: {why}")))
    }
}

/// Adds to a structured property: its address begins a new value, unless the last one has none yet.
fn structured(graph: &mut Map<String, Value>, name: &str, detail: &str, value: &str) {
    let list = graph.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(list) = list else { return };
    let is_new = match list.last().and_then(Value::as_object) {
        None => true,
        // `og:image` and `og:image:url` say the same.
        Some(last) => detail == "url" && last.get("url").is_some_and(|known| known != value),
    };
    if is_new {
        list.push(Value::Object(Map::new()));
    }
    if let Some(Value::Object(last)) = list.last_mut() {
        last.entry(detail).or_insert_with(|| Value::from(value));
    }
}

/// The object of a vocabulary.
fn entry<'a>(graph: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let value = graph.entry(name).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        // `og:article` beside `article:author`: the latter counts.
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("the value was made an object above")
}

/// Adds a value; from the second on, they are a list.
fn add(map: &mut Map<String, Value>, name: &str, value: &str) {
    let value = Value::from(value);
    match map.get_mut(name) {
        None => drop(map.insert(name.to_owned(), value)),
        Some(Value::Array(list)) => list.push(value),
        Some(known) => *known = Value::Array(vec![known.take(), value]),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    const HTML: &str = "<meta property=og:title content=' Mills '><meta property=og:image content=a.png>\
        <meta property=og:image:width content=10><meta name=og:image content=b.png><meta property=og:image:url content=b.png>\
        <meta property='og:image:alt' content=B><meta property=article:tag content=x><meta property=article:tag content=y>\
        <meta name=twitter:card content=summary><meta name=description content=no><meta property=og:empty>";

    #[test]
    fn properties_are_in_order_and_structured_ones_together() {
        let graph = OpenGraph::of(&Html::parse_document(HTML));
        assert_eq!(graph.properties().len(), 9);
        assert_eq!(graph.get("og:title"), Some("Mills"));
        assert_eq!(graph.get_all("og:image").collect::<Vec<_>>(), ["a.png", "b.png"]);
        let expected = json!({
            "title": "Mills",
            "image": [{"url": "a.png", "width": "10"}, {"url": "b.png", "alt": "B"}],
            "article": {"tag": ["x", "y"]},
            "twitter": {"card": "summary"},
        });
        assert_eq!(graph.to_json(), expected);
    }

    #[test]
    fn properties_are_read_into_a_struct() {
        #[derive(Deserialize)]
        struct Preview {
            title: String,
            image: Vec<Image>,
        }
        #[derive(Deserialize)]
        struct Image {
            url: String,
        }
        let preview: Preview = OpenGraph::of(&Html::parse_document(HTML)).read().unwrap();
        assert_eq!((preview.title.as_str(), preview.image[1].url.as_str()), ("Mills", "b.png"));
        let error = OpenGraph::default().read::<Preview>().err().unwrap().to_string();
        assert_eq!(error, "Open Graph: missing field `title`");
    }

    #[test]
    fn properties_in_each_others_way_are_kept_apart() {
        let html = "<meta property=og:article content=x><meta property=article:author content=A><meta property=og:video content=v>\
            <meta property=video:duration content=9>";
        let graph = OpenGraph::of(&Html::parse_document(html)).to_json();
        assert_eq!(graph["article"], json!({"author": "A"}));
        assert_eq!(
            (&graph["video"], &graph["video_details"]),
            (&json!([{"url": "v"}]), &json!({"duration": "9"}))
        );
    }
}
