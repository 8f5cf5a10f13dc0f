//! Drawings of the report. They are made beforehand, follow the colours of the page, and stand beside the numbers that they show.

use std::fmt::Write;

use huntsman_output::markup::Web;
use huntsman_output::render::count;
use maud::{Markup, html};

/// How good a score is, as the name of a colour.
pub(super) fn grade(score: f64) -> &'static str {
    match score {
        score if score >= 8.0 => "good",
        score if score >= 5.0 => "fair",
        _ => "poor",
    }
}

/// A ring that is as full as the score.
pub(super) fn ring(score: f64) -> Markup {
    const RADIUS: f64 = 52.0;
    const AROUND: f64 = 2.0 * std::f64::consts::PI * RADIUS;
    let part = format!("{:.1} {AROUND:.1}", AROUND * score / 10.0);
    html! {
        svg class=(format!("ring {}", grade(score))) viewBox="0 0 128 128" role="img" aria-label=(format!("Score {score:.1} of 10")) {
            circle cx="64" cy="64" r=(RADIUS) {}
            circle.part cx="64" cy="64" r=(RADIUS) transform="rotate(-90 64 64)" stroke-dasharray=(part) {}
            text x="64" y="72" text-anchor="middle" { (format!("{score:.1}")) }
            text.of x="64" y="92" text-anchor="middle" { "of 10" }
        }
    }
}

/// A bar for a cell of a table, in parts of a whole.
pub(super) fn bar(parts: &[(&str, f64)]) -> Markup {
    let ends = parts.iter().scan(0.0, |end: &mut f64, (class, share)| {
        let from = *end;
        *end = (from + share * 100.0).min(100.0);
        Some((class, from, *end))
    });
    html! {
        svg.bar viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.rest width="100" height="10" {}
            @for (class, from, end) in ends {
                rect class=(class) x=(format!("{from:.2}")) width=(format!("{:.2}", end - from)) height="10" {}
            }
        }
    }
}

/// Names with numbers as a table, whose bars are as long as the numbers. A name may link to a view.
pub(super) fn histogram(title: &str, of: &str, rows: &[(String, usize, Option<String>)]) -> Markup {
    let most = rows.iter().map(|(_, number, _)| *number).max().unwrap_or(0).max(1) as f64;
    let all: usize = rows.iter().map(|(_, number, _)| *number).sum();
    html! {
        div.panel {
            h3 { (title) }
            table.histogram {
                thead.quiet { tr { th scope="col" { (of) } th scope="col" { "Share" } th.n scope="col" { "Number" } } }
                tbody {
                    @for (name, number, link) in rows {
                        tr {
                            th scope="row" {
                                @match link {
                                    Some(link) => a href=(Web(link)) { (Web(name)) },
                                    None => (Web(name)),
                                }
                            }
                            td { (bar(&[("part", *number as f64 / most)])) }
                            td.n title=(format!("{:.1} %", 100.0 * *number as f64 / all.max(1) as f64)) { (count(*number as u64)) }
                        }
                    }
                    @if rows.is_empty() { tr { td.soft colspan="3" { "There are none." } } }
                }
            }
        }
    }
}

/// A line through values over time, each between 0 and the largest.
pub(super) fn line(label: &str, values: &[f64], most: f64) -> Markup {
    const WIDTH: f64 = 240.0;
    const HEIGHT: f64 = 44.0;
    const ROOM: f64 = 4.0;
    let x = |at: usize| ROOM + (WIDTH - 2.0 * ROOM) * at as f64 / (values.len().max(2) - 1) as f64;
    let y = |value: f64| ROOM + (HEIGHT - 2.0 * ROOM) * (1.0 - value / most.max(f64::MIN_POSITIVE));
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let _ = write!(path, "{}{:.1} {:.1}", if at == 0 { "M" } else { "L" }, x(at), y(*value));
    }
    let last = values.len().saturating_sub(1);
    html! {
        svg.line viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(label) {
            path d=(path) {}
            @if let Some(value) = values.last() {
                circle cx=(format!("{:.1}", x(last))) cy=(format!("{:.1}", y(*value))) r="3.5" {}
            }
        }
    }
}
