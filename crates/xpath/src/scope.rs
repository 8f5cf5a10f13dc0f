//! What an evaluation gets from its caller: prefixes, variables and limits.

use std::collections::HashMap;

use crate::value::Value;

/// The prefixes, variables and limits of an evaluation. The prefixes `re` and `set` of EXSLT are there from the start; any other that is bound to the
/// same URI means the same functions.
#[derive(Clone, Debug)]
pub struct Scope {
    prefixes: HashMap<String, String>,
    variables: HashMap<String, Value>,
    limits: Limits,
}

/// The limits of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most steps: nodes that are visited, and 16 bytes of texts that are compared or copied. Default: 50 million, about half a
    /// second.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 50_000_000 }
    }
}

/// The namespace of regular expressions of EXSLT.
pub(crate) const REGULAR: &str = "http://exslt.org/regular-expressions";
/// The namespace of sets of EXSLT.
pub(crate) const SETS: &str = "http://exslt.org/sets";
/// The namespace of the prefix `xml`.
pub(crate) const XML: &str = "http://www.w3.org/XML/1998/namespace";

impl Default for Scope {
    fn default() -> Self {
        let prefixes = [("re", REGULAR), ("set", SETS), ("xml", XML)];
        Self {
            prefixes: prefixes.map(|(prefix, uri)| (prefix.to_owned(), uri.to_owned())).into(),
            variables: HashMap::new(),
            limits: Limits::default(),
        }
    }
}

impl Scope {
    /// A scope without variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds a prefix to the URI of a namespace.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>, uri: impl Into<String>) -> Self {
        self.prefixes.insert(prefix.into(), uri.into());
        self
    }

    /// Sets the variable `$name`.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    pub(crate) fn uri(&self, prefix: &str) -> Option<&str> {
        self.prefixes.get(prefix).map(String::as_str)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    pub(crate) fn steps(&self) -> u64 {
        self.limits.steps
    }
}
