//! What a file of TOML reads from pages: fields as those of items, and texts that are looked for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use huntsman_crawler::{Page, Result};
use regex::{Regex, RegexBuilder};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;

use super::field::Field;
use super::file::{Checks, FieldTable, Source, Text};
use super::item::Place;
use super::text_of;

/// Fields and searches that a file of TOML declares, to be read from pages.
///
/// `[fields]` has fields as the items of a [`DeclaredSpider`](super::DeclaredSpider) have them. `[searches]` has texts: the value of one with
/// `contains` is how often the page has it, and that of one with `lacks` whether the page does not have it.
///
/// ```
/// use huntsman_crawler::{Page, Request, Response};
/// use huntsman_middleware::Extraction;
///
/// let extraction = Extraction::from_toml(
///     r#"
///     [fields]
///     price = { css = ".price::text", type = "number" }
///
///     [searches]
///     tracking = "gtag("
///     no-phone = { lacks = '\+41 \d+', regex = true, in = "text" }
///     "#,
///     "custom.toml",
/// )?;
/// let request = Request::parse("https://shop.example/")?;
/// let response = Response::html(request.url.clone(), "<i class=price>7.50</i><script>gtag('a')</script>");
/// let found = extraction.read(&Page::new(request, response));
/// let values: Vec<String> = found.into_iter().map(|found| found.value.unwrap().to_string()).collect();
/// assert_eq!(values, ["7.5", "1", "true"]);
/// # Ok::<(), huntsman_crawler::Error>(())
/// ```
#[derive(Debug)]
pub struct Extraction {
    fields: Vec<Field>,
    searches: Vec<Search>,
}

/// A value of a page.
#[derive(Debug)]
#[non_exhaustive]
pub struct Extracted<'a> {
    /// The name of the field or search.
    pub name: &'a str,
    /// Whether it is of a search.
    pub is_search: bool,
    /// The value, null if the page does not have it; or what is wrong with it.
    pub value: Result<Value>,
}

#[derive(Debug)]
struct Search {
    name: String,
    text: Regex,
    /// As the file has it.
    given: String,
    /// Whether pages are looked for that do not have it.
    is_for_lack: bool,
    within: Within,
}

/// Where a text is looked for.
#[derive(Clone, Debug)]
enum Within {
    /// The source, decoded.
    Body,
    /// The own text of the page, without menus, headers and footers.
    Text,
    /// The values of a selector.
    Css(String),
}

const WITHIN: [(&str, bool); 2] = [("body", false), ("text", true)];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fields: BTreeMap<String, Spanned<FieldTable>>,
    #[serde(default)]
    searches: BTreeMap<String, Spanned<SearchTable>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SearchKeys {
    contains: Option<Text>,
    lacks: Option<Text>,
    regex: bool,
    ignore_case: bool,
    r#in: Option<Text>,
    css: Option<Text>,
}

/// A search: a table, or a text that pages contain.
struct SearchTable(SearchKeys);

impl<'de> Deserialize<'de> for SearchTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = SearchTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a table such as { contains = \"gtag(\", ignore_case = true }")
            }

            fn visit_str<E>(self, text: &str) -> Result<SearchTable, E> {
                // The place of the whole search is known outside.
                let contains = Some(Spanned::new(0..0, text.to_owned()));
                Ok(SearchTable(SearchKeys { contains, ..SearchKeys::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SearchTable, A::Error> {
                SearchKeys::deserialize(MapAccessDeserializer::new(map)).map(SearchTable)
            }
        }

        deserializer.deserialize_any(Shape)
    }
}

impl Extraction {
    /// Reads a file and checks all of it.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong: the message names file and line, and what to do.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let (text, shown) = text_of(path.as_ref(), "the file of fields and searches")?;
        Self::from_toml(&text, &shown)
    }

    /// Reads a declaration; `name` stands for the file in messages.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn from_toml(text: &str, name: &str) -> Result<Self> {
        let source = Source::new(text, name);
        let file: File = toml::from_str(text).map_err(|error| source.explain(&error))?;
        let checks = Checks::new();
        let (mut fields, mut searches): (Vec<_>, Vec<_>) =
            (file.fields.into_iter().collect(), file.searches.into_iter().collect());
        fields.sort_by_key(|(_, field)| field.span().start);
        searches.sort_by_key(|(_, search)| search.span().start);
        if fields.is_empty() && searches.is_empty() {
            let advice = "declare what is read in [fields], or texts that are looked for in [searches]";
            return Err(source.fault(0..0, format!("there is neither a field nor a search: {advice}")));
        }
        let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
        if let Some((name, search)) = searches.iter().find(|(name, _)| names.contains(&name)) {
            let what = format!("\"{}\" is the name of a field and of a search", name.escape_debug());
            return Err(source.fault(search.span(), what));
        }
        let searches = searches.into_iter().map(|(name, search)| Search::of(name, search, &source, &checks));
        let fields = fields.into_iter().map(|(name, field)| source.field(name, field, &None, &checks));
        Ok(Self { fields: fields.collect::<Result<_>>()?, searches: searches.collect::<Result<_>>()? })
    }

    /// The names of the fields and searches, in the order in which they are read, and what is read: `css ".price::text"`.
    pub fn names(&self) -> impl Iterator<Item = (&str, String)> {
        let fields = self.fields.iter().map(|field| (field.name.as_str(), field.query.shown()));
        fields.chain(self.searches.iter().map(|search| (search.name.as_str(), search.shown())))
    }

    /// The values of a page, in the order of the names.
    pub fn read(&self, page: &Page) -> Vec<Extracted<'_>> {
        let fields = self.fields.iter().map(|field| Extracted {
            name: &field.name,
            is_search: false,
            value: field.read(page, Place::Page),
        });
        let searches = self.searches.iter().map(|search| Extracted {
            name: &search.name,
            is_search: true,
            value: search.read(page),
        });
        fields.chain(searches).collect()
    }
}

impl Search {
    fn of(name: String, table: Spanned<SearchTable>, source: &Source<'_>, checks: &Checks) -> Result<Self> {
        let (whole, SearchTable(keys)) = (table.span(), table.into_inner());
        let (text, is_for_lack) = match (&keys.contains, &keys.lacks) {
            (Some(text), None) => (text, false),
            (None, Some(text)) => (text, true),
            _ => {
                let shown = name.escape_debug();
                return Err(source
                    .fault(whole, format!("the search \"{shown}\" needs one of `contains` and `lacks`")));
            }
        };
        // A search that is only a text has no place of its own.
        let place = if text.span().is_empty() { whole } else { text.span() };
        let given = text.get_ref().clone();
        if given.is_empty() {
            return Err(source.fault(place, "an empty text is in every page: give the text to look for"));
        }
        let expression = if keys.regex { given.clone() } else { regex::escape(&given) };
        let text = RegexBuilder::new(&expression)
            .case_insensitive(keys.ignore_case)
            .build()
            .map_err(|error| source.fault(place, error))?;
        let within = match (&keys.css, &keys.r#in) {
            (Some(css), Some(_)) => return Err(source.fault(css.span(), "give one of `in` and `css`")),
            (Some(css), None) => {
                checks.html.css(css.get_ref()).map_err(|error| source.fault(css.span(), error))?;
                Within::Css(css.get_ref().clone())
            }
            (None, Some(within)) if source.name_of(within, "place", &WITHIN)? => Within::Text,
            (None, _) => Within::Body,
        };
        Ok(Self { name, text, given, is_for_lack, within })
    }

    fn read(&self, page: &Page) -> Result<Value> {
        let number = match &self.within {
            Within::Body => self.number_in(page.body_text()),
            // A text that goes over a part of the page is found, too.
            Within::Text => self.number_in(&page.content().collect::<Vec<_>>().join("\n")),
            Within::Css(css) => page.css(css)?.get_all().iter().map(|text| self.number_in(text)).sum(),
        };
        Ok(if self.is_for_lack { Value::from(number == 0) } else { Value::from(number) })
    }

    fn number_in(&self, text: &str) -> usize {
        self.text.find_iter(text).count()
    }

    /// The search in words.
    fn shown(&self) -> String {
        let what = if self.is_for_lack { "lacks" } else { "contains" };
        let within = match &self.within {
            Within::Body => String::new(),
            Within::Text => " in its text".to_owned(),
            Within::Css(css) => format!(" in css \"{}\"", css.escape_debug()),
        };
        format!("{what} \"{}\"{within}", self.given.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use huntsman_crawler::{Request, Response};

    use super::*;

    fn read(text: &str, html: &str) -> Vec<String> {
        let request = Request::parse("https://shop.example/list").unwrap();
        let response = Response::html(request.url.clone(), html.to_owned());
        let extraction = Extraction::from_toml(text, "custom.toml").unwrap();
        let found = extraction.read(&Page::new(request, response));
        found
            .into_iter()
            .map(|found| match found.value {
                Ok(value) => format!("{} {value}", found.name),
                Err(error) => format!("{}: {error}", found.name),
            })
            .collect()
    }

    #[test]
    fn fields_are_read_by_css_xpath_json_and_expressions_on_the_source() {
        let text = "[fields]\nsku = { source = 'body', re = 'data-sku=(\\d+)' }\nname = 'b::text'\nlinks = { xpath = '//a/@href', type = 'list' }\n\
                    maker = { json = '$.maker', script = 'script#d' }\nprice = { css = 'i::text', type = 'number' }\nnone = 'u::text'";
        let html = "<b>Mill</b><p data-sku=77><a href=a></a><a href=b></a><script id=d>{\"maker\": \"Ada\"}</script><i>cheap</i>";
        assert_eq!(
            read(text, html),
            [
                "sku \"77\"",
                "name \"Mill\"",
                "links [\"a\",\"b\"]",
                "maker \"Ada\"",
                "price: \"cheap\" is not a number; `re` takes the digits out of a text",
                "none null"
            ]
        );
    }

    #[test]
    fn searches_count_what_pages_contain_and_say_what_they_lack() {
        let text = "[searches]\na = 'gtag('\nb = { contains = 'ACME', ignore_case = true, in = 'text' }\nc = { lacks = 'gtag(', in = 'text' }\n\
                    d = { lacks = '\\+\\d+', regex = true }\ne = { contains = 'Acme', css = 'h1' }\nf = { contains = '1.1' }";
        let html = "<nav>acme</nav><main><h1>Acme</h1><p>Acme and acme +41<script>gtag(1);gtag(2)</script> 111</main>";
        assert_eq!(read(text, html), ["a 2", "b 3", "c true", "d false", "e 1", "f 0"]);
    }

    #[test]
    fn every_kind_of_error_has_its_line_and_advice() {
        for (text, expected) in [
            ("", "custom.toml, line 1: there is neither a field nor a search"),
            ("[field]\na = 'b'", "custom.toml, line 1: unknown key \"field\"; did you mean \"fields\"?"),
            ("[fields]\na = 'b['", "custom.toml, line 2: CSS selector \"b[\""),
            (
                "[fields]\na = { css = 'b', typ = 'list' }",
                "custom.toml, line 2: unknown key \"typ\"; did you mean \"type\"?",
            ),
            ("[searches]\na = ''", "custom.toml, line 2: an empty text"),
            ("[searches]\na = { contains = '(', regex = true }", "custom.toml, line 2: regex parse error"),
            (
                "[searches]\na = { contains = 'x', lacks = 'y' }",
                "custom.toml, line 2: the search \"a\" needs one of",
            ),
            (
                "[searches]\n\na = { lacks = 'y', in = 'txt' }",
                "custom.toml, line 3: unknown place \"txt\"; did you mean \"text\"?",
            ),
            ("[searches]\na = { lacks = 'y', css = 'b[' }", "custom.toml, line 2: CSS selector \"b[\""),
            (
                "[searches]\na = { lacks = 'y', in = 'text', css = 'b' }",
                "custom.toml, line 2: give one of `in` and `css`",
            ),
            (
                "[fields]\na = 'b'\n[searches]\na = 'b'",
                "custom.toml, line 4: \"a\" is the name of a field and of a search",
            ),
        ] {
            let error = Extraction::from_toml(text, "custom.toml").unwrap_err();
            assert!(error.is_usage() && error.to_string().starts_with(expected), "{text}\n{error}");
        }
        let error = Extraction::load("/nowhere/custom.toml").unwrap_err().to_string();
        assert!(error.starts_with("reading the file of fields and searches /nowhere/custom.toml"), "{error}");
    }
}
