//! The sources of settings: layers in order of priority, and the values that each of them sets.

use serde_json::{Map, Value};

use super::{EngineSettings, Profile, Settings, SettingsGroup, SettingsTable};
use crate::error::Result;

/// A source of settings; lowest priority first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The defaults in the table of settings.
    Default,
    /// The values of the profile.
    Profile,
    /// Values that the command sets for itself (`fetch`, `audit`).
    Command,
    /// Values that a plugin sets.
    AddOn,
    /// Values that the spider sets, where a settings file takes precedence over them
    /// ([`CrawlerBuilder::as_defaults`](crate::CrawlerBuilder::as_defaults)).
    SpiderDefaults,
    /// The settings file of the project.
    Project,
    /// Values that the spider or the program sets.
    Spider,
    /// Variables of the environment: `HUNTSMAN_*`.
    Environment,
    /// Flags of the command, and `--set`.
    CommandLine,
}

impl Layer {
    /// The name shown by `settings --explain`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Profile => "profile",
            Self::Command => "command",
            Self::AddOn => "add-on",
            Self::Project => "settings file",
            Self::SpiderDefaults | Self::Spider => "spider",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
        }
    }
}

/// Settings by layer. A later layer overrides an earlier one; within a layer the later call wins. Names and values
/// are checked when they are resolved, because the components that declare them may be added later.
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

    /// The profile in use.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Moves the values of one layer to another one.
    pub(crate) fn relabel(&mut self, from: Layer, to: Layer) {
        self.values.iter_mut().filter(|(layer, ..)| *layer == from).for_each(|(layer, ..)| *layer = to);
    }

    /// Adds the values of others, but not their profile.
    pub(crate) fn extend(&mut self, others: Self) {
        self.values.extend(others.values);
    }

    /// Sets one value in a layer.
    pub fn set(&mut self, layer: Layer, name: &str, value: impl Into<Value>) {
        self.values.push((layer, name.to_ascii_lowercase(), value.into()));
    }

    /// The default of a setting and its value in every layer that sets it; the last one is in force.
    pub fn explain(&self, name: &str, table: &SettingsTable) -> Vec<(Layer, Value)> {
        let default = table.get(name).map(|info| (Layer::Default, (info.default)()));
        let of_name =
            |(layer, key, value): (Layer, &str, &Value)| (key == name).then(|| (layer, value.clone()));
        let profile = table.profile(self.profile);
        let said = self.all(&profile).into_iter().filter_map(of_name);
        default.into_iter().chain(said).collect()
    }

    /// The values of all layers, lowest priority first.
    fn all<'a>(&'a self, profile: &'a Map<String, Value>) -> Vec<(Layer, &'a str, &'a Value)> {
        let profile = profile.iter().map(|(name, value)| (Layer::Profile, name.as_str(), value));
        let values = self.values.iter().map(|(layer, name, value)| (*layer, name.as_str(), value));
        let mut all: Vec<_> = profile.chain(values).collect();
        all.sort_by_key(|(layer, ..)| *layer);
        all
    }

    /// Resolves the layers to typed settings.
    ///
    /// # Errors
    /// A name is not in the table (the error suggests the nearest known name), a value has the wrong type, or it is
    /// out of its range; the error names the setting.
    pub fn resolve(&self, table: &SettingsTable) -> Result<Settings> {
        let profile = table.profile(self.profile);
        let mut given = Map::new();
        for (_, name, value) in self.all(&profile) {
            table.check(name, value)?;
            // Tables are merged: if a project names one middleware or slot, the others are kept.
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
            // Names of HTTP headers are case-insensitive, so a value replaces one whose name differs only in case.
            if table.get(name).is_some_and(|info| info.is_headers()) {
                merged.retain(|name, _| !new.keys().any(|other| other.eq_ignore_ascii_case(name)));
            }
            merged.extend(new.clone());
            given.insert(name.to_owned(), Value::Object(merged));
        }
        let mut values = table.complete(&given)?;
        let engine = EngineSettings::read(&values)?;
        EngineSettings::TABLE.iter().for_each(|info| drop(values.remove(info.name)));
        Ok(Settings { engine, values, declared: Some(table.ids()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    crate::settings! {
        /// Settings of a component.
        struct OwnSettings {
            /// Tries.
            own_times: u32 = 2, broad = 1;
            /// Credentials.
            own_logins: Vec<String> = Vec::new(), secret;
            /// A password.
            own_password: String = String::new(), secret;
            /// A proxy.
            own_proxy: Option<String> = None, secret;
            /// Headers.
            own_headers: std::collections::BTreeMap<String, String> =
                std::collections::BTreeMap::from([("Accept".to_owned(), "*/*".to_owned())]), headers;
        }
    }

    fn table() -> SettingsTable {
        let mut table = SettingsTable::default();
        table.add::<OwnSettings>(None);
        table
    }

    fn set_text(layers: &mut Layers, name: &str, text: &str) -> Result<()> {
        layers.set(Layer::CommandLine, name, table().parse(name, text)?);
        Ok(())
    }

    #[test]
    fn certificates_are_verified_recorded_or_not_looked_at() {
        use crate::settings::VerifyCertificates as V;
        let resolved = |text: &str| {
            let mut layers = Layers::default();
            set_text(&mut layers, "download_verify_certificates", text)?;
            layers.resolve(&table()).map(|settings| settings.download_verify_certificates)
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
        layers.set(Layer::CommandLine, "download_delay", 3.0);
        layers.set(Layer::Project, "download_delay", 2.0);
        layers.set(Layer::Command, "own_times", 1);
        let settings = layers.resolve(&table()).unwrap();
        assert_eq!((settings.download_delay, settings.of::<OwnSettings>().unwrap().own_times), (3.0, 1));
        let explained: Vec<_> =
            layers.explain("download_delay", &table()).into_iter().map(|(layer, _)| layer).collect();
        assert_eq!(explained, [Layer::Default, Layer::Project, Layer::CommandLine]);
    }

    #[test]
    fn a_profile_has_the_values_that_each_setting_declares_for_it() {
        let mut layers = Layers::default();
        layers.set_profile(Profile::Broad);
        let settings = layers.resolve(&table()).unwrap();
        assert_eq!((settings.concurrent_requests, settings.of::<OwnSettings>().unwrap().own_times), (256, 1));
        layers.set(Layer::Command, "own_times", 7);
        assert_eq!(layers.resolve(&table()).unwrap().of::<OwnSettings>().unwrap().own_times, 7);
        let explained = layers.explain("own_times", &table());
        assert_eq!(
            explained,
            [(Layer::Default, json!(2)), (Layer::Profile, json!(1)), (Layer::Command, json!(7))]
        );
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_known_one() {
        let mut layers = Layers::default();
        layers.set(Layer::Project, "donwload_delay", 1);
        let error = layers.resolve(&table()).unwrap_err();
        assert!(error.to_string().contains("did you mean download_delay?"), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn a_setting_of_a_component_that_is_not_there_is_unknown() {
        let mut layers = Layers::default();
        layers.set(Layer::Project, "own_times", 1);
        assert!(layers.resolve(&SettingsTable::default()).unwrap_err().is_usage());
    }

    #[test]
    fn a_wrong_type_is_named() {
        let error = set_text(&mut Layers::default(), "own_times", "often").unwrap_err();
        assert!(error.to_string().contains("own_times"), "{error}");
        let mut layers = Layers::default();
        layers.set(Layer::Project, "own_times", "often");
        let error = layers.resolve(&table()).unwrap_err();
        assert!(error.to_string().contains("own_times"), "{error}");
    }

    #[test]
    fn text_becomes_numbers_words_and_lists() {
        let mut layers = Layers::default();
        for (name, text) in [
            ("fingerprint_headers", "[\"a\", \"b\"]"),
            ("strip_query_params", "utm_*, gclid"),
            ("user_agent", "12345"),
            ("slot_by", "registrable_domain"),
        ] {
            set_text(&mut layers, name, text).unwrap();
        }
        let settings = layers.resolve(&table()).unwrap();
        assert_eq!(settings.fingerprint_headers, ["a", "b"]);
        assert_eq!(settings.strip_query_params, ["utm_*", "gclid"]);
        assert_eq!(settings.user_agent, "12345");
    }

    #[test]
    fn tables_merge_over_the_layers() {
        let mut layers = Layers::default();
        layers.set(Layer::Project, "downloader_middlewares", json!({"retry": 545}));
        layers.set(Layer::CommandLine, "downloader_middlewares", json!({"redirect": "off"}));
        assert_eq!(layers.resolve(&table()).unwrap().downloader_middlewares.len(), 2);
    }

    #[test]
    fn credentials_are_not_shown_and_not_in_errors_either() {
        let hidden = json!("***");
        let shown = |name, value| table().shown(name, value);
        assert_eq!(shown("own_proxy", json!("http://u:SECRET@p:1")), hidden);
        assert_eq!(shown("own_proxy", Value::Null), Value::Null);
        assert_eq!(shown("own_logins", json!(["https://h=u:SECRET"])), hidden);
        assert_eq!(shown("own_logins", json!([])), json!([]));
        assert_eq!(shown("user_agent", json!("a")), json!("a"));
        let headers = json!({"Accept": "a/a", "X-Api-Key": "SECRET"});
        assert_eq!(shown("own_headers", headers), json!({"Accept": "a/a", "X-Api-Key": "***"}));
        for (name, value) in [
            ("own_logins", json!("https://h=u:SECRET")),
            ("own_password", json!({"a": "SECRET"})),
            ("own_headers", json!({"Authorization": ["SECRET"]})),
        ] {
            let error = table().check(name, &value).unwrap_err().to_string();
            assert!(error.contains(name) && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn names_of_default_headers_replace_each_other_whatever_their_case() {
        let mut layers = Layers::default();
        layers.set(Layer::Project, "own_headers", json!({"accept": "a/a", "X-One": "1"}));
        layers.set(Layer::CommandLine, "own_headers", json!({"ACCEPT-language": "de", "x-one": "2"}));
        let headers = layers.resolve(&table()).unwrap().of::<OwnSettings>().unwrap().own_headers;
        let expected = [("ACCEPT-language", "de"), ("accept", "a/a"), ("x-one", "2")];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn every_profile_resolves() {
        for profile in Profile::ALL {
            let mut layers = Layers::default();
            layers.set_profile(profile);
            layers.resolve(&table()).unwrap();
        }
    }

    #[test]
    fn an_undeclared_group_is_an_error_and_the_engine_has_its_own_values() {
        let mut layers = Layers::default();
        layers.set(Layer::Spider, "download_delay", 3.0);
        let mut settings = layers.resolve(&SettingsTable::default()).unwrap();
        let error = settings.of::<OwnSettings>().unwrap_err().to_string();
        assert!(error.contains("OwnSettings") && error.contains("with_settings"), "{error}");
        assert_eq!(settings.of_or_default::<OwnSettings>().own_times, 2);
        assert_eq!(settings.of::<EngineSettings>().unwrap().download_delay, 3.0);
        settings.change(|engine: &mut EngineSettings| engine.download_delay = 4.0);
        assert_eq!(settings.download_delay, 4.0);
        assert_eq!(Settings::default().of::<OwnSettings>().unwrap().own_times, 2, "not resolved for a crawl");
    }
}
