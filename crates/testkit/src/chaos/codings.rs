//! Content codings: bombs, false declarations and stacked codings. The client must limit the size while it decodes,
//! in every layer.

use bytes::Bytes;

use super::behaviour::{Behaviour, Exchange, Family};
use super::bombs::{self, Bomb, GZIP_HEAD, chunk, gzipped};
use super::wire::{block_of, endless, head};
use crate::answer::{Answer, Part};

/// Decompressed size of a bomb in MiB: 64 times the usual limit.
const BOMB_MIB: u64 = 1_024;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Codings, name, about, answer)
    };
    let bomb = |name, about, answer: fn(&Exchange<'_>) -> Answer| of(name, about, answer).poison().once();
    vec![
        bomb("gzip_bomb", "1 GiB of blanks as gzip", |exchange| {
            explode("gzip", &bombs::gzip(exchange.poison().as_bytes(), BOMB_MIB))
        }),
        bomb("zlib_bomb", "1 GiB of blanks as deflate", |exchange| {
            explode("deflate", &bombs::zlib(exchange.poison().as_bytes(), BOMB_MIB))
        }),
        bomb("raw_deflate_bomb", "1 GiB of blanks as deflate without its frame", |exchange| {
            explode("deflate", &bombs::raw_deflate(exchange.poison().as_bytes(), BOMB_MIB))
        }),
        bomb("zstd_bomb", "1 GiB of blanks as zstd", |exchange| {
            explode("zstd", &bombs::zstd(exchange.poison().as_bytes(), BOMB_MIB))
        }),
        bomb("brotli_bomb", "1 GiB of blanks as brotli", |exchange| {
            packed("br", bombs::brotli(exchange.poison().as_bytes(), BOMB_MIB))
        }),
        bomb("gzip_in_gzip_bomb", "1 GiB of blanks packed twice", |exchange| {
            packed("gzip, gzip", gzipped(&bombs::gzip(exchange.poison().as_bytes(), BOMB_MIB).bytes()))
        }),
        bomb("zstd_in_gzip_bomb", "1 GiB of blanks as zstd within gzip", |exchange| {
            packed("zstd, gzip", gzipped(&bombs::zstd(exchange.poison().as_bytes(), BOMB_MIB).bytes()))
        }),
        of("zstd_huge_window", "a zstd frame that wants a window of 2 TiB", |exchange| {
            explode("zstd", &bombs::zstd_huge_window(exchange.poison().as_bytes()))
        })
        .poison(),
        bomb("endless_gzip", "a gzip stream without an end", |exchange| {
            let bomb = bombs::gzip(exchange.poison().as_bytes(), 1);
            Answer::parts([
                Part::Bytes(head(&["Content-Encoding: gzip", "Transfer-Encoding: chunked"]).into()),
                Part::Bytes(chunk(&bomb.head)),
                Part::Repeat(chunk(&bomb.block), Part::FOREVER),
            ])
        }),
        of("gzip_of_nothing", "a gzip stream of empty blocks without an end", |exchange| {
            // An empty stored block: three header bits in a byte, length 0 and its complement.
            let empty = b"\x00\x00\x00\xff\xff".repeat(8_000);
            Answer::parts([
                Part::Bytes(head(&["Content-Encoding: gzip", "Transfer-Encoding: chunked"]).into()),
                Part::Bytes(chunk(&bombs::gzip(exchange.poison().as_bytes(), 0).head)),
                Part::Repeat(chunk(&empty), Part::FOREVER),
            ])
        })
        .poison(),
        of("gzip_endless_name", "a gzip header whose file name never ends", |_| {
            let start = [
                head(&["Content-Encoding: gzip", "Connection: close"]),
                b"\x1f\x8b\x08\x08\0\0\0\0\0\xff".to_vec(),
            ];
            endless(start.concat(), block_of("name"))
        }),
        of("endless_gzip_members", "gzip members without an end", |exchange| {
            let start = [
                head(&["Content-Encoding: gzip", "Connection: close"]),
                gzipped(exchange.poison().as_bytes()).to_vec(),
            ];
            endless(start.concat(), gzipped(b"<p>more</p>").repeat(400))
        })
        .poison(),
        of("says_gzip_is_plain", "plain text that is declared as gzip", |exchange| {
            packed("gzip", Bytes::from(exchange.poison()))
        })
        .poison(),
        of("says_brotli_is_gzip", "gzip that is declared as brotli", |exchange| {
            packed("br", gzipped(exchange.poison().as_bytes()))
        })
        .poison(),
        of("says_plain_is_gzip", "gzip that is not declared", |exchange| {
            Answer::html(gzipped(exchange.poison().as_bytes()))
        }),
        of("four_codings", "four codings, correctly packed", |exchange| {
            let body = (0..4).fold(Bytes::from(exchange.poison()), |body, _| gzipped(&body));
            packed("gzip, gzip, gzip, gzip", body)
        })
        .poison(),
        of("many_codings", "a thousand codings in many lines", |exchange| {
            let page = Answer::html(exchange.poison());
            (0..100).fold(page, |page, _| {
                page.header("Content-Encoding", "gzip, br, deflate, gzip, zstd, br, gzip, br, br, gzip")
            })
        })
        .poison(),
        of("two_codings", "two codings, correctly packed", |exchange| {
            packed("gzip, gzip", gzipped(&gzipped(exchange.kept().as_bytes())))
        })
        .kept(),
        of("old_gzip_name", "gzip under the name x-gzip", |exchange| {
            packed("x-gzip", gzipped(exchange.kept().as_bytes()))
        })
        .kept(),
        of("loud_gzip_name", "gzip in capitals, in chunks", |exchange| {
            packed("GZIP", gzipped(exchange.kept().as_bytes())).chunked(7)
        })
        .kept(),
        of("identity_coding", "a coding that is none", |exchange| {
            packed("identity", Bytes::from(exchange.kept()))
        })
        .kept(),
        of("unknown_coding", "a coding that does not exist", |exchange| {
            packed("rot13", Bytes::from(exchange.page(&[])))
        }),
        of("gzip_cut_off", "gzip without its end", |exchange| {
            let whole = gzipped(exchange.poison().as_bytes());
            packed("gzip", whole.slice(..whole.len() - 12))
        })
        .poison(),
        of("gzip_without_checksum", "gzip that ends before its checksum", |exchange| {
            let whole = gzipped(exchange.poison().as_bytes());
            packed("gzip", whole.slice(..whole.len() - 8))
        })
        .poison(),
        of("gzip_and_more", "gzip, and plain bytes behind its end", |exchange| {
            packed("gzip", [&gzipped(exchange.kept().as_bytes())[..], b"<!-- 3 ms -->"].concat().into())
        })
        .kept(),
        of("gzip_bad_checksum", "gzip with a wrong checksum", |exchange| {
            let mut body = gzipped(exchange.poison().as_bytes()).to_vec();
            let at = body.len() - 8;
            body[at] ^= 0x55;
            packed("gzip", body.into())
        })
        .poison(),
        of("gzip_of_no_bytes", "an empty body that is declared as gzip", |_| packed("gzip", Bytes::new())),
        of("gzip_header_only", "a gzip header and nothing else", |_| packed("gzip", GZIP_HEAD.into())),
    ]
}

fn explode(coding: &str, bomb: &Bomb) -> Answer {
    let head =
        head(&[&format!("Content-Encoding: {coding}"), "Transfer-Encoding: chunked", "Connection: close"]);
    Answer::parts([vec![Part::Bytes(head.into())], bomb.chunks()].concat())
}

fn packed(coding: &str, body: Bytes) -> Answer {
    Answer::html(body).header("Content-Encoding", coding)
}
