//! Markup that breaks parsers: deep nesting, floods of elements, damage. A link before the damage must be found.

use super::behaviour::{Behaviour, Exchange, Family};
use crate::answer::Answer;

const MIB: usize = 1 << 20;

pub(super) fn behaviours() -> Vec<Behaviour> {
    let of = |name, about, damage: fn() -> Vec<u8>| {
        let answer = move |exchange: &Exchange<'_>| Answer::html(damaged(exchange, &damage()));
        Behaviour::new(Family::Markup, name, about, answer).kept()
    };
    let whole = |name, about, answer: fn(&Exchange<'_>) -> Answer| {
        Behaviour::new(Family::Markup, name, about, answer)
    };
    vec![
        of("deep_blocks", "200,000 nested blocks", || b"<div>".repeat(200_000)),
        of("deep_inlines", "150,000 nested formatting elements", || b"<b>".repeat(150_000)),
        of("deep_links", "60,000 links that are never closed", || b"<a name=x><span>".repeat(60_000)),
        of("deep_lists", "80,000 nested lists", || b"<ul><li>".repeat(80_000)),
        of("deep_tables", "30,000 tables in tables", || b"<table><tr><td>".repeat(30_000)),
        of("deep_misplaced", "20,000 tables with text where none may be", || b"<table>x<b>".repeat(20_000)),
        of("deep_foreign", "100,000 nested elements of pictures and formulas", || b"<svg><g><math><mi>".repeat(25_000)),
        of("deep_templates", "50,000 nested templates", || b"<template>".repeat(50_000)),
        of("deep_forms", "selects, buttons and forms without an end", || {
            b"<form><select><option><button>".repeat(30_000)
        }),
        of("formatting_times_paragraphs", "400 open formatting elements, opened again in 4,000 paragraphs", || {
            let open: String = (0..400).map(|number| format!("<font color=c{number}>")).collect();
            [open.into_bytes(), b"<p>x".repeat(4_000)].concat()
        }),
        of("closed_crosswise", "formatting elements that are closed crosswise", || {
            b"<a><b><i><p></a><p></b><p></i>".repeat(8_000)
        }),
        of("attribute_flood", "one tag with 60,000 attributes", || {
            let attributes: String = (0..60_000).map(|number| format!(" a{number}=1")).collect();
            format!("<p{attributes}>text</p>").into_bytes()
        }),
        of("same_attribute_flood", "one tag with one attribute 200,000 times", || {
            [&b"<p"[..], &b" a=1".repeat(200_000), b">text</p>"].concat()
        }),
        of("huge_attribute", "an attribute of 5 MiB", || {
            [b"<p title=\"", &vec![b'y'; 5 * MIB][..], b"\">text</p>"].concat()
        }),
        of("huge_link", "a link of 2 MiB", || [b"<a href=\"/", &vec![b'z'; 2 * MIB][..], b"\">x</a>"].concat()),
        of("data_link", "a data address of 4 MiB", || {
            [b"<a href=\"data:text/html,", &vec![b'A'; 4 * MIB][..], b"\">x</a>"].concat()
        }),
        of("unclosed_attribute", "a quote that is never closed", || {
            [b"<a href=\"/never", &b" more".repeat(200_000)[..]].concat()
        }),
        of("unclosed_tag", "a tag that is never closed", || [b"<div ", &b"x ".repeat(300_000)[..]].concat()),
        of("opening_brackets", "4 MiB of <", || vec![b'<'; 4 * MIB]),
        of("closing_tags", "end tags of what was never opened", || b"</p></br></x></table>".repeat(100_000)),
        of("comment_starts", "400,000 beginnings of comments", || b"<!--".repeat(400_000)),
        of("comment_ends", "comments that nearly end", || b"<!-- --! > -- -".repeat(150_000)),
        of("declarations", "200,000 declarations and instructions", || b"<!x><?y?><![CDATA[".repeat(70_000)),
        of("entity_flood", "a million entities", || b"&amp;&lt;&#x41;&#65;&nbsp;".repeat(200_000)),
        of("bad_entities", "entities out of range and without an end", || {
            b"&#99999999999999999999;&#x110000;&#xD800;&#0;&#-1;&#x;&notanentity&;".repeat(20_000)
        }),
        of("long_entity", "an entity name of 2 MiB", || [b"&", &vec![b'a'; 2 * MIB][..]].concat()),
        of("unclosed_script", "a script that is never closed", || {
            [b"<script>", &b"if (a<b) x();\n".repeat(200_000)[..]].concat()
        }),
        of("script_escapes", "a script that opens scripts and comments", || {
            [b"<script>", &b"<!--<script>-->".repeat(150_000)[..]].concat()
        }),
        of("unclosed_title", "a title of 3 MiB", || [b"<title>", &vec![b't'; 3 * MIB][..]].concat()),
        of("plaintext", "markup after the end of markup", || {
            [b"<plaintext>", &b"<a href=/x>x</a>".repeat(100_000)[..]].concat()
        }),
        of("nul_bytes", "NULs everywhere", || b"<p\0>te\0xt</\0p>\0\0".repeat(50_000)),
        of("invalid_utf8", "bytes that are no UTF-8", || {
            b"\xff\xfe\xc3(\xa0\xa1\xe2\x28\xa1\xf0\x9f\x98 \x80".repeat(50_000)
        }),
        of("odd_characters", "surrogates, noncharacters, marks of direction, 300 accents on a letter", || {
            let accents = "\u{301}".repeat(300);
            format!("\u{feff}\u{202e}\u{fffe}\u{10ffff}\u{200b}a{accents} ").repeat(2_000).into_bytes()
        }),
        of("long_word", "a word of 6 MiB", || vec![b'w'; 6 * MIB]),
        of("many_words", "a million words", || b"many words ".repeat(500_000)),
        of("line_ends", "4 MiB of line ends", || b"\r\n\n\r".repeat(MIB)),
        of("meta_flood", "60,000 meta elements", || b"<meta name=robots content=''><base href='/'>".repeat(60_000)),
        of("same_link_flood", "150,000 links to one page", || b"<a href='#top'>top</a>".repeat(150_000)),
        whole("lying_charset", "UTF-8 that is declared as another charset", |exchange| {
            let text = "\u{e4}\u{20ac}\u{4e2d}".repeat(9_000);
            Answer::status(200)
                .header("Content-Type", "text/html; charset=windows-1251")
                .body(damaged(exchange, text.as_bytes()))
        })
        .kept(),
        whole("lying_meta_charset", "UTF-8 whose meta element says UTF-16", |exchange| {
            Answer::status(200)
                .header("Content-Type", "text/html")
                .body(damaged(exchange, b"<meta charset=utf-16><p>\xc3\xa4"))
        })
        .kept(),
        whole("unknown_charset", "a charset that does not exist", |exchange| {
            Answer::status(200).header("Content-Type", "text/html; charset=klingon-9").body(damaged(exchange, b"<p>x"))
        })
        .kept(),
        whole("utf16_page", "a page in UTF-16 with a mark of byte order", |exchange| {
            let units = "\u{feff}".encode_utf16().chain(exchange.kept().encode_utf16().collect::<Vec<_>>());
            let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
            Answer::status(200).header("Content-Type", "text/html").body(bytes)
        })
        .kept(),
        whole("escape_sequences", "text that steers terminals, in title and text", |exchange| {
            let page = exchange.kept().replace("<title>", "<title>\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\n");
            Answer::html(page)
        })
        .kept(),
        whole("entity_expansion", "XML whose entities grow tenfold in ten steps", |exchange| {
            let steps: String = (1..10)
                .map(|step| format!("<!ENTITY e{step} \"{}\">", format!("&e{};", step - 1).repeat(10)))
                .collect();
            let xml = format!(
                "<?xml version=\"1.0\"?><!DOCTYPE html [<!ENTITY e0 \"boom\">{steps}]>\
                 <html xmlns=\"http://www.w3.org/1999/xhtml\"><body><a href=\"{}\">x</a><p>&e9;</p></body></html>",
                exchange.path(super::KEPT)
            );
            Answer::status(200).header("Content-Type", "application/xhtml+xml").body(xml)
        })
        .kept(),
        whole("external_entity", "XML that wants a file and the inside host", |exchange| {
            let inside = exchange.endpoints.url(super::INSIDE, "/panel/external_entity");
            let xml = format!(
                "<?xml version=\"1.0\"?><?xml-stylesheet href=\"{inside}/style\"?>\
                 <!DOCTYPE html SYSTEM \"{inside}/dtd\" \
                 [<!ENTITY file SYSTEM \"file:///etc/passwd\"><!ENTITY net SYSTEM \"{inside}/net\">]>\
                 <html xmlns=\"http://www.w3.org/1999/xhtml\"><body><a href=\"{}\">x</a>\
                 <a href=\"/markup/external_entity/&file;&net;\">y</a></body></html>",
                exchange.path(super::KEPT)
            );
            Answer::status(200).header("Content-Type", "application/xhtml+xml").body(xml)
        })
        .kept(),
        whole("broken_xml", "XML that ends in the middle of a tag, 60,000 elements deep", |exchange| {
            let deep = "<x>".repeat(60_000);
            let xml = format!("<?xml version=\"1.0\"?><html><a href=\"{}\">x</a>{deep}<y ", exchange.path(super::KEPT));
            Answer::status(200).header("Content-Type", "application/xhtml+xml").body(xml)
        })
        .kept(),
    ]
}

/// A page that consists of its link followed by the damage.
fn damaged(exchange: &Exchange<'_>, damage: &[u8]) -> Vec<u8> {
    let page = exchange.kept();
    let open = page.strip_suffix("</body></html>\n").expect("every page ends so");
    [open.as_bytes(), damage].concat()
}
