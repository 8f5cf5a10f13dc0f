//! Where settings come from: layers in order of priority, and what each of them said.

use serde_json::{Map, Value};

use super::{EngineSettings, Profile, Settings, SettingsGroup, SettingsTable};
use crate::error::Result;

/// A source of settings, lowest priority first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The table.
    Default,
    /// A profile.
    Profile,
    /// The command that runs (`fetch`, `audit`).
    Command,
    /// A plugin.
    AddOn,
    /// The settings file.
    Project,
    /// The spider, or the program that builds the crawler.
    Spider,
    /// `HUNTSMAN_*` variables.
    Environment,
    /// Flags and `--set`.
    CommandLine,
}

impl Layer {
    /// Name for `settings --explain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Profile => "profile",
            Self::Command => "command",
            Self::AddOn => "add-on",
            Self::Project => "settings file",
            Self::Spider => "spider",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
        }
    }
}

/// Settings by layer: a later layer wins; within a layer the later call. Names and values are checked when they are resolved, because the
/// components that declare them may be added later.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    profile: Profile,
    values: Vec<(Layer, String, Value)>,
}

impl Layers {
    /// Uses the values of a profile, below all layers but the defaults.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
    }

    /// Sets one value in a layer.
    pub fn set(&mut self, layer: Layer, name: &str, value: impl Into<Value>) {
        self.values.push((layer, name.to_ascii_lowercase(), value.into()));
    }

    /// The default of a setting and what every layer says of it, the winner last.
    pub fn explain(&self, name: &str, table: &SettingsTable) -> Vec<(Layer, Value)> {
        let default = table.get(name).map(|info| (Layer::Default, (info.default)()));
        let of_name =
            |(layer, key, value): (Layer, &str, &Value)| (key == name).then(|| (layer, value.clone()));
        let profile = table.profile(self.profile);
        let said = self.all(&profile).into_iter().filter_map(of_name);
        default.into_iter().chain(said).collect()
    }

    /// What all layers say, the lowest priority first.
    fn all<'a>(&'a self, profile: &'a Map<String, Value>) -> Vec<(Layer, &'a str, &'a Value)> {
        let profile = profile.iter().map(|(name, value)| (Layer::Profile, name.as_str(), value));
        let values = self.values.iter().map(|(layer, name, value)| (*layer, name.as_str(), value));
        let mut all: Vec<_> = profile.chain(values).collect();
        all.sort_by_key(|(layer, ..)| *layer);
        all
    }

    /// The typed settings.
    ///
    /// # Errors
    /// A name is not in the table (the nearest one that is, is named), a value has the wrong type, or is out of its range; the error
    /// names the setting.
    pub fn resolve(&self, table: &SettingsTable) -> Result<Settings> {
        let profile = table.profile(self.profile);
        let mut given = Map::new();
        for (_, name, value) in self.all(&profile) {
            table.check(name, value)?;
            // Tables merge: a project names one middleware or slot, the rest stays.
            let Value::Object(new) = value else {
                given.insert(name.to_owned(), value.clone());
                continue;
            };
            let default = || table.get(name).map(|info| (info.default)());
            let old = given.remove(name).or_else(default);
            let mut merged = match old {
                Some(Value::Object(old)) => old,
                _ => Map::new(),
            };
            // HTTP knows no case in names, so neither does what replaces what.
            if table.get(name).is_some_and(|info| info.is_headers()) {
                merged.retain(|name, _| !new.keys().any(|other| other.eq_ignore_ascii_case(name)));
            }
            merged.extend(new.clone());
            given.insert(name.to_owned(), Value::Object(merged));
        }
        let mut values = table.complete(&given)?;
        let engine = EngineSettings::read(&values)?;
        EngineSettings::TABLE.iter().for_each(|info| drop(values.remove(info.name)));
        Ok(Settings { engine, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn certificates_are_verified_recorded_or_not_looked_at() {
        use crate::settings::VerifyCertificates as V;
        let resolved = |text: &str| {
            let mut layers = Layers::default();
            layers.set_text(Layer::CommandLine, "download_verify_certificates", text)?;
            layers.resolve().map(|settings| settings.download_verify_certificates)
        };
        for (text, value) in [("true", V::Yes), ("record", V::Record), ("false", V::No)] {
            assert_eq!(resolved(text).unwrap(), value);
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(json.trim_matches('"'), text);
        }
        assert!(resolved("never").unwrap_err().to_string().contains("true, false or record"));
    }

    #[test]
    fn a_later_layer_wins_whatever_the_order_of_calls() {
        let mut layers = Layers::default();
        layers.set(Layer::CommandLine, "download_delay", 3.0).unwrap();
        layers.set(Layer::Project, "download_delay", 2.0).unwrap();
        layers.set(Layer::Profile, "retry_times", 1).unwrap();
        let settings = layers.resolve().unwrap();
        assert_eq!((settings.download_delay, settings.retry_times), (3.0, 1));
        let explained: Vec<_> =
            layers.explain("download_delay").into_iter().map(|(layer, _)| layer).collect();
        assert_eq!(explained, [Layer::Default, Layer::Project, Layer::CommandLine]);
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_known_one() {
        let error = Layers::default().set(Layer::Project, "donwload_delay", 1).unwrap_err();
        assert!(error.to_string().contains("did you mean download_delay?"), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn a_wrong_type_is_named() {
        let error = Layers::default().set_text(Layer::CommandLine, "retry_times", "often").unwrap_err();
        assert!(error.to_string().contains("retry_times"), "{error}");
    }

    #[test]
    fn text_becomes_numbers_words_and_lists() {
        let mut layers = Layers::default();
        layers.set_text(Layer::CommandLine, "retry_http_codes", "[500, 503]").unwrap();
        layers.set_text(Layer::CommandLine, "exclude", "*/a/*, */b/*").unwrap();
        layers.set_text(Layer::CommandLine, "user_agent", "12345").unwrap();
        layers.set_text(Layer::CommandLine, "slot_by", "registrable_domain").unwrap();
        let settings = layers.resolve().unwrap();
        assert_eq!(settings.retry_http_codes, [500, 503]);
        assert_eq!(settings.exclude, ["*/a/*", "*/b/*"]);
        assert_eq!(settings.user_agent, "12345");
    }

    #[test]
    fn tables_merge_over_the_layers() {
        let mut layers = Layers::default();
        layers.set(Layer::Project, "downloader_middlewares", json!({"retry": 545})).unwrap();
        layers.set(Layer::CommandLine, "downloader_middlewares", json!({"redirect": "off"})).unwrap();
        assert_eq!(layers.resolve().unwrap().downloader_middlewares.len(), 2);
    }

    #[test]
    fn credentials_are_not_shown_and_not_in_errors_either() {
        let hidden = json!("***");
        assert_eq!(Settings::shown("proxy", json!("http://u:SECRET@p:1")), hidden);
        assert_eq!(Settings::shown("proxy", Value::Null), Value::Null);
        assert_eq!(Settings::shown("http_auth", json!(["https://h=u:SECRET"])), hidden);
        assert_eq!(Settings::shown("http_auth", json!([])), json!([]));
        assert_eq!(Settings::shown("user_agent", json!("a")), json!("a"));
        let headers = json!({"Accept": "a/a", "X-Api-Key": "SECRET"});
        assert_eq!(
            Settings::shown("default_request_headers", headers),
            json!({"Accept": "a/a", "X-Api-Key": "***"})
        );
        for (name, value) in [
            ("http_auth", json!("https://h=u:SECRET")),
            ("httpauth_pass", json!({"a": "SECRET"})),
            ("default_request_headers", json!({"Authorization": ["SECRET"]})),
        ] {
            let error = Layers::default().set(Layer::Project, name, value).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn names_of_default_headers_replace_each_other_whatever_their_case() {
        let mut layers = Layers::default();
        let set =
            |layers: &mut Layers, layer, value| layers.set(layer, "default_request_headers", value).unwrap();
        set(&mut layers, Layer::Project, json!({"accept": "a/a", "X-One": "1"}));
        set(&mut layers, Layer::CommandLine, json!({"ACCEPT-language": "de", "x-one": "2"}));
        let headers = layers.resolve().unwrap().default_request_headers;
        let expected = [("ACCEPT-language", "de"), ("accept", "a/a"), ("x-one", "2")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn every_profile_resolves() {
        for profile in super::super::Profile::ALL {
            let mut layers = Layers::default();
            layers.set_all(Layer::Profile, profile.values()).unwrap();
            layers.resolve().unwrap();
        }
    }
}
