//! Faults and near misses that are spelled otherwise than most people do.

use super::{Builder, Draft, url_of};
use crate::Reply;

/// Adds a page with a fault, which a code tells.
fn planted(site: &mut Builder, code: &str, name: &str, change: fn(Draft) -> Draft) {
    let path = format!("/{code}/{name}");
    site.page(&path, change);
    site.expect(code, &path);
}

/// Adds a page that a code must not tell.
fn missed(site: &mut Builder, code: &str, name: &str, change: fn(Draft) -> Draft) {
    site.page(&format!("/{code}/{name}"), change);
    site.misses(code, 1);
}

pub(super) fn add(site: &mut Builder) {
    texts(site);
    names(site);
    files(site);
    media_types(site);
    canonicals(site);
}

fn texts(site: &mut Builder) {
    planted(site, "placeholder", "loud", |p| p.body("<p>LOREM IPSUM DOLOR SIT AMET</p>"));
    planted(site, "placeholder", "in-parts", |p| {
        p.body("<p>Lorem&nbsp;ipsum <em>dolor</em> sit <b>amet</b>, consectetur</p>")
    });
    missed(site, "placeholder", "quoted-part", |p| p.body("<p>Lorem ipsum <q>dolor</q> sit amet</p>"));
    missed(site, "placeholder", "other-order", |p| p.body("<p>Lorem dolor ipsum sit amet</p>"));
    planted(site, "anchor-weak", "wide-blank", |p| p.body("<a href=/>Read&nbsp;more</a>"));
    planted(site, "picture-without-img", "nested", |p| {
        p.body("<picture><source srcset=/moth.png><span><img src=/moth.png alt=Moth width=9 height=9></span></picture>")
    });
    missed(site, "picture-without-img", "after-an-element", |p| {
        p.body("<picture><span></span><img src=/moth.png alt=Moth width=9 height=9></picture>")
    });
    missed(site, "img-alt-missing", "styled-pixel", |p| {
        p.body("<img src=/moth.png style=\"width:1px; height:1px\">")
    });
    planted(site, "nosnippet", "with-a-blank", |p| p.head("<meta name=robots content=\"max-snippet: 0\">"));
    missed(site, "nosnippet", "long", |p| p.head("<meta name=robots content=\"max-snippet: 50\">"));
}

fn names(site: &mut Builder) {
    for (number, lang) in ["en-Zzzy", "sr-Latm", "en-999", "en-a", "en-x"].into_iter().enumerate() {
        let path = format!("/lang-invalid/tag-{number}");
        site.page(&path, |p| p.html(&format!("<html lang={lang}>")));
        site.expect("lang-invalid", &path);
    }
    missed(site, "lang-invalid", "full", |p| p.html("<html lang=en-Latn-GB-scotland-u-ca-gregory-x-own>"));
}

/// Files that pages name without showing them.
fn files(site: &mut Builder) {
    // Managers of consent write scripts so, and no browser loads them before readers agree.
    missed(site, "resource-broken", "consent", |p| {
        p.body("<script type=\"text/plain\" data-consent=ads src=/resource-broken/no-such.js></script>")
    });
    site.page("/resource-broken/font", |p| {
        p.head("<link rel=preload as=font href=/resource-broken/no-such.woff2 crossorigin>")
    });
    site.expect("resource-broken", "/resource-broken/no-such.woff2");
    missed(site, "resource-broken", "as-nothing", |p| {
        p.head("<link rel=preload href=/resource-broken/no-such-either.woff2>")
    });
    planted(site, "mixed-content", "font", |p| {
        p.head("<link rel=preload as=font href=http://other.example/a.woff2 crossorigin>")
    });
    site.answer("http://other.example/a.woff2", Reply::status(200).header("content-type", "font/woff2"));
    for (name, expires) in [("past", "Thu, 01 Jan 1998 00:00:00 GMT"), ("zero", "0")] {
        site.page(&format!("/no-cache/{name}"), |p| {
            p.head(&format!("<link rel=stylesheet href=/no-cache/{name}.css>"))
        });
        let file = format!("/no-cache/{name}.css");
        let reply =
            Reply::status(200).header("content-type", "text/css").header("expires", expires).body("a{}");
        site.answer(&file, reply);
        site.expect("no-cache", &file);
    }
    let drawing =
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{}</svg>", "<path d=\"M0 0\"/>".repeat(120));
    site.page("/no-compression/drawing", |p| {
        p.body("<img src=/no-compression/drawing.svg alt=Drawing width=9 height=9>")
    });
    let svg = || {
        Reply::status(200).header("content-type", "image/svg+xml").header("cache-control", "max-age=900000")
    };
    site.answer("/no-compression/drawing.svg", svg().body(drawing));
    site.expect("no-compression", "/no-compression/drawing.svg");
    site.page("/no-compression/small-drawing", |p| {
        p.body("<img src=/no-compression/small.svg alt=Drawing width=9 height=9>")
    });
    site.answer("/no-compression/small.svg", svg().body("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"));
    site.misses("no-compression", 1);
}

fn media_types(site: &mut Builder) {
    let with = |kind: &str, body: &'static [u8]| Reply::status(200).header("content-type", kind).body(body);
    let html = b"<!DOCTYPE html><html lang=en><title>A page that is no text</title><p>Text";
    for (name, reply, is_wrong) in [
        ("page.txt", with("text/plain; charset=utf-8", html), true),
        ("paper", with("text/html", b"%PDF-1.7\n%..."), true),
        ("page.json", with("application/json", html), true),
        ("list.json", with("application/json", b"{\"html\": \"<!DOCTYPE html>\"}"), false),
        ("about-html.txt", with("text/plain", b"A page begins with <!DOCTYPE html>"), false),
        ("paper.pdf", with("application/pdf", b"%PDF-1.7\n%..."), false),
    ] {
        let path = format!("/content-type-wrong/{name}");
        site.link(&path);
        site.answer(&path, reply);
        match is_wrong {
            true => site.expect("content-type-wrong", &path),
            false => site.misses("content-type-wrong", 1),
        }
    }
}

/// Two pages, each of which names the other one.
fn canonicals(site: &mut Builder) {
    for (one, other) in [("heads", "tails"), ("tails", "heads")] {
        let path = format!("/canonical-chain/{one}");
        let target = url_of(&format!("/canonical-chain/{other}"));
        site.page(&path, |p| p.canonical(&format!("<link rel=canonical href=\"{target}\">")));
        site.expect("canonical-chain", &path);
    }
}
