//! What is wrong with names, roles and structure, as far as a page alone tells.

use std::collections::HashSet;

use huntsman_html::{AttributeFact, Context, decode};

use super::{aria, autocomplete};
use crate::finding::{Finding, Findings};
use crate::page::AuditedPage;

/// A page with fewer words of its own and with scripts may be made by the scripts.
const MIN_WORDS: usize = 20;

pub(super) fn tell(page: &AuditedPage<'_>, findings: &mut Findings) {
    let facts = &page.facts().semantics;
    let is_nameless = |button: &&huntsman_html::ButtonFact| {
        button.name.is_empty() && !button.is_named_otherwise && !button.is_hidden
    };
    for button in facts.buttons.iter().filter(is_nameless) {
        findings.add(Finding::of("button-name").at(page.place(button.offset)));
    }
    for (code, offsets) in [
        ("frame-title", &facts.nameless_frames),
        ("table-no-header", &facts.headless_tables),
        ("list-broken", &facts.broken_lists),
        ("video-caption", &facts.uncaptioned_videos),
    ] {
        for offset in offsets {
            findings.add(Finding::of(code).at(page.place(*offset)));
        }
    }
    if facts.shown_mains > 1 {
        findings.add(Finding::of("main-multiple").value(facts.shown_mains));
    }
    let ids = Ids::of(page);
    for attribute in &facts.attributes {
        judge(page, &ids, attribute, findings);
    }
}

fn judge(page: &AuditedPage<'_>, ids: &Ids<'_>, attribute: &AttributeFact, findings: &mut Findings) {
    let text = page.page().scanned().1;
    let name = attribute.name.of(text).to_ascii_lowercase();
    let value = decode(attribute.value.of(text), Context::Attribute);
    let value = value.trim();
    let mut told = |code: &str| {
        let finding = Finding::of(code).group(format!("{name}={value}")).value(value);
        findings.add(finding.at(page.place(attribute.offset)));
    };
    match &*name {
        "role" if !value.is_empty() && !aria::has_role(value) => told("role-invalid"),
        "tabindex" if value.parse::<i64>().is_ok_and(|index| index > 0) => told("tabindex-positive"),
        "autocomplete" if !autocomplete::is_valid(value) => told("autocomplete-invalid"),
        "role" | "tabindex" | "autocomplete" => {}
        // Frameworks have attributes of their own that begin so: `aria-label.bind`.
        _ if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') => {}
        _ if name != "for" && !aria::is_valid(&name, value) => told("aria-invalid"),
        _ if ids.is_broken(&name, value) => told("idref-broken"),
        _ => {}
    }
}

/// The ids of a page, to which attributes refer.
struct Ids<'a> {
    ids: HashSet<&'a str>,
    /// Whether scripts or limits of the scan may hide ids.
    is_unknown: bool,
    has_scripts: bool,
}

impl<'a> Ids<'a> {
    fn of(page: &AuditedPage<'a>) -> Self {
        let facts = page.facts();
        let has_scripts = facts.scripts > 0;
        Self {
            ids: facts.ids.iter().map(|id| id.text.as_str()).collect(),
            is_unknown: facts.cut > 0 || (has_scripts && page.words() < MIN_WORDS),
            has_scripts,
        }
    }

    fn is_broken(&self, name: &str, value: &str) -> bool {
        let mut ids = value.split_ascii_whitespace().peekable();
        if self.is_unknown || ids.peek().is_none() {
            return false;
        }
        match name {
            // An id with white space in it is none, and a label that names one is told by what it lacks.
            "for" => !self.ids.contains(value),
            "aria-labelledby" => ids.any(|id| !self.ids.contains(id)),
            // Descriptions often name the place of an error that is not there yet.
            "aria-describedby" => !ids.any(|id| self.ids.contains(id)),
            // What these name may be made when it is needed.
            _ => aria::refers(name) && !self.has_scripts && !ids.any(|id| self.ids.contains(id)),
        }
    }
}
