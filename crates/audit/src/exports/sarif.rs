//! SARIF 2.1.0 (OASIS), which code hosts and editors show beside the source.

use std::collections::HashMap;

use huntsman_crawler::{Error, Result};
use serde_json::{Value, json};

use crate::audit::Audit;
use crate::code::{Code, Severity};
use crate::issue::Issue;

/// Issues that are written. GitHub refuses more than 25,000 results and shows 5,000.
const MAX_RESULTS: usize = 5_000;
/// Places of an issue that are written.
const MAX_PLACES: usize = 10;

/// Which files of a repository the URLs of a site are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceMap(Vec<(String, String)>);

impl SourceMap {
    /// Reads entries such as `https://example.org/=site/`: URLs that begin with the part before the last `=` are files that begin with the part behind it.
    ///
    /// # Errors
    /// An entry has no `=`.
    pub fn parse(entries: &[String]) -> Result<Self> {
        let parse = |entry: &String| match entry.rsplit_once('=') {
            Some((url, path)) if !url.is_empty() => Ok((url.to_owned(), path.to_owned())),
            _ => Err(Error::usage(format!(
                "--source-map {entry}: use URL=PATH, such as https://example.org/=site/"
            ))),
        };
        entries.iter().map(parse).collect::<Result<_>>().map(Self)
    }

    /// The file of a URL, or the URL itself.
    fn of(&self, url: &str) -> String {
        self.file(url).unwrap_or_else(|| url.to_owned())
    }

    /// The file of a URL, if an entry names it. A URL that ends in a slash is the `index.html` of its folder.
    pub(super) fn file(&self, url: &str) -> Option<String> {
        let (to, rest) = self.0.iter().find_map(|(from, to)| Some((to, url.strip_prefix(from.as_str())?)))?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let index = if rest.is_empty() || rest.ends_with('/') { "index.html" } else { "" };
        Some(format!("{to}{rest}{index}"))
    }
}

impl Audit {
    /// The audit as SARIF, the worst 5,000 issues; a notification says if there are more.
    ///
    /// # Errors
    /// The issues cannot be read.
    pub fn sarif(&self, sources: &SourceMap) -> Result<String> {
        let index: HashMap<&str, usize> =
            self.codes.iter().enumerate().map(|(number, code)| (code.name, number)).collect();
        let mut results: Vec<Value> = Vec::new();
        self.first_issues(MAX_RESULTS, &mut |issue| {
            results.push(result(issue, index.get(issue.code.as_str()).copied(), sources));
            Ok(())
        })?;
        let left_out = self.number_of_issues().saturating_sub(MAX_RESULTS);
        let mut notifications = Vec::new();
        if left_out > 0 {
            let text =
                format!("{left_out} further issues are not in this file; issues.jsonl has all of them.");
            notifications.push(json!({"level": "warning", "message": {"text": text}}));
        }
        if !self.site.is_complete() {
            let text = "The crawl ended early: what is missing was not judged.";
            notifications.push(json!({"level": "warning", "message": {"text": text}}));
        }
        let document = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {
                    "name": "huntsman",
                    "semanticVersion": env!("CARGO_PKG_VERSION"),
                    "rules": self.codes.iter().map(rule).collect::<Vec<_>>(),
                }},
                "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notifications}],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        });
        Ok(format!("{document:#}\n"))
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "note",
    }
}

fn rule(code: &Code) -> Value {
    let or_name = |text: &str| if text.is_empty() { code.name.to_owned() } else { text.to_owned() };
    json!({
        "id": code.name,
        "shortDescription": {"text": code.title()},
        "fullDescription": {"text": or_name(code.when)},
        "help": {"text": or_name(&format!("{} {}", code.why, code.fix))},
        "defaultConfiguration": {"level": level(code.severity)},
        "properties": {"tags": [code.family], "source": code.source},
    })
}

fn result(issue: &Issue, rule: Option<usize>, sources: &SourceMap) -> Value {
    let mut locations: Vec<Value> = Vec::new();
    for place in issue.at.iter().take(MAX_PLACES) {
        let url = place.page.as_deref().unwrap_or(&issue.url);
        let mut physical = json!({"artifactLocation": {"uri": sources.of(url)}});
        if place.line > 0 {
            physical["region"] = json!({"startLine": place.line, "startColumn": place.column.max(1)});
            if let Some(excerpt) = &place.excerpt {
                physical["region"]["snippet"] = json!({"text": excerpt});
            }
        }
        locations.push(json!({"physicalLocation": physical}));
    }
    if locations.is_empty() {
        locations.push(json!({"physicalLocation": {"artifactLocation": {"uri": sources.of(&issue.url)}}}));
    }
    let mut result = json!({
        "ruleId": issue.code,
        "level": level(issue.severity),
        "message": {"text": message(issue)},
        "locations": locations,
        "partialFingerprints": {"huntsmanIssue/v1": issue.id},
    });
    if let Some(rule) = rule {
        result["ruleIndex"] = rule.into();
    }
    if let Some(is_new) = issue.new {
        result["baselineState"] = if is_new { "new" } else { "unchanged" }.into();
    }
    result
}

/// An issue in a sentence.
pub(super) fn message(issue: &Issue) -> String {
    let shown = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let mut text = format!("{}: {}", issue.code, issue.url);
    if let Some(target) = &issue.target {
        text.push_str(&format!(" -> {target}"));
    }
    match (shown(&issue.evidence.value), shown(&issue.evidence.limit)) {
        (Some(value), Some(limit)) => text.push_str(&format!(" ({value}; limit {limit})")),
        (Some(value), None) => text.push_str(&format!(" ({value})")),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_become_files_of_a_repository() {
        let map =
            SourceMap::parse(&["https://x/a=b/=site/".to_owned(), "https://x/=www/".to_owned()]).unwrap();
        for (url, file) in [
            ("https://x/a=b/c.html?q#f", "site/c.html"),
            ("https://x/", "www/index.html"),
            ("https://x/d/", "www/d/index.html"),
            ("https://y/", "https://y/"),
        ] {
            assert_eq!(map.of(url), file);
        }
        assert!(SourceMap::parse(&["https://x/".to_owned()]).unwrap_err().to_string().contains("URL=PATH"));
    }
}
