//! Bodies that are too short, too long, endless or of the wrong type, and the limit on the size of bodies.

use bytes::Bytes;

use super::behaviour::{Behaviour, Family};
use super::bombs::chunk;
use super::wire::{block_of, endless, head, page_with};
use crate::answer::{After, Answer, Part};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&super::Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Bodies, name, about, answer)
    };
    vec![
        of("short_body", "closes before the declared length", |exchange| {
            let page = exchange.poison();
            let length = format!("Content-Length: {}", page.len() + 2_048);
            page_with(&[&length], page)
        })
        .poison(),
        of("endless_chunks", "chunks without an end", |exchange| {
            let start = [head(&["Transfer-Encoding: chunked"]), chunk(exchange.poison().as_bytes()).to_vec()]
                .concat();
            endless(start, chunk(&block_of("<p>and so on</p>\n")))
        })
        .poison()
        .once(),
        of("endless_until_close", "a body without a length and without an end", |exchange| {
            endless(
                [head(&["Connection: close"]), exchange.poison().into_bytes()].concat(),
                block_of("<p>so on</p>\n"),
            )
        })
        .poison()
        .once(),
        of("declares_10_gib", "declares 10 GiB and begins to send them", |exchange| {
            let start = [head(&["Content-Length: 10737418240"]), exchange.poison().into_bytes()].concat();
            endless(start, block_of("<p>large</p>\n"))
        })
        .poison()
        .once()
        .head_only(),
        of("over_the_limit", "an honest page that is a quarter over the limit", |exchange| {
            let filler = block_of("<p>long</p>\n");
            let times = (exchange.endpoints.max_body + exchange.endpoints.max_body / 4) / filler.len() as u64;
            let page = exchange.poison();
            let length = format!("Content-Length: {}", page.len() as u64 + times * filler.len() as u64);
            let start = [head(&[&length]), page.into_bytes()].concat();
            Answer::parts([Part::Bytes(start.into()), Part::Repeat(filler, times)])
        })
        .poison()
        .once(),
        of("chunk_size_of_letters", "a chunk size that is no number", |exchange| {
            page_with(&["Transfer-Encoding: chunked"], format!("qx\r\n{}\r\n0\r\n\r\n", exchange.poison()))
        })
        .poison(),
        of("chunk_size_negative", "a chunk size below zero", |exchange| {
            page_with(&["Transfer-Encoding: chunked"], format!("-40\r\n{}\r\n0\r\n\r\n", exchange.poison()))
        })
        .poison(),
        of("chunk_size_overflow", "a chunk size of 2^68, which wraps around to a small one", |exchange| {
            let page = exchange.poison();
            page_with(
                &["Transfer-Encoding: chunked"],
                format!("10000000000000{:03x}\r\n{page}\r\n0\r\n\r\n", page.len()),
            )
        })
        .poison(),
        of("chunk_too_long", "a chunk with more bytes than its size", |exchange| {
            let page = exchange.poison();
            page_with(&["Transfer-Encoding: chunked"], format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len() - 9))
        })
        .poison(),
        of("chunks_without_end", "closes without the last chunk", |exchange| {
            page_with(&["Transfer-Encoding: chunked"], chunk(exchange.poison().as_bytes()))
        })
        .poison(),
        of("chunk_extension_flood", "a chunk size line that never ends", |exchange| {
            let start = [head(&["Transfer-Encoding: chunked"]), chunk(exchange.poison().as_bytes()).to_vec()]
                .concat();
            endless([start, b"4".to_vec()].concat(), block_of(";note=filler"))
        })
        .poison()
        .head_only(),
        of("trailer_flood", "trailers without an end after the last chunk", |exchange| {
            let start = [head(&["Transfer-Encoding: chunked"]), chunk(exchange.poison().as_bytes()).to_vec()]
                .concat();
            endless([start, b"0\r\n".to_vec()].concat(), block_of("X-Late: filler filler\r\n"))
        })
        .poison()
        .head_only(),
        of("one_byte_chunks", "a good page in chunks of one byte", |exchange| {
            Answer::html(exchange.kept()).chunked(1)
        })
        .kept(),
        of("reset_in_body", "resets the connection within the body", |exchange| {
            let page = exchange.poison();
            let length = format!("Content-Length: {}", page.len() + 4_000);
            page_with(&[&length], page).after(After::Reset)
        })
        .poison(),
        of("picture_with_links", "markup under the type of a picture", |exchange| {
            let body = [b"\x89PNG\r\n\x1a\n", exchange.poison().as_bytes()].concat();
            Answer::status(200).header("Content-Type", "image/png").body(body)
        })
        .poison()
        .once(),
        of("endless_film", "a film without an end", |_| {
            let start = Bytes::from_static(
                b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nConnection: close\r\n\r\n",
            );
            endless(start, block_of("\u{0}ftypisom"))
        })
        .once()
        .head_only(),
        of("archive_with_links", "a declared archive of 100 MiB", |exchange| {
            let start =
                "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: 104857600\r\n\r\n";
            endless([start.as_bytes(), exchange.poison().as_bytes()].concat(), block_of("PK filler"))
        })
        .poison()
        .once()
        .head_only(),
        of("empty_body", "a page of no bytes", |_| Answer::html("")).once(),
    ]
}
