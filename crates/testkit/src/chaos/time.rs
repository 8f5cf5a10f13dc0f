//! Silence and slowness: for every deadline of a request there is a behaviour that only this deadline ends.

use std::time::Duration;

use super::behaviour::{Ask, Behaviour, Family};
use super::bombs::chunk;
use super::wire::head;
use crate::answer::{Answer, Part};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Ask<'_>) -> Answer| Behaviour::new(Family::Time, name, about, answer);
    vec![
        of("silent", "never answers", |_| Answer::parts([Part::Stall])).head_only(),
        of("silent_after_head", "never sends the body", |_| stalling(head(&["Content-Length: 3000"]))),
        of("silent_in_head", "never ends the head", |_| stalling(b"HTTP/1.1 200 OK\r\nContent-Ty".to_vec())),
        of("silent_in_body", "never sends the second half of the body", |ask| {
            let page = ask.poison();
            let length = format!("Content-Length: {}", page.len() + 3_000);
            stalling([head(&[&length]), page.into_bytes()].concat())
        })
        .poison(),
        of("silent_between_chunks", "never sends the last chunk", |ask| {
            stalling(
                [head(&["Transfer-Encoding: chunked"]), chunk(ask.poison().as_bytes()).to_vec()].concat(),
            )
        })
        .poison(),
        of("silent_without_length", "sends all of a body without a length, and never closes", |ask| {
            stalling([head(&["Connection: close"]), ask.poison().into_bytes()].concat())
        })
        .poison(),
        of("dripping_body", "sends a body byte by byte, slower than any page", |ask| {
            dripping(ask, head(&["Content-Length: 4000"]), b".")
        }),
        of("dripping_head", "sends a header byte by byte", |ask| {
            dripping(ask, b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec(), b"s")
        }),
        of("dripping_chunks", "sends chunks of one byte, slower than any page", |ask| {
            dripping(ask, head(&["Transfer-Encoding: chunked"]), b"1\r\n.\r\n")
        }),
        of("dripping_line_ends", "sends empty lines instead of an answer", |ask| {
            dripping(ask, Vec::new(), b"\r\n")
        }),
        of("dripping_interims", "sends interim answers now and then", |ask| {
            dripping(ask, Vec::new(), b"HTTP/1.1 102 Processing\r\n\r\n")
        }),
        of("late_but_fine", "answers after a while", |ask| {
            Answer::html(ask.kept()).delay(ask.world.hold / 40)
        })
        .kept(),
        of("slow_but_fine", "sends a good page in twenty steps", |ask| {
            let page = ask.kept();
            let size = page.len().div_ceil(20);
            Answer::html(page).slow(size, ask.world.hold / 100)
        })
        .kept(),
    ]
}

fn stalling(start: Vec<u8>) -> Answer {
    Answer::parts([Part::Bytes(start.into()), Part::Stall])
}

/// Sends `drop` 25 times within the time limit of the server, so that no limit on silence ends the response.
fn dripping(ask: &Ask<'_>, start: Vec<u8>, drop: &'static [u8]) -> Answer {
    const DROPS: u32 = 25;
    let pause: Duration = ask.world.hold / DROPS;
    let drops = (0..DROPS + 5).flat_map(|_| [Part::Wait(pause), Part::Bytes(drop.into())]);
    Answer::parts([Part::Bytes(start.into())].into_iter().chain(drops))
}
