//! JSON Schema: rules for items in a file, which every language can read.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use huntsman_crawler::terminal::escape;
use huntsman_crawler::{Error, Result};
use serde_json::Value;

use super::Faults;

/// Largest schema that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;
/// The address of the schema inside of the library, which shows it in no message.
const ADDRESS: &str = "file:///item-schema";

/// A JSON Schema of items (drafts 4, 6, 7, 2019-09, 2020-12; without `$schema` the last one), compiled once.
///
/// `format` is asserted. Expressions of `pattern` run in linear time, so they have no look-around. References lead to places within the schema
/// (`#/$defs/price`): others are refused, because nothing is ever fetched for a schema, neither from a server nor from another file.
pub struct Schema {
    schemas: Schemas,
    root: SchemaIndex,
}

/// Loads nothing.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _: &str) -> Result<Value, Box<dyn StdError>> {
        Err("nothing is fetched for a schema; move what it refers to into $defs of the same file".into())
    }
}

impl Schema {
    /// Reads a schema from a file of JSON.
    ///
    /// # Errors
    /// The file cannot be read, or it is no schema: the message names the file, the place in it, and what to do.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let shown = escape(&path.to_string_lossy()).into_owned();
        let fault =
            |what: String| Error::usage(format!("schema of items {shown} (setting item_schema): {what}"));
        let size = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?.len();
        if size > MAX_FILE {
            return Err(fault(format!("it has {size} bytes; at most {MAX_FILE} are read")));
        }
        let text = std::fs::read(path).map_err(|error| fault(error.to_string()))?;
        let value: Value =
            serde_json::from_slice(&text).map_err(|error| fault(format!("it is no JSON: {error}")))?;
        Self::new(value).map_err(|error| fault(error.to_string()))
    }

    /// Compiles a schema.
    ///
    /// # Errors
    /// It is no schema; the message names the place in it.
    pub fn new(schema: Value) -> Result<Self> {
        let mut compiler = Compiler::new();
        compiler.enable_format_assertions();
        compiler.use_loader(Box::new(NoLoader));
        let mut schemas = Schemas::new();
        if !schema.is_object() && !schema.is_boolean() {
            return Err(Error::usage("a schema is an object, such as {\"type\": \"object\"}"));
        }
        compiler.add_resource(ADDRESS, schema).map_err(|error| Error::usage(explained(&error)))?;
        let root =
            compiler.compile(ADDRESS, &mut schemas).map_err(|error| Error::usage(explained(&error)))?;
        Ok(Self { schemas, root })
    }

    /// Adds what is wrong with a value.
    pub fn check(&self, value: &Value, faults: &mut Faults) {
        if let Err(error) = self.schemas.validate(value, self.root) {
            leaves(&error, &mut |error| add(error, faults));
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("parts", &self.schemas.size()).finish()
    }
}

/// Calls a function with the errors that have no causes of their own.
fn leaves<'a, 's, 'v>(
    error: &'a ValidationError<'s, 'v>,
    each: &mut impl FnMut(&'a ValidationError<'s, 'v>),
) {
    // Why each alternative does not fit is of no interest: that none does is the fault.
    let is_choice = matches!(error.kind, ErrorKind::AnyOf | ErrorKind::OneOf(_));
    if error.causes.is_empty() || is_choice {
        return each(error);
    }
    error.causes.iter().for_each(|cause| leaves(cause, each));
}

fn add(error: &ValidationError<'_, '_>, faults: &mut Faults) {
    let path = dotted(&error.instance_location.to_string());
    let field = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match &error.kind {
        // The field that is concerned is the one that is not there, or should not be.
        ErrorKind::Required { want } => want.iter().for_each(|name| faults.add(&field(name), "required")),
        ErrorKind::AdditionalProperties { got } => {
            got.iter().for_each(|name| faults.add(&field(name), "additionalProperties"));
        }
        ErrorKind::AnyOf => faults.add(&path, "anyOf"),
        ErrorKind::OneOf(_) => faults.add(&path, "oneOf"),
        kind => {
            let keyword = kind.keyword_path().map_or("false schema", |path| path.keyword);
            faults.add_with(&path, keyword, kind);
        }
    }
}

/// A JSON pointer as a path of fields: `/offers/0/price` is `offers.0.price`.
fn dotted(pointer: &str) -> String {
    let parts = pointer.strip_prefix('/').unwrap_or(pointer).split('/');
    parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect::<Vec<_>>().join(".")
}

/// What is wrong with a schema, with the place in it.
fn explained(error: &CompileError) -> String {
    if let CompileError::ValidationError { src, .. } = error {
        let mut found = None;
        leaves(src, &mut |leaf| {
            // The longest place is the most telling one: the others are of alternatives that were not meant.
            let place = leaf.instance_location.to_string();
            if found.as_ref().is_none_or(|(known, _): &(String, String)| place.len() > known.len()) {
                found = Some((place, leaf.kind.to_string()));
            }
        });
        if let Some((place, why)) = found {
            return format!("at #{}: {}", escape(&place), escape(&why));
        }
    }
    // The address of the schema itself says nothing; what follows it is the place.
    let text = format!("{error:#}").replace(ADDRESS, "");
    escape(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(schema: Value, item: &Value) -> String {
        let mut faults = Faults::default();
        Schema::new(schema).unwrap().check(item, &mut faults);
        faults.to_string()
    }

    #[test]
    fn faults_name_the_field_and_the_keyword() {
        let schema = json!({
            "type": "object",
            "required": ["title", "price"],
            "additionalProperties": false,
            "properties": {
                "title": {"type": "string", "minLength": 2},
                "price": {"type": "number", "exclusiveMinimum": 0},
                "link": {"format": "uri"},
                "seller": {"$ref": "#/$defs/seller"},
                "offers": {"items": {"properties": {"price": {"type": "number"}}}},
                "state": {"anyOf": [{"const": "new"}, {"const": "used"}]},
            },
            "$defs": {"seller": {"required": ["name"]}},
        });
        for (item, expected) in [
            (json!({"title": "Mills", "price": 3, "link": "https://a.test/", "state": "new"}), vec![]),
            (json!({"title": "x", "price": 0}), vec!["title: minLength: ", "price: exclusiveMinimum: "]),
            (json!({"title": "Mills"}), vec!["price: required"]),
            (json!({"title": "Mills", "price": 1, "seller": {}}), vec!["seller.name: required"]),
            (json!({"title": "Mills", "price": 1, "odd": 1}), vec!["odd: additionalProperties"]),
            (json!({"title": "Mills", "price": 1, "link": "no link"}), vec!["link: format: "]),
            (
                json!({"title": "Mills", "price": 1, "offers": [{"price": 1}, {"price": "1"}]}),
                vec!["offers.1.price: type: "],
            ),
            (json!({"title": "Mills", "price": 1, "state": "lost"}), vec!["state: anyOf"]),
            (json!(["Mills"]), vec!["item: type: want object, but got array"]),
        ] {
            let told = faults(schema.clone(), &item);
            assert_eq!(told.is_empty(), expected.is_empty(), "{item}: {told}");
            for part in expected {
                assert!(told.contains(part), "{item}: {told}");
            }
        }
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        for (schema, expected) in [
            (json!({"properties": {"price": {"type": "numbr"}}}), "at #/properties/price/type"),
            (json!({"properties": {"price": {"minLength": "2"}}}), "at #/properties/price/minLength"),
            (json!({"properties": {"price": {"pattern": "(a"}}}), "/properties/price"),
            (json!({"properties": {"price": {"pattern": "a(?=b)"}}}), "/properties/price"),
            (json!({"$ref": "#/$defs/none"}), "/$defs/none"),
            (json!({"$ref": "other.json"}), "nothing is fetched"),
            (json!({"$ref": "https://a.test/schema.json"}), "nothing is fetched"),
            (json!({"$schema": "https://a.test/meta"}), "nothing is fetched"),
            (json!([]), "a schema is an object"),
        ] {
            let error = Schema::new(schema.clone()).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(expected), "{schema}: {error}");
        }
        let draft7 = json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"});
        assert_eq!(faults(draft7, &json!({})), "");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("book.json");
        for (text, expected) in
            [(None, "book.json"), (Some("{"), "no JSON"), (Some("{\"type\": 1}"), "at #/type")]
        {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let error = Schema::load(&path).unwrap_err().to_string();
            assert!(error.contains("book.json (setting item_schema)") && error.contains(expected), "{error}");
        }
    }
}
