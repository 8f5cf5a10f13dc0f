//! Which column of a table each field of the items has.

use std::collections::HashMap;

use rusqlite::types::Value as Cell;
use serde_json::{Map, Value};

use crate::sinks::record::REST;

/// A name of SQLite for the number of a row.
pub(super) const ROW_NUMBER: &str = "_rowid_";

/// The columns of a table, and the column of each field.
#[derive(Debug)]
pub(super) struct Layout {
    /// All columns, those that the table has first.
    columns: Vec<String>,
    of_field: HashMap<String, usize>,
    /// Which columns are known by a field of the items; the others were made by earlier runs.
    taken: Vec<bool>,
    /// The number of columns that the table has; 0 if there is no table.
    made: usize,
    most: usize,
    rest: Option<usize>,
}

/// A row: the cells of the first columns; the others are NULL.
#[derive(Debug)]
pub(super) struct Row(pub(super) Vec<Cell>);

impl Row {
    /// Estimated bytes.
    pub(super) fn size(&self) -> usize {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.len(),
            _ => 0,
        };
        self.0.iter().map(|cell| size_of::<Cell>() + text(cell)).sum()
    }
}

impl Layout {
    /// A layout over the columns that a table has, with columns for the declared fields.
    pub(super) fn new(columns: Vec<String>, declared: Option<&[String]>, most: usize) -> Self {
        let made = columns.len();
        let rest = columns.iter().position(|column| column == REST);
        let mut layout =
            Self { taken: vec![false; made], columns, of_field: HashMap::new(), made, most, rest };
        for field in declared.unwrap_or_default() {
            layout.column(field);
        }
        layout
    }

    /// The columns, and how many of them the table has.
    pub(super) fn columns(&self) -> (&[String], usize) {
        (&self.columns, self.made)
    }

    /// Makes sure that there is a column, which a table needs.
    pub(super) fn ensure_column(&mut self) {
        if self.columns.is_empty() {
            self.rest_column();
        }
    }

    /// Notes that the table has all columns.
    pub(super) fn set_made(&mut self) {
        self.made = self.columns.len();
    }

    /// The row of an item, and whether some of its fields have no column of their own.
    pub(super) fn row(&mut self, item: Map<String, Value>) -> (Row, bool) {
        let mut cells = vec![Cell::Null; self.columns.len()];
        let mut rest = Map::new();
        for (field, value) in item {
            match self.column(&field) {
                Some(column) => {
                    if cells.len() <= column {
                        cells.resize(column + 1, Cell::Null);
                    }
                    cells[column] = cell(value);
                }
                None => {
                    rest.insert(field, value);
                }
            }
        }
        let has_rest = !rest.is_empty();
        if has_rest {
            let column = self.rest_column();
            if cells.len() <= column {
                cells.resize(column + 1, Cell::Null);
            }
            cells[column] = Cell::Text(Value::Object(rest).to_string());
        }
        (Row(cells), has_rest)
    }

    /// The column of a field, which is a new one if there is room; `None` if the field belongs to the rest.
    fn column(&mut self, field: &str) -> Option<usize> {
        if let Some(&column) = self.of_field.get(field) {
            return Some(column);
        }
        if field == REST {
            return None;
        }
        // SQLite has no names with NUL.
        let wanted = field.replace('\0', "\u{fffd}");
        let column = self.named(&wanted)?;
        self.taken[column] = true;
        self.of_field.insert(field.to_owned(), column);
        Some(column)
    }

    /// A free column of this name, or of this name with a number if it differs from another one only in the case of letters.
    fn named(&mut self, wanted: &str) -> Option<usize> {
        let mut name = wanted.to_owned();
        for number in 2_u64.. {
            let same = self.columns.iter().position(|column| column.eq_ignore_ascii_case(&name));
            match same {
                // A column of this name would hide the number of the row.
                None if name.eq_ignore_ascii_case(ROW_NUMBER) => name = format!("{wanted}_{number}"),
                Some(column)
                    if !self.taken[column] && self.columns[column] == name && Some(column) != self.rest =>
                {
                    return Some(column);
                }
                Some(_) => name = format!("{wanted}_{number}"),
                None => break,
            }
        }
        if self.columns.len() >= self.most {
            return None;
        }
        Some(self.add(name))
    }

    fn rest_column(&mut self) -> usize {
        match self.rest {
            Some(column) => column,
            None => {
                let column = self.add(REST.to_owned());
                self.rest = Some(column);
                column
            }
        }
    }

    fn add(&mut self, name: String) -> usize {
        self.columns.push(name);
        self.taken.push(false);
        self.columns.len() - 1
    }
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Bool(is) => Cell::Integer(is.into()),
        Value::Number(number) => match (number.as_i64(), number.is_u64()) {
            (Some(integer), _) => Cell::Integer(integer),
            // A real number of SQLite would round it.
            (None, true) => Cell::Text(number.to_string()),
            (None, false) => number.as_f64().map_or(Cell::Null, Cell::Real),
        },
        Value::String(text) => Cell::Text(text),
        nested @ (Value::Array(_) | Value::Object(_)) => Cell::Text(nested.to_string()),
    }
}
