//! robots.txt files that are valid, broken or unreachable, each on a host of its own, and rules within pages.

use std::time::Duration;

use super::behaviour::{Behaviour, Exchange, Family, KEPT, POISON, page};
use super::bombs;
use super::judge::Evidence;
use super::wire::{block_of, endless};
use crate::answer::{After, Answer, Part};

/// Maximum number of requests for an unreachable robots.txt: one, and three retries within the hour.
const ASKED_AGAIN: usize = 4;
/// Number of pages of the polite site in addition to those that every behaviour with a host of its own has.
const POLITE_PAGES: usize = 4;
/// Share of a delay that must be observed: the rest allows for inexact clocks.
const PUNCTUAL: f64 = 0.98;

const RULES: &str = "User-agent: *\nDisallow: /poison\n";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let on = |name, about, host, answer: fn(&Exchange<'_>) -> Answer| {
        // All other paths are plain pages.
        let answer = move |exchange: &Exchange<'_>| match exchange.rest {
            "robots.txt" => answer(exchange),
            rest if rest.starts_with("rules") => answer(exchange),
            _ => Answer::html(exchange.page(&[])),
        };
        Behaviour::new(Family::Robots, name, about, answer).at_host(host).requests(3)
    };
    // The host is closed for now: only robots.txt may be requested.
    let down = |name, about, host, answer: fn(&Exchange<'_>) -> Answer| {
        on(name, about, host, answer).requests(ASKED_AGAIN).poison().judge(|evidence, why| {
            let pages = evidence.own.iter().filter(|seen| seen.request.path() != "/robots.txt").count();
            if pages > 0 {
                why.push(format!("{pages} pages asked for while robots.txt was down"));
            }
        })
    };
    // There are no rules: everything may be requested.
    let open = |name, about, host, answer: fn(&Exchange<'_>) -> Answer| on(name, about, host, answer).kept();
    // There are rules, and they apply.
    let ruled =
        |name, about, host, answer: fn(&Exchange<'_>) -> Answer| open(name, about, host, answer).poison();
    let within = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Robots, name, about, answer)
    };
    vec![
        down("robots_500", "robots.txt is 500", "127.0.0.51", |_| Answer::status(500)),
        down("robots_503", "robots.txt is 503 with rules that allow all", "127.0.0.52", |_| {
            Answer::status(503).header("Content-Type", "text/plain").body("User-agent: *\nAllow: /\n")
        }),
        down("robots_reset", "robots.txt is a reset", "127.0.0.53", |_| Answer::raw("").after(After::Reset)),
        down("robots_silent", "robots.txt never comes", "127.0.0.54", |_| Answer::parts([Part::Stall])),
        down("robots_429", "robots.txt is 429", "127.0.0.55", |_| Answer::status(429)),
        open("robots_403", "robots.txt is 403 with rules that forbid all", "127.0.0.56", |_| {
            forbidding(403, "text/plain")
        }),
        open("robots_401", "robots.txt is 401 with rules that forbid all", "127.0.0.57", |_| {
            forbidding(401, "text/plain")
        }),
        open("robots_404", "robots.txt is 404 with rules that forbid all", "127.0.0.58", |_| {
            forbidding(404, "text/plain")
        }),
        open("robots_html", "robots.txt is a page with text like rules", "127.0.0.59", |_| {
            Answer::html(
                "<!doctype html>\n<html><body><pre>\nUser-agent: *\nDisallow: /\n</pre></body></html>\n",
            )
        }),
        open("robots_empty", "robots.txt is empty", "127.0.0.60", |_| Answer::text("")),
        open("robots_binary", "robots.txt is noise", "127.0.0.61", |_| {
            Answer::status(200)
                .header("Content-Type", "text/plain")
                .body(b"\0\xff\xfe\x80:\0\r\n\x1b[2J:".repeat(5_000))
        }),
        ruled("robots_endless", "robots.txt has rules and then no end", "127.0.0.62", |_| {
            // Content after the first 512 KiB does not count, even if it forbids everything.
            let filler = "# filler of a kilobyte or so\n".repeat(20_000);
            let start = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n{RULES}{filler}\n"
            );
            endless(start, block_of("Disallow: /\n"))
        })
        .head_only(),
        ruled("robots_bomb", "robots.txt is a gzip bomb with rules at its beginning", "127.0.0.63", |_| {
            let bomb = bombs::gzip(RULES.as_bytes(), 256);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\
                        Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
            Answer::parts([vec![Part::Bytes(head.into())], bomb.chunks()].concat())
        }),
        on("robots_loop", "robots.txt redirects without an end", "127.0.0.64", |exchange| {
            let turn =
                exchange.rest.strip_prefix("rules").and_then(|turn| turn.parse::<usize>().ok()).unwrap_or(0);
            Answer::redirect(302, format!("/rules{}", turn + 1))
        })
        // At most 5 redirects and at most 3 retries; the page itself may be requested or not.
        .requests(6 * ASKED_AGAIN + 1),
        on("robots_to_itself", "robots.txt redirects to itself", "127.0.0.65", |_| {
            Answer::redirect(301, "/robots.txt")
        })
        .requests(6 * ASKED_AGAIN + 1),
        ruled(
            "robots_moved",
            "robots.txt redirects four times and has rules then",
            "127.0.0.66",
            |exchange| {
                let turn = exchange
                    .rest
                    .strip_prefix("rules")
                    .and_then(|turn| turn.parse::<usize>().ok())
                    .unwrap_or(0);
                if turn == 4 {
                    Answer::text(RULES)
                } else {
                    Answer::redirect(301, format!("/rules{}", turn + 1))
                }
            },
        )
        .requests(3 + 5),
        on("robots_to_inside", "robots.txt redirects to the inside host", "127.0.0.67", |exchange| {
            Answer::redirect(302, exchange.endpoints.url(super::INSIDE, "/panel/robots_to_inside"))
        })
        .requests(ASKED_AGAIN + 1),
        ruled(
            "robots_odd_spelling",
            "a byte order mark, all kinds of line ends, capitals, blanks, escapes",
            "127.0.0.68",
            |_| {
                Answer::text(
                    "\u{feff}# rules\r\n\r\nUSER-AGENT :nobody\rdisallow:/\r\n\rUser-Agent:\t*\n\
                     \x20 DISALLOW : /%70oison  # closed\n\
                 Allow:\nnonsense\n: :\nDisallow",
                )
            },
        ),
        ruled(
            "robots_split_groups",
            "rules for all in two groups, and a group for another robot",
            "127.0.0.69",
            |_| {
                Answer::text(
                    "User-agent: *\nDisallow: /elsewhere\n\nUser-agent: otherbot\nDisallow: /\n\n\
                 User-agent: somebot\nUser-agent: *\nDisallow: /p\nAllow: /plain\n",
                )
            },
        ),
        ruled(
            "robots_long_lines",
            "rules after a line of 100 kB and one of 300,000 stars",
            "127.0.0.72",
            |_| {
                Answer::text(format!(
                    "# {}\nUser-agent: *\nDisallow: /{}x\nDisallow: /poison\n",
                    "long ".repeat(20_000),
                    "*a".repeat(150_000)
                ))
            },
        ),
        on("robots_delay_of_an_hour", "a Crawl-delay of an hour", "127.0.0.73", |_| {
            Answer::text("User-agent: *\nCrawl-delay: 3600\n")
        })
        .once()
        .poison(),
        on("robots_odd_delays", "Crawl-delays that are none", "127.0.0.74", |_| {
            Answer::text(
                "User-agent: *\nCrawl-delay: -5\nCrawl-delay: NaN\nCrawl-delay: 1e400\nCrawl-delay: soon\n",
            )
        })
        .kept(),
        polite(),
        within("nofollow_meta", "a page whose meta element forbids to follow", |exchange| {
            Answer::html(
                exchange
                    .poison()
                    .replace("<head>", "<head><meta name=\"ROBOTS\" content=\"index, NoFollow\">"),
            )
        })
        .poison(),
        within("nofollow_header", "a page whose header forbids to follow", |exchange| {
            Answer::html(exchange.poison()).header("X-Robots-Tag", "nofollow")
        })
        .poison(),
        within("nofollow_link", "a link that must not be followed", |exchange| {
            let page = exchange.page(&[&exchange.path(POISON), &exchange.path(KEPT)]);
            Answer::html(page.replacen("<a ", "<a rel=\"noopener nofollow\" ", 1))
        })
        .poison()
        .kept(),
    ]
}

fn forbidding(status: u16, content_type: &str) -> Answer {
    Answer::status(status).header("Content-Type", content_type).body("User-agent: *\nDisallow: /\n")
}

/// The site with a Crawl-delay. Some of its pages redirect or need a retry; such requests count like any others.
fn polite() -> Behaviour {
    let answer = |exchange: &Exchange<'_>| match exchange.rest {
        "robots.txt" => {
            let delay = exchange.endpoints.crawl_delay.as_secs_f64();
            Answer::text(format!(
                "User-agent: *\nCrawl-delay: {delay}\nDisallow: /shut\nAllow: /shut/ajar\nDisallow: /poison\n"
            ))
        }
        "" => {
            let rooms: Vec<String> = (0..POLITE_PAGES).map(|number| format!("/room/{number}")).collect();
            let links =
                [&super::texts(&rooms)[..], &["/moved", "/busy", "/shut/door", "/shut/ajar/1"]].concat();
            Answer::html(exchange.page(&links))
        }
        "moved" => Answer::redirect(302, "/arrived"),
        "busy" if exchange.request.nth == 0 => Answer::status(503),
        _ => Answer::html(page(exchange.rest, &[])),
    };
    Behaviour::new(
        Family::Robots,
        "polite_site",
        "a Crawl-delay, and rules where the longest match wins",
        answer,
    )
    .at_host("127.0.0.50")
    .kept()
    .poison()
    // One for robots.txt, one for the index, the pages, two for the redirect, two for the retry, and one for the page
    // that is ajar.
    .requests(2 + POLITE_PAGES + 2 + 2 + 1)
    .judge(judge_politeness)
}

fn judge_politeness(evidence: &Evidence<'_>, why: &mut Vec<String>) {
    let host = evidence.behaviour.host(evidence.endpoints);
    let asked = |path: &str| evidence.record.to(host).any(|seen| seen.request.path() == path);
    let mut expected: Vec<String> = (0..POLITE_PAGES).map(|number| format!("/room/{number}")).collect();
    expected.extend(["/arrived", "/busy", "/shut/ajar/1"].map(str::to_owned));
    let missing: Vec<&str> = expected.iter().map(String::as_str).filter(|path| !asked(path)).collect();
    if !missing.is_empty() {
        why.push(format!("not asked for: {}", missing.join(" ")));
    }
    if asked("/shut/door") {
        why.push("asked for what robots.txt forbids".to_owned());
    }
    let delay = evidence.endpoints.crawl_delay;
    let starts: Vec<Duration> = evidence.record.to(host).map(|request| request.started).collect();
    // A busy machine records a request late, never early; a late record makes the gap after it too small. So each request is compared
    // with the start of the bed, and only half of the gaps must be whole.
    for (earlier, started) in (0..).zip(&starts) {
        let due = delay * earlier;
        if *started < due {
            let (started, due) = (started.as_millis(), due.as_millis());
            why.push(format!("request {} came after {started} ms, before {due} ms", earlier + 1));
        }
    }
    let mut gaps: Vec<Duration> = starts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    gaps.sort_unstable();
    if let Some(median) = gaps.get(gaps.len() / 2).filter(|gap| **gap < delay.mul_f64(PUNCTUAL)) {
        why.push(format!("{} ms between two requests, not {} ms", median.as_millis(), delay.as_millis()));
    }
    if evidence.record.peak(host) > 1 {
        why.push(format!("{} requests at once with a Crawl-delay", evidence.record.peak(host)));
    }
}
