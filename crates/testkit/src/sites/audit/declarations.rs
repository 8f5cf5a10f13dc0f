//! Faults of what pages, answers and URLs say of themselves.

use super::{AUDITED, Builder, Draft};
use crate::Reply;

pub(super) fn add(site: &mut Builder) {
    answers(site);
    files(site);
    canonicals(site);
    series(site);
    robots(site);
    headings(site);
    documents(site);
    languages(site);
    urls(site);
    variants(site);
}

fn link(to: &str) -> String {
    format!("<p><a href=\"{to}\">Leads to {}</a></p>", to.trim_start_matches("https://"))
}

/// Adds a page with links, and the answers that they get. The first one is the planted one.
fn linked(site: &mut Builder, code: &str, cases: &[(&str, Reply)]) {
    let (planted, near) = cases.split_first().expect("there is a planted one");
    site.page(&format!("/{code}/planted"), |p| p.body(&link(planted.0)));
    site.answer(planted.0, planted.1.clone());
    site.expect(code, planted.0);
    for (number, (path, reply)) in near.iter().enumerate() {
        site.page(&format!("/{code}/miss-{}", number + 1), |p| p.body(&link(path)));
        site.answer(path, reply.clone());
    }
    site.misses(code, near.len());
}

fn answers(site: &mut Builder) {
    linked(
        site,
        "link-forbidden",
        &[
            ("/members", Reply::status(403)),
            ("/for-all", Reply::text("for all")),
            ("/for-browsers", Reply::status(403).header("cf-mitigated", "challenge")),
            ("https://other.example/members", Reply::status(401)),
        ],
    );
    site.expect("external-unverified", "https://other.example/members");
    linked(
        site,
        "rate-limited",
        &[
            ("/hurried", Reply::status(429)),
            ("/at-leisure", Reply::text("at leisure")),
            ("https://other.example/hurried", Reply::status(429)),
        ],
    );
    site.expect("external-unverified", "https://other.example/hurried");
    linked(
        site,
        "external-unverified",
        &[
            ("https://other.example/maybe", Reply::status(451)),
            ("https://other.example/surely", Reply::html("surely")),
            ("/own-maybe", Reply::status(406)),
        ],
    );
    site.answer("/huntsman-audit-looks-for-a-page-that-is-missing", Reply::text("every path is here"));
    site.expect("not-found-200", "/");
    // Other answers to such a path have tests of their own: a site has only one.
    site.misses("not-found-200", 2);
    site.link("https://audit.example:8443/page");
    site.answer("https://audit.example:8443/robots.txt", Reply::status(503));
    site.expect("robots-unreachable", "https://audit.example:8443/robots.txt");
    site.link("https://audit.example:8444/page");
    site.answer("https://audit.example:8444/page", Reply::text("a host without a robots.txt"));
    site.link("https://unread.example/page");
    site.answer("https://unread.example/robots.txt", Reply::status(503));
    site.expect("external-unverified", "https://unread.example/page");
    site.misses("robots-unreachable", 2);
}

fn files(site: &mut Builder) {
    let script = |to: &str| format!("<script src=\"{to}\"></script>");
    let cached = |kind: &str| {
        Reply::status(200).header("content-type", kind).header("cache-control", "public, max-age=31536000")
    };
    site.page("/resource-broken/planted", |p| p.body(&script("/gone.js")));
    site.expect("resource-broken", "/gone.js");
    site.page("/resource-broken/miss-1", |p| p.body(&script("/guarded.js")));
    site.answer("/guarded.js", Reply::status(403));
    site.page("/resource-broken/miss-2", |p| {
        p.body("<noscript><script src=/gone-too.js></script></noscript><!-- <script src=/gone-too.js></script> -->")
    });
    site.misses("resource-broken", 2);
    site.page("/content-type-wrong/planted", |p| p.body(&script("/page.js")));
    site.answer("/page.js", cached("text/html").body("<!doctype html><title>A page</title>"));
    site.expect("content-type-wrong", "/page.js");
    site.page("/content-type-wrong/untyped", |p| p.body(&link("/untyped")));
    site.answer("/untyped", Reply::status(200).body("something"));
    site.expect("content-type-wrong", "/untyped");
    site.page("/content-type-wrong/image", |p| p.body("<img src=/page.png alt=Moth width=9 height=9>"));
    site.answer("/page.png", cached("text/html").body("<!doctype html><title>A page</title>"));
    site.expect("content-type-wrong", "/page.png");
    site.page("/content-type-wrong/miss-1", |p| p.body(&script("/typed.js")));
    site.answer("/typed.js", cached("application/javascript").body("1"));
    site.page("/content-type-wrong/miss-2", |p| p.body(&link("/nothing")));
    site.answer("/nothing", Reply::status(204));
    site.misses("content-type-wrong", 2);
}

fn canonicals(site: &mut Builder) {
    site.case(
        "canonical-outside-head",
        |p| {
            p.canonical("")
                .body(&format!("<link rel=canonical href=\"{AUDITED}/canonical-outside-head/planted\">"))
        },
        [
            |p| p.body("<template><link rel=canonical href=/></template>"),
            |p| p.body("<pre>&lt;link rel=canonical href=/></pre><link rel=stylesheet href=/expires.css>"),
        ],
    );
    site.case(
        "canonical-invalid",
        |p| {
            p.canonical(
                "<link rel=canonical href=\"https://https://audit.example/canonical-invalid/planted\">",
            )
        },
        [
            |p| p.canonical("<link rel=canonical href=\" HTTPS://AUDIT.example/canonical-invalid/miss-1 \">"),
            |p| p.head("<!-- <link rel=canonical href=\"\"> --><link rel=next-to href=\"\">"),
        ],
    );
    site.case(
        "canonical-fragment",
        |p| p.canonical("<link rel=canonical href=\"https://audit.example/canonical-fragment/planted#top\">"),
        [
            |p| p.canonical("<link rel=canonical href=\"https://audit.example/canonical-fragment/miss-1#\">"),
            |p| p.head("<link rel=bookmark href=\"https://audit.example/canonical-fragment/miss-2#top\">"),
        ],
    );
    site.case(
        "canonical-other-host",
        |p| p.canonical("<link rel=canonical href=\"https://other.example/page\">"),
        [
            |p| {
                p.canonical("<link rel=canonical href=\"https://AUDIT.EXAMPLE/canonical-other-host/miss-1\">")
            },
            |p| p.head("<link rel=bookmark href=\"https://other.example/page\">"),
        ],
    );
    let canonical = |to: &str| format!("<link rel=canonical href=\"{AUDITED}{to}\">");
    site.page("/canonical-to-blocked/planted", |p| p.canonical(&canonical("/private/original")));
    site.expect("canonical-to-blocked", "/canonical-to-blocked/planted");
    site.page("/canonical-to-blocked/private/", |p| p);
    site.page("/canonical-to-blocked/miss-1", |p| p.canonical(&canonical("/canonical-to-blocked/private/")));
    site.page("/canonical-to-blocked/miss-2", |p| p.head("<!-- <link rel=canonical href=/private/a> -->"));
    site.misses("canonical-to-blocked", 2);
}

fn series(site: &mut Builder) {
    let canonical = format!("<link rel=canonical href=\"{AUDITED}/pagination-canonical/list\">");
    site.page("/pagination-canonical/list", |p| p);
    site.page("/pagination-canonical/list?page=2", |p| p.canonical(&canonical));
    site.expect("pagination-canonical", "/pagination-canonical/list?page=2");
    site.page("/pagination-canonical/list?page=3", |p| p);
    site.page("/pagination-canonical/list?sort=up", |p| p.canonical(&canonical));
    site.misses("pagination-canonical", 2);
}

fn robots(site: &mut Builder) {
    site.case(
        "robots-conflict",
        |p| p.head("<meta name=robots content=\"index, follow\">").header("x-robots-tag", "noindex"),
        [
            |p| p.head("<meta name=robots content=\"index, nofollow\">"),
            |p| p.head("<meta name=robots content=index>").header("x-robots-tag", "otherbot: noindex"),
        ],
    );
    site.expect("noindex", "/robots-conflict/planted");
    site.expect("nofollow-page", "/robots-conflict/miss-1");
    site.case(
        "nosnippet",
        |p| p.head("<meta name=robots content=\"index, nosnippet\">"),
        [
            |p| p.body("<p data-nosnippet>Not for results</p>"),
            |p| p.head("<meta name=robots content=\"max-snippet:-1\">"),
        ],
    );
    site.case(
        "noimageindex",
        |p| p.header("x-robots-tag", "NoImageIndex"),
        [
            |p| p.header("x-robots-tag", "otherbot: noimageindex"),
            |p| p.head("<meta name=robots content=\"max-image-preview:none\">"),
        ],
    );
    let nofollow = "<a rel=nofollow href=\"/only-nofollow-inlinks/planted\">A page</a>";
    site.page("/only-nofollow-inlinks/links", |p| p.body(nofollow));
    site.hidden("/only-nofollow-inlinks/planted", |p| {
        p.body("<a href=\"/only-nofollow-inlinks/planted#x\">Here we are</a><p id=x></p>")
    });
    site.expect("only-nofollow-inlinks", "/only-nofollow-inlinks/planted");
    site.expect("internal-nofollow", "/only-nofollow-inlinks/planted");
    // The list links to the first, and the second may not be indexed.
    site.misses("only-nofollow-inlinks", 2);
    site.expect("only-nofollow-inlinks", "/internal-nofollow/target");
}

fn headings(site: &mut Builder) {
    site.case(
        "h1-long",
        |p| p.h1(&format!("<h1>{}</h1>", "Long moths ".repeat(7))),
        [
            |p| p.h1(&format!("<h1>{}</h1>", "Moths. ".repeat(10))),
            |p| p.body(&format!("<h2>{}</h2>", "Long moths ".repeat(7))),
        ],
    );
    for path in ["/h1-duplicate/planted", "/h1-duplicate/other"] {
        site.page(path, |p| p.h1("<h1>News of the moths</h1>"));
        site.expect("h1-duplicate", path);
    }
    site.page("/h1-duplicate/miss-1", |p| p.h1("<h1>News of the moths</h1>").html("<html lang=de>"));
    site.page("/h1-duplicate/miss-2", |p| {
        p.h1("<h1>News of the moths</h1>").head("<meta name=robots content=noindex>")
    });
    site.expect("noindex", "/h1-duplicate/miss-2");
    site.misses("h1-duplicate", 2);
    site.case(
        "heading-empty",
        |p| p.body("<h2><span> </span></h2>"),
        [
            |p| p.body("<h2><img src=/moth.png alt=Moths width=9 height=9></h2>"),
            |p| p.body("<h2 aria-label=Moths></h2><h2><i title=Moths></i></h2>"),
            |p| p.body("<h2 hidden></h2><div aria-hidden=true><h2></h2></div>"),
        ],
    );
    site.expect("heading-empty", "/h1-multiple/miss-1");
    site.case(
        "description-is-title",
        |p| {
            p.title("<title>Hawk moths of the northern meadows</title>")
                .description("<meta name=description content=\"HAWK moths of the  northern meadows\">")
        },
        [
            |p| p.head("<meta property=og:description content=\"About description-is-title miss-1 and its kind\">"),
            |p| p.title("<title>This page tells all that there is to know</title>"),
        ],
    );
    site.expect("description-short", "/description-is-title/planted");
}

fn documents(site: &mut Builder) {
    site.case(
        "doctype-missing",
        |p| p.doctype("<!-- <!doctype html> -->"),
        [
            |p| p.doctype("<!-- made by hand --> <!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\">"),
            |p| p.doctype("<?xml version=\"1.0\"?>\n<!doctype html>"),
        ],
    );
    let untyped = |p: Draft| p.without("content-type").header("content-type", "text/html");
    site.page("/charset-late/planted", |p| {
        untyped(p).charset(&format!("<!-- {} --><meta charset=utf-8>", "late ".repeat(210)))
    });
    site.expect("charset-late", "/charset-late/planted");
    site.page("/charset-late/miss-1", |p| {
        untyped(p).charset("<meta http-equiv=content-type content=\"text/html; charset=utf-8\">")
    });
    site.page("/charset-late/miss-2", |p| p.charset(""));
    site.misses("charset-late", 2);
    site.case(
        "template-leftover",
        |p| p.title("<title>{{ page.title }} and all that is in it</title>"),
        [
            |p| p.title("<title>Undefined behaviour of moths at dusk</title>"),
            |p| p.body("<p><code>{{name}}</code> and <code>[object Object]</code></p>"),
        ],
    );
    site.page("/template-leftover/name", |p| p.h1("<h1>Welcome to undefined</h1>"));
    site.expect("template-leftover", "/template-leftover/name");
    site.case(
        "garbled-text",
        |p| p.body("<p>The cafÃ© sells crÃ¨me and naÃ¯ve art, as itâ€™s said</p>"),
        [
            |p| p.body("<p>IRMÃ E IRMÃO, pâté à la carte, «IRMû</p>"),
            |p| p.body("<p>Mojibake is text such as Ã© Ã© Ã© for é</p>"),
        ],
    );
}

fn languages(site: &mut Builder) {
    const FRENCH: &str = "<p>Le port se réveille avant le soleil, quand les pêcheurs reviennent avec leurs filets et que les mouettes attendent sur les toits. Dans la rue du marché, une vieille dame vend des pommes et raconte à tout le monde les histoires de sa jeunesse. Elle connaît chaque bateau par son nom, et chaque marin par ses dettes. Le soir venu, les lumières du phare tournent lentement au-dessus des vagues, et la ville entière se tait pour écouter la mer.</p>";
    site.page("/lang-content-mismatch/planted", |p| p.body(&FRENCH.repeat(3)).words(3));
    site.expect("lang-content-mismatch", "/lang-content-mismatch/planted");
    site.page("/lang-content-mismatch/miss-1", |p| {
        p.html("<html lang=fr-CA>").body(&FRENCH.repeat(3)).words(3)
    });
    site.page("/lang-content-mismatch/miss-2", |p| p.body(FRENCH));
    site.misses("lang-content-mismatch", 2);
}

fn urls(site: &mut Builder) {
    let planted = "/url-escaped-twice/a%2520planted";
    site.page(planted, |p| p);
    site.expect("url-escaped-twice", planted);
    for path in ["/url-escaped-twice/100%25", "/url-escaped-twice/miss?q=a%2520b"] {
        site.page(path, |p| p);
    }
    site.misses("url-escaped-twice", 2);
    linked(
        site,
        "url-tracking",
        &[
            ("/tracked?utm_source=home", Reply::text("tracked")),
            ("/tracked?utm=33", Reply::text("a zone of maps")),
            ("https://other.example/page?utm_source=a", Reply::html("another site")),
        ],
    );
    linked(
        site,
        "url-private",
        &[
            ("/leave?email=ann%40b.example", Reply::text("left")),
            ("/leave?token=next", Reply::text("a word")),
            ("/package/lodash@4.17.21", Reply::text("a package")),
        ],
    );
}

fn variants(site: &mut Builder) {
    let same = |p: Draft, number: usize| {
        let other = format!("Variant number {number} of a page");
        p.title(&format!("<title>{other}</title>"))
            .h1(&format!("<h1>{other}</h1>"))
            .description(&format!(
                "<meta name=description content=\"{other}, whose description says something else at some length and care.\">"
            ))
    };
    let text = |word: &str| {
        format!("<p>{}</p>", (0..220).map(|at| format!("{word}{at}")).collect::<Vec<_>>().join(" "))
    };
    for (number, path) in
        ["/url-variant-duplicate/planted", "/url-variant-duplicate/planted/"].iter().enumerate()
    {
        site.page(path, |p| same(p, number).h1("<h1>A page</h1>").body(&text("sail")).words(0));
        for code in ["url-variant-duplicate", "exact-duplicate", "h1-duplicate"] {
            site.expect(code, path);
        }
    }
    site.page("/url-variant-duplicate/miss-1", |p| same(p, 2));
    site.page("/url-variant-duplicate/miss-1/", |p| same(p, 3));
    let canonical = format!("<link rel=canonical href=\"{AUDITED}/url-variant-duplicate/miss-2\">");
    for path in ["/url-variant-duplicate/miss-2", "/url-variant-duplicate/miss-2/"] {
        site.page(path, |p| same(p, 4).canonical(&canonical).body(&text("mast")).words(0));
    }
    site.misses("url-variant-duplicate", 2);
}
