//! Files for robots: robots.txt and sitemaps, and pages that are listed and should not be, or the other way round.
//!
//! The pages of [`ENTRIES`] are in the sitemap, which stands on the host of the site; no page of other hosts is.

use std::fmt::Write as _;

use super::{AUDITED, Builder, Draft};
use crate::Reply;

/// The host whose pages are listed.
const ENTRIES: &str = "https://map.example";

pub(super) fn add(site: &mut Builder) {
    listed(site);
    not_listed(site);
    files(site);
    translations(site);
    robots(site);
}

/// A sitemap of these URLs.
pub(super) fn sitemap(urls: &[String]) -> Reply {
    let mut entries = String::new();
    for url in urls {
        let _ = write!(entries, "<url><loc>{}</loc></url>", url.replace('&', "&amp;"));
    }
    urlset(&entries)
}

fn urlset(entries: &str) -> Reply {
    xml(&format!(
        "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{entries}</urlset>"
    ))
}

fn xml(text: &str) -> Reply {
    Reply::status(200).header("content-type", "application/xml").body(text.to_owned())
}

/// The front page of a host at which the audit begins, too.
fn front(site: &mut Builder, host: &str, change: impl FnOnce(Draft) -> Draft) {
    let name = host.trim_start_matches("https://");
    site.hidden(&format!("{host}/"), |page| {
        change(page)
            .title(&format!("<title>The front page of the host {name}</title>"))
            .h1(&format!("<h1>{name}</h1>"))
            .description(&format!("<meta name=description content=\"The front page of the host called {name}, which is there for its files for robots.\">"))
            .body(&format!("<a href=\"{AUDITED}/\">The site that it belongs to</a>"))
    });
}

/// Entries of the sitemap.
fn listed(site: &mut Builder) {
    front(site, ENTRIES, |page| page);
    site.list(&format!("{ENTRIES}/"));
    site.answer(
        &format!("{ENTRIES}/robots.txt"),
        Reply::text(format!("User-agent: *\nDisallow: /private/\nSitemap: {AUDITED}/sitemap.xml\n")),
    );
    let at = |path: &str| format!("{ENTRIES}{path}");
    site.hidden(&at("/orphan/planted"), |p| p);
    site.list(&at("/orphan/planted"));
    site.expect("orphan", &at("/orphan/planted"));
    site.page(&at("/orphan/miss-1"), |p| p);
    site.list(&at("/orphan/miss-1"));
    site.hidden(&at("/orphan/miss-2"), |p| p.head("<meta name=robots content=noindex>"));
    site.list(&at("/orphan/miss-2"));
    site.expect("noindex", &at("/orphan/miss-2"));
    site.misses("orphan", 2);
    site.expect("noindex-in-sitemap", &at("/orphan/miss-2"));
    site.misses("noindex-in-sitemap", 2);
    site.list(&at("/private/listed"));
    site.expect("blocked-in-sitemap", &at("/private/listed"));
    site.misses("blocked-in-sitemap", 2);
    let copy = at("/noncanonical-in-sitemap/planted");
    site.list(&copy);
    site.page(&copy, |p| p.canonical(&format!("<link rel=canonical href=\"{ENTRIES}/\">")));
    site.expect("noncanonical-in-sitemap", &copy);
    let own = at("/noncanonical-in-sitemap/miss");
    site.list(&own);
    site.page(&own, |p| p.canonical("").header("link", &format!("<{own}>; rel=canonical")));
    site.misses("noncanonical-in-sitemap", 2);
    for path in ["/non200-in-sitemap/gone", "/non200-in-sitemap/moved"] {
        site.list(&at(path));
        site.expect("non200-in-sitemap", &at(path));
    }
    site.answer(&at("/non200-in-sitemap/moved"), Reply::redirect(301, "/"));
    site.misses("non200-in-sitemap", 2);
}

fn not_listed(site: &mut Builder) {
    let at = |path: &str| format!("{ENTRIES}/not-in-sitemap/{path}");
    site.page(&at("planted"), |p| p);
    site.expect("not-in-sitemap", &at("planted"));
    site.page(&at("miss-1"), |p| p.head("<meta name=robots content=noindex>"));
    site.expect("noindex", &at("miss-1"));
    site.page(&at("miss-2"), |p| p.canonical(&format!("<link rel=canonical href=\"{ENTRIES}/\">")));
    // The entry has another spelling than the link.
    site.link(&at("miss-3?a=1&b=2"));
    site.list(&at("miss-3?b=2&a=1"));
    for spelling in ["miss-3?a=1&b=2", "miss-3?b=2&a=1"] {
        site.hidden(&at(spelling), |p| p);
    }
    // No page of the host of the site itself is listed.
    site.misses("not-in-sitemap", 4);

    // The robots.txt of this host names no sitemap, and it has none.
    front(site, "https://unlisted.example", |page| page.icon("<link rel=apple-touch-icon href=/icon.png>"));
    site.answer("https://unlisted.example/robots.txt", Reply::text("User-agent: *\nDisallow:\n"));
    site.answer("https://unlisted.example/sitemap.xml", Reply::html("<h1>Our pages</h1>"));
    site.expect("sitemap-missing", "https://unlisted.example/");
    // These have no robots.txt; one has a sitemap at the usual place, the other one behind a redirect.
    site.answer("https://redirecting.example/sitemap.xml", Reply::redirect(301, "/sitemap-1.xml"));
    site.answer("https://redirecting.example/sitemap-1.xml", Reply::text(format!("{ENTRIES}/\n")));
    site.answer("https://silent.example/sitemap.xml", sitemap(&[format!("{ENTRIES}/")]));
    site.misses("sitemap-missing", 3);
}

/// Sitemaps that the robots.txt of the site names. All of them list one page.
fn files(site: &mut Builder) {
    let page = format!("<loc>{ENTRIES}/</loc>");
    let mut named = |path: &str, reply: Reply| {
        site.answer(path, reply);
    };
    let entry = format!("<url>{page}</url>");
    named("/sitemap-invalid/page.xml", Reply::html("<h1>Sitemap</h1>"));
    named("/sitemap-invalid/torn.xml", xml(&format!("<urlset>{entry}<url><loc>{ENTRIES}/a")));
    named("/sitemap-invalid/mail.xml", urlset(&format!("{entry}<url><loc>mailto:a@b.example</loc></url>")));
    named("/sitemap-invalid/blank.xml", xml(&format!("\n\n<?xml version=\"1.0\"?><urlset>{entry}</urlset>")));
    named("/sitemap-invalid/ampersand.xml", urlset(&format!("{entry}<!-- a & b --><note>a & b</note>")));
    named("/sitemap-invalid/relative.xml", urlset("<url><loc>/</loc></url>"));
    named("/sitemap-invalid/empty.xml", urlset(""));
    named(
        "/sitemap-invalid/index.xml",
        xml(&format!(
            "<sitemapindex><sitemap><loc>{AUDITED}/sitemap-invalid/part.xml</loc></sitemap></sitemapindex>"
        )),
    );
    named("/sitemap-too-large/planted.xml", urlset(&entry.repeat(50_001)));
    named("/sitemap-too-large/miss-1.xml", urlset(&entry.repeat(50_000)));
    named(
        "/sitemap-too-large/miss-2.xml",
        Reply::text(format!("{ENTRIES}/\n{}", "# a comment\n".repeat(60_000))),
    );
    let dated = |date: &str| urlset(&format!("<url>{page}<lastmod>{date}</lastmod></url>"));
    named("/sitemap-lastmod-invalid/planted.xml", dated("26.11.2026"));
    named("/sitemap-lastmod-invalid/future.xml", dated("2099-01-01"));
    named("/sitemap-lastmod-invalid/zoneless.xml", dated("2024-02-29T10:30:00"));
    named("/sitemap-lastmod-invalid/miss-1.xml", dated("2024-02-29T10:30:00+02:00"));
    named(
        "/sitemap-lastmod-invalid/miss-2.xml",
        xml(&format!(
            "<rss><channel><item><link>{ENTRIES}/</link><pubDate>Tue, 03 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>"
        )),
    );
    for path in ["gone", "page", "torn", "mail", "blank", "ampersand", "relative", "empty", "part"] {
        site.expect("sitemap-invalid", &format!("/sitemap-invalid/{path}.xml"));
    }
    // Lists in plain text, feeds, and a page at the usual place that nobody called a sitemap.
    site.misses("sitemap-invalid", 3);
    site.expect("sitemap-too-large", "/sitemap-too-large/planted.xml");
    site.misses("sitemap-too-large", 2);
    for path in ["planted", "future", "zoneless"] {
        site.expect("sitemap-lastmod-invalid", &format!("/sitemap-lastmod-invalid/{path}.xml"));
    }
    site.misses("sitemap-lastmod-invalid", 2);

    let names = [
        "sitemap-invalid/gone",
        "sitemap-invalid/page",
        "sitemap-invalid/torn",
        "sitemap-invalid/mail",
        "sitemap-invalid/blank",
        "sitemap-invalid/ampersand",
        "sitemap-invalid/relative",
        "sitemap-invalid/empty",
        "sitemap-invalid/index",
        "sitemap-too-large/planted",
        "sitemap-too-large/miss-1",
        "sitemap-too-large/miss-2",
        "sitemap-lastmod-invalid/planted",
        "sitemap-lastmod-invalid/future",
        "sitemap-lastmod-invalid/zoneless",
        "sitemap-lastmod-invalid/miss-1",
        "sitemap-lastmod-invalid/miss-2",
        "translations",
    ];
    let mut robots = format!("User-agent: *\nDisallow: /private/\nSitemap: {AUDITED}/sitemap.xml\n");
    for name in names {
        let _ = writeln!(robots, "Sitemap: {AUDITED}/{name}.xml");
    }
    site.answer("/robots.txt", Reply::text(robots));
}

/// Pages whose translations only a sitemap names.
fn translations(site: &mut Builder) {
    let at = |path: &str| format!("{ENTRIES}/translated/{path}");
    let entry = |page: &str, alternates: &[(&str, &str)]| {
        let link = |(lang, to): &(&str, &str)| {
            format!("<xhtml:link rel=\"alternate\" hreflang=\"{lang}\" href=\"{}\"/>", at(to))
        };
        format!("<url><loc>{}</loc>{}</url>", at(page), alternates.iter().map(link).collect::<String>())
    };
    let pair = [("en", "miss-1"), ("de", "miss-2"), ("x-default", "miss-1")];
    let entries = [
        entry("planted", &[("en-UK", "planted"), ("de", "gone"), ("x-default", "planted")]),
        entry("alone", &[("de", "silent"), ("x-default", "silent")]),
        entry("silent", &[]),
        entry("miss-1", &pair),
        entry("miss-2", &pair),
    ];
    site.answer(
        "/translations.xml",
        xml(&format!(
            "<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\">{}</urlset>",
            entries.concat()
        )),
    );
    for page in ["planted", "alone", "silent", "miss-1", "miss-2"] {
        let is_german = matches!(page, "silent" | "miss-2");
        site.page(&at(page), |p| if is_german { p.html("<html lang=de>") } else { p });
    }
    for (code, page) in [
        ("hreflang-invalid-code", "planted"),
        ("hreflang-non200", "planted"),
        ("hreflang-no-self", "alone"),
        ("hreflang-no-return", "alone"),
    ] {
        site.expect(code, &at(page));
        site.misses(code, 2);
    }
}

/// robots.txt files of hosts that are ports of the host of the site.
fn robots(site: &mut Builder) {
    let mut host = |port: u16, file: String| {
        let page = format!("{AUDITED}:{port}/robots");
        site.link(&page);
        site.hidden(&page, |page| {
            page.no_home().body(&format!("<a href=\"{AUDITED}/\">The site that it belongs to</a>"))
        });
        site.answer(&format!("{AUDITED}:{port}/robots.txt"), Reply::text(file));
    };
    host(8_470, "User-agent: *\nDisallow: private\n".to_owned());
    host(8_471, "<!doctype html><h1>Robots</h1>".to_owned());
    host(8_472, format!("User-agent: *\nDisallow: /private/\n{}", "# a comment\n".repeat(45_000)));
    host(
        8_473,
        "\u{feff}# Robots\nUser-agent: *\nDisallow:\nAllow: /*.css$\nClean-param: sid /\n".to_owned(),
    );
    host(
        8_474,
        format!("User-agent: *\nDisallow: /private/ # the rest is open\n{}", "# a comment\n".repeat(40_000)),
    );
    host(8_475, String::new());
    for port in [8_470, 8_471, 8_472] {
        site.expect("robots-invalid", &format!("{AUDITED}:{port}/robots.txt"));
    }
    site.misses("robots-invalid", 3);
}
