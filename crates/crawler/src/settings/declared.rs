//! How a part of a crawl declares its settings.

use serde_json::{Map, Value};

use super::Profile;
use crate::error::{Error, Result};
use crate::secrets::is_secret_name;

/// A group of settings, of one component or of the engine. Created by [`settings!`](crate::settings!).
pub trait SettingsGroup: Default + Send + 'static {
    /// The name of the type.
    const NAME: &'static str;

    /// The description of each setting, in the order of the declaration.
    const TABLE: &'static [SettingInfo];

    /// Reads the group from values by name; a missing name gets its default.
    ///
    /// # Errors
    /// A value has the wrong type; the error names the setting.
    fn read(values: &Map<String, Value>) -> Result<Self>;

    /// Refuses values that have the right types but are out of range or contradict each other.
    ///
    /// # Errors
    /// A value is refused; the error says why and names the setting.
    fn check(&self) -> Result<()>;

    /// All values by name, as JSON.
    fn values(&self) -> Map<String, Value>;
}

/// The settings of a component without settings.
impl SettingsGroup for () {
    const NAME: &'static str = "()";
    const TABLE: &'static [SettingInfo] = &[];

    fn read(_: &Map<String, Value>) -> Result<Self> {
        Ok(())
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn values(&self) -> Map<String, Value> {
        Map::new()
    }
}

/// The description of one setting.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// The key in files and after `--set`.
    pub name: &'static str,
    /// The Rust type, for people.
    pub kind: &'static str,
    #[doc(hidden)]
    pub doc: &'static str,
    #[doc(hidden)]
    pub attributes: &'static [&'static str],
    /// The default, which is the value in the polite profile.
    pub default: fn() -> Value,
    /// The value in a profile, if it differs from the default.
    pub in_profile: fn(Profile) -> Option<Value>,
    /// Whether a value has the right type.
    pub check: fn(&Value) -> serde_json::Result<()>,
}

impl SettingInfo {
    /// One line that says what the setting does.
    pub fn doc(&self) -> String {
        self.doc.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Whether the value is a credential, which is not shown.
    pub fn is_secret(&self) -> bool {
        self.attributes.contains(&"secret")
    }

    /// Whether the setting is a table of HTTP header fields, whose names are case-insensitive.
    pub fn is_headers(&self) -> bool {
        self.attributes.contains(&"headers")
    }

    /// A value of the setting for display: credentials are replaced by `***`.
    pub fn shown(&self, value: Value) -> Value {
        const HIDDEN: &str = "***";
        match value {
            Value::Object(mut headers) if self.is_headers() => {
                let secret = |name: &String| name.parse().is_ok_and(|name| is_secret_name(&name));
                headers
                    .iter_mut()
                    .filter(|(name, _)| secret(name))
                    .for_each(|(_, value)| *value = HIDDEN.into());
                Value::Object(headers)
            }
            value if !self.is_secret() || value.is_null() => value,
            Value::Array(values) if values.is_empty() => Value::Array(values),
            Value::String(text) if text.is_empty() => Value::String(text),
            _ => HIDDEN.into(),
        }
    }
}

/// Reads one value of a group: the default if it was not set. Called by the code that [`settings!`](crate::settings!)
/// generates.
///
/// # Errors
/// The value has the wrong type; the error names the setting.
#[doc(hidden)]
pub fn read_setting<T: serde::de::DeserializeOwned>(
    values: &Map<String, Value>,
    name: &str,
    default: impl FnOnce() -> T,
) -> Result<T> {
    match values.get(name) {
        None => Ok(default()),
        Some(value) => {
            T::deserialize(value).map_err(|cause| Error::usage(format!("setting {name}: {cause}")))
        }
    }
}

/// Declares a group of settings as a struct: each setting with its documentation, name, type, default, and its values
/// in profiles other than the polite one. `huntsman settings` and the reference page show documentation and defaults.
///
/// `checked by` names a function that gets the struct and refuses values that have the right types but are out of
/// range or contradict each other. The default is followed by the values in profiles, by the word `secret` if the
/// value must not be shown, and by `headers` if the setting is a table of header fields.
///
/// ```
/// huntsman_crawler::settings! {
///     /// Settings of a middleware of mine.
///     pub struct GreetingSettings {
///         /// What pages are greeted with.
///         greeting: String = "hello".to_owned();
///         /// Greetings per page at most.
///         greetings_per_page: u32 = 1, audit = 5, test = 20;
///     }
/// }
/// assert_eq!(GreetingSettings::default().greetings_per_page, 1);
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[doc = $group_doc:literal])+
        $vis:vis struct $group:ident $(checked by $check:path)? {
            $(
                $(#[doc = $doc:literal])+
                $name:ident : $kind:ty = $default:expr $(, $word:ident $(= $in_profile:expr)?)*;
            )+
        }
    ) => {
        $(#[doc = $group_doc])+
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $group {
            $( $(#[doc = $doc])+ pub $name: $kind, )+
        }

        impl Default for $group {
            fn default() -> Self {
                Self { $( $name: $default, )+ }
            }
        }

        impl $crate::SettingsGroup for $group {
            const NAME: &'static str = stringify!($group);

            const TABLE: &'static [$crate::SettingInfo] = &[ $( $crate::SettingInfo {
                name: stringify!($name),
                kind: stringify!($kind),
                doc: concat!($($doc, "\n"),+),
                attributes: &[$(stringify!($word)),*],
                default: || {
                    let value: $kind = $default;
                    $crate::__private::json(&value)
                },
                in_profile: |profile| match profile.name() {
                    $($( stringify!($word) => {
                        let value: $kind = $in_profile;
                        Some($crate::__private::json(&value))
                    } )?)*
                    _ => None,
                },
                check: |value| $crate::__private::check::<$kind>(value),
            }, )+ ];

            fn read(
                values: &$crate::__private::Map<String, $crate::__private::Value>,
            ) -> $crate::Result<Self> {
                Ok(Self {
                    $( $name: $crate::__private::read_setting(values, stringify!($name), || $default)?, )+
                })
            }

            fn check(&self) -> $crate::Result<()> {
                $( $check(self)?; )?
                Ok(())
            }

            fn values(&self) -> $crate::__private::Map<String, $crate::__private::Value> {
                let mut values = $crate::__private::Map::new();
                $( values.insert(stringify!($name).to_owned(), $crate::__private::json(&self.$name)); )+
                values
            }
        }
    };
}

/// Functions that the code generated by [`settings!`](crate::settings!) calls.
#[doc(hidden)]
pub mod private {
    pub use serde_json::{Map, Value};

    pub use super::read_setting;

    /// A value of a setting as JSON. The types of settings are numbers, texts, and lists and tables of these.
    pub fn json<T: serde::Serialize>(value: &T) -> Value {
        serde_json::to_value(value).unwrap_or_default()
    }

    /// Whether a value has the type of a setting.
    pub fn check<T: serde::de::DeserializeOwned>(value: &Value) -> serde_json::Result<()> {
        T::deserialize(value).map(drop)
    }
}
