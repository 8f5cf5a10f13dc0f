//! Header blocks that are too large or malformed, and the limits on the size of heads.

use super::behaviour::{Behaviour, Exchange, Family};
use super::wire::{block_of, endless, page_with};
use crate::answer::Answer;

const OK: &str = "HTTP/1.1 200 OK\r\n";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Headers, name, about, answer)
    };
    vec![
        of("many_lines", "header lines without an end", |_| endless(OK, block_of("X-Item: filler\r\n"))).head_only(),
        of("one_long_line", "a header value without an end", |_| {
            endless("HTTP/1.1 200 OK\r\nX-Long: ", block_of("filler "))
        })
            .head_only(),
        of("one_long_name", "a header name without an end", |_| endless("HTTP/1.1 200 OK\r\nX-", block_of("filler-")))
            .head_only(),
        of("long_status_line", "a reason phrase without an end", |_| endless("HTTP/1.1 200 ", block_of("fine and ")))
            .head_only(),
        of("interim_flood", "interim answers without an end", |_| {
            endless("", block_of("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"))
        })
        .head_only(),
        of("continue_flood", "100 Continue without an end", |_| endless("", block_of("HTTP/1.1 100 Continue\r\n\r\n")))
            .head_only(),
        of("a_few_interims", "three interim answers before a good page", |exchange| {
            let page = exchange.kept();
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n".repeat(3);
            Answer::raw(format!(
                "{interim}{OK}Content-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            ))
        })
        .kept(),
        of("many_honest_lines", "900 header lines before a good page", |exchange| {
            (0..900).fold(Answer::html(exchange.kept()), |page, number| page.header(&format!("X-Part-{number}"), "fine"))
        })
        .kept(),
        of("nul_in_value", "a NUL in a header value", |exchange| with_line(exchange, "X-Odd: a\0b")).poison(),
        of("nul_in_name", "a NUL in a header name", |exchange| with_line(exchange, "X-O\0dd: ab")).poison(),
        of("bare_cr_in_value", "a CR without LF in a header value", |exchange| {
            with_line(exchange, "X-Odd: a\rX-Injected: b")
        })
        .poison(),
        of("eight_bit_value", "bytes above 127 in a header value", |exchange| {
            Answer::html(exchange.kept()).header("X-City", b"K\xf6ln \xe6\x9d\xb1")
        })
        .kept(),
        of("folded_value", "a header value on two lines", |exchange| {
            Answer::html(exchange.page(&[])).header("X-Folded", "one\r\n two")
        }),
        of("space_before_colon", "a blank between header name and colon", |exchange| with_line(exchange, "X-Space : 1")),
        of("nameless_line", "a header line without a name", |exchange| with_line(exchange, ": nothing")),
        of("line_without_colon", "a header line without a colon", |exchange| with_line(exchange, "what is this")),
        of("long_content_type", "a content type of 100 kB", |exchange| {
            let content_type = "text/html;x=".to_owned() + &"y".repeat(100_000);
            Answer::status(200).header("Content-Type", content_type).body(exchange.page(&[]))
        }),
        of("no_content_type", "a good page without a type", |exchange| {
            Answer::status(200).body(exchange.page(&[]))
        }),
    ]
}

fn with_line(exchange: &Exchange<'_>, line: &str) -> Answer {
    let page = exchange.poison();
    page_with(&[line, &format!("Content-Length: {}", page.len()), "Connection: close"], page)
}
