//! What a crawl learnt about duplicate content: for the summary, `report.json` and `rules.json`.

use std::collections::BTreeMap;
use std::fmt::Write;

use huntsman_detect::avoid::{IdleParameter, Rule, Totals};
use huntsman_middleware::AvoidDup;
use serde::Serialize;
use serde_json::{Value, json};

/// The part of `report.json` about AvoidDup.
#[derive(Clone, Debug, Serialize)]
pub struct AvoidDupReport {
    /// Pages that the model learnt from.
    pub learnt: u64,
    /// Requests that were skipped.
    pub skipped: u64,
    /// Requests that a rule would have skipped and that were fetched all the same, to estimate the loss.
    pub explored: u64,
    /// Explored requests whose page had new content.
    pub explored_new: u64,
    /// Share of the skipped requests that would have brought new content, estimated from the explored ones.
    pub estimated_loss: Option<f64>,
    /// Upper end of the 95 % interval of the estimated loss.
    pub estimated_loss_most: Option<f64>,
    /// Rules by which requests were skipped; they are in `rules.json`.
    pub rules: usize,
}

/// The rules that AvoidDup learnt, ready to be written to files.
#[derive(Clone, Debug)]
pub struct LearntRules {
    /// The numbers for the report of the crawl.
    pub report: AvoidDupReport,
    /// The text of `rules.json`.
    pub rules: Vec<u8>,
    /// The text of `canonical.toml`, if any parameter never mattered.
    pub canonical: Option<String>,
}

impl LearntRules {
    /// What AvoidDup learnt in a crawl; `None` if it was off or its model has no rules.
    pub fn of(avoid_dup: &AvoidDup) -> Option<Self> {
        let totals: Totals = avoid_dup.totals()?;
        let rules = avoid_dup.rules();
        let loss = totals.loss();
        let report = AvoidDupReport {
            learnt: totals.learnt,
            skipped: totals.skipped,
            explored: totals.explored,
            explored_new: totals.lost,
            estimated_loss: loss.map(|(estimate, _)| estimate),
            estimated_loss_most: loss.map(|(_, most)| most),
            rules: rules.len(),
        };
        let listed: Vec<Value> = rules.iter().map(rule).collect();
        let mut text = serde_json::to_vec_pretty(&json!({ "totals": report, "rules": listed })).ok()?;
        text.push(b'\n');
        let canonical = canonical(&avoid_dup.idle_parameters());
        Some(Self { report, rules: text, canonical })
    }
}

/// Settings with which later crawls treat URLs as equal if they differ only in parameters that never mattered.
fn canonical(parameters: &[IdleParameter]) -> Option<String> {
    let mut sites: BTreeMap<&str, Vec<(&str, f32)>> = BTreeMap::new();
    for idle in parameters {
        // A repeated parameter has a number (`#`), and a parameter of a path segment (`;`) is stripped by another
        // setting.
        let is_plain = !idle.parameter.contains('#') && !idle.parameter.starts_with(';');
        if is_plain {
            sites.entry(&idle.parameter).or_default().push((&idle.site, idle.evidence.dup));
        }
    }
    if sites.is_empty() {
        return None;
    }
    let mut text = String::from(
        "# Parameters that never mattered. To use them: huntsman crawl URL --config canonical.toml\nstrip_query_params = [\n",
    );
    for (parameter, of) in sites {
        let tested: Vec<String> =
            of.iter().map(|(site, pages)| format!("{site}: {pages:.0} pages")).collect();
        let _ = writeln!(text, "    {}, # {}", toml::Value::from(parameter), tested.join(", "));
    }
    text.push_str("]\n");
    Some(text)
}

fn rule(rule: &Rule) -> Value {
    json!({
        "site": rule.site,
        "rule": rule.rule,
        "kind": format!("{:?}", rule.kinship).to_lowercase(),
        "ignores": rule.dropped,
        "same": f64::from(rule.evidence.dup).round(),
        "different": (f64::from(rule.evidence.nodup) * 10.0).round() / 10.0,
        "skipped": rule.skipped,
        "explored": rule.explored,
        "explored_new": rule.lost,
        "example": rule.example,
    })
}
