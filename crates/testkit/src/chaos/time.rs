//! Silence and slowness: for every deadline of a request there is a behaviour that only this deadline ends.

use std::time::Duration;

use super::behaviour::{Behaviour, Exchange, Family};
use super::bombs::chunk;
use super::wire::head;
use crate::answer::{Answer, Part};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of =
        |name, about, answer: fn(&Exchange<'_>) -> Answer| Behaviour::new(Family::Time, name, about, answer);
    vec![
        of("silent", "never answers", |_| Answer::parts([Part::Stall])).head_only(),
        of("silent_after_head", "never sends the body", |_| stalling(head(&["Content-Length: 3000"]))),
        of("silent_in_head", "never ends the head", |_| stalling(b"HTTP/1.1 200 OK\r\nContent-Ty".to_vec())),
        of("silent_in_body", "never sends the second half of the body", |exchange| {
            let page = exchange.poison();
            let length = format!("Content-Length: {}", page.len() + 3_000);
            stalling([head(&[&length]), page.into_bytes()].concat())
        })
        .poison(),
        of("silent_between_chunks", "never sends the last chunk", |exchange| {
            stalling(
                [head(&["Transfer-Encoding: chunked"]), chunk(exchange.poison().as_bytes()).to_vec()]
                    .concat(),
            )
        })
        .poison(),
        of("silent_without_length", "sends all of a body without a length, and never closes", |exchange| {
            stalling([head(&["Connection: close"]), exchange.poison().into_bytes()].concat())
        })
        .poison(),
        of("dripping_body", "sends a body byte by byte, slower than any page", |exchange| {
            dripping(exchange, head(&["Content-Length: 4000"]), b".")
        }),
        of("dripping_head", "sends a header byte by byte", |exchange| {
            dripping(exchange, b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec(), b"s")
        }),
        of("dripping_chunks", "sends chunks of one byte, slower than any page", |exchange| {
            dripping(exchange, head(&["Transfer-Encoding: chunked"]), b"1\r\n.\r\n")
        }),
        of("dripping_line_ends", "sends empty lines instead of an answer", |exchange| {
            dripping(exchange, Vec::new(), b"\r\n")
        }),
        of("dripping_interims", "sends interim answers now and then", |exchange| {
            dripping(exchange, Vec::new(), b"HTTP/1.1 102 Processing\r\n\r\n")
        }),
        of("late_but_fine", "answers after a while", |exchange| {
            Answer::html(exchange.kept()).delay(exchange.endpoints.hold / 40)
        })
        .kept(),
        of("slow_but_fine", "sends a good page in twenty steps", |exchange| {
            let page = exchange.kept();
            let size = page.len().div_ceil(20);
            Answer::html(page).slow(size, exchange.endpoints.hold / 100)
        })
        .kept(),
    ]
}

fn stalling(start: Vec<u8>) -> Answer {
    Answer::parts([Part::Bytes(start.into()), Part::Stall])
}

/// Sends `drop` 25 times within the time limit of the server, so that no limit on silence ends the response.
fn dripping(exchange: &Exchange<'_>, start: Vec<u8>, drop: &'static [u8]) -> Answer {
    const DROPS: u32 = 25;
    let pause: Duration = exchange.endpoints.hold / DROPS;
    let drops = (0..DROPS + 5).flat_map(|_| [Part::Wait(pause), Part::Bytes(drop.into())]);
    Answer::parts([Part::Bytes(start.into())].into_iter().chain(drops))
}
