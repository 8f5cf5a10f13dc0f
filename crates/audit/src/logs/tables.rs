//! Logs as tables: `logs.csv` with the URLs, and `log_robots.csv` with the programs that asked for them.

use std::path::Path;

use huntsman_crawler::Result;
use serde_json::json;

use super::joined::{Joined, shown_time};
use crate::audit::Audit;
use crate::code::PageClass;
use crate::record::Kind;
use crate::site::Address;
use crate::tables::Table;

const OF_URLS: [&str; 15] = [
    "url",
    "known_as",
    "status",
    "indexable",
    "linked",
    "in_sitemap",
    "depth",
    "requests",
    "robot_requests",
    "last_robot",
    "answers_2xx",
    "answers_3xx",
    "answers_4xx",
    "answers_5xx",
    "robots",
];
const OF_ROBOTS: [&str; 12] = [
    "agent",
    "purpose",
    "verification",
    "requests",
    "confirmed",
    "contradicted",
    "urls",
    "answers_2xx",
    "answers_3xx",
    "answers_4xx",
    "answers_5xx",
    "last",
];

impl Audit {
    /// Writes the tables of logs, if there are logs. Behind the URLs in the logs stand the pages that nobody asked for.
    pub(crate) fn write_logs(&self, folder: &Path) -> Result<()> {
        let Some(logs) = self.site.logs() else { return Ok(()) };
        write_robots(logs, folder)?;
        let mut table = Table::with_columns(&folder.join("logs.csv"), &OF_URLS)?;
        logs.each_url(&self.site, &mut |of| {
            let robots: Vec<String> =
                of.robots.iter().map(|(robot, hits)| format!("{} {hits}", robot.name())).collect();
            let [known_as, status, indexable, linked, in_sitemap, depth] = known(of.address);
            table.row(&json!({
                "url": of.url, "known_as": known_as, "status": status, "indexable": indexable, "linked": linked,
                "in_sitemap": in_sitemap, "depth": depth, "requests": of.hits, "robot_requests": of.robot_hits,
                "last_robot": shown_time(of.last_robot), "answers_2xx": of.answers.of(2), "answers_3xx": of.answers.of(3),
                "answers_4xx": of.answers.of(4), "answers_5xx": of.answers.of(5), "robots": robots.join("; "),
            }))
        })?;
        for address in self.site.addresses().filter(|address| is_unvisited(*address)) {
            let [known_as, status, indexable, linked, in_sitemap, depth] = known(Some(address));
            table.row(&json!({
                "url": address.url(), "known_as": known_as, "status": status, "indexable": indexable, "linked": linked,
                "in_sitemap": in_sitemap, "depth": depth, "requests": 0, "robot_requests": 0, "last_robot": null,
                "answers_2xx": 0, "answers_3xx": 0, "answers_4xx": 0, "answers_5xx": 0, "robots": "",
            }))?;
        }
        self.site.check()?;
        table.finish()
    }
}

/// Whether it is an HTML page of the site that stands in no log.
fn is_unvisited(address: Address<'_>) -> bool {
    address.is_answered()
        && address.is(PageClass::Html)
        && address.log_hits().is_some_and(|[hits, _]| hits == 0)
}

fn known(address: Option<Address<'_>>) -> [serde_json::Value; 6] {
    let Some(address) = address.filter(|address| address.is_answered()) else { return Default::default() };
    let is_page = address.kind() == Some(Kind::Page);
    [
        json!(address.kind().map(Kind::name)),
        json!(address.status()),
        json!(is_page.then(|| address.is(PageClass::Indexable))),
        json!(address.is_linked()),
        json!(address.is_listed()),
        json!(address.depth()),
    ]
}

fn write_robots(logs: &Joined, folder: &Path) -> Result<()> {
    let mut table = Table::with_columns(&folder.join("log_robots.csv"), &OF_ROBOTS)?;
    for (agent, of) in logs.agents() {
        table.row(&json!({
            "agent": agent.name(), "purpose": agent.purpose().map(|purpose| purpose.name()),
            "verification": logs.verification(agent), "requests": of.sums.hits, "confirmed": of.sums.confirmed,
            "contradicted": of.sums.contradicted, "urls": of.urls, "answers_2xx": of.answers.of(2),
            "answers_3xx": of.answers.of(3), "answers_4xx": of.answers.of(4), "answers_5xx": of.answers.of(5),
            "last": shown_time(of.sums.last),
        }))?;
    }
    table.finish()
}
