//! Faults of single pages.

use super::{AUDITED, Builder, Draft};

pub(super) fn add(site: &mut Builder) {
    status_and_index(site);
    titles_and_descriptions(site);
    texts(site);
    urls(site);
    languages(site);
    links(site);
    images(site);
    security(site);
    access_and_performance(site);
}

fn repeated(part: &str, times: usize) -> String {
    part.repeat(times)
}

fn status_and_index(site: &mut Builder) {
    site.case(
        "meta-refresh",
        |p| p.head("<meta http-equiv=refresh content=\"5; url=/\">"),
        [
            |p| p.head("<noscript><meta http-equiv=refresh content=\"5; url=/\"></noscript>"),
            |p| p.head("<meta http-equiv=refresh content=\"90000; url=/\">"),
            |p| p.head("<!-- <meta http-equiv=refresh content=\"5; url=/\"> -->"),
        ],
    );
    site.case(
        "noindex",
        |p| p.head("<meta name=robots content=\"noindex\">"),
        [
            |p| p.head("<meta name=otherbot content=noindex>"),
            |p| p.header("x-robots-tag", "otherbot: noindex"),
            |p| p.head("<template><meta name=robots content=noindex></template>"),
        ],
    );
    site.page("/noindex/header", |p| p.header("x-robots-tag", "NOINDEX, noarchive"));
    site.expect("noindex", "/noindex/header");
    site.case(
        "nofollow-page",
        |p| p.head("<meta name=robots content=\"index, nofollow\">"),
        [
            |p| p.body("<a rel=nofollow href=https://other.example/page>Other site</a>"),
            |p| p.header("x-robots-tag", "max-snippet:20"),
        ],
    );
    site.case(
        "canonical-missing",
        |p| p.canonical(""),
        [
            |p| {
                p.canonical("")
                    .header("link", &format!("<{AUDITED}/canonical-missing/miss-1>; rel=\"canonical\""))
            },
            |p| p.canonical("<LINK REL='Canonical' HREF='https://audit.example/canonical-missing/miss-2'>"),
        ],
    );
    site.case(
        "canonical-multiple",
        |p| p.head(&format!("<link rel=canonical href=\"{AUDITED}/\">")),
        [
            |p| p.head("<link rel=canonical href=\"https://audit.example/canonical-multiple/miss-1#top\">"),
            |p| p.head("<template><link rel=canonical href=\"https://audit.example/\"></template>"),
        ],
    );
    site.expect("canonical-fragment", "/canonical-multiple/miss-1");
    site.case(
        "canonical-mismatch",
        |p| p.header("link", &format!("<{AUDITED}/>; rel=canonical")),
        [
            |p| p.header("link", &format!("<{AUDITED}/canonical-mismatch/miss-1>; rel=canonical")),
            |p| p.header("link", &format!("<{AUDITED}/>; rel=preload")),
        ],
    );
    site.case(
        "canonical-relative",
        |p| p.canonical("<link rel=canonical href=\"/canonical-relative/planted\">"),
        [
            |p| p.canonical("<link rel=canonical href=\"HTTPS://audit.example/canonical-relative/miss-1\">"),
            |p| p.head("<!--<link rel=canonical href=/x>-->"),
        ],
    );
    site.case(
        "dead-end",
        Draft::no_home,
        [
            |p| p.no_home().body("<a href=https://other.example/page>Other site</a>"),
            |p| p.no_home().head("<meta name=robots content=noindex>"),
        ],
    );
    site.expect("noindex", "/dead-end/miss-2");
}

fn titles_and_descriptions(site: &mut Builder) {
    site.case(
        "title-missing",
        |p| p.title("<title> </title>").body("<svg><title>A drawing of a moth at dusk</title></svg>"),
        [
            |p| p.title("").head("<meta name=robots content=noindex>"),
            |p| p.title("<title></title><title>About a title that comes second</title>"),
        ],
    );
    site.expect("noindex", "/title-missing/miss-1");
    site.expect("title-multiple", "/title-missing/miss-2");
    site.case(
        "title-short",
        |p| p.title("<title>Moths</title>"),
        [
            |p| p.title("<title>短い題名でも十分に長いです</title>"),
            |p| p.title("<title>12345678901234567890</title>"),
            |p| {
                p.title("<title>Page 2</title>")
                    .head("<link rel=prev href=/title-short/planted>")
                    .body("<a href=/title-short/planted>First part</a>")
            },
        ],
    );
    site.expect("pagination-rel", "/title-short/miss-3");
    site.case("title-long", |p| p.title(&format!("<title>{}</title>", repeated("Long moths ", 7))), [
        |p| p.title("<title>123456789 123456789 123456789 123456789 123456789 123456789</title>"),
        |p| p.title("<title>123456789  \n 123456789 123456789 &amp;&amp;&amp;&amp;&amp;&amp;&amp;&amp; 1234</title>"),
    ]);
    site.case(
        "title-multiple",
        |p| p.head("<title>Another title of the same page</title>"),
        [
            |p| p.body("<svg><title>A moth</title></svg>"),
            |p| p.body("<template><title>A title of a part</title></template>"),
        ],
    );
    site.case("description-missing", |p| p.description("<meta name=description content='  '>"), [
        |p| p.description("").head("<meta name=robots content=none>"),
        |p| p.description("<meta NAME=Description content='A description with another spelling of its name, which is long enough to be one for search engines.'>"),
    ]);
    site.expect("noindex", "/description-missing/miss-1");
    site.expect("nofollow-page", "/description-missing/miss-1");
    site.case(
        "description-short",
        |p| p.description("<meta name=description content=\"All about moths.\">"),
        [
            |p| {
                p.description(&format!(
                    "<meta name=description content=\"{}\">",
                    repeated("miss one ", 9).trim_end()
                ))
            },
            |p| p.description(&format!("<meta name=description content=\"{}\">", repeated("蛾", 40))),
        ],
    );
    site.case(
        "description-long",
        |p| p.description(&format!("<meta name=description content=\"{}\">", repeated("long moths ", 20))),
        [
            |p| p.description(&format!("<meta name=description content=\"{}\">", repeated("miss two. ", 16))),
            |p| {
                p.head(&format!("<meta property=og:description content=\"{}\">", repeated("long moths ", 20)))
            },
        ],
    );
    site.case(
        "description-multiple",
        |p| p.head("<meta name=description content=\"Another description.\">"),
        [
            |p| p.head("<meta property=description content=\"Another description.\">"),
            |p| p.head("<noscript><meta name=description content=\"Another description.\"></noscript>"),
        ],
    );
    site.case(
        "meta-in-body",
        |p| p.body("<meta name=keywords content=moths>"),
        [
            |p| p.body("<meta itemprop=name name=x content=moths>"),
            |p| p.body("<pre>&lt;meta name=keywords content=moths></pre>"),
            |p| {
                p.doctype("<!DOCTYPE html [ <!ENTITY nbsp \"&#xA0;\"> <!ENTITY sdot \"&#x22C5;\"> ]>")
                    .head("<meta name=keywords content=moths>")
                    .without("content-type")
                    .header("content-type", "application/xhtml+xml; charset=utf-8")
            },
        ],
    );
}

fn texts(site: &mut Builder) {
    site.case(
        "h1-missing",
        |p| p.h1("<h2>Moths</h2>"),
        [
            |p| p.h1("<h1><img src=/moth.png alt=Moths width=9 height=9></h1>"),
            |p| p.h1("<div role=heading aria-level=1>Moths</div>"),
        ],
    );
    for path in ["/h1-missing/miss-1", "/h1-missing/miss-2"] {
        site.expect("h1-duplicate", path);
    }
    site.case(
        "h1-multiple",
        |p| p.body("<h1>Another one</h1>"),
        [
            |p| p.body("<h1></h1>"),
            |p| p.body("<template><h1>Another one</h1></template>"),
            |p| p.body("<textarea aria-label=Code><h1>Another one</h1></textarea>"),
        ],
    );
    site.case(
        "heading-skip",
        |p| p.body("<h3>Deep</h3>"),
        [
            |p| p.h1("<h2>First</h2><h1>Main</h1><h2>Next</h2><h3>Deep</h3><h2>Up</h2>"),
            |p| p.body("<!-- <h4>Deep</h4> --><h2>Next</h2>"),
        ],
    );
    site.case(
        "thin",
        |p| p.words(150),
        [
            |p| p.words(199),
            |p| p.words(20).head("<meta name=robots content=noindex>"),
            |p| p.words(2).body(&format!("<p>{}</p>", repeated("蛾が飛ぶ夜", 90))),
        ],
    );
    site.expect("noindex", "/thin/miss-2");
    site.expect("lang-content-mismatch", "/thin/miss-3");
    site.case(
        "lang-missing",
        |p| p.html("<html>"),
        [|p| p.html("<html LANG='de'>"), |p| p.html("<html lang=en-GB>")],
    );
    site.case(
        "lang-invalid",
        |p| p.html("<html lang=english>"),
        [|p| p.html("<html lang=zh-Hant-TW>"), |p| p.html("<html lang=gsw>")],
    );
    site.case(
        "placeholder",
        |p| p.body("<p>Lorem ipsum dolor\n sit amet, and so on</p>"),
        [
            |p| p.body("<code>Lorem ipsum dolor sit amet</code>"),
            |p| p.body("<blockquote><p>Lorem ipsum dolor sit amet</p></blockquote>"),
            |p| p.body("<p>The words lorem ipsum are filler.</p>"),
        ],
    );
    site.case(
        "soft-404",
        |p| p.words(30).h1("<h1>Page not found</h1>").body("<p>This page was not found.</p>"),
        [
            |p| p.h1("<h1>Highway 404</h1>").body("<p>Highway 404 leads north.</p>"),
            |p| p.h1("<h1>Page not found</h1>").body("<p>How to write a page that says not found.</p>"),
        ],
    );
}

fn urls(site: &mut Builder) {
    for (code, planted, near) in [
        ("url-upper", "/url-upper/Planted", ["/url-upper/miss%C3%89", "/url-upper/miss?Name=A"]),
        (
            "url-underscore",
            "/url-underscore/a_planted",
            ["/url-underscore/a-miss", "/url-underscore/miss?a_b=1"],
        ),
        ("url-space", "/url-space/a%20planted", ["/url-space/a+miss", "/url-space/miss?a=%20b"]),
        (
            "url-non-ascii",
            "/url-non-ascii/caf%C3%A9",
            ["/url-non-ascii/miss%2B", "/url-non-ascii/miss?a=%C3%A9"],
        ),
        (
            "url-double-slash",
            "/url-double-slash//planted",
            ["/url-double-slash/miss?a=b//c", "/url-double-slash/miss/"],
        ),
        (
            "url-repeating",
            "/url-repeating/a/b/a/b/a/b",
            ["/url-repeating/a/b/a/b/c", "/url-repeating/a/x/a/y/a"],
        ),
        (
            "url-parameters",
            "/url-parameters/planted?a=1&b=2&c=3&d=4",
            ["/url-parameters/miss?a=1&b=2&c=3", "/url-parameters/miss?a=1%26b%26c%26d"],
        ),
    ] {
        site.page(planted, |p| p);
        site.expect(code, planted);
        near.into_iter().for_each(|path| site.page(path, |p| p));
        site.misses(code, near.len());
    }
    site.expect("url-non-ascii", "/url-upper/miss%C3%89");
    let long = format!("/url-long/planted-{}", repeated("a", 115 - AUDITED.len() - 16));
    let fits = format!("/url-long/miss-{}", repeated("a", 115 - AUDITED.len() - 15));
    site.page(&long, |p| p);
    site.expect("url-long", &long);
    site.page(&fits, |p| p);
    site.page("/url-long/miss-2", |p| {
        p.body(
            &format!("<a href=\"#{}\">Within the page</a><p id={0}></p>", "a".repeat(120))
                .replace("{0}", &"a".repeat(120)),
        )
    });
    site.misses("url-long", 2);
}

fn languages(site: &mut Builder) {
    let own = |p: Draft, lang: &str, number: &str| {
        p.head(&format!("<link rel=alternate hreflang={lang} href=\"{AUDITED}/{number}\">"))
    };
    site.page("/hreflang-no-self/planted", |p| own(p, "de", "german/partner"));
    site.expect("hreflang-no-self", "/hreflang-no-self/planted");
    site.page("/german/partner", |p| {
        let p = p.html("<html lang=de>");
        let p = own(p, "de", "german/partner");
        let p = own(p, "en", "hreflang-no-self/planted");
        own(p, "x-default", "hreflang-no-self/planted")
    });
    site.page("/hreflang-no-self/miss-1", |p| own(p, "en", "hreflang-no-self/miss-1"));
    site.page("/hreflang-no-self/miss-2", |p| {
        p.head("<link rel=alternate type=application/rss+xml href=/feed>")
    });
    site.misses("hreflang-no-self", 2);

    site.page("/hreflang-no-x-default/planted", |p| {
        own(own(p, "en", "hreflang-no-x-default/planted"), "fr", "hreflang-no-x-default/fr")
    });
    site.page("/hreflang-no-x-default/fr", |p| {
        let p = own(p.html("<html lang=fr>"), "fr", "hreflang-no-x-default/fr");
        own(own(p, "en", "hreflang-no-x-default/planted"), "x-default", "hreflang-no-x-default/planted")
    });
    site.expect("hreflang-no-x-default", "/hreflang-no-x-default/planted");
    site.page("/hreflang-no-x-default/miss-1", |p| {
        own(own(p, "en", "hreflang-no-x-default/miss-1"), "en-gb", "hreflang-no-x-default/miss-1")
    });
    site.page("/hreflang-no-x-default/miss-2", |p| {
        p.head("<template><link rel=alternate hreflang=de href=/x></template>")
    });
    site.misses("hreflang-no-x-default", 2);

    site.case(
        "hreflang-relative",
        |p| p.head("<link rel=alternate hreflang=en href=/hreflang-relative/planted>"),
        [
            |p| {
                p.head("<link rel=alternate hreflang=en href=HTTPS://audit.example/hreflang-relative/miss-1>")
            },
            |p| p.head("<link rel=alternate href=/feed>"),
        ],
    );
    site.case(
        "hreflang-mismatch",
        |p| {
            p.html("<html lang=fr>")
                .head(&format!("<link rel=alternate hreflang=en href={AUDITED}/hreflang-mismatch/planted>"))
        },
        [
            |p| {
                p.html("<html lang=en>").head(&format!(
                    "<link rel=alternate hreflang=en-GB href={AUDITED}/hreflang-mismatch/miss-1>"
                ))
            },
            |p| {
                p.html("<html lang=fr>").head(&format!(
                    "<link rel=alternate hreflang=x-default href={AUDITED}/hreflang-mismatch/miss-2>"
                ))
            },
        ],
    );
    site.case("hreflang-several", |p| p.head(&format!("<link rel=alternate hreflang=en href={AUDITED}/hreflang-several/planted><link rel=alternate hreflang=de href={AUDITED}/hreflang-several/planted><link rel=alternate hreflang=x-default href={AUDITED}/hreflang-several/planted>")), [
        |p| p.head(&format!("<link rel=alternate hreflang=en href={AUDITED}/hreflang-several/miss-1><link rel=alternate hreflang=en-us href={AUDITED}/hreflang-several/miss-1>")),
        |p| p.head(&format!("<link rel=alternate hreflang=en href={AUDITED}/hreflang-several/miss-2><link rel=alternate hreflang=x-default href={AUDITED}/hreflang-several/miss-2>")),
    ]);
}

fn links(site: &mut Builder) {
    let many = |number: usize| {
        (0..number).map(|at| format!("<a href=\"/?n={at}\">Number {at}</a>")).collect::<String>()
    };
    let within = |number: usize| {
        (0..number).map(|_| "<a href=\"/\">Front</a><a href=#top>To the top</a>").collect::<String>()
    };
    let _ = many;
    let list: String = (0..101)
        .map(|at| format!("<area alt=\"Place {at}\" href=\"https://other.example/page?{at}\">"))
        .collect();
    site.page("/too-many-links/planted", |p| p.body(&list));
    site.expect("too-many-links", "/too-many-links/planted");
    site.page("/too-many-links/miss-1", |p| p.body(&within(110)));
    site.page("/too-many-links/miss-2", |p| p.body(&format!("<!-- {list} -->")));
    site.misses("too-many-links", 2);
    site.case(
        "localhost-link",
        |p| p.body("<a href=\"http://localhost:3000/\">Our test system</a>"),
        [
            |p| p.body("<a href=\"https://localhost.example/page\">Another site</a>"),
            |p| p.body("<code>http://127.0.0.1/</code>"),
        ],
    );
    site.case(
        "anchor-weak",
        |p| p.body("<a href=/>Click <b>here</b>!</a>"),
        [
            |p| p.body("<a href=#top>here</a>"),
            |p| p.body("<a href=/ aria-label=\"Prices of boats\">Read more</a>"),
            |p| p.body("<a href=/>Here be dragons</a><a href=/><code>start()</code></a><a href=/>--info</a>"),
        ],
    );
    site.case(
        "link-javascript",
        |p| p.body("<a href=\" JavaScript:void(0)\">Open it</a>"),
        [
            |p| p.body("<button onclick=\"javascript:open()\">Open</button>"),
            |p| p.body("<a href=\"/?q=javascript:\">Search for scripts</a>"),
        ],
    );
    site.case(
        "link-http-on-https",
        |p| p.body("<a href=\"http://audit.example/insecure\">By another way</a>"),
        [
            |p| p.body("<a href=\"http://127.0.0.1:8000/\">This computer</a>"),
            |p| p.body("<a href=\"//audit.example/\">The same scheme</a>"),
            |p| p.body("<a href=\"https://other.example/page?from=http://other.example/\">By https</a>"),
        ],
    );
    site.expect("localhost-link", "/link-http-on-https/miss-1");
    site.page("/link-http-on-https/elsewhere", |p| {
        p.body("<a href=\"http://other.example/plain\">Other site</a>")
    });
    for path in ["/link-http-on-https/elsewhere", "/mixed-content/miss-1", "/http-page/miss-1"] {
        site.expect("link-http-on-https", path);
    }
    site.answer("/?q=javascript:", crate::Reply::text("a search"));
    site.answer("http://audit.example/insecure", crate::Reply::status(404));
    site.expect("broken-internal-link", "http://audit.example/insecure");
    site.answer("http://other.example/plain", crate::Reply::html("plain"));
    site.case(
        "link-empty",
        |p| p.body("<a href=/><img src=/moth.png alt=\"\" width=9 height=9></a>"),
        [
            |p| p.body("<a href=/><svg><title>Front page</title></svg></a>"),
            |p| p.body("<a href=/ aria-label=\"Front page\"></a>"),
            |p| p.body("<div aria-hidden=true><a href=/></a></div>"),
            |p| p.body("<a href=/><img src=/moth.png alt=Front width=9 height=9></a>"),
        ],
    );
}

fn images(site: &mut Builder) {
    site.case(
        "img-alt-missing",
        |p| p.body("<img src=/moth.png width=9 height=9>"),
        [
            |p| p.body("<img src=/moth.png alt=\"\" width=9 height=9>"),
            |p| p.body("<img src=/moth.png role=presentation width=9 height=9>"),
            |p| p.body("<img src=/moth.png width=1 height=1>"),
            |p| p.body("<noscript><img src=/moth.png></noscript>"),
        ],
    );
    site.case(
        "img-alt-long",
        |p| p.body(&format!("<img src=/moth.png width=9 height=9 alt=\"{}\">", "long ".repeat(25))),
        [
            |p| p.body(&format!("<img src=/moth.png width=9 height=9 alt=\"{}\">", "x".repeat(100))),
            |p| {
                p.body(&format!(
                    "<img src=/moth.png width=9 height=9 alt=x title=\"{}\">",
                    "long ".repeat(25)
                ))
            },
        ],
    );
    site.case(
        "img-no-size",
        |p| p.body("<img src=/moth.png alt=x width=9>"),
        [
            |p| p.body("<img src=/moth.png alt=x style=\"width: 9px; height: 9px\">"),
            |p| p.body("<img src=/moth.png alt=x style=\"aspect-ratio: 1 / 2\">"),
        ],
    );
    site.case(
        "picture-without-img",
        |p| p.body("<picture><source srcset=/moth.png></picture>"),
        [
            |p| {
                p.body(
                    "<picture><source srcset=/moth.png><img src=/moth.png alt=x width=9 height=9></picture>",
                )
            },
            |p| p.body("<template><picture></picture></template>"),
        ],
    );
}

fn security(site: &mut Builder) {
    site.case(
        "mixed-content",
        |p| p.body("<script src=\"http://other.example/script.js\"></script>"),
        [
            |p| p.body("<a href=\"http://other.example/plain\">Other site</a>"),
            |p| p.body("<script src=\"//other.example/script.js\"></script>"),
        ],
    );
    site.answer(
        "http://other.example/script.js",
        crate::Reply::status(200).header("content-type", "text/javascript").body("1"),
    );
    site.case(
        "form-insecure",
        |p| p.body("<form action=\"http://other.example/plain\"></form>"),
        [
            |p| p.body("<form method=post action=\"/\"><input type=password aria-label=Password></form>"),
            |p| p.body("<form></form>"),
        ],
    );
    of_this_computer(site);
    site.case(
        "hsts-missing",
        |p| p.without("strict-transport-security").header("strict-transport-security", "max-age=0"),
        [
            |p| {
                p.without("strict-transport-security")
                    .header("strict-transport-security", "includeSubDomains; MAX-AGE=\"300\"")
            },
            |p| p.header("x-other", "a"),
        ],
    );
    site.expect("hsts-short", "/hsts-missing/miss-1");
    site.case(
        "csp-missing",
        |p| {
            p.without("content-security-policy")
                .header("x-frame-options", "DENY")
                .header("content-security-policy-report-only", "default-src 'self'")
        },
        [
            |p| {
                p.without("content-security-policy")
                    .header("x-frame-options", "DENY")
                    .head("<meta http-equiv=Content-Security-Policy content=\"default-src 'self'\">")
            },
            |p| {
                p.without("content-security-policy")
                    .header("content-security-policy", "frame-ancestors 'none'")
            },
        ],
    );
    site.expect("csp-report-only", "/csp-missing/planted");
    site.expect("csp-weak", "/csp-missing/miss-2");
    site.expect("csp-weak", "/frame-options-missing/miss-2");
    site.case(
        "nosniff-missing",
        |p| p.without("x-content-type-options").header("x-content-type-options", "sniff"),
        [
            |p| p.without("x-content-type-options").header("x-content-type-options", "NoSniff"),
            |p| p.header("x-content-type-options", "nosniff"),
        ],
    );
    site.case(
        "frame-options-missing",
        |p| p.without("content-security-policy").header("content-security-policy", "default-src 'self'"),
        [
            |p| {
                p.without("content-security-policy")
                    .header("content-security-policy", "default-src 'self'")
                    .header("x-frame-options", "sameorigin")
            },
            |p| {
                p.without("content-security-policy")
                    .header("content-security-policy", "Frame-Ancestors 'self'")
            },
        ],
    );
    site.case(
        "referrer-policy-missing",
        |p| p.without("referrer-policy").header("referrer-policy", "always"),
        [
            |p| p.without("referrer-policy").head("<meta name=referrer content=no-referrer>"),
            |p| {
                p.without("referrer-policy")
                    .header("referrer-policy", "no-referrer, strict-origin-when-cross-origin")
            },
        ],
    );
}

/// A host of this very computer, which is audited. Its files by http are judged as those of any site, for which it stands.
fn of_this_computer(site: &mut Builder) {
    const HOST: &str = "moths.localhost";
    let here = format!("http://{HOST}/mixed-content");
    site.hidden(&format!("https://{HOST}/"), |p| {
        p.title("<title>The front page of a host of this computer</title>")
            .h1("<h1>This computer</h1>")
            .description("<meta name=description content=\"The front page of a host of this very computer, whose files and whose form come and go by http.\">")
            .head(&format!("<link rel=stylesheet href=\"{here}/moth.css\">"))
            .body(&format!("<script src=\"{here}/moth.js\"></script><img src=\"{here}/moth.png\" alt=Moth width=9 height=9>"))
            .body(&format!("<form method=post action=\"{here}/form\"></form><a href=\"{AUDITED}/\">The site that it belongs to</a>"))
    });
    for (name, kind) in [("css", "text/css"), ("js", "text/javascript"), ("png", "image/png")] {
        let file = crate::Reply::status(200).header("content-type", kind);
        let file = file.header("cache-control", "public, max-age=31536000").header("content-length", "1");
        site.answer(&format!("{here}/moth.{name}"), file.body("1"));
    }
    site.expect("mixed-content", &format!("https://{HOST}/"));
    site.expect("form-insecure", &format!("https://{HOST}/"));
    site.answer(&format!("http://{HOST}/"), crate::Reply::error(huntsman_crawler::FetchErrorKind::Connect));
    site.answer(
        &format!("https://{HOST}/sitemap.xml"),
        super::robots_files::sitemap(&["https://map.example/".to_owned()]),
    );
}

fn access_and_performance(site: &mut Builder) {
    site.case(
        "viewport-missing",
        |p| p.viewport(""),
        [
            |p| p.viewport("<meta name=Viewport content=\"width=device-width\">"),
            |p| {
                p.viewport("").body("<p>Text</p>").head("<meta content='width=device-width' name='viewport'>")
            },
        ],
    );
    site.case(
        "label-missing",
        |p| p.body("<form><input name=q placeholder=Search></form>"),
        [
            |p| p.body("<form><label>Search <input name=q></label></form>"),
            |p| p.body("<form><input id=q><label for=q>Search</label></form>"),
            |p| p.body("<form><input type=hidden name=q><input type=submit></form>"),
        ],
    );
    site.case(
        "main-missing",
        Draft::no_main,
        [|p| p.no_main().body("<div role=main>Text</div>"), |p| p.body("<p>Text</p>")],
    );
    site.case(
        "duplicate-id",
        |p| p.body("<p id=a>1</p><p id=a>2</p>"),
        [
            |p| p.body("<p id=a>1</p><p id=A>2</p>"),
            |p| p.body("<p id=a>1</p><template><p id=a>2</p></template>"),
        ],
    );
    let elements = |number: usize| "<i>x</i> ".repeat(number);
    site.page("/dom-large/planted", |p| p.body(&elements(1_600)));
    site.expect("dom-large", "/dom-large/planted");
    site.page("/dom-large/miss-1", |p| p.body(&elements(1_450)));
    site.page("/dom-large/miss-2", |p| p.body(&format!("<template>{}</template>", elements(1_600))));
    site.misses("dom-large", 2);
    let scripts = |number: usize| {
        (0..number)
            .map(|at| format!("<script src=\"//other.example/script.js?{at}\"></script>"))
            .collect::<String>()
    };
    site.page("/too-many-requests/planted", |p| p.body(&scripts(101)));
    site.expect("too-many-requests", "/too-many-requests/planted");
    site.page("/too-many-requests/miss-1", |p| {
        p.body(&"<script src=\"//other.example/script.js\"></script>".repeat(110))
    });
    site.page("/too-many-requests/miss-2", |p| p.body(&format!("<noscript>{}</noscript>", scripts(101))));
    site.misses("too-many-requests", 2);
    let bytes = |number: usize| format!("<!-- {} -->", "x".repeat(number));
    site.page("/page-heavy/planted", |p| p.body(&bytes(60_000)));
    site.expect("page-heavy", "/page-heavy/planted");
    site.page("/page-heavy/miss-1", |p| p.body(&bytes(50_000)));
    site.page("/page-heavy/miss-2", |p| p);
    site.misses("page-heavy", 2);
}
