//! The columns of a file and their types, by what the items have.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::Result;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};

use crate::sinks::record::REST;

/// Integers up to this size are exact as real numbers.
const EXACT: u64 = 1 << 53;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Integer,
    Real,
    Text,
    Texts,
    Json,
}

/// The kinds of values that a field has had.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bools: bool,
    integers: bool,
    /// An integer that is not exact as a real number.
    wide: bool,
    reals: bool,
    texts: bool,
    lists: bool,
    others: bool,
}

impl Seen {
    fn see(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.bools = true,
            Value::Number(number) => match number.as_i64() {
                Some(integer) => {
                    self.integers = true;
                    self.wide |= integer.unsigned_abs() > EXACT;
                }
                None if number.is_f64() => self.reals = true,
                None => self.others = true,
            },
            Value::String(_) => self.texts = true,
            Value::Array(list) if list.iter().all(|value| value.is_string() || value.is_null()) => {
                self.lists = true;
            }
            Value::Array(_) | Value::Object(_) => self.others = true,
        }
    }

    fn kind(self) -> Kind {
        let Self { bools, integers, wide, reals, texts, lists, others } = self;
        match (others, bools, integers, reals, texts, lists) {
            (false, true, false, false, false, false) => Kind::Bool,
            (false, false, true, false, false, false) => Kind::Integer,
            (false, false, false, true, false, false) => Kind::Real,
            (false, false, true, true, false, false) if !wide => Kind::Real,
            (false, false, false, false, _, false) => Kind::Text,
            (false, false, false, false, false, true) => Kind::Texts,
            _ => Kind::Json,
        }
    }
}

/// The columns, in the order in which fields came up.
#[derive(Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    seen: Vec<Seen>,
    of_field: HashMap<String, usize>,
    most: usize,
    has_rest: bool,
}

impl Columns {
    pub(super) fn new(declared: &[String], most: usize) -> Self {
        let mut columns =
            Self { names: Vec::new(), seen: Vec::new(), of_field: HashMap::new(), most, has_rest: false };
        for field in declared {
            columns.note(field, &Value::Null);
        }
        columns
    }

    /// Notes the fields of an item.
    pub(super) fn see(&mut self, item: Map<String, Value>) {
        for (field, value) in item {
            self.note(&field, &value);
        }
    }

    fn note(&mut self, field: &str, value: &Value) {
        let column = match self.of_field.get(field) {
            Some(&column) => column,
            None if field == REST || self.names.len() >= self.most => {
                self.has_rest = true;
                return;
            }
            None => {
                self.names.push(field.to_owned());
                self.seen.push(Seen::default());
                self.of_field.insert(field.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
        };
        self.seen[column].see(value);
    }

    /// Whether some fields have no column of their own.
    pub(super) fn has_rest(&self) -> bool {
        self.has_rest
    }

    /// The types of the columns; that of the rest is the last one. A file needs a column, so one without any has that of the rest.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let rest = self.rest().map(|_| Kind::Json);
        self.seen.iter().map(|seen| seen.kind()).chain(rest).collect()
    }

    /// The number of the column of a field.
    pub(super) fn of(&self, field: &str) -> Option<usize> {
        self.of_field.get(field).copied()
    }

    /// The number of the column for the other fields.
    pub(super) fn rest(&self) -> Option<usize> {
        (self.has_rest || self.names.is_empty()).then_some(self.names.len())
    }

    pub(super) fn schema(&self) -> Result<TypePtr> {
        let names = self.names.iter().map(String::as_str).chain(self.rest().map(|_| REST));
        let columns = names.zip(self.kinds()).map(|(name, kind)| column(name, kind));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Type::group_type_builder("items").with_fields(columns).build().map(Arc::new)
    }
}

fn column(name: &str, kind: Kind) -> Result<TypePtr> {
    let (physical, logical) = match kind {
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::Integer => (Physical::INT64, None),
        Kind::Real => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Json => (Physical::BYTE_ARRAY, Some(LogicalType::Json)),
        Kind::Texts => {
            let element = Type::primitive_type_builder("element", Physical::BYTE_ARRAY)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::String))
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            return Type::group_type_builder(name)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(Some(LogicalType::List))
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()
                .map(Arc::new);
        }
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}
