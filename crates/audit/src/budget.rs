//! Budgets: numbers of an audit that must keep within limits.

use std::cmp::Ordering;

use huntsman_crawler::{Error, Result};
use serde::Serialize;
use serde_json::Value;

use crate::audit::Audit;
use crate::code::{PageClass, Severity};
use crate::record::{Kind, Record};
use crate::site::Address;

/// The numbers that a budget may name.
const KEYS: [&str; 10] = [
    "pages",
    "status_4xx",
    "status_5xx",
    "errors",
    "warnings",
    "ttfb_p95_ms",
    "page_kb_p95",
    "depth_max",
    "score",
    "score_drop",
];
const OPERATORS: [&str; 5] = ["<=", ">=", "==", "<", ">"];

/// A condition that must hold, such as `status_4xx <= 10`.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    key: &'static str,
    operator: &'static str,
    limit: f64,
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BudgetFailure {
    /// The condition.
    pub condition: String,
    /// The number; `None` if there is nothing to take it from.
    pub value: Option<f64>,
}

impl std::fmt::Display for BudgetFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value {
            Some(value) => write!(f, "budget {}: it is {value}", self.condition),
            None => write!(f, "budget {}: there is nothing to judge", self.condition),
        }
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.key, self.operator, self.limit)
    }
}

impl Budget {
    /// Reads `KEY OP N` with `<=`, `>=`, `<`, `>` or `==`.
    ///
    /// # Errors
    /// The text is no condition; the error says which keys there are.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!(
                "--budget {}: use KEY OP NUMBER, such as 'status_4xx <= 10'; keys are {}",
                text.escape_debug(),
                KEYS.join(", ")
            ))
        };
        let found = OPERATORS.into_iter().filter_map(|operator| Some((text.find(operator)?, operator)));
        let (at, operator) =
            found.min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len()))).ok_or_else(wrong)?;
        let (key, limit) = (text[..at].trim(), text[at + operator.len()..].trim());
        let key = KEYS.into_iter().find(|known| *known == key).ok_or_else(wrong)?;
        let limit = limit.parse::<f64>().ok().filter(|limit| limit.is_finite()).ok_or_else(wrong)?;
        Ok(Self { key, operator, limit })
    }

    /// Reads an entry of the setting `audit_budget`: a number is the most that is allowed, or of `pages` and `score` the least.
    pub(crate) fn of_setting(key: &str, value: &Value) -> Result<Self> {
        let operator = if matches!(key, "pages" | "score") { ">=" } else { "<=" };
        match value {
            Value::Number(number) => Self::parse(&format!("{key} {operator} {number}")),
            Value::String(text) => Self::parse(&format!("{key} {text}")),
            other => Err(Error::usage(format!(
                "setting audit_budget: {key} = {other}: use a number, or a text such as \"<= 10\""
            ))),
        }
    }

    /// The condition that there is a page at all.
    pub(crate) fn any_page() -> Self {
        Self { key: "pages", operator: ">=", limit: 1.0 }
    }

    /// Whether it needs an earlier audit.
    pub(crate) fn is_about_earlier(&self) -> bool {
        self.key == "score_drop"
    }

    /// The failure, if the condition does not hold. `earlier` is the score of the audit with which this one is compared.
    pub(crate) fn judge(&self, audit: &Audit, earlier: Option<f64>) -> Option<BudgetFailure> {
        let value = self.value(audit, earlier);
        let holds = value.is_some_and(|value| match (self.operator, value.total_cmp(&self.limit)) {
            ("<=", order) => order != Ordering::Greater,
            (">=", order) => order != Ordering::Less,
            ("<", order) => order == Ordering::Less,
            (">", order) => order == Ordering::Greater,
            (_, order) => order == Ordering::Equal,
        });
        (!holds).then(|| BudgetFailure { condition: self.to_string(), value })
    }

    fn value(&self, audit: &Audit, earlier: Option<f64>) -> Option<f64> {
        let site = &audit.site;
        let own = || site.addresses().filter(|address| address.kind() == Some(Kind::Page));
        let of_class = |class: u16| {
            own().filter(|address| address.status().is_some_and(|status| status / 100 == class)).count()
        };
        let severity = |severity: Severity| audit.issues.number_of(severity);
        let p95 = |number: fn(&Record) -> f64| {
            let mut numbers: Vec<f64> = site.pages(PageClass::Html).map(|page| number(&page)).collect();
            numbers.sort_by(f64::total_cmp);
            // The nearest rank: the smallest number that 95 % of all do not exceed.
            let rank = (numbers.len() * 95).div_ceil(100);
            numbers.get(rank.checked_sub(1)?).copied()
        };
        match self.key {
            "pages" => Some(site.count(PageClass::Html) as f64),
            "status_4xx" => Some(of_class(4) as f64),
            "status_5xx" => Some(of_class(5) as f64),
            "errors" => Some(severity(Severity::Error) as f64),
            "warnings" => Some(severity(Severity::Warning) as f64),
            "ttfb_p95_ms" => p95(|record| record.ttfb_ms),
            "page_kb_p95" => p95(|record| record.bytes as f64 / 1_000.0),
            "depth_max" => own().filter_map(Address::depth).max().map(f64::from),
            "score" => audit.score().overall,
            _ => Some(((earlier? - audit.score().overall?) * 100.0).round() / 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_read_with_and_without_blanks() {
        for (text, shown) in [
            ("status_4xx <= 10", "status_4xx <= 10"),
            ("score>=8.5", "score >= 8.5"),
            ("pages>100", "pages > 100"),
            ("errors == 0", "errors == 0"),
        ] {
            assert_eq!(Budget::parse(text).unwrap().to_string(), shown);
        }
        let of_setting = |key: &str, value: Value| Budget::of_setting(key, &value).unwrap().to_string();
        assert_eq!(of_setting("score", 8.into()), "score >= 8");
        assert_eq!(of_setting("errors", 0.into()), "errors <= 0");
        assert_eq!(of_setting("errors", "< 3".into()), "errors < 3");
    }

    #[test]
    fn what_is_no_budget_is_told_with_the_keys() {
        for wrong in ["", "errors", "errors 3", "faults <= 3", "errors <= x", "errors <= NaN"] {
            let error = Budget::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("status_4xx <= 10") && error.contains("score_drop"), "{error}");
        }
    }
}
