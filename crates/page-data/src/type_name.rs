//! The name of a type as serde knows it.

use std::fmt;

use serde::de::{self, DeserializeOwned, Visitor};
use serde::forward_to_deserialize_any;

/// The name of a struct, as serde knows it: `Product` for `struct Product`, and what `#[serde(rename = "...")]` says on the struct, if it
/// says something. `None` if the type is no struct.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(rename = "Product")]
/// struct Ware {
///     name: String,
/// }
/// assert_eq!(huntsman_page_data::type_name::<Ware>(), Some("Product"));
/// assert_eq!(huntsman_page_data::type_name::<Vec<Ware>>(), None);
/// ```
pub fn type_name<T: DeserializeOwned>() -> Option<&'static str> {
    let mut name = None;
    // It always fails: what matters is what the type asks for.
    let _ = T::deserialize(Asked(&mut name));
    name
}

/// A deserializer that has nothing, and remembers the struct that it is asked for.
struct Asked<'n>(&'n mut Option<&'static str>);

#[derive(Debug)]
struct Nothing;

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing to read")
    }
}

impl std::error::Error for Nothing {}

impl de::Error for Nothing {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> de::Deserializer<'de> for Asked<'_> {
    type Error = Nothing;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Nothing> {
        Err(Nothing)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Nothing> {
        *self.0 = Some(name);
        Err(Nothing)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}
