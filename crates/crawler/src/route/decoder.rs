//! Makes a variant of a label and arguments.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

use super::{NAMELESS, is_nameless};
use crate::request::DEFAULT_CALLBACK;

/// Greatest length of arguments in a message, in characters.
const MAX_SHOWN: usize = 200;

/// Why a label and arguments are no route.
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) is_unknown: bool,
}

/// What serde tells of the type while it reads a route.
#[derive(Default)]
struct Expected {
    name: &'static str,
    variants: &'static [&'static str],
    fields: Option<&'static [&'static str]>,
    is_unknown: bool,
}

pub(super) fn read<T: DeserializeOwned>(
    label: &str,
    arguments: Option<&Map<String, Value>>,
) -> Result<T, Failure> {
    let expected = RefCell::default();
    let none = Map::new();
    let arguments = arguments.unwrap_or(&none);
    T::deserialize(Decoder { label, arguments, expected: &expected }).map_err(|cause| {
        let Expected { name, variants, fields, is_unknown } = expected.into_inner();
        let label = label.escape_debug();
        if is_unknown {
            let mut message =
                format!("\"{label}\" is not one of the callbacks of {name}: {}", variants.join(", "));
            if *label.to_string() == *DEFAULT_CALLBACK {
                message.push_str("; Start::to gives start requests a route, and Request::to others");
            }
            return Failure { message, is_unknown };
        }
        if name.is_empty() {
            return Failure { message: cause.to_string(), is_unknown };
        }
        let given = Value::Object(arguments.clone()).to_string();
        let mut shown: String = given.chars().take(MAX_SHOWN).collect();
        if shown.len() < given.len() {
            shown.push('…');
        }
        let expected = fields.map_or_else(String::new, |fields| format!(", expected: {}", fields.join(", ")));
        let message =
            format!("the arguments of {name}::{label} do not fit: {cause}; they are {shown}{expected}");
        Failure { message, is_unknown }
    })
}

#[derive(Clone, Copy)]
struct Decoder<'a> {
    label: &'a str,
    arguments: &'a Map<String, Value>,
    expected: &'a RefCell<Expected>,
}

impl Decoder<'_> {
    /// The arguments as serde writes them in JSON.
    fn payload(&self) -> Value {
        match is_nameless(self.arguments) {
            true => self.arguments[NAMELESS].clone(),
            false => Value::Object(self.arguments.clone()),
        }
    }
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut expected = self.expected.borrow_mut();
        (expected.name, expected.variants) = (name, variants);
        drop(expected);
        visitor.visit_enum(self)
    }

    /// A wrapper around an enum is one.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a route has to be an enum (without `tag` or `untagged`)"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Decoder<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = seed.deserialize(StrDeserializer::<Error>::new(self.label));
        let variant = variant.inspect_err(|_| self.expected.borrow_mut().is_unknown = true)?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Decoder<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        // A variant with `serde(other)` is for labels of all kinds.
        let is_named = self.expected.borrow().variants.contains(&self.label);
        match is_named && !self.arguments.is_empty() {
            true => Err(Error::custom("it takes no arguments")),
            false => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.payload())
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.payload().deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.expected.borrow_mut().fields = Some(fields);
        // serde passes over fields that it does not know. Here one means that another program wrote the request, and that the value which
        // it was about would be lost.
        if let Value::Object(given) = &self.payload()
            && let Some(unknown) = given.keys().find(|key| !fields.contains(&key.as_str()))
        {
            return Err(Error::custom(format!("\"{}\" is unknown", unknown.escape_debug())));
        }
        self.payload().deserialize_struct("", fields, visitor)
    }
}
