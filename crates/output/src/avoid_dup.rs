//! What a crawl learnt about duplicate content: for the summary, `report.json` and `rules.json`.

use std::collections::BTreeMap;
use std::fmt::Write;

use huntsman_detect::avoid::{IdleParameter, Picture, Relation, Rule, Totals};
use huntsman_middleware::AvoidDup;
use serde::Serialize;
use serde_json::{Value, json};

mod section;

pub(crate) use section::{STYLE, section};

/// The most templates in the report for people.
const TEMPLATES: usize = 30;
/// The most rules of each list there, and of those in `rules.json` that were not believed.
const SHOWN_RULES: usize = 15;
const NOT_BELIEVED: usize = 100;
/// The most rules that are examined for the latter.
const TRIED: usize = 500;

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
    /// The templates of URLs, for the report for people.
    #[serde(skip)]
    pub picture: Picture,
    /// The most used rules, and those that were not believed, for the same.
    #[serde(skip)]
    pub shown: ShownRules,
}

/// Rules with how they stand at the end of the crawl; `None` if their example is seen otherwise by then.
#[derive(Clone, Debug, Default)]
pub struct ShownRules {
    /// Those by which most requests were skipped.
    pub used: Vec<(Rule, Option<Relation>)>,
    /// Those that tied most requests to known pages and were not believed.
    pub not_believed: Vec<(Rule, Option<Relation>)>,
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
        let explained = |rules: Vec<Rule>| -> Vec<(Rule, Option<Relation>)> {
            rules.into_iter().map(|rule| (rule.clone(), avoid_dup.explain_rule(&rule))).collect()
        };
        let mut used = explained(avoid_dup.rules());
        let tried = avoid_dup.rules_not_believed().into_iter().take(TRIED).collect();
        let mut not_believed = explained(tried);
        // Of these only what still holds is of use: most examples were fetched meanwhile.
        not_believed.retain(|(_, stand)| stand.is_some());
        not_believed.truncate(NOT_BELIEVED);
        let [listed, not_yet] = [&used, &not_believed].map(|rules| {
            rules.iter().map(|(rule, stand)| self::rule(rule, stand.as_ref())).collect::<Vec<Value>>()
        });
        let loss = totals.loss();
        let rules = used.len();
        used.truncate(SHOWN_RULES);
        not_believed.truncate(SHOWN_RULES);
        let report = AvoidDupReport {
            learnt: totals.learnt,
            skipped: totals.skipped,
            explored: totals.explored,
            explored_new: totals.lost,
            estimated_loss: loss.map(|(estimate, _)| estimate),
            estimated_loss_most: loss.map(|(_, most)| most),
            rules,
            picture: avoid_dup.picture(TEMPLATES).unwrap_or_default(),
            shown: ShownRules { used, not_believed },
        };
        let written = json!({ "totals": report, "rules": listed, "not_yet": not_yet });
        let mut text = serde_json::to_vec_pretty(&written).ok()?;
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

fn rule(rule: &Rule, stand: Option<&Relation>) -> Value {
    let loss = rule.loss();
    let mut value = json!({
        "site": rule.site,
        "rule": rule.rule,
        "kind": rule.kinship,
        "ignores": rule.dropped,
        "same": f64::from(rule.evidence.dup).round(),
        "different": (f64::from(rule.evidence.nodup) * 10.0).round() / 10.0,
        "skipped": rule.skipped,
        "explored": rule.explored,
        "explored_new": rule.lost,
        "estimated_loss": loss.map(|(estimate, _)| estimate),
        "estimated_loss_most": loss.map(|(_, most)| most),
        "fetched": rule.fetched,
        "example": rule.example,
        "active": null,
        "why": "its example is seen otherwise by now, so that another rule speaks about it",
    });
    // What `crawl` wrote before stays as it was: these are further fields.
    if let (Some(fields), Ok(Value::Object(stand))) = (value.as_object_mut(), serde_json::to_value(stand)) {
        let new = stand.into_iter().filter(|(name, _)| !matches!(&**name, "kind" | "rule" | "ignores"));
        fields.extend(new);
    }
    value
}
