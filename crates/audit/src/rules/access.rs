//! Access for all readers.

use std::collections::BTreeMap;

use crate::code::Code;
use crate::code::Severity::Error;
use crate::finding::{Finding, Findings};
use crate::page::{AuditedPage, is_named};
use crate::rule::Rule;

const fn code(name: &'static str) -> Code {
    Code::new("access", name)
}

const CODES: &[Code] = &[
    code("viewport-missing")
        .headline("Pages without a viewport for phones")
        .text("A page has no `meta name=viewport`.", "Phones show it as small as on a desk.", "Add one.")
        .source("Lighthouse: viewport")
        .example("<head></head>", "<meta name=viewport content=\"width=device-width\">"),
    code("label-missing")
        .headline("Form fields without a label")
        .text(
            "A field of a form has no label, aria-label, aria-labelledby or title.",
            "Screen readers do not say what to fill in.",
            "Add a label.",
        )
        .source("WCAG 1.3.1, 4.1.2")
        .example("<input name=q>", "<label>Search <input name=q></label>"),
    code("main-missing")
        .headline("Pages without a main landmark")
        .text(
            "A page has neither a main element nor role=main.",
            "Readers cannot skip the menus.",
            "Put the content into main.",
        )
        .source("WCAG 2.4.1")
        .example("<body><div>text</div>", "<body><main>text</main>"),
    code("duplicate-id")
        .headline("Ids that stand twice on a page")
        .severity(Error)
        .text(
            "An id stands twice on a page.",
            "Labels and fragments lead to the wrong element.",
            "Rename one.",
        )
        .source("HTML: the id attribute")
        .example("<p id=a><p id=a>", "<p id=a><p id=b>"),
];

pub(super) struct Access;

impl Rule for Access {
    fn codes(&self) -> &[Code] {
        CODES
    }

    fn page(&self, page: &AuditedPage<'_>, findings: &mut Findings) {
        let facts = page.facts();
        if !page.metas().any(|meta| is_named(&meta, "viewport")) {
            findings.add(Finding::of("viewport-missing"));
        }
        for field in facts.fields.iter().filter(|field| !field.is_labelled) {
            let finding = Finding::of("label-missing").at(page.place(field.offset));
            findings.add(if field.has_placeholder { finding.value("only a placeholder") } else { finding });
        }
        if facts.mains == 0 {
            findings.add(Finding::of("main-missing"));
        }
        let mut ids: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for id in &facts.ids {
            ids.entry(&id.text).or_default().push(id.offset);
        }
        for (id, offsets) in ids.into_iter().filter(|(_, offsets)| offsets.len() > 1) {
            let finding = Finding::of("duplicate-id").group(id).value(offsets.len());
            findings.add(offsets.into_iter().map(|offset| page.place(offset)).fold(finding, Finding::at));
        }
    }
}
