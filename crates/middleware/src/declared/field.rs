//! Fields of the items of a declared spider: where their values come from, and of which type they are.

use huntsman_crawler::{Error, Json, JsonSelection, Page, PageKind, Result};
use regex::Regex;
use serde_json::{Number, Value};

use super::item::Place;

/// A field of an item.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) query: Query,
    pub(super) re: Option<Regex>,
    pub(super) join: Option<String>,
    /// The type; without one, a value of JSON stays what it is, and everything else is a text.
    pub(super) kind: Option<Kind>,
    pub(super) default: Option<Value>,
    pub(super) required: bool,
}

/// Where values come from.
#[derive(Debug)]
pub(super) enum Query {
    Css(String),
    XPath(String),
    Json { path: String, script: Option<String> },
    Source(PageField),
}

/// What is known of a page without reading it.
#[derive(Clone, Copy, Debug)]
pub(super) enum PageField {
    Url,
    RequestedUrl,
    Status,
    Title,
    LinkDepth,
    Body,
}

impl PageField {
    /// The names in files.
    pub(super) const NAMES: [(&str, Self); 6] = [
        ("url", Self::Url),
        ("requested_url", Self::RequestedUrl),
        ("status", Self::Status),
        ("title", Self::Title),
        ("depth", Self::LinkDepth),
        ("body", Self::Body),
    ];

    fn of(self, page: &Page) -> Option<Value> {
        Some(match self {
            Self::Url => page.url().as_str().into(),
            Self::RequestedUrl => page.request().requested_url().into(),
            Self::Status => page.response().status.as_u16().into(),
            Self::Title => page.title()?.into(),
            Self::LinkDepth => page.request().depth.into(),
            Self::Body => page.body_text().into(),
        })
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    Integer,
    Bool,
    Url,
    List,
}

impl Kind {
    /// The names in files.
    pub(super) const NAMES: [(&str, Self); 6] = [
        ("string", Self::Text),
        ("number", Self::Number),
        ("integer", Self::Integer),
        ("bool", Self::Bool),
        ("url", Self::Url),
        ("list", Self::List),
    ];
}

impl Field {
    /// The value of the field: null if nothing was found, and there is no default.
    pub(super) fn read(&self, page: &Page, place: Place<'_>) -> Result<Value> {
        let mut values = self.values(page, place)?;
        if let Some(re) = &self.re {
            values = values.iter().flat_map(|value| matches(re, &text_of(value))).map(Value::from).collect();
        }
        for value in &mut values {
            if let Value::String(text) = value {
                *text = text.trim().to_owned();
            }
        }
        values.retain(|value| !matches!(value, Value::Null) && value.as_str() != Some(""));
        if let Some(between) = &self.join
            && !values.is_empty()
        {
            let texts: Vec<String> = values.iter().map(text_of).collect();
            values = vec![Value::from(texts.join(between))];
        }
        if values.is_empty() {
            return self.missing();
        }
        let Some(kind) = self.kind else { return Ok(values.swap_remove(0)) };
        if kind == Kind::List {
            return Ok(match &mut values[..] {
                // A list of JSON is one already.
                [one] if one.is_array() => one.take(),
                _ => Value::Array(values),
            });
        }
        typed(kind, values.swap_remove(0), page)
    }

    fn missing(&self) -> Result<Value> {
        match &self.default {
            Some(value) => Ok(value.clone()),
            None if self.required => {
                Err(Error::msg(format!("it is required, and {} finds nothing", self.query.shown())))
            }
            None if self.kind == Some(Kind::List) => Ok(Value::Array(Vec::new())),
            None => Ok(Value::Null),
        }
    }

    fn values(&self, page: &Page, place: Place<'_>) -> Result<Vec<Value>> {
        let texts = |selection: huntsman_crawler::Selection| {
            selection.get_all().iter().cloned().map(Value::from).collect()
        };
        match (&self.query, place) {
            (Query::Source(field), _) => Ok(field.of(page).into_iter().collect()),
            (Query::Css(css), Place::Element(element)) => element.css(css).map(texts),
            (Query::Css(css), _) => page.css(css).map(texts),
            (Query::XPath(path), Place::Element(element)) => element.xpath(path).map(texts),
            (Query::XPath(path), Place::Node(node)) => node.xpath(path).map(texts),
            (Query::XPath(path), _) => page.xpath(path).map(texts),
            (Query::Json { path, script: None }, Place::Json(node)) => copies(&node.json_path(path)?),
            (Query::Json { path, script: Some(script) }, _) => match page.find_script_json(script)? {
                Some(json) => of_json(&json, path),
                None => Ok(Vec::new()),
            },
            (Query::Json { path, script: None }, _) => match page.json_body() {
                Ok(json) => of_json(json, path),
                Err(_) if page.kind() != PageKind::Json => Ok(Vec::new()),
                Err(error) => Err(error),
            },
        }
    }
}

impl Query {
    /// The query in words.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Css(css) => format!("css \"{}\"", css.escape_debug()),
            Self::XPath(path) => format!("xpath \"{}\"", path.escape_debug()),
            Self::Json { path, .. } => format!("json \"{}\"", path.escape_debug()),
            Self::Source(_) => "source".to_owned(),
        }
    }
}

fn of_json(json: &Json, path: &str) -> Result<Vec<Value>> {
    copies(&json.json_path(path)?)
}

/// Copies of selected values.
fn copies(selection: &JsonSelection<'_>) -> Result<Vec<Value>> {
    // Values that contain each other can be far larger than their document.
    selection.selection()?;
    Ok(selection.nodes().map(|node| node.value().clone()).collect())
}

/// The groups of each match one after the other, or the whole match if there are no groups.
fn matches(re: &Regex, text: &str) -> Vec<String> {
    let groups = if re.captures_len() > 1 { 1..re.captures_len() } else { 0..1 };
    let found = re.captures_iter(text);
    found
        .flat_map(|captures| {
            groups
                .clone()
                .map(move |group| captures.get(group).map_or_else(String::new, |m| m.as_str().to_owned()))
        })
        .collect()
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn typed(kind: Kind, value: Value, page: &Page) -> Result<Value> {
    let text = text_of(&value);
    let no = |what: &str| {
        let shown: String = text.chars().take(100).flat_map(char::escape_debug).collect();
        Err(Error::msg(format!("\"{shown}\" is not {what}")))
    };
    match kind {
        Kind::Text | Kind::List => Ok(Value::from(text)),
        Kind::Integer => match text.parse::<i64>() {
            Ok(number) => Ok(number.into()),
            Err(_) => no("an integer; `re` takes the digits out of a text"),
        },
        Kind::Number => match (value, text.parse::<Number>()) {
            (Value::Number(number), _) | (_, Ok(number)) => Ok(Value::Number(number)),
            _ => match text.parse::<f64>().ok().and_then(Number::from_f64) {
                Some(number) => Ok(Value::Number(number)),
                None => no("a number; `re` takes the digits out of a text"),
            },
        },
        Kind::Bool => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true.into()),
            "false" | "no" | "off" | "0" => Ok(false.into()),
            _ => no("true or false"),
        },
        Kind::Url => match page.base().join(&text) {
            Ok(url) => Ok(url.as_str().into()),
            Err(_) => no("a URL"),
        },
    }
}
