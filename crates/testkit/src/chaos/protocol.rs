//! Responses that violate HTTP: no status line, contradicting lengths, bytes after the end.

use std::time::Duration;

use super::behaviour::{Behaviour, Exchange, Family};
use super::bombs::chunk;
use super::wire::{head, page_with};
use crate::answer::{After, Answer, Part};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Protocol, name, about, answer)
    };
    // These responses are entirely wrong: a request for the link in them shows that the client took them for a page.
    let bad = |name, about, answer: fn(&Exchange<'_>) -> Answer| of(name, about, answer).poison();
    vec![
        of("reset_before_head", "a reset instead of an answer", |_| Answer::raw("").after(After::Reset))
            // A client may take it for an idle connection that was closed, and repeat the request on a new one.
            .requests(6),
        of("close_before_head", "an end instead of an answer", |_| Answer::raw("")).requests(6),
        of("close_in_head", "an end within the headers", |_| {
            Answer::raw("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
        }),
        bad("no_status_line", "a page without a head", |exchange| Answer::raw(exchange.poison())),
        bad("other_protocol", "a page under the status line of another protocol", |exchange| with_status(exchange, "ICY 200 OK")),
        bad("misspelt_protocol", "a misspelt status line", |exchange| with_status(exchange, "HTP/1.1 200 OK")),
        bad("future_version", "a version that does not exist", |exchange| with_status(exchange, "HTTP/3.7 200 OK")),
        bad("status_000", "status 000", |exchange| with_status(exchange, "HTTP/1.1 000 Nothing")),
        bad("status_999", "status 999", |exchange| with_status(exchange, "HTTP/1.1 999 Denied")),
        bad("status_600", "status 600", |exchange| with_status(exchange, "HTTP/1.1 600 Beyond")),
        bad("status_two_digits", "a status of two digits", |exchange| with_status(exchange, "HTTP/1.1 20 OK")),
        bad("status_four_digits", "a status of four digits", |exchange| with_status(exchange, "HTTP/1.1 2000 OK")),
        bad("status_words", "a status of letters", |exchange| with_status(exchange, "HTTP/1.1 OK 200")),
        of("status_without_reason", "a good page whose status line ends after the status", |exchange| {
            let page = exchange.kept();
            Answer::raw(format!(
                "HTTP/1.1 200\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            ))
        })
        .kept(),
        of("old_version", "a good page of HTTP/1.0 that ends with the connection", |exchange| {
            Answer::raw(format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{}", exchange.kept()))
        })
        .kept(),
        bad("two_lengths", "two lengths that differ", |exchange| {
            let page = exchange.poison();
            page_with(&[&format!("Content-Length: {}", page.len()), "Content-Length: 40"], page)
        }),
        bad("list_of_lengths", "two lengths that differ in one line", |exchange| {
            let page = exchange.poison();
            page_with(&[&format!("Content-Length: {}, 40", page.len())], page)
        }),
        bad("length_and_chunks", "a length and chunks at once", |exchange| {
            let page = exchange.poison();
            let body = [&chunk(page.as_bytes())[..], b"0\r\n\r\n"].concat();
            page_with(&[&format!("Content-Length: {}", page.len()), "Transfer-Encoding: chunked"], body)
        }),
        bad("length_negative", "a length below zero", |exchange| page_with(&["Content-Length: -1"], exchange.poison())),
        bad("length_of_words", "a length of letters", |exchange| page_with(&["Content-Length: plenty"], exchange.poison())),
        bad("length_overflow", "a length of 2^64 and a bit", |exchange| {
            let page = exchange.poison();
            // A length that overflows 64 bits to the true length.
            let length = (1u128 << 64) + page.len() as u128;
            page_with(&[&format!("Content-Length: {length}")], page)
        }),
        bad("length_signed", "a length with a plus sign", |exchange| {
            let page = exchange.poison();
            page_with(&[&format!("Content-Length: +{}", page.len())], page)
        }),
        bad("unknown_transfer", "a transfer coding that does not exist", |exchange| {
            page_with(&["Transfer-Encoding: shuffled", "Connection: close"], exchange.poison())
        }),
        bad("chunked_twice", "chunks declared twice", |exchange| {
            let body = [&chunk(exchange.poison().as_bytes())[..], b"0\r\n\r\n"].concat();
            page_with(&["Transfer-Encoding: chunked, chunked", "Connection: close"], body)
        }),
        bad("gzip_in_transfer", "a transfer coding that was not offered, left out", |exchange| {
            let body = [&chunk(exchange.poison().as_bytes())[..], b"0\r\n\r\n"].concat();
            page_with(&["Transfer-Encoding: gzip, chunked", "Connection: close"], body)
        }),
        of("second_answer_behind", "a page, and another answer behind its end", |exchange| {
            let (page, fake) = (exchange.kept(), exchange.poison());
            let first = [head(&[&format!("Content-Length: {}", page.len())]), page.into_bytes()].concat();
            let second = [head(&[&format!("Content-Length: {}", fake.len())]), fake.into_bytes()].concat();
            Answer::raw([first, second].concat()).after(After::KeepAlive)
        })
        .kept()
        .poison()
        .judge(reused),
        of("bytes_behind", "a page, and a few bytes behind its end", |exchange| {
            let page = exchange.kept();
            let first = [head(&[&format!("Content-Length: {}", page.len())]), page.into_bytes()].concat();
            Answer::raw([first, b"\r\n\r\nHTTP".to_vec()].concat()).after(After::KeepAlive)
        })
        .kept()
        .judge(reused),
        of("answer_behind_chunks", "a page in chunks, and another answer behind its end", |exchange| {
            let fake = exchange.poison();
            let first = [head(&["Transfer-Encoding: chunked"]), chunk(exchange.kept().as_bytes()).to_vec()].concat();
            let second = [head(&[&format!("Content-Length: {}", fake.len())]), fake.into_bytes()].concat();
            Answer::raw([first, b"0\r\n\r\n".to_vec(), second].concat()).after(After::KeepAlive)
        })
        .kept()
        .poison()
        .judge(reused),
        of("body_of_204", "no content, and an answer as its body", |exchange| {
            let fake = exchange.poison();
            let second = [head(&[&format!("Content-Length: {}", fake.len())]), fake.into_bytes()].concat();
            Answer::raw([b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), second].concat()).after(After::KeepAlive)
        })
        .poison()
        .judge(reused),
        of("not_modified_unasked", "304 without a condition, and an answer as its body", |exchange| {
            let fake = exchange.poison();
            let second = [head(&[&format!("Content-Length: {}", fake.len())]), fake.into_bytes()].concat();
            Answer::raw([b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec(), second].concat()).after(After::KeepAlive)
        })
        .poison()
        .judge(reused),
        of("switching_unasked", "101 to a protocol that was not requested", |exchange| {
            let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: feed\r\nConnection: upgrade\r\n\r\n";
            Answer::raw(head.to_owned() + &exchange.poison())
        })
        .poison(),
        of("partial_unasked", "206 without having been asked for a part", |exchange| {
            Answer::status(206)
                .header("Content-Type", "text/html")
                .header("Content-Range", "bytes 0-99/100000")
                .body(exchange.page(&[]))
        }),
        of("bare_line_feeds", "a good page with LF for CR LF", |exchange| {
            let page = exchange.page(&[]);
            Answer::raw(format!("HTTP/1.1 200 OK\nContent-Type: text/html\nContent-Length: {}\n\n{page}", page.len()))
        }),
        of("closes_when_idle", "a good page, after which a connection to be kept is closed", |exchange| {
            let page = exchange.kept();
            let head = head(&[&format!("Content-Length: {}", page.len()), "Connection: keep-alive"]);
            let whole = [head, page.into_bytes()].concat();
            Answer::parts([Part::Bytes(whole.into()), Part::Wait(Duration::from_millis(30))])
        })
        .kept(),
        of("tls_alert", "the alert of a TLS server", |_| Answer::raw(&b"\x15\x03\x03\x00\x02\x02\x46"[..])),
        of("http2_settings", "the first frame of an HTTP/2 server", |_| {
            Answer::raw(&b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"[..])
        }),
        of("noise", "64 kB of all bytes", |_| Answer::raw((0..=255).cycle().take(65_536).collect::<Vec<u8>>())),
    ]
}

/// A page with a link that must not be followed, sent with this status line.
fn with_status(exchange: &Exchange<'_>, line: &str) -> Answer {
    let page = exchange.poison();
    Answer::raw(format!(
        "{line}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    ))
}

/// Complains if the client reused a connection that had surplus bytes.
fn reused(evidence: &super::judge::Evidence<'_>, why: &mut Vec<String>) {
    for seen in &evidence.own {
        let later = |other: &&crate::record::RecordedRequest| {
            other.request.connection == seen.request.connection && other.started > seen.started
        };
        if let Some(next) = evidence.record.requests.iter().find(later) {
            why.push(format!("a connection with leftovers was used again, for {}", next.request.target));
        }
    }
}
