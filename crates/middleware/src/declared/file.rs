//! The file of a declared spider: its keys, and the check of everything in it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use huntsman_crawler::{
    Error, LinkExtractor, Page, Profile, Request, Response, Result, StartUrls, nearest, parse_web_url,
};
use regex::Regex;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;
use url::Url;

use super::Declaration;
use super::field::{Field, Kind, PageField, Query};
use super::item::{Each, ItemRule, START};
use super::rule::{FOLLOWED, Rule};
use crate::Defaults;

pub(super) type Text = Spanned<String>;
type Span = Range<usize>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Text>,
    #[serde(default)]
    start: Texts,
    start_file: Option<Text>,
    #[serde(default)]
    sitemaps: Texts,
    #[serde(default)]
    allowed_domains: Texts,
    profile: Option<Text>,
    #[serde(default)]
    settings: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    rules: Vec<Spanned<RuleTable>>,
    #[serde(default)]
    items: BTreeMap<String, Spanned<ItemTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    #[serde(default)]
    allow: Texts,
    #[serde(default)]
    deny: Texts,
    #[serde(default)]
    allow_domains: Texts,
    #[serde(default)]
    deny_domains: Texts,
    #[serde(default)]
    restrict_css: Texts,
    #[serde(default)]
    restrict_xpath: Texts,
    #[serde(default)]
    restrict_text: Texts,
    callback: Option<Text>,
    follow: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemTable {
    #[serde(default)]
    rule: Texts,
    page: Option<Text>,
    each: Option<Text>,
    each_xpath: Option<Text>,
    each_json: Option<Text>,
    script: Option<Text>,
    fields: BTreeMap<String, Spanned<FieldTable>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FieldKeys {
    css: Option<Text>,
    xpath: Option<Text>,
    json: Option<Text>,
    script: Option<Text>,
    source: Option<Text>,
    re: Option<Text>,
    join: Option<String>,
    r#type: Option<Text>,
    default: Option<toml::Value>,
    required: bool,
}

/// A field: a table, or a text, which is a CSS selector.
pub(super) struct FieldTable(FieldKeys);

impl<'de> Deserialize<'de> for FieldTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = FieldTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a CSS selector or a table such as { css = \"h1::text\", required = true }")
            }

            fn visit_str<E>(self, css: &str) -> Result<FieldTable, E> {
                // The place of the whole field is known outside.
                let css = Some(Spanned::new(0..0, css.to_owned()));
                Ok(FieldTable(FieldKeys { css, ..FieldKeys::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FieldTable, A::Error> {
                FieldKeys::deserialize(MapAccessDeserializer::new(map)).map(FieldTable)
            }
        }

        deserializer.deserialize_any(Shape)
    }
}

/// A text or a list of texts, each with its place.
#[derive(Default)]
struct Texts(Vec<Text>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Spanned::<OneOrMore>::deserialize(deserializer)?;
        let place = given.span();
        Ok(Self(match given.into_inner() {
            OneOrMore::One(text) => vec![Spanned::new(place, text)],
            OneOrMore::More(texts) => texts,
        }))
    }
}

enum OneOrMore {
    One(String),
    More(Vec<Text>),
}

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMore, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMore::More(texts))
            }
        }

        deserializer.deserialize_any(Shape)
    }
}

/// The text of a file, and its name for messages.
pub(super) struct Source<'a> {
    text: &'a str,
    name: &'a str,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str, name: &'a str) -> Self {
        Self { text, name }
    }

    /// Reads and checks everything; a relative path in it belongs to the folder.
    pub(super) fn read(&self, folder: &Path) -> Result<Declaration> {
        let file: File = toml::from_str(self.text).map_err(|error| self.explain(&error))?;
        let start = self.urls(&file.start)?;
        let sitemaps = self.urls(&file.sitemaps)?;
        let start_file = file.start_file.as_ref().map(|path| folder.join(path.get_ref()));
        let mut first = start.first().or(sitemaps.first()).cloned();
        if let (Some(path), Some(given)) = (&start_file, &file.start_file) {
            let urls = StartUrls::of(&[], Some(path)).map_err(|error| self.fault(given.span(), error))?;
            first.get_or_insert(urls.first);
        }
        let first = first.ok_or_else(|| {
            Error::usage(format!("{}: no start: give `start`, `start_file` or `sitemaps`", self.name))
        })?;
        let checks = Checks::new();
        let rules = file.rules.iter().map(|rule| self.rule(rule.get_ref(), &checks));
        let rules = rules.collect::<Result<Vec<Rule>>>()?;
        let items = self.items(file.items, &rules, &checks)?;
        let profile = file
            .profile
            .map(|name| name.get_ref().parse::<Profile>().map_err(|error| self.fault(name.span(), error)));
        let name = match &file.name {
            Some(name) if name.get_ref().trim().is_empty() => {
                return Err(self.fault(name.span(), "the name of a spider is not empty"));
            }
            Some(name) => name.get_ref().clone(),
            None => first.host_str().unwrap_or("spider").to_owned(),
        };
        Ok(Declaration {
            name,
            profile: profile.transpose()?,
            first,
            start: start.into_iter().map(String::from).collect(),
            start_file,
            sitemaps: sitemaps.into_iter().map(String::from).collect(),
            allowed_domains: self.domains(&file.allowed_domains)?,
            settings: self.settings(file.settings)?,
            rules,
            items,
        })
    }

    /// An error at a place of the file.
    pub(super) fn fault(&self, span: Span, what: impl fmt::Display) -> Error {
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Error::usage(format!("{}, line {line}: {what}", self.name))
    }

    /// Says in words what the TOML reader refused.
    pub(super) fn explain(&self, error: &toml::de::Error) -> Error {
        let message = error.message();
        let mut names = message.split('`').skip(1).step_by(2);
        let what = match names.next() {
            Some(unknown) if message.starts_with("unknown field") => {
                let known: Vec<&str> = names.collect();
                unknown_name("key", unknown, &known)
            }
            _ => message.to_owned(),
        };
        self.fault(error.span().unwrap_or(0..0), what)
    }

    fn urls(&self, texts: &Texts) -> Result<Vec<Url>> {
        texts
            .0
            .iter()
            .map(|text| parse_web_url(text.get_ref()).map_err(|error| self.fault(text.span(), error)))
            .collect()
    }

    fn domains(&self, texts: &Texts) -> Result<Vec<String>> {
        let domain = |text: &Text| {
            let domain = text.get_ref().trim();
            if domain.is_empty() || domain.contains(['/', ':', '*', ' ']) {
                let what =
                    format!("\"{}\" is not a domain; write it as in example.org", domain.escape_debug());
                return Err(self.fault(text.span(), what));
            }
            Ok(domain.to_ascii_lowercase())
        };
        texts.0.iter().map(domain).collect()
    }

    fn settings(&self, given: BTreeMap<String, Spanned<toml::Value>>) -> Result<Vec<(&'static str, Value)>> {
        let table = Defaults::settings_table();
        let setting = |(name, value): (String, Spanned<toml::Value>)| {
            let span = value.span();
            let name = name.to_ascii_lowercase();
            let value =
                serde_json::to_value(value.into_inner()).map_err(|error| self.fault(span.clone(), error))?;
            table.check(&name, &value).map_err(|error| self.fault(span.clone(), error))?;
            match table.get(&name) {
                Some(info) => Ok((info.name, value)),
                None => Err(self.fault(span, format!("unknown setting \"{}\"", name.escape_debug()))),
            }
        };
        given.into_iter().map(setting).collect()
    }

    fn rule(&self, rule: &RuleTable, checks: &Checks) -> Result<Rule> {
        let mut extractor = LinkExtractor::new();
        let change = |extractor: LinkExtractor,
                      texts: &Texts,
                      with: fn(LinkExtractor, &str) -> Result<LinkExtractor>| {
            texts.0.iter().try_fold(extractor, |extractor, text| {
                let changed =
                    with(extractor, text.get_ref()).map_err(|error| self.fault(text.span(), error))?;
                // A selector is compiled when it is first used.
                changed.links(&checks.html).map_err(|error| self.fault(text.span(), error))?;
                Ok::<_, Error>(changed)
            })
        };
        extractor = change(extractor, &rule.allow, |of, text| of.allow(text))?;
        extractor = change(extractor, &rule.deny, |of, text| of.deny(text))?;
        extractor = change(extractor, &rule.allow_domains, |of, text| Ok(of.allow_domain(text)))?;
        extractor = change(extractor, &rule.deny_domains, |of, text| Ok(of.deny_domain(text)))?;
        extractor = change(extractor, &rule.restrict_css, |of, text| Ok(of.restrict_css(text)))?;
        extractor = change(extractor, &rule.restrict_xpath, |of, text| Ok(of.restrict_xpath(text)))?;
        extractor = change(extractor, &rule.restrict_text, |of, text| of.restrict_text(text))?;
        if let Some(name) = &rule.callback
            && (name.get_ref().trim().is_empty()
                || [START, FOLLOWED, "parse"].contains(&name.get_ref().as_str()))
        {
            let what = format!(
                "\"{}\" cannot be the name of a callback; use another one",
                name.get_ref().escape_debug()
            );
            return Err(self.fault(name.span(), what));
        }
        let callback = rule.callback.as_ref().map(|name| name.get_ref().clone());
        // As in Scrapy, a page with a callback is an end, and all others are a way.
        let follow = rule.follow.unwrap_or(callback.is_none());
        let choices = [&rule.allow, &rule.restrict_css, &rule.restrict_xpath, &rule.restrict_text];
        let is_chosen = choices.iter().any(|texts| !texts.0.is_empty());
        Ok(Rule { extractor, callback, follow, is_chosen })
    }

    fn items(
        &self,
        items: BTreeMap<String, Spanned<ItemTable>>,
        rules: &[Rule],
        checks: &Checks,
    ) -> Result<Vec<ItemRule>> {
        let is_named = items.len() > 1;
        let mut items: Vec<_> = items.into_iter().collect();
        items.sort_by_key(|(_, item)| item.span().start);
        let item = |(name, item): (String, Spanned<ItemTable>)| {
            let (span, item) = (item.span(), item.into_inner());
            let each = self.each(&item, checks)?;
            let labels = self.labels(&item.rule, rules)?;
            let page = item.page.as_ref().map(|page| self.regex(page)).transpose()?;
            let mut fields: Vec<_> = item.fields.into_iter().collect();
            fields.sort_by_key(|(_, field)| field.span().start);
            if fields.is_empty() {
                return Err(self.fault(span, format!("the item \"{name}\" has no fields")));
            }
            let fields = fields.into_iter().map(|(name, field)| {
                if is_named && name == "item" {
                    let what =
                        "with several kinds of items the field \"item\" names the kind; use another name";
                    return Err(self.fault(field.span(), what));
                }
                self.field(name, field, &each, checks)
            });
            let fields = fields.collect::<Result<_>>()?;
            Ok(ItemRule { name, is_named, labels, page, each, fields })
        };
        items.into_iter().map(item).collect()
    }

    fn each(&self, item: &ItemTable, checks: &Checks) -> Result<Option<Each>> {
        let given = [&item.each, &item.each_xpath, &item.each_json];
        let mut given = given.into_iter().flatten();
        if let (Some(_), Some(second)) = (given.next(), given.next()) {
            return Err(self.fault(second.span(), "give one of `each`, `each_xpath` and `each_json`"));
        }
        let script = self.script(item.script.as_ref(), checks)?;
        if let (Some(text), None) = (&item.script, &item.each_json) {
            return Err(self.fault(text.span(), "`script` needs `each_json`, or a field with `json` has it"));
        }
        if let Some(css) = &item.each {
            checks.html.select(css.get_ref()).map_err(|error| self.fault(css.span(), error))?;
        }
        if let Some(path) = &item.each_xpath {
            checks.html.nodes(path.get_ref()).map_err(|error| self.fault(path.span(), error))?;
        }
        if let Some(path) = &item.each_json {
            checks.json.json_path(path.get_ref()).map_err(|error| self.fault(path.span(), error))?;
        }
        let of = |text: &Option<Text>| text.as_ref().map(|text| text.get_ref().clone());
        let by_json = || of(&item.each_json).map(|path| Each::Json { path, script });
        Ok(of(&item.each).map(Each::Css).or_else(|| of(&item.each_xpath).map(Each::XPath)).or_else(by_json))
    }

    fn labels(&self, names: &Texts, rules: &[Rule]) -> Result<Vec<String>> {
        let mut known = vec![START, FOLLOWED];
        known.extend(rules.iter().filter_map(|rule| rule.callback.as_deref()));
        let label = |name: &Text| match known.contains(&name.get_ref().as_str()) {
            true => Ok(name.get_ref().clone()),
            false => Err(self.fault(name.span(), unknown_name("callback", name.get_ref(), &known))),
        };
        names.0.iter().map(label).collect()
    }

    pub(super) fn field(
        &self,
        name: String,
        field: Spanned<FieldTable>,
        each: &Option<Each>,
        checks: &Checks,
    ) -> Result<Field> {
        let (whole, FieldTable(field)) = (field.span(), field.into_inner());
        // A field that is only a text has no place of its own.
        let place = |text: &Text| if text.span().is_empty() { whole.clone() } else { text.span() };
        let script = self.script(field.script.as_ref(), checks)?;
        let mut queries = Vec::new();
        if let Some(css) = &field.css {
            checks.html.css(css.get_ref()).map_err(|error| self.fault(place(css), error))?;
            if matches!(each, Some(Each::XPath(_))) {
                return Err(self.fault(place(css), "within `each_xpath` fields are selected by `xpath`"));
            }
            queries.push(Query::Css(css.get_ref().clone()));
        }
        if let Some(path) = &field.xpath {
            checks.html.xpath(path.get_ref()).map_err(|error| self.fault(path.span(), error))?;
            queries.push(Query::XPath(path.get_ref().clone()));
        }
        if let Some(path) = &field.json {
            checks.json.json_path(path.get_ref()).map_err(|error| self.fault(path.span(), error))?;
            queries.push(Query::Json { path: path.get_ref().clone(), script });
        } else if let Some(text) = &field.script {
            return Err(self.fault(text.span(), "`script` says where `json` is read; give `json`, too"));
        }
        if let Some(source) = &field.source {
            queries.push(Query::Source(self.name_of(source, "source", &PageField::NAMES)?));
        }
        if queries.len() != 1 {
            let what = format!("the field \"{name}\" needs one of `css`, `xpath`, `json` and `source`");
            return Err(self.fault(whole, what));
        }
        let query = queries.remove(0);
        let kind = match &field.r#type {
            Some(kind) => Some(self.name_of(kind, "type", &Kind::NAMES)?),
            None if matches!(query, Query::Json { .. } | Query::Source(_)) && field.re.is_none() => None,
            None => Some(Kind::Text),
        };
        let default = field
            .default
            .map(serde_json::to_value)
            .transpose()
            .map_err(|error| self.fault(whole.clone(), error))?;
        if default.is_some() && field.required {
            return Err(self.fault(
                whole,
                format!("the field \"{name}\" has a default, so it is never missing: leave out `required`"),
            ));
        }
        let re = field.re.as_ref().map(|re| self.regex(re)).transpose()?;
        Ok(Field { name, query, re, join: field.join, kind, default, required: field.required })
    }

    fn script(&self, which: Option<&Text>, checks: &Checks) -> Result<Option<String>> {
        let Some(which) = which else { return Ok(None) };
        checks.html.find_script_json(which.get_ref()).map_err(|error| self.fault(which.span(), error))?;
        Ok(Some(which.get_ref().clone()))
    }

    fn regex(&self, expression: &Text) -> Result<Regex> {
        Regex::new(expression.get_ref()).map_err(|error| self.fault(expression.span(), error))
    }

    /// The value of a name of a list.
    pub(super) fn name_of<T: Copy>(&self, name: &Text, of: &str, known: &[(&str, T)]) -> Result<T> {
        let found = known.iter().find(|(known, _)| known == name.get_ref());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            self.fault(name.span(), unknown_name(of, name.get_ref(), &names))
        })
    }
}

fn unknown_name(of: &str, name: &str, known: &[&str]) -> String {
    let shown = name.escape_debug();
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown {of} \"{shown}\"; did you mean \"{near}\"?"),
        None => format!("unknown {of} \"{shown}\"; there are {}", known.join(", ")),
    }
}

/// Pages without content on which selectors and paths are tried, so that broken ones are found before the crawl.
pub(super) struct Checks {
    pub(super) html: Page,
    json: Page,
}

impl Checks {
    pub(super) fn new() -> Self {
        let page = |body: &'static str| {
            let request = Request::parse("http://check.invalid/").expect("this is a URL");
            let response = Response::html(request.url.clone(), body);
            Page::new(request, response)
        };
        Self { html: page("<p>"), json: page("null") }
    }
}
