//! What is wrong with an item, field by field.

use std::borrow::Cow;
use std::fmt;

use huntsman_crawler::terminal::escape;
use serde::Serialize;

/// Number of faults of one item that are kept; further ones are counted.
const MAX_FAULTS: usize = 20;
/// Greatest length of the path of a field, of a rule and of a detail, in characters; longer ones are cut.
const SHOWN: usize = 120;

/// A field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    field: String,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Fault {
    /// Path of the field, such as `seller.name`; `item` if the item as a whole is concerned.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The rule in a few words, the same for all items that break it: `is empty`, or a keyword of JSON Schema such as `required`.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What is special about this item, such as the value.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The rule, with the detail if there is one.
    pub(super) fn reason(&self) -> Cow<'_, str> {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.rule).into(),
            None => self.rule.as_str().into(),
        }
    }
}

/// The faults of one item. At most 20 are kept; further ones are only counted.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Faults {
    list: Vec<Fault>,
    #[serde(skip)]
    more: usize,
}

impl Faults {
    /// Adds a fault of a field. The rule should be the same text for all items that break it, because faults are counted by it; values belong
    /// into [`add_with`](Self::add_with).
    pub fn add(&mut self, field: &str, rule: &str) {
        self.push(field, rule, None);
    }

    /// Adds a fault with a detail, such as the value.
    pub fn add_with(&mut self, field: &str, rule: &str, detail: impl fmt::Display) {
        self.push(field, rule, Some(&detail.to_string()));
    }

    /// Adds a fault unless the field satisfies its rule.
    pub fn unless(&mut self, holds: bool, field: &str, rule: &str) {
        if !holds {
            self.add(field, rule);
        }
    }

    /// Whether the item is valid.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The faults that were kept.
    pub fn iter(&self) -> std::slice::Iter<'_, Fault> {
        self.list.iter()
    }

    fn push(&mut self, field: &str, rule: &str, detail: Option<&str>) {
        if self.list.len() == MAX_FAULTS {
            self.more += 1;
            return;
        }
        let cut = |text: &str| text.chars().take(SHOWN).collect();
        let field = if field.is_empty() { "item" } else { field };
        self.list.push(Fault { field: cut(field), rule: cut(rule), detail: detail.map(cut) });
    }
}

impl<'a> IntoIterator for &'a Faults {
    type Item = &'a Fault;
    type IntoIter = std::slice::Iter<'a, Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// `price: is not above 0; title: is empty`.
impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let between = if index > 0 { "; " } else { "" };
            write!(f, "{between}{}: {}", escape(&fault.field), escape(&fault.reason()))?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_bounded_in_number_and_length_and_safe_to_print() {
        let mut faults = Faults::default();
        faults.unless(true, "title", "is empty");
        assert!(faults.is_empty());
        faults.add_with(&"f".repeat(1_000), "is \u{1b}[31mred", "x".repeat(1_000));
        (0..30).for_each(|_| faults.add("", "is odd"));
        assert_eq!((faults.iter().len(), faults.more), (MAX_FAULTS, 11));
        let first = faults.iter().next().unwrap();
        assert_eq!((first.field().len(), first.detail().unwrap().len()), (SHOWN, SHOWN));
        let shown = faults.to_string();
        assert!(
            !shown.contains('\u{1b}') && shown.contains("; item: is odd") && shown.ends_with("and 11 more")
        );
    }
}
