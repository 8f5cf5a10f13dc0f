//! What a crawl learnt of duplicate contents: for the summary, `report.json` and `rules.json`.

use huntsman::detect::avoid::{Rule, Totals};
use huntsman::middleware::SharedAvoidDup;
use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

/// In `report.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AvoidDupReport {
    /// Pages that were learnt from.
    pub(crate) learnt: u64,
    /// Requests that were skipped.
    pub(crate) skipped: u64,
    /// Skips that were fetched all the same, for the estimate.
    pub(crate) explored: u64,
    /// Explored ones with new content.
    pub(crate) explored_new: u64,
    /// Share of the skips that would have brought new content, estimated from the explored ones.
    pub(crate) estimated_loss: Option<f64>,
    /// Upper end of its 95 % interval.
    pub(crate) estimated_loss_most: Option<f64>,
    /// Rules by which requests were skipped; they are in `rules.json`.
    pub(crate) rules: usize,
}

/// The report and the text of `rules.json`, if AvoidDup was on with a model that has rules.
pub(crate) fn of(place: &SharedAvoidDup) -> Option<(AvoidDupReport, Vec<u8>)> {
    let avoid_dup = place.get()?;
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
    Some((report, text))
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

/// What is believed of a URL, in words.
pub(crate) fn explain(place: &SharedAvoidDup, url: &Url) -> Option<String> {
    let avoid_dup = place.get()?;
    Some(avoid_dup.explain(url).unwrap_or_else(|| "nothing that was fetched is akin to it".to_owned()))
}
