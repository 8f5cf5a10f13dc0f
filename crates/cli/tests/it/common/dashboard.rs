//! The dashboards for Grafana in `docs/grafana`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

pub(crate) fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana").join(name);
    let text = std::fs::read(path).expect("the dashboard is in the docs");
    serde_json::from_slice(&text).expect("the dashboard is JSON")
}

/// An array of a dashboard.
pub(crate) fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} of {value}"))
}

/// The queries of a dashboard, with everything selected that can be selected.
pub(crate) fn expressions(dashboard: &Value) -> BTreeSet<String> {
    let panels = array(dashboard, "panels").iter().flat_map(|panel| array(panel, "targets"));
    let asked = panels.map(|target| target["expr"].as_str().expect("an expression").to_owned());
    // The options of a variable are the values of a label: they exist if the metric has the label.
    let offered = array(&dashboard["templating"], "list").iter().filter_map(|variable| {
        let query = variable["query"]["query"].as_str()?.strip_prefix("label_values(")?;
        let (metric, label) = query.strip_suffix(')')?.split_once(", ")?;
        Some(format!("count by ({label}) ({metric}{{{label}!=\"\"}})"))
    });
    let plain = |expression: String| {
        let plain = expression.replace("$lang", ".*").replace("$job", ".*").replace("$__rate_interval", "1m");
        assert!(!plain.contains('$'), "a variable that the dashboard does not have: {plain}");
        plain
    };
    asked.chain(offered).map(plain).collect()
}
