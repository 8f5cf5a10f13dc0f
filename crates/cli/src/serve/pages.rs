//! The pages: forms to paste texts and addresses into, and what came of them. Without script.

use std::fmt::Write as _;

use huntsman::detect::copyvio::Confidence;

use super::checker::Done;
use super::params::Params;
use super::refusal::Refusal;
use crate::copyvio::{Compared, FOOT, STYLE, pair, table};
use crate::html_report::{address, html};
use crate::render::{counted, duration, shorten};

/// What the forms need beside the style of the texts.
const FORMS: &str = "\
.band{margin:0 0 20px;padding:16px 20px;border-radius:8px;border:1px solid var(--line)}\
.band.suspected{background:var(--red)}.band.possible{background:var(--yellow)}.band.none{background:var(--green)}\
.band b{display:block;font-size:28px;line-height:1.2}.band p{margin:4px 0 0}\
form{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 20px;margin:0 0 20px}\
form h2{margin:0 0 4px}label{display:block;font-weight:600;margin:12px 0 4px}label.inline{font-weight:400;margin:8px 0}\
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:0 16px}\
textarea,input[type=text],input[type=password]{box-sizing:border-box;width:100%;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--dim);border-radius:6px;padding:8px}\
textarea{resize:vertical}button{margin-top:16px;font:inherit;font-weight:600;padding:8px 20px;border:0;border-radius:6px;background:var(--ink);color:var(--card);cursor:pointer}\
textarea:focus-visible,input:focus-visible,button:focus-visible,a:focus-visible{outline:2px solid #2f6f9f;outline-offset:2px}\
nav{margin:0 0 20px}code,pre.json{font:13px/1.5 ui-monospace,monospace}pre.json{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;max-height:none}\
";

/// The style sheet of all pages.
pub(crate) fn style() -> String {
    format!("{STYLE}{FORMS}\n")
}

/// The page with the forms.
pub(crate) fn index(asks_token: bool) -> String {
    let mut out = head("Copies");
    out.push_str(
        "<h1>Was this copied?</h1><p class=\"sub\">Compares texts, or looks for the sources of one. A field takes a text, or the address of \
         a page alone.</p>",
    );
    compare_form(&mut out, asks_token, &Params::default());
    check_form(&mut out, asks_token, &Params::default(), true);
    out.push_str(
        "<p class=\"sub\">For programs: <a href=\"/api.json?action=sites&amp;format=jsonfm\">/api.json</a>, with the parameters of \
         Earwig's Copyvio Detector; <a href=\"/metrics\">/metrics</a>.</p>",
    );
    out.push_str(FOOT);
    out
}

fn compare_form(out: &mut String, asks_token: bool, params: &Params) {
    let value = |name: &str| text(params.get(name).unwrap_or(""));
    let _ = write!(
        out,
        "<form method=\"post\" action=\"/compare\"><h2>Compare two texts</h2><div class=\"two\">\
         <div><label for=\"compare-article\">Article</label>\
         <textarea id=\"compare-article\" name=\"article\" rows=\"9\" required>\n{}</textarea></div>\
         <div><label for=\"compare-source\">Source</label>\
         <textarea id=\"compare-source\" name=\"source\" rows=\"9\" required>\n{}</textarea></div></div>{}\
         <button>Compare</button></form>",
        value("article"),
        value("source"),
        token("compare-token", asks_token)
    );
}

fn check_form(out: &mut String, asks_token: bool, params: &Params, is_new: bool) {
    let value = |name: &str| text(params.get(name).unwrap_or(""));
    let ticked = |name: &str, default: bool| if params.flag(name, default) { " checked" } else { "" };
    let (links, noskip) = (ticked("follow_links", is_new), ticked("noskip", false));
    let _ = write!(
        out,
        "<form method=\"post\" action=\"/check\"><h2>Look for the sources of a text</h2>\
         <label for=\"check-article\">Article</label>\
         <textarea id=\"check-article\" name=\"article\" rows=\"7\" required>\n{}</textarea>\
         <label for=\"check-sources\">Pages that it may be taken from, one a line (may be empty)</label>\
         <textarea id=\"check-sources\" name=\"source\" rows=\"3\">\n{}</textarea>\
         <label class=\"inline\"><input type=\"checkbox\" name=\"follow_links\" value=\"1\"{links}> also the pages that the article links to</label>\
         <label class=\"inline\"><input type=\"checkbox\" name=\"noskip\" value=\"1\"{noskip}> read all of them, also after a violation</label>{}\
         <button>Check</button></form>",
        value("article"),
        value("source"),
        token("check-token", asks_token)
    );
}

fn token(id: &str, asks: bool) -> String {
    if !asks {
        return String::new();
    }
    format!(
        "<label for=\"{id}\">Token</label><input id=\"{id}\" type=\"password\" name=\"token\" autocomplete=\"current-password\" required>"
    )
}

/// What a comparison or a check came to.
pub(crate) fn result(done: &Done, shows_table: bool) -> String {
    let comparison = &done.comparison;
    let mut out = head(if shows_table { "Sources" } else { "Comparison" });
    out.push_str("<nav><a href=\"/\">Another text</a></nav>");
    let page = &done.article.page;
    let name = match &page.url {
        Some(url) => format!("{} ({})", html(&shorten(&page.title, 120)), address(url)),
        None if shows_table => "Sources of the text".to_owned(),
        None => "Comparison".to_owned(),
    };
    let ranked = comparison.ranked();
    // The one that a reader must look at; among equals the first.
    let seriousness = |compared: &Compared| match compared.level() {
        "suspected" => 2,
        "possible" => 1,
        _ => 0,
    };
    let more = |best, other| if seriousness(other) > seriousness(best) { other } else { best };
    let best = ranked.iter().copied().reduce(more);
    let confidence = best.map_or(Confidence::ZERO, |best| best.source.confidence);
    let evidence = best.and_then(Compared::evidence);
    let level = best.map_or("none", Compared::level);
    let word = match (level, evidence) {
        ("suspected", _) => "Suspected: so much stands in the source that it was hardly written without it.",
        ("possible", _) => "Possible: the texts share passages. Look at them.",
        (_, Some(_)) => "None: nothing speaks for a copy.",
        (_, None) => "None: no source was compared.",
    };
    let _ = write!(
        out,
        "<h1>{name}</h1><div class=\"band {level}\"><b>{:.1} %</b><p><strong>{word}</strong></p>",
        100.0 * confidence.value()
    );
    if let Some(evidence) = evidence {
        let _ = write!(
            out,
            "<p>Confidence: {} ({:.1} %). Evidence: {}, score {:.2}; {:.1} % of the article's words stand in the source, in {}.</p>",
            confidence.band(),
            100.0 * confidence.value(),
            evidence.verdict,
            evidence.score.value(),
            100.0 * evidence.coverage,
            counted(evidence.passages.len() as u64, "passage")
        );
    }
    out.push_str("</div>");
    if shows_table {
        searched(&mut out, done);
    }
    let shown = done.pairs.as_ref().unwrap_or(comparison);
    let pairs = shown.ranked();
    for (at, compared) in ranked.iter().enumerate() {
        // Numbers are those of the table.
        if let Some(compared) = pairs.iter().find(|other| other.name == compared.name) {
            let heading = format!("{}. {}", at + 1, address(&compared.name));
            pair(&mut out, at + 1, &heading, shown.article.text(), compared);
        }
    }
    out.push_str(FOOT);
    out
}

fn searched(out: &mut String, done: &Done) {
    let comparison = &done.comparison;
    let mut said =
        vec![counted(comparison.sources.len() as u64, "source"), duration(done.time.as_secs_f64())];
    if let Some(checked) = &comparison.check {
        if checked.cached.is_some() {
            said.push("known from an earlier check".to_owned());
        }
        if checked.queries > 0 {
            said.push(format!("{} to search engines", counted(checked.queries as u64, "question")));
        }
        if comparison
            .sources
            .iter()
            .any(|compared| compared.source.status.is_skipped() && !compared.source.status.is_excluded())
            && comparison.result.violation
        {
            said.push("ended early: a violation was found".to_owned());
        }
        for (by, error) in checked.errors.iter().take(5) {
            said.push(html(&format!("{by}: {}", shorten(error, 200))));
        }
    }
    if let Some(unified) = comparison.result.unified.filter(|_| comparison.sources.len() > 1) {
        said.push(format!("all of them together: {:.1} %", 100.0 * unified.value()));
    }
    let _ = write!(out, "<p class=\"sub\">{}</p>", said.join(" · "));
    if comparison.sources.is_empty() {
        out.push_str("<p>No sources were found: name some, or check an article that links to others.</p>");
        return;
    }
    let with_texts = |compared: &Compared| {
        done.pairs.as_ref().is_some_and(|pairs| {
            pairs.sources.iter().any(|pair| pair.name == compared.name && pair.found.is_some())
        })
    };
    let ranked = comparison.ranked();
    table(out, &ranked, with_texts);
}

/// Why there is no result, with the forms as they were filled in.
pub(crate) fn refused(refusal: &Refusal, params: &Params, is_check: bool, asks_token: bool) -> String {
    let mut out = head("No result");
    let _ = write!(
        out,
        "<nav><a href=\"/\">Another text</a></nav><h1>No result</h1><div class=\"band possible\"><p>{} <code>{}</code></p></div>",
        html(&shorten(&refusal.info, 500)),
        html(refusal.code)
    );
    if is_check {
        check_form(&mut out, asks_token, params, false);
    } else {
        compare_form(&mut out, asks_token, params);
    }
    out.push_str(FOOT);
    out
}

/// JSON as a page.
pub(crate) fn json(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(html).collect();
    format!("{}<pre class=\"json\">{}</pre>{FOOT}", head("API"), lines.join("\n"))
}

fn head(title: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title} · huntsman</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"stylesheet\" href=\"/style.css\"></head><body><main>\n"
    )
}

/// Of a text that is shown where it is changed: line ends stay.
fn text(value: &str) -> String {
    value.split('\n').map(|line| html(line.trim_end_matches('\r'))).collect::<Vec<_>>().join("\n")
}
