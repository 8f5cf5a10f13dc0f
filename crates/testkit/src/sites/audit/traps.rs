//! URLs without an end, parameters that change nothing, bodies that are cut short, and times.

use std::time::Duration;

use huntsman_crawler::FetchErrorKind as Failure;

use super::{Builder, Draft, text, url_of};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    queries(site);
    calendars(site);
    equivalents(site);
    bodies(site);
    times(site);
}

/// A page that names another one as canonical, so that only its URL is judged.
fn copy(page: Draft, of: &str) -> Draft {
    page.canonical(&format!("<link rel=canonical href=\"{}\">", url_of(of)))
}

/// The audit of the site allows twelve query strings of a path.
fn queries(site: &mut Builder) {
    let mut list = |name: &str, number: u8, is_same: bool| {
        let base = format!("/trap-suspect/{name}");
        site.page(&base, |p| p);
        for order in 0..number {
            let path = format!("{base}?order={}", char::from(b'a' + order));
            let shown = if is_same { base.clone() } else { path.clone() };
            site.page(&path, |p| {
                copy(p.h1("<h1>List</h1>").words(0).body(&format!("<p>{}</p>", text(&shown, 60))), &base)
            });
        }
    };
    list("planted", 13, true);
    list("miss-1", 12, true);
    list("miss-2", 13, false);
    site.expect("trap-suspect", "/trap-suspect/planted?order=a");
}

fn calendars(site: &mut Builder) {
    let mut months = |name: &str, year: u16, number: u16| {
        for month in 1..=number {
            let path = format!("/trap-suspect/{name}/{year}/{month:02}/");
            site.page(&path, |p| copy(p, "/trap-suspect/planted"));
        }
    };
    months("calendar", 2_999, 10);
    months("announced", 2_998, 9);
    months("archive", 1_891, 12);
    site.expect("trap-suspect", "/trap-suspect/calendar/2999/01/");
    site.misses("trap-suspect", 4);
}

fn equivalents(site: &mut Builder) {
    for item in 0..14 {
        for way in ["list", "home", "mail"] {
            let path = format!("/url-equivalent/item?id={item}&ref={way}");
            // They compete with each other, which are other faults.
            site.expect("exact-duplicate", &path);
            site.expect("h1-duplicate", &path);
            let said = format!("Item {item} as the {way} shows it");
            site.page(&path, |p| {
                p.title(&format!("<title>{said}</title>"))
                    .description(&format!("<meta name=description content=\"{said}: all that there is to know about it, told with care and at length.\">"))
                    .canonical(&format!("<link rel=canonical href=\"{}\">", url_of(&path).replace('&', "&amp;")))
                    .h1(&format!("<h1>Item {item}</h1>"))
                    .words(0)
                    .body(&format!("<p>{}</p>", text(&format!("item {item}"), 210)))
            });
        }
    }
    site.expect("url-equivalent", "/");
    site.expect("trap-suspect", "/url-equivalent/item?id=0&ref=home");
    // Here the parameter chooses what is shown; there it is seen too seldom to be judged.
    for part in 0..24 {
        site.page(&format!("/url-equivalent/page?part={part}"), |p| p);
    }
    site.misses("url-equivalent", 2);
}

fn bodies(site: &mut Builder) {
    let html = "<!doctype html><html lang=en><title>A page that is cut</title><p>It ends";
    site.link("/truncated-body/planted");
    site.answer("/truncated-body/planted", Reply::html(html).flag("dataloss"));
    site.link("/truncated-body/failed");
    site.answer("/truncated-body/failed", Reply::error(Failure::Incomplete));
    for name in ["planted", "failed"] {
        site.expect("truncated-body", &format!("/truncated-body/{name}"));
    }
    // What a limit of the crawl cuts is whole for others.
    site.link("/truncated-body/miss-1");
    site.answer("/truncated-body/miss-1", Reply::html(html).flag("truncated"));
    site.link("https://other.example/cut");
    site.answer("https://other.example/cut", Reply::html(html).flag("dataloss"));
    site.misses("truncated-body", 2);
}

/// The test of the site has no other latency, so these times are exact.
fn times(site: &mut Builder) {
    for (path, milliseconds) in [("planted", 801), ("miss-1", 800), ("miss-2", 2_000)] {
        let path = format!("/ttfb-slow/{path}");
        site.page(&path, |p| p);
        site.delay(&path, milliseconds);
    }
    site.expect("ttfb-slow", "/ttfb-slow/planted");
    // Only the first time; and no page.
    site.once_more("/ttfb-slow/miss-2", Reply::html("<p>Faster"));
    site.link("/ttfb-slow/miss-3");
    site.answer("/ttfb-slow/miss-3", Reply::text("no page").after(Duration::from_secs(2)));
    site.misses("ttfb-slow", 3);
}
