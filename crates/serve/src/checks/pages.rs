//! The HTML pages: forms for texts and addresses, and their results. They have no scripts.

use huntsman_detect::copyvio::Confidence;
use huntsman_sweep::Compared;
use huntsman_sweep::service::{OrderResult, Refusal};
use huntsman_sweep::side_by_side::{STYLE, pair, table};
use maud::{DOCTYPE, Markup, html};

use super::params::Params;
use huntsman_output::markup::{Web, WebLines, address};
use huntsman_output::render::{counted, duration, shorten};

/// Styles that the forms need in addition to those of the texts.
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
pub(crate) fn index(asks_token: bool) -> Markup {
    let blank = Params::default();
    let content = html! {
        h1 { "Was this copied?" }
        p.sub {
            "Compares texts, or looks for the sources of one. A field takes a text, or the address of a page alone."
        }
        (compare_form(asks_token, &blank))
        (check_form(asks_token, &blank, true))
        p.sub {
            "For programs: " a href="/api.json?action=sites&format=jsonfm" { "/api.json" }
            ", with the parameters of Earwig's Copyvio Detector; " a href="/metrics" { "/metrics" } "."
        }
    };
    page("Copies", &content)
}

fn compare_form(asks_token: bool, params: &Params) -> Markup {
    html! {
        form method="post" action="/compare" {
            h2 { "Compare two texts" }
            div.two {
                div {
                    label for="compare-article" { "Article" }
                    textarea id="compare-article" name="article" rows="9" required { (text(params, "article")) }
                }
                div {
                    label for="compare-source" { "Source" }
                    textarea id="compare-source" name="source" rows="9" required { (text(params, "source")) }
                }
            }
            (token("compare-token", asks_token))
            button { "Compare" }
        }
    }
}

fn check_form(asks_token: bool, params: &Params, is_new: bool) -> Markup {
    html! {
        form method="post" action="/check" {
            h2 { "Look for the sources of a text" }
            label for="check-article" { "Article" }
            textarea id="check-article" name="article" rows="7" required { (text(params, "article")) }
            label for="check-sources" { "Pages that it may be taken from, one a line (may be empty)" }
            textarea id="check-sources" name="source" rows="3" { (text(params, "source")) }
            label.inline {
                input type="checkbox" name="follow_links" value="1" checked[params.flag("follow_links", is_new)];
                " also the pages that the article links to"
            }
            label.inline {
                input type="checkbox" name="noskip" value="1" checked[params.flag("noskip", false)];
                " read all of them, also after a violation"
            }
            (token("check-token", asks_token))
            button { "Check" }
        }
    }
}

/// A text field with its current value. Browsers drop a line end directly behind the tag, so one is added to keep the
/// text's own.
fn text(params: &Params, name: &str) -> Markup {
    html! { "\n" (WebLines(params.get(name).unwrap_or(""))) }
}

fn token(id: &str, asks: bool) -> Markup {
    html! {
        @if asks {
            label for=(id) { "Token" }
            input id=(id) type="password" name="token" autocomplete="current-password" required;
        }
    }
}

/// The result of a comparison or a check.
pub(crate) fn result(result: &OrderResult, shows_table: bool) -> Markup {
    let comparison = &result.comparison;
    let shown = result.pairs.as_ref().unwrap_or(comparison);
    let (ranked, pairs) = (comparison.ranked(), shown.ranked());
    // The numbers are those of the table.
    let numbered = ranked.iter().enumerate().filter_map(|(at, compared)| {
        Some((at + 1, *pairs.iter().find(|other| other.name == compared.name)?))
    });
    let content = html! {
        (navigation())
        h1 { (heading(result, shows_table)) }
        (band(&ranked))
        @if shows_table { (search_results(result, &ranked)) }
        @for (number, compared) in numbered {
            @let heading = html! { (number) ". " (address(&compared.name)) };
            (pair(number, &heading, shown.article.text(), compared))
        }
    };
    page(if shows_table { "Sources" } else { "Comparison" }, &content)
}

fn navigation() -> Markup {
    html! { nav { a href="/" { "Another text" } } }
}

fn heading(result: &OrderResult, shows_table: bool) -> Markup {
    let page = &result.article.page;
    html! {
        @if let Some(url) = &page.url {
            (Web(&shorten(&page.title, 120))) " (" (address(url)) ")"
        } @else if shows_table {
            "Sources of the text"
        } @else {
            "Comparison"
        }
    }
}

/// The verdict on the most serious source, in a colour and in words.
fn band(ranked: &[&Compared]) -> Markup {
    let seriousness = |compared: &Compared| match compared.level() {
        "suspected" => 2,
        "possible" => 1,
        _ => 0,
    };
    // Among equals the first wins.
    let more = |best, other| if seriousness(other) > seriousness(best) { other } else { best };
    let best = ranked.iter().copied().reduce(more);
    let confidence = best.map_or(Confidence::ZERO, |best| best.source.confidence);
    let percent = format!("{:.1} %", 100.0 * confidence.value());
    let evidence = best.and_then(Compared::evidence);
    let level = best.map_or("none", Compared::level);
    let word = match (level, evidence) {
        ("suspected", _) => "Suspected: so much stands in the source that it was hardly written without it.",
        ("possible", _) => "Possible: the texts share passages. Look at them.",
        (_, Some(_)) => "None: nothing speaks for a copy.",
        (_, None) => "None: no source was compared.",
    };
    html! {
        div class={ "band " (level) } {
            b { (percent) }
            p { strong { (word) } }
            @if let Some(evidence) = evidence {
                p {
                    "Confidence: " (confidence.band().to_string()) " (" (percent) "). Evidence: "
                    (evidence.verdict.to_string()) (format!(", score {:.2}; ", evidence.score.value()))
                    (format!("{:.1} % of the article's words stand in the source, in ", 100.0 * evidence.coverage))
                    (counted(evidence.passages.len() as u64, "passage")) "."
                }
            }
        }
    }
}

fn search_results(result: &OrderResult, ranked: &[&Compared]) -> Markup {
    let is_shown = |compared: &Compared| {
        result.pairs.as_ref().is_some_and(|pairs| {
            pairs.sources.iter().any(|pair| pair.name == compared.name && pair.found.is_some())
        })
    };
    html! {
        p.sub { (Web(&search_facts(result).join(" · "))) }
        @if ranked.is_empty() {
            p { "No sources were found: name some, or check an article that links to others." }
        } @else {
            (table(ranked, is_shown))
        }
    }
}

fn search_facts(result: &OrderResult) -> Vec<String> {
    let comparison = &result.comparison;
    let mut facts =
        vec![counted(comparison.sources.len() as u64, "source"), duration(result.time.as_secs_f64())];
    if let Some(checked) = &comparison.check {
        if checked.cached.is_some() {
            facts.push("known from an earlier check".to_owned());
        }
        if checked.queries > 0 {
            facts.push(format!("{} to search engines", counted(checked.queries as u64, "question")));
        }
        if comparison
            .sources
            .iter()
            .any(|compared| compared.source.status.is_skipped() && !compared.source.status.is_excluded())
            && comparison.result.violation
        {
            facts.push("ended early: a violation was found".to_owned());
        }
        for (by, error) in checked.errors.iter().take(5) {
            facts.push(format!("{by}: {}", shorten(error, 200)));
        }
    }
    if let Some(unified) = comparison.result.unified.filter(|_| comparison.sources.len() > 1) {
        facts.push(format!("all of them together: {:.1} %", 100.0 * unified.value()));
    }
    facts
}

/// The reason why there is no result, with the forms as the user filled them in.
pub(crate) fn refused(refusal: &Refusal, params: &Params, is_check: bool, asks_token: bool) -> Markup {
    let content = html! {
        (navigation())
        h1 { "No result" }
        div.band.possible { p { (Web(&shorten(&refusal.info, 500))) " " code { (refusal.code) } } }
        @if is_check { (check_form(asks_token, params, false)) } @else { (compare_form(asks_token, params)) }
    };
    page("No result", &content)
}

/// An HTML page that shows JSON.
pub(crate) fn json(text: &str) -> Markup {
    page("API", &html! { pre.json { (WebLines(text)) } })
}

fn page(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " · huntsman" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                link rel="stylesheet" href="/style.css";
            }
            body { main { (content) } }
        }
        "\n"
    }
}
