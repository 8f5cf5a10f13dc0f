//! Server logs: which programs ask for the site, which of its pages robots visit, and what stands only in logs.

use huntsman_crawler::Result;
use huntsman_output::markup::Web;
use huntsman_output::render::{count, counted};
use maud::{Markup, html};

use super::link_to_page;
use crate::audit::Audit;
use crate::code::PageClass;
use crate::logs::{Agent, Joined, OfAgent, OfUrl};

/// URLs that each table shows.
const SHOWN: usize = 50;

/// A URL of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    /// Those with most come first.
    hits: std::cmp::Reverse<u64>,
    url: String,
    robots: String,
    errors: u64,
}

/// The URLs with the most requests, and the number of all.
#[derive(Debug, Default)]
struct Most {
    rows: Vec<Row>,
    number: usize,
}

impl Most {
    fn add(&mut self, of: &OfUrl<'_>, hits: u64) {
        self.number += 1;
        let robots: Vec<String> = of
            .robots
            .iter()
            .take(4)
            .map(|(robot, hits)| format!("{} {}", robot.name(), count(*hits)))
            .collect();
        let errors = of.answers.of(4) + of.answers.of(5);
        self.rows.push(Row {
            hits: std::cmp::Reverse(hits),
            url: of.url.to_owned(),
            robots: robots.join(", "),
            errors,
        });
        if self.rows.len() > 20 * SHOWN {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.rows.sort();
        self.rows.truncate(SHOWN);
    }
}

/// What the view shows.
#[derive(Debug, Default)]
pub(super) struct Logs {
    visited: Most,
    only_in_logs: Most,
    errors: Most,
    unvisited: Vec<String>,
    number_of_unvisited: usize,
    indexable: usize,
}

impl Logs {
    /// Reads the logs of an audit; `None` if it has none.
    pub(super) fn of(audit: &Audit) -> Result<Option<Self>> {
        let Some(joined) = audit.site.logs() else { return Ok(None) };
        let mut logs = Self::default();
        joined.each_url(&audit.site, &mut |of| {
            let page = of.address.filter(|address| address.is_answered());
            if of.robot_hits > 0 && page.is_some_and(|page| page.is(PageClass::Html)) {
                logs.visited.add(of, of.robot_hits);
            }
            if !of.is_known() && of.is_answered() {
                logs.only_in_logs.add(of, of.hits);
            }
            let errors = of.answers.of(4) + of.answers.of(5);
            if errors > 0 && of.robot_hits > 0 {
                logs.errors.add(of, errors);
            }
            Ok(())
        })?;
        [&mut logs.visited, &mut logs.only_in_logs, &mut logs.errors].into_iter().for_each(Most::finish);
        for page in audit.site.addresses().filter(|page| page.is_answered() && page.is(PageClass::Indexable))
        {
            logs.indexable += 1;
            if page.log_hits().is_some_and(|[_, robots]| robots == 0) {
                logs.number_of_unvisited += 1;
                if logs.unvisited.len() < SHOWN {
                    logs.unvisited.push(page.url());
                }
            }
        }
        Ok(Some(logs))
    }

    /// Number of pages that robots visit.
    pub(super) fn number_of_pages(&self) -> usize {
        self.visited.number
    }

    pub(super) fn view(&self, audit: &Audit) -> Markup {
        let Some(joined) = audit.site.logs() else { return html! {} };
        let mut agents: Vec<(Agent, &OfAgent)> = joined.agents().collect();
        agents.sort_by(|a, b| b.1.sums.hits.cmp(&a.1.sums.hits).then(a.0.cmp(&b.0)));
        let all: u64 = agents.iter().map(|(_, of)| of.sums.hits).sum();
        let robots: u64 =
            agents.iter().filter(|(agent, _)| agent.is_robot()).map(|(_, of)| of.sums.hits).sum();
        html! {
            p.lead {
                (counted(all, "request")) " for the site"
                @if let Some((first, last)) = joined.period() { " from " (first) " to " (last) }
                ", " (count(robots)) " of them by robots."
                @if joined.has_agents() {
                    " A robot is recognised by its User-Agent, which anybody can send"
                    @if joined.has_ranges() { "; of some robots the address was compared with those that the operator publishes" }
                    @else { "; no address was verified" }
                    "."
                }
            }
            @for note in joined.notes() { div.banner { (Web(&note)) } }
            (agents_table(joined, &agents))
            h3 { "Pages that robots visit most" }
            @if self.visited.rows.is_empty() { p.soft { "Robots asked for no page of the site." } }
            @else { (urls_table(&self.visited, "Robots ask", true)) }
            h3 { "Pages that no robot visits" }
            p {
                (count(self.number_of_unvisited as u64)) " of " (counted(self.indexable as u64, "page"))
                " that search engines may index."
            }
            @if !self.unvisited.is_empty() {
                ul { @for url in &self.unvisited { li.url { a href=(link_to_page(url)) { (Web(url)) } } } }
            }
            (rest(self.unvisited.len(), self.number_of_unvisited))
            h3 { "URLs that stand only in the logs" }
            @if self.only_in_logs.rows.is_empty() {
                p.soft { "The crawl knows every URL of the logs that was answered." }
            } @else {
                p { "The server answered them, and the crawl did not find them: no page links to them, or it was not to follow the link." }
                (urls_table(&self.only_in_logs, "Requests", false))
            }
            h3 { "Errors that robots get" }
            @if self.errors.rows.is_empty() { p.soft { "Robots got no errors." } }
            @else { (urls_table(&self.errors, "Errors", false)) }
        }
    }
}

fn agents_table(joined: &Joined, agents: &[(Agent, &OfAgent)]) -> Markup {
    html! {
        div.wide {
            table data-sort {
                thead {
                    tr {
                        th scope="col" { "Asked by" }
                        th scope="col" { "For" }
                        th scope="col" { "Verification" }
                        th.n scope="col" { "Requests" }
                        @if joined.has_ranges() { th.n scope="col" { "Confirmed" } th.n scope="col" { "From elsewhere" } }
                        th.n scope="col" { "URLs" }
                        @for hundred in 2..=5 { th.n scope="col" { (hundred) "xx" } }
                        th scope="col" { "Last" }
                    }
                }
                tbody {
                    @for (agent, of) in agents {
                        tr {
                            th scope="row" { (agent.name()) }
                            td { (agent.purpose().map_or("", |purpose| purpose.name())) }
                            td { (joined.verification(*agent)) }
                            (number(of.sums.hits))
                            @if joined.has_ranges() { (number(of.sums.confirmed)) (number(of.sums.contradicted)) }
                            (number(of.urls))
                            @for hundred in 2..=5 { (number(of.answers.of(hundred))) }
                            td { (crate::logs::shown_time(of.sums.last).unwrap_or_default()) }
                        }
                    }
                }
            }
        }
    }
}

fn urls_table(most: &Most, name: &str, is_of_audit: bool) -> Markup {
    html! {
        table data-sort {
            thead { tr { th scope="col" { "URL" } th.n scope="col" { (name) } th.n scope="col" { "Errors" } th scope="col" { "Robots" } } }
            tbody {
                @for row in &most.rows {
                    tr {
                        th.url scope="row" {
                            @if is_of_audit { a href=(link_to_page(&row.url)) { (Web(&row.url)) } } @else { (Web(&row.url)) }
                        }
                        (number(row.hits.0))
                        (number(row.errors))
                        td { (row.robots) }
                    }
                }
            }
        }
        (rest(most.rows.len(), most.number))
    }
}

fn number(number: u64) -> Markup {
    html! { td.n data-v=(number) { (count(number)) } }
}

fn rest(shown: usize, all: usize) -> Markup {
    html! {
        @if shown < all {
            p.soft { "The first " (shown) " of " (count(all as u64)) " are shown; csv/logs.csv has all of them." }
        }
    }
}
