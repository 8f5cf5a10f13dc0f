//! Takes the name and the arguments of a variant apart.

use serde::ser::{Error as _, Impossible, Serialize, Serializer};
use serde_json::{Error, Value};

/// A serializer that accepts variants of enums in serde's default form and refuses everything else, because a label has to come out.
pub(super) struct Encoder {
    /// The name of the type, for errors.
    route: &'static str,
}

type Json = serde_json::value::Serializer;
type No = Impossible<Written, Error>;
/// The name of a variant, and its arguments if it can have any.
type Written = (String, Option<Value>);

impl Encoder {
    pub(super) fn of<T: ?Sized>() -> Self {
        Self { route: std::any::type_name::<T>() }
    }

    fn refuse<T>(&self, what: &str) -> Result<T, Error> {
        Err(Error::custom(format!(
            "a route has to be a variant of an enum (without `tag` or `untagged`), and {} is {what}",
            self.route
        )))
    }
}

/// The arguments in `{"Variant": arguments}`.
fn arguments(variant: &str, written: Value) -> Written {
    let arguments = match written {
        Value::Object(mut map) => map.remove(variant),
        _ => None,
    };
    (variant.to_owned(), arguments)
}

/// A variant with several arguments, which serde_json collects.
pub(super) struct Parts<T> {
    variant: &'static str,
    json: T,
}

impl serde::ser::SerializeTupleVariant for Parts<<Json as Serializer>::SerializeTupleVariant> {
    type Ok = Written;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.json.serialize_field(value)
    }

    fn end(self) -> Result<Written, Error> {
        Ok(arguments(self.variant, self.json.end()?))
    }
}

impl serde::ser::SerializeStructVariant for Parts<<Json as Serializer>::SerializeStructVariant> {
    type Ok = Written;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Error> {
        self.json.serialize_field(key, value)
    }

    fn end(self) -> Result<Written, Error> {
        Ok(arguments(self.variant, self.json.end()?))
    }
}

macro_rules! refused {
    ($($method:ident($($type:ty),*) as $what:literal;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<Written, Error> {
            self.refuse($what)
        })*
    };
}

macro_rules! refused_parts {
    ($($method:ident($($type:ty),*) as $what:literal;)*) => {
        $(fn $method(self, $(_: $type),*) -> Result<No, Error> {
            self.refuse($what)
        })*
    };
}

impl Serializer for Encoder {
    type Ok = Written;
    type Error = Error;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = Parts<<Json as Serializer>::SerializeTupleVariant>;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = Parts<<Json as Serializer>::SerializeStructVariant>;

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Written, Error> {
        Ok((variant.to_owned(), None))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Written, Error> {
        Ok(arguments(variant, Json {}.serialize_newtype_variant(name, index, variant, value)?))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Ok(Parts { variant, json: Json {}.serialize_tuple_variant(name, index, variant, len)? })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Ok(Parts { variant, json: Json {}.serialize_struct_variant(name, index, variant, len)? })
    }

    /// A wrapper around an enum is one.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Written, Error> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<Written, Error> {
        self.refuse("an option")
    }

    refused! {
        serialize_bool(bool) as "a boolean";
        serialize_i8(i8) as "a number";
        serialize_i16(i16) as "a number";
        serialize_i32(i32) as "a number";
        serialize_i64(i64) as "a number";
        serialize_u8(u8) as "a number";
        serialize_u16(u16) as "a number";
        serialize_u32(u32) as "a number";
        serialize_u64(u64) as "a number";
        serialize_f32(f32) as "a number";
        serialize_f64(f64) as "a number";
        serialize_char(char) as "a character";
        serialize_str(&str) as "a text";
        serialize_bytes(&[u8]) as "bytes";
        serialize_none() as "an option";
        serialize_unit() as "nothing";
        serialize_unit_struct(&'static str) as "a struct";
    }

    refused_parts! {
        serialize_seq(Option<usize>) as "a list";
        serialize_tuple(usize) as "a tuple";
        serialize_tuple_struct(&'static str, usize) as "a struct";
        serialize_map(Option<usize>) as "a map";
        serialize_struct(&'static str, usize) as "a struct";
    }
}
