//! Results of expressions, and their conversions (section 3 and 4 of the recommendation).

use crate::document::{Document, Node};
use crate::operand::Operand;

/// The result of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nodes in document order, each once.
    Nodes(Vec<Node>),
    /// A boolean.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string.
    String(String),
}

impl Value {
    /// The result as a boolean: whether there are nodes, the number is neither zero nor NaN, or the string is not empty.
    pub fn boolean(&self) -> bool {
        Operand::from(self).boolean()
    }

    /// The result as a number; a text that is none gives NaN.
    pub fn number(&self, document: &Document) -> f64 {
        Operand::from(self).number(document)
    }

    /// The result as a string: of nodes, that of the first one.
    pub fn string(&self, document: &Document) -> String {
        Operand::from(self).string(document).into_owned()
    }

    /// The string of each node, or the only one of another result.
    pub fn strings(&self, document: &Document) -> Vec<String> {
        match self {
            Self::Nodes(nodes) => nodes.iter().map(|node| document.value(*node).to_owned()).collect(),
            _ => vec![self.string(document)],
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Node>> for Value {
    fn from(mut nodes: Vec<Node>) -> Self {
        nodes.sort_unstable();
        nodes.dedup();
        Self::Nodes(nodes)
    }
}
