//! Faults that show only in the whole site: broken links, redirects, targets, duplicates.

use huntsman_crawler::FetchErrorKind as Failure;

use super::{AUDITED, Builder};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    answers(site);
    broken(site);
    unverified(site);
    redirects(site);
    robots(site);
    follows(site);
    canonicals(site);
    series(site);
    duplicates(site);
    alternates(site);
    fragments(site);
    resources(site);
    delivery(site);
}

fn link(to: &str) -> String {
    format!("<p><a href=\"{to}\">Leads to {}</a></p>", to.trim_start_matches("https://"))
}

/// What several cases refer to.
fn answers(site: &mut Builder) {
    let image = || {
        Reply::status(200)
            .header("content-type", "image/png")
            .header("cache-control", "max-age=31536000")
            .header("content-length", "900")
    };
    site.answer("/moth.png", image());
    for path in ["https://other.example/page", "https://localhost.example/page"] {
        site.answer(path, Reply::html("elsewhere"));
    }
}

/// Adds a page with links, and the answers that they get. The first one is the planted one.
fn linked(site: &mut Builder, code: &str, cases: &[(&str, Reply)]) {
    for (number, (path, reply)) in cases.iter().enumerate() {
        let kind = if number == 0 { "planted".to_owned() } else { format!("miss-{number}") };
        site.page(&format!("/{code}/{kind}"), |p| p.body(&link(path)));
        site.answer(path, reply.clone());
    }
    site.expect(code, cases[0].0);
    site.misses(code, cases.len() - 1);
}

fn broken(site: &mut Builder) {
    linked(
        site,
        "broken-internal-link",
        &[
            ("/gone", Reply::status(404)),
            ("/secret", Reply::status(401)),
            ("/busy", Reply::status(403)),
            ("/there", Reply::text("a file")),
        ],
    );
    for path in ["/secret", "/busy", "/other"] {
        site.expect("link-forbidden", path);
    }
    site.page("/broken-internal-link/connection", |p| p.body(&link("/refused")));
    site.answer("/refused", Reply::error(Failure::Connect));
    site.expect("broken-internal-link", "/refused");
    linked(
        site,
        "server-error",
        &[
            ("/broken", Reply::status(500)),
            ("/fine", Reply::text("all is well")),
            ("/other", Reply::status(401)),
        ],
    );
    linked(
        site,
        "timeout",
        &[
            ("/slow", Reply::error(Failure::FirstByteTimeout)),
            ("/quick", Reply::text("at once")),
            ("https://slow.example/", Reply::error(Failure::FirstByteTimeout)),
        ],
    );
    linked(
        site,
        "dns-failure",
        &[
            ("https://gone.invalid/", Reply::status(200)),
            ("https://invalid.example/", Reply::text("a host with an address")),
            ("https://other.example/gone.invalid", Reply::text("a path")),
        ],
    );
    site.page("/dns-failure/asked", |p| p.body(&link("https://nowhere.example/page")));
    site.answer("https://nowhere.example/page", Reply::error(Failure::Dns));
    site.answer("https://nowhere.example/robots.txt", Reply::error(Failure::Dns));
    site.expect("dns-failure", "https://nowhere.example/page");
    linked(
        site,
        "external-broken",
        &[
            ("https://other.example/gone", Reply::status(410)),
            ("https://other.example/forbidden", Reply::status(403)),
            ("https://other.example/later", Reply::status(503)),
            ("https://other.example/wall", Reply::status(404).header("cf-mitigated", "challenge")),
            ("https://other.example/limit", Reply::status(999)),
        ],
    );
    linked(
        site,
        "external-redirect",
        &[
            ("https://other.example/moved", Reply::redirect(301, "https://other.example/page")),
            ("https://other.example/for-now", Reply::redirect(302, "https://other.example/page")),
            ("https://other.example/page?new", Reply::text("here")),
        ],
    );
}

/// Links to other sites of which is not known whether they work.
fn unverified(site: &mut Builder) {
    for url in [
        "https://slow.example/",
        "https://other.example/forbidden",
        "https://other.example/later",
        "https://other.example/wall",
        "https://other.example/limit",
        "https://closed.example/page",
    ] {
        site.expect("external-unverified", url);
    }
}

fn redirects(site: &mut Builder) {
    linked(
        site,
        "link-to-redirect",
        &[
            ("/old", Reply::redirect(301, "/")),
            ("/login", Reply::redirect(301, "/secret")),
            ("/new", Reply::text("no redirect")),
        ],
    );
    linked(
        site,
        "temporary-redirect",
        &[
            ("/today", Reply::redirect(302, "/")),
            ("/yesterday", Reply::text("no redirect")),
            ("https://other.example/elsewhere", Reply::redirect(307, "https://other.example/page")),
        ],
    );
    linked(
        site,
        "redirect-chain",
        &[
            ("/first", Reply::redirect(301, "/second")),
            ("/single", Reply::text("no redirect")),
            ("/unlinked-chain", Reply::text("a redirect that no link leads to is none")),
        ],
    );
    site.answer("/second", Reply::redirect(302, "/"));
    linked(
        site,
        "redirect-loop",
        &[
            ("/round", Reply::redirect(302, "/and-round")),
            (
                "/with-cookie",
                Reply::redirect(302, "/with-cookie")
                    .header("set-cookie", "seen=1; Secure; HttpOnly; SameSite=Lax"),
            ),
            ("/straight", Reply::text("no redirect")),
        ],
    );
    site.answer("/and-round", Reply::redirect(302, "/round"));
    site.once_more("/with-cookie", Reply::text("the cookie is there"));
    linked(
        site,
        "redirect-to-error",
        &[
            ("/to-error", Reply::redirect(301, "/gone-for-good")),
            ("/to-page", Reply::text("no redirect")),
            ("/to-login", Reply::redirect(302, "/secret")),
        ],
    );
    site.answer("/gone-for-good", Reply::status(404));
    nowhere(site);
}

/// Redirects that name no URL which browsers go to.
fn nowhere(site: &mut Builder) {
    let refused = |to: &str| Reply::redirect(302, to);
    for (name, reply) in [
        ("no-location", Reply::status(301)),
        ("empty-location", refused(" ")),
        ("no-url", refused("http://[::/")),
        ("script", refused("javascript:history.back()")),
    ] {
        let path = format!("/redirect-to-error/{name}");
        site.page(&format!("/redirect-to-error/to-{name}"), |p| p.body(&link(&path)));
        site.answer(&path, reply);
        site.expect("redirect-to-error", &path);
    }
    // The redirect before one that leads nowhere, and a file.
    site.page("/redirect-to-error/to-that", |p| p.body(&link("/redirect-to-error/before")));
    site.answer("/redirect-to-error/before", Reply::redirect(301, "/redirect-to-error/no-location"));
    site.expect("redirect-to-error", "/redirect-to-error/before");
    site.page("/redirect-to-error/with-script", |p| {
        p.body("<script src=/redirect-to-error/app.js></script>")
    });
    site.answer("/redirect-to-error/app.js", Reply::status(308));
    site.expect("redirect-to-error", "/redirect-to-error/app.js");
    // These lead somewhere: to another program, to a URL with letters as they are, or by an answer that is no redirect.
    for (name, reply) in [
        ("mail", refused("mailto:moths@audit.example")),
        ("not-modified", Reply::status(304)),
        ("choices", Reply::status(300)),
    ] {
        let path = format!("/redirect-to-error/{name}");
        site.page(&format!("/redirect-to-error/to-{name}"), |p| p.body(&link(&path)));
        site.answer(&path, reply);
        site.misses("redirect-to-error", 1);
    }
    // One of another site may show a page in its body. The second one names its target only to readers.
    for (name, reply) in [
        ("unnamed", Reply::status(302)),
        ("unnamed-by-head", Reply::redirect(302, "https://other.example/page")),
    ] {
        let url = format!("https://other.example/{name}");
        site.page(&format!("/external-unverified/{name}"), |p| p.body(&link(&url)));
        site.answer(&url, Reply::status(302));
        site.once_more(&url, reply);
    }
    site.expect("external-unverified", "https://other.example/unnamed");
    site.misses("external-unverified", 1);
}

fn robots(site: &mut Builder) {
    site.page("/blocked-by-robots/planted", |p| p.body(&link("/private/page")));
    site.expect("blocked-by-robots", "/private/page");
    site.page("/blocked-by-robots/miss-1", |p| p.body("<code>/private/other</code>"));
    site.page("/blocked-by-robots/private/", |p| p);
    site.page("/blocked-by-robots/miss-2", |p| p.body(&link("https://closed.example/page")));
    site.answer("https://closed.example/robots.txt", Reply::text("User-agent: *\nDisallow: /"));
    site.misses("blocked-by-robots", 3);
    site.page("/blocked-resource/planted", |p| p.body("<script src=/private/app.js></script>"));
    site.expect("blocked-resource", "/private/app.js");
    site.page("/blocked-resource/miss-1", |p| p.body("<script src=https://closed.example/app.js></script>"));
    site.page("/blocked-resource/miss-2", |p| {
        p.body("<template><script src=/private/other.js></script></template>")
    });
    site.misses("blocked-resource", 2);
}

fn follows(site: &mut Builder) {
    let nofollow = |to: &str| format!("<a rel=\"noopener nofollow\" href=\"{to}\">Leads to {to}</a>");
    site.page("/internal-nofollow/planted", |p| p.body(&nofollow("/internal-nofollow/target")));
    site.hidden("/internal-nofollow/target", |p| p);
    site.expect("internal-nofollow", "/internal-nofollow/target");
    site.page("/internal-nofollow/miss-1", |p| p.body(&nofollow("https://other.example/page")));
    site.page("/internal-nofollow/miss-2", |p| p.body("<a rel=follow href=/>Front page</a>"));
    site.page("/internal-nofollow/miss-3", |p| p.body(&nofollow("#top")));
    site.misses("internal-nofollow", 3);
    // The list links to it, too, without nofollow.
    site.page("/conflicting-follow/target", |p| p);
    site.page("/conflicting-follow/planted", |p| p.body(&nofollow("/conflicting-follow/target")));
    site.expect("conflicting-follow", "/conflicting-follow/target");
    site.expect("internal-nofollow", "/conflicting-follow/target");
    site.page("/conflicting-follow/noindex", |p| p.head("<meta name=robots content=noindex>"));
    site.expect("noindex", "/conflicting-follow/noindex");
    site.page("/conflicting-follow/miss-1", |p| p.body(&nofollow("/conflicting-follow/noindex")));
    site.expect("internal-nofollow", "/conflicting-follow/noindex");
    site.page("/conflicting-follow/miss-2", |p| p.body(&nofollow("/internal-nofollow/target")));
    // Linked by the list without nofollow.
    site.page("/conflicting-follow/miss-3", |p| p.body(&nofollow("/conflicting-follow/miss-3#top")));
    site.misses("conflicting-follow", 3);
    site.page("/url-session/planted", |p| p.body(&link("/session?PHPSESSID=a1")));
    site.answer("/session?PHPSESSID=a1", Reply::text("a session"));
    site.expect("url-session", "/session?PHPSESSID=a1");
    site.page("/url-session/miss-1", |p| p.body(&link("/session?sid=7")));
    site.answer("/session?sid=7", Reply::text("a number"));
    site.page("/url-session/miss-2", |p| p.body(&link("https://other.example/page?PHPSESSID=a1")));
    site.answer("https://other.example/page?PHPSESSID=a1", Reply::text("another site"));
    site.misses("url-session", 2);
    let (one, two) = ("/spelled?a=1&b=2", "/spelled?b=2&a=1");
    site.page("/url-technical-duplicate/planted", |p| p.body(&link(one)).body(&link(two)));
    for path in [one, two] {
        site.answer(path, Reply::text("one page"));
        site.expect("url-technical-duplicate", path);
    }
    site.page("/url-technical-duplicate/miss-1", |p| {
        p.body(&link("/spelled?a=1#x")).body(&link("/spelled?a=1#y"))
    });
    site.answer("/spelled?a=1", Reply::text("another page"));
    site.page("/url-technical-duplicate/miss-2", |p| {
        p.body(&link("/spelled/a?x=1&y=2")).body(&link("/spelled/a?y=2&x=1"))
    });
    for path in ["/spelled/a?x=1&y=2", "/spelled/a?y=2&x=1"] {
        site.hidden(path, |p| p.canonical(&format!("<link rel=canonical href=\"{AUDITED}/spelled/a\">")));
    }
    site.hidden("/spelled/a", |p| p);
    site.misses("url-technical-duplicate", 2);
    let mut from = "/too-deep/miss-1".to_owned();
    site.link(&from);
    // The first page of the chain is two clicks from the start: the front page, and a list.
    for step in ["miss-2", "miss-3", "planted"] {
        let to = format!("/too-deep/{step}");
        site.hidden(&from, |p| p.body(&link(&to)));
        from = to;
    }
    site.hidden(&from, |p| p);
    site.expect("too-deep", "/too-deep/planted");
    site.misses("too-deep", 3);
}

fn canonicals(site: &mut Builder) {
    let canonical = |to: &str| format!("<link rel=canonical href=\"{AUDITED}{to}\">");
    site.answer("/canonical-redirects", Reply::redirect(301, "/"));
    site.answer("/canonical-is-gone", Reply::status(404));
    site.hidden("/canonical-noindex", |p| p.head("<meta name=robots content=noindex>"));
    site.expect("noindex", "/canonical-noindex");
    site.hidden("/canonical-goes-on", |p| p.canonical(&canonical("/")));
    for (code, target) in [
        ("canonical-to-redirect", "/canonical-redirects"),
        ("canonical-to-error", "/canonical-is-gone"),
        ("canonical-to-noindex", "/canonical-noindex"),
        ("canonical-chain", "/canonical-goes-on"),
    ] {
        let path = format!("/{code}/planted");
        site.page(&path, |p| p.canonical(&canonical(target)));
        site.expect(code, &path);
        let own = format!("/{code}/miss-1");
        site.page(&own, |p| p.canonical(&canonical(&own)));
        site.page(&format!("/{code}/miss-2"), |p| p.canonical(&canonical(&own)));
        site.misses(code, 2);
    }
}

fn series(site: &mut Builder) {
    let rel = |rel: &str, to: &str| format!("<link rel={rel} href=\"{AUDITED}{to}\">");
    site.page("/pagination-rel/planted", |p| {
        p.head(&rel("next", "/pagination-rel/alone")).body(&link("/pagination-rel/alone"))
    });
    site.page("/pagination-rel/alone", |p| p);
    site.expect("pagination-rel", "/pagination-rel/planted");
    // The later page has the title of the first one, which is no fault of a series.
    site.page("/pagination-rel/miss-1", |p| {
        p.head(&rel("next", "/pagination-rel/miss-2")).body(&link("/pagination-rel/miss-2"))
    });
    site.page("/pagination-rel/miss-2", |p| {
        p.title("<title>2</title>")
            .head(&rel("prev", "/pagination-rel/miss-1"))
            .body(&link("/pagination-rel/miss-1"))
    });
    site.misses("pagination-rel", 2);
}

fn duplicates(site: &mut Builder) {
    let title = "<title>The same title on several pages</title>";
    for path in ["/title-duplicate/planted", "/title-duplicate/other"] {
        site.page(path, |p| p.title(title));
        site.expect("title-duplicate", path);
    }
    site.page("/title-duplicate/miss-1", |p| p.title(title).html("<html lang=de>"));
    site.page("/title-duplicate/miss-2", |p| p.title(title).head("<meta name=robots content=noindex>"));
    site.expect("noindex", "/title-duplicate/miss-2");
    site.page("/title-duplicate/miss-3", |p| {
        p.title(title).canonical(&format!("<link rel=canonical href=\"{AUDITED}/title-duplicate/planted\">"))
    });
    site.misses("title-duplicate", 3);
    let description =
        format!("<meta name=description content=\"{}\">", "The same words on many pages. ".repeat(4));
    for path in ["/description-duplicate/planted", "/description-duplicate/other"] {
        site.page(path, |p| p.description(&description));
        site.expect("description-duplicate", path);
    }
    site.page("/description-duplicate/miss-1", |p| p.description(&description).html("<html lang=de>"));
    site.page("/description-duplicate/miss-2", |p| {
        p.description(&description).head("<meta name=robots content=noindex>")
    });
    site.expect("noindex", "/description-duplicate/miss-2");
    site.misses("description-duplicate", 2);
    let body = |text: &str| format!("<p>{}</p>", text.repeat(60));
    let text = body("one text for all of them ");
    for (path, change) in [("/exact-duplicate/planted", ""), ("/exact-duplicate/other", "")] {
        site.page(path, |p| p.h1(&format!("<h1>Copy{change}</h1>")).body(&text).words(0));
        site.expect("exact-duplicate", path);
    }
    site.page("/exact-duplicate/miss-1", |p| {
        p.h1("<h1>Copy</h1>")
            .body(&text)
            .words(0)
            .canonical(&format!("<link rel=canonical href=\"{AUDITED}/exact-duplicate/planted\">"))
    });
    site.page("/exact-duplicate/miss-2", |p| {
        p.h1("<h1>Copy</h1>").body(&text).body("<p>but for these</p>").words(0)
    });
    site.misses("exact-duplicate", 2);
    for path in ["planted", "other", "miss-2"] {
        site.expect("h1-duplicate", &format!("/exact-duplicate/{path}"));
    }
    near_duplicates(site);
}

fn near_duplicates(site: &mut Builder) {
    // Of 300 different words these are others.
    let body = |first: &str, others: usize| {
        let word = |at: usize| if at < others { format!("{first}{at}") } else { format!("harbour{at}") };
        format!("<p>{}</p>", (0..300).map(word).collect::<Vec<_>>().join(" "))
    };
    for (path, first) in [("/near-duplicate/planted", "red"), ("/near-duplicate/other", "blue")] {
        site.page(path, |p| p.body(&body(first, 1)).words(0));
        site.expect("near-duplicate", path);
    }
    site.page("/near-duplicate/miss-1", |p| p.body(&body("green", 100)).words(0));
    site.page("/near-duplicate/miss-2", |p| p.html("<html lang=de>").body(&body("rot", 1)).words(0));
    let copy = format!("<link rel=canonical href=\"{AUDITED}/near-duplicate/planted\">");
    site.page("/near-duplicate/miss-3", |p| p.canonical(&copy).body(&body("white", 1)).words(0));
    site.misses("near-duplicate", 3);
}

fn alternates(site: &mut Builder) {
    let entry = |lang: &str, to: &str| format!("<link rel=alternate hreflang={lang} href=\"{AUDITED}{to}\">");
    let set =
        |own: &str, lang: &str, to: &str| entry("en", own) + &entry(lang, to) + &entry("x-default", own);
    for (code, target) in [
        ("hreflang-no-return", "/german/silent"),
        ("hreflang-non200", "/german/gone"),
        ("hreflang-noindex", "/german/hidden"),
        ("hreflang-noncanonical", "/german/copy"),
    ] {
        let path = format!("/{code}/planted");
        site.page(&path, |p| p.head(&set(&path, "de", target)));
        site.expect(code, &path);
        let (own, partner) = (format!("/{code}/miss-1"), format!("/{code}/miss-2"));
        site.page(&own, |p| p.head(&set(&own, "de", &partner)));
        site.page(&partner, |p| {
            p.html("<html lang=de>")
                .head(&(entry("en", &own) + &entry("de", &partner) + &entry("x-default", &own)))
        });
        site.misses(code, 2);
    }
    site.hidden("/german/silent", |p| p);
    site.answer("/german/gone", Reply::status(404));
    site.hidden("/german/hidden", |p| p.head("<meta name=robots content=noindex>"));
    site.expect("noindex", "/german/hidden");
    site.hidden("/german/copy", |p| {
        p.canonical(&format!("<link rel=canonical href=\"{AUDITED}/german/silent\">"))
    });
}

fn fragments(site: &mut Builder) {
    site.page("/fragment-broken/planted", |p| {
        p.body("<a href=\"#missing\">Within the page</a><!-- <p id=missing> -->")
    });
    site.expect("fragment-broken", "/fragment-broken/planted");
    site.page("/fragment-broken/miss-1", |p| {
        p.body(
            "<a href=\"#old\">Old</a><a href=\"#caf%C3%A9\">Decoded</a><a name=old></a><p id=\"café\"></p>",
        )
    });
    site.page("/fragment-broken/miss-2", |p| p.body("<a href=\"#top\">Up</a><a href=\"#!/route\">Route</a><a href=\"#:~:text=moth\">Text</a><a href=\"#\">Nothing</a>"));
    site.misses("fragment-broken", 2);
}

fn resources(site: &mut Builder) {
    let image = |to: &str| format!("<img src=\"{to}\" alt=x width=9 height=9>");
    let cached = |kind: &str| {
        Reply::status(200).header("content-type", kind).header("cache-control", "public, max-age=31536000")
    };
    site.page("/img-broken/planted", |p| p.body(&image("/gone.png")));
    site.expect("img-broken", "/gone.png");
    site.page("/img-broken/guarded", |p| p.body(&image("/guarded.png")));
    site.answer("/guarded.png", Reply::status(403));
    site.expect("img-broken", "/guarded.png");
    site.page("/img-broken/button", |p| {
        p.body("<form><input type=image src=/gone-button.png alt=Go><input type=button value=x src=/gone-field.png></form>")
    });
    site.expect("img-broken", "/gone-button.png");
    site.page("/img-broken/miss-1", |p| p.body(&image("/tested.png")));
    site.answer("/tested.png", Reply::status(403).header("cf-mitigated", "challenge"));
    site.page("/img-broken/miss-2", |p| {
        p.body("<noscript><img src=/gone-too.png></noscript><!-- <img src=/gone-too.png> -->")
    });
    site.misses("img-broken", 2);
    site.page("/img-heavy/planted", |p| p.body(&image("/heavy.png")));
    site.answer("/heavy.png", cached("image/png").header("content-length", "500001"));
    site.expect("img-heavy", "/heavy.png");
    site.page("/img-heavy/unstated", |p| p.body(&image("/unstated.png")));
    site.answer("/unstated.png", cached("image/png"));
    site.once_more("/unstated.png", cached("image/png").body("x".repeat(500_001)));
    site.expect("img-heavy", "/unstated.png");
    site.page("/img-heavy/miss-1", |p| p.body(&image("/fits.png")).body(&link("/heavy.pdf")));
    site.answer("/fits.png", cached("image/png").header("content-length", "500000"));
    site.answer("/heavy.pdf", cached("application/pdf").header("content-length", "900000"));
    site.misses("img-heavy", 2);
    site.page("/no-cache/planted", |p| p.body("<script src=/uncached.js></script>"));
    site.answer("/uncached.js", Reply::status(200).header("content-type", "text/javascript").body("1"));
    site.expect("no-cache", "/uncached.js");
    site.page("/no-cache/miss-1", |p| p.body("<script src=/cached.js></script>"));
    site.answer("/cached.js", cached("text/javascript").body("1"));
    site.page("/no-cache/miss-2", |p| p.head("<link rel=stylesheet href=/expires.css>"));
    site.answer(
        "/expires.css",
        Reply::status(200)
            .header("content-type", "text/css")
            .header("expires", "Wed, 01 Dec 2094 16:00:00 GMT")
            .body("a{}"),
    );
    site.misses("no-cache", 2);
}

fn delivery(site: &mut Builder) {
    site.page("/no-compression/planted", super::Draft::uncompressed);
    site.expect("no-compression", "/no-compression/planted");
    site.page("/no-compression/miss-1", |p| p);
    site.page("/no-compression/miss-2", |p| p.status(404).uncompressed());
    site.expect("broken-internal-link", "/no-compression/miss-2");
    site.misses("no-compression", 2);
    let insecure = "http://audit.example/http-page";
    site.page("/http-page/link", |p| p.body(&link(insecure)));
    site.expect("link-http-on-https", "/http-page/link");
    site.hidden(insecure, |p| p.no_home().body(&link(AUDITED)));
    site.expect("http-page", insecure);
    site.page("/http-page/miss-1", |p| p.body(&link("http://other.example/plain")));
    site.page("/http-page/miss-2?from=http://audit.example/", |p| p);
    site.misses("http-page", 2);
    site.page("/cookie-flags/planted", |p| p.header("set-cookie", "id=1; Path=/; Secure; SameSite=Lax"));
    site.expect("cookie-flags", "/");
    site.page("/cookie-flags/miss-1", |p| p.header("set-cookie", "id=1; secure; HTTPONLY; samesite=strict"));
    site.page("/cookie-flags/miss-2", |p| p.header("set-cookie", "csrftoken=1; Secure; SameSite=Lax"));
    site.misses("cookie-flags", 2);
    site.page("/server-version/planted", |p| p.header("server", "nginx/1.18.0"));
    site.expect("server-version", "/");
    site.page("/server-version/miss-1", |p| p.header("server", "nginx"));
    site.page("/server-version/miss-2", |p| p.header("x-powered-by", "Express"));
    site.misses("server-version", 2);
}
