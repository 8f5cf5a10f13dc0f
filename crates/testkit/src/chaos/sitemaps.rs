//! Sitemaps that contain false data, loop, are too large or malformed. A client that reads sitemaps finds them in the
//! robots.txt of their family's host.

use bytes::Bytes;

use super::INSIDE;
use super::behaviour::{Behaviour, Exchange, Family, KEPT, POISON};
use super::bombs::{self, chunk};
use super::wire::{block_of, endless};
use crate::answer::{Answer, Part};

/// Maximum number of sitemaps that a client may request from one host.
const FILES: usize = 100;
/// Maximum number of entries that a client may read from one sitemap (sitemaps.org).
const ENTRIES: usize = 50_000;
const NESTED: usize = 100_000;
const XML: &str = "application/xml";

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Sitemaps, name, about, answer).needs_sitemaps().once()
    };
    vec![
        of("sitemap_bomb", "a packed sitemap of 1 GiB in 1 MiB", |exchange| {
            let start = format!("<urlset>{}", url(&exchange.path(KEPT)));
            let bomb = bombs::gzip(start.as_bytes(), 1_024);
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
            let head = std::iter::once(Part::Bytes(Bytes::from_static(head.as_bytes())));
            Answer::parts(head.chain(bomb.chunks()))
        })
        .kept(),
        of("billion_laughs", "entities that double thirty times", |exchange| {
            let laughs: String = (1..30).map(|n| format!("<!ENTITY l{n} \"&l{0};&l{0};\">", n - 1)).collect();
            let entries =
                [url(&format!("{}&l29;", exchange.path(POISON))), url(&exchange.path(KEPT))].concat();
            xml(format!("<!DOCTYPE urlset [<!ENTITY l0 '/ha'>{laughs}]><urlset>{entries}</urlset>"))
        })
        .kept(),
        of(
            "external_entities",
            "entities of a file, of the inside host and of a forbidden page",
            |exchange| {
                let (poison, kept) = (exchange.url(POISON), exchange.path(KEPT));
                let inside = exchange.endpoints.url(INSIDE, "/panel/external_entities");
                xml(format!(
                    "<!DOCTYPE urlset SYSTEM \"{poison}\" [<!ENTITY file SYSTEM \"file:///etc/hostname\">\
                 <!ENTITY in SYSTEM \"{inside}\"><!ENTITY % all SYSTEM \"{poison}\">%all;]>\
                 <urlset>{}{}{}</urlset>",
                    url("&file;"),
                    url("&in;"),
                    url(&kept)
                ))
            },
        )
        .kept()
        .poison(),
        of("names_itself", "an index that names itself, and a good sitemap", |exchange| {
            let good = exchange.path("good");
            if exchange.rest == "good" {
                good_one(exchange)
            } else {
                index(&[&exchange.path(""), &good, &exchange.path("")])
            }
        })
        .requests(2)
        .kept(),
        of("circle", "two indexes that name each other, and a good sitemap", |exchange| {
            match exchange.rest {
                "good" => good_one(exchange),
                "other" => index(&[&exchange.path(""), &exchange.path("good")]),
                _ => index(&[&exchange.path("other")]),
            }
        })
        .requests(3)
        .kept(),
        of("index_chain", "indexes that lead to indexes without an end, and a good sitemap", |exchange| {
            match exchange.rest.parse::<u64>() {
                _ if exchange.rest == "good" => good_one(exchange),
                number => {
                    index(&[&exchange.path(&(number.unwrap_or(0) + 1).to_string()), &exchange.path("good")])
                }
            }
        })
        // The entry, two indexes below it, and the good one.
        .requests(4)
        .kept(),
        of("two_hundred_thousand", "four times as many entries as a sitemap may have", |exchange| {
            // All these addresses are one page; a client need not fetch it this often.
            let entry = |n| url(&format!("{}#{n}", exchange.path(if n < ENTRIES { KEPT } else { POISON })));
            let entries: String = (0..4 * ENTRIES).map(entry).collect();
            xml(format!("<urlset>{entries}</urlset>"))
        })
        .kept()
        .poison(),
        of("nests_deep", "elements that nest 100,000 deep", |exchange| {
            let (kept, poison) = (url(&exchange.path(KEPT)), url(&exchange.path(POISON)));
            xml(format!("<urlset>{kept}{}{poison}{}", "<a>".repeat(NESTED), "</a>".repeat(NESTED)))
        })
        .kept()
        .poison(),
        of("cut_off", "ends within an entry", |exchange| {
            let (kept, poison) = (url(&exchange.path(KEPT)), url(&exchange.path(POISON)));
            xml(format!("<urlset>{kept}{}", poison.strip_suffix("</loc></url>").expect("an entry")))
        })
        .kept()
        .poison(),
        of("torn_in_the_middle", "broken markup with a good entry behind it", |exchange| {
            let kept = url(&exchange.path(KEPT));
            xml(format!("<urlset><url><loc>/x</lo<<!oops> & <url><priority <lastmod>\0</url></urlset>{kept}"))
        })
        .kept(),
        of("bad_addresses", "addresses that are no pages, or inside", |exchange| {
            let inside = exchange.endpoints.url(INSIDE, "/panel/bad_addresses");
            let bad =
                ["file:///etc/hostname", "javascript:alert(1)", "data:text/html,x", "http://[", &inside];
            let entries: String = bad.iter().map(|bad| url(bad)).collect();
            xml(format!("<urlset>{entries}{}</urlset>", url(&exchange.path(KEPT))))
        })
        .kept(),
        of("page_instead", "a page with status 200, and markup like entries in it", |exchange| {
            Answer::html(format!("<!doctype html><html><body>{}</body></html>", url(&exchange.path(POISON))))
        })
        .poison(),
        of("endless_sitemap", "a sitemap without an end", |exchange| {
            let entry = url(&exchange.path(KEPT));
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n";
            let start = chunk(format!("<urlset>{entry}").as_bytes());
            endless([head.as_bytes(), &start].concat(), chunk(&block_of(&entry)))
        })
        .kept(),
        of("sitemap_500", "a sitemap that is always 500", |_| Answer::status(500)).requests(3),
        of("index_flood", "an index of 5,000 sitemaps", |exchange| match exchange.rest {
            "robots.txt" => Answer::text("User-agent: *\nDisallow:\n"),
            "" => {
                let files: Vec<String> = (0..5_000).map(|n| exchange.path(&format!("file/{n}"))).collect();
                index(&super::texts(&files))
            }
            "file/0" => good_one(exchange),
            _ => xml("<urlset></urlset>"),
        })
        .at_host("127.0.0.44")
        // In addition to the limit on files: robots.txt, and the index that another host named.
        .requests(FILES + 2)
        .kept(),
    ]
}

fn xml(body: impl AsRef<str>) -> Answer {
    Answer::status(200).header("Content-Type", XML).body(format!("<?xml version='1.0'?>\n{}", body.as_ref()))
}

fn url(loc: &str) -> String {
    format!("<url><loc>{loc}</loc></url>")
}

fn index(urls: &[&str]) -> Answer {
    let entries: String = urls.iter().map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).collect();
    xml(format!("<sitemapindex>{entries}</sitemapindex>"))
}

fn good_one(exchange: &Exchange<'_>) -> Answer {
    xml(format!("<urlset>{}</urlset>", url(&exchange.path(KEPT))))
}
