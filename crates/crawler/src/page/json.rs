//! JSON of pages: bodies, and values inside scripts, with JSONPath to select from them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use huntsman_json_path::JsonPath;
use huntsman_page_data::{Error as DataError, assigned, read_json, read_lenient};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Page;
use super::element::Selection;
use crate::error::{Error, Result};

/// Compiled paths kept per thread.
const MAX_PATHS: usize = 512;

/// A document of JSON that was read from a page: its body, or a value inside a script.
#[derive(Clone)]
pub struct Json {
    value: Value,
    /// What the value is, for messages: the URL of the page, with the script before it.
    source: String,
}

impl Json {
    /// The whole value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The whole value, without copying it.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// The whole value as a part of itself, from which paths select.
    pub fn root(&self) -> JsonNode<'_> {
        JsonNode { value: &self.value, source: &self.source }
    }

    /// The value as a type of serde.
    ///
    /// # Errors
    /// It does not have that shape; the message names the page.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        self.root().read()
    }

    /// Values by a JSONPath; see [`Page::json_path`].
    ///
    /// # Errors
    /// The path is not valid, or exceeds a limit.
    pub fn json_path(&self, path: &str) -> Result<JsonSelection<'_>> {
        self.root().json_path(path)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("source", &self.source).finish_non_exhaustive()
    }
}

/// A value within JSON of a page.
#[derive(Clone, Copy)]
pub struct JsonNode<'a> {
    value: &'a Value,
    source: &'a str,
}

impl<'a> JsonNode<'a> {
    /// The value.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// The value as text: a string without its quotes, everything else as JSON.
    pub fn text(&self) -> String {
        text_of(self.value)
    }

    /// The value as a type of serde.
    ///
    /// # Errors
    /// It does not have that shape; the message names the page.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(self.value).map_err(|cause| Error::from(cause).context(self.source))
    }

    /// Values by a JSONPath whose `$` is this value.
    ///
    /// # Errors
    /// The path is not valid, or exceeds a limit.
    pub fn json_path(&self, path: &str) -> Result<JsonSelection<'a>> {
        let path = compiled(path)?;
        let values = path.select(self.value).map_err(|cause| Error::from(cause).context(self.source))?;
        Ok(JsonSelection { values, path, source: self.source })
    }
}

impl fmt::Debug for JsonNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonNode").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Values that a JSONPath selected, in the order of the document.
#[derive(Clone)]
pub struct JsonSelection<'a> {
    values: Vec<&'a Value>,
    path: Rc<JsonPath>,
    source: &'a str,
}

impl<'a> JsonSelection<'a> {
    /// The first value as text: a string without its quotes, everything else as JSON. `None` if nothing was selected.
    pub fn get(&self) -> Option<String> {
        self.values.first().map(|value| text_of(value))
    }

    /// The first value as text, or a default.
    pub fn get_or(&self, default: &str) -> String {
        self.get().unwrap_or_else(|| default.to_owned())
    }

    /// All values as texts.
    ///
    /// # Errors
    /// They take more than 64 MiB.
    pub fn get_all(&self) -> Result<Vec<String>> {
        Ok(self.selection()?.get_all().to_vec())
    }

    /// Applies a regular expression to the texts, as [`Selection::re`] does.
    ///
    /// # Errors
    /// The expression is not valid, or the texts take more than 64 MiB.
    pub fn re(&self, expression: &str) -> Result<Vec<String>> {
        self.selection()?.re(expression)
    }

    /// The first result of [`re`](Self::re).
    ///
    /// # Errors
    /// As for `re`.
    pub fn re_first(&self, expression: &str) -> Result<Option<String>> {
        self.selection()?.re_first(expression)
    }

    /// The first value as a type of serde; `None` if nothing was selected.
    ///
    /// # Errors
    /// It does not have that shape; the message names the path and the page.
    pub fn value<T: Deserialize<'a>>(&self) -> Result<Option<T>> {
        self.values.first().map(|value| self.typed(0, value)).transpose()
    }

    /// All values as a type of serde: `page.json_path("$.items[*].price")?.values::<f64>()?`.
    ///
    /// # Errors
    /// A value does not have that shape; the message names it, the path and the page.
    pub fn values<T: Deserialize<'a>>(&self) -> Result<Vec<T>> {
        self.values.iter().enumerate().map(|(index, value)| self.typed(index, value)).collect()
    }

    /// The values as parts of their document, to select from each of them.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = JsonNode<'a>> {
        let source = self.source;
        self.values.iter().map(move |value| JsonNode { value, source })
    }

    /// The values as texts, like the result of a CSS selector.
    ///
    /// # Errors
    /// They take more than 64 MiB.
    pub fn selection(&self) -> Result<Selection> {
        Selection::of(self.values.iter().map(|value| text_of(value)))
            .map_err(|cause| cause.context(format!("{}, {}", self.shown(), self.source)))
    }

    fn typed<T: Deserialize<'a>>(&self, index: usize, value: &'a Value) -> Result<T> {
        T::deserialize(value).map_err(|cause| {
            Error::from(cause).context(format!("{}, value {} of {}", self.shown(), index + 1, self.source))
        })
    }

    fn shown(&self) -> String {
        format!("JSONPath \"{}\"", self.path.as_str().escape_debug())
    }
}

impl fmt::Debug for JsonSelection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonSelection")
            .field("path", &self.path.as_str())
            .field("values", &self.values.len())
            .finish_non_exhaustive()
    }
}

impl Page {
    /// The body as JSON. It is read once, however often it is asked for; a byte order mark is no part of it.
    ///
    /// # Errors
    /// The body is not JSON (the message has line and column), nests deeper than 127 levels, or has more than four million values.
    pub fn json_body(&self) -> Result<&Json> {
        if let Some(known) = self.json.get() {
            return Ok(known);
        }
        let value = read_json(self.body_text()).map_err(|cause| self.no_json(cause))?;
        Ok(self.json.get_or_init(|| Json { value, source: self.url().to_string() }))
    }

    /// The body as JSON of a type of serde. It is parsed once, however often it is asked for; a byte order mark is ignored.
    ///
    /// # Errors
    /// The body is not JSON of that shape; the message has line and column.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        if let Ok(known) = self.json_body()
            && let Ok(value) = T::deserialize(known.value())
        {
            return Ok(value);
        }
        // Only the text has the place of an error. This also reads what is beyond the limits of `json_body`.
        serde_json::from_str(self.body_text()).map_err(|cause| self.no_json(cause))
    }

    fn no_json(&self, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::from(cause).context(format!("reading {} as JSON", self.url()))
    }

    /// Values of a JSON body by a JSONPath (RFC 9535): `page.json_path("$.items[*].price")?.get_all()?`,
    /// `page.json_path("$..book[?@.price < 10]")?.values::<Book>()?`.
    ///
    /// # Errors
    /// The path is not valid (the message shows the place), selects more than four million values or needs more than 50 million steps, or
    /// the body is not JSON.
    #[doc(alias = "jmespath")]
    pub fn json_path(&self, path: &str) -> Result<JsonSelection<'_>> {
        // A broken path is told even if the body is not JSON.
        compiled(path)?;
        self.json_body()?.json_path(path)
    }

    /// JSON inside a script, by the name of a variable or by a CSS selector.
    ///
    /// - A name such as `window.__STATE__` or `app.config` finds what a script assigns to it: the value as far as it is balanced, or the
    ///   text within `JSON.parse("...")`. If no script assigns it, the element with this `id` counts: `__NEXT_DATA__`.
    /// - Everything else is a CSS selector, whose first element has JSON as its text: `script#__NEXT_DATA__`,
    ///   `script[type='application/json']`.
    ///
    /// Scripts are not run. What JavaScript allows beyond JSON is read, too: comments, commas at the end, names without quotes.
    ///
    /// ```
    /// use huntsman_crawler::{Page, Request, Response};
    /// use url::Url;
    ///
    /// let url = Url::parse("http://shop.example/").unwrap();
    /// let html = "<script>window.__STATE__ = {cart: [], user: {\"name\": \"Ada\"}}; start();</script>";
    /// let page = Page::new(Request::get(url.clone()), Response::html(url, html));
    /// let state = page.script_json("window.__STATE__")?;
    /// assert_eq!(state.json_path("$.user.name")?.get().as_deref(), Some("Ada"));
    /// # Ok::<(), huntsman_crawler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The page has no such script, the selector is not valid, or the text is not JSON; the message has line and column within the value.
    pub fn script_json(&self, which: &str) -> Result<Json> {
        self.find_script_json(which)?.ok_or_else(|| {
            let shown = which.escape_debug();
            let what = match is_variable(which) {
                true => format!("no script assigns a value to \"{shown}\""),
                false => format!("nothing matches \"{shown}\""),
            };
            Error::msg(format!(
                "{what} on {}; a script may be added by another one, or differ from page to page",
                self.url()
            ))
        })
    }

    /// Like [`script_json`](Self::script_json), but a page that has no such script gives `None`.
    ///
    /// # Errors
    /// The selector is not valid, or the text is not JSON.
    pub fn find_script_json(&self, which: &str) -> Result<Option<Json>> {
        let source = || format!("\"{}\" on {}", which.escape_debug(), self.url());
        let json = |value| Json { value, source: source() };
        let failed =
            |cause: DataError| Error::from(cause).context(format!("reading the JSON of {}", source()));
        let by_css = |css: &str| match self.select(css)?.first() {
            Some(found) => read_lenient(&found.text()).map(|value| Some(json(value))).map_err(failed),
            None => Ok(None),
        };
        if !is_variable(which) {
            return by_css(which);
        }
        let mut fault = None;
        for script in self.select("script")? {
            match assigned(&script.text(), which) {
                Some(Ok(value)) => return Ok(Some(json(value))),
                Some(Err(cause)) => drop(fault.get_or_insert(cause)),
                None => {}
            }
        }
        match fault {
            Some(cause) => Err(failed(cause)),
            None if which.contains(['.', '$']) => Ok(None),
            None => by_css(&format!("script[id='{which}']")),
        }
    }
}

/// Whether this is the name of a variable, such as `window.__STATE__`, and no selector, such as `script.state`.
fn is_variable(which: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
    };
    !which.starts_with("script.") && which != "script" && which.split('.').all(is_name)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A compiled path, from the thread's cache.
pub(super) fn compiled(path: &str) -> Result<Rc<JsonPath>> {
    thread_local! {
        static CACHE: RefCell<HashMap<String, Rc<JsonPath>>> = RefCell::default();
    }
    CACHE.with_borrow_mut(|cache| {
        if let Some(known) = cache.get(path) {
            return Ok(Rc::clone(known));
        }
        let new = Rc::new(JsonPath::new(path)?);
        if cache.len() >= MAX_PATHS {
            cache.clear();
        }
        cache.insert(path.to_owned(), Rc::clone(&new));
        Ok(new)
    })
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::request::Request;
    use crate::response::Response;

    fn page(body: impl Into<bytes::Bytes>) -> Page {
        let url = Url::parse("http://api.example/items").unwrap();
        Page::new(Request::get(url.clone()), Response::html(url, body))
    }

    const SHOP: &str = "\u{feff}{\"items\": [{\"name\": \"mill\", \"price\": 7.5}, {\"name\": \"dam\", \"price\": 9}], \"next\": null}";

    #[test]
    fn values_of_a_json_body_are_texts_or_typed() {
        let page = page(SHOP);
        let prices = page.json_path("$.items[*].price").unwrap();
        assert_eq!(prices.get().as_deref(), Some("7.5"));
        assert_eq!(prices.get_all().unwrap(), ["7.5", "9"]);
        assert_eq!(prices.re("[0-9]$").unwrap(), ["5", "9"]);
        assert_eq!(prices.values::<f64>().unwrap(), [7.5, 9.0]);
        assert_eq!(
            page.json_path("$.items[?@.price > 8].name").unwrap().value::<&str>().unwrap(),
            Some("dam")
        );
        assert_eq!(page.json_path("$.none").unwrap().get_or("-"), "-");
        let names = page.json_path("$.items[*]").unwrap();
        let names = names.nodes().map(|item| item.json_path("$.name").unwrap().get().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["mill", "dam"]);
    }

    #[test]
    fn a_body_is_parsed_once() {
        let page = page(SHOP);
        let first = std::ptr::from_ref(page.json_body().unwrap().value());
        page.json::<serde_json::Map<String, Value>>().unwrap();
        page.json_path("$..price").unwrap();
        assert_eq!(first, std::ptr::from_ref(page.json_body().unwrap().value()));
    }

    #[test]
    fn a_byte_order_mark_tells_the_encoding_and_is_no_part_of_the_json() {
        let utf_16: Vec<u8> = SHOP.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let url = Url::parse("http://api.example/items").unwrap();
        let mut response = Response::html(url.clone(), utf_16);
        let json = http::HeaderValue::from_static("application/json");
        response.headers.insert(http::header::CONTENT_TYPE, json);
        let page = Page::new(Request::get(url), response);
        assert_eq!(page.json_path("$.items[1].name").unwrap().get().as_deref(), Some("dam"));
        assert_eq!(page.json::<Value>().unwrap()["items"][0]["price"], 7.5);
    }

    #[test]
    fn errors_name_the_page_and_the_place() {
        let message = |result: Result<JsonSelection<'_>>| result.unwrap_err().to_string();
        let page = page(SHOP);
        let error = message(page.json_path("$.items[*].price?"));
        assert!(
            error.starts_with("JSONPath \"$.items[*].price?\", character 17: '?' is not expected here"),
            "{error}"
        );
        let error = page.json_path("$.items[*].name").unwrap().values::<u8>().unwrap_err().to_string();
        let place = "JSONPath \"$.items[*].name\", value 1 of http://api.example/items: ";
        assert!(error.starts_with(place) && error.contains("\"mill\""), "{error}");
        let error = page.json::<Vec<u8>>().unwrap_err().to_string();
        assert!(error.contains("http://api.example/items") && error.contains("line 1"), "{error}");
        let broken = self::page("{\n \"a\": }");
        let error = message(broken.json_path("$.a"));
        assert_eq!(error, "reading http://api.example/items as JSON: expected value at line 2 column 7");
    }

    #[test]
    fn hostile_json_ends_in_an_error_that_names_the_limit() {
        let deep = page("[".repeat(100_000));
        assert!(deep.json_body().unwrap_err().to_string().contains("127 levels"));
        assert!(deep.json::<Value>().is_err());
        // A million values, each of them in fifty lists.
        let wide = page(format!("{}{}0{}", "[".repeat(50), "0,".repeat(1_000_000), "]".repeat(50)));
        let message = |path: &str| wide.json_path(path).unwrap_err().to_string();
        let error = message("$..*..*");
        assert!(
            error.contains("more than the 4000000 values") && error.contains("http://api.example"),
            "{error}"
        );
        let error = message("$..[?$..[?@ == 1]]");
        assert!(error.contains("more than the 50000000 steps"), "{error}");
        assert_eq!(wide.json_path("$..*").unwrap().nodes().len(), 1_000_050);
    }

    #[test]
    fn json_is_read_from_scripts_by_name_and_by_selector() {
        let page = page(
            "<script>var n = 1; window.__STATE__ = {user: {'name': 'Ada'},}; go();</script>\
             <script id=__NEXT_DATA__ type=application/json>{\"page\": \"/\"}</script>",
        );
        let text = |which: &str, path: &str| page.script_json(which).unwrap().json_path(path).unwrap().get();
        assert_eq!(text("window.__STATE__", "$.user.name").as_deref(), Some("Ada"));
        assert_eq!(text("__NEXT_DATA__", "$.page").as_deref(), Some("/"));
        assert_eq!(text("script[type='application/json']", "$.page").as_deref(), Some("/"));
        let message = |which: &str| page.script_json(which).unwrap_err().to_string();
        assert!(
            message("window.nothing")
                .starts_with("no script assigns a value to \"window.nothing\" on http://api")
        );
        assert!(message("script.none").starts_with("nothing matches \"script.none\""));
        assert!(message("script[").starts_with("CSS selector"));
        assert!(
            message("script").contains("\"script\" on http://api.example/items"),
            "{}",
            message("script")
        );
        assert!(page.find_script_json("window.nothing").unwrap().is_none());
    }
}
