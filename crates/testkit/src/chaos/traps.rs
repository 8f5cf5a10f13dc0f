//! Endless sites. The depth limit must end a chain of new addresses; a client must leave growing addresses even
//! earlier.

use super::behaviour::{Behaviour, Exchange, Family, page};
use crate::answer::Answer;

/// Maximum number of pages of a chain that begins two links from the seed: the depth limit of 20, and some slack.
const CHAIN: usize = 25;
/// Maximum number of pages of an address that repeats its segments: three times, the entry, and some slack.
const REPEATS: usize = 8;
/// Number of requests after which a trap has no more links, so that a trapped client gets out.
const DRY: usize = 1_500;
/// Maximum number of requests of a client that recognises duplicates, including its warm-up.
const SESSIONS: usize = 700;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of =
        |name, about, answer: fn(&Exchange<'_>) -> Answer| Behaviour::new(Family::Traps, name, about, answer);
    vec![
        of("calendar", "every month links to the next one", |exchange| {
            let month = parameter(exchange, "month");
            let title = format!("{} {}", 1 + month % 12, 2_024 + month / 12);
            Answer::html(page(
                &format!("Calendar {title}"),
                &texts(&onward(month, |next| format!("{}?month={next}", exchange.path("")))),
            ))
        })
        .requests(CHAIN),
        of("endless_pages", "a list that has a next page after its end", |exchange| {
            let number = parameter(exchange, "page");
            Answer::html(page("No results", &texts(&onward(number, |next| format!("?page={next}")))))
        })
        .requests(CHAIN),
        of("chain_of_paths", "every page links to a new path", |exchange| {
            let number = exchange.rest.strip_prefix('n').and_then(|number| number.parse().ok()).unwrap_or(0);
            Answer::html(page(
                exchange.rest,
                &texts(&onward(number, |next| exchange.path(&format!("n{next}")))),
            ))
        })
        .requests(CHAIN),
        of("chain_of_redirects", "every page links to a redirect to a new page", |exchange| {
            let number = parameter(exchange, "at");
            if exchange.rest == "go" {
                return Answer::redirect(302, format!("{}?at={number}", exchange.path("")));
            }
            Answer::html(page(
                &format!("Room {number}"),
                &texts(&onward(number, |next| format!("{}?at={next}", exchange.path("go")))),
            ))
        })
        .requests(2 * CHAIN),
        of("same_segment", "a relative link below itself", |exchange| growing(exchange, "deeper/"))
            .requests(REPEATS),
        of("two_segments", "a relative pair of segments below itself", |exchange| {
            growing(exchange, "left/right/")
        })
        .requests(REPEATS),
        of("three_segments", "a relative triple of segments below itself", |exchange| {
            growing(exchange, "a/b/c/")
        })
        .requests(REPEATS),
        of("growing_path", "a path with a new segment per page", |exchange| {
            let depth = exchange.rest.split('/').filter(|segment| !segment.is_empty()).count();
            let path = exchange.path(exchange.rest);
            Answer::html(page(
                &path,
                &texts(&onward(depth, |next| format!("{}/s{next}", path.trim_end_matches('/')))),
            ))
        })
        .requests(CHAIN),
        of("growing_slashes", "a path with a slash more per page", |exchange| {
            Answer::html(page(
                exchange.request.path(),
                &texts(&onward(exchange.rest.len(), |_| format!("{}/", exchange.request.path()))),
            ))
        })
        .requests(CHAIN),
        of("growing_query", "a query with a parameter more per page", |exchange| {
            let query = exchange.request.query().unwrap_or_default();
            let count = query.matches("q=").count();
            let links = onward(count, |next| format!("{}?{query}&amp;q={next}", exchange.path("")));
            Answer::html(page(&format!("Search {count}"), &texts(&links)))
        })
        .requests(CHAIN),
        of("facets", "five filters that can be set in any order", |exchange| {
            // The 32 pages have 326 addresses, but the canonical form of a URL sorts the query.
            let query = exchange.request.query().unwrap_or_default();
            let links: Vec<String> = ["color", "size", "brand", "price", "stock"]
                .iter()
                .filter(|facet| !query.contains(**facet))
                .map(|facet| {
                    format!(
                        "{}?{query}{}{facet}=on",
                        exchange.path(""),
                        if query.is_empty() { "" } else { "&amp;" }
                    )
                })
                .collect();
            let mut set: Vec<&str> = query.split('&').collect();
            set.sort_unstable();
            Answer::html(page(&format!("Shop {}", set.join(" ")), &texts(&links)))
        })
        .requests(32),
        of("endless_fragments", "every page links to itself with a new fragment", |exchange| {
            let links: Vec<String> = (0..5)
                .map(|number| format!("{}#{}{number}", exchange.path(""), exchange.request.nth))
                .collect();
            Answer::html(exchange.page(&texts(&links)))
        })
        .once(),
        of("session_ids", "six pages behind endless session ids", |exchange| {
            let room =
                exchange.rest.strip_prefix("room").and_then(|room| room.parse::<usize>().ok()).unwrap_or(0);
            let given = exchange
                .request
                .param("sid")
                .and_then(|sid| usize::from_str_radix(&sid, 16).ok())
                .unwrap_or(0);
            // Every link has an id of its own: the children of id n are 6 n + 1 to 6 n + 6.
            let links: Vec<String> = (0..6)
                .map(|room| (room, given.saturating_mul(6).saturating_add(room + 1)))
                .filter(|(_, sid)| *sid < DRY * 4)
                .map(|(room, sid)| format!("{}?sid={sid:08x}", exchange.path(&format!("room{room}"))))
                .collect();
            Answer::html(page(&format!("Room {room}"), &texts(&links)))
        })
        .requests(SESSIONS)
        .needs_dedup(),
    ]
}

/// Links to further pages, until the trap has no more.
fn onward(number: usize, link: impl Fn(usize) -> String) -> Vec<String> {
    if number < DRY { vec![link(number + 1)] } else { Vec::new() }
}

/// A page in a folder, with a link to a folder below it.
fn growing(exchange: &Exchange<'_>, below: &str) -> Answer {
    let path = exchange.path(exchange.rest);
    let depth = exchange.rest.split('/').count();
    let links = onward(depth, |_| format!("{}/{below}", path.trim_end_matches('/')));
    Answer::html(page(&path, &texts(&links)))
}

fn parameter(exchange: &Exchange<'_>, name: &str) -> usize {
    exchange.request.param(name).and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn texts(links: &[String]) -> Vec<&str> {
    super::texts(links)
}
