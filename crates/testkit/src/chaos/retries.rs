//! Responses that ask the client to retry, and some that only seem to.

use std::time::{Duration, SystemTime};

use super::behaviour::{Behaviour, Exchange, Family};
use super::judge::Evidence;
use super::wire::page_with;
use crate::answer::{After, Answer};

/// A host of its own, because a pause of a day parks the whole host.
const PARKED: &str = "127.0.0.71";
/// Share of a pause that must be observed: the rest allows for clocks and transmission times.
const PUNCTUAL: f64 = 0.98;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Retries, name, about, answer)
    };
    vec![
        of("busy_once", "503, then fine", |exchange| at_first(exchange, Answer::status(503))).kept(),
        of("internal_error_once", "500, then fine", |exchange| at_first(exchange, Answer::status(500)))
            .kept(),
        of("gateway_timeout_once", "504, then fine", |exchange| at_first(exchange, Answer::status(504)))
            .kept(),
        of("request_timeout_once", "408 with a closed connection, then fine", |exchange| {
            at_first(exchange, Answer::status(408).after(After::Close))
        })
        .kept(),
        of("too_many_once", "429 with Retry-After: 1, then fine", |exchange| {
            at_first(exchange, Answer::status(429).header("Retry-After", "1"))
        })
        .kept()
        .judge(|evidence, why| waited(evidence, Duration::from_secs(1), why)),
        of("busy_until_date", "503 with a date 3 s ahead as Retry-After, then fine", |exchange| {
            let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3));
            at_first(exchange, Answer::status(503).header("Retry-After", date))
        })
        .kept()
        // HTTP dates have whole seconds, so the pause may be up to one second shorter.
        .judge(|evidence, why| waited(evidence, Duration::from_secs(2), why)),
        of("retry_after_negative", "503 with a negative Retry-After, then fine", |exchange| {
            retry_after(exchange, "-120")
        })
        .kept(),
        of("retry_after_overflow", "503 with a Retry-After of 30 digits, then fine", |exchange| {
            retry_after(exchange, "999999999999999999999999999999")
        })
        .kept(),
        of("retry_after_words", "503 with words as Retry-After, then fine", |exchange| {
            retry_after(exchange, "after lunch")
        })
        .kept(),
        of("retry_after_old_date", "503 with a date of 1994 as Retry-After, then fine", |exchange| {
            retry_after(exchange, "Sun, 06 Nov 1994 08:49:37 GMT")
        })
        .kept(),
        of("too_many_always", "429 with Retry-After: 1, for ever", |_| {
            Answer::status(429).header("Retry-After", "1")
        })
        .judge(|evidence, why| waited(evidence, Duration::from_secs(1), why)),
        of("error_always", "500 with links, for ever", |exchange| {
            Answer::status(500).header("Content-Type", "text/html").body(exchange.poison())
        })
        .poison(),
        of("bad_gateway_always", "502, for ever", |_| Answer::status(502)),
        of("reset_once", "a reset instead of an answer, then fine", |exchange| {
            at_first(exchange, Answer::raw("").after(After::Reset))
        })
        .kept(),
        of("short_once", "a short body, then fine", |exchange| {
            at_first(exchange, page_with(&["Content-Length: 9999"], "<p>the beginning"))
        })
        .kept(),
        of("not_found", "404", |_| Answer::status(404)).once(),
        of("gone", "410", |_| Answer::status(410)).once(),
        of("forbidden", "403", |_| Answer::status(403)).once(),
        of("come_back_tomorrow", "429 with a Retry-After of a day", |exchange| match exchange.rest {
            "robots.txt" => Answer::status(404),
            _ => Answer::status(429).header("Retry-After", "86400"),
        })
        .at_host(PARKED)
        // On this host, robots.txt counts as a request as well.
        .requests(2),
    ]
}

/// Sends `first` for the first request, and a good page from then on.
fn at_first(exchange: &Exchange<'_>, first: Answer) -> Answer {
    if exchange.request.nth == 0 { first } else { Answer::html(exchange.kept()) }
}

fn retry_after(exchange: &Exchange<'_>, value: &str) -> Answer {
    at_first(exchange, Answer::status(503).header("Retry-After", value))
}

/// Complains if a retry began less than `pause` after the previous attempt. The start of that attempt is recorded before it is
/// answered, so a busy machine cannot make the measured pause too short; the record of its end may be late.
fn waited(evidence: &Evidence<'_>, pause: Duration, why: &mut Vec<String>) {
    for pair in evidence.own.windows(2) {
        let gap = pair[1].started.saturating_sub(pair[0].started);
        if gap < pause.mul_f64(PUNCTUAL) {
            why.push(format!("came back after {} ms, was told {} ms", gap.as_millis(), pause.as_millis()));
        }
    }
}
