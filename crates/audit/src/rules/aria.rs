//! Roles and attributes of WAI-ARIA, from the table `data/aria.txt`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// What values an attribute may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Text,
    Ids,
    Integer,
    Number,
    One(&'static str),
    Some(&'static str),
}

struct Table {
    roles: HashSet<&'static str>,
    attributes: HashMap<&'static str, Type>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { roles: HashSet::new(), attributes: HashMap::new() };
    for line in include_str!("../../data/aria.txt").lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (kind, values) = rest.split_once(' ').unwrap_or((rest, ""));
        let of_kind = match kind {
            _ if name == "role" => {
                table.roles.extend(rest.split(' '));
                continue;
            }
            _ if !name.starts_with("aria-") => continue,
            "id" | "ids" => Type::Ids,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "one" => Type::One(values),
            "some" => Type::Some(values),
            _ => Type::Text,
        };
        table.attributes.insert(name, of_kind);
    }
    table
});

/// Whether the value of a `role` has a role that there is. Browsers take the first that they know.
pub(super) fn has_role(value: &str) -> bool {
    value.split_ascii_whitespace().any(|role| TABLE.roles.contains(&*role.to_ascii_lowercase()))
}

/// Whether an attribute, named in lower case, exists and may have this value. An empty value is as no attribute.
pub(super) fn is_valid(name: &str, value: &str) -> bool {
    let Some(of_kind) = TABLE.attributes.get(name) else { return false };
    let value = value.trim().to_ascii_lowercase();
    let is_one_of = |values: &str, value: &str| values.split(' ').any(|known| known == value);
    value.is_empty()
        || match of_kind {
            Type::Text | Type::Ids => true,
            Type::Integer => value.parse::<i64>().is_ok(),
            Type::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            Type::One(values) => is_one_of(values, &value),
            Type::Some(values) => value.split_ascii_whitespace().all(|value| is_one_of(values, value)),
        }
}

/// Whether the value of an attribute, named in lower case, is a list of ids.
pub(super) fn refers(name: &str) -> bool {
    TABLE.attributes.get(name) == Some(&Type::Ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_attributes_are_those_of_the_recommendation() {
        for role in ["button", "none presentation", "made-up navigation", "DOC-TOC", "graphics-symbol"] {
            assert!(has_role(role), "{role}");
        }
        for role in ["made-up", "widget", "roletype", "input", "aria-label", ""] {
            assert!(!has_role(role), "{role}");
        }
        for (name, value) in [
            ("aria-label", "anything"),
            ("aria-hidden", "TRUE"),
            ("aria-expanded", "undefined"),
            ("aria-level", " 2 "),
            ("aria-valuenow", "0.5"),
            ("aria-relevant", "additions text"),
            ("aria-current", "page"),
            ("aria-checked", ""),
        ] {
            assert!(is_valid(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("aria-labeledby", "a"),
            ("aria-hidden", "yes"),
            ("aria-level", "two"),
            ("aria-valuenow", "half"),
            ("aria-current", "here"),
            ("aria-relevant", "additions some"),
        ] {
            assert!(!is_valid(name, value), "{name}={value}");
        }
        assert!(refers("aria-labelledby") && refers("aria-activedescendant") && !refers("aria-label"));
        assert_eq!((TABLE.roles.len(), TABLE.attributes.len()), (136, 54));
    }
}
