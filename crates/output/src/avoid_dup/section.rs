//! The section about AvoidDup in the report for people.

use huntsman_detect::avoid::{Picture, Relation, Rule, TemplateCounts};
use maud::{Markup, html};

use super::AvoidDupReport;
use crate::markup::{Web, address};
use crate::render::{count, counted, shorten};

/// The colours of the picture; see the style of the report.
pub(crate) const STYLE: &str = "\
:root{--same:#c9752b;--skip:#9aa7b4}@media(prefers-color-scheme:dark){:root{--same:#e0964f;--skip:#5d6b7a}}
svg .same{fill:var(--same)}svg .skip{fill:var(--skip)}svg .t{fill:var(--ink);font-family:ui-monospace,monospace}
.key{display:flex;flex-wrap:wrap;gap:4px 20px;margin:0 0 10px;color:var(--dim);font-size:14px}
.key i{display:inline-block;width:12px;height:12px;margin-right:6px;border-radius:2px;background:var(--bar)}
.key .same{background:var(--same)}.key .skip{background:var(--skip)}
h3{margin:24px 0 8px;font-size:15px}.wide{overflow-x:auto}.wide table,.wide svg{min-width:800px}td small{display:block;color:var(--dim)}
code{font:13px ui-monospace,monospace}
";

/// How AvoidDup sees the sites: a picture, numbers by template, and the rules in words.
pub(crate) fn section(report: &AvoidDupReport) -> Markup {
    let Picture { templates, others, rest } = &report.picture;
    let loss = report.estimated_loss.zip(report.estimated_loss_most);
    let skips: u64 = templates.iter().map(|template| template.counts.skipped).sum::<u64>() + rest.skipped;
    html! {
        h2 { "How AvoidDup sees this site" }
        p.sub {
            (counted(report.learnt, "page")) " learnt, " (counted(report.skipped, "request")) " skipped, "
            (counted(report.explored, "skip")) " fetched all the same, " (count(report.explored_new))
            " of them with new content. "
            @match loss {
                Some((estimate, most)) => {
                    "Estimated loss: " (percent(estimate)) " of the skips, at most " (percent(most)) " (95 %)."
                }
                None => "There is no estimate of the loss, because no skip was fetched all the same.",
            }
        }
        @if !templates.is_empty() {
            figure.wide {
                figcaption { "Addresses by their form" }
                p.key {
                    span { i {} "new contents" }
                    span { i.same {} "duplicates that were fetched" }
                    span { i.skip {} "skipped" }
                }
                (picture(&report.picture))
            }
            h3 { "Forms of addresses" }
            div.wide { (templates_table(&report.picture)) }
            @if *others > 0 {
                p.sub { "The last line sums up " (counted(*others as u64, "further form")) "." }
            }
            @if skips < report.skipped {
                p.sub {
                    "Skips are those since the crawl was continued; " (count(report.skipped - skips))
                    " came before that or are not told apart."
                }
            }
        }
        @if !report.shown.used.is_empty() {
            h3 { "Rules by which requests were skipped" }
            div.wide { (rules_table(&report.shown.used, true)) }
            @if report.rules > report.shown.used.len() {
                p.sub { "All " (count(report.rules as u64)) " are in rules.json." }
            }
        }
        @if !report.shown.not_believed.is_empty() {
            h3 { "Rules that are not used" }
            div.wide { (rules_table(&report.shown.not_believed, false)) }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The counts that a bar shows: new contents, duplicates that were fetched, skips.
fn bar(counts: &TemplateCounts) -> [u64; 3] {
    [counts.new, counts.pages - counts.new.min(counts.pages), counts.skipped]
}

/// A bar for each template, under its text.
fn picture(picture: &Picture) -> Markup {
    const WIDTH: usize = 1060;
    const ROW: usize = 38;
    const NUMBERS: usize = 250;
    let more = format!("{} more", counted(picture.others as u64, "form"));
    let mut rows: Vec<(&str, [u64; 3])> =
        picture.templates.iter().map(|template| (&*template.template, bar(&template.counts))).collect();
    if picture.others > 0 {
        rows.push((&more, bar(&picture.rest)));
    }
    let most = rows.iter().map(|(_, bar)| bar.iter().sum::<u64>()).max().unwrap_or(0).max(1);
    let length = |number: u64| match number {
        0 => 0.0,
        _ => ((WIDTH - NUMBERS) as f64 * number as f64 / most as f64).max(1.0),
    };
    let height = rows.len() * ROW;
    html! {
        svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
            aria-label="New contents, duplicates that were fetched, and skipped requests by form of address" {
            @for (index, (template, bar)) in rows.iter().enumerate() {
                @let y = index * ROW;
                @let lengths = bar.map(length);
                @let ends = [lengths[0], lengths[0] + lengths[1], lengths[0] + lengths[1] + lengths[2]];
                text.t x="0" y=(y + 13) { (Web(&shorten(template, 130))) }
                @for (kind, (end, length)) in ["new", "same", "skip"].iter().zip(ends.iter().zip(lengths)) {
                    @if length > 0.0 {
                        rect class=(kind) x=(format!("{:.1}", end - length)) y=(y + 18)
                            width=(format!("{length:.1}")) height="12" {}
                    }
                }
                text.n x=(format!("{:.1}", ends[2] + 8.0)) y=(y + 28) {
                    (count(bar[0])) " new, " (count(bar[1])) " same, " (count(bar[2])) " skipped"
                }
            }
        }
    }
}

fn templates_table(picture: &Picture) -> Markup {
    let numbers = |counts: &TemplateCounts| {
        let [new, same, skipped] = bar(counts);
        html! {
            @for number in [counts.pages, counts.contents, new, same, skipped, counts.explored] {
                td.n { (count(number)) }
            }
        }
    };
    html! {
        table {
            tr {
                th { "form" } th.n { "pages" } th.n { "contents" } th.n { "new" } th.n { "duplicates" }
                th.n { "skipped" } th.n { "explored" }
            }
            @for template in &picture.templates {
                tr {
                    td {
                        code { (Web(&template.template)) }
                        small { (Web(&template.site)) ", such as " (address(&template.example)) }
                    }
                    (numbers(&template.counts))
                }
            }
            @if picture.others > 0 {
                tr { td { "all others" } (numbers(&picture.rest)) }
            }
        }
    }
}

fn rules_table(rules: &[(Rule, Option<Relation>)], is_used: bool) -> Markup {
    html! {
        table {
            tr {
                th { "rule" } th.n { "same" } th.n { "different" } th.n { "probability" }
                @if is_used {
                    th.n { "skipped" } th.n { "explored" } th.n { "of them new" } th.n { "loss at most" }
                } @else {
                    th.n { "fetched" }
                }
                th { "example, and the page that it equals" }
            }
            @for (rule, stand) in rules {
                @let same = stand.as_ref().map_or(f64::from(rule.evidence.dup), |stand| stand.evidence.dup);
                @let different = stand.as_ref().map_or(f64::from(rule.evidence.nodup), |stand| stand.evidence.nodup);
                tr {
                    td {
                        (Web(&shorten(&rule.rule, 200)))
                        small {
                            @match stand {
                                Some(stand) => (Web(&stand.why)),
                                None => "its example is seen otherwise by now",
                            }
                            @for range in stand.iter().flat_map(|stand| &stand.tested) {
                                br;
                                (Web(&range.words))
                            }
                        }
                    }
                    td.n { (format!("{same:.0}")) }
                    td.n { (format!("{different:.1}")) }
                    td.n { @if let Some(stand) = stand { (format!("{:.3}", stand.probability)) } }
                    @if is_used {
                        td.n { (count(rule.skipped)) }
                        td.n { (count(rule.explored)) }
                        td.n { (count(rule.lost)) }
                        td.n { @if let Some((_, most)) = rule.loss() { (percent(most)) } }
                    } @else {
                        td.n { (count(rule.fetched)) }
                    }
                    td {
                        (address(&rule.example))
                        @if let Some(equals) = stand.as_ref().and_then(|stand| stand.equals.as_ref()) {
                            small { "like " (address(equals)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use huntsman_detect::avoid::TemplatePicture;

    use super::*;

    fn report(templates: Vec<TemplatePicture>, others: usize) -> AvoidDupReport {
        AvoidDupReport {
            learnt: 10,
            skipped: 7,
            explored: 0,
            explored_new: 0,
            estimated_loss: None,
            estimated_loss_most: None,
            rules: 0,
            picture: Picture {
                templates,
                others,
                rest: TemplateCounts { pages: 5, skipped: 2, ..Default::default() },
            },
            shown: super::super::ShownRules::default(),
        }
    }

    #[test]
    fn a_hostile_template_is_only_text() {
        let evil = "/\"><script>alert(1)</script>\u{202e}{name}";
        let counts = TemplateCounts { pages: 3, new: 1, contents: 1, skipped: 5, explored: 1 };
        let hostile = TemplatePicture {
            site: evil.to_owned(),
            template: evil.to_owned(),
            example: format!("javascript:{evil}"),
            counts,
        };
        let made = section(&report(vec![hostile], 0)).into_string();
        assert!(!made.contains("<script") && !made.contains("href=\"javascript:"), "{made}");
        assert!(made.contains("&lt;script&gt;") && !made.contains('\u{202e}'), "{made}");
        assert!(made.contains("1 new, 2 same, 5 skipped"), "{made}");
    }

    #[test]
    fn the_templates_that_are_not_shown_are_summed_and_told() {
        let made = section(&report(Vec::new(), 0)).into_string();
        assert!(!made.contains("<svg"), "nothing to show: {made}");
        let template = |n: u64| TemplatePicture {
            site: "a.test".to_owned(),
            template: format!("/{n}/{{name}}"),
            example: format!("http://a.test/{n}/x"),
            counts: TemplateCounts { pages: n, ..TemplateCounts::default() },
        };
        let made = section(&report((0..30).map(template).collect(), 12)).into_string();
        assert_eq!(made.matches("class=\"t\"").count(), 31);
        assert!(made.contains("12 further forms") && made.contains("all others"), "{made}");
        assert!(made.contains("0 new, 5 same, 2 skipped"), "{made}");
    }
}
