//! Where settings come from: layers in order of priority, and what each of them said.

use serde_json::{Map, Value};

use super::Settings;
use crate::error::{Error, Result};

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

/// Settings by layer: a later layer wins; within a layer the later call.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    values: Vec<(Layer, String, Value)>,
}

impl Layers {
    /// Sets one value in a layer.
    ///
    /// # Errors
    /// The name is unknown (the nearest known one is named), or the value has the wrong type.
    pub fn set(&mut self, layer: Layer, name: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        let name = name.to_ascii_lowercase();
        check(&name, &value)?;
        self.values.push((layer, name, value));
        Ok(())
    }

    /// Sets several values in a layer.
    ///
    /// # Errors
    /// As [`Layers::set`].
    pub fn set_all(&mut self, layer: Layer, values: Map<String, Value>) -> Result<()> {
        values.into_iter().try_for_each(|(name, value)| self.set(layer, &name, value))
    }

    /// Sets one value given as text (`--set key=value`): JSON if it is, else a string; lists may be comma-separated.
    ///
    /// # Errors
    /// As [`Layers::set`].
    pub fn set_text(&mut self, layer: Layer, name: &str, text: &str) -> Result<()> {
        let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let list = || Value::from(text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>());
        let candidates = [value, Value::from(text), list()];
        let name = name.to_ascii_lowercase();
        match candidates.iter().find(|value| check(&name, value).is_ok()) {
            Some(value) => self.set(layer, &name, value.clone()),
            None => check(&name, &candidates[0]),
        }
    }

    /// The value of a setting and every layer that set it, the winner last.
    pub fn explain(&self, name: &str) -> Vec<(Layer, Value)> {
        let mut all: Vec<_> = self
            .values
            .iter()
            .filter(|(_, key, _)| key == name)
            .map(|(layer, _, value)| (*layer, value.clone()))
            .collect();
        all.sort_by_key(|(layer, _)| *layer);
        if let Some(default) = Settings::default().get(name) {
            all.insert(0, (Layer::Default, default));
        }
        all
    }

    /// The typed settings.
    ///
    /// # Errors
    /// A value out of range; the error names the setting.
    pub fn resolve(&self) -> Result<Settings> {
        let mut all = match serde_json::to_value(Settings::default())? {
            Value::Object(all) => all,
            _ => Map::new(),
        };
        let mut values: Vec<_> = self.values.iter().collect();
        values.sort_by_key(|(layer, ..)| *layer);
        for (_, name, value) in values {
            match (all.get_mut(name), value) {
                // Tables merge: a project names one middleware or slot, the rest stays.
                (Some(Value::Object(old)), Value::Object(new)) => {
                    // HTTP knows no case in names, so neither does what replaces what.
                    if name == "default_request_headers" {
                        old.retain(|name, _| !new.keys().any(|other| other.eq_ignore_ascii_case(name)));
                    }
                    old.extend(new.clone());
                }
                _ => drop(all.insert(name.clone(), value.clone())),
            }
        }
        let settings: Settings = serde_json::from_value(Value::Object(all))?;
        validate(&settings)?;
        Ok(settings)
    }
}

/// Whether the name is known and the value fits its type.
fn check(name: &str, value: &Value) -> Result<()> {
    if !Settings::table().iter().any(|info| info.name == name) {
        let known = Settings::table().iter().map(|info| info.name);
        let hint = nearest(name, known).map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(Error::usage(format!("unknown setting {name}{hint}")));
    }
    let mut one = Map::new();
    one.insert(name.to_owned(), value.clone());
    match serde_json::from_value::<Settings>(Value::Object(one)) {
        Ok(_) => Ok(()),
        Err(cause) => {
            let kind = Settings::table().iter().find(|info| info.name == name).map_or("", |info| info.kind);
            let (shown, cause) = (Settings::shown(name, value.clone()), cause.to_string());
            // The cause repeats the value.
            let cause = if shown == *value { format!("{cause} ") } else { String::new() };
            Err(Error::usage(format!("setting {name} = {shown}: {cause}(it is a {kind})")))
        }
    }
}

fn validate(settings: &Settings) -> Result<()> {
    let fail = |name: &str, what: &str| Err(Error::usage(format!("setting {name}: {what}")));
    let times = [
        ("download_delay", settings.download_delay),
        ("download_delay_jitter", settings.download_delay_jitter),
        ("requests_per_second", settings.requests_per_second),
        ("proxy_requests_per_second", settings.proxy_requests_per_second),
        ("download_timeout", settings.download_timeout),
        ("connect_timeout", settings.connect_timeout),
        ("first_byte_timeout", settings.first_byte_timeout),
        ("read_idle_timeout", settings.read_idle_timeout),
        ("dns_timeout", settings.dns_timeout),
        ("autothrottle_start_delay", settings.autothrottle_start_delay),
        ("autothrottle_max_delay", settings.autothrottle_max_delay),
        ("retry_after_max", settings.retry_after_max),
        ("max_parked_wait", settings.max_parked_wait),
        ("closespider_timeout", settings.closespider_timeout),
    ];
    if let Some((name, value)) = times.into_iter().find(|(_, value)| !value.is_finite() || *value < 0.0) {
        return fail(name, &format!("{value} is not a finite number of at least 0"));
    }
    if settings.autothrottle_target_concurrency <= 0.0 {
        return fail("autothrottle_target_concurrency", "must be greater than 0");
    }
    if settings.concurrent_requests_per_domain == 0 {
        return fail("concurrent_requests_per_domain", "must be at least 1");
    }
    if http::HeaderValue::from_str(&settings.user_agent).is_err() {
        return fail("user_agent", "not allowed as a header value");
    }
    if !matches!(settings.tls_max_version.as_str(), "1.2" | "1.3") {
        return fail("tls_max_version", "use 1.2 or 1.3");
    }
    if !matches!(settings.tls_min_version.as_str(), "1.2" | "1.3") {
        return fail("tls_min_version", "use 1.2 or 1.3");
    }
    Ok(())
}

/// The known name that is nearest to a mistyped one by edit distance, if it is near at all.
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
