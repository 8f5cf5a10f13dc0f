//! Bodies that are too short, too long, endless or of the wrong type, and the limit on the size of bodies.

use bytes::Bytes;

use super::behaviour::{Behaviour, Family};
use super::bombs::chunk;
use super::wire::{block_of, endless, head, page_with};
use crate::answer::{After, Answer, Part};

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&super::Ask<'_>) -> Answer| {
        Behaviour::new(Family::Bodies, name, about, answer)
    };
    vec![
        of("short_body", "closes before the declared length", |ask| {
            let page = ask.poison();
            let length = format!("Content-Length: {}", page.len() + 2_048);
            page_with(&[&length], page)
        })
        .poison(),
        of("endless_chunks", "chunks without an end", |ask| {
            let start =
                [head(&["Transfer-Encoding: chunked"]), chunk(ask.poison().as_bytes()).to_vec()].concat();
            endless(start, chunk(&block_of("<p>and so on</p>\n")))
        })
        .poison()
        .once(),
        of("endless_until_close", "a body without a length and without an end", |ask| {
            endless(
                [head(&["Connection: close"]), ask.poison().into_bytes()].concat(),
                block_of("<p>so on</p>\n"),
            )
        })
        .poison()
        .once(),
        of("declares_10_gib", "declares 10 GiB and begins to send them", |ask| {
            let start = [head(&["Content-Length: 10737418240"]), ask.poison().into_bytes()].concat();
            endless(start, block_of("<p>large</p>\n"))
        })
        .poison()
        .once()
        .head_only(),
        of("over_the_limit", "an honest page that is a quarter over the limit", |ask| {
            let filler = block_of("<p>long</p>\n");
            let times = (ask.world.max_body + ask.world.max_body / 4) / filler.len() as u64;
            let page = ask.poison();
            let length = format!("Content-Length: {}", page.len() as u64 + times * filler.len() as u64);
            let start = [head(&[&length]), page.into_bytes()].concat();
            Answer::parts([Part::Bytes(start.into()), Part::Repeat(filler, times)])
        })
        .poison()
        .once(),
        of("chunk_size_of_letters", "a chunk size that is no number", |ask| {
            page_with(&["Transfer-Encoding: chunked"], format!("qx\r\n{}\r\n0\r\n\r\n", ask.poison()))
        })
        .poison(),
        of("chunk_size_negative", "a chunk size below zero", |ask| {
            page_with(&["Transfer-Encoding: chunked"], format!("-40\r\n{}\r\n0\r\n\r\n", ask.poison()))
        })
        .poison(),
        of("chunk_size_overflow", "a chunk size of 2^68, which wraps around to a small one", |ask| {
            let page = ask.poison();
            page_with(
                &["Transfer-Encoding: chunked"],
                format!("10000000000000{:03x}\r\n{page}\r\n0\r\n\r\n", page.len()),
            )
        })
        .poison(),
        of("chunk_too_long", "a chunk with more bytes than its size", |ask| {
            let page = ask.poison();
            page_with(&["Transfer-Encoding: chunked"], format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len() - 9))
        })
        .poison(),
        of("chunks_without_end", "closes without the last chunk", |ask| {
            page_with(&["Transfer-Encoding: chunked"], chunk(ask.poison().as_bytes()))
        })
        .poison(),
        of("chunk_extension_flood", "a chunk size line that never ends", |ask| {
            let start =
                [head(&["Transfer-Encoding: chunked"]), chunk(ask.poison().as_bytes()).to_vec()].concat();
            endless([start, b"4".to_vec()].concat(), block_of(";note=filler"))
        })
        .poison()
        .head_only(),
        of("trailer_flood", "trailers without an end after the last chunk", |ask| {
            let start =
                [head(&["Transfer-Encoding: chunked"]), chunk(ask.poison().as_bytes()).to_vec()].concat();
            endless([start, b"0\r\n".to_vec()].concat(), block_of("X-Late: filler filler\r\n"))
        })
        .poison()
        .head_only(),
        of("one_byte_chunks", "a good page in chunks of one byte", |ask| Answer::html(ask.kept()).chunked(1))
            .kept(),
        of("reset_in_body", "resets the connection within the body", |ask| {
            let page = ask.poison();
            let length = format!("Content-Length: {}", page.len() + 4_000);
            page_with(&[&length], page).after(After::Reset)
        })
        .poison(),
        of("picture_with_links", "markup under the type of a picture", |ask| {
            let body = [b"\x89PNG\r\n\x1a\n", ask.poison().as_bytes()].concat();
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
        of("archive_with_links", "a declared archive of 100 MiB", |ask| {
            let start =
                "HTTP/1.1 200 OK\r\nContent-Type: application/zip\r\nContent-Length: 104857600\r\n\r\n";
            endless([start.as_bytes(), ask.poison().as_bytes()].concat(), block_of("PK filler"))
        })
        .poison()
        .once()
        .head_only(),
        of("empty_body", "a page of no bytes", |_| Answer::html("")).once(),
    ]
}
