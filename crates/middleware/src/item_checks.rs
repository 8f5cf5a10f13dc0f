//! Checks of items: rules that their fields must satisfy, and how many items have each field.
//!
//! They are pipelines and not components, because they work on items: they stand where items are as they will be written, in front of the
//! feeds.

mod coverage;
mod fault;
mod schema;

use std::any::Any;
use std::collections::BTreeSet;

use huntsman_crawler::{Context, Error, Event, OnItem, Pipeline, Result, Settings, log, settings};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::QualitySettings;
use coverage::Coverage;

pub use fault::{Fault, Faults};
pub use schema::Schema;

settings! {
    /// Settings of [`ItemChecks`] and [`Validation`].
    pub struct ItemCheckSettings checked by check {
        /// File with a JSON Schema (drafts 4 to 2020-12) that items must satisfy; if unset, they are not compared with one.
        item_schema: Option<String> = None;
        /// What happens to an item that breaks a rule of validation: drop, or mark, which keeps it.
        item_invalid: OnInvalid = OnInvalid::Drop;
        /// Field in which a marked item lists its faults, if it is a JSON object.
        item_faults_field: String = "_faults".to_owned();
        /// Counts for each field the share of items in which it is not empty. Rules about coverage switch it on, too.
        item_coverage: bool = false;
        /// Maximum number of fields that are counted for the coverage; further ones are told as cut.
        item_coverage_fields: usize = 200;
    }
}

fn check(settings: &ItemCheckSettings) -> Result<()> {
    if settings.item_faults_field.is_empty() {
        return Err(Error::usage("setting item_faults_field: it must not be empty"));
    }
    if settings.item_coverage_fields == 0 {
        return Err(Error::usage(
            "setting item_coverage_fields: must be at least 1; item_coverage switches it off",
        ));
    }
    Ok(())
}

/// What happens to an item that breaks a rule (`item_invalid`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInvalid {
    /// It is dropped, with the reason `invalid`.
    #[default]
    Drop,
    /// It is kept. An item that is a JSON object lists its faults in a field of its own.
    Mark,
}

/// An item that knows the rules of its fields. [`Validation`] is the pipeline that asks it.
///
/// ```
/// use huntsman_middleware::{Faults, Validate};
///
/// struct Book {
///     title: String,
///     price: f64,
/// }
///
/// impl Validate for Book {
///     fn validate(&self, faults: &mut Faults) {
///         faults.unless(!self.title.is_empty(), "title", "is empty");
///         faults.unless(self.price > 0.0, "price", "is not above 0");
///     }
/// }
///
/// let mut faults = Faults::default();
/// Book { title: "Mills".to_owned(), price: 0.0 }.validate(&mut faults);
/// assert_eq!(faults.to_string(), "price: is not above 0");
/// ```
pub trait Validate {
    /// Adds a fault for each field that breaks a rule. A panic costs this item only.
    fn validate(&self, faults: &mut Faults);

    /// Takes the faults of an item that is kept although it is not valid; nothing by default.
    fn mark(&mut self, faults: &Faults) {
        let _ = faults;
    }
}

/// Number of pairs of a field and a reason that are counted apart; further ones are counted together.
const MAX_COUNTED: usize = 100;

/// Counts and tells what is wrong with items.
#[derive(Debug, Default)]
struct Verdicts {
    on_invalid: OnInvalid,
    field: String,
    counted: BTreeSet<String>,
}

impl Verdicts {
    fn new(settings: &ItemCheckSettings) -> Self {
        let (on_invalid, field) = (settings.item_invalid, settings.item_faults_field.clone());
        Self { on_invalid, field, counted: BTreeSet::new() }
    }

    /// Counts the faults of one item. Returns whether the item is dropped.
    fn tell(&mut self, faults: &Faults, cx: &Context) -> bool {
        if faults.is_empty() {
            return false;
        }
        if cx.stats().get("item_invalid_count") == 0 {
            log::warn!("an item is not valid: {faults}; further ones are counted, not logged");
        }
        cx.stats().inc("item_invalid_count");
        for fault in faults {
            let key = format!("item_faults_count/{}/{}", fault.field(), fault.rule());
            let is_counted = self.counted.contains(&key)
                || (self.counted.len() < MAX_COUNTED && self.counted.insert(key.clone()));
            cx.stats().inc(if is_counted { &key } else { "item_faults_count/others" });
            cx.emit(&Event::ItemInvalid { field: fault.field(), reason: &fault.reason() });
        }
        self.on_invalid == OnInvalid::Drop
    }

    /// What happens to the item after that.
    fn outcome<I>(is_dropped: bool, item: I) -> OnItem<I> {
        if is_dropped { OnItem::Drop("invalid".into()) } else { OnItem::Keep(item) }
    }
}

/// A pipeline that asks each item for its faults ([`Validate`]), and drops or marks those that have any (setting `item_invalid`).
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Spider};
/// use huntsman_middleware::{Validate, Validation};
///
/// fn checked<S: Spider<Item: Validate>>(builder: CrawlerBuilder<S>) -> CrawlerBuilder<S> {
///     builder.pipeline(Validation::default())
/// }
/// ```
#[derive(Debug, Default)]
pub struct Validation {
    verdicts: Verdicts,
}

impl<I: Validate + Send + 'static> Pipeline<I> for Validation {
    fn keeps_items(&self) -> bool {
        false
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.verdicts = Verdicts::new(&cx.settings().of_or_default());
        Ok(())
    }

    async fn process_item(&mut self, mut item: I, cx: &Context) -> Result<OnItem<I>> {
        let mut faults = Faults::default();
        item.validate(&mut faults);
        let is_dropped = self.verdicts.tell(&faults, cx);
        if !is_dropped && !faults.is_empty() {
            item.mark(&faults);
        }
        Ok(Verdicts::outcome(is_dropped, item))
    }
}

/// A pipeline that compares items with a JSON Schema (`item_schema`) and counts the coverage of their fields (`item_coverage`).
///
/// Items are looked at as they are written: as what serde makes of them. Commands add it by themselves behind the pipelines of the spider, if
/// settings ask for it; a program adds it where items are complete, in front of its feeds.
///
/// An invalid item is dropped with the reason `invalid`, or kept with a list of its faults (`item_invalid`). Its faults are counted by field
/// and rule in `item_faults_count/`, and the report has each field with the first fault. Coverage is counted for items that are kept.
///
/// ```no_run
/// use huntsman_crawler::{CrawlerBuilder, Result, Spider};
/// use huntsman_middleware::sinks::JsonLines;
/// use huntsman_middleware::{Defaults, ItemChecks};
///
/// fn checked<S: Spider<Item = serde_json::Value>>(spider: S) -> Result<CrawlerBuilder<S>> {
///     let builder = CrawlerBuilder::new(spider).plugin(Defaults).set("item_schema", "book.schema.json");
///     Ok(builder.pipeline(ItemChecks::default()).pipeline(JsonLines::create("books.jsonl")?))
/// }
/// ```
#[derive(Debug, Default)]
pub struct ItemChecks {
    verdicts: Verdicts,
    schema: Option<Schema>,
    coverage: Option<Coverage>,
}

impl ItemChecks {
    /// The pipeline, if the settings ask for a schema or for coverage.
    ///
    /// # Errors
    /// No part of the crawl declares the settings, or the schema cannot be used.
    pub fn of_settings(settings: &Settings) -> Result<Option<Self>> {
        let own: ItemCheckSettings = settings.of()?;
        let quality: QualitySettings = settings.of_or_default();
        let has_work = own.item_schema.is_some() || own.item_coverage || quality.need_coverage();
        // Not when it is opened: what is wrong with a schema is told before anything is written.
        own.item_schema.as_deref().map(Schema::load).transpose()?;
        Ok(has_work.then(Self::default))
    }

    /// Reads the settings. As a pipeline it is called by the crawl; a pipeline that has others inside calls it in its own `open`.
    ///
    /// # Errors
    /// The schema cannot be used.
    pub fn prepare(&mut self, cx: &Context) -> Result<()> {
        // A crawl without the built-in components has the defaults.
        let own: ItemCheckSettings = cx.settings().of_or_default();
        let quality: QualitySettings = cx.settings().of_or_default();
        self.verdicts = Verdicts::new(&own);
        self.schema = own.item_schema.as_deref().map(Schema::load).transpose()?;
        self.coverage = (own.item_coverage || quality.need_coverage())
            .then(|| Coverage::new(own.item_coverage_fields, cx.stats().clone()));
        Ok(())
    }

    /// Checks one item that is a JSON object. Returns whether it is kept; one that is marked is changed.
    pub fn keeps(&mut self, item: &mut Map<String, Value>, cx: &Context) -> bool {
        let mut value = Value::Object(std::mem::take(item));
        let is_kept = !self.is_dropped(&mut value, cx);
        if let Value::Object(checked) = value {
            *item = checked;
        }
        is_kept
    }

    /// Writes the shares of the coverage into the stats; called after the last item.
    pub fn finish(&self) {
        if let Some(coverage) = &self.coverage {
            coverage.finish();
        }
    }

    fn is_dropped(&mut self, item: &mut Value, cx: &Context) -> bool {
        let mut faults = Faults::default();
        if let Some(schema) = &self.schema {
            schema.check(item, &mut faults);
        }
        let is_dropped = self.verdicts.tell(&faults, cx);
        if is_dropped {
            return true;
        }
        if let Some(coverage) = &mut self.coverage {
            coverage.count(item);
        }
        if let Value::Object(object) = item
            && !faults.is_empty()
        {
            object.insert(self.verdicts.field.clone(), json!(faults));
        }
        false
    }
}

impl<I: Serialize + Send + 'static> Pipeline<I> for ItemChecks {
    fn keeps_items(&self) -> bool {
        false
    }

    async fn open(&mut self, cx: &Context) -> Result<()> {
        self.prepare(cx)
    }

    async fn process_item(&mut self, mut item: I, cx: &Context) -> Result<OnItem<I>> {
        if self.schema.is_none() && self.coverage.is_none() {
            return Ok(OnItem::Keep(item));
        }
        // Items that are JSON already are not copied, and only they can be marked.
        let as_any: &mut dyn Any = &mut item;
        let is_dropped = if as_any.is::<Map<String, Value>>() {
            let object: &mut Map<String, Value> = as_any.downcast_mut().expect("it is one");
            !self.keeps(object, cx)
        } else if let Some(value) = as_any.downcast_mut::<Value>() {
            self.is_dropped(value, cx)
        } else {
            self.is_dropped(&mut serde_json::to_value(&item)?, cx)
        };
        Ok(Verdicts::outcome(is_dropped, item))
    }

    async fn close(&mut self) -> Result<()> {
        self.finish();
        Ok(())
    }
}
