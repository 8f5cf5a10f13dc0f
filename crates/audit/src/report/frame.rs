//! The page around the views: its policy, its menu, and its data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use huntsman_output::markup::Web;
use huntsman_output::render::count;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::blocks::{Blocks, safe};
use super::collect::Collected;
use super::counts::Counts;
use super::overview::Links;
use super::{issues, overview};
use crate::audit::Audit;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("app/data.js"),
    include_str!("app/elements.js"),
    include_str!("app/table.js"),
    include_str!("app/issues.js"),
    include_str!("app/pages.js"),
    include_str!("app/lists.js"),
    include_str!("app/views.js"),
    "})();\n"
);

/// A view: its fragment, its name, and how many things are in it.
type Entry = (&'static str, &'static str, Option<usize>);

pub(super) fn page(audit: &Audit, mut collected: Collected, blocks: &Blocks) -> Markup {
    let title = title(audit);
    let index = safe(&collected.index.to_string());
    let rows = |table: &str| collected.index[table]["rows"].as_u64().map(|rows| rows as usize);
    let languages = collected.index["languages"]["rows"]["rows"].as_u64().map(|rows| rows as usize);
    let menu: [(&str, Vec<Entry>); 3] = [
        (
            "",
            vec![
                ("overview", "Overview", None),
                ("issues", "Issues", Some(audit.causes.len())),
                ("pages", "Pages", Some(collected.counts.pages)),
            ],
        ),
        (
            "The site",
            vec![
                ("structure", "Structure", None),
                ("responses", "Responses", None),
                ("security", "Security", None),
            ],
        ),
        (
            "Lists",
            vec![
                ("duplicates", "Duplicates", None),
                ("redirects", "Redirects", rows("redirects")),
                ("languages", "Languages", languages),
                ("sitemaps", "Sitemaps", Some(collected.counts.sitemaps)),
                ("external", "Other sites", rows("hosts")),
                ("logs", "Server logs", collected.logs.as_ref().map(super::logs::Logs::number_of_pages)),
                (
                    "custom",
                    "Own fields",
                    collected.index["custom"]["pages"].as_u64().map(|pages| pages as usize),
                ),
                ("ignored", "Accepted issues", Some(audit.number_of_ignored()).filter(|number| *number > 0)),
            ],
        ),
    ];
    html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (Web(&title)) }
                meta name="description" content={ "What is wrong with " (Web(&audit.name())) ", where, and how to mend it." };
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#view" { "Skip to the content" }
                header.side {
                    (heading(audit))
                    nav aria-label="Views" {
                        @for (group, entries) in menu {
                            @if !group.is_empty() { p { (group) } }
                            ul {
                                @for (key, name, number) in entries {
                                    @if number.is_some() || !matches!(key, "ignored" | "custom" | "logs") {
                                        li { a href={ "#" (key) } { (name) @if let Some(number) = number { span { (count(number as u64)) } } } }
                                    }
                                }
                            }
                        }
                    }
                    div.tools.scripted hidden {
                        button #theme type="button" { "Dark" }
                        button #print type="button" { "Print" }
                    }
                }
                main #view tabindex="-1" {
                    (view("overview", "Overview", &overview::view(audit, &collected.counts, Links::ToViews)))
                    (view("issues", "Issues", &issues::view(audit)))
                    (view("structure", "Structure", &collected.structure.view(&mut collected.graph)))
                    (view("responses", "Responses", &collected.responses.view()))
                    (view("security", "Security", &collected.hosts.view(audit)))
                    (view("sitemaps", "Sitemaps", &collected.sitemaps.view()))
                    @if let Some(logs) = &collected.logs { (view("logs", "Server logs", &logs.view(audit))) }
                    section.view #drawn hidden {}
                    noscript { p.soft { "The tables of pages, redirects, duplicates, languages and other sites need a script. The files beside this page have all of it." } }
                    footer {
                        "Made by Huntsman " (env!("CARGO_PKG_VERSION")) " at " (audit.judged_at.to_rfc3339())
                        ". Everything is in the files beside this page, too: issues.jsonl, pages.jsonl and the tables in csv."
                    }
                }
                script #index type="application/json" { (PreEscaped(&index)) }
                @if let Blocks::Within(blocks) = blocks {
                    @for (id, rows) in blocks { "\n" script id=(id) type="application/json" { (PreEscaped(rows)) } }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
        "\n"
    }
}

/// The overview as a page of its own, without scripts.
pub(super) fn overview(audit: &Audit, counts: &Counts) -> Markup {
    plain_page(&title(audit), &heading(audit), &overview::view(audit, counts, Links::None))
}

fn title(audit: &Audit) -> String {
    audit.look.title.clone().unwrap_or_else(|| format!("Audit of {}", audit.name()))
}

/// The logo and the title.
fn heading(audit: &Audit) -> Markup {
    html! {
        @if let Some(logo) = &audit.look.logo { img.logo src=(logo) alt=""; }
        h1.site {
            @match &audit.look.title {
                Some(title) => strong { (Web(title)) },
                None => { "Audit of " strong { (Web(&audit.name())) } },
            }
        }
    }
}

/// A page without scripts and without a menu.
pub(crate) fn plain_page(title: &str, heading: &Markup, content: &Markup) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE)
    );
    html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (Web(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body.plain {
                main {
                    (heading)
                    section.view { (content) }
                    footer { "Made by Huntsman " (env!("CARGO_PKG_VERSION")) "." }
                }
            }
        }
        "\n"
    }
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

fn view(key: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section.view id={ "view-" (key) } aria-labelledby={ "title-" (key) } {
            h2 id={ "title-" (key) } { (title) }
            (content)
        }
    }
}

/// The policy of the page. `strict-dynamic` admits the files of data that the script loads, of which nothing can name the origin, because the page
/// was opened from a disk; trusted types admit no other URLs of scripts than theirs, and no text as markup.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src 'sha256-{}' 'strict-dynamic'; style-src 'sha256-{}'; img-src data:; require-trusted-types-for 'script'; \
         trusted-types huntsman; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}
