//! An article and its sources side by side, what they share marked: a page without script, to be read and printed.

use std::fmt::Write as _;
use std::ops::Range;

use huntsman::detect::copyvio::Passage;

use super::comparison::{Compared, Comparison};
use crate::html_report::{address, html};
use crate::render::{counted, shorten};

/// The page.
pub(crate) fn page(comparison: &Comparison) -> String {
    let mut out = head("Copies");
    let name = html(&shorten(&comparison.name, 160));
    let _ = write!(out, "<h1>What {name} has in common with its sources</h1>");
    let ranked = comparison.ranked();
    table(&mut out, &ranked, Compared::has_text);
    for (at, compared) in ranked.iter().enumerate() {
        let heading = format!("{}. {}", at + 1, address(&compared.name));
        pair(&mut out, at + 1, &heading, comparison.article.text(), compared);
    }
    out.push_str(FOOT);
    out
}

/// The beginning of a page that is a file of its own; [`FOOT`] ends it. The policy forbids what the page does not need anyway.
pub(crate) fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <style>\n{STYLE}</style></head><body><main>\n",
        html(title)
    )
}

/// The end of a page.
pub(crate) const FOOT: &str = "</main></body></html>\n";

/// The sources, with links to the pairs of the same numbers where they are shown; numbers count from one.
pub(crate) fn table(out: &mut String, ranked: &[&Compared], is_shown: impl Fn(&Compared) -> bool) {
    out.push_str(
        "<table class=\"list\"><tr><th>#<th>source<th class=\"n\">confidence<th>verdict<th class=\"n\">score\
         <th class=\"n\">coverage<th class=\"n\">longest run</tr>",
    );
    for (at, compared) in ranked.iter().enumerate() {
        row(out, at + 1, compared, is_shown(compared));
    }
    out.push_str("</table>");
}

fn row(out: &mut String, number: usize, compared: &Compared, is_shown: bool) {
    let confidence = compared.source.confidence;
    let Some(evidence) = compared.evidence() else {
        let _ = write!(
            out,
            "<tr class=\"unread\"><td>{number}<td>{}<td class=\"n\">-<td colspan=\"4\">{}</tr>",
            address(&compared.name),
            html(&shorten(&compared.reason(), 200))
        );
        return;
    };
    let number =
        if is_shown { format!("<a href=\"#source-{number}\">{number}</a>") } else { number.to_string() };
    let _ = write!(
        out,
        "<tr class=\"{}\"><td>{number}<td>{}<td class=\"n\">{:.1} %<td>{}<td class=\"n\">{:.2}<td class=\"n\">{:.1} %\
         <td class=\"n\">{:.0} words</tr>",
        compared.level(),
        address(&compared.name),
        100.0 * confidence.value(),
        evidence.verdict,
        evidence.score.value(),
        100.0 * evidence.coverage,
        evidence.passages.iter().map(|passage| passage.longest).fold(0.0, f64::max)
    );
}

/// An article and a source beside each other; nothing if the text of the source was not kept. `number` is another one for each pair
/// of a page: places are named by it. The heading is HTML.
pub(crate) fn pair(out: &mut String, number: usize, heading: &str, article: &str, compared: &Compared) {
    let Some(found) = &compared.found else { return };
    let (Some(text), evidence) = (&found.text, &found.evidence) else { return };
    let _ = write!(
        out,
        "<section id=\"source-{number}\"><h2>{heading}</h2><p class=\"sub\">{}; {:.0} of {:.0} words of the article{}</p>\
         <div class=\"pair\"><article><h3>Article</h3>",
        counted(evidence.passages.len() as u64, "passage"),
        evidence.matched,
        evidence.words,
        if evidence.is_manipulated {
            "; <b>one of the texts hides its words from comparison</b>"
        } else {
            ""
        },
    );
    let side = |passage: &Passage, is_article: bool| -> Range<usize> {
        if is_article { passage.article.bytes.clone() } else { passage.source.bytes.clone() }
    };
    marked(out, number, article, 'a', 's', &evidence.passages, |passage| side(passage, true));
    out.push_str("</article><article><h3>Source</h3>");
    marked(out, number, text.text(), 's', 'a', &evidence.passages, |passage| side(passage, false));
    out.push_str("</article></div></section>");
}

/// The text with its passages as links to the same passage on the other side.
fn marked(
    out: &mut String,
    number: usize,
    text: &str,
    this: char,
    other: char,
    passages: &[Passage],
    place: impl Fn(&Passage) -> Range<usize>,
) {
    let mut places: Vec<(Range<usize>, usize)> =
        passages.iter().enumerate().map(|(at, passage)| (place(passage), at)).collect();
    places.sort_by_key(|(range, _)| (range.start, range.end));
    out.push_str("<pre>");
    let mut at = 0;
    for (range, passage) in places {
        // Passages overlap in a source that the article took from twice: what was marked stays so.
        let range = range.start.max(at)..range.end;
        if range.is_empty() {
            let _ = write!(out, "<span id=\"{this}{number}-{passage}\"></span>");
            continue;
        }
        out.push_str(&lines(&text[at..range.start]));
        let _ = write!(
            out,
            "<a class=\"{}\" id=\"{this}{number}-{passage}\" href=\"#{other}{number}-{passage}\" title=\"{}\">{}</a>",
            if passages[passage].is_excused() { "excused" } else { "match" },
            why(&passages[passage]),
            lines(&text[range.clone()])
        );
        at = range.end;
    }
    out.push_str(&lines(&text[at..]));
    out.push_str("</pre>");
}

/// Escaped, but for the ends of lines.
fn lines(text: &str) -> String {
    text.split('\n').map(html).collect::<Vec<_>>().join("\n")
}

fn why(passage: &Passage) -> String {
    let mut why = format!("{:.0} equal words, {:.0} in a row", passage.words, passage.longest);
    for (is, what) in [
        (passage.is_quoted, "; in quotation marks"),
        (passage.is_cited, "; a reference stands near it"),
        (passage.is_boilerplate, "; navigation, header or footer"),
    ] {
        if is {
            why.push_str(what);
        }
    }
    why
}

/// Colours are told by words as well.
pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1d2733;--dim:#5d6b7a;--paper:#f6f7f9;--card:#fff;--line:#dfe4ea;--red:#f6c8c4;--yellow:#fbe7b0;--green:#cfe9d2;--mark:#ffd9a0;--hit:#ff9d4d;--soft:#e3e8ee}
@media(prefers-color-scheme:dark){:root{--ink:#e4e9ee;--dim:#93a1b0;--paper:#12171d;--card:#1a2129;--line:#2b3540;--red:#6b2620;--yellow:#5c4712;--green:#1f4a28;--mark:#7a4a08;--hit:#b04a00;--soft:#2b3540}}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1280px;margin:0 auto;padding:32px 20px 60px}
h1{margin:0 0 20px;font-size:24px;overflow-wrap:anywhere}h2{margin:36px 0 4px;font-size:18px;overflow-wrap:anywhere}.sub{margin:0 0 8px;color:var(--dim)}
table{width:100%;border-collapse:collapse;background:var(--card);border:1px solid var(--line);font-size:14px}
th,td{padding:6px 10px;border-top:1px solid var(--line);text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{border-top:0;color:var(--dim);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
tr.suspected td:first-child{background:var(--red)}tr.possible td:first-child{background:var(--yellow)}tr.none td:first-child{background:var(--green)}tr.unread{color:var(--dim)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:12px}
article{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:0 16px 12px;min-width:0}
h3{margin:12px 0 4px;font-size:14px;color:var(--dim)}
pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;max-height:70vh;overflow:auto}
pre a{color:inherit;text-decoration:none;background:var(--mark);border-radius:3px}pre a.excused{background:var(--soft)}
pre a:target{background:var(--hit);text-decoration:underline}pre a:focus-visible{outline:2px solid var(--ink)}a{color:inherit}
@media print{pre{max-height:none}body{background:none}}
";
