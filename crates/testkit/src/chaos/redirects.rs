//! Redirects: loops, chains, invalid targets, and targets on other hosts.

use super::behaviour::{Behaviour, Exchange, Family, KEPT};
use crate::answer::Answer;

/// Number of redirects that every client follows.
const HOPS: usize = 10;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Redirects, name, about, answer)
    };
    let dead = |name, about, answer: fn(&Exchange<'_>) -> Answer| of(name, about, answer).once();
    vec![
        // The loop ends when an address repeats; the second request is the redirect that repeats it.
        of("to_itself", "302 to the same address", |exchange| Answer::redirect(302, exchange.path("")))
            .requests(2),
        of("two_cycle", "two addresses that redirect to each other", |exchange| {
            Answer::redirect(
                301,
                if exchange.rest.is_empty() { exchange.path("other") } else { exchange.path("") },
            )
        })
        .requests(3),
        of("fragment_loop", "302 to the same address with another fragment", |exchange| {
            Answer::redirect(302, format!("{}#part{}", exchange.path(""), exchange.request.nth))
        })
        .requests(2),
        of("endless_chain", "each address redirects to a new one", |exchange| {
            Answer::redirect(302, exchange.path(&format!("hop{}", number(exchange.rest, "hop") + 1)))
        })
        .hops(),
        of("endless_mix", "redirects of all codes and refreshing pages by turns", |exchange| {
            let next = number(exchange.rest, "step") + 1;
            let to = exchange.path(&format!("step{next}"));
            match next % 6 {
                0 => Answer::html(format!("<meta http-equiv=refresh content='0;url={to}'><p>step {next}")),
                at => Answer::redirect([301, 302, 303, 307, 308][at - 1], to),
            }
        })
        .hops(),
        of("ten_hops", "ten redirects and then a page", |exchange| {
            let next = number(exchange.rest, "hop") + 1;
            let target = if next == HOPS { KEPT.to_owned() } else { format!("hop{next}") };
            Answer::redirect(302, exchange.path(&target))
        })
        .kept()
        .requests(HOPS),
        of("relative_location", "a Location relative to the address", |exchange| {
            Answer::redirect(
                302,
                format!("./{}/../{}/{KEPT}", exchange.behaviour.name, exchange.behaviour.name),
            )
        })
        .kept(),
        of("protocol_relative", "a Location that begins with //", |exchange| {
            Answer::redirect(302, exchange.url(KEPT).trim_start_matches("http:"))
        })
        .kept(),
        of("raw_utf8_location", "a Location with bytes above 127", |exchange| match exchange.rest {
            "" => Answer::redirect(302, format!("{}/stra\u{df}e", exchange.path(""))),
            _ => Answer::html(exchange.kept()),
        })
        .kept(),
        of("lower_case_line", "a redirect in lower case with blanks around the target", |exchange| {
            Answer::status(303).header("location", format!("  {}  ", exchange.path(KEPT)))
        })
        .kept(),
        of("wall_of_cookies", "302 to itself until a cookie comes back", |exchange| {
            if exchange.request.header("cookie").is_some_and(|cookies| cookies.contains("passed=yes")) {
                Answer::html(exchange.kept())
            } else {
                Answer::redirect(302, exchange.path("")).header("Set-Cookie", "passed=yes; Path=/")
            }
        })
        .kept(),
        dead("to_file", "302 to a file", |_| Answer::redirect(302, "file:///etc/passwd")),
        dead("to_javascript", "302 to a script", |_| Answer::redirect(302, "javascript:alert(1)")),
        dead("to_data", "302 to a data address", |exchange| {
            Answer::redirect(302, format!("data:text/html,<a href='{}'>x</a>", exchange.url(super::POISON)))
        })
        .poison(),
        dead("to_other_schemes", "302 to gopher on the inside host", |exchange| {
            Answer::redirect(302, format!("gopher://{}:{}/_panel", super::INSIDE, exchange.endpoints.port()))
        }),
        dead("to_inside", "307 to the inside host", |exchange| {
            Answer::redirect(307, exchange.endpoints.url(super::INSIDE, "/panel/to_inside"))
        }),
        dead("to_other_port", "302 to a port that is not listed", |exchange| {
            Answer::redirect(302, format!("http://{}:{}/panel", super::MAIN, exchange.endpoints.other_port()))
        }),
        dead("to_user_info", "302 to an address with a password", |exchange| {
            let (host, path) = (exchange.behaviour.host(exchange.endpoints), exchange.path(super::POISON));
            Answer::redirect(302, format!("http://user:secret@{host}:{}{path}", exchange.endpoints.port()))
        })
        .poison(),
        dead("to_closed", "302 to what robots.txt forbids", |_| {
            Answer::redirect(302, "/closed/behind-a-redirect")
        }),
        dead("to_long_address", "302 to an address of 60 kB", |exchange| {
            Answer::redirect(302, format!("{}?{}", exchange.path(super::POISON), "x".repeat(60_000)))
        })
        .poison(),
        dead("broken_location", "302 to what is no address", |_| Answer::redirect(302, "http://[::1")),
        dead("bad_port", "302 to a port over 65535", |exchange| {
            Answer::redirect(302, format!("http://{}:99999/", exchange.behaviour.host(exchange.endpoints)))
        }),
        dead("no_location", "302 without a Location, with links", |exchange| {
            Answer::status(302).header("Content-Type", "text/html").body(exchange.page(&[]))
        }),
        dead("empty_location", "302 with an empty Location", |_| Answer::redirect(302, "")).requests(2),
        of("refresh_to_itself", "a page that refreshes to itself", |exchange| {
            Answer::html(format!(
                "<meta http-equiv='Refresh' content='0; URL={}'><p>again",
                exchange.path("")
            ))
        })
        .requests(2),
        of("refresh_cycle", "two pages that refresh to each other", |exchange| {
            let to = if exchange.rest.is_empty() { exchange.path("other") } else { exchange.path("") };
            Answer::html(format!("<meta http-equiv=refresh content=\"0;url='{to}'\"><p>again"))
        })
        .requests(3),
        of("refresh_chain", "each page refreshes to a new one", |exchange| {
            let to = exchange.path(&format!("turn{}", number(exchange.rest, "turn") + 1));
            Answer::html(format!("<meta http-equiv=refresh content=0;url={to}><p>turn"))
        })
        .hops(),
        dead("refresh_to_inside", "a page that refreshes to the inside host", |exchange| {
            let to = exchange.endpoints.url(super::INSIDE, "/panel/refresh_to_inside");
            Answer::html(format!("<meta http-equiv=refresh content='0;url={to}'><p>{}", exchange.page(&[])))
        }),
    ]
}

/// The number behind a prefix in the rest of a path; 0 for the entry.
fn number(rest: &str, prefix: &str) -> usize {
    rest.strip_prefix(prefix).and_then(|number| number.parse().ok()).unwrap_or(0)
}
