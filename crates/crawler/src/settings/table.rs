//! The table of settings that the parts of a crawl have declared.

use std::any::TypeId;

use serde_json::{Map, Value};

use super::{EngineSettings, Profile, SettingInfo, SettingsGroup};
use crate::error::{Error, Result};

/// All settings that a crawl knows: the engine's, and those of its components.
///
/// ```
/// use huntsman_crawler::{CrawlerBuilder, Output, Page, Result, spider_fn};
///
/// let spider = spider_fn(["https://site.example/"], |_: &Page, _: &mut Output<()>| -> Result<()> { Ok(()) });
/// let table = CrawlerBuilder::new(spider).settings_table().clone();
/// assert!(table.get("download_delay").is_some());
/// let error = table.parse("download_dealy", "3").unwrap_err();
/// assert!(error.to_string().contains("did you mean download_delay?"));
/// ```
#[derive(Clone, Debug)]
pub struct SettingsTable {
    groups: Vec<GroupInfo>,
}

/// Values by name.
type Values = Map<String, Value>;

/// A group of settings in a [`SettingsTable`].
#[derive(Clone, Copy, Debug)]
pub struct GroupInfo {
    /// The name of its type, such as `EngineSettings`.
    pub name: &'static str,
    /// The component that the settings belong to; `None` for those of the engine, a pipeline or a spider.
    pub component: Option<&'static str>,
    /// The settings in the order of their declaration.
    pub settings: &'static [SettingInfo],
    id: TypeId,
    /// Reads the group and returns all its values.
    read: fn(&Values) -> Result<Values>,
}

/// A table with the settings of the engine alone.
impl Default for SettingsTable {
    fn default() -> Self {
        let mut table = Self { groups: Vec::new() };
        table.add::<EngineSettings>(None);
        table
    }
}

impl SettingsTable {
    /// Adds a group, unless it was added before. `component` is the name of the component that it belongs to, if any.
    pub fn add<G: SettingsGroup>(&mut self, component: Option<&'static str>) {
        if !G::TABLE.is_empty() && !self.has::<G>() {
            self.groups.push(GroupInfo {
                name: G::NAME,
                component,
                settings: G::TABLE,
                id: TypeId::of::<G>(),
                read: |values| {
                    let group = G::read(values)?;
                    group.check()?;
                    Ok(group.values())
                },
            });
        }
    }

    /// Whether a group was added.
    pub fn has<G: SettingsGroup>(&self) -> bool {
        self.groups.iter().any(|group| group.id == TypeId::of::<G>())
    }

    /// The types of the groups.
    pub(super) fn ids(&self) -> Vec<TypeId> {
        self.groups.iter().map(|group| group.id).collect()
    }

    /// The groups in the order in which they were added, the engine's first.
    pub fn groups(&self) -> &[GroupInfo] {
        &self.groups
    }

    /// All settings, group by group.
    pub fn iter(&self) -> impl Iterator<Item = &'static SettingInfo> {
        self.groups.iter().flat_map(|group| group.settings)
    }

    /// A setting by name.
    pub fn get(&self, name: &str) -> Option<&'static SettingInfo> {
        self.iter().find(|info| info.name == name)
    }

    /// Checks that a setting is known and that a value has its type.
    ///
    /// # Errors
    /// The name is unknown (the error suggests the nearest known name), or the value has the wrong type.
    pub fn check(&self, name: &str, value: &Value) -> Result<()> {
        let info = self.named(name)?;
        (info.check)(value).map_err(|cause| {
            let (shown, cause) = (info.shown(value.clone()), cause.to_string());
            // The cause repeats the value, so it is only included if the value may be shown.
            let cause = if shown == *value { format!("{cause} ") } else { String::new() };
            Error::usage(format!("setting {name} = {shown}: {cause}(it is a {})", info.kind))
        })
    }

    /// Parses a value given as text (`--set key=value`): as JSON if it is JSON, else as a string. Lists may be
    /// comma-separated.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn parse(&self, name: &str, text: &str) -> Result<Value> {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let list = || Value::from(text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>());
        let info = self.named(name)?;
        let candidates = [value, Value::from(text), list()];
        match candidates.iter().find(|value| (info.check)(value).is_ok()) {
            Some(value) => Ok(value.clone()),
            None => Err(self.check(name, &candidates[0]).err().unwrap_or_else(|| Error::usage(name))),
        }
    }

    /// The values of a profile that differ from the polite defaults.
    pub fn profile(&self, profile: Profile) -> Values {
        let named = |info: &SettingInfo| Some((info.name.to_owned(), (info.in_profile)(profile)?));
        self.iter().filter_map(named).collect()
    }

    /// A value of a setting for display: credentials are replaced by `***`.
    pub fn shown(&self, name: &str, value: Value) -> Value {
        match self.get(name) {
            Some(info) => info.shown(value),
            None => value,
        }
    }

    fn named(&self, name: &str) -> Result<&'static SettingInfo> {
        self.get(name).ok_or_else(|| {
            let known = || self.iter().map(|info| info.name);
            let hint = nearest(name, known()).or_else(|| with_words(name, known()));
            let hint = hint.map_or(String::new(), |near| format!("; did you mean {near}?"));
            Error::usage(format!("unknown setting {name}{hint}"))
        })
    }

    /// All values: the given ones, and defaults for the others.
    ///
    /// # Errors
    /// The check of a group refuses a value.
    pub(super) fn complete(&self, given: &Values) -> Result<Values> {
        let mut all = Map::new();
        for group in &self.groups {
            all.extend((group.read)(given)?);
        }
        Ok(all)
    }
}

/// The shortest known name that has all words of this one: `download_delay_jitter` for `jitter`.
fn with_words<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let words: Vec<&str> = name.split('_').filter(|word| !word.is_empty()).collect();
    // Shorter words are in too many names to say what is meant.
    let is_telling = words.iter().any(|word| word.len() >= 4);
    let has_all = |other: &&str| is_telling && words.iter().all(|word| other.contains(word));
    known.filter(has_all).min_by_key(|other| (other.len(), *other))
}

/// The known name that is nearest to a mistyped one by edit distance; `None` if none is near.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |other: &str| {
        let other: Vec<char> = other.chars().collect();
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in name.chars().enumerate() {
            let mut diagonal = row[0];
            row[0] = i + 1;
            for (j, b) in other.iter().enumerate() {
                let replaced = diagonal + usize::from(a != *b);
                diagonal = row[j + 1];
                row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[other.len()]
    };
    let limit = (name.chars().count() / 3).max(2);
    known.map(|other| (distance(other), other)).filter(|(d, _)| *d <= limit).min().map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_enough_to_suggest_it() {
        let known = ["download_delay", "download_delay_jitter", "httpcache_dir", "robotstxt_obey"];
        let of = |name| with_words(name, known.into_iter());
        assert_eq!(of("jitter"), Some("download_delay_jitter"));
        assert_eq!(of("delay"), Some("download_delay"));
        assert_eq!(of("cache_dir"), Some("httpcache_dir"));
        assert_eq!((of("dir"), of("delay_cache"), of("_")), (None, None, None));
    }
}
