//! Access for all readers.

use std::collections::BTreeMap;

use super::semantics;
use crate::code::Code;
use crate::code::Severity::{Error, Notice};
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
            "A field of a form has no label, aria-label, aria-labelledby or title. If all such fields of a page have a placeholder, it is a notice.",
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
    code("viewport-no-zoom")
        .headline("Pages that cannot be enlarged")
        .text(
            "`meta name=viewport` says user-scalable=no, or a maximum-scale below 2.",
            "Who sees badly cannot enlarge the text.",
            "Leave both out.",
        )
        .source("WCAG 1.4.4")
        .example("content=\"width=device-width, user-scalable=no\"", "content=\"width=device-width\""),
    code("button-name")
        .headline("Buttons without a name")
        .text(
            "A button has no text, no alternative text and no label, and is not hidden from readers.",
            "Screen readers say only that it is a button.",
            "Give it a text or an aria-label.",
        )
        .source("WCAG 4.1.2")
        .example("<button><i class=icon></i></button>", "<button aria-label=Search><i class=icon></i></button>"),
    code("frame-title")
        .headline("Frames without a title")
        .text(
            "A frame that shows something has no title, aria-label or aria-labelledby.",
            "Screen readers cannot say what is in it.",
            "Give it a title.",
        )
        .source("WCAG 4.1.2")
        .example("<iframe src=/map>", "<iframe src=/map title=\"Map of the moths\">"),
    code("role-invalid")
        .headline("Roles that do not exist")
        .text(
            "None of the roles of an element is in WAI-ARIA 1.2 or one of its modules; abstract roles are none.",
            "Screen readers ignore it.",
            "Correct the role, or take it out.",
        )
        .source("WAI-ARIA 1.2, section 5.4")
        .example("<div role=buton>", "<button>"),
    code("aria-invalid")
        .headline("Attributes of ARIA that are wrong")
        .text(
            "An attribute begins with `aria-` and does not exist, or its value is not of its type. An empty value is as none.",
            "Screen readers ignore it.",
            "Correct its name or value.",
        )
        .source("WAI-ARIA 1.2, sections 6.2 and 6.8")
        .example("aria-labeledby=a", "aria-labelledby=a"),
    code("idref-broken")
        .headline("Labels and descriptions that lead nowhere")
        .text(
            "An aria-labelledby or the `for` of a label names an id that the page does not have, or an aria-describedby names such ids alone; on pages without scripts also any other list of ids of ARIA.",
            "The name or description is lost.",
            "Correct the id.",
        )
        .source("WAI-ARIA 1.2: id references; HTML: label")
        .example("<label for=mail> without id=mail", "<label for=mail> and <input id=mail>"),
    code("main-multiple")
        .headline("Pages with several main landmarks")
        .text(
            "A page has more than one main element or role=main that is not hidden.",
            "Readers cannot tell which one has the content.",
            "Keep one.",
        )
        .source("HTML: the main element")
        .example("<main>...</main><main>...</main>", "<main>...</main>"),
    code("tabindex-positive")
        .headline("Elements that jump the queue of the keyboard")
        .severity(Notice)
        .text(
            "A tabindex is above 0.",
            "The keyboard goes through the page in another order than the eyes.",
            "Use 0, and put the elements into their order.",
        )
        .source("WCAG 2.4.3")
        .example("tabindex=5", "tabindex=0"),
    code("table-no-header")
        .headline("Tables without headers")
        .severity(Notice)
        .text(
            "A table of text with at least two rows and two columns, as many cells in each row, has no th and nothing else that makes a header. Tables with other elements, wide cells or a role are not judged.",
            "Screen readers cannot say what a cell is about.",
            "Make the headers th.",
        )
        .source("WCAG 1.3.1")
        .example("<tr><td>Name<td>Price", "<tr><th>Name<th>Price"),
    code("list-broken")
        .headline("Broken lists")
        .severity(Notice)
        .text(
            "An item (li, dt, dd) is in no list, or something else than items is right in a list. Elements with a role are not judged.",
            "Screen readers count the items wrongly.",
            "Put items, and only them, into lists.",
        )
        .source("WCAG 1.3.1; HTML: grouping content")
        .example("<ul><div><li>A</div></ul>", "<ul><li>A</ul>"),
    code("video-caption")
        .headline("Videos without captions")
        .severity(Notice)
        .text(
            "A video that is not muted has no track of captions or subtitles.",
            "Who does not hear it misses what is said.",
            "Add a track, unless the captions are in the picture.",
        )
        .source("WCAG 1.2.2")
        .example("<video src=a.mp4>", "<video src=a.mp4><track kind=captions src=a.vtt></video>"),
    code("autocomplete-invalid")
        .headline("Fields with an unknown autocomplete")
        .severity(Notice)
        .text(
            "The autocomplete of a field is no list of words of the HTML standard.",
            "Browsers do not fill the field in.",
            "Correct it.",
        )
        .source("WCAG 1.3.5; HTML: autofill")
        .example("autocomplete=e-mail", "autocomplete=email"),
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
        for meta in page.metas().filter(|meta| is_named(meta, "viewport")) {
            if meta.content.is_some_and(forbids_zoom) {
                findings.add(Finding::of("viewport-no-zoom").value(meta.content).at(page.place(meta.offset)));
            }
        }
        let unlabelled = || facts.fields.iter().filter(|field| !field.is_labelled);
        // Some programs read a placeholder, which is better than nothing.
        let have_placeholders = unlabelled().all(|field| field.has_placeholder);
        for field in unlabelled() {
            let finding = Finding::of("label-missing").at(page.place(field.offset));
            findings.add(match have_placeholders {
                true => finding.value("only a placeholder").severity(Notice),
                false => finding,
            });
        }
        if facts.mains == 0 {
            findings.add(Finding::of("main-missing"));
        }
        semantics::tell(page, findings);
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

/// Whether the content of a viewport keeps readers from making the page twice as large.
fn forbids_zoom(content: &str) -> bool {
    let content = content.to_ascii_lowercase();
    // White space may stand around the sign, and in place of a comma.
    let tight = content.split('=').map(str::trim).collect::<Vec<_>>().join("=");
    let pairs = tight.split([',', ';']).flat_map(str::split_ascii_whitespace);
    pairs.filter_map(|pair| pair.split_once('=')).any(|(name, value)| match name {
        "user-scalable" => matches!(value, "no" | "0"),
        // Negative values are ignored, and words count as 1 or nothing.
        "maximum-scale" => value.parse::<f64>().is_ok_and(|scale| (0.0..2.0).contains(&scale)),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewport_forbids_zoom_by_either_of_two_words() {
        for content in [
            "width=device-width, user-scalable=no",
            "USER-SCALABLE = 0",
            "width=device-width initial-scale=1 maximum-scale=1.0",
            "maximum-scale=1,user-scalable=yes",
        ] {
            assert!(forbids_zoom(content), "{content}");
        }
        for content in [
            "width=device-width",
            "user-scalable=yes, maximum-scale=5",
            "maximum-scale=2",
            "maximum-scale=-1",
            "",
        ] {
            assert!(!forbids_zoom(content), "{content}");
        }
    }
}
