//! An article and its sources side by side, with the shared passages marked: HTML without scripts, to be read and
//! printed.

use std::ops::Range;

use huntsman_detect::copyvio::{Evidence, Passage};
use huntsman_output::markup::{Web, WebLines, address, file};
use huntsman_output::render::{counted, shorten};
use maud::{Markup, html};

use super::comparison::{Compared, Comparison};

/// A self-contained page with all sources of a comparison: a table, the most suspicious first, and then each source that
/// has its text beside the article.
pub fn page(comparison: &Comparison) -> String {
    let ranked = comparison.ranked();
    let content = html! {
        h1 { "What " (Web(&shorten(&comparison.name, 160))) " has in common with its sources" }
        (table(&ranked, Compared::has_text))
        @for (at, compared) in ranked.iter().enumerate() {
            @let heading = html! { (at + 1) ". " (address(&compared.name)) };
            (pair(at + 1, &heading, comparison.article.text(), compared))
        }
    };
    file("Copies", STYLE, &content).into_string()
}

/// The table of sources, numbered from one. A source links to the [`pair`] of its number if `is_shown` says that the page
/// has it.
pub fn table(ranked: &[&Compared], is_shown: impl Fn(&Compared) -> bool) -> Markup {
    html! {
        table.list {
            tr {
                th { "#" }
                th { "source" }
                th.n { "confidence" }
                th { "verdict" }
                th.n { "score" }
                th.n { "coverage" }
                th.n { "longest run" }
            }
            @for (at, compared) in ranked.iter().enumerate() { (row(at + 1, compared, is_shown(compared))) }
        }
    }
}

fn row(number: usize, compared: &Compared, is_shown: bool) -> Markup {
    let Some(evidence) = compared.evidence() else {
        return html! {
            tr.unread {
                td { (number) }
                td { (address(&compared.name)) }
                td.n { "-" }
                td colspan="4" { (Web(&shorten(&compared.reason(), 200))) }
            }
        };
    };
    let longest = evidence.passages.iter().map(|passage| passage.longest).fold(0.0, f64::max);
    html! {
        tr class=(compared.level()) {
            td { @if is_shown { a href={ "#source-" (number) } { (number) } } @else { (number) } }
            td { (address(&compared.name)) }
            td.n { (format!("{:.1} %", 100.0 * compared.source.confidence.value())) }
            td { (evidence.verdict.to_string()) }
            td.n { (format!("{:.2}", evidence.score.value())) }
            td.n { (format!("{:.1} %", 100.0 * evidence.coverage)) }
            td.n { (format!("{longest:.0} words")) }
        }
    }
}

/// An article and a source side by side; empty if the text of the source was not kept. `article` is the text without
/// markup. `number` must differ for each pair of a page, because the anchors are named by it.
pub fn pair(number: usize, heading: &Markup, article: &str, compared: &Compared) -> Markup {
    let Some(found) = &compared.found else { return Markup::default() };
    let (Some(text), evidence) = (&found.text, &found.evidence) else { return Markup::default() };
    let (mut in_article, mut in_source) = (Vec::new(), Vec::new());
    for passage in &evidence.passages {
        in_article.push(passage.article.bytes.clone());
        in_source.push(passage.source.bytes.clone());
    }
    html! {
        section id={ "source-" (number) } {
            h2 { (heading) }
            p.sub { (shared(evidence)) }
            div.pair {
                article { h3 { "Article" } (marked(number, article, ['a', 's'], &evidence.passages, &in_article)) }
                article { h3 { "Source" } (marked(number, text.text(), ['s', 'a'], &evidence.passages, &in_source)) }
            }
        }
    }
}

fn shared(evidence: &Evidence) -> Markup {
    html! {
        (counted(evidence.passages.len() as u64, "passage"))
        (format!("; {:.0} of {:.0} words of the article", evidence.matched, evidence.words))
        @if evidence.is_manipulated { "; " b { "one of the texts hides its words from comparison" } }
    }
}

/// A shared passage of a text, with the text between the passage before and this one.
struct MarkedPassage<'t> {
    before: &'t str,
    text: &'t str,
    passage: usize,
}

/// The text with its passages as links to the same passages on the other side. Each side is named by a letter, this
/// one first.
fn marked(
    number: usize,
    text: &str,
    [this, other]: [char; 2],
    passages: &[Passage],
    places: &[Range<usize>],
) -> Markup {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|passage| (places[*passage].start, places[*passage].end));
    let (mut all, mut at) = (Vec::new(), 0);
    for passage in order {
        // If the article took from the source twice, passages overlap in the source: text that is already marked
        // stays so.
        let (start, end) = (places[passage].start.max(at), places[passage].end);
        if start < end {
            all.push(MarkedPassage { before: &text[at..start], text: &text[start..end], passage });
            at = end;
        } else {
            all.push(MarkedPassage { before: "", text: "", passage });
        }
    }
    html! {
        pre {
            @for MarkedPassage { before, text, passage } in all {
                @let id = format!("{this}{number}-{passage}");
                @if text.is_empty() {
                    span id=(id) {}
                } @else {
                    (WebLines(before))
                    a class=(if passages[passage].is_excused() { "excused" } else { "match" }) id=(id)
                        href=(format!("#{other}{number}-{passage}")) title=(why(&passages[passage])) {
                        (WebLines(text))
                    }
                }
            }
            (WebLines(&text[at..]))
        }
    }
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

/// The style sheet of the markup. Colours are explained in words as well.
pub const STYLE: &str = "\
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
