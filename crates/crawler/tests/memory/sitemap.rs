//! Measures the bytes that reading a sitemap takes.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use huntsman_crawler::{Sitemap, SitemapLimits, SitemapReport};
use url::Url;

use crate::{ALLOCATOR, TURN};

const MIB: usize = 1 << 20;

/// The result of reading, and the greatest number of bytes that were allocated at once besides the body.
fn read(body: &[u8]) -> (SitemapReport, usize) {
    let base = Url::parse("https://h.example/").unwrap();
    let before = ALLOCATOR.bytes();
    ALLOCATOR.watch_peak();
    let mut sitemap = Sitemap::new(body, &base, SitemapLimits::default());
    sitemap.by_ref().for_each(drop);
    (sitemap.report(), ALLOCATOR.peak() - before)
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(body).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_sitemap_of_50_mb_is_read_in_pieces() {
    let _turn = TURN.blocking_lock();
    // 50,000 entries of a kilobyte each.
    let mut body = "<?xml version='1.0'?><urlset>".to_owned();
    for n in 0..50_000 {
        let path = "segment/".repeat(28);
        body.push_str(&format!(
            "<url><loc>https://h.example/{path}{n}</loc><lastmod>2026-01-01</lastmod>\
             <xhtml:link rel='alternate' hreflang='de' href='https://h.example/de/{path}{n}'/>\
             <xhtml:link rel='alternate' hreflang='fr' href='https://h.example/fr/{path}{n}'/></url>{:130}\n",
            ""
        ));
    }
    body.push_str("</urlset>");
    let body = body.into_bytes();
    assert!((50_000_000..50 * MIB).contains(&body.len()), "{}", body.len());
    for (name, body) in [("plain", &body), ("packed", &gzip(&body))] {
        let (report, peak) = read(body);
        println!("{name}: {} bytes, and {peak} bytes to read it", body.len());
        assert_eq!((report.entries, report.is_cut, report.is_damaged), (50_000, false, false), "{name}");
        assert!(peak < 2 * MIB, "{name}: {peak}");
        assert!(body.len() + peak < 64 * MIB);
    }
}

#[test]
fn hostile_documents_take_no_more() {
    let _turn = TURN.blocking_lock();
    let nested = "<urlset>".to_owned() + &"<a>".repeat(2_500_000);
    let endless_tag = "<urlset><url ".to_owned() + &"a='b' ".repeat(1_500_000);
    let endless_text = "<urlset><url><loc>".to_owned() + &"x".repeat(10 * MIB);
    let alternates = "<urlset><url>".to_owned() + &"<xhtml:link rel='alternate' href='/x'/>".repeat(250_000);
    let references = "<urlset><url><loc>".to_owned() + &"&#120;".repeat(1_500_000);
    let line = "x".repeat(10 * MIB);
    let entries = "<urlset>".to_owned() + &"<url><loc>/</loc></url>".repeat(500_000);
    let unclosed = "<urlset>".to_owned() + &"<url><loc>/".repeat(750_000);
    let damages = "<!x>".repeat(2_500_000);
    let bomb = gzip(&vec![b' '; 200 * MIB]);
    let texts = [nested, endless_tag, endless_text, alternates, references, line, entries, unclosed, damages];
    for (n, body) in texts.iter().map(String::as_bytes).chain([&bomb[..]]).enumerate() {
        let (report, peak) = read(body);
        println!("{n}: {peak} bytes to read {} ({report:?})", body.len());
        // The only one with entries: 50,000 of them are remembered.
        let most = if body.starts_with(b"<urlset><url><loc>/</loc>") { 2 * MIB } else { MIB };
        assert!(peak < most, "{n}: {peak}");
    }
}
